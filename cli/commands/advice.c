/* What to try where nothing fits. Nothing here is estimated: what is advised has been simulated and fits. */
#include "base/units.h"
#include "cli/frame/question.h"
#include "cli/frame/report.h"
#include "sim/ask/fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool asked(const sn_question *q, sn_strategy s) {
  char name[SN_STRATEGY_TEXT], other[SN_STRATEGY_TEXT];
  sn_strategy_name(s, name);
  for (uint32_t i = 0; i < q->n_strategies; i++)
    if (strcmp(name, sn_strategy_name(q->strategies[i], other)) == 0) return true;
  return false;
}

static sn_options bare(const sn_question *q) {
  sn_options options = q->options;
  options.want_steps = options.want_peak = options.want_tensors = false;
  return options;
}

/* " --strategy NAME" of the fastest default strategy that fits and was not asked for, or "". */
static sn_status advise_strategy(const sn_question *q, char *text, size_t room, sn_err *err) {
  sn_strategy others[SN_STRATEGY_DEFAULTS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++)
    if (!asked(q, sn_strategy_default(i))) others[count++] = sn_strategy_default(i);
  text[0] = '\0';
  if (count == 0) return SN_OK;
  sn_options options = bare(q);
  sn_run *run = sn_simulate(q->args->net, q->net, &q->device, others, count, &options, err);
  if (!run) return err->code;
  const sn_result *best = sn_report_fastest(run);
  if (best) snprintf(text, room, " --strategy %s", best->strategy);
  sn_run_free(run);
  return SN_OK;
}

/* Looking for what would fit takes two dozen plans, of a network this large some seconds each: it has commands of its
 * own that show how far they are. */
static bool too_large(const sn_net *net) {
  enum { MOST = 100000 }; /* layers, and values that they read */
  uint64_t size = net->n_layers;
  for (uint32_t i = 0; i < net->n_layers; i++) size += net->layers[i].n_inputs;
  return size > MOST;
}

sn_status sn_question_largest_batch(const sn_question *q, sn_strategy strategy, uint32_t *batch, sn_err *err) {
  const sn_knob_spec spec = {.kind = SN_KNOB_BATCH, .net = q->args->net, .image = q->args->image};
  sn_knob knob;
  if (q->args->batch == 1 || too_large(q->net)) return SN_OK;
  if (sn_knob_open(&spec, &knob, err) != SN_OK) return err->code;
  knob.high = q->args->batch - 1;
  sn_fit *fit = sn_fit_largest(&knob, &q->device, &strategy, 1, &q->options, err);
  if (fit) *batch = fit->answers[0].search.value;
  sn_fit_free(fit);
  return err->code;
}

/* "13.80 GiB needed, 11.17 GiB on k40c", or of the pool where its size was given; in bytes where rounding would make
 * the two amounts look equal. */
static void print_amounts(const sn_run *run, const sn_result *r, char *text, size_t room) {
  char needed[SN_UNIT_TEXT], usable[SN_UNIT_TEXT], where[SN_DEVICE_NAME + 8] = "in the pool";
  uint64_t need = r->peak_device_bytes, use = run->memory_bytes;
  bool on_device = need <= use && (run->pool_limit_bytes == 0 || r->pool_bytes <= run->pool_limit_bytes);
  if (on_device && run->host_memory_bytes) {
    snprintf(text, room, "%s of host memory needed, %s there", sn_print_bytes(r->host_bytes, needed),
             sn_print_bytes(run->host_memory_bytes, usable));
    return;
  } else if (run->pool_limit_bytes && need <= use) {
    need = r->pool_bytes;
    use = run->pool_limit_bytes;
  } else {
    snprintf(where, sizeof where, "on %s", run->gpu);
  }
  sn_print_bytes(need, needed);
  sn_print_bytes(use, usable);
  if (strcmp(needed, usable) != 0)
    snprintf(text, room, "%s needed, %s %s, at %s %s", needed, usable, where, r->pool_layer, r->pool_pass);
  else
    snprintf(text, room, "%" PRIu64 " bytes needed, %" PRIu64 " bytes %s, at %s %s", need, use, where, r->pool_layer,
             r->pool_pass);
}

sn_status sn_question_advise(const sn_question *question, const sn_run *run, sn_err *err) {
  const sn_result *r = sn_report_smallest(run);
  char amounts[400], strategy[SN_STRATEGY_TEXT + 16], batch[40] = "";
  uint32_t largest = 0;
  print_amounts(run, r, amounts, sizeof amounts);
  if (too_large(question->net))
    return sn_fail(err, SN_NO_FIT, "%s; snsim advise finds the strategies that fit, snsim fit the largest batch",
                   amounts);
  if (advise_strategy(question, strategy, sizeof strategy, err) != SN_OK ||
      sn_question_largest_batch(question, question->strategies[r - run->results], &largest, err) != SN_OK)
    return err->code;
  if (largest) snprintf(batch, sizeof batch, "%s --batch %" PRIu32, strategy[0] ? " or" : "", largest);
  bool hope = strategy[0] || batch[0];
  return sn_fail(err, SN_NO_FIT, "%s; %s%s%s", amounts,
                 hope                    ? "try"
                 : run->pool_limit_bytes ? "not even --batch 1 fits: a larger --pool is needed"
                                         : "not even --batch 1 fits: more memory is needed",
                 strategy, batch);
}
