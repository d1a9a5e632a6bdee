/* Remedy; see the header. */
#include "sim/capacity/remedy.h"

#include "base/units.h"
#include "sim/capacity/fit.h"
#include "sim/capacity/split.h"
#include "sim/device/device.h"
#include "sim/stages/staged.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_among(const sn_strategy *strategies, uint32_t count, sn_strategy strategy) {
  for (uint32_t i = 0; i < count; i++)
    if (sn_strategy_same(strategies[i], strategy)) return true;
  return false;
}

/* Looking for what would fit takes two dozen plans, of a network this large some seconds each: it has commands of its
 * own that show how far they are. */
static bool too_large(const sn_net *net) {
  enum { MOST = 100000 }; /* layers, and values that they read */
  uint64_t size = net->n_layers;
  for (uint32_t i = 0; i < net->n_layers; i++) size += net->layers[i].n_inputs;
  return size > MOST;
}

/* ---- what is needed ---- */

static sn_status least_of(const sn_asked *a, sn_staged *planner, uint32_t i, uint64_t *bytes, sn_err *err) {
  if (!a->results) return sn_staged_least(planner, a->strategies[i], bytes, err);
  *bytes = a->results[i]->least_device_bytes;
  return SN_OK;
}

/* Those of the strategies that need the least, in place of all. */
static sn_status keep_leanest(const sn_asked *a, sn_staged *planner, sn_strategy *strategies, uint32_t *count,
                              sn_err *err) {
  uint64_t least = UINT64_MAX, bytes = 0;
  *count = 0;
  for (uint32_t i = 0; i < a->n_strategies; i++) {
    if (least_of(a, planner, i, &bytes, err) != SN_OK) break;
    bytes--; /* 0, what no memory is enough for, comes last */
    if (bytes < least) *count = 0;
    if (bytes <= least) strategies[(*count)++] = a->strategies[i];
    least = bytes < least ? bytes : least;
  }
  return err->code;
}

static void fill_need(const sn_asked *a, const sn_memory_answer *least, sn_remedy *r) {
  uint64_t pool = a->options->pool_bytes, memory = a->device->memory_bytes;
  r->leanest = least->strategy;
  r->scarce = SN_SCARCE_DEVICE;
  r->needed_bytes = least->memory_bytes;
  r->usable_bytes = memory;
  if (least->memory_bytes == 0) {
    r->scarce = SN_SCARCE_HOST;
    r->needed_bytes = least->result->host_bytes;
    r->usable_bytes = sn_device_host_share(a->device);
  } else if (pool > 0 && least->memory_bytes <= memory) {
    r->scarce = SN_SCARCE_POOL;
    r->needed_bytes = least->result->pool_bytes;
    r->usable_bytes = pool;
  }
  r->pass = least->binding.pass;
  snprintf(r->device, sizeof r->device, "%s", a->device->name);
  snprintf(r->layer, sizeof r->layer, "%s", least->binding.layer);
}

/* A cache leaves a step that has too little room what it needs and nothing else: where tensors alone are too many, the
 * fullest step needs most, with whatever memory. */
static bool tells_largest_step(const sn_asked *a, sn_strategy strategy, const sn_result *result) {
  uint64_t resident = result->context_bytes + sn_persistent_total(&result->persistent),
           memory = a->device->memory_bytes;
  uint64_t pool = memory > resident ? memory - resident : 0;
  return sn_strategy_has_cache(strategy) && result->reserved_bytes == 0 && a->options->pool_bytes == 0 &&
         result->peak_tensor_bytes > pool;
}

/* The first of the leanest stands for all: which is the fastest of equals is not worth a plan each. */
static sn_status find_need_of_large(const sn_asked *a, sn_staged *planner, const sn_strategy *leanest, sn_remedy *r,
                                    sn_arena *arena, sn_err *err) {
  uint32_t i = 0;
  while (!sn_strategy_same(a->strategies[i], *leanest)) i++;
  const sn_result *result = a->results[i];
  sn_memory_answer least = {.strategy = *leanest, .memory_bytes = result->least_device_bytes, .result = result};
  if (tells_largest_step(a, *leanest, result))
    least.binding = (sn_binding){.layer = result->peak_layer, .pass = result->peak_pass};
  else
    sn_staged_binding(planner, *leanest, least.memory_bytes - SN_POOL_BLOCK, arena, &least.binding, err);
  if (err->code == SN_OK) fill_need(a, &least, r);
  return err->code;
}

/* What PyTorch's allocator needs is not monotone: with the memory there is it may fail, though it runs with less. What
 * is needed then is said by the row of that memory. */
