/* Script: what the gnuplot scripts of a run's pictures have in common: the title, units, the passes, legends. */
#include "models/zoo/zoo.h"
#include "plots/plot_internal.h"

#include <inttypes.h>
#include <string.h>

sn__unit sn__unit_for(uint64_t most) {
  bool large = most >= UINT64_C(4) << 30;
  return (sn__unit){large ? "GiB" : "MiB", large ? 1073741824.0 : 1048576.0};
}

/* ---- the parts of the script ---- */

void sn__put_subject(FILE *out, const sn__chart *chart, void (*put)(FILE *out, const char *text, size_t most)) {
  const sn_run *first = chart->curves[0].run;
  char title[SN_NET_SPEC], gpus[SN_RUN_GPUS];
  bool net = true, batch = true, gpu = true, precision = strcmp(first->conditions.precision, "fp32") != 0,
       freeze = *first->conditions.freeze;
  for (unsigned i = 1; i < chart->n_curves; i++) {
    const sn_run *run = chart->curves[i].run;
    net = net && strcmp(run->net, first->net) == 0;
    batch = batch && run->batch == first->batch;
    gpu = gpu && strcmp(run->gpu, first->gpu) == 0 && strcmp(run->conditions.parallel, first->conditions.parallel) == 0;
    precision = precision && strcmp(run->conditions.precision, first->conditions.precision) == 0;
    freeze = freeze && strcmp(run->conditions.freeze, first->conditions.freeze) == 0;
  }
  put(out, net ? sn_net_called(first->net, first->net_name, title, sizeof title) : "several networks", 48);
  if (batch) fprintf(out, ", batch %" PRIu32, first->batch);
  if (precision) fprintf(out, ", %s", first->conditions.precision);
  if (freeze) {
    fputs(", frozen: ", out);
    put(out, first->conditions.freeze, 32);
  }
  if (gpu) {
    fputs(", on ", out);
    put(out, sn_run_gpus(first, gpus), 60);
  }
  if (!chart->timeline || chart->kind == SN_PLOT_CORUN) return;
  fputs(chart->form == SN__FORM_TEXT ? ":\n" : ": ", out);
  put(out, chart->curves[0].result->strategy, 60);
}

const char *sn__axis_name(const sn_timeline *t) {
  return sn_timeline_is_corun(t) ? "operation, in the order in which they start" : "step of the iteration";
}

void sn__put_passes(FILE *out, const sn__chart *chart, double low, double divide, double high, double top) {
  const char *lift = sn__look_of(chart->form)->lift;
  fprintf(out,
          "set arrow from first %.9g, graph 0 to first %.9g, graph %.4g nohead linecolor rgb '#808080' linewidth 0.7 "
          "front\n",
          divide, divide, top);
  fprintf(out, "set label 'forward' at first %.9g, graph 1 center offset 0,%s\n", (low + divide) / 2, lift);
  fprintf(out, "set label 'backward' at first %.9g, graph 1 center offset 0,%s\n", (divide + high) / 2, lift);
}

void sn__put_update(FILE *out, const sn__chart *chart, double low, double high) {
  fprintf(out,
          "set arrow from first %.9g, graph 0 to first %.9g, graph 1 nohead linecolor rgb '#808080' linewidth 0.7 "
          "front\n",
          low, low);
  fprintf(out, "set label 'update' at first %.9g, graph 1 center offset 0,%s\n", (low + high) / 2,
          sn__look_of(chart->form)->lift);
}

void sn__put_key_panel(FILE *out, const sn__chart *chart, double top) {
  fputs("unset label\nunset xlabel\nunset ylabel\nunset border\nunset tics\nset xrange [0:1]\nset yrange [0:1]\n"
        "set lmargin at screen 0.02\nset rmargin at screen 0.98\nset bmargin at screen 0.01\n",
        out);
  fprintf(out, "set tmargin at screen %.3f\n", top);
  fprintf(out, "set key center center horizontal Left reverse samplen 1.5 width 1 font ',%s'\n",
          sn__look_of(chart->form)->key_font);
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
  case SN_PLOT_DEVICE:
    return sn__device_write(out, chart, err);
  case SN_PLOT_BREAKDOWN:
    return sn__breakdown_write(out, chart, err);
  case SN_PLOT_TIMELINE:
    return sn__lanes_write(out, chart, err);
  case SN_PLOT_POOL:
    sn__pool_write(out, chart);
    return SN_OK;
  case SN_PLOT_CORES:
    return sn__cores_write(out, chart, err);
  case SN_PLOT_CORUN:
    return sn__corun_write(out, chart, err);
  default:
    sn__curves_write(out, chart);
    return SN_OK;
  }
}

sn_status sn__text_write(FILE *out, const sn__chart *chart, sn_err *err) {
  switch (chart->kind) {
  case SN_PLOT_DEVICE:
    return sn__device_text(out, chart, err);
  case SN_PLOT_BREAKDOWN:
    return sn__breakdown_text(out, chart, err);
  case SN_PLOT_TIMELINE:
    return sn__lanes_text(out, chart, err);
  case SN_PLOT_CORES:
    return sn__cores_text(out, chart, err);
  case SN_PLOT_CORUN:
    return sn__corun_text(out, chart, err);
  default:
    return sn__pool_text(out, chart, err);
  }
}
