/* Epoch: what --samples and --price ask: how long an epoch takes on a card, and what that costs. It has the band of the
 * time that it is made of: cost is time by price. */
#ifndef SN_CLI_FRAME_EPOCH_H
#define SN_CLI_FRAME_EPOCH_H

#include "base/err.h"
#include "cli/frame/json.h"
#include "sim/capacity/prices.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct sn_epoch {
  uint64_t samples; /* 0: nothing is asked */
  const char *file; /* of the prices, as it was named; NULL: they were not asked about */
  sn_prices *prices;
} sn_epoch;

/* How fast a card trains, or several. */
typedef struct sn_pace {
  double per_second; /* samples, of all GPUs; 0: nothing fits */
  uint32_t gpus;     /* which are paid; 0 is one */
  double within;     /* nine of ten times lie from (1 - within) to (1 + within) of what is said; 0: not measured */
  bool calibrated;   /* snsim calibrate measured this machine */
  bool said;         /* its band stands beside what is said of the epoch */
  bool changed;      /* of a loop with what the answer changes */
} sn_pace;

typedef struct sn_epoch_taken {
  double seconds;       /* 0: nothing fits */
  double an_hour, cost; /* 0: no price is known */
} sn_epoch_taken;

sn_epoch_taken sn_epoch_take(const sn_epoch *epoch, const char *card, sn_pace pace);

/* "24 min" of 1,441 seconds: so many digits that count. Returns text, of SN_UNIT_TEXT. */
char *sn_epoch_time(double seconds, int digits, char *text);

/* "an epoch of 1281167 images, with the first change: 24 min (15 to 33), 0.18 USD (0.11 to 0.24)"; `unit` is what a batch is made
 * of. "" where no epoch is asked about. Returns text. */
enum { SN_EPOCH_TEXT = 400 };
char *sn_epoch_line(const sn_epoch *epoch, const char *card, sn_pace pace, const char *unit, char text[SN_EPOCH_TEXT]);

/* The same as a line of its own. */
void sn_epoch_print(const sn_epoch *epoch, const char *card, sn_pace pace, const char *unit, FILE *out);

/* As members of an object: time_within, where an epoch is asked about epoch_s, and where prices are price_per_hour and
 * epoch_cost; null what is not known. */
void sn_epoch_put(sn_json_object *object, const sn_epoch *epoch, const char *card, sn_pace pace);

/* The same, with samples and currency, as a further member of an object that is being written, ",\"epoch\":{..}"; nothing
 * where no epoch is asked about. */
sn_status sn_epoch_write(const sn_epoch *epoch, const char *card, sn_pace pace, FILE *out, sn_err *err);

#endif
