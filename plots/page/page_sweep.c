/* The page of a sweep: its title and its data; plots/page/page.c puts it into plots/report/sweep.html.
 *
 *   {"sweep": {..}, "names": {"net": [..], ..}, "columns": {"net": [..], ..}, "failures": [[3, ".."]]}
 *
 * Columns rather than rows, as in page_data.c, with a number per point. Those of texts, and only they, have an entry in
 * `names` and hold indices into it. `failures` has the row, from 0, and the reason. One pass over
 * the points per column; finding a name is a search through those there are, at most a few hundred, begun at the last
 * one found. */
#include "base/arena.h"
#include "base/quote.h"
#include "models/zoo/zoo.h"
#include "plots/page/page_internal.h"
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <string.h>

typedef int64_t number_value(const sn_sweep_row *row);

static int64_t batch_of(const sn_sweep_row *row) {
  return row->batch;
}
static int64_t image_of(const sn_sweep_row *row) {
  return row->image;
}
static int64_t memory_of(const sn_sweep_row *row) {
  return (int64_t)row->memory_bytes;
}
static int64_t accumulate_of(const sn_sweep_row *row) {
  return row->conditions.accumulate;
}
static int64_t shared_of(const sn_sweep_row *row) {
  return row->conditions.shared_link;
}
static int64_t limit_of(const sn_sweep_row *row) {
  return (int64_t)row->conditions.pool_limit_bytes;
}
static int64_t fits_of(const sn_sweep_row *row) {
  return row->fits;
}
static int64_t device_of(const sn_sweep_row *row) {
  return (int64_t)row->peak_device_bytes;
}
static int64_t peak_of(const sn_sweep_row *row) {
  return (int64_t)row->peak_tensor_bytes;
}
static int64_t pool_of(const sn_sweep_row *row) {
  return (int64_t)row->pool_bytes;
}
static int64_t out_of(const sn_sweep_row *row) {
  return (int64_t)row->offload_bytes;
}
static int64_t in_of(const sn_sweep_row *row) {
  return (int64_t)row->prefetch_bytes;
}
static int64_t copies_of(const sn_sweep_row *row) {
  return sn__sweep_copies(row);
}
static int64_t iteration_of(const sn_sweep_row *row) {
  return row->iteration_ns;
}

static const struct {
  const char *name;
  number_value *value;
} numbers[] = {{"batch", batch_of},           {"image", image_of},        {"memory", memory_of}, {"shared", shared_of},
               {"limit", limit_of},           {"fits", fits_of},          {"device", device_of}, {"peak", peak_of},
               {"accumulate", accumulate_of}, {"pool", pool_of},          {"out", out_of},       {"in", in_of},
               {"copies", copies_of},         {"iteration", iteration_of}};

/* The different texts of a column, in the order in which they come, and which one each row has. */
typedef struct names {
  const sn_sweep_row **first; /* a row that has it */
  uint32_t *index, count;
} names;

static sn_status find_names(const sn_sweep *sweep, const sn__axis *axis, names *n, sn_err *err) {
  uint32_t at = 0;
  n->count = 0;
  n->first = sn_arena_alloc(sweep->arena, sweep->n_rows, sizeof(sn_sweep_row *));
  n->index = sn_arena_alloc(sweep->arena, sweep->n_rows, sizeof *n->index);
  if (!n->first || !n->index) return sn_fail_memory(err);
  for (uint32_t i = 0; i < sweep->n_rows; i++) {
    const char *text = sn__axis_value(axis, &sweep->rows[i]);
    uint32_t tried = 0;
    for (; tried < n->count && strcmp(sn__axis_value(axis, n->first[at]), text) != 0; tried++) at = (at + 1) % n->count;
    if (tried == n->count) {
      at = n->count++;
      n->first[at] = &sweep->rows[i];
    }
    n->index[i] = at;
  }
  return SN_OK;
}

/* What people read: networks as on the screen. */
static const char *shown(const sn__axis *axis, const sn_sweep_row *row, char title[SN_NET_SPEC]) {
  if (axis->offset != sn__axis_net.offset) return sn__axis_value(axis, row);
  return sn_net_title(row->net, row->net_name, title, SN_NET_SPEC);
}

/* ---- data ---- */

static void write_head(const sn_sweep *sweep, FILE *out) {
  const sn_sweep_line *h = &sweep->head;
  fprintf(out, "{\"sweep\":{\"id\":%" PRId64 ",\"created\":", h->id);
  sn_quote_json(h->created, out);
  fputs(",\"version\":", out);
  sn_quote_json(h->version, out);
  fputs(",\"grid\":", out);
  sn_quote_json(h->grid, out);
  fputs(",\"unit\":", out);
  sn_quote_json(sn_sweep_unit(sweep), out);
  fprintf(out, ",\"points\":%" PRIu32 ",\"stored\":%" PRIu32 ",\"fit\":%" PRIu32 ",\"failed\":%" PRIu32 "}",
          h->n_points, h->n_stored, h->n_fit, h->n_failed);
}

