/* `snsim show-net`: the layers of a network with what each makes, has and computes, and what PyTorch keeps of it for
 * backward. With --json the network itself, as a file that --net reads (docs/networks.md). */
#include "cli/options/options.h"
#include "cli/options/table.h"
#include "models/op/op.h"
#include "models/zoo/zoo.h"
#include "sim/graph/route.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20, NAME_ROOM = 256 };

/* By layer: bytes of what it makes in forward and backward reads. */
static uint64_t *find_kept(const sn_route *r) {
  uint64_t *kept = calloc((size_t)r->n_layers, sizeof *kept);
  bool *seen = calloc((size_t)r->n_tensors + 1, sizeof *seen);
  for (uint32_t s = 0; kept && seen && s < r->n_steps; s++) {
    const sn_step *step = &r->steps[s];
    for (uint32_t i = 0; i < step->n_accesses && step->pass == SN_BACKWARD; i++) {
      uint32_t t = r->accesses[step->first_access + i].tensor;
      const sn_tensor *tensor = &r->tensors[t];
      if (seen[t] || (tensor->role != SN_VALUE && tensor->role != SN_SAVED)) continue;
      seen[t] = true;
      kept[tensor->layer] += tensor->bytes;
    }
  }
  if (!seen) free(kept), kept = NULL;
  free(seen);
  return kept;
}

static void put_count(sn_table *table, uint64_t count) {
  if (count > 0)
    sn_table_cell(table, "%" PRIu64, count);
  else
    sn_table_cell(table, "-");
}

static void put_scaled(sn_table *table, uint64_t count, double scale) {
  if (count > 0)
    sn_table_cell(table, "%.3f", (double)count / scale);
  else
    sn_table_cell(table, "-");
}

static void put_layer(sn_table *table, const sn_layer *layer, uint64_t kept) {
  char name[NAME_ROOM];
  snprintf(name, sizeof name, "%s", layer->name);
  sn_table_cell(table, "%s", sn_table_clean(name));
  sn_table_cell(table, "%s", sn_op_of(layer)->name);
  if (layer->planes > 0)
    sn_table_cell(table, "%" PRIu32 "x%" PRIu32 "x%" PRIu32 "x%" PRIu32, layer->out.c, layer->planes,
                  sn_layer_rows(layer), layer->out.w);
  else
    sn_table_cell(table, "%" PRIu32 "x%" PRIu32 "x%" PRIu32, layer->out.c, layer->out.h, layer->out.w);
  put_count(table, layer->parameters);
  put_scaled(table, layer->macs, 1e6);
  put_scaled(table, kept, MIB);
}

static void print_totals(const sn_net *net, const uint64_t *kept, FILE *out) {
  uint64_t all = 0;
  uint32_t forks = 0;
  for (uint32_t i = 0; i < net->n_layers; i++) {
    all += kept[i];
    forks += net->layers[i].op == SN_FORK;
  }
  fprintf(out,
          "\n%" PRIu32 " layers, %" PRIu64 " parameters (%.2f MiB), %.3f M multiply-adds forward, %.3f MiB kept for "
          "backward\n",
          net->n_layers - forks, net->parameters, (double)net->parameters * sizeof(float) / MIB,
          (double)net->macs / 1e6, (double)all / MIB);
  uint64_t trained = sn_freeze_trained(NULL, net);
  if (net->adapted)
    fprintf(out, "%" PRIu64 " parameters are trained, those of adapters: %.4f %%\n", trained,
            100.0 * (double)trained / (double)net->parameters);
}

static sn_status print_table(const sn_route *r, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "layer", SN_TABLE_TEXT},
      {"", "op", SN_TABLE_TEXT},
      {"", "output", SN_TABLE_NUMBER},
      {"", "parameters", SN_TABLE_NUMBER},
      {"multiply-", "adds/M", SN_TABLE_NUMBER},
      {"kept", "MiB", SN_TABLE_NUMBER},
  };
  const sn_net *net = r->net;
  uint64_t *kept = find_kept(r);
  if (!kept) return sn_fail_memory(err);
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  sn_table_printf(out->stream, "%s, batch %" PRIu32 ", float32; output: channels x %s of one %s\n\n", net->name,
                  net->batch, net->layers[0].planes > 0 ? "depth x height x width" : "height x width",
                  net->layers[0].planes > 0 ? "volume" : "image");
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].op != SN_FORK) put_layer(table, &net->layers[i], kept[i]);
  if (sn_out_table(out, table, err) == SN_OK) print_totals(net, kept, out->stream);
  sn_table_free(table);
  free(kept);
  return err->code;
}

static bool is_json(const sn_args *args) {
  size_t length = args->output ? strlen(args->output) : 0;
  return args->json || (length > 5 && strcmp(args->output + length - 5, ".json") == 0);
}

sn_status sn_cli_show_net(const sn_args *args, sn_err *err) {
  if (!args->net) return sn_fail(err, SN_BAD_USAGE, "--net is missing; for instance: snsim show-net --net lenet");
  if (is_json(args) && sn_net_lora(args->net))
    return sn_fail(err, SN_BAD_USAGE,
                   "a network's file holds no adapters: write it without --lora, and give --lora with --net FILE");
  sn_out out;
  sn_net *net = sn_net_load(args->net, args->batch ? args->batch : 1, args->image, err);
  if (net && sn_net_check_training(net, args->options.iteration.inference, err) != SN_OK) {
    sn_net_free(net);
    return err->code;
  }
  sn_route *route =
      net ? sn_route_new_for(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, (sn_iteration){0}, NULL, err) : NULL;
  if (route && sn_out_open(&out, args->output, args->color, err) == SN_OK) {
    if (!is_json(args))
      print_table(route, &out, err);
    else if (sn_net_write_json(net, out.stream, err) == SN_OK)
      fputs("\n", out.stream);
    sn_out_close(&out, err);
  }
  sn_route_free(route);
  sn_net_free(net);
  return err->code;
}
