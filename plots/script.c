/* Script: what the pictures' gnuplot scripts have in common: text, terminals, the title, the passes.
 *
 * Everything outside a script's own words is numbers or quoted text. */
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <string.h>

/* ---- text ---- */

/* Length of the UTF-8 character at `s`, 0 where there is none (RFC 3629, without looking for surrogates). */
static unsigned utf8_length(const unsigned char *s) {
  unsigned n = s[0] < 0x80                   ? 1
               : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
               : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;
  for (unsigned i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return n;
}

/* Writes one character, `quote` for a quote; control characters and broken UTF-8 as '?'. Returns how many bytes it
 * took.
 */
static unsigned put_character(FILE *out, const unsigned char *s, const char *quote) {
  unsigned n = utf8_length(s);
  if (n == 0 || *s < 0x20 || *s == 0x7f)
    putc('?', out);
  else if (*s == '\'')
    fputs(quote, out);
  else
    fwrite(s, 1, n, out);
  return n ? n : 1;
}

static void put_end(FILE *out, const char *text, size_t most, const char *quote) {
  const unsigned char *s = (const unsigned char *)text;
  size_t length = 0;
  for (const unsigned char *c = s; *c; length++) c += utf8_length(c) ? utf8_length(c) : 1;
  if (length > most) fputs("...", out);
  for (; length > most; length--) s += utf8_length(s) ? utf8_length(s) : 1;
  while (*s) s += put_character(out, s, quote);
}

void sn__put_text(FILE *out, const char *text, size_t most) {
  put_end(out, text, most, "''");
}

void sn__put_plain(FILE *out, const char *text, size_t most) {
  put_end(out, text, most, "'");
}

/* ---- looks ---- */

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
         .mark_size = "0.7",
         .lift = "0.8"},
    [SN__FORM_SVG] = {.terminal = "set terminal svg size 900,563 font 'sans-serif,13' linewidth 1.3 noenhanced"
                                  " background '#ffffff'\n",
                      .key_font = "11.5",
                      .mark_size = "0.45",
                      .lift = "0.8"},
    [SN__FORM_PDF] = {.terminal = "set terminal pdfcairo size 16cm,10cm font 'Sans,9.5' linewidth 1.3 noenhanced\n",
                      .key_font = "8.5",
                      .mark_size = "0.4",
                      .lift = "0.8"},
    [SN__FORM_TEXT] = {.lift = "1"},
};

const sn__look *sn__look_of(sn__form form) {
  return &looks[form];
}

sn__unit sn__unit_for(uint64_t most) {
  bool large = most >= UINT64_C(4) << 30;
  return (sn__unit){large ? "GiB" : "MiB", large ? 1073741824.0 : 1048576.0};
}

/* ---- the parts of the script ---- */

void sn__put_terminal(FILE *out, const sn__chart *chart) {
  if (chart->form == SN__FORM_TEXT)
    fprintf(out, "set terminal dumb size %u,%u mono nofeed noenhanced\n", chart->columns, chart->rows);
  else
    fprintf(out, "counts = 'dashed'; count_width = 0.8\n%s", looks[chart->form].terminal);
  fputs("set encoding utf8\n", out);
}

void sn__put_subject(FILE *out, const sn__chart *chart, void (*put)(FILE *out, const char *text, size_t most)) {
  const sn_run *first = chart->curves[0].run;
  bool net = true, batch = true, gpu = true;
  for (unsigned i = 1; i < chart->n_curves; i++) {
    const sn_run *run = chart->curves[i].run;
    net = net && strcmp(run->net, first->net) == 0;
    batch = batch && run->batch == first->batch;
    gpu = gpu && strcmp(run->gpu, first->gpu) == 0;
  }
  put(out, net ? first->net : "several networks", 48);
  if (batch) fprintf(out, ", batch %" PRIu32, first->batch);
  if (gpu) {
    fputs(", on ", out);
    put(out, first->gpu, 32);
  }
  if (!chart->timeline) return;
  fputs(chart->form == SN__FORM_TEXT ? ":\n" : ": ", out);
  put(out, chart->curves[0].result->strategy, 60);
}

void sn__put_passes(FILE *out, const sn__chart *chart, double low, double divide, double high) {
  const char *lift = looks[chart->form].lift;
  fprintf(
      out,
      "set arrow from first %.9g, graph 0 to first %.9g, graph 1 nohead linecolor rgb '#808080' linewidth 0.7 front\n",
      divide, divide);
  fprintf(out, "set label 'forward' at first %.9g, graph 1 center offset 0,%s\n", (low + divide) / 2, lift);
  fprintf(out, "set label 'backward' at first %.9g, graph 1 center offset 0,%s\n", (divide + high) / 2, lift);
}

void sn__put_key_panel(FILE *out, const sn__chart *chart, double top) {
  fputs("unset label\nunset xlabel\nunset ylabel\nunset border\nunset tics\nset xrange [0:1]\nset yrange [0:1]\n"
        "set lmargin at screen 0.02\nset rmargin at screen 0.98\nset bmargin at screen 0.01\n",
        out);
  fprintf(out, "set tmargin at screen %.3f\n", top);
  fprintf(out, "set key center center horizontal Left reverse samplen 1.5 width 1 font ',%s'\n",
          looks[chart->form].key_font);
}

void sn__put_key_entry(FILE *out, const char *separator, const char *colour, const char *name) {
  fprintf(out, "%s NaN with boxes fillcolor rgb '%s' fillstyle solid noborder title '%s'", separator, colour, name);
}

unsigned sn__put_letter(FILE *out, const sn__chart *chart, unsigned at, char letter, const char *name) {
  unsigned width = 2 + (unsigned)strlen(name);
  bool next = at > 0 && at + 2 + width > chart->columns;
  fprintf(out, "%s%c %s", next ? "\n" : at > 0 ? "  " : "", letter, name);
  return next || at == 0 ? width : at + 2 + width;
}

/* ---- which picture ---- */

sn_status sn__script_write(FILE *out, const sn__chart *chart, sn_err *err) {
  switch (chart->kind) {
  case SN_PLOT_BREAKDOWN:
    return sn__breakdown_write(out, chart, err);
  case SN_PLOT_TIMELINE:
    return sn__lanes_write(out, chart, err);
  case SN_PLOT_POOL:
    sn__pool_write(out, chart);
    return SN_OK;
  default:
    sn__curves_write(out, chart);
    return SN_OK;
  }
}

sn_status sn__text_write(FILE *out, const sn__chart *chart, sn_err *err) {
  switch (chart->kind) {
  case SN_PLOT_BREAKDOWN:
    return sn__breakdown_text(out, chart, err);
  case SN_PLOT_TIMELINE:
    return sn__lanes_text(out, chart, err);
  default:
    return sn__pool_text(out, chart, err);
  }
}
