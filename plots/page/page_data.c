/* The page's data: one JSON object, columns rather than rows, so that every name stands once and numbers are short.
 *
 *   {"run": {..}, "parts": [..], "results": [..], "graphs": [{"layers": [..], "ops": [..], "passes": "ffbb",
 *    "tensors": [..], "bytes": [..], ..}, ..]}
 *
 * layers, ops (of collectives "all-gather" and the like) and passes are by step, tensors and bytes by tensor: all
 * strategies of one graph have the same, and a result says which graph is its own. In a result `columns` (of its axis:
 * sim/play/timeline.h), `steps`, `bars`, of co-run plans `teams`, `rects` and `levels` are columns. Those called d..
 * hold differences to the row before (dgap: to the end of the lane's bar before), which are small numbers where the
 * values themselves grow. plots/report/data.js undoes it. */
#include "base/quote.h"
#include "models/zoo/zoo.h"
#include "plots/page/page_internal.h"
#include "plots/plot_internal.h"
#include "sim/ask/explain.h"
#include "sim/capacity/answer.h"
#include "sim/play/footprint.h"
#include "sim/policy/runtime.h"
#include "sim/policy/strategy.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ---- */

typedef int64_t column_value(const sn_timeline *t, uint32_t i);

static void write_column(const char *name, const sn_timeline *t, uint32_t count, column_value *value, FILE *out) {
  fprintf(out, "\"%s\":[", name);
  for (uint32_t i = 0; i < count; i++) fprintf(out, i ? ",%" PRId64 : "%" PRId64, value(t, i));
  fputs("]", out);
}

static int64_t column_count(const sn_timeline *t, uint32_t i) {
  return t->columns[i].n_instrs;
}
static int64_t column_step(const sn_timeline *t, uint32_t i) {
  return (int64_t)t->columns[i].step - (i ? t->columns[i - 1].step : 0);
}
static int64_t step_fullest(const sn_timeline *t, uint32_t i) {
  return (int64_t)t->steps[i].fullest - (i ? t->steps[i - 1].fullest : 0);
}
static int64_t step_bytes(const sn_timeline *t, uint32_t i) {
  return (int64_t)t->steps[i].tensor_bytes;
}
static int64_t step_live(const sn_timeline *t, uint32_t i) {
  return t->steps[i].live_tensors;
}
static int64_t step_workspace(const sn_timeline *t, uint32_t i) {
  return (int64_t)t->steps[i].workspace_bytes;
}

/* Kind, lane and re-run in one number. */
static int64_t bar_code(const sn_timeline *t, uint32_t i) {
  return t->bars[i].kind * 2 * SN_LANES + t->bars[i].lane * 2 + t->bars[i].rerun;
}
/* Of a co-run plan: part, and team: the slot of the hardware threads, and [first, first + count). */
static int64_t bar_part(const sn_timeline *t, uint32_t i) {
  return t->bars[i].part;
}
static int64_t bar_slot(const sn_timeline *t, uint32_t i) {
  return t->bars[i].team.slot;
}
static int64_t bar_first(const sn_timeline *t, uint32_t i) {
  return t->bars[i].team.first;
}
static int64_t bar_cores(const sn_timeline *t, uint32_t i) {
  return t->bars[i].team.count;
}
/* The index of the step it computes, the tensor, or the bar it waits for; -1: none, or the workspace of what is beside
 * it. */
static int64_t bar_what(const sn_timeline *t, uint32_t i) {
  const sn_bar *bar = &t->bars[i];
  if (bar->what == UINT32_MAX) return -1;
  return bar->kind == SN_BAR_COMPUTE ? (int64_t)bar->what - 1 : bar->what;
}
static int64_t bar_step(const sn_timeline *t, uint32_t i) {
  return (int64_t)t->bars[i].step - (i ? t->bars[i - 1].step : 1);
}
static int64_t bar_ns(const sn_timeline *t, uint32_t i) {
  return t->bars[i].end_ns - t->bars[i].begin_ns;
}

