/* Page: puts the parts together; see the header.
 *
 * A page is head.html and its body, report.html or sweep.html. Where they have @name@, the part of that name comes:
 * another file of plots/report/, or one of `title` and `data`, which are made here and in page_sweep.c. One pass over
 * each file. */
#include "plots/page/page.h"

#include "base/quote.h"
#include "models/zoo/zoo.h"
#include "plots/page/page_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static const sn_embedded_file *find_part(const char *name, size_t length) {
  for (size_t i = 0; i < sn_embedded_report_count; i++) {
    const sn_embedded_file *file = &sn_embedded_report[i];
    if (strlen(file->name) == length && memcmp(file->name, name, length) == 0) return file;
  }
  return NULL;
}

static bool is(const char *name, size_t length, const char *text) {
  return length == strlen(text) && memcmp(name, text, length) == 0;
}

static sn_status write_part(const sn__page *p, const char *name, size_t length, FILE *out, sn_err *err) {
  const sn_embedded_file *file = find_part(name, length);
  if (is(name, length, "title")) return p->title(p->content, out, err);
  if (is(name, length, "data")) return p->data(p->content, out, err);
  if (!file)
    return sn_fail(err, SN_BUG, "the page's frame asks for a part \"%.*s\" that there is not", (int)length, name);
  fwrite(file->text, 1, file->bytes, out);
  return SN_OK;
}

static sn_status write_frame(const sn__page *p, const char *name, FILE *out, sn_err *err) {
  const sn_embedded_file *frame = find_part(name, strlen(name));
  if (!frame) return sn_fail(err, SN_BUG, "%s was not built in", name);
  const char *at = frame->text;
  for (const char *mark; (mark = strchr(at, '@')) != NULL;) {
    const char *end = strchr(mark + 1, '@');
    fwrite(at, 1, (size_t)(mark - at), out);
    if (!end) return sn_fail(err, SN_BUG, "%s has a single @", name);
    if (write_part(p, mark + 1, (size_t)(end - mark - 1), out, err) != SN_OK) return err->code;
    at = end + 1;
  }
  fputs(at, out);
  return SN_OK;
}

sn_status sn__page_write(const sn__page *page, FILE *out, sn_err *err) {
  errno = 0;
  if (write_frame(page, "head.html", out, err) != SN_OK || write_frame(page, page->body, out, err) != SN_OK)
    return err->code;
  if (fflush(out) == 0 && !ferror(out)) return SN_OK;
  return sn_fail(err, SN_BAD_FILE, "the page cannot be written: %s", strerror(errno ? errno : EIO));
}

/* ---- of a run ---- */

typedef struct run_page {
  const sn_run *run;
  const sn_page_entry *entries;
  uint32_t n_entries;
  const char *remedy;
} run_page;

static sn_status write_title(const void *content, FILE *out, sn_err *err) {
  const sn_run *run = ((const run_page *)content)->run;
  (void)err;
  char title[600], gpus[SN_RUN_GPUS];
  sn_quote_html(sn_net_title(run->net, run->net_name, title, sizeof title), out);
  fprintf(out, ", batch %" PRIu32 ", on ", run->batch);
  sn_quote_html(sn_run_gpus(run, gpus), out);
  return SN_OK;
}

static sn_status write_data(const void *content, FILE *out, sn_err *err) {
  const run_page *p = content;
  return sn__page_write_data(p->run, p->entries, p->n_entries, p->remedy, out, err);
}

static sn_status check_size(const run_page *p, sn_err *err) {
  uint64_t rows = 0;
  for (uint32_t i = 0; i < p->n_entries; i++)
    rows += (uint64_t)p->entries[i].timeline->n_bars + p->entries[i].timeline->n_rects;
  if (rows <= SN_PAGE_MOST_ROWS) return SN_OK;
  return sn_fail(
      err, SN_BAD_INPUT,
      "a page of run %" PRId64 " would have %" PRIu64
      " bars and memory rectangles, %u are the most a browser shows quickly; choose fewer of its %u strategies "
      "with --strategy",
      p->run->id, rows, SN_PAGE_MOST_ROWS, p->n_entries);
}

sn_status sn_page_write(const sn_run *run, const sn_page_entry *entries, uint32_t n_entries, const char *remedy,
                        FILE *out, sn_err *err) {
  const run_page content = {run, entries, n_entries, remedy};
  const sn__page page = {"report.html", write_title, write_data, &content};
  if (check_size(&content, err) != SN_OK) return err->code;
  return sn__page_write(&page, out, err);
}
