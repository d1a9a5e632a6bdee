/* CSV (RFC 4180, but that lines end in LF as everywhere on Unix), one field at a time. `snsim export` and sweeps write
 * the same form: a header of names that hold their units, whole numbers exact, reals with the fewest digits that read
 * back as the same number, truth values as true and false. */
#ifndef SN_CLI_FRAME_CSV_H
#define SN_CLI_FRAME_CSV_H

#include <stdbool.h>
#include <stdio.h>

/* Writes a field, behind a comma unless it is the first of its line. What holds a comma, a quote, a line end or a blank
 * at either end stands in quotes, quotes in it twice. Names come from other people: control characters and bytes that
 * are no UTF-8 become '?', and what a spreadsheet would take for a formula (=, +, - or @ in front of what is no number)
 * gets an apostrophe in front, which makes it text. */
void sn_csv_put(FILE *out, const char *text, bool first);
/* How a truth value is written, and the end of a line. */
const char *sn_csv_bool(bool value);
void sn_csv_end(FILE *out);

#endif