static int64_t rect_tensor(const sn_timeline *t, uint32_t i) {
  return t->rects[i].tensor == UINT32_MAX ? -1 : (int64_t)t->rects[i].tensor;
}
static int64_t rect_from(const sn_timeline *t, uint32_t i) {
  return (int64_t)t->rects[i].from_instr - (i ? t->rects[i - 1].from_instr : 0);
}
static int64_t rect_length(const sn_timeline *t, uint32_t i) {
  return (int64_t)t->rects[i].to_instr - t->rects[i].from_instr;
}
static int64_t rect_block(const sn_timeline *t, uint32_t i) {
  return (int64_t)(t->rects[i].offset / SN_POOL_BLOCK);
}
static int64_t rect_blocks(const sn_timeline *t, uint32_t i) {
  return (int64_t)(t->rects[i].bytes / SN_POOL_BLOCK);
}

static int64_t rect_at(const sn_timeline *t, uint32_t i) {
  return (int64_t)(t->served.rects[i].offset / SN_CACHING_BLOCK);
}
static int64_t rect_size(const sn_timeline *t, uint32_t i) {
  return (int64_t)(t->served.rects[i].bytes / SN_CACHING_BLOCK);
}

static int64_t level_ns(const sn_timeline *t, uint32_t i) {
  return t->levels[i].ns - (i ? t->levels[i - 1].ns : 0);
}
static int64_t level_bytes(const sn_timeline *t, uint32_t i) {
  return (int64_t)t->levels[i].tensor_bytes;
}
static int64_t level_workspace(const sn_timeline *t, uint32_t i) {
  return (int64_t)t->levels[i].workspace_bytes;
}
static int64_t level_live(const sn_timeline *t, uint32_t i) {
  return t->levels[i].live_tensors;
}

typedef struct column {
  const char *name;
  column_value *value;
} column;

static void write_columns(const char *name, const column *columns, size_t n_columns, const sn_timeline *t,
                          uint32_t count, FILE *out) {
  fprintf(out, ",\n\"%s\":{", name);
  for (size_t i = 0; i < n_columns; i++) {
    if (i > 0) fputs(",\n", out);
    write_column(columns[i].name, t, count, columns[i].value, out);
  }
  fputs("}", out);
}

/* Gaps need the lane's bar before, which is not the row before. */
static void write_gaps(const sn_timeline *t, FILE *out) {
  int64_t end[SN_LANES] = {0};
  fputs(",\n\"gaps\":[", out);
  for (uint32_t i = 0; i < t->n_bars; i++) {
    const sn_bar *bar = &t->bars[i];
    fprintf(out, i ? ",%" PRId64 : "%" PRId64, bar->begin_ns - end[bar->lane]);
    end[bar->lane] = bar->end_ns;
  }
  fputs("]", out);
}

/* Places on the axis of columns, in thousandths from the beginning of the instruction's column. */
static void write_places(const sn_timeline *t, FILE *out) {
  const char *separator = "";
  fputs(",\n\"places\":[", out);
  for (uint32_t c = 0; c < t->n_columns; c++)
    for (uint32_t i = 0; i < t->columns[c].n_instrs; i++) {
      fprintf(out, "%s%.0f", separator, 1000 * (sn_timeline_place(t, t->columns[c].first_instr + i) - (c + 1)));
      separator = ",";
    }
  fputs("]", out);
}

/* Offset and size of each, in a row. */
static void write_extents(const char *name, const sn_extent *extents, uint32_t n, FILE *out) {
  fprintf(out, ",\"%s\":[", name);
  for (uint32_t i = 0; i < n; i++)
    fprintf(out, i ? ",%" PRIu64 ",%" PRIu64 : "%" PRIu64 ",%" PRIu64, extents[i].offset, extents[i].bytes);
  fputs("]", out);
}

static void write_served(const sn_served *served, FILE *out) {
  if (served->n_segments == 0) return;
  fprintf(out, ",\n\"served\":{\"end\":%" PRIu64 ",\"reserved\":%" PRIu64, served->end_bytes, served->reserved_bytes);
  write_extents("segments", served->segments, served->n_segments, out);
  write_extents("stays", served->stays, served->n_stays, out);
  fputs("}", out);
}

