/* DTR program: what a training step asks of dynamic tensor rematerialization (sim/dtr/dtr.h), operation by
 * operation.
 *
 *   sn_dtr_program *p = sn_dtr_program_new(&err);
 *   sn_dtr_output x = {.bytes = 4096, .view_of = SN_DTR_OWN};
 *   sn_dtr_program_run(p, 0, NULL, 0, &x, 1, &err);              tensor 0, from nowhere
 *   sn_dtr_program_act(p, SN_DTR_PIN, 0, &err);
 *   sn_dtr_program_run(p, 250, &(uint32_t){0}, 1, &x, 1, &err);  tensor 1, made of it
 *   sn_dtr_program_act(p, SN_DTR_RELEASE, 0, &err);
 *   sn_dtr_program_close(p, &err);
 *
 * A tensor is an output of an operation; tensors are numbered in the order of their making. It has a storage of its own
 * or is a view of an argument's. A new tensor has one reference, its storage as many as all its tensors together.
 *
 *         storage 0          storage 1
 *        +---------+  op 1  +---------+  op 2: a view
 *        | tensor 0 | ----> | tensor 1 | ---------------> tensor 2, of storage 1 as well
 *        +---------+        +---------+
 *
 * Memory: 24 bytes an operation, 8 an argument, 12 a tensor, 28 a storage, 4 an action; arrays that grow are at most
 * twice as large.
 */
#ifndef SN_SIM_DTR_DTR_PROGRAM_H
#define SN_SIM_DTR_DTR_PROGRAM_H

#include "base/err.h"

#include <stdint.h>

#define SN_DTR_OWN UINT32_MAX /* view_of: a storage of its own */

/* All bytes together, and all costs, each counted once for every output, stay below. */
#define SN_DTR_MOST (UINT64_C(1) << 61)
/* Operations, tensors and arguments, each. */
enum { SN_DTR_MOST_ITEMS = 1 << 28 };

typedef enum sn_dtr_kind {
  SN_DTR_RUN,     /* the next operation, for the first time */
  SN_DTR_HOLD,    /* one reference more to a tensor */
  SN_DTR_RELEASE, /* one less; where its storage has none left, the storage goes, unless it is pinned */
  SN_DTR_PIN,     /* made again where it was evicted, then never evicted any more, whatever refers to it */
  SN_DTR_KEEP     /* its storage is not evicted, but goes with its last reference */
} sn_dtr_kind;

typedef struct sn_dtr_action {
  unsigned kind : 3;  /* sn_dtr_kind */
  unsigned item : 29; /* the operation or tensor */
} sn_dtr_action;

typedef struct sn_dtr_output {
  uint64_t bytes;   /* of a storage of its own */
  uint32_t view_of; /* which argument's storage it lies in, or SN_DTR_OWN */
} sn_dtr_output;

typedef struct sn_dtr_op {
  uint64_t cost_ns, bytes;          /* what it takes; all storages of its own together */
  uint32_t first_arg, first_tensor; /* up to those of the next operation */
} sn_dtr_op;

typedef struct sn_dtr_tensor {
  uint32_t op, storage;
} sn_dtr_tensor;

typedef struct sn_dtr_storage {
  uint64_t bytes;
  uint32_t root; /* the tensor it was made for */
} sn_dtr_storage;

/* To look at; ops and storages have an entry more, whose firsts end the last one's. */
typedef struct sn_dtr_program {
  uint32_t n_ops, n_args, n_tensors, n_storages, n_actions;
  sn_dtr_op *ops;
  uint32_t *args; /* tensors */
  sn_dtr_tensor *tensors;
  sn_dtr_storage *storages;
  sn_dtr_action *actions;
  /* Made by sn_dtr_program_close(), ascending: the tensors of storage s are members[first_member[s]] up to
   * first_member[s + 1], the operations that have it as an argument users[first_user[s]] up to first_user[s + 1]. */
  uint32_t *first_member, *members, *first_user, *users;
  uint64_t cost_ns, most_costs, bytes; /* sums: over operations, over tensors, of storages */
  /* How many references each storage has by now, as long as the program grows. */
  uint32_t *references;
  uint32_t room_ops, room_args, room_tensors, room_storages, room_references, room_actions;
} sn_dtr_program;

sn_dtr_program *sn_dtr_program_new(sn_err *err);
void sn_dtr_program_free(sn_dtr_program *program);

/* An operation of `cost_ns` that reads tensors `args` and makes tensors n_tensors, n_tensors + 1, .. SN_BAD_INPUT for
 * none, for a view of an argument that is none, and where sums pass SN_DTR_MOST. */
sn_status sn_dtr_program_run(sn_dtr_program *program, uint64_t cost_ns, const uint32_t *args, uint32_t n_args,
                             const sn_dtr_output *outputs, uint32_t n_outputs, sn_err *err);

/* SN_BAD_INPUT where a storage without references is held or released. */
sn_status sn_dtr_program_act(sn_dtr_program *program, sn_dtr_kind kind, uint32_t tensor, sn_err *err);

/* No more comes. O(operations + arguments + tensors). */
sn_status sn_dtr_program_close(sn_dtr_program *program, sn_err *err);

#endif
