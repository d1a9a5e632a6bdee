/* Bands; see the header. */
#include "sim/capacity/bands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const sn_band bands[] = {
    {"live bytes", "any", 203, 0.0, 0.00644},
    {"training", "rtx3090", 20, 21.0, 35.5},
    {"inference", "rtx3090", 38, 24.5, 31.2},
    {"inference", "rtx4090", 38, 25.3, 32.3},
};

const sn_band *sn_bands(uint32_t *count) {
  *count = sizeof bands / sizeof bands[0];
  return bands;
}

static const sn_band *find(const char *kind, const char *card) {
  for (size_t i = 0; i < sizeof bands / sizeof bands[0]; i++)
    if (strcmp(bands[i].kind, kind) == 0 && strcmp(bands[i].card, card) == 0) return &bands[i];
  return NULL;
}

void sn_band_of_memory(char text[SN_BAND_TEXT]) {
  const sn_band *b = &bands[0];
  double share = b->nine_of_ten < 0.01 ? 0.01 : b->nine_of_ten; /* finer than anybody asks */
  snprintf(text, SN_BAND_TEXT, "tensors within %.2g %% of PyTorch's on 9 of 10 of %" PRIu32 " totals", share, b->rows);
}

void sn_band_of_recording(char text[SN_BAND_TEXT]) {
  snprintf(text, SN_BAND_TEXT, "tensors equal PyTorch's tracker to the byte in %d of %d recordings",
           SN_BAND_RECORDINGS_EQUAL, SN_BAND_RECORDINGS);
}

static const char measured[] = "times measured on this machine";

bool sn_band_is_measured(const char *time_band) {
  return strcmp(time_band, measured) == 0;
}

void sn_band_of_time(const char *card, bool inference, bool calibrated, char text[SN_BAND_TEXT]) {
  const sn_band *b = find(inference ? "inference" : "training", card);
  if (calibrated)
    snprintf(text, SN_BAND_TEXT, "%s", measured);
  else if (b)
    snprintf(text, SN_BAND_TEXT, "times within %.0f %% on 9 of 10 of %" PRIu32 " networks", b->nine_of_ten, b->rows);
  else
    snprintf(text, SN_BAND_TEXT, "times are a guess: nobody measured this card%s", inference ? "" : " training");
}
