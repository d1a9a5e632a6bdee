/* Numbers people write and read: "12GiB", "200", "3.40 ms". Bytes are uint64_t, time is int64_t nanoseconds. */
#ifndef SN_BASE_UNITS_H
#define SN_BASE_UNITS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Parses a whole number from `low` to `high`; `what` names it in the error ("--batch"). SN_BAD_USAGE otherwise. */
sn_status sn_parse_count(const char *text, const char *what, uint64_t low, uint64_t high, uint64_t *out, sn_err *err);

/* Parses bytes, from `low` to 8 PiB: a decimal number, with a fraction if wanted, and a unit: B, kB/MB/GB/TB/PB (powers
 * of 1000), KiB/MiB/GiB/TiB/PiB (powers of 1024). Neither the unit nor its i may be left out: the difference decides
 * whether a run fits. Only "0" needs no unit. SN_BAD_USAGE otherwise. */
sn_status sn_parse_bytes(const char *text, const char *what, uint64_t low, uint64_t *out, sn_err *err);

enum { SN_UNIT_TEXT = 32 };

/* Printers write into the caller's buffer of SN_UNIT_TEXT bytes and return it. */
char *sn_print_bytes(uint64_t bytes, char *text);            /* "886.23 MiB", "1.50 GiB" (1024-based) */
char *sn_print_time(int64_t ns, char *text);                 /* "3.40 ms" */
char *sn_print_count(uint64_t count, char *text);            /* "62.38 M" */
char *sn_print_digits(double value, int digits, char *text); /* so many that count: 3 of 1234.5 are "1230"; "-" for no
                                                                 number */
char *sn_print_real(double value, char *text); /* the fewest digits that read back as it; "null" for no number */

#endif
