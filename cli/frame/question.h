/* What the user asked, loaded: network, device with its overrides, strategies and switches. The same question with
 * another batch or other strategies is how advice is found (cli/capacity/advice.c). */
#ifndef SN_CLI_FRAME_QUESTION_H
#define SN_CLI_FRAME_QUESTION_H

#include "base/err.h"
#include "cli/frame/epoch.h"
#include "cli/options/options.h"
#include "models/net/net.h"
#include "sim/ask/run.h"
#include "sim/ask/simulate.h"
#include "sim/device/calibration.h"
#include "sim/device/external.h"

typedef struct sn_question {
  const sn_args *args;
  sn_device device;            /* memory_bytes without the margin */
  uint64_t margin_bytes;       /* --margin: usable memory that is not planned with */
  sn_calibration *calibration; /* what was measured of it, or NULL; options.calibration is the same */
  sn_epoch epoch;              /* what is to be told of one; its prices are the question's */
  sn_net *net;
  sn_cluster cluster; /* of several GPUs: where they are */
  bool assumed;       /* no cluster of such GPUs is known */
  sn_options options;
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  uint32_t n_strategies;
  uint32_t plans; /* made so far, for the line of progress */
  bool shown;     /* there was one */
} sn_question;

/* Loads all but the network, which is NULL: for commands that try many. On an error nothing needs freeing. The question
 * must stay where it is: its options' watcher is itself, which shows on a terminal how many plans were made. Whoever
 * asks takes the line away (sn_out_progress()). */
sn_status sn_question_open(const sn_args *args, sn_question *question, sn_err *err);

/* --memory, --context, --host-memory and --margin in place of what the device has; *margin_bytes are taken off its
 * memory. SN_BAD_USAGE where the margin leaves nothing. */
sn_status sn_question_adapt(const sn_args *args, sn_device *device, uint64_t *margin_bytes, sn_err *err);

/* SN_BAD_USAGE where --budget, --sharing or --interval is given and no strategy is named that runs operations side by
 * side. */
sn_status sn_question_check_corun(const sn_args *args, sn_err *err);

/* Whether any of its strategies is of PyTorch's graph. */
bool sn_question_asks_pytorch(const sn_question *question);

/* What is asked is trained as only PyTorch's strategies have it: autocast, frozen layers, adapters. */
bool sn_question_is_of_pytorch(const sn_args *args);
/* SN_BAD_USAGE where --freeze or adapters cannot be combined with --inference or with a strategy that is named. */
sn_status sn_question_check_freeze(const sn_args *args, sn_err *err);

/* How several GPUs share an iteration is what is looked for: fit --min gpus, advise --gpus. Its question is of one GPU,
 * and options.cluster is where the others are. */
bool sn_question_seeks_mesh(const sn_args *args);

/* Adds a strategy that nobody has named, if it can be asked for what the iteration is for. */
void sn_question_add(sn_question *question, sn_strategy strategy);

/* All that can be said of the command line without the network, before minutes of recording one: what goes together, the
 * GPU, the strategies. Complete: with all that a question about one batch needs. */
sn_status sn_question_check(const sn_args *args, sn_err *err);
sn_status sn_question_check_complete(const sn_args *args, sn_err *err);

/* Checks that the command line is complete and loads what it names. On an error nothing needs freeing. */
sn_status sn_question_load(const sn_args *args, sn_question *question, sn_err *err);
/* Where no --precision is given and PyTorch is asked about: that of PyTorch as it starts, for this network (NULL: for
 * some). sn_question_load() does it. */
void sn_question_settle_precision(sn_question *question, const sn_net *net);
/* Of a recording with several backward passes nothing runs again or leaves ahead of need: of strategies that differ in
 * that alone, and that nobody has named, the first stays. sn_question_load() does it. */
void sn_question_drop_alike(sn_question *question, const sn_net *net);
/* The network that --net, --batch and --image name. Says where another image size makes another network: an FC that
 * sees the whole image has parameters for every pixel. */
sn_net *sn_question_net(const sn_args *args, sn_err *err);

void sn_question_free(sn_question *question);

/* Where nothing fits: records SN_NO_FIT with what is needed, what there is and what would fit (sim/capacity/remedy.h).
 * `results` are those of the strategies, or NULL. */
sn_status sn_question_advise(const sn_question *question, const sn_result *const *results, sn_err *err);

/* The largest smaller batch with which the strategy fits; 0 where not even one image does. */
sn_status sn_question_largest_batch(const sn_question *question, sn_strategy strategy, uint32_t *batch, sn_err *err);

#endif
