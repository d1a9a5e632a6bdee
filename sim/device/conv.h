/* Convolution algorithms: what workspace each needs and how long it takes ([SN] 3.5).
 *
 * The formulas model cuDNN's algorithm families for float32 NCHW; they are not measurements. docs/cost-model.md derives
 * each and lists the constants, all of which stand at the top of sim/device/conv.c.
 */
#ifndef SN_SIM_DEVICE_CONV_H
#define SN_SIM_DEVICE_CONV_H

#include "models/net/net.h"
#include "sim/device/external.h"

#include <stdbool.h>
#include <stdint.h>

/* No op and no iteration may take longer, so that times stay far from the end of the clock. */
#define SN_MAX_OP_SECONDS 1e6

typedef enum sn_conv_algo {
  SN_IMPLICIT_GEMM,     /* no workspace */
  SN_PRECOMPUTED_GEMM,  /* implicit with precomputed indices */
  SN_GEMM,              /* explicit im2col, one image at a time */
  SN_FFT,               /* whole image, stride 1 */
  SN_FFT_TILING,        /* 32 x 32 tiles, stride 1 */
  SN_WINOGRAD,          /* F(2x2, 3x3) fused, stride 1 */
  SN_WINOGRAD_NONFUSED, /* F(4x4, 3x3), stride 1 */
  SN_CONV_ALGOS
} sn_conv_algo;

typedef enum sn_conv_kernel {
  SN_CONV_FORWARD,
  SN_CONV_BACKWARD_DATA,
  SN_CONV_BACKWARD_FILTER,
  SN_CONV_KERNELS
} sn_conv_kernel;

typedef struct sn_conv_choice {
  uint64_t workspace; /* bytes */
  int64_t ns;
  sn_conv_algo algo;
  bool measured; /* the time; else it is the formulas' */
} sn_conv_choice;

/* Whether groups have so few input channels that no product of matrices is made of them, as in a depthwise convolution:
 * kernels of their own, without tiles and without tensor cores, which memory bounds unless their windows are wide. */
bool sn_conv_is_direct(uint32_t channels, uint32_t groups);

/* Fills `choices` with the algorithms that can run the layer, CONV or DECONV, fastest first, each needing less
 * workspace than the one before; the last needs none. Returns how many (1 .. SN_CONV_ALGOS). */
uint32_t sn_conv_choices(const sn_layer *layer, sn_shape input, sn_conv_kernel kernel, const sn_device *device,
                         const sn_arithmetic *how, sn_conv_choice *choices);

/* Sorts algorithms, fastest first, and leaves out each that needs no less workspace than a faster one. Returns how many
 * are left, at least one of `count`. */
uint32_t sn_conv_sort(sn_conv_choice *choices, uint32_t count);

/* Tiles of 64 by 64 that a product of two bytes an element on tensor cores loses in its last wave, on the average. */
double sn_last_wave_tiles(const sn_device *device);

/* "implicit_gemm", "fft", ... */
const char *sn_conv_algo_name(sn_conv_algo algo);

/* Whether a convolution beside a LAYER_NORM, which wants an image's channels side by side, so lies in PyTorch: what its
 * module turns for the norm is no copy, and nothing behind it turns back. */
bool sn_conv_lies_last(const sn_net *net, const sn_layer *layer);

#endif
