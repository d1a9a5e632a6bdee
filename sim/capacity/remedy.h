/* Remedy: what to try where nothing of what was asked fits, found by simulation: nothing here is estimated.
 *
 *   sn_remedy remedy;
 *   char text[SN_REMEDY_TEXT];
 *   sn_remedy_find(&asked, &remedy, &err);
 *   puts(sn_remedy_print(&remedy, text));     "5.49 GiB needed with liveness, 4.00 GiB on k40c, at conv1 forward; try
 *                                              --strategy liveness+cache or --batch 32"
 *
 * Whoever asks about PyTorch's strategies alone has PyTorch: what is tried are others of its own, and parts of the
 * batch that add up their gradients. SuperNeurons' would be no help, and do not train adapters or frozen layers.
 *
 * Messages on the command line and the page of `snsim report` both say it with this text.
 */
#ifndef SN_SIM_CAPACITY_REMEDY_H
#define SN_SIM_CAPACITY_REMEDY_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/ask/run.h"
#include "sim/device/device.h"
#include "sim/device/external.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN_REMEDY_LAYER = 120, SN_REMEDY_TEXT = 500 };

/* A question with at least one strategy; options->want_.. are not looked at. */
typedef struct sn_asked {
  const char *spec; /* of the net, for other batches of it */
  uint32_t image;   /* 0: the network's own */
  const sn_net *net;
  const sn_device *device;
  const sn_options *options;
  const sn_strategy *strategies;
  const sn_result *const *results; /* of each, where it was simulated; else NULL */
  uint32_t n_strategies;
} sn_asked;

/* What there is too little of: of the device's memory; of the pool, where only its given size stands in the way; of the
 * host's, where no device is enough. */
typedef enum sn_scarce { SN_SCARCE_DEVICE, SN_SCARCE_POOL, SN_SCARCE_HOST } sn_scarce;

typedef struct sn_remedy {
  sn_strategy leanest; /* of those asked for: it needs the least, the fastest of equals */
  sn_scarce scarce;
  uint64_t needed_bytes, usable_bytes; /* of it */
  char device[SN_DEVICE_NAME];
  char layer[SN_REMEDY_LAYER]; /* where a block less is too little */
  const char *pass;
  bool searched; /* what follows was looked for; in very large networks it is not */
  bool has_strategy;
  sn_strategy strategy;  /* the fastest default strategy, or PyTorch's, that fits and was not asked for */
  uint32_t batch;        /* the largest with which the leanest fits; 0: not even one image does */
  bool of_pytorch;       /* nothing but PyTorch's strategies was asked for */
  bool points_to_advise; /* and `snsim advise --for pytorch` is named: clear it where that is what was asked */
  uint32_t part, parts;  /* of PyTorch's: the fastest that fits of an update from so many batches; 0: none was found */
} sn_remedy;

/* What could be asked for instead, into `others` of SN_STRATEGY_DEFAULTS; returns how many. SuperNeurons' combinations,
 * or what the asked version of PyTorch offers where all strategies are PyTorch's. */
uint32_t sn_remedy_others(const sn_strategy *asked, uint32_t count, sn_iteration iteration, sn_strategy *others);

sn_status sn_remedy_find(const sn_asked *asked, sn_remedy *remedy, sn_err *err);

/* The largest smaller batch with which a strategy fits; 0: not even one image does, or the network is too
 * large to look. */
sn_status sn_remedy_batch(const sn_asked *asked, sn_strategy strategy, uint32_t *batch, sn_err *err);

/* Into `text` of SN_REMEDY_TEXT bytes; returns it. */
char *sn_remedy_print(const sn_remedy *remedy, char *text);

#endif
