/* Draw: any picture of this folder, from its script to a file that is whole or not there (base/replace.h). */
#include "plots/plot_internal.h"

#include "base/replace.h"

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

sn_status sn__fail_temporary(sn_err *err) {
  return sn_fail(err, SN_BAD_FILE, "a temporary file cannot be written: %s; make room in /tmp", strerror(errno));
}

sn_status sn__draw(sn__script *write, const void *chart, int picture, sn_err *err) {
  FILE *script = tmpfile();
  if (!script) return sn__fail_temporary(err);
  write(script, chart);
  if (fflush(script) != 0 || ferror(script))
    sn__fail_temporary(err);
  else
    sn__gnuplot_run(script, picture, err);
  fclose(script);
  return err->code;
}

sn_status sn__draw_file(sn__script *write, const void *chart, const char *path, sn__form form, const char *created,
                        sn_err *err) {
  sn_replace picture;
  if (sn_replace_open(&picture, path, err) != SN_OK) return err->code;
  if (!picture.temporary)
    sn_fail(err, SN_BAD_FILE, "%.300s: is not a regular file; choose another", path);
  else if (sn__draw(write, chart, picture.file, err) == SN_OK)
    sn__picture_finish(picture.file, form, created, err);
  return sn_replace_close(&picture, err);
}
