/* `snsim memcost`: what an iteration's tensors take in MXNet, by how they share memory (sim/ask/memcost.h). */
#include "sim/ask/memcost.h"

#include "cli/capacity/capacity.h"
#include "cli/frame/json.h"
#include "cli/frame/question.h"
#include "cli/frame/times.h"
#include "cli/options/options.h"
#include "cli/options/table.h"
#include "sim/share/colour.h"

#include <inttypes.h>
#include <stdio.h>

enum { MIB = 1 << 20, NAME_ROOM = 256 };

/* A question and its answer. */
typedef struct cost {
  const sn_args *args;
  const sn_net *net;
  const sn_device *device;
  sn_memcost memcost;
} cost;

static uint32_t count_steps(const sn_memcost *m) {
  return m->forward + m->backward + m->sums;
}

static void print_head(const cost *c, FILE *out) {
  const sn_memcost *m = &c->memcost;
  char name[NAME_ROOM];
  snprintf(name, sizeof name, "%s", c->net->name);
  fputs(sn_table_clean(name), out);
  sn_capacity_print_batch(c->net, "", out);
  if (c->args->options.iteration.precision != SN_FP32)
    fprintf(out, ", %s", sn_precision_name(c->args->options.iteration.precision));
  fputs(", as MXNet 1.2.1 plans it; times on ", out);
  sn_table_print_clean(out, c->device->name);
  fprintf(out, "\n%" PRIu32 " steps: %" PRIu32 " forward, %" PRIu32 " backward, %" PRIu32 " sums; match range %" PRIu32,
          count_steps(m), m->forward, m->backward, m->sums, c->args->match_range);
  if (c->args->colours == SN_COLOURS_ANCESTORS)
    fputs(", shared with ancestors\n\n", out);
  else
    fprintf(out, ", %" PRIu32 " colour%s\n\n", c->args->colours, c->args->colours == 1 ? "" : "s");
}

static void put_row(sn_table *table, const cost *c, sn_memcost_option option) {
  const sn_memcost_row *row = &c->memcost.rows[option];
  sn_table_cell(table, "%s", sn_memcost_option_name(option));
  sn_table_cell(table, "%.3f", (double)row->bytes / MIB);
  sn_table_cell(table, "%.1f", 100 * (double)row->bytes / (double)c->memcost.rows[SN_MEMCOST_NONE].bytes);
  sn_table_cell(table, "%" PRIu32, row->regions);
  sn_table_figure(table, true, (double)row->unshared_ns / 1e6);
  sn_table_figure(table, true, (double)row->critical_ns / 1e6);
}

static sn_status print_table(const cost *c, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "option", SN_TABLE_TEXT},
      {"", "MiB", SN_TABLE_NUMBER},
      {"of none", "%", SN_TABLE_NUMBER},
      {"", "regions", SN_TABLE_NUMBER},
      {"unshared", "path ms", SN_TABLE_NUMBER},
      {"as shared", "path ms", SN_TABLE_NUMBER},
  };
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  print_head(c, out->stream);
  for (sn_memcost_option o = 0; o < SN_MEMCOST_OPTIONS; o++) put_row(table, c, o);
  sn_table_print(table, out->stream, out->color, err);
  sn_table_free(table);
  sn_times_print_unmeasured(out->stream);
  return err->code;
}

static sn_status put_json_row(const sn_memcost_row *row, sn_memcost_option option, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "option", sn_memcost_option_name(option));
  sn_json_put_count(&o, "bytes", row->bytes);
  sn_json_put_count(&o, "regions", row->regions);
  sn_json_put_time(&o, "critical_unshared_ns", row->unshared_ns);
  sn_json_put_time(&o, "critical_ns", row->critical_ns);
  return sn_json_end(&o, option ? ",\n" : "\n", false, "", out, err);
}

static sn_status print_json(const cost *c, FILE *out, sn_err *err) {
  const sn_memcost *m = &c->memcost;
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "net", c->args->net);
  sn_json_put_text(&o, "net_name", c->net->name);
  sn_json_put_count(&o, "batch", c->net->batch);
  sn_json_put_count(&o, "image_height", sn_layer_rows(&c->net->layers[0]));
  sn_json_put_count(&o, "image_width", c->net->layers[0].out.w);
  sn_json_put_text(&o, "gpu", c->device->name);
  if (c->args->options.iteration.precision != SN_FP32)
    sn_json_put_text(&o, "precision", sn_precision_name(c->args->options.iteration.precision));
  sn_json_put_count(&o, "match_range", c->args->match_range);
  if (c->args->colours == SN_COLOURS_ANCESTORS)
    sn_json_put_text(&o, "colors", "ancestors");
  else
    sn_json_put_count(&o, "colors", c->args->colours);
  sn_json_put_count(&o, "steps", count_steps(m));
  sn_json_put_count(&o, "forward_steps", m->forward);
  sn_json_put_count(&o, "backward_steps", m->backward);
  sn_json_put_count(&o, "sums", m->sums);
  if (sn_json_end(&o, "", true, ",\n\"rows\":[", out, err) != SN_OK) return err->code;
  for (sn_memcost_option r = 0; r < SN_MEMCOST_OPTIONS && err->code == SN_OK; r++)
    put_json_row(&m->rows[r], r, out, err);
  fputs("\n]}\n", out);
  return err->code;
}

static sn_status print(const cost *c, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, c->args->output, c->args->color, err) != SN_OK) return err->code;
  if (c->args->json)
    print_json(c, out.stream, err);
  else
    print_table(c, &out, err);
  return sn_out_close(&out, err);
}

static sn_status find(cost *c, sn_err *err) {
  const sn_args *a = c->args;
  return sn_memcost_of(c->net, c->device, a->options.iteration.precision, a->match_range, a->colours, &c->memcost, err);
}

sn_status sn_cli_memcost(const sn_args *args, sn_err *err) {
  sn_device device;
  static const char example[] = "for instance: snsim memcost --net inception_v4 --batch 32";
  if (!args->net) return sn_fail(err, SN_BAD_USAGE, "--net is missing; %s", example);
  if (!args->batch) return sn_fail(err, SN_BAD_USAGE, "--batch is missing; %s", example);
  if (args->options.iteration.master)
    return sn_fail(err, SN_BAD_USAGE, "memcost is MXNet's planner, which keeps no four bytes beside two; ask for bf16");
  if (sn_device_load(args->gpu, &device, err) != SN_OK ||
      sn_device_check_precision(&device, args->options.iteration.precision, err) != SN_OK)
    return err->code;
  sn_net *net = sn_question_net(args, err);
  cost c = {.args = args, .net = net, .device = &device};
  if (net && net->recorded)
    sn_fail(err, SN_BAD_USAGE,
            "memcost is MXNet's planner, and a recording is of PyTorch's graph; ask snsim --net about it");
  if (net && err->code == SN_OK && find(&c, err) == SN_OK) print(&c, err);
  sn_net_free(net);
  return err->code;
}
