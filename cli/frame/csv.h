/* CSV (RFC 4180): one field at a time. */
#ifndef SN_CLI_FRAME_CSV_H
#define SN_CLI_FRAME_CSV_H

#include <stdbool.h>
#include <stdio.h>

/* Writes a field, behind a comma unless it is the first of its line. What holds a comma, a quote, a line end or a blank
 * at either end stands in quotes, quotes in it twice. */
void sn_csv_put(FILE *out, const char *text, bool first);

#endif