static void write_timeline(const sn_timeline *t, FILE *out) {
  static const column columns[] = {{"count", column_count}, {"dstep", column_step}};
  static const column steps[] = {
      {"dfullest", step_fullest}, {"bytes", step_bytes}, {"live", step_live}, {"workspace", step_workspace}};
  static const column bars[] = {{"code", bar_code}, {"what", bar_what}, {"dstep", bar_step}, {"ns", bar_ns}};
  static const column teams[] = {{"part", bar_part}, {"slot", bar_slot}, {"first", bar_first}, {"cores", bar_cores}};
  static const column rects[] = {
      {"tensor", rect_tensor}, {"dfrom", rect_from},    {"length", rect_length},
      {"block", rect_block},   {"blocks", rect_blocks}, {"at", rect_at}, /* of those that PyTorch's allocator serves */
      {"size", rect_size}};
  static const column levels[] = {
      {"dns", level_ns}, {"bytes", level_bytes}, {"workspace", level_workspace}, {"live", level_live}};
  fprintf(out, ",\n\"shown\":%" PRIu32, t->n_shown_columns);
  write_columns("columns", columns, sizeof columns / sizeof columns[0], t, t->n_columns, out);
  write_columns("steps", steps, sizeof steps / sizeof steps[0], t, t->n_steps, out);
  write_columns("bars", bars, sizeof bars / sizeof bars[0], t, t->n_bars, out);
  if (sn_timeline_is_corun(t)) write_columns("teams", teams, sizeof teams / sizeof teams[0], t, t->n_bars, out);
  write_gaps(t, out);
  write_places(t, out);
  size_t n_of_rects = sizeof rects / sizeof rects[0] - (t->served.n_segments > 0 ? 0 : 2);
  write_columns("rects", rects, n_of_rects, t, t->n_rects, out);
  write_served(&t->served, out);
  write_columns("levels", levels, sizeof levels / sizeof levels[0], t, t->n_levels, out);
}

/* Where each column's highest address is in use, and that address in blocks, as columns of `needs`; PyTorch's allocator
 * keeps in every step what it once has reserved. */
static void write_needs(const sn_timeline *t, const sn_result *r, const sn_footprint *f, FILE *out) {
  uint64_t resident = r->context_bytes + sn_persistent_total(&r->persistent);
  bool reserved = r->reserved_bytes > 0 && r->peak_device_bytes > resident;
  fputs(",\n\"needs\":{\"moment\":[", out);
  for (uint32_t s = 0; s < f->n_steps; s++)
    fprintf(out, s ? ",%" PRIu32 : "%" PRIu32, f->steps[s].moment - t->columns[s].first_instr);
  fputs("],\"top\":[", out);
  for (uint32_t s = 0; s < f->n_steps; s++)
    fprintf(out, s ? ",%" PRIu64 : "%" PRIu64,
            (reserved ? r->peak_device_bytes - resident : f->steps[s].top_bytes) / SN_POOL_BLOCK);
  fputs("]}", out);
}

/* ---- members ---- */

/* Members of an object; the first has no comma. */
static void begin_member(const char *key, FILE *out) {
  fprintf(out, ",\"%s\":", key);
}

static void write_text(const char *key, const char *text, FILE *out) {
  begin_member(key, out);
  sn_quote_json(text, out);
}

static void write_count(const char *key, uint64_t value, FILE *out) {
  begin_member(key, out);
  fprintf(out, "%" PRIu64, value);
}

static void write_bool(const char *key, bool value, FILE *out) {
  begin_member(key, out);
  fputs(value ? "true" : "false", out);
}

