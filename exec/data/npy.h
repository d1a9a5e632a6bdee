/* NumPy's arrays in files (.npy, versions 1 to 3 of
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): what the header says. Numbers lie behind it,
 * the last index fastest. Internal to exec/. */
#ifndef SN_EXEC_DATA_NPY_H
#define SN_EXEC_DATA_NPY_H

#include "base/err.h"
#include "exec/data/data_file.h"

#include <stdbool.h>
#include <stdint.h>

enum { SN__NPY_SIZES = 8, SN__NPY_TYPE = 16, SN__NPY_START = 8 };

typedef struct sn__npy {
  char type[SN__NPY_TYPE]; /* "|u1", "<f4", "<i8": byte order, kind, bytes */
  uint32_t n_sizes;
  uint64_t sizes[SN__NPY_SIZES]; /* each at most SN_MAX_NET_BYTES */
  uint64_t at;                   /* byte of the file at which the numbers begin; inside the file */
} sn__npy;

/* Whether a file begins so. */
bool sn__npy_is(const uint8_t start[SN__NPY_START]);

/* SN_BAD_FILE; SN_BAD_INPUT, with the file's name, where the header is none, or of numbers in another order. */
sn_status sn__npy_read(const sn__data_file *file, sn__npy *npy, sn_err *err);

#endif
