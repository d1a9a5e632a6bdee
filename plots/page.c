/* Page: puts the parts together; see the header.
 *
 * report.html is the frame. Where it has @name@, the part of that name comes: another file of plots/report/, or one of
 * `title` and `data`, which are made here. One pass over each file. */
#include "plots/page.h"

#include "base/quote.h"
#include "plots/page_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

typedef struct page {
  const sn_run *run;
  const sn_page_entry *entries;
  uint32_t n_entries;
  FILE *out;
} page;

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

static void write_title(const page *p) {
  sn_quote_html(p->run->net, p->out);
  fprintf(p->out, ", batch %" PRIu32 ", on ", p->run->batch);
  sn_quote_html(p->run->gpu, p->out);
}

static sn_status write_part(const page *p, const char *name, size_t length, sn_err *err) {
  const sn_embedded_file *file = find_part(name, length);
  if (file)
    fwrite(file->text, 1, file->bytes, p->out);
  else if (is(name, length, "title"))
    write_title(p);
  else if (is(name, length, "data"))
    sn__page_write_data(p->run, p->entries, p->n_entries, p->out);
  else
    return sn_fail(err, SN_BUG, "report.html asks for a part \"%.*s\" that there is not", (int)length, name);
  return SN_OK;
}

static sn_status write_frame(const page *p, sn_err *err) {
  const sn_embedded_file *frame = find_part("report.html", strlen("report.html"));
  if (!frame) return sn_fail(err, SN_BUG, "report.html was not built in");
  const char *at = frame->text;
  for (const char *mark; (mark = strchr(at, '@')) != NULL;) {
    const char *end = strchr(mark + 1, '@');
    fwrite(at, 1, (size_t)(mark - at), p->out);
    if (!end) return sn_fail(err, SN_BUG, "report.html has a single @");
    if (write_part(p, mark + 1, (size_t)(end - mark - 1), err) != SN_OK) return err->code;
    at = end + 1;
  }
  fputs(at, p->out);
  return SN_OK;
}

static sn_status check_size(const page *p, sn_err *err) {
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

sn_status sn_page_write(const sn_run *run, const sn_page_entry *entries, uint32_t n_entries, FILE *out, sn_err *err) {
  page p = {.run = run, .entries = entries, .n_entries = n_entries, .out = out};
  errno = 0;
  if (check_size(&p, err) != SN_OK || write_frame(&p, err) != SN_OK) return err->code;
  if (fflush(out) == 0 && !ferror(out)) return SN_OK;
  return sn_fail(err, SN_BAD_FILE, "the page cannot be written: %s", strerror(errno ? errno : EIO));
}
