/* Picture: the last look at a file gnuplot has drawn, before it takes the wanted name.
 *
 * gnuplot does not notice when its output could not be written (full disk), so the file must end as its form ends. And
 * cairo puts the moment of drawing into a PDF; the moment the run was stored takes its place, of the same length, so
 * that the same run gives the same bytes. */
#include "plots/plot_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAIL = 16, DATE = 14 /* YYYYMMDDHHMMSS */ };

/* Where `text` begins in the first `bytes` of `data`; NULL: nowhere. */
static char *find(char *data, size_t bytes, const char *text) {
  size_t length = strlen(text);
  for (size_t i = 0; i + length <= bytes; i++)
    if (memcmp(data + i, text, length) == 0) return data + i;
  return NULL;
}

static sn_status fail_read(sn_err *err) {
  return sn_fail(err, SN_BAD_FILE, "the finished picture cannot be read back: %s", strerror(errno));
}

/* Whether the file could have been longer: gnuplot does not tell a full disk from anything else. */
static sn_status fail_unfinished(int file, off_t bytes, sn_err *err) {
  static const char more[4096];
  if (pwrite(file, more, sizeof more, bytes) != (ssize_t)sizeof more)
    return sn_fail(err, SN_BAD_FILE, "cannot be written: %s", strerror(errno ? errno : ENOSPC));
  return sn_fail(err, SN_BAD_DEVICE, "gnuplot did not finish the picture (%lld bytes written)", (long long)bytes);
}

static sn_status check_end(int file, sn__form form, sn_err *err) {
  static const char *const ends[] = {[SN__FORM_PNG] = "IEND", [SN__FORM_SVG] = "</svg>", [SN__FORM_PDF] = "%%EOF"};
  char tail[TAIL];
  off_t bytes = lseek(file, 0, SEEK_END);
  if (bytes < 0) return fail_read(err);
  ssize_t got = bytes < TAIL ? 0 : pread(file, tail, TAIL, bytes - TAIL);
  if (got < 0) return fail_read(err);
  if (find(tail, (size_t)got, ends[form])) return SN_OK;
  errno = 0;
  return fail_unfinished(file, bytes, err);
}

/* "2026-11-20 09:31:07" to "20261120093107"; false where it is no such moment. */
static bool print_date(const char *created, char *date) {
  size_t used = 0;
  for (; *created && used < DATE; created++)
    if (isdigit((unsigned char)*created)) date[used++] = *created;
  return used == DATE;
}

static sn_status replace_date(int file, char *data, size_t bytes, const char *date, sn_err *err) {
  if (pread(file, data, bytes, 0) != (ssize_t)bytes) return fail_read(err);
  static const char key[] = "/CreationDate (D:";
  char *place = find(data, bytes, key);
  if (!place || (size_t)(data + bytes - place) < sizeof key - 1 + DATE) return SN_OK; /* none, or another's form */
  off_t at = place - data + (off_t)sizeof key - 1;
  if (pwrite(file, date, DATE, at) == DATE) return SN_OK;
  return sn_fail(err, SN_BAD_FILE, "the finished picture cannot be written: %s", strerror(errno));
}

static sn_status set_date(int file, const char *created, sn_err *err) {
  char date[DATE];
  off_t bytes = lseek(file, 0, SEEK_END);
  if (!print_date(created, date) || bytes <= 0) return SN_OK;
  char *data = malloc((size_t)bytes);
  if (!data) return sn_fail_memory(err);
  replace_date(file, data, (size_t)bytes, date, err);
  free(data);
  return err->code;
}

sn_status sn__picture_finish(int file, sn__form form, const char *created, sn_err *err) {
  if (check_end(file, form, err) != SN_OK || form != SN__FORM_PDF) return err->code;
  return set_date(file, created, err);
}
