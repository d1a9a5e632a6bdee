/* `snsim run`: trains a network for real by the plans of one or several strategies and prints what was measured beside
 * what was planned, and whether every strategy gave the same result as the first, to the bit. */
#include "cli/json.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/train.h"
#include "models/zoo.h"

#include <inttypes.h>
#include <stdio.h>

static const double MIB = 1048576.0;

/* Equal results need equal numbers of iterations. */
static const char *verdict(const sn_run *run, const sn_result *r) {
  if (r->iterations != run->iterations) return "stopped";
  return r->digest == run->results[0].digest ? "same" : "DIFFERS";
}

static sn_status print_table(const sn_run *run, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {{"", "strategy", SN_TABLE_TEXT},
                                            {"pool", "MiB", 0},
                                            {"", "used", 0},
                                            {"live", "tensors", 0},
                                            {"out", "MiB", 0},
                                            {"in", "MiB", 0},
                                            {"extra", "fwd", 0},
                                            {"iter", "ms", SN_TABLE_GAP},
                                            {"stall", "ms", 0},
                                            {"images", "/s", 0},
                                            {"", "loss", SN_TABLE_GAP},
                                            {"right", "%", 0},
                                            {"", "result", SN_TABLE_TEXT | SN_TABLE_GAP}};
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  for (uint32_t i = 0; i < run->n_results; i++) {
    const sn_result *r = &run->results[i];
    sn_table_cell(table, "%s", r->strategy);
    sn_table_cell(table, "%.3f", (double)r->reserved_pool_bytes / MIB);
    sn_table_cell(table, "%.3f", (double)r->pool_bytes / MIB);
    sn_table_cell(table, "%" PRIu32, r->max_live_tensors);
    sn_table_cell(table, "%.2f", (double)r->offload_bytes / MIB);
    sn_table_cell(table, "%.2f", (double)r->prefetch_bytes / MIB);
    sn_table_cell(table, "%" PRIu32, r->recomputed_layers);
    sn_table_cell(table, "%.2f", (double)r->iteration_ns / 1e6);
    sn_table_cell(table, "%.2f", (double)r->stall_ns / 1e6);
    sn_table_cell(table, "%.2f", r->images_per_second);
    sn_table_cell(table, "%.6f", r->loss);
    sn_table_cell(table, "%.1f", 100 * r->accuracy);
    sn_table_cell(table, "%s", verdict(run, r));
  }
  sn_status status = sn_table_print(table, out->stream, out->color, err);
  sn_table_free(table);
  return status;
}

static sn_status print_json(const sn_run *run, FILE *out, sn_err *err) {
  sn_json_object head = sn_json_begin();
  sn_json_put_text(&head, "net", run->net);
  sn_json_put_count(&head, "batch", run->batch);
  sn_json_put_text(&head, "backend", run->results[0].source);
  sn_json_put_text(&head, "device", run->device);
  sn_json_put_text(&head, "data", run->data);
  sn_json_put_count(&head, "iterations", run->iterations);
  sn_json_end(&head, "", true, ",\"results\":[", out, err);
  for (uint32_t i = 0; i < run->n_results && err->code == SN_OK; i++) {
    const sn_result *r = &run->results[i];
    sn_json_object o = sn_json_begin();
    sn_json_put_text(&o, "strategy", r->strategy);
    sn_json_put_count(&o, "reserved_pool_bytes", r->reserved_pool_bytes);
    sn_json_put_count(&o, "touched_pool_bytes", r->pool_bytes);
    sn_json_put_count(&o, "measured_device_bytes", r->peak_device_bytes);
    sn_json_put_count(&o, "external_bytes", r->external_bytes);
    sn_json_put_count(&o, "measured_out_bytes", r->offload_bytes);
    sn_json_put_count(&o, "measured_in_bytes", r->prefetch_bytes);
    sn_json_put_count(&o, "max_live_tensors_measured", r->max_live_tensors);
    sn_json_put_count(&o, "recomputed_layers", r->recomputed_layers);
    sn_json_put_count(&o, "iterations", r->iterations);
    sn_json_put_count(&o, "measured_iteration_ns", (uint64_t)r->iteration_ns);
    sn_json_put_count(&o, "compute_ns", (uint64_t)r->compute_ns);
    sn_json_put_count(&o, "stall_ns", (uint64_t)r->stall_ns);
    sn_json_put_real(&o, "images_per_second", r->images_per_second);
    sn_json_put_real(&o, "loss", r->loss);
    sn_json_put_real(&o, "accuracy", r->accuracy);
    sn_json_put_bool(&o, "bit_equal_to_first", r->digest != 0 && r->digest == run->results[0].digest);
    sn_json_end(&o, i ? ",\n" : "\n", false, "", out, err);
  }
  fputs("\n]}\n", out);
  return err->code;
}

static sn_status print(const sn_args *args, const sn_run *run, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  if (args->json) {
    print_json(run, out.stream, err);
  } else {
    const char *data = args->data ? run->data : "synthetic data";
    fprintf(out.stream, "%s, batch %" PRIu32 ", %" PRIu64 " iterations, %s, on %s\n\n", run->net, run->batch,
            run->iterations, data, run->device);
    print_table(run, &out, err);
  }
  return sn_out_close(&out, err);
}

sn_status sn_cli_run(const sn_args *args, sn_err *err) {
  if (!args->net || !args->batch)
    return sn_fail(err, SN_BAD_USAGE, "%s is missing; for instance: snsim run --net lenet --batch 32",
                   args->net ? "--batch" : "--net");
  sn_train_prepare(args);
  sn_net *net = sn_net_load(args->net, args->batch, args->image, err);
  if (!net) return err->code;
  sn_session_options options = sn_train_options(args);
  sn_run *run = sn_train(args, net, &options, err);
  if (run) { /* what was measured is shown also where a later strategy failed */
    sn_err printing = SN_ERR_INIT;
    if (print(args, run, &printing) != SN_OK && err->code == SN_OK) *err = printing;
    if (err->code == SN_OK) sn_train_judge(run, err);
  }
  sn_run_free(run);
  sn_net_free(net);
  return err->code;
}
