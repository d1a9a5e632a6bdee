/* CSV (RFC 4180): one field at a time. */
#ifndef SN_CLI_FRAME_CSV_H
#define SN_CLI_FRAME_CSV_H

#include <stdbool.h>
#include <stdio.h>

/* Writes a field, behind a comma unless it is the first of its line. What holds a comma, a quote, a line end or a blank
 * at either end stands in quotes, quotes in it twice. Names come from other people: control characters and bytes that
 * are no UTF-8 become '?', and what a spreadsheet would take for a formula (=, +, - or @ in front of what is no number)
 * gets an apostrophe in front, which makes it text. */
void sn_csv_put(FILE *out, const char *text, bool first);

#endif
