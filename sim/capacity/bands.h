/* Bands: how far what is said here was from what was measured elsewhere, as a line of the screen has it. The figures
 * are those of the last table of docs/truth.md, which bench/truth.py and bench/times.py make; tests/sim/capacity/test_bands.c
 * holds both together.
 *
 *   sn_timed timed = {.card = "rtx3090", .strategy = s, .precision = SN_AMP_FP16};
 *   const sn_band *band = sn_band_find(&timed);        NULL: no measurement of this kind
 *   band: times lie from (1 - share) to (1 + share) of what is said, share = sn_band_share(band), on nine of ten networks
 */
#ifndef SN_SIM_CAPACITY_BANDS_H
#define SN_SIM_CAPACITY_BANDS_H

#include "models/net/net.h"
#include "sim/device/device.h"
#include "sim/policy/options.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row of that table. */
typedef struct sn_band {
  const char *kind; /* "live bytes", "training", "inference", "training, recorded", "inference, recorded" */
  const char *card; /* a profile's name; "any"; "another": one that no row was measured on */
  uint32_t rows;
  double median, nine_of_ten; /* percent of what was measured: ours / theirs - 1, of speeds */
} sn_band;

const sn_band *sn_bands(uint32_t *count);

/* What of a band is a time's, 0.316, of as many digits as were measured: speeds that are so much too high are times that
 * are so much too low; 0 of none. */
double sn_band_share(const sn_band *band);

/* Whether it is of a card that no row was measured on: of one whose rows no constant was fitted to. */
bool sn_band_is_of_another(const sn_band *band);

enum { SN_BAND_TEXT = 120, SN_BANDS_TEXT = 800 };

/* Recordings whose peaks were compared with PyTorch's tracker (docs/measured/record.md), and how many are equal. */
enum { SN_BAND_RECORDINGS = 145, SN_BAND_RECORDINGS_EQUAL = 144 };
/* Of recordings that several GPUs share (docs/measured/parallel.md, "Recordings") all are equal. */
enum { SN_BAND_SHARED_RECORDINGS = 99 };

/* Questions about one of several GPUs whose totals were compared with PyTorch's trackers on process groups that talk to
 * nobody (docs/measured/parallel.md), how many are nearer than so many percent, and the worst, in percent. */
enum { SN_BAND_SHARED = 99, SN_BAND_SHARED_NEAR = 94 };
#define SN_BAND_SHARED_WITHIN 0.01
#define SN_BAND_SHARED_WORST  0.017

/* The band of bytes: "tensors within 0.01 % of PyTorch's on 9 of 10 of 203 totals"; of recordings, and of several GPUs, how
 * many were equal or near. DeepSpeed's buffers are not in what zero takes. `several`: GPUs are asked about, of which the
 * mesh may be yet to be found. */
void sn_band_of_memory(const sn_net *net, const sn_mesh *mesh, bool several, char text[SN_BAND_TEXT]);

/* What is timed. */
typedef struct sn_timed {
  const char *card; /* a profile's name; NULL: any card's, of which the widest band counts */
  bool modelled;    /* with tensor cores whose share of the peak has a figure (sn_device.tensor_feed) */
  sn_strategy strategy;
  sn_precision precision;
  bool inference;
  bool recorded;   /* its network is a recording */
  bool tokens;     /* its network reads them; not known of a recording */
  bool calibrated; /* snsim calibrate measured this machine */
  bool several;    /* GPUs share it */
} sn_timed;

/* A question's; a recording says itself whether it was made under autocast and has a backward pass. O(operations) of a
 * recording. */
sn_timed sn_timed_of(const sn_net *net, const sn_device *device, const sn_options *options, sn_strategy strategy);

/* Of a card by its name, as stored runs have it. */
void sn_timed_set_card(sn_timed *timed, const char *name);

/* The band of its times. The rows are of image networks in PyTorch's autocast, nothing sent to the host; blocks that run
 * again under checkpoints run the same kernels, so they count. Of a card without rows it is what was measured of a card
 * left out. NULL: no measurement of this kind, or calibrated. */
const sn_band *sn_band_find(const sn_timed *timed);

/* "times within 32 % on 9 of 10 of 20 networks", "times: no measurement of training on this card (a card left out: within 23 %)", "times: no measurement of this kind, training on this card", or that they were measured here. Of several rows that differ each with how many they are, parted by "; "; of
 * more than six kinds six. */
void sn_band_of_time(const sn_timed *timed, char text[SN_BAND_TEXT]);
char *sn_band_of_times(const sn_timed *rows, uint32_t count, char text[SN_BANDS_TEXT]);

/* One of several, by a value of which less is better: a time, or what it costs. */
typedef struct sn_ranked {
  double value, within; /* nine of ten lie from value (1 - within) to value (1 + within) */
  uint32_t first, last; /* its place among all, from 1; where it is not known which of them, the range */
} sn_ranked;

/* Ranks what stands in the order of its values: the best, and those behind it whose bands overlap with its own, are alike
 * and have one range of places; so have the next, .. O(count). */
void sn_band_rank(sn_ranked *rows, uint32_t count);

/* Whether that line says that times were measured where they are told. */
bool sn_band_is_measured(const char *time_band);

#endif
