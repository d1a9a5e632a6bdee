/* Trace events; see the header. One event a line, in the order of the plan; the format wants no other. Source: "Trace
 * Event Format", the Chromium project. */
#include "plots/page/trace_events.h"

#include "base/quote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

enum { PROCESS = 1 };

static const char *track_name(sn_lane lane) {
  return lane == SN_LANE_OUT  ? "copy out (device to host)"
         : lane == SN_LANE_IN ? "copy in (host to device)"
                              : sn_lane_name(lane);
}

/* The colours of chrome://tracing's own palette; Perfetto picks its own by name. */
static const char *const colors[SN_BAR_KINDS] = {
    "thread_state_running", "rail_response", "rail_load", "terrible", "bad", "bad"};

static void write_us(const char *key, int64_t ns, FILE *out) {
  fprintf(out, ",\"%s\":%" PRId64 ".%03" PRId64, key, ns / 1000, ns % 1000);
}

static void write_text(const char *before, const char *text, FILE *out) {
  fputs(before, out);
  sn_quote_json(text, out);
}

/* Begins an event; the first has no comma. */
static void begin(const char *phase, unsigned track, FILE *out) {
  fprintf(out, ",\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%u", phase, PROCESS, track);
}

static unsigned track_of(const sn_bar *bar) {
  return bar->lane + 1u;
}

/* ---- the tracks ---- */

static void write_tracks(const sn_timeline *t, const sn_trace_head *head, FILE *out) {
  sn_lane lanes[SN_LANES];
  uint32_t n_lanes = sn_timeline_lanes(t, lanes);
  fprintf(out, "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":", PROCESS);
  sn_quote_json(head->net, out);
  fputs("}}", out);
  begin("M", 0, out);
  write_text(",\"name\":\"process_labels\",\"args\":{\"labels\":", head->strategy, out);
  fputs("}}", out);
  for (uint32_t i = 0; i < n_lanes; i++) {
    begin("M", lanes[i] + 1u, out);
    fprintf(out, ",\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", track_name(lanes[i]));
    begin("M", lanes[i] + 1u, out);
    fprintf(out, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}}", i);
  }
}

/* ---- slices ---- */

static const char *category_of(const sn_timeline *t, const sn_bar *bar) {
  if (sn_bar_is_idle(t, bar)) return "idle";
  if (bar->kind != SN_BAR_COMPUTE) return sn_bar_kind_name((sn_bar_kind)bar->kind);
  return bar->rerun ? "rerun" : t->steps[bar->what - 1].pass;
}

static void write_compute_args(const sn_timeline *t, const sn_bar *bar, FILE *out) {
  const sn_timeline_step *step = &t->steps[bar->what - 1];
  fprintf(out, "\"op\":\"%s\",\"pass\":\"%s\",\"computes_step\":%u,\"workspace_bytes\":%" PRIu64 ",\"rerun\":%s",
          step->transfer ? step->transfer : step->op, step->pass, bar->what, bar->bytes, bar->rerun ? "true" : "false");
  if (bar->team.count == 0) return;
  fprintf(out, ",\"part\":\"%s\",\"cores\":{", sn_step_part_name((sn_step_part)bar->part));
  if (bar->team.slot == SN_SLOT_ANY)
    fprintf(out, "\"count\":%u,\"slot\":\"any\"}", bar->team.count);
  else
    fprintf(out, "\"first\":%u,\"count\":%u,\"slot\":%u}", bar->team.first, bar->team.count, bar->team.slot);
}

static void write_args(const sn_timeline *t, const sn_bar *bar, FILE *out) {
  fprintf(out, ",\"args\":{\"step\":%u,", bar->step);
  if (bar->kind == SN_BAR_COMPUTE) {
    write_compute_args(t, bar, out);
  } else if (bar->kind == SN_BAR_STALL) {
    write_text("\"waits_for\":", bar->what < t->n_bars ? t->bars[bar->what].name : "a fence", out);
  } else {
    write_text(bar->what == UINT32_MAX ? "\"workspace_of\":" : "\"tensor\":", bar->name, out);
    fprintf(out, ",\"bytes\":%" PRIu64, bar->bytes);
  }
  fputs("}}", out);
}

