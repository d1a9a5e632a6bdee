/* A plan from a file to train by; see the header. */
#include "cli/train/train_plan.h"

#include "base/checked.h"
#include "base/units.h"
#include "exec/machine/processors.h"

#include <string.h>

/* Why a plan that is read cannot be executed; NULL: it can. */
static const char *refusal(const sn_args *args, const sn_plan_head *head) {
  const sn_iteration *iteration = &head->options.iteration;
  if (args->backend != SN_EXEC_CPU) return "plans from files are executed on the CPU only, by --backend cpu";
  if (sn_strategy_is_simulated(head->strategy)) return "nothing executes the graph of its strategy";
  if (sn_strategy_is_corun(head->strategy) && sn_iteration_batches(*iteration) > 1)
    return "its operations run side by side, and it adds up several batches, which does not go together";
  if (!sn_mesh_is_one(&iteration->mesh)) return "it is of one of several GPUs, which are simulated only";
  if (iteration->inference) return "it is of a network that is only run, and here it is trained";
  if (iteration->precision != SN_FP32 && iteration->precision != SN_TF32_CONV)
    return "its numbers have two bytes or TF32, and fp32 is executed only";
  return NULL;
}

/* What of operations side by side this machine cannot do is said before anything is trained. */
static sn_status check_teams(const sn_args *args, const sn_plan *plan, sn_err *err) {
  uint32_t processors = sn_processors_count(), threads = args->threads ? args->threads : processors;
  const sn_cores cores = {.count = (uint16_t)sn_min(threads, SN_MAX_CORES), .slots = 1};
  if (!sn_plan_is_corun(plan)) return SN_OK;
  if (threads > processors)
    return sn_fail(
        err, SN_BAD_USAGE,
        "each of its threads has a processor of its own, and this machine has %u; give --threads %u or fewer",
        processors, processors);
  if (threads < SN_MIN_CORES)
    return sn_fail(
        err, SN_BAD_USAGE,
        "operations side by side need at least %d processors, and there is one (or --threads 1 asks for one); "
        "snsim play times it",
        SN_MIN_CORES);
  return sn_session_check_teams(plan, &cores, err);
}

/* The graph is the same whatever the device. */
static sn_status prove(const sn_args *args, sn_plan_file *file, sn_err *err) {
  sn_device device;
  return sn_device_known(0, &device, err) == SN_OK ? sn_plan_file_check(file, args->net, &device, err) : err->code;
}

sn_plan_file *sn_train_plan_open(const sn_args *args, sn_session_options *options, sn_err *err) {
  sn_plan_file *file = sn_plan_file_load(args->operand, err);
  if (!file) return NULL;
  const char *why = refusal(args, &file->head);
  if (why)
    sn_fail(err, SN_BAD_USAGE, "%.300s: %s; snsim check proves any plan", args->operand, why);
  else if (prove(args, file, err) == SN_OK && check_teams(args, file->plan, err) != SN_OK)
    sn_err_prefix(err, "%.300s", args->operand);
  else if (err->code == SN_OK) {
    options->machine.hyper.optimizer = file->head.options.iteration.optimizer;
    options->machine.accumulate = file->head.options.iteration.accumulate;
    options->freeze = file->head.options.iteration.freeze;
    return file;
  }
  sn_plan_file_free(file);
  return NULL;
}

const char *sn_train_plan_name(const sn_args *args) {
  const char *slash = strrchr(args->operand, '/');
  return slash ? slash + 1 : args->operand;
}

void sn_train_plan_say(const sn_args *args, const sn_plan_file *file, const sn_run *run) {
  char added[SN_UNIT_TEXT], own[SN_UNIT_TEXT];
  const uint64_t pool = file->plan->pool_bytes;
  const sn_result *last = run->n_results > 0 ? &run->results[run->n_results - 1] : NULL;
  const char *name = sn_train_plan_name(args);
  if (!last || strcmp(last->strategy, name) != 0 || last->reserved_pool_bytes <= pool) return;
  sn_out_say("%.200s: its pool of %s has %s more here, workspace for this machine's kernels", name,
             sn_print_bytes(pool, own), sn_print_bytes(last->reserved_pool_bytes - pool, added));
}
