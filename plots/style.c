/* Style: what all pictures have in common: terminals, letters, colours, and how users' names get into a script.
 *
 * Everything outside a script's own words is numbers or quoted text: names that users choose are cleaned and stand in
 * single quotes, within which gnuplot replaces nothing. Colours are Okabe and Ito's, which colour-blind people can tell
 * apart (Color Universal Design, 2008). */
#include "base/utf8.h"
#include "plots/plot_internal.h"

/* The character at `text` and its bytes; what is no UTF-8 is a byte of its own, and a control like any other. */
static size_t next(const char *text, uint32_t *point) {
  size_t bytes = sn_utf8_next(text, point);
  if (bytes == 0) *point = 0;
  return bytes ? bytes : 1;
}

/* Writes one character, `quote` for a quote; what moves or reorders text as '?'. Returns how many bytes it took. */
static size_t put_character(FILE *out, const char *text, const char *quote) {
  uint32_t point;
  size_t bytes = next(text, &point);
  if (sn_utf8_is_control(point))
    putc('?', out);
  else if (*text == '\'')
    fputs(quote, out);
  else
    fwrite(text, 1, bytes, out);
  return bytes;
}

/* Writes the last `most` characters of `text`: of a long path the end says more. */
static void put_end(FILE *out, const char *text, size_t most, const char *quote) {
  size_t length = 0;
  uint32_t point;
  for (const char *at = text; *at; length++) at += next(at, &point);
  if (length > most) fputs("...", out);
  for (; length > most; length--) text += next(text, &point);
  while (*text) text += put_character(out, text, quote);
}

void sn__put_text(FILE *out, const char *text, size_t most) {
  put_end(out, text, most, "''");
}

void sn__put_plain(FILE *out, const char *text, size_t most) {
  put_end(out, text, most, "'");
}

static const sn__look looks[] = {
    [SN__FORM_PNG] =
        {/* the terminal png cannot draw dashes */
         .terminal = "if (strstrt(GPVAL_TERMINALS, ' pngcairo ') > 0) {\n"
                     "  set terminal pngcairo size 1800,1125 font 'Sans,24' linewidth 2.6 noenhanced\n"
                     "} else {\n"
                     "  set terminal png size 1080,675 giant linewidth 2 noenhanced\n"
                     "  counts = 'thin'; count_width = 0.4\n"
                     "}\n",
         .key_font = "21",
         .small_font = "15",
         .mark_size = "0.7",
         .lift = "0.8"},
    [SN__FORM_SVG] = {.terminal = "set terminal svg size 900,563 font 'sans-serif,13' linewidth 1.3 noenhanced"
                                  " background '#ffffff'\n",
                      .key_font = "11.5",
                      .small_font = "8.5",
                      .mark_size = "0.45",
                      .lift = "0.8"},
    [SN__FORM_PDF] = {.terminal = "set terminal pdfcairo size 16cm,10cm font 'Sans,9.5' linewidth 1.3 noenhanced\n",
                      .key_font = "8.5",
                      .small_font = "6",
                      .mark_size = "0.4",
                      .lift = "0.8"},
    [SN__FORM_TEXT] = {.small_font = "", .lift = "1"},
};

const sn__look *sn__look_of(sn__form form) {
  return &looks[form];
}

void sn__put_terminal(FILE *out, sn__form form, unsigned columns, unsigned rows) {
  if (form == SN__FORM_TEXT)
    fprintf(out, "set terminal dumb size %u,%u mono nofeed noenhanced\n", columns, rows);
  else
    fprintf(out, "counts = 'dashed'; count_width = 0.8\n%s", looks[form].terminal);
  fputs("set encoding utf8\n", out);
}

/* Yellow is too pale for lines on white. */
static const char *const colours[SN__COLOURS] = {SN__BLACK,  SN__BLUE,   SN__VERMILLION, SN__GREEN,
                                                 SN__PURPLE, SN__ORANGE, SN__SKY_BLUE};
static const int marks[SN__COLOURS] = {7, 5, 9, 11, 13, 4, 6};

const char *sn__colour(unsigned curve) {
  return colours[curve % SN__COLOURS];
}

unsigned sn__width(unsigned curve) {
  return 1 + curve / SN__COLOURS;
}

int sn__number_set_has(unsigned curve) {
  return marks[curve % SN__COLOURS];
}
