/* Blob: bytes that somebody else owns. */
#ifndef SN_BASE_BLOB_H
#define SN_BASE_BLOB_H

#include <stddef.h>

typedef struct sn_blob {
  const unsigned char *bytes; /* NULL: there is none */
  size_t n_bytes;
} sn_blob;

#endif