static void write_names(const sn__axis *axes, int n_axes, const names *all, FILE *out) {
  char title[SN_NET_SPEC];
  fputs(",\n\"names\":{", out);
  for (int t = 0; t < n_axes; t++) {
    fprintf(out, t ? ",\n\"%s\":[" : "\"%s\":[", axes[t].name);
    for (uint32_t i = 0; i < all[t].count; i++) {
      if (i > 0) putc(',', out);
      sn_quote_json(shown(&axes[t], all[t].first[i], title), out);
    }
    putc(']', out);
  }
  putc('}', out);
}

static void write_columns(const sn_sweep *sweep, const sn__axis *axes, int n_axes, const names *all, FILE *out) {
  fputs(",\n\"columns\":{", out);
  for (int t = 0; t < n_axes; t++) {
    fprintf(out, "\"%s\":[", axes[t].name);
    for (uint32_t i = 0; i < sweep->n_rows; i++) fprintf(out, i ? ",%" PRIu32 : "%" PRIu32, all[t].index[i]);
    fputs("],\n", out);
  }
  for (size_t c = 0; c < sizeof numbers / sizeof numbers[0]; c++) {
    fprintf(out, c ? ",\n\"%s\":[" : "\"%s\":[", numbers[c].name);
    for (uint32_t i = 0; i < sweep->n_rows; i++)
      fprintf(out, i ? ",%" PRId64 : "%" PRId64, numbers[c].value(&sweep->rows[i]));
    putc(']', out);
  }
  putc('}', out);
}

static void write_failures(const sn_sweep *sweep, FILE *out) {
  const char *separator = "";
  fputs(",\n\"failures\":[", out);
  for (uint32_t i = 0; i < sweep->n_rows; i++) {
    if (!sweep->rows[i].failure[0]) continue;
    fprintf(out, "%s[%" PRIu32 ",", separator, i);
    sn_quote_json(sweep->rows[i].failure, out);
    putc(']', out);
    separator = ",\n";
  }
  fputs("]}", out);
}

static sn_status write_data(const void *content, FILE *out, sn_err *err) {
  const sn_sweep *sweep = content;
  sn__axis axes[SN__AXES];
  names all[SN__AXES];
  int n_axes = sn__axes(axes);
  for (int t = 0; t < n_axes; t++)
    if (find_names(sweep, &axes[t], &all[t], err) != SN_OK) return err->code;
  write_head(sweep, out);
  write_names(axes, n_axes, all, out);
  write_columns(sweep, axes, n_axes, all, out);
  write_failures(sweep, out);
  return SN_OK;
}

/* ---- title ---- */

/* The one there is, or how many. */
static sn_status write_title_names(const sn_sweep *sweep, const sn__axis *axis, const char *plural, FILE *out,
                                   sn_err *err) {
  names n;
  char title[SN_NET_SPEC];
  if (find_names(sweep, axis, &n, err) != SN_OK) return err->code;
  if (n.count == 1)
    sn_quote_html(shown(axis, n.first[0], title), out);
  else
    fprintf(out, "%" PRIu32 " %s", n.count, plural);
  return SN_OK;
}

static void write_batches(const sn_sweep *sweep, FILE *out) {
  uint32_t least = sweep->rows[0].batch, most = least;
  for (uint32_t i = 1; i < sweep->n_rows; i++) {
    if (sweep->rows[i].batch < least) least = sweep->rows[i].batch;
    if (sweep->rows[i].batch > most) most = sweep->rows[i].batch;
  }
  if (least == most)
    fprintf(out, ", batch %" PRIu32 ", on ", least);
  else
    fprintf(out, ", batches %" PRIu32 " to %" PRIu32 ", on ", least, most);
}

static sn_status write_title(const void *content, FILE *out, sn_err *err) {
  const sn_sweep *sweep = content;
  if (write_title_names(sweep, &sn__axis_net, "networks", out, err) != SN_OK) return err->code;
  write_batches(sweep, out);
  return write_title_names(sweep, &sn__axis_gpu, "GPUs", out, err);
}

sn_status sn_page_write_sweep(const sn_sweep *sweep, FILE *out, sn_err *err) {
  const sn__page page = {"sweep.html", write_title, write_data, sweep};
  if (sweep->n_rows == 0)
    return sn_fail(err, SN_BAD_INPUT,
                   "sweep %" PRId64 " has no computed point yet; snsim sweep %" PRId64 " computes them", sweep->head.id,
                   sweep->head.id);
  if (sweep->n_rows > SN_PAGE_MOST_POINTS)
    return sn_fail(err, SN_BAD_INPUT,
                   "a page of sweep %" PRId64 " would have %" PRIu32
                   " points, %u are the most a browser shows quickly; snsim show sweep:%" PRId64 " --csv has them all",
                   sweep->head.id, sweep->n_rows, SN_PAGE_MOST_POINTS, sweep->head.id);
  return sn__page_write(&page, out, err);
}
