/* Bands; see the header. */
#include "sim/capacity/bands.h"

#include "models/record/record_net.h"
#include "sim/policy/runtime.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char another[] = "another";

static const sn_band bands[] = {
    {"live bytes", "any", 203, 0.0, 0.00011},
    {"training", "rtx3090", 20, 4.4, 10.5},
    {"inference", "rtx3090", 38, 7.4, 15.9},
    {"inference", "rtx4090", 38, 7.2, 21.3},
    {"training, recorded", "rtx3090", 263, 4.3, 14.7},
    {"inference, recorded", "rtx3090", 389, 5.7, 21.1},
    {"inference, recorded", "rtx4090", 389, 6.3, 18.6},
    {"training", another, 38, 10.1, 23.1},
    {"inference", another, 38, 10.1, 23.1},
    {"training, recorded", another, 389, 7.0, 22.9},
    {"inference, recorded", another, 389, 7.0, 22.9},
};

enum { BANDS = sizeof bands / sizeof bands[0] };

const sn_band *sn_bands(uint32_t *count) {
  *count = BANDS;
  return bands;
}

double sn_band_share(const sn_band *band) {
  return band ? round(10 * band->nine_of_ten) / 1000 : 0; /* the table has a digit behind the point */
}

bool sn_band_is_of_another(const sn_band *band) {
  return strcmp(band->card, another) == 0;
}

static void print_totals(char text[SN_BAND_TEXT]) {
  const sn_band *b = &bands[0];
  double share = b->nine_of_ten < 0.01 ? 0.01 : b->nine_of_ten; /* finer than anybody asks */
  snprintf(text, SN_BAND_TEXT, "tensors within %.2g %% of PyTorch's on 9 of 10 of %" PRIu32 " totals", share, b->rows);
}

static void print_shared(char text[SN_BAND_TEXT]) {
  snprintf(text, SN_BAND_TEXT,
           "tensors within %.2g %% of PyTorch's in %d of %d questions of several GPUs, worst %.2g %%",
           SN_BAND_SHARED_WITHIN, SN_BAND_SHARED_NEAR, SN_BAND_SHARED, SN_BAND_SHARED_WORST);
}

static void print_recordings(bool shared, char text[SN_BAND_TEXT]) {
  if (shared)
    snprintf(text, SN_BAND_TEXT, "tensors equal PyTorch's trackers to the byte in %d of %d recordings on several GPUs",
             SN_BAND_SHARED_RECORDINGS, SN_BAND_SHARED_RECORDINGS);
  else
    snprintf(text, SN_BAND_TEXT, "tensors equal PyTorch's tracker to the byte in %d of %d recordings",
             SN_BAND_RECORDINGS_EQUAL, SN_BAND_RECORDINGS);
}

void sn_band_of_memory(const sn_net *net, const sn_mesh *mesh, bool several, char text[SN_BAND_TEXT]) {
  if (mesh->zero > 0)
    snprintf(text, SN_BAND_TEXT,
             "states as ZeRO's paper has them; DeepSpeed's buffers, 5e8 elements each unless configured, come on top");
  else if (net->recorded)
    print_recordings(several, text);
  else if (several)
    print_shared(text);
  else
    print_totals(text);
}

/* ---- times ---- */

/* What was run: both two-byte types count as autocast to fp16, the measured one. */
static void take_recorded(sn_timed *t, const sn_record *record) {
  t->recorded = true;
  t->precision = SN_FP32;
  t->inference = true;
  for (uint32_t i = 0; i < record->n_ops; i++) {
    if (record->ops[i].narrow) t->precision = SN_AMP_FP16;
    if (record->ops[i].phase == SN_RECORD_BACKWARD) t->inference = false;
  }
}

sn_timed sn_timed_of(const sn_net *net, const sn_device *device, const sn_options *options, sn_strategy strategy) {
  sn_timed t = {.card = device->name,
                .modelled = device->tensor_feed > 0,
                .strategy = strategy,
                .precision = options->iteration.precision,
                .inference = options->iteration.inference,
                .tokens = net->values[0].dtype == SN_I64,
                .calibrated = options->calibration != NULL,
                .several = !sn_mesh_is_one(&options->iteration.mesh)};
  if (net->recorded) take_recorded(&t, net->recorded->record);
  return t;
}

void sn_timed_set_card(sn_timed *timed, const char *name) {
  sn_device device;
  sn_err unknown = SN_ERR_INIT; /* a card of the user's own */
  timed->card = name;
  timed->modelled = sn_device_load(name, &device, &unknown) == SN_OK && device.tensor_feed > 0;
}

/* The row of a kind and card; NULL: there is none. */
static const sn_band *row_of(const sn_timed *t, const char *card) {
  static const char *const kinds[2][2] = {{"training", "training, recorded"}, {"inference", "inference, recorded"}};
  const sn_band *widest = NULL;
  for (size_t i = 0; i < BANDS; i++) {
    if (strcmp(bands[i].kind, kinds[t->inference][t->recorded]) != 0) continue;
    if (card && strcmp(bands[i].card, card) == 0) return &bands[i];
    if (!card && (!widest || bands[i].nine_of_ten > widest->nine_of_ten)) widest = &bands[i];
  }
  return widest;
}