static void write_head(const sn_run *run, FILE *out) {
  char title[SN_NET_SPEC], gpus[SN_RUN_GPUS];
  sn_mesh mesh = sn_run_mesh(run);
  fprintf(out, "\"run\":{\"id\":%" PRId64, run->id);
  write_text("created", run->created, out);
  write_text("version", run->version, out);
  write_text("net", sn_net_called(run->net, run->net_name, title, sizeof title), out);
  write_count("batch", run->batch, out);
  write_count("image_height", run->image_height, out);
  write_count("image_width", run->image_width, out);
  write_count("image_depth", run->image_depth, out);
  write_bool("tokens", sn_net_is_sequence(run->net) || (sn_net_is_file(run->net) && run->image_width == 1), out);
  if (sn_net_is_recording(run->net)) write_bool("recorded", true, out);
  write_text("gpu", run->gpu, out);
  write_text("on", sn_run_gpus(run, gpus), out);
  write_count("copies", sn_mesh_copies(&mesh), out);
  write_text("device", run->device, out);
  write_count("memory", run->memory_bytes, out);
  write_bool("nominal", run->memory_nominal, out);
  write_count("pool_limit", run->conditions.pool_limit_bytes, out);
  write_count("host_memory", run->host_memory_bytes, out);
  write_text("workspace", run->conditions.workspace, out);
  write_text("external", run->conditions.external, out);
  write_text("allocator", run->conditions.allocator, out);
  write_text("optimizer", run->conditions.optimizer, out);
  write_text("precision", run->conditions.precision, out);
  write_text("freeze", run->conditions.freeze, out);
  write_count("accumulate", run->conditions.accumulate, out);
  write_bool("inference", run->conditions.inference, out);
  write_bool("shared_link", run->conditions.shared_link, out);
  write_count("layers", run->layers, out);
  write_count("parameters", run->parameters, out);
  write_count("macs", run->macs, out);
  fputs("}", out);
}

/* The answer that the run was stored with, from what could be read of it: nothing in it ends the page's script. */
static sn_status write_answer(const sn_run *run, FILE *out, sn_err *err) {
  if (!*run->answer) return SN_OK;
  sn_answer *answer = sn_answer_read(run->answer, err);
  char *text = answer ? sn_answer_write(answer, err) : NULL;
  if (text) begin_member("answer", out);
  for (const char *c = text; c && *c; c++)
    if (*c == '<' || *c == '>' || *c == '&')
      fprintf(out, "\\u%04x", (unsigned)*c);
    else
      putc(*c, out);
  free(text);
  sn_answer_free(answer);
  return err->code;
}

/* ---- what all strategies of a graph share ---- */

static void write_steps(const sn_timeline *t, FILE *out) {
  fputs("\"layers\":[", out);
  for (uint32_t s = 0; s < t->n_steps; s++) {
    if (s > 0) putc(',', out);
    sn_quote_json(t->steps[s].layer, out);
  }
  fputs("],\n\"ops\":[", out);
  for (uint32_t s = 0; s < t->n_steps; s++) {
    if (s > 0) putc(',', out);
    sn_quote_json(t->steps[s].transfer ? t->steps[s].transfer : t->steps[s].op, out);
  }
  fputs("],\n\"passes\":\"", out);
  for (uint32_t s = 0; s < t->n_steps; s++) putc(t->steps[s].pass[0], out); /* forward, backward, update */
  fputs("\"", out);
}

/* output, gradient, saved, parameter gradient, and x for scratch. */
static char kind_letter(const char *kind) {
  return strcmp(kind, "scratch") == 0 ? 'x' : kind[0];
}

static void write_tensors(const sn_timeline *t, FILE *out) {
  fputs(",\n\"tensors\":[", out);
  for (uint32_t i = 0; i < t->n_tensors; i++) {
    if (i > 0) putc(',', out);
    sn_quote_json(t->tensors[i].name, out);
  }
  fputs("],\n\"kinds\":\"", out);
  for (uint32_t i = 0; i < t->n_tensors; i++) putc(kind_letter(t->tensors[i].kind), out);
  fputs("\",\n\"bytes\":[", out);
  for (uint32_t i = 0; i < t->n_tensors; i++) fprintf(out, i ? ",%" PRIu64 : "%" PRIu64, t->tensors[i].bytes);
  fputs("]", out);
}

/* ---- a result ---- */

