/* `snsim check PLAN.json..` and `snsim play PLAN.json`: a plan from elsewhere, proved, timed and drawn
 * (sim/ask/plan_file.h). */
#include "sim/ask/plan_file.h"

#include "base/units.h"
#include "cli/frame/json.h"
#include "cli/frame/question.h"
#include "cli/frame/report.h"
#include "cli/options/options.h"
#include "plots/plot.h"
#include "sim/graph/route.h"
#include "sim/stages/plan_set.h"

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

/* Read, not proved. */
static sn_plan_file *open_file(const sn_args *args, const char *path, sn_device *device, sn_err *err) {
  sn_plan_file *file = sn_plan_file_load(path, err);
  if (file && load_device(args, file, device, err) == SN_OK) sn_plan_file_read(file, args->net, device, err);
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

typedef struct checked {
  sn_plan_file *files[SN_ARGS_OPERANDS];
  uint32_t count;  /* read */
  uint32_t faulty; /* the file that the error is about; past the last: none alone */
} checked;

static void put_instruction(const sn_check_report *report, const sn_plan *plan, sn_json_object *o) {
  if (report && report->rule != SN_RULE_NONE && plan && report->instruction < plan->n_instrs)
    sn_json_put_count(o, "instruction", report->instruction);
  else
    sn_json_put_null(o, "instruction");
}

/* "rule" is "format" where a file is no plan of the network, and "" where all is well. */
static sn_status print_check_json(const sn_args *args, const checked *all, const sn_err *why, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  const bool ok = why->code == SN_OK, alone = all->faulty < args->n_operands;
  const sn_plan_file *file = all->files[alone ? all->faulty : 0];
  const bool broken = file && file->report.rule != SN_RULE_NONE;
  sn_json_put_bool(&o, "ok", ok);
  if (args->n_operands > 1 && !ok && alone)
    sn_json_put_text(&o, "file", args->operands[all->faulty]);
  else if (args->n_operands > 1)
    sn_json_put_null(&o, "file");
  put_instruction(file ? &file->report : NULL, file ? file->plan : NULL, &o);
  sn_json_put_text(&o, "rule", ok ? "" : broken ? sn_rule_name(file->report.rule) : "format");
  sn_json_put_text(&o, "message", why->text);
  if (ok && file && args->n_operands == 1) put_sizes(file, &o);
  return sn_json_end(&o, "", false, "\n", out, err);
}

static void print_check(const char *name, const sn_plan_file *file, FILE *out) {
  const sn_plan *plan = file->plan;
  char pool[SN_UNIT_TEXT], load[SN_UNIT_TEXT], copied[SN_UNIT_TEXT], back[SN_UNIT_TEXT];
  char strategy[SN_STRATEGY_TEXT];
  fprintf(out, "%s: right, and right for every timing of its lanes\n", name);
  fprintf(out,
          "%s, batch %" PRIu32 ", %s: %" PRIu32 " instructions for %" PRIu32 " steps, %" PRIu32 " of them re-run\n",
          file->net->name, file->net->batch, sn_strategy_name(file->head.strategy, strategy), plan->n_instrs,
          file->route->n_steps, plan->counts.recomputed_layers);
  if (file->route->mesh)
    fprintf(out, "%s, stage %" PRIu32 " of %" PRIu32 "\n", file->route->mesh->text, file->route->mesh->stage,
            sn_mesh_size(file->route->mesh, SN_MESH_PP));
  fprintf(out, "pool %s, of which at most %s are reserved at one time; out %s, in %s\n",
          sn_print_bytes(plan->pool_bytes, pool), sn_print_bytes(plan->reserved_peak, load),
          sn_print_bytes(plan->counts.offload_bytes, copied), sn_print_bytes(plan->counts.prefetch_bytes, back));
}

static void print_checks(const sn_args *args, const checked *all, FILE *out) {
  for (uint32_t i = 0; i < all->count; i++) print_check(args->operands[i], all->files[i], out);
  if (all->count > 1)
    fprintf(out, "%" PRIu32 " plans together: transfers meet, and nobody waits for ever\n", all->count);
}

static void check_all(const sn_args *args, checked *all, sn_err *err) {
  sn_device device;
  for (; all->count < args->n_operands && err->code == SN_OK; all->count++) {
    device = (sn_device){0};
    all->faulty = all->count;
    all->files[all->count] = open_file(args, args->operands[all->count], &device, err);
  }
  if (err->code != SN_OK) return;
  sn_plan_set set = {.files = all->files, .names = args->operands, .count = all->count};
  sn_plan_set_check(&set, err);
  all->faulty = set.faulty;
}

sn_status sn_cli_check(const sn_args *args, sn_err *err) {
  sn_err why = SN_ERR_INIT;
  checked all = {0};
  sn_out out;
  check_all(args, &all, &why);
  if ((args->json ? is_input(&why) : why.code == SN_OK) && sn_out_open(&out, NULL, args->color, err) == SN_OK) {
    if (args->json)
      print_check_json(args, &all, &why, out.stream, err);
    else
      print_checks(args, &all, out.stream);
    sn_out_close(&out, err);
  }
  for (uint32_t i = 0; i < all.count; i++) sn_plan_file_free(all.files[i]);
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
  sn_plan_file *file = open_file(args, args->operand, &device, err);
  if (err->code == SN_OK) sn_plan_file_prove(file, err);
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
