/* UTF-8 text (RFC 3629): its characters, and what matters of them to names and to columns in a terminal.
 *
 *   uint32_t point;
 *   for (size_t bytes; *text && (bytes = sn_utf8_next(text, &point)) > 0; text += bytes)
 *     columns += sn_utf8_width(point);
 */
#ifndef SN_BASE_UTF8_H
#define SN_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character at `text`, a NUL-terminated string, and its code point. 0 where there is none: cut short,
 * overlong, a surrogate, beyond U+10FFFF. A NUL is a character of one byte. */
size_t sn_utf8_next(const char *text, uint32_t *point);

/* Moves or reorders text, ends a line, or cannot be seen: C0 and C1, bidirectional, zero-width, line separators. */
bool sn_utf8_is_control(uint32_t point);
/* A space of whatever width, U+0020 too. */
bool sn_utf8_is_blank(uint32_t point);

/* Columns of a character in a terminal: 2 for East Asian wide ones and pictures, 0 for combining marks, else 1 (Unicode
 * Standard Annex 11, in whole blocks). Not known: marks of Indic and Thai scripts, characters joined into one. */
unsigned sn_utf8_width(uint32_t point);

/* Makes text safe for a terminal, in place: controls and bytes that are no UTF-8 become '?', one a byte. Returns text.
 */
char *sn_utf8_clean(char *text);

#endif
