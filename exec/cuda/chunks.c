/* Chunks: how many images one has. No product here can overflow, since models/net/net.h keeps all tensors of a net together
 * below 2^52 bytes. */
#include "exec/cuda/chunks.h"

#include "base/checked.h"
#include "exec/cuda/cuda.h"
#include "exec/kernel/kernel_internal.h"

/* As cudaMalloc aligns, and the least that cuDNN is given anywhere: 256 and 16 bytes. Powers of two. */
enum { BEST_FLOATS = 64, LEAST_FLOATS = 4 };

sn_status sn__describe(cudnnTensorDescriptor_t *tensor, sn_shape s, sn_err *err) {
  if (CUDNN(cudnnCreateTensorDescriptor(tensor)) != SN_OK) return err->code;
  return CUDNN(
      cudnnSetTensor4dDescriptor(*tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, (int)s.n, (int)s.c, (int)s.h, (int)s.w));
}

/* After so many images, and their multiples, both tensors are a multiple of `floats` on. */
static uint64_t aligned_step(const sn__cut *cut, uint64_t floats) {
  uint64_t images = 1;
  while (images < floats && ((images * cut->x_image) % floats > 0 || (images * cut->y_image) % floats > 0)) images *= 2;
  return images;
}

/* As few chunks as can be, of about as many images each: a last one of few would be slow for its size. 0: not even the
 * fewest images that begin at aligned addresses are few enough. */
static uint32_t chunk_images(const sn__cut *cut, uint32_t images, uint64_t most) {
  const uint64_t fit = most / sn_max(cut->x_image, cut->y_image);
  if (images <= fit) return images;
  uint64_t floats = BEST_FLOATS;
  while (floats > LEAST_FLOATS && aligned_step(cut, floats) > fit) floats /= 2;
  const uint64_t step = aligned_step(cut, floats), largest = fit - fit % step;
  if (largest == 0) return 0;
  const uint64_t chunks = sn_ceil_div(images, largest);
  return (uint32_t)(sn_ceil_div(sn_ceil_div(images, chunks), step) * step);
}

static sn_status fail_large(const sn__cut *cut, uint64_t most, sn_err *err) {
  const uint64_t images = aligned_step(cut, LEAST_FLOATS);
  return sn_fail(
      err, SN_BAD_DEVICE,
      "its images are too large for cuDNN: %llu, the fewest that it can be given at once, have %llu elements, "
      "and it counts up to %llu; use smaller images, or --backend cpu",
      (unsigned long long)images, (unsigned long long)(images * sn_max(cut->x_image, cut->y_image)),
      (unsigned long long)most);
}

static sn_shape some_of(sn_shape s, uint32_t images) {
  s.n = images;
  return s;
}

sn_status sn__cut_open(sn__cut *cut, sn_shape x, sn_shape y, uint64_t most, sn_err *err) {
  cut->x_image = sn__image(x);
  cut->y_image = sn__image(y);
  cut->images = chunk_images(cut, y.n, most);
  if (cut->images == 0) return fail_large(cut, most, err);
  cut->chunks = (uint32_t)sn_ceil_div(y.n, cut->images);
  cut->last = y.n - (cut->chunks - 1) * cut->images;
  const uint32_t sizes[2] = {cut->images, cut->last};
  for (int i = 0; i < (cut->last < cut->images ? 2 : 1); i++)
    if (sn__describe(&cut->x[i], some_of(x, sizes[i]), err) != SN_OK ||
        sn__describe(&cut->y[i], some_of(y, sizes[i]), err) != SN_OK)
      return err->code;
  return SN_OK;
}

void sn__cut_close(const sn__cut *cut) {
  for (int i = 0; i < 2; i++) {
    if (cut->x[i]) cudnnDestroyTensorDescriptor(cut->x[i]);
    if (cut->y[i]) cudnnDestroyTensorDescriptor(cut->y[i]);
  }
}

sn__chunk sn__chunk_of(const sn__cut *cut, uint32_t index) {
  const uint32_t first = index * cut->images, images = index + 1 < cut->chunks ? cut->images : cut->last;
  const int size = images < cut->images;
  return (sn__chunk){.first = first,
                     .images = images,
                     .x_at = first * cut->x_image,
                     .y_at = first * cut->y_image,
                     .y_count = images * cut->y_image,
                     .x = cut->x[size],
                     .y = cut->y[size]};
}

sn_status sn__in_chunks(const sn__cuda *m, const sn_call *call, const sn__cut *cut, sn__chunk_kernel run, sn_err *err) {
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < cut->chunks && status == SN_OK; i++) {
    const sn__chunk at = sn__chunk_of(cut, i);
    status = run(m, call, &at, err);
  }
  return status;
}
