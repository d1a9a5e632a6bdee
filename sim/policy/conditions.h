/* Conditions: what a question asks beside network, device and strategy, as results, files and the database say it: in
 * words and numbers. One list; who keeps, writes, reads or compares them goes through it, so that a new one is a line
 * here, its two functions in conditions.c, and what it does.
 *
 *   sn_conditions         a member each: of a run (sim/ask/run.h), a point of a sweep (db/sweep.h)
 *   sn_condition_table    a row each, to go through them by name
 */
#ifndef SN_SIM_POLICY_CONDITIONS_H
#define SN_SIM_POLICY_CONDITIONS_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/policy/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(type, name, usual, told, over, title, axis): the type of the member is const char * (a word), bool, uint32_t or
 * uint64_t (bytes); `usual` is what it is unless asked for, `told` whether files say even that; `over` and `title` head
 * its column of a table; of a bool `over` are its two words there; `axis` is what it is called as an axis of sweeps,
 * NULL: it is the same at all points.
 *
 *   pool_limit_bytes  the pool is no larger than this (--pool); 0: all that the device has left
 *   workspace         none, dynamic, max
 *   external          where what is sent out goes: host, peer, remote, disk
 *   allocator         pool, cuda, pytorch, pytorch-expandable
 *   optimizer         momentum, sgd, adam, adamw, .. (sim/graph/optimizer.h)
 *   accumulate        batches that an update is made of, one after the other
 *   inference         the network is run, not trained: the two above are of no meaning
 *   precision         fp32, tf32, tf32-conv, bf16, fp16, amp-bf16, amp-fp16
 *   freeze            globs of layers that are not trained, "conv*,bn*"; "": all are
 *   parallel          on how many GPUs, and how they share it, "fsdp=8"; "": on one (sim/graph/mesh.h)
 *   cluster           which GPUs those are, and how they speak to each other (sim/cluster/cluster.h); "": not said
 *   nodes             of that; 0: as many as it says, or as the GPUs take
 *   host_us           microseconds that PyTorch's host takes for an operation; "": what the profile says
 *   shared_link       copies of both directions share the link's bandwidth
 */
#define SN_CONDITIONS(X)                                                                                               \
  X(uint64_t, pool_limit_bytes, "0", true, "pool", "GiB", "pools")                                                     \
  X(const char *, workspace, "dynamic", true, "", "workspace", "workspaces")                                           \
  X(const char *, external, "host", true, "", "external", "externals")                                                 \
  X(const char *, allocator, "pool", true, "", "allocator", "allocators")                                              \
  X(const char *, optimizer, "momentum", true, "", "optimizer", "optimizers")                                          \
  X(uint32_t, accumulate, "1", true, "batches", "an update", "accumulates")                                            \
  X(bool, inference, "false", true, "no|yes", "inference", NULL)                                                       \
  X(const char *, precision, "fp32", false, "", "precision", "precisions")                                             \
  X(const char *, freeze, "", false, "", "frozen", NULL)                                                               \
  X(const char *, parallel, "", false, "", "GPUs", "parallels")                                                        \
  X(const char *, cluster, "", false, "", "cluster", NULL)                                                             \
  X(uint32_t, nodes, "0", false, "nodes", "nodes", NULL)                                                               \
  X(const char *, host_us, "", false, "us", "host", NULL)                                                              \
  X(bool, shared_link, "false", true, "own|shared", "link", "links")

#define SN_CONDITION_MEMBER(type, name, usual, told, over, title, axis) type name;

typedef struct sn_conditions {
  SN_CONDITIONS(SN_CONDITION_MEMBER)
} sn_conditions;

/* What options ask of a network (NULL: of whichever); `freeze`, `parallel` and `cluster` are theirs. */
sn_conditions sn_conditions_of(const sn_options *options, const sn_net *net);

/* The options that conditions ask for: what is none of them stays as it is. `freeze` stays the conditions' own.
 * SN_BAD_USAGE for a word that is none, and for a number out of its range. */
sn_status sn_conditions_apply(const sn_conditions *conditions, sn_options *options, sn_err *err);

typedef enum sn_condition_kind {
  SN_CONDITION_WORD,
  SN_CONDITION_FLAG,
  SN_CONDITION_COUNT,
  SN_CONDITION_BYTES
} sn_condition_kind;

typedef struct sn_condition {
  const char *name;
  sn_condition_kind kind;
  size_t offset; /* of the member in sn_conditions */
  const char *usual;
  bool told;
  const char *over, *title, *axis;
  sn_status (*apply)(const sn_conditions *conditions, sn_options *options, sn_err *err);
} sn_condition;

#define SN_CONDITION_ONE(type, name, usual, told, over, title, axis) +1
enum { SN_CONDITION_ROWS = 0 SN_CONDITIONS(SN_CONDITION_ONE), SN_CONDITION_TEXT = 24 };
extern const sn_condition sn_condition_table[SN_CONDITION_ROWS];

/* Where the value is, to be read or to be set. */
const void *sn_condition_of(const sn_condition *condition, const sn_conditions *conditions);
void *sn_condition_place(const sn_condition *condition, sn_conditions *conditions);

/* The value as text: a word itself, anything else printed into `room`. */
const char *sn_condition_text(const sn_condition *condition, const sn_conditions *conditions,
                              char room[SN_CONDITION_TEXT]);

/* Whether a word is that for one of the two values of a bool. */
bool sn_condition_word(const sn_condition *condition, bool value, const char *word);

/* Whether it is what it is unless asked for. */
bool sn_condition_is_usual(const sn_condition *condition, const sn_conditions *conditions);
bool sn_conditions_are_usual(const sn_conditions *conditions); /* all of them */

bool sn_conditions_same(const sn_conditions *a, const sn_conditions *b);

#endif
