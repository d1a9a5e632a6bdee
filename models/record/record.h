/* Record: a training step of any PyTorch model, as the recorder in python/snsim wrote it (docs/record.md): operations in
 * order, and of every storage when Python lets go of it and which nodes of autograd keep it. It is read once and holds
 * for every batch that it was recorded for.
 *
 *   sn_record *record = sn_record_load("mine.rec", arena, &err);
 *   sn_record_bytes(record, s, batch)          a + b x batch
 *   sn_net_load("mine.rec", 64, 0, &err)                 the network of one (record_net.h)
 *
 * Ids count from 0 in the order of the file. What the file says is checked: an id out of its table, a storage that is
 * born twice or dies dead, modules that are left before they were entered are errors with line and rule.
 */
#ifndef SN_MODELS_RECORD_RECORD_H
#define SN_MODELS_RECORD_RECORD_H

#include "base/err.h"
#include "models/record/traffic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sn_arena;

enum { SN_RECORD_BATCHES = 2 };
#define SN_RECORD_MOST_EVENTS 4000000u

/* a + b x batch, of which neither need be above 0. */
typedef struct sn_record_size {
  int64_t a, b;
} sn_record_size;

typedef enum sn_record_role {
  SN_RECORD_PARAMETER,
  SN_RECORD_BUFFER,
  SN_RECORD_GIVEN, /* the batch, and what else was there when the recording began */
  SN_RECORD_STATE, /* of an optimizer */
  SN_RECORD_VALUE,
  SN_RECORD_ROLES
} sn_record_role;

/* Many have the same bytes, record->sizes[size]. */
typedef struct sn_record_storage {
  uint32_t size : 24;
  uint32_t role : 7; /* sn_record_role */
  bool on_gpu : 1;
} sn_record_storage;
_Static_assert(SN_RECORD_MOST_EVENTS < 1 << 24, "there are no more storages, or kernels");

/* Bits of sn_record_kernel.flags. */
enum {
  SN_RECORD_RANDOM = 1,
  SN_RECORD_CHANGES_STATE = 2, /* a parameter or a buffer */
  SN_RECORD_ATTENTION = 4,
  SN_RECORD_CONVOLUTION = 8,
  SN_RECORD_PRODUCT = 16,
  SN_RECORD_CHANNELS_LAST = 32 /* of a convolution or a batch norm: so lie its operands */
};

typedef struct sn_record_kernel {
  const char *name, *called; /* "aten.convolution.default", "convolution" */
  sn_record_traffic traffic;
  uint32_t flags;
} sn_record_kernel;

typedef struct sn_record_module {
  const char *path, *class_name; /* "layer1.0.conv1", "Conv2d"; "" of what is in no module */
} sn_record_module;

typedef struct sn_record_call {
  uint32_t parent, module; /* call 0 is what is outside of all modules, and its own parent */
} sn_record_call;

typedef struct sn_record_parameter {
  const char *name;
  uint32_t storage;
  uint64_t elements, rows; /* its first dimension; 0: the file is older, and does not say what follows either */
  bool trained;
  uint32_t n_gradients, n_states;
  const uint32_t *gradients; /* storages: of each iteration */
  const uint32_t *states;    /* storages of its shape that an optimizer keeps of it */
} sn_record_parameter;

/* Shapes of a convolution over images; of one column over rows. */
typedef struct sn_record_conv {
  sn_record_size n;
  uint32_t c, h, w, out, kernel_h, kernel_w, stride[2], pad[2], dilation[2], groups;
  bool transposed;
  uint8_t gradients; /* 0: forward; else a sum of 1, its input's, 2, its weight's, and 4, its bias' */
} sn_record_conv;

/* Shapes of a product of matrices, or of `count` such. */
typedef struct sn_record_product {
  sn_record_size rows, columns, terms, count;
} sn_record_product;

typedef enum sn_record_phase { SN_RECORD_FORWARD, SN_RECORD_BACKWARD, SN_RECORD_UPDATE } sn_record_phase;

/* What operations do, of which many do the same. */
typedef struct sn_record_work {
  sn_record_size flops, read, written; /* multiplications and additions; bytes */
  uint32_t shape; /* of a convolution record->convs[], of a product record->products[]; SN_NONE: of another, or over
                   * volumes */
} sn_record_work;

