/* Bands: how far what is said here was from what was measured elsewhere, as a line of the screen has it. The figures
 * are those of the last table of docs/truth.md, which bench/truth.py makes; tests/sim/capacity/test_bands.c holds both
 * together.
 */
#ifndef SN_SIM_CAPACITY_BANDS_H
#define SN_SIM_CAPACITY_BANDS_H

#include <stdbool.h>
#include <stdint.h>

/* A row of that table. */
typedef struct sn_band {
  const char *kind; /* "live bytes", "training", "inference" */
  const char *card; /* a profile's name; "any" */
  uint32_t rows;
  double median, nine_of_ten; /* percent */
} sn_band;

const sn_band *sn_bands(uint32_t *count);

enum { SN_BAND_TEXT = 100 };

/* Recordings whose peaks were compared with PyTorch's tracker (docs/measured/record.md), and how many are equal. */
enum { SN_BAND_RECORDINGS = 76, SN_BAND_RECORDINGS_EQUAL = 75 };
void sn_band_of_recording(char text[SN_BAND_TEXT]);

/* "tensors within 0.01 % of PyTorch's on 9 of 10 of 193 totals" */
void sn_band_of_memory(char text[SN_BAND_TEXT]);

/* "times within 36 % on 9 of 10 of 20 networks", or that nobody measured this card. */
void sn_band_of_time(const char *card, bool inference, bool calibrated, char text[SN_BAND_TEXT]);

/* Whether that line says that times were measured where they are told. */
bool sn_band_is_measured(const char *time_band);

#endif
