/* Answer: yes or no for one runtime, the largest batch, and what to change, best first. Every command that is asked the
 * same question tells this answer: simulate, fit, advise, report and their JSON.
 *
 *   sn_answer *answer = sn_answer_find(&wish, &err);
 *   answer->verdict, answer->needed_bytes, answer->largest_batch, answer->changes[0].what
 *   sn_answer_free(answer);
 *
 * The verdict is of the training as it stands: of the strategies asked about the fastest that fits, or where none does
 * the one that needs the least. Where nobody names one that is PyTorch's loop without any change, or in another
 * runtime, which chooses for itself, any of its strategies. It is
 *
 *   yes     least_device_bytes of that strategy leaves 3 % of the usable memory or more
 *   tight   it fits and leaves less
 *   no      it does not fit
 *
 * Changes are of PyTorch, whose loop the user writes: parts of the batch that add up their gradients, checkpoints of
 * some or all blocks, saved tensors in host memory, autocast, an optimizer with 8-bit states, of several GPUs that each
 * have all parameters shards of them; several of them together
 * where none alone is enough; where all together are not, adapters of transformers' models (LoRA, QLoRA), and last a
 * smaller batch. Offered is what leaves 3 %, or where nothing does
 * what fits, ranked by images/s, then by memory. Where the answer is yes the first change is none, and those behind it,
 * at most SN_ANSWER_GAINS, say what else there is to gain. Other runtimes have one: the strategy that they choose.
 *
 * Networks of more than SN_ANSWER_LAYERS layers get a verdict alone: a plan of them takes seconds. Of a pipeline of as many
 * layers, each counted once a micro-batch, that fits, the largest batch is not looked for, nor what asks for other plans.
 */
#ifndef SN_SIM_CAPACITY_ANSWER_H
#define SN_SIM_CAPACITY_ANSWER_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/capacity/remedy.h"
#include "sim/policy/runtime.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_ANSWER_LAYERS = 20000, SN_ANSWER_CHANGES = 8, SN_ANSWER_GAINS = 3, SN_ANSWER_TIGHT_PERCENT = 3 };

typedef enum sn_verdict { SN_VERDICT_NO, SN_VERDICT_TIGHT, SN_VERDICT_YES, SN_VERDICTS } sn_verdict;

typedef enum sn_answer_change_kind {
  SN_CHANGE_NONE,
  SN_CHANGE_PARTS,           /* several batches an update, their gradients added */
  SN_CHANGE_CHECKPOINT,      /* all blocks */
  SN_CHANGE_CHECKPOINT_SOME, /* the first of them */
  SN_CHANGE_OFFLOAD,         /* what backward needs waits in host memory */
  SN_CHANGE_PRECISION,
  SN_CHANGE_OPTIMIZER,
  SN_CHANGE_SHARDS, /* of several GPUs, where each had all: fully_shard in place of DistributedDataParallel */
  SN_CHANGE_LORA,   /* adapters are trained and not the network (models/build/lora.h) */
  SN_CHANGE_BATCH,
  SN_CHANGES
} sn_answer_change_kind;

/* Texts are of the answer's arena. */
typedef struct sn_answer_change {
  sn_answer_change_kind kind;        /* where several go together the first of: lora, offload, checkpoints, precision,
                                        optimizer, shards, parts */
  const char *what;                  /* "2 batches of 256, gradients added" */
  const char *options;               /* that the command line lacks: "--batch 256 --accumulate 2" */
  const char *strategy;              /* that of the row: "pytorch+recompute=units:6" */
  const char *precision, *optimizer; /* with which it trains */
  uint32_t batch, accumulate;        /* images of a batch, batches of an update */
  uint64_t device_bytes;             /* sn_result.peak_device_bytes */
  uint64_t host_bytes;               /* 0: it needs none of the host's */
  int64_t iteration_ns;              /* of a whole update */
  double images_per_second;
  uint32_t n_calls;
  const char *const *calls; /* lines of Python that do it; for SN_CHANGE_NONE those that share it among GPUs */
} sn_answer_change;

/* A part of what memory holds at the fullest moment (sim/capacity/where.h). */
typedef struct sn_answer_group {
  const char *name;
  uint64_t bytes;
  const char *advice; /* "": nothing that is known */
} sn_answer_group;

typedef struct sn_answer {
  sn_runtime runtime; /* never the default */
  sn_verdict verdict;
  const char *strategy;   /* that the verdict is of */
  uint64_t needed_bytes;  /* the least memory with which it runs; 0: no device is enough, as the host has too little */
  uint64_t usable_bytes;  /* of the device, without what --margin keeps free */
  uint64_t context_bytes; /* of needed_bytes what driver and libraries take */
  uint32_t largest_batch; /* as it stands, of other runtimes by any strategy; 0: not even one image fits, or it was not
                             looked for */
  uint64_t largest_host_bytes; /* of the host's memory that the largest batch takes; it is not limited by it */
  bool fp32_loss; /* the network's loss has its input made float32, of which the precision is not (models/net/net.h) */
  bool eager_attention; /* one of transformers' networks keeps its scores: attn_implementation="eager" */
  bool searched;        /* the largest batch was looked for, and all changes */
  bool one_batch;       /* of a recording of this batch alone, of which there is no largest */
  uint32_t gpus;        /* that share an iteration; 0: read, for the reader to fill in from its run */
  uint32_t n_changes;
  const sn_answer_change *changes;
  const char *moment;     /* of the groups: "when backward begins"; "": there are none, the runtime is another */
  uint32_t step, n_steps; /* the same as a step, from 1, of so many */
  uint32_t n_groups;
  const sn_answer_group *groups; /* largest first, but for the rest */
  const char *note; /* lines: what a recording assumed, that a compiled model was recorded as it runs without, which
                       changes are not offered and why; "": nothing */
  const char *memory_band, *time_band; /* how far from what was measured (sim/capacity/bands.h); "" of other runtimes */
  double
      time_within; /* the share by which times of the first change were off, nine of ten; 0: nobody measured its kind */
  sn_arena *arena;
} sn_answer;

/* The strategies that a verdict is of where nobody names any, as sn_runtime_strategies(): PyTorch's is of one alone. */
uint32_t sn_answer_strategies(sn_runtime runtime, sn_iteration iteration, sn_strategy *strategies);

/* What is asked: at least one strategy, all of `runtime`. `host_bytes` is what the host has for what is sent out, where
 * the device's profile does not say; 0: not limited. */
typedef struct sn_answer_wish {
  sn_asked asked;
  sn_runtime runtime;
  uint64_t host_bytes;
} sn_answer_wish;

sn_answer *sn_answer_find(const sn_answer_wish *wish, sn_err *err);
void sn_answer_free(sn_answer *answer);

/* The verdict on a strategy that needs so many bytes (0: no memory is enough) of so many. */
sn_verdict sn_answer_verdict(uint64_t needed_bytes, uint64_t usable_bytes);

/* usable - needed: below 0 what is missing. */
int64_t sn_answer_margin(const sn_answer *answer);

/* "no", "tight", "yes"; "none", "parts", "checkpoint", .. */
const char *sn_verdict_name(sn_verdict verdict);
const char *sn_answer_change_name(sn_answer_change_kind kind);

/* As one line of JSON (docs/json.md, "answer"), from malloc(); NULL after SN_NO_MEMORY. Reading what it wrote gives the
 * same answer; SN_BAD_INPUT for anything else. */
char *sn_answer_write(const sn_answer *answer, sn_err *err);
sn_answer *sn_answer_read(const char *text, sn_err *err);

#endif