/* Of any card the widest, of one without a row that of a card left out. */
static const sn_band *find(const sn_timed *t) {
  const sn_band *own = row_of(t, t->card);
  return own || !t->modelled ? own : row_of(t, another);
}

/* What no card's rows have; NULL: they have it. */
static const char *unlike_rows(const sn_timed *t, char text[SN_BAND_TEXT]) {
  if (t->tokens) return "of networks of tokens";
  if (sn_precision_is_amp(t->precision))
    return t->strategy.offload == SN_OFFLOAD_NONE ? NULL : "with copies to the host";
  snprintf(text, SN_BAND_TEXT, "in %s", sn_precision_name(t->precision));
  return text;
}

/* What of it nobody measured; NULL: it was. */
static const char *unmeasured(const sn_timed *t, char text[SN_BAND_TEXT]) {
  if (!sn_dialect_of(t->strategy.dialect)->eager) {
    snprintf(text, SN_BAND_TEXT, "in the runtime of %s", sn_runtime_title(sn_runtime_of(t->strategy)));
    return text;
  }
  if (t->several) return "of several GPUs";
  const sn_band *band = find(t);
  const char *why = unlike_rows(t, text);
  if (!band || (why && sn_band_is_of_another(band)))
    return t->inference ? "inference on this card" : "training on this card";
  return why;
}

/* Nobody measures several GPUs here. */
static bool is_calibrated(const sn_timed *t) {
  return t->calibrated && !t->several;
}

const sn_band *sn_band_find(const sn_timed *t) {
  char text[SN_BAND_TEXT];
  return is_calibrated(t) || unmeasured(t, text) ? NULL : find(t);
}

static const char measured[] = "times measured on this machine";

bool sn_band_is_measured(const char *time_band) {
  return strcmp(time_band, measured) == 0;
}

void sn_band_of_time(const sn_timed *t, char text[SN_BAND_TEXT]) {
  char reason[SN_BAND_TEXT];
  const sn_band *b = sn_band_find(t);
  if (is_calibrated(t))
    snprintf(text, SN_BAND_TEXT, "%s", measured);
  else if (b && sn_band_is_of_another(b))
    snprintf(text, SN_BAND_TEXT, "times: no measurement of %s on this card (a card left out: within %.0f %%)",
             t->inference ? "inference" : "training", b->nine_of_ten);
  else if (b)
    snprintf(text, SN_BAND_TEXT, "times within %.0f %% on 9 of 10 of %" PRIu32 " networks", b->nine_of_ten, b->rows);
  else
    snprintf(text, SN_BAND_TEXT, "times: no measurement of this kind, %.50s", unmeasured(t, reason));
}

enum { KINDS = 6 }; /* that are told apart */

/* How many rows have each line; returns how many lines there are, of which those from KINDS on are not kept. */
static uint32_t sort(const sn_timed *rows, uint32_t count, char lines[KINDS][SN_BAND_TEXT], uint32_t has[KINDS]) {
  uint32_t kinds = 0;
  for (uint32_t i = 0; i < count; i++) {
    char line[SN_BAND_TEXT];
    uint32_t k = 0;
    sn_band_of_time(&rows[i], line);
    while (k < kinds && k < KINDS && strcmp(lines[k], line) != 0) k++;
    if (k < KINDS && k == kinds) {
      memcpy(lines[k], line, SN_BAND_TEXT);
      has[k] = 0;
    }
    if (k < KINDS) has[k]++;
    if (k == kinds) kinds++;
  }
  return kinds;
}

char *sn_band_of_times(const sn_timed *rows, uint32_t count, char text[SN_BANDS_TEXT]) {
  char lines[KINDS][SN_BAND_TEXT];
  uint32_t has[KINDS], kinds = sort(rows, count, lines, has);
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t k = 0; k < kinds && k < KINDS && used < SN_BANDS_TEXT; k++) {
    const char *parted = k ? "; " : "";
    if (kinds == 1)
      used += (size_t)snprintf(text, SN_BANDS_TEXT, "%s", lines[k]);
    else
      used += (size_t)snprintf(text + used, SN_BANDS_TEXT - used, "%s%s (%" PRIu32 " of %" PRIu32 " rows)", parted,
                               lines[k], has[k], count);
  }
  return text;
}

/* ---- ranks ---- */

static bool overlap(const sn_ranked *better, const sn_ranked *worse) {
  return worse->value * (1 - worse->within) <= better->value * (1 + better->within);
}

void sn_band_rank(sn_ranked *rows, uint32_t count) {
  for (uint32_t best = 0, end; best < count; best = end) {
    for (end = best + 1; end < count && overlap(&rows[best], &rows[end]);) end++;
    for (uint32_t i = best; i < end; i++) {
      rows[i].first = best + 1;
      rows[i].last = end;
    }
  }
}
