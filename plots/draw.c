/* Draw: from a chart's script to a picture in a file or on the terminal.
 *
 * A file is replaced when the picture is whole (base/replace.h). */
#include "base/replace.h"
#include "plots/plot.h"
#include "plots/plot_internal.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* gnuplot has seven letters for curves as text; one is for the limit line. */
enum { TEXT_CURVES = 6, TEXT_COLUMNS = 100, TEXT_ROWS = 30, FEWEST_COLUMNS = 60, FEWEST_ROWS = 20, MOST = 1000 };

sn_status sn__form_find(const char *path, sn__form *form, sn_err *err) {
  static const char *const endings[] = {[SN__FORM_PNG] = ".png", [SN__FORM_SVG] = ".svg", [SN__FORM_PDF] = ".pdf"};
  *form = SN__FORM_TEXT;
  if (!path) return SN_OK;
  size_t length = strlen(path);
  for (int i = SN__FORM_PNG; i <= SN__FORM_PDF; i++) {
    if (length <= 4 || strcasecmp(path + length - 4, endings[i]) != 0) continue;
    *form = (sn__form)i;
    return SN_OK;
  }
  return sn_fail(err, SN_BAD_USAGE, "%.300s: the ending says what to draw; it must be .png, .svg or .pdf", path);
}

sn_status sn_plot_check_path(const char *path, sn_err *err) {
  sn__form form;
  return sn__form_find(path, &form, err);
}

static sn_status fail_temporary(sn_err *err) {
  return sn_fail(err, SN_BAD_FILE, "a temporary file cannot be written: %s; make room in /tmp", strerror(errno));
}

static sn_status draw(const sn__drawing *drawing, int picture, sn_err *err) {
  FILE *script = tmpfile();
  if (!script) return fail_temporary(err);
  if (drawing->write(script, drawing->chart, err) != SN_OK) {
    fclose(script);
    return err->code;
  }
  if (fflush(script) != 0 || ferror(script))
    fail_temporary(err);
  else
    sn__gnuplot_run(script, picture, err);
  fclose(script);
  return err->code;
}

/* ---- to a file ---- */

static void finish(int picture, const sn__drawing *drawing, const char *path, sn_err *err) {
  if (sn__picture_finish(picture, drawing->form, drawing->created, err) == SN_BAD_FILE)
    sn_err_prefix(err, "%.300s", path);
}

static sn_status draw_file(const sn__drawing *drawing, const char *path, sn_err *err) {
  sn_replace picture;
  if (sn_replace_open(&picture, path, err) != SN_OK) return err->code;
  if (!picture.temporary)
    sn_fail(err, SN_BAD_FILE, "%.300s: is not a regular file; choose another", path);
  else if (draw(drawing, picture.file, err) == SN_OK)
    finish(picture.file, drawing, path, err);
  return sn_replace_close(&picture, err);
}

/* ---- to the terminal ---- */

static unsigned clamp(unsigned value, unsigned usual_value, unsigned least) {
  if (value == 0) return usual_value;
  return value < least ? least : value > MOST ? MOST : value;
}

void sn__text_size(const sn_plot_options *options, unsigned *columns, unsigned *rows) {
  *columns = clamp(options->columns, TEXT_COLUMNS, FEWEST_COLUMNS);
  *rows = clamp(options->rows, TEXT_ROWS, FEWEST_ROWS);
}

/* Copies the drawing without what gnuplot pads it with: a form feed, empty lines around it, blanks at line ends. */
static sn_status copy_text(FILE *from, FILE *to, sn_err *err) {
  unsigned blanks = 0, breaks = 0;
  bool begun = false;
  rewind(from);
  for (int c = getc(from); c != EOF; c = getc(from)) {
    if (c == '\n') breaks++;
    blanks = c == ' ' ? blanks + 1 : c == '\n' || c == '\f' ? 0 : blanks;
    if (c == ' ' || c == '\n' || c == '\f') continue;
    for (; breaks > 0; breaks--)
      if (begun) putc('\n', to);
    for (; blanks > 0; blanks--) putc(' ', to);
    putc(c, to);
    begun = true;
  }
  if (ferror(from)) return fail_temporary(err);
  if (!begun) return sn_fail(err, SN_BAD_DEVICE, "gnuplot drew nothing and did not say why; is it gnuplot?");
  putc('\n', to);
  return ferror(to) ? sn_fail(err, SN_BAD_FILE, "the drawing cannot be written: %s", strerror(errno)) : SN_OK;
}

static sn_status draw_text(const sn__drawing *drawing, const sn_plot_options *options, sn_err *err) {
  if (drawing->n_curves > TEXT_CURVES)
    return sn_fail(err, SN_BAD_USAGE,
                   "text can tell %d curves apart, not %u; name fewer with --strategy, or draw a file with -o FILE.svg",
                   TEXT_CURVES, drawing->n_curves);
  FILE *picture = tmpfile();
  if (!picture) return fail_temporary(err);
  if (draw(drawing, fileno(picture), err) == SN_OK) copy_text(picture, options->terminal, err);
  fclose(picture);
  return err->code;
}

sn_status sn__draw(const sn__drawing *drawing, const sn_plot_options *options, sn_err *err) {
  return options->path ? draw_file(drawing, options->path, err) : draw_text(drawing, options, err);
}
