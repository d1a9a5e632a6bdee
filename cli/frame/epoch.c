/* Epoch; see the header. */
#include "cli/frame/epoch.h"

#include "base/units.h"
#include "cli/options/table.h"

#include <inttypes.h>
#include <stdio.h>

enum { RANGE_TEXT = 3 * SN_UNIT_TEXT };

sn_epoch_taken sn_epoch_take(const sn_epoch *e, const char *card, sn_pace pace) {
  sn_epoch_taken t = {.an_hour = e->prices ? sn_prices_of(e->prices, card) : 0};
  if (pace.per_second > 0) t.seconds = (double)e->samples / pace.per_second;
  t.cost = t.seconds / 3600 * t.an_hour * (pace.gpus > 1 ? pace.gpus : 1);
  return t;
}

/* ---- in words ---- */

typedef struct unit {
  double seconds, from; /* how many it has; from how many on times are told in it */
  const char *name;
} unit;

static unit unit_of(double seconds) {
  static const unit units[] = {{86400, 2 * 86400, "days"}, {3600, 5400, "h"}, {60, 90, "min"}, {1, 0, "s"}};
  size_t i = 0;
  while (i + 1 < sizeof units / sizeof units[0] && seconds < units[i].from) i++;
  return units[i];
}

char *sn_epoch_time(double seconds, int digits, char *text) {
  char value[SN_UNIT_TEXT];
  const unit in = unit_of(seconds);
  snprintf(text, SN_UNIT_TEXT, "%.20s %s", sn_print_digits(seconds / in.seconds, digits, value), in.name);
  return text;
}

/* " (15 to 33)" around a value; nothing without a band. */
static char *range(double value, sn_pace pace, int digits, char text[RANGE_TEXT]) {
  char least[SN_UNIT_TEXT], most[SN_UNIT_TEXT];
  text[0] = '\0';
  if (pace.within > 0)
    snprintf(text, RANGE_TEXT, " (%s to %s)", sn_print_digits(value * (1 - pace.within), digits, least),
             sn_print_digits(value * (1 + pace.within), digits, most));
  return text;
}

/* What it costs, or that no price is known. */
static char *cost_of(const sn_epoch *e, sn_epoch_taken t, const char *card, sn_pace pace, int digits,
                     char text[SN_EPOCH_TEXT]) {
  char value[SN_UNIT_TEXT], around[RANGE_TEXT];
  text[0] = '\0';
  if (t.an_hour > 0)
    snprintf(text, SN_EPOCH_TEXT, ", %s %s%s", sn_print_digits(t.cost, digits, value), e->prices->currency,
             range(t.cost, pace, digits, around));
  else if (e->prices)
    snprintf(text, SN_EPOCH_TEXT, "; no price of %.60s in %.80s", card, e->file);
  return text;
}

char *sn_epoch_line(const sn_epoch *e, const char *card, sn_pace pace, const char *name, char text[SN_EPOCH_TEXT]) {
  const sn_epoch_taken t = sn_epoch_take(e, card, pace);
  const int digits = pace.calibrated ? 3 : 2;
  char time[SN_UNIT_TEXT], around[RANGE_TEXT], cost[SN_EPOCH_TEXT];
  text[0] = '\0';
  if (e->samples == 0) return text;
  int used = snprintf(text, SN_EPOCH_TEXT, "an epoch of %" PRIu64 " %s%s: ", e->samples, name,
                      pace.changed ? ", with the first change" : "");
  if (t.seconds > 0)
    snprintf(text + used, SN_EPOCH_TEXT - (size_t)used, "%s%s%s%s", sn_epoch_time(t.seconds, digits, time),
             range(t.seconds / unit_of(t.seconds).seconds, pace, digits, around),
             cost_of(e, t, card, pace, digits, cost),
             pace.within > 0 || pace.calibrated || pace.said ? "" : "; no measurement of this kind");
  else
    snprintf(text + used, SN_EPOCH_TEXT - (size_t)used, "no time, as nothing fits");
  return text;
}

void sn_epoch_print(const sn_epoch *e, const char *card, sn_pace pace, const char *name, FILE *out) {
  char text[SN_EPOCH_TEXT];
  if (e->samples > 0) sn_table_printf(out, "%s\n", sn_epoch_line(e, card, pace, name, text));
}

/* ---- as JSON ---- */

static void put_known(sn_json_object *o, const char *key, double value) {
  if (value > 0)
    sn_json_put_real(o, key, value);
  else
    sn_json_put_null(o, key);
}

void sn_epoch_put(sn_json_object *o, const sn_epoch *e, const char *card, sn_pace pace) {
  const sn_epoch_taken t = sn_epoch_take(e, card, pace);
  if (e->samples) put_known(o, "epoch_s", t.seconds);
  put_known(o, "time_within", pace.within);
  if (!e->prices) return;
  put_known(o, "price_per_hour", t.an_hour);
  put_known(o, "epoch_cost", t.cost);
}

sn_status sn_epoch_write(const sn_epoch *e, const char *card, sn_pace pace, FILE *out, sn_err *err) {
  if (e->samples == 0) return SN_OK;
  sn_json_object o = sn_json_begin();
  sn_json_put_count(&o, "samples", e->samples);
  if (e->prices) sn_json_put_text(&o, "currency", e->prices->currency);
  sn_epoch_put(&o, e, card, pace);
  return sn_json_end(&o, ",\"epoch\":", false, "", out, err);
}
