/* File: a gnuplot script drawn into a picture file, which is replaced when the picture is whole (base/replace.h). */
#include "base/replace.h"
#include "plots/plot.h"
#include "plots/plot_internal.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

sn_status sn__form_find(const char *path, sn__form *form, sn_err *err) {
  static const char *const endings[] = {[SN__FORM_PNG] = ".png", [SN__FORM_SVG] = ".svg", [SN__FORM_PDF] = ".pdf"};
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

sn_status sn__fail_temporary(sn_err *err) {
  return sn_fail(err, SN_BAD_FILE, "a temporary file cannot be written: %s; make room in /tmp", strerror(errno));
}

sn_status sn__draw(sn__script_writer write, const void *what, int picture, sn_err *err) {
  FILE *script = tmpfile();
  if (!script) return sn__fail_temporary(err);
  write(script, what);
  if (fflush(script) != 0 || ferror(script))
    sn__fail_temporary(err);
  else
    sn__gnuplot_run(script, picture, err);
  fclose(script);
  return err->code;
}

sn_status sn__draw_file(sn__script_writer write, const void *what, const char *path, sn__form form, const char *created,
                        sn_err *err) {
  sn_replace picture;
  if (sn_replace_open(&picture, path, err) != SN_OK) return err->code;
  if (!picture.temporary)
    sn_fail(err, SN_BAD_FILE, "%.300s: is not a regular file; choose another", path);
  else if (sn__draw(write, what, picture.file, err) == SN_OK)
    sn__picture_finish(picture.file, form, created, err);
  return sn_replace_close(&picture, err);
}
