/* The size of images where a network is asked for: one number, as the length of sequences is.
 *
 *   sn_net_load("resnet50", 8, sn_image_size(800, 1333), &err);     sn_net_load("resnet50", 8, 224, &err);
 *
 * Of squares it is their side, and 0 is the network's own. Of others it holds both sides, and is more than any side or
 * length may be (SN_MAX_DIM). */
#ifndef SN_MODELS_NET_IMAGE_H
#define SN_MODELS_NET_IMAGE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SN_IMAGE_OBLONG (UINT32_C(1) << 31)

/* The longest side of images that are not square. */
enum { SN_IMAGE_SIDE = 32767, SN_IMAGE_BITS = 15 };

static inline uint32_t sn_image_size(uint32_t height, uint32_t width) {
  return height == width ? height : SN_IMAGE_OBLONG | height << SN_IMAGE_BITS | width;
}

static inline bool sn_image_is_oblong(uint32_t image) {
  return image >= SN_IMAGE_OBLONG;
}

static inline uint32_t sn_image_height(uint32_t image) {
  return sn_image_is_oblong(image) ? image >> SN_IMAGE_BITS & SN_IMAGE_SIDE : image;
}

static inline uint32_t sn_image_width(uint32_t image) {
  return sn_image_is_oblong(image) ? image & SN_IMAGE_SIDE : image;
}

enum { SN_IMAGE_TEXT = 24 };

/* "224", "800x1333" */
static inline const char *sn_image_text(uint32_t image, char text[SN_IMAGE_TEXT]) {
  if (sn_image_is_oblong(image))
    snprintf(text, SN_IMAGE_TEXT, "%" PRIu32 "x%" PRIu32, sn_image_height(image), sn_image_width(image));
  else
    snprintf(text, SN_IMAGE_TEXT, "%" PRIu32, image);
  return text;
}

#endif
