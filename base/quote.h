/* Texts of other people inside JSON, HTML and script.
 *
 * The quoted text is JSON (RFC 8259) that may stand in a <script> element of a page and in JavaScript as well: no <, >
 * or & in it, no control, no U+2028 and U+2029, all of them as \uXXXX. Bytes that are no UTF-8 become U+FFFD.
 */
#ifndef SN_BASE_QUOTE_H
#define SN_BASE_QUOTE_H

#include <stdio.h>

/* Writes the text in quotes. Errors stay in the stream (ferror). */
void sn_quote_json(const char *text, FILE *out);

/* Writes the text as it may stand between HTML tags and in attributes in double quotes. */
void sn_quote_html(const char *text, FILE *out);

#endif
