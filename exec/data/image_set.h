/* Labelled image sets in files: snsim's own form, MNIST's IDX and NumPy's .npy (docs/data.md describes them). Labels
 * are read at opening and kept; images stay in the file, which may be larger than memory. Internal to exec/.
 *
 *   sn__image_set set;
 *   if (sn__image_set_open("digits-images.idx", &set, &err) == SN_OK) sn__image_set_read(&set, 17, bytes, &err);
 *   sn__image_set_close(&set);
 */
#ifndef SN_EXEC_DATA_IMAGE_SET_H
#define SN_EXEC_DATA_IMAGE_SET_H

#include "base/err.h"
#include "exec/data/data_file.h"

#include <stdint.h>

typedef enum sn__pixel { SN__PIXEL_U8 = 1, SN__PIXEL_F32 = 2 } sn__pixel; /* the numbers are the form's */

typedef struct sn__image_set {
  sn__data_file file;
  sn__pixel pixel;
  uint64_t count;
  uint32_t c, h, w, classes; /* all at least 1, at most SN_MAX_DIM; labels are below `classes` */
  uint64_t image_bytes;      /* c h w of one image, as they lie in the file: f32 is little-endian */
  uint64_t pixels_at;        /* of the first image */
  int32_t *labels;           /* count */
} sn__image_set;

/* SN_BAD_FILE: see exec/data/data_file.h. SN_BAD_INPUT, with the file's name: not one of the forms, or its header, size
 * or labels are wrong. On an error nothing needs closing. `path` must outlive the set. */
sn_status sn__image_set_open(const char *path, sn__image_set *set, sn_err *err);

/* The pixels of one image, set->image_bytes of them. */
sn_status sn__image_set_read(const sn__image_set *set, uint64_t image, void *bytes, sn_err *err);

void sn__image_set_close(sn__image_set *set);

/* The file in which the labels of the IDX or .npy file at `path` are looked for; to be freed. NULL and SN_BAD_INPUT
 * where the name tells of none. */
char *sn__image_set_labels(const char *path, sn_err *err);

#endif