static sn_status need_beyond(const sn_asked *a, sn_staged *planner, sn_memory_answer *least, sn_arena *arena,
                             sn_err *err) {
  sn_result result;
  uint64_t memory = a->device->memory_bytes;
  bool runs = least->memory_bytes > 0 && least->memory_bytes <= memory;
  if (!runs || a->options->pool_bytes > 0 || least->result->reserved_bytes == 0) return SN_OK;
  if (sn_staged_result(planner, least->strategy, memory, arena, &result, err) != SN_OK) return err->code;
  least->memory_bytes = result.least_device_bytes;
  return SN_OK;
}

static sn_status find_need_of(const sn_asked *a, sn_staged *planner, const sn_strategy *leanest, uint32_t count,
                              sn_remedy *r, sn_arena *arena, sn_err *err) {
  sn_memory *memory = sn_fit_memory(a->net, a->device, leanest, count, a->options, err);
  if (memory) {
    sn_memory_answer best = *sn_memory_best(memory);
    if (need_beyond(a, planner, &best, arena, err) == SN_OK) fill_need(a, &best, r);
  }
  sn_memory_free(memory);
  return err->code;
}

/* Whether memory of the device is what there is too little of, by what is known. */
static bool is_known_need(const sn_asked *a) {
  for (uint32_t i = 0; a->results && i < a->n_strategies; i++)
    if (a->results[i]->least_device_bytes <= a->device->memory_bytes) return false; /* 0 too */
  return a->results;
}

static sn_status find_need(const sn_asked *a, sn_remedy *r, sn_err *err) {
  uint32_t count;
  bool large = too_large(a->net);
  sn_options plain = *a->options;
  plain.pool_bytes = 0;
  sn_arena *arena = sn_arena_new();
  sn_strategy *leanest = arena ? sn_arena_alloc(arena, a->n_strategies, sizeof *leanest) : NULL;
  sn_staged *planner = leanest ? sn_staged_new(NULL, a->net, a->device, &plain, err) : NULL;
  if (!leanest) sn_fail_memory(err);
  if (planner && keep_leanest(a, planner, leanest, &count, err) == SN_OK) {
    if (large && is_known_need(a))
      find_need_of_large(a, planner, leanest, r, arena, err);
    else
      find_need_of(a, planner, leanest, large ? 1 : count, r, arena, err);
  }
  sn_staged_free(planner);
  sn_arena_free(arena);
  return err->code;
}

/* ---- what would do ---- */

static bool are_of_pytorch(const sn_strategy *strategies, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!sn_dialect_of(strategies[i].dialect)->eager) return false;
  return count > 0;
}

uint32_t sn_remedy_others(const sn_strategy *asked, uint32_t count, sn_iteration iteration, sn_strategy *others) {
  bool of_pytorch = are_of_pytorch(asked, count);
  uint32_t found = 0, all = of_pytorch ? SN_STRATEGY_PYTORCH : SN_STRATEGY_DEFAULTS;
  for (uint32_t i = 0; i < all; i++) {
    sn_strategy other = of_pytorch ? sn_strategy_framework(i) : sn_strategy_default(i);
    if (of_pytorch) other.dialect = asked[0].dialect;
    if (!is_among(asked, count, other) && !sn_strategy_refuses(other, iteration)) others[found++] = other;
  }
  return found;
}

static sn_status find_strategy(const sn_asked *a, sn_remedy *r, sn_err *err) {
  sn_strategy others[SN_STRATEGY_DEFAULTS];
  sn_options options = *a->options;
  options.want_steps = options.want_peak = options.want_tensors = false;
  uint32_t count = sn_remedy_others(a->strategies, a->n_strategies, options.iteration, others);
  if (count == 0) return SN_OK;
  sn_run *run = sn_simulate(a->spec, a->net, a->device, others, count, &options, err);
  const sn_result *best = run ? sn_run_best(run) : NULL;
  r->has_strategy = best != NULL;
  if (best) r->strategy = others[best - run->results];
  sn_run_free(run);
  return err->code;
}

/* The batch in parts, which every loop of PyTorch's can do. */
static sn_status find_parts(const sn_asked *a, sn_remedy *r, sn_err *err) {
  sn_asked leanest = *a;
  leanest.strategies = &r->leanest;
  leanest.n_strategies = 1;
  leanest.results = NULL;
  sn_splits *splits = sn_splits_find(&leanest, err);
  if (splits && splits->count > 0) {
    r->part = splits->all[0].batch;
    r->parts = splits->all[0].parts * sn_iteration_batches(a->options->iteration);
  }
  sn_splits_free(splits);
  return err->code;
}

