/* `snsim check PLAN.json` and `snsim play PLAN.json`: a plan from elsewhere, proved, timed and drawn
 * (sim/ask/plan_file.h). */
#include "sim/ask/plan_file.h"

#include "base/units.h"
#include "cli/frame/json.h"
#include "cli/frame/question.h"
#include "cli/frame/report.h"
#include "cli/options/options.h"
#include "plots/plot.h"
#include "sim/graph/route.h"

#include <inttypes.h>
#include <string.h>

/* The GPU of --gpu, else the plan's, where it is one of snsim's, else the default. */
static sn_status load_device(const sn_args *args, const sn_plan_file *file, sn_device *device, sn_err *err) {
  sn_err unknown = SN_ERR_INIT;
  uint64_t margin;
  bool own = !args->profile && file->head.gpu && !strpbrk(file->head.gpu, "/.");
  if (!own || sn_device_load(file->head.gpu, device, &unknown) != SN_OK) sn_device_load(args->gpu, device, err);
  bool said = !args->profile && !args->memory.given && file->head.memory_bytes > 0;
  if (err->code == SN_OK && said) device->memory_bytes = file->head.memory_bytes;
  if (err->code == SN_OK && said) device->host_memory_bytes = file->head.host_memory_bytes;
  return err->code == SN_OK ? sn_question_adapt(args, device, &margin, err) : err->code;
}

static sn_plan_file *open_file(const sn_args *args, sn_device *device, sn_err *err) {
  sn_plan_file *file = sn_plan_file_load(args->operand, err);
  if (file && load_device(args, file, device, err) == SN_OK) sn_plan_file_check(file, args->net, device, err);
  return file;
}

/* ---- check ---- */

static bool is_input(const sn_err *err) {
  return err->code == SN_OK || err->code == SN_BAD_INPUT;
}

static void put_sizes(const sn_plan_file *file, sn_json_object *o) {
  sn_json_put_count(o, "instructions", file->plan->n_instrs);
  sn_json_put_count(o, "pool_bytes", file->plan->pool_bytes);
  sn_json_put_count(o, "largest_load_bytes", file->plan->reserved_peak);
  sn_json_put_count(o, "external_bytes", file->plan->external_bytes);
}

/* "rule" is "format" where the file is no plan of the network, and "" where all is well. */
static sn_status print_check_json(const sn_plan_file *file, const sn_err *why, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  bool ok = why->code == SN_OK, broken = file && file->report.rule != SN_RULE_NONE;
  sn_json_put_bool(&o, "ok", ok);
  if (broken && file->report.instruction < file->plan->n_instrs)
    sn_json_put_count(&o, "instruction", file->report.instruction);
  else
    sn_json_put_null(&o, "instruction");
  sn_json_put_text(&o, "rule", ok ? "" : broken ? sn_rule_name(file->report.rule) : "format");
  sn_json_put_text(&o, "message", why->text);
  if (ok && file) put_sizes(file, &o);
  return sn_json_end(&o, "", false, "\n", out, err);
}

static void print_check(const sn_args *args, const sn_plan_file *file, FILE *out) {
  const sn_plan *plan = file->plan;
  char pool[SN_UNIT_TEXT], load[SN_UNIT_TEXT], copied[SN_UNIT_TEXT], back[SN_UNIT_TEXT];
  char strategy[SN_STRATEGY_TEXT];
  fprintf(out, "%s: right, and right for every timing of its lanes\n", args->operand);
  fprintf(out,
          "%s, batch %" PRIu32 ", %s: %" PRIu32 " instructions for %" PRIu32 " steps, %" PRIu32 " of them re-run\n",
          file->net->name, file->net->batch, sn_strategy_name(file->head.strategy, strategy), plan->n_instrs,
          file->route->n_steps, plan->counts.recomputed_layers);
  fprintf(out, "pool %s, of which at most %s are reserved at one time; out %s, in %s\n",
          sn_print_bytes(plan->pool_bytes, pool), sn_print_bytes(plan->reserved_peak, load),
          sn_print_bytes(plan->counts.offload_bytes, copied), sn_print_bytes(plan->counts.prefetch_bytes, back));
}

sn_status sn_cli_check(const sn_args *args, sn_err *err) {
  sn_err why = SN_ERR_INIT;
  sn_device device = {0};
  sn_out out;
  sn_plan_file *file = open_file(args, &device, &why);
  if ((args->json ? is_input(&why) : why.code == SN_OK) && sn_out_open(&out, NULL, args->color, err) == SN_OK) {
    if (args->json)
      print_check_json(file, &why, out.stream, err);
    else
      print_check(args, file, out.stream);
    sn_out_close(&out, err);
  }
  sn_plan_file_free(file);
  return why.code == SN_OK ? err->code : sn_fail(err, why.code, "%s", why.text);
}

/* ---- play ---- */

static sn_status draw(const sn_args *args, const sn_run *run, const sn_timeline *timeline, sn_err *err) {
  sn_plot_kind kind = args->kind == SN_PLOT_STEPS ? SN_PLOT_TIMELINE : args->kind;
  sn_plot_options options = {.kind = kind, .path = args->output};
  if (!args->output) return SN_OK;
  if (sn_plot_timeline(run, &run->results[0], timeline, &options, err) == SN_OK) sn_out_say("%s written", args->output);
  return err->code;
}

static sn_status print_run(const sn_args *args, const sn_run *run, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, NULL, args->color, err) != SN_OK) return err->code;
  if (args->json)
    sn_json_write_run(run, args->steps, false, out.stream, err);
  else
    sn_report_run(run, (sn_report_wish){.steps = args->steps}, &out, err);
  return sn_out_close(&out, err);
}

static sn_status check_picture(const sn_args *args, sn_err *err) {
  bool drawn = args->kind == SN_PLOT_STEPS || args->kind == SN_PLOT_TIMELINE || args->kind == SN_PLOT_POOL ||
               args->kind == SN_PLOT_DEVICE;
  if (!drawn) return sn_fail(err, SN_BAD_USAGE, "a plan is drawn with --kind timeline, pool or device");
  return args->output ? sn_plot_check_path(args->output, err) : SN_OK;
}

sn_status sn_cli_play(const sn_args *args, sn_err *err) {
  sn_device device = {0};
  sn_timeline *timeline = NULL;
  if (check_picture(args, err) != SN_OK) return err->code;
  sn_plan_file *file = open_file(args, &device, err);
  sn_run *run = err->code == SN_OK ? sn_plan_file_play(file, &device, &timeline, err) : NULL;
  if (run && print_run(args, run, err) == SN_OK) draw(args, run, timeline, err);
  if (run && err->code == SN_OK && !run->results[0].fits) {
    char needed[SN_UNIT_TEXT], has[SN_UNIT_TEXT];
    sn_fail(err, SN_NO_FIT, "the plan takes %s, and %s has %s",
            sn_print_bytes(run->results[0].peak_device_bytes, needed), device.name,
            sn_print_bytes(device.memory_bytes, has));
  }
  sn_timeline_free(timeline);
  sn_run_free(run);
  sn_plan_file_free(file);
  return err->code;
}