static void write_persistent(const sn_result *r, FILE *out) {
  const sn_persistent *p = &r->persistent;
  write_count("context", r->context_bytes, out);
  write_count("parameter_bytes", p->parameters, out);
  write_count("gradient_bytes", p->parameter_gradients, out);
  write_count("optimizer_bytes", p->optimizer_state, out);
  write_count("auxiliary_bytes", p->auxiliary, out);
  write_count("input_bytes", p->input_batch + p->labels, out);
  write_count("pool", r->pool_bytes, out);
}

/* What sets the pool, where that is known. */
static void write_pool(const sn_run *run, const sn_result *r, FILE *out) {
  char advice[200];
  write_count("pool_step", r->pool_step, out);
  write_text("pool_cause", r->pool_cause, out);
  write_count("pool_tensors", r->pool_tensor_bytes, out);
  write_count("pool_workspace", r->pool_workspace_bytes, out);
  write_count("pool_holes", r->pool_hole_bytes, out);
  write_text("pool_advice", sn_explain_pool(run, r, advice, sizeof advice), out);
}

/* What the strategy does and whose it is, for one that this snsim knows. */
static void write_sentence(const sn_result *r, FILE *out) {
  sn_err ignored = SN_ERR_INIT;
  sn_strategy strategy;
  char text[SN_STRATEGY_SENTENCE] = "";
  bool known = sn_strategy_parse(r->strategy, &strategy, &ignored) == SN_OK;
  if (known) sn_strategy_sentence(strategy, text);
  write_text("does", text, out);
  write_text("runtime", known ? sn_runtime_name(sn_runtime_of(strategy)) : "", out);
}

static void write_figures(const sn_run *run, const sn_result *r, FILE *out) {
  fputs("{\"strategy\":", out);
  sn_quote_json(r->strategy, out);
  write_sentence(r, out);
  write_bool("fits", r->fits, out);
  write_persistent(r, out);
  write_pool(run, r, out);
  write_count("device", r->peak_device_bytes, out);
  write_count("least", r->least_device_bytes, out);
  write_count("peak", r->peak_tensor_bytes, out);
  write_count("peak_step", r->peak_step, out);
  write_count("forks", r->peak_fork_bytes, out);
  write_count("live_at_peak", r->live_tensors_at_peak, out);
  write_count("workspace", r->workspace_peak_bytes, out);
  write_count("out", r->offload_bytes, out);
  write_count("in", r->prefetch_bytes, out);
  write_count("external", r->external_bytes, out);
  write_count("host", r->host_bytes, out);
  write_count("hits", r->cache_hits, out);
  write_count("misses", r->cache_misses, out);
  write_count("evictions", r->evictions, out);
  write_count("reruns", r->recomputed_layers, out);
  write_count("iteration_ns", (uint64_t)r->iteration_ns, out);
  write_count("compute_ns", (uint64_t)r->compute_ns, out);
  write_count("stall_ns", (uint64_t)r->stall_ns, out);
  write_count("allocation_ns", (uint64_t)r->allocation_ns, out);
}

/* What makes the peak, as the store has it; null where the run was stored without. */
static void write_peak(const sn_result *r, FILE *out) {
  fputs(r->peak ? ",\n\"peak_rows\":[" : ",\n\"peak_rows\":null", out);
  for (uint32_t i = 0; r->peak && i < r->n_peak; i++) {
    const sn_peak_row *row = &r->peak[i];
    fputs(i ? ",[" : "[", out);
    sn_quote_json(row->tensor, out);
    putc(',', out);
    sn_quote_json(row->producer, out);
    fprintf(out, ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",", row->bytes, row->since_step, row->next_step);
    sn_quote_json(row->advice, out);
    putc(']', out);
  }
  if (r->peak) putc(']', out);
}

/* What memory is made of, from the bottom of a stack to its top. */
static void write_parts(const sn_run *run, FILE *out) {
  fputs(",\n\"parts\":[", out);
  for (unsigned p = 0; p <= SN__PART_HOLES; p++)
    fprintf(out, "%s[\"%s\",\"%s\"]", p ? "," : "", sn__part_name(p, run), sn__parts[p].colour);
  fputs("]", out);
}