/* One operation. Its storages are refs[first_ref ..]: those it reads, then makes, then changes. */
typedef struct sn_record_op {
  uint32_t kernel : 24;
  bool adds_in_place : 1; /* a sum of gradients that PyTorch writes over its first summand, which is `summand` */
  bool narrow : 1;        /* its first output has two bytes an element */
  bool fp16 : 1;          /* of which it is float16 */
  uint32_t phase : 2;     /* sn_record_phase */
  uint32_t call, work;    /* record->works[] */
  int32_t
      node; /* of autograd: made by it, forward; being differentiated, backward; below 0: none. One beyond is INT32_MAX */
  uint32_t first_ref, n_reads, n_makes, n_changes;
  uint32_t summand;
} sn_record_op;

typedef enum sn_record_kind {
  SN_RECORD_OP,        /* ops[id] */
  SN_RECORD_BIRTH,     /* of a storage, by no operation */
  SN_RECORD_LET_GO,    /* Python has the storage no longer */
  SN_RECORD_KEPT,      /* handle `id` keeps storage `other` for a node */
  SN_RECORD_DROPPED,   /* handle `id` does no longer */
  SN_RECORD_GHOST,     /* storage `other` is taken out for backward, as ghost `id` */
  SN_RECORD_GHOST_END, /* ghost `id`, of storage `other`, is gone */
  SN_RECORD_TAKEN,     /* handle `id` is what the ghost right ahead of this was taken out of */
  SN_RECORD_ENTER,     /* call `id` of a module, with arguments[other] arguments: those behind it */
  SN_RECORD_LEAVE,
  SN_RECORD_ITERATION /* number `id` begins, from 0 */
} sn_record_kind;

enum { SN_RECORD_ID_BITS = 28 };

typedef struct sn_record_event {
  uint32_t kind : 32 - SN_RECORD_ID_BITS; /* sn_record_kind */
  uint32_t id : SN_RECORD_ID_BITS;
  uint32_t other;
} sn_record_event;

static inline sn_record_event sn_record_event_of(sn_record_kind kind, uint32_t id, uint32_t other) {
  return (sn_record_event){.kind = kind, .id = id & ((1u << SN_RECORD_ID_BITS) - 1), .other = other};
}

typedef struct sn_record {
  const char *name;                               /* of the model */
  uint32_t batches[SN_RECORD_BATCHES], n_batches; /* recorded with; of one alone it holds for no other */
  uint32_t iterations, handles;
  uint32_t passes;    /* of the last iteration: how often backward is called; what runs again within is none */
  uint32_t n_assumed; /* places where only values would tell */
  const char *assumed, *assumed_at; /* the first: what, and at which of the user's lines; NULL: none */
  bool compiled;                    /* a compiled model, recorded as it runs without compiling */
  uint32_t n_kernels, n_modules, n_calls, n_storages, n_parameters;
  const sn_record_kernel *kernels;
  const sn_record_module *modules;
  const sn_record_call *calls;
  const sn_record_storage *storages;
  const sn_record_size *sizes; /* of storages */
  const sn_record_parameter *parameters;
  uint32_t n_ops, n_refs, n_events, n_arguments;
  const sn_record_op *ops;
  const uint32_t *refs, *arguments; /* storages */
  const sn_record_work *works;
  const sn_record_conv *convs;
  const sn_record_product *products;
  const sn_record_event *events;
} sn_record;

/* Of a file, packed by gzip or not, into the arena. SN_BAD_FILE where it cannot be read, SN_BAD_INPUT with file, line and rule. O(size
 * of the file). */
sn_record *sn_record_load(const char *path, struct sn_arena *arena, sn_err *err);
/* The same of what stands in memory, not packed; `name` stands where the path would in errors. */
sn_record *sn_record_parse(const char *name, const char *bytes, size_t size, struct sn_arena *arena, sn_err *err);

/* SN_BAD_USAGE for a batch that it does not hold for, or at which a storage has no size. */
sn_status sn_record_check_batch(const sn_record *record, uint32_t batch, sn_err *err);

static inline sn_record_size sn_record_size_of(const sn_record *record, uint32_t storage) {
  return record->sizes[record->storages[storage].size];
}
/* For a batch that was checked; 0 where a storage is not on the GPU. */
static inline uint64_t sn_record_bytes(const sn_record *record, uint32_t storage, uint32_t batch) {
  const sn_record_size size = sn_record_size_of(record, storage);
  return record->storages[storage].on_gpu ? (uint64_t)(size.a + size.b * (int64_t)batch) : 0;
}
static inline double sn_record_amount(sn_record_size size, uint32_t batch) {
  return (double)size.a + (double)size.b * batch;
}

#endif
