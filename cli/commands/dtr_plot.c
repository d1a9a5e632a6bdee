/* `snsim plot --kind dtr LOG..`: the overhead of recomputing over the budget, of logs that are replayed for it. */
#include "plots/dtr.h"

#include "cli/commands/dtr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TITLE = 20 };

typedef struct picture {
  sn_dtr_replay *replays[SN_PLOT_DTR_PANELS];
  sn_dtr_point *points;                        /* of all panels */
  char names[SN_PLOT_DTR_PANELS][SN_NET_NAME]; /* of recordings */
  char titles[SN_PLOT_DTR_PANELS][2 * TITLE];
  sn_dtr_chart chart;
} picture;

static int by_ratio(const void *a, const void *b) {
  const sn_dtr_point *x = a, *y = b;
  return (x->ratio > y->ratio) - (x->ratio < y->ratio);
}

/* The curve of one heuristic: what succeeds, by ratio. Returns the points behind it. */
static sn_dtr_point *fill_curve(sn_dtr_curve *curve, const sn_dtr_row *rows, uint32_t n, sn_dtr_point *points) {
  *curve = (sn_dtr_curve){.name = sn_dtr_heuristic_name(rows->heuristic), .points = points};
  for (uint32_t i = 0; i < n; i++)
    if (rows[i].answer.status == SN_DTR_OK) points[curve->n_points++] = (sn_dtr_point){rows[i].ratio, rows[i].overhead};
  qsort(points, curve->n_points, sizeof *points, by_ratio);
  return points + curve->n_points;
}

/* The name of a log, or of what was recorded; where several are drawn, as much of it as stands above a panel. */
static const char *title_of(const sn_args *args, uint32_t index, const char *recorded, char *title) {
  const char *name = *recorded ? recorded : sn_dtr_log_name(args->operands[index]), *end = strstr(name, ".log");
  size_t length = end && end > name ? (size_t)(end - name) : strlen(name);
  if (args->n_operands == 1) return name;
  snprintf(title, (size_t)2 * TITLE, "%.*s%s", (int)(length < TITLE ? length : TITLE - 2), name,
           length < TITLE ? "" : "..");
  return title;
}

static sn_status fill(picture *p, const sn_args *args, const sn_dtr_asked *asked, sn_err *err) {
  size_t rows = (size_t)args->n_operands * asked->n_heuristics * asked->n_budgets;
  sn_dtr_point *next = p->points = calloc(rows + 1, sizeof *p->points);
  if (!p->points) return sn_fail_memory(err);
  p->chart.n_curves = asked->n_heuristics;
  for (uint32_t i = 0; i < args->n_operands && err->code == SN_OK; i++) {
    sn_dtr_panel *panel = &p->chart.panels[p->chart.n_panels++];
    const sn_dtr_replay *r = p->replays[i] = sn_dtr_asked_replay(args, asked, i, p->names[i], err);
    panel->name = title_of(args, i, p->names[i], p->titles[i]);
    for (uint32_t h = 0; r && h < asked->n_heuristics; h++)
      next = fill_curve(&panel->curves[h], &r->rows[(size_t)h * asked->n_budgets], asked->n_budgets, next);
  }
  return err->code;
}

static sn_status draw(const picture *p, const sn_args *args, sn_err *err) {
  sn_out out;
  sn_plot_options options = {.kind = SN_PLOT_DTR, .path = args->output};
  if (options.path) {
    if (sn_plot_dtr(&p->chart, &options, err) == SN_OK) sn_out_say("%s written", options.path);
    return err->code;
  }
  if (sn_out_open(&out, NULL, args->color, err) != SN_OK) return err->code;
  options.terminal = out.stream;
  if (sn_out_size(out.stream, &options.columns, &options.rows) && options.rows > 1) options.rows--; /* the prompt's */
  sn_plot_dtr(&p->chart, &options, err);
  return sn_out_close(&out, err);
}

sn_status sn_cli_plot_dtr(const sn_args *args, sn_err *err) {
  sn_dtr_asked asked;
  picture p = {.points = NULL};
  if (args->n_operands == 0)
    return sn_fail(err, SN_BAD_USAGE, "--kind dtr draws logs: snsim plot --kind dtr resnet32.log -o dtr.png");
  if ((args->output && sn_plot_check_path(args->output, err) != SN_OK) || sn_dtr_asked_of(args, &asked, err) != SN_OK)
    return err->code;
  if (fill(&p, args, &asked, err) == SN_OK) draw(&p, args, err);
  for (uint32_t i = 0; i < args->n_operands; i++) sn_dtr_replay_free(p.replays[i]);
  free(p.points);
  return err->code;
}