/* What stands on the slice: told apart at a glance, also where all have one colour. */
static void write_name(const sn_timeline *t, const sn_bar *bar, FILE *out) {
  static const char *const before[SN_BAR_KINDS] = {"", "out: ", "in: ", "stall: ", "alloc: ", "free: "};
  const sn_bar *named = bar->kind == SN_BAR_STALL && bar->what < t->n_bars ? &t->bars[bar->what] : bar;
  const char *transfer = named->kind == SN_BAR_COMPUTE ? t->steps[named->what - 1].transfer : NULL;
  char text[200];
  bool of_workspace = bar->what == UINT32_MAX && bar->kind != SN_BAR_STALL;
  snprintf(text, sizeof text, "%s%s%s%s%s%s", sn_bar_is_idle(t, bar) ? "idle: " : before[bar->kind],
           transfer ? transfer : "", transfer ? ": " : "", named->name, sn_bar_part(named),
           of_workspace ? " (workspace)"
           : bar->rerun ? " (re-run)"
                        : "");
  write_text(",\"name\":", text, out);
}

static void write_slice(const sn_timeline *t, const sn_bar *bar, FILE *out) {
  begin("X", track_of(bar), out);
  write_name(t, bar, out);
  fprintf(out, ",\"cat\":\"%s\",\"cname\":\"%s\"", category_of(t, bar),
          sn_bar_is_idle(t, bar) ? "grey"
          : bar->rerun           ? "yellow"
                                 : colors[bar->kind]);
  write_us("ts", bar->begin_ns, out);
  write_us("dur", bar->end_ns - bar->begin_ns, out);
  write_args(t, bar, out);
}

/* ---- arrows and counters ---- */

/* An arrow leaves its slice within it: at its end the next one may have begun. */
static void write_arrow(const sn_timeline *t, uint32_t number, FILE *out) {
  const sn_arrow *arrow = &t->arrows[number];
  const sn_bar *from = &t->bars[arrow->from_bar], *to = &t->bars[arrow->to_bar];
  int64_t leaves = from->end_ns > from->begin_ns ? from->end_ns - 1 : from->begin_ns;
  for (int end = 0; end < 2; end++) {
    begin(end ? "f" : "s", track_of(end ? to : from), out);
    fprintf(out, ",\"id\":%u,\"cat\":\"tensor\"", number + 1);
    write_text(",\"name\":", t->tensors[arrow->tensor].name, out);
    write_us("ts", end ? to->begin_ns : leaves, out);
    fputs(end ? ",\"bp\":\"e\"}" : "}", out);
  }
}

static void write_level(const sn_level *level, FILE *out) {
  begin("C", 0, out);
  write_us("ts", level->ns, out);
  fprintf(out, ",\"name\":\"pool (bytes)\",\"args\":{\"tensors\":%" PRIu64 ",\"workspace\":%" PRIu64 "}}",
          level->tensor_bytes, level->workspace_bytes);
  begin("C", 0, out);
  write_us("ts", level->ns, out);
  fprintf(out, ",\"name\":\"live tensors\",\"args\":{\"tensors\":%u}}", level->live_tensors);
}

static void write_other(const sn_timeline *t, const sn_trace_head *head, FILE *out) {
  write_text("\n],\"displayTimeUnit\":\"ms\",\"otherData\":{\"net\":", head->net, out);
  write_text(",\"device\":", head->device, out);
  write_text(",\"strategy\":", head->strategy, out);
  write_text(",\"snsim\":", head->version, out);
  fprintf(out,
          ",\"batch\":%u,\"iteration_ns\":%" PRId64 ",\"pool_bytes\":%" PRIu64 ",\"pool_offered_bytes\":%" PRIu64
          "}}\n",
          head->batch, t->end_ns, t->pool_bytes, t->pool_limit);
}

sn_status sn_trace_events_write(const sn_timeline *t, const sn_trace_head *head, FILE *out, sn_err *err) {
  errno = 0;
  fputs("{\"traceEvents\":[\n", out);
  write_tracks(t, head, out);
  for (uint32_t b = 0; b < t->n_bars; b++) write_slice(t, &t->bars[b], out);
  for (uint32_t a = 0; a < t->n_arrows; a++) write_arrow(t, a, out);
  for (uint32_t l = 0; l < t->n_levels; l++) write_level(&t->levels[l], out);
  write_other(t, head, out);
  if (fflush(out) == 0 && !ferror(out)) return SN_OK;
  return sn_fail(err, SN_BAD_FILE, "the trace cannot be written: %s", strerror(errno ? errno : EIO));
}