sn_status sn_remedy_batch(const sn_asked *a, sn_strategy strategy, uint32_t *batch, sn_err *err) {
  const sn_knob_spec spec = {.kind = SN_KNOB_BATCH, .net = a->spec, .image = a->image, .like = a->net};
  sn_knob knob;
  *batch = 0;
  if (a->net->batch == 1 || too_large(a->net)) return SN_OK;
  if (sn_knob_open(&spec, &knob, err) != SN_OK) return err->code;
  if (knob.low >= a->net->batch) return SN_OK;
  knob.high = a->net->batch - 1;
  sn_fit *fit = sn_fit_largest(&knob, a->device, &strategy, 1, a->options, err);
  if (fit) *batch = fit->answers[0].search.value;
  sn_fit_free(fit);
  return err->code;
}

sn_status sn_remedy_find(const sn_asked *asked, sn_remedy *remedy, sn_err *err) {
  *remedy = (sn_remedy){.pass = "",
                        .searched = !too_large(asked->net),
                        .of_pytorch = are_of_pytorch(asked->strategies, asked->n_strategies)};
  remedy->points_to_advise = remedy->of_pytorch && !asked->options->iteration.inference;
  if (find_need(asked, remedy, err) != SN_OK || !remedy->searched || find_strategy(asked, remedy, err) != SN_OK ||
      sn_remedy_batch(asked, remedy->leanest, &remedy->batch, err) != SN_OK || !remedy->of_pytorch)
    return err->code;
  return find_parts(asked, remedy, err);
}

/* ---- in words ---- */

/* In bytes where rounding would make the two amounts look equal. */
static int print_need(const sn_remedy *r, char *text) {
  char needed[SN_UNIT_TEXT], usable[SN_UNIT_TEXT], name[SN_STRATEGY_TEXT], where[SN_DEVICE_NAME + 8] = "in the pool";
  const char *host = r->scarce == SN_SCARCE_HOST ? " of host memory" : "";
  if (*host) snprintf(where, sizeof where, "there");
  if (r->scarce == SN_SCARCE_DEVICE) snprintf(where, sizeof where, "on %s", r->device);
  sn_print_bytes(r->needed_bytes, needed);
  sn_print_bytes(r->usable_bytes, usable);
  if (strcmp(needed, usable) == 0) {
    snprintf(needed, sizeof needed, "%" PRIu64 " bytes", r->needed_bytes);
    snprintf(usable, sizeof usable, "%" PRIu64 " bytes", r->usable_bytes);
  }
  return snprintf(text, SN_REMEDY_TEXT, "%s%s needed with %s, %s %s, at %s %s; ", needed, host,
                  sn_strategy_name(r->leanest, name), usable, where, r->layer, r->pass);
}

/* "try A", "try A or B", "try A, B or C"; "" where nothing was found. */
static const char *print_tries(const sn_remedy *r, char *text, size_t room) {
  char tries[3][SN_STRATEGY_TEXT + 16], name[SN_STRATEGY_TEXT];
  int count = 0, used = 0;
  if (r->has_strategy) snprintf(tries[count++], sizeof *tries, "--strategy %s", sn_strategy_name(r->strategy, name));
  if (r->batch) snprintf(tries[count++], sizeof *tries, "--batch %" PRIu32, r->batch);
  if (r->parts) snprintf(tries[count++], sizeof *tries, "--batch %" PRIu32 " --accumulate %" PRIu32, r->part, r->parts);
  text[0] = '\0';
  for (int i = 0; i < count; i++)
    used += snprintf(text + used, room - (size_t)used, "%s%s",
                     i == 0           ? "try "
                     : i == count - 1 ? " or "
                                      : ", ",
                     tries[i]);
  return text;
}

char *sn_remedy_print(const sn_remedy *r, char *text) {
  char tries[3 * (SN_STRATEGY_TEXT + 24)];
  int used = print_need(r, text);
  print_tries(r, tries, sizeof tries);
  snprintf(text + used, SN_REMEDY_TEXT - (size_t)used, "%s%s",
           !r->searched && r->points_to_advise
               ? "snsim advise --for pytorch finds the strategies that fit, snsim fit the largest batch"
           : !r->searched                ? "snsim advise finds the strategies that fit, snsim fit the largest batch"
           : *tries                      ? tries
           : r->scarce == SN_SCARCE_POOL ? "not even --batch 1 fits: a larger --pool is needed"
           : r->scarce == SN_SCARCE_HOST ? "not even --batch 1 fits: more --host-memory is needed"
                                         : "not even --batch 1 fits: more memory is needed",
           *tries && r->points_to_advise ? "; snsim advise --for pytorch tells more" : "");
  return text;
}