/* A graph among the entries, with the first entry that has it. */
typedef struct graph {
  const sn_page_entry *first;
  uint8_t *parts; /* per tensor: of what part of the stack it is */
} graph;

typedef struct graphs {
  graph *all;
  uint32_t count;
} graphs;

/* What runs again in a recording has tensors of its own, so the same strategies' graph may have others. */
static bool same_graph(const sn_page_entry *a, const sn_page_entry *b) {
  const sn_timeline *x = a->timeline, *y = b->timeline;
  if (a->result->graph != b->result->graph || x->n_tensors != y->n_tensors) return false;
  for (uint32_t t = 0; t < x->n_tensors; t++)
    if (strcmp(x->tensors[t].name, y->tensors[t].name) != 0) return false;
  return true;
}

static uint32_t graph_of(const graphs *g, const sn_page_entry *entry) {
  uint32_t i = 0;
  while (i < g->count && !same_graph(g->all[i].first, entry)) i++;
  return i;
}

static sn_status find_graphs(const sn_page_entry *entries, uint32_t n_entries, graphs *g, sn_err *err) {
  g->all = calloc((size_t)n_entries + 1, sizeof *g->all);
  if (!g->all) return sn_fail_memory(err);
  for (uint32_t i = 0; i < n_entries && err->code == SN_OK; i++)
    if (graph_of(g, &entries[i]) == g->count)
      g->all[g->count++] = (graph){&entries[i], sn__tensor_parts(entries[i].timeline, err)};
  return err->code;
}

static void write_graph(const sn_timeline *t, const uint8_t *parts, FILE *out) {
  fputs("{", out);
  write_steps(t, out);
  write_tensors(t, out);
  fputs(",\n\"part\":[", out);
  for (uint32_t i = 0; i < t->n_tensors; i++) fprintf(out, i ? ",%u" : "%u", (unsigned)parts[i]);
  fprintf(out, "],\n\"forward\":%" PRIu32 ",\"trained\":%" PRIu32 "}", t->n_forward, t->n_trained);
}

static sn_status write_entry(const sn_run *run, const sn_page_entry *entry, uint32_t number, const uint8_t *parts,
                             FILE *out, sn_err *err) {
  sn_footprint *f = sn_footprint_new(entry->timeline, parts, SN__PART_OTHER + 1, err);
  if (!f) return err->code;
  write_figures(run, entry->result, out);
  write_count("graph", number, out);
  write_peak(entry->result, out);
  write_timeline(entry->timeline, out);
  write_needs(entry->timeline, entry->result, f, out);
  fputs("}", out);
  sn_footprint_free(f);
  return SN_OK;
}

static sn_status write_all(const sn_run *run, const sn_page_entry *entries, uint32_t n_entries, const char *remedy,
                           const graphs *g, FILE *out, sn_err *err) {
  fputs("{", out);
  write_head(run, out);
  if (write_answer(run, out, err) != SN_OK) return err->code;
  if (remedy) write_text("remedy", remedy, out);
  write_parts(run, out);
  fputs(",\n\"graphs\":[\n", out);
  for (uint32_t i = 0; i < g->count; i++) {
    if (i > 0) fputs(",\n", out);
    write_graph(g->all[i].first->timeline, g->all[i].parts, out);
  }
  fputs("],\n\"results\":[\n", out);
  for (uint32_t i = 0; i < n_entries && err->code == SN_OK; i++) {
    uint32_t number = graph_of(g, &entries[i]);
    if (i > 0) fputs(",\n", out);
    write_entry(run, &entries[i], number, g->all[number].parts, out, err);
  }
  fputs("]}", out);
  return err->code;
}

sn_status sn__page_write_data(const sn_run *run, const sn_page_entry *entries, uint32_t n_entries, const char *remedy,
                              FILE *out, sn_err *err) {
  graphs g = {.count = 0};
  if (find_graphs(entries, n_entries, &g, err) == SN_OK) write_all(run, entries, n_entries, remedy, &g, out, err);
  for (uint32_t i = 0; i < g.count; i++) free(g.all[i].parts);
  free(g.all);
  return err->code;
}
