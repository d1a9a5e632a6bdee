/* What to change in PyTorch's loop; see the headers. Every candidate is planned, checked and played; of the number of
 * blocks and of parts the first guess is by the bytes that are missing, and what fits is found from there. */
#include "sim/ask/answer_changes.h"

#include "base/checked.h"
#include "models/zoo.h"
#include "sim/ask/calls.h"
#include "sim/policy/units.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TRIED_PARTS = 4, TRIED_BLOCKS = 4 };

typedef struct candidate {
  sn_answer_change change;
  bool leaves; /* 3 % and the margin */
} candidate;

typedef struct search {
  const sn__changes_wish *w;
  const sn_asked *asked;
  uint64_t target;           /* leaves 3 % */
  uint64_t host;             /* 0: not limited */
  uint32_t blocks;           /* units of the network (sim/policy/units.h) */
  uint32_t block_units;      /* that make a block of the user's model, which checkpoints wrap as a whole */
  uint64_t all_blocks_bytes; /* needed with all of them checkpointed */
  candidate all[SN_ANSWER_CHANGES + 1];
  uint32_t count;
  sn_arena *arena;
  sn_err *err;
} search;

sn_status sn__change_fill(sn_answer_change_kind kind, const char *what, sn_strategy strategy, sn_iteration iteration,
                          uint32_t batch, const sn_result *r, sn_arena *arena, sn_answer_change *change, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  *change = (sn_answer_change){.kind = kind,
                               .what = what,
                               .strategy = sn_arena_text(arena, sn_strategy_name(strategy, name)),
                               .precision = sn_precision_name(iteration.precision),
                               .optimizer = sn_arena_text(arena, sn_optimizer_name(iteration.optimizer)),
                               .batch = batch,
                               .accumulate = sn_iteration_batches(iteration),
                               .device_bytes = r->peak_device_bytes,
                               .host_bytes = r->host_bytes,
                               .iteration_ns = r->iteration_ns,
                               .images_per_second = r->images_per_second};
  return what && change->strategy && change->optimizer ? SN_OK : sn_fail_memory(err);
}

/* The lines of Python that do it, and how many blocks of how many they name. */
static sn_status fill_calls(search *s, sn_answer_change *c, sn_strategy strategy, sn_iteration iteration) {
  sn_options options = *s->asked->options;
  options.iteration = iteration;
  sn_asked asked = *s->asked;
  asked.options = &options;
  bool parts = sn_iteration_batches(iteration) > sn_iteration_batches(s->asked->options->iteration);
  const sn_calls_wish wish = {.strategy = strategy,
                              .memory_bytes = asked.device->memory_bytes,
                              .parts = parts ? iteration.accumulate : 1,
                              .precision = c->kind == SN_CHANGE_PRECISION,
                              .optimizer = c->kind == SN_CHANGE_OPTIMIZER};
  sn_calls *calls = sn_calls_of(&asked, &wish, s->err);
  const char **lines = calls ? sn_arena_alloc(s->arena, (size_t)calls->count + 1, sizeof *lines) : NULL;
  if (calls && !lines) sn_fail_memory(s->err);
  for (uint32_t i = 0; lines && i < calls->count; i++)
    if (!(lines[i] = sn_arena_text(s->arena, calls->lines[i]))) sn_fail_memory(s->err);
  c->calls = lines;
  c->n_calls = calls ? calls->count : 0;
  sn_calls_free(calls);
  return s->err->code;
}

static const char *blocks_text(const search *s, uint32_t some) {
  uint32_t all = s->blocks / s->block_units;
  return some ? sn_arena_print(s->arena, "checkpoint %" PRIu32 " of %" PRIu32 " blocks", some / s->block_units, all)
              : sn_arena_print(s->arena, "checkpoint all %" PRIu32 " blocks", all);
}

/* Whether the host has room for it, and the device. */
static bool fits(const search *s, const sn_result *r) {
  return r->fits && (s->host == 0 || r->host_bytes <= s->host);
}

static sn_status add(search *s, sn_answer_change_kind kind, const char *what, sn_strategy strategy,
                     sn_iteration iteration, uint32_t batch, const sn_result *r) {
  if (s->count == SN_ANSWER_CHANGES) return SN_OK;
  candidate *c = &s->all[s->count++];
  c->leaves = r->least_device_bytes <= s->target;
  if (sn__change_fill(kind, what, strategy, iteration, batch, r, s->arena, &c->change, s->err) != SN_OK)
    return s->err->code;
  return fill_calls(s, &c->change, strategy, iteration);
}

static sn_status ask(search *s, sn_planner *planner, sn_strategy strategy, sn_result *r) {
  return sn_planner_result(planner, strategy, s->asked->device->memory_bytes, s->arena, r, s->err);
}

static bool is_allowed(const search *s, sn_strategy strategy) {
  return !sn_strategy_refuses(strategy, s->asked->options->iteration);
}

/* ---- checkpoints and the host's memory, at the batch that is asked for ---- */

static sn_strategy with_units(const search *s, uint32_t some) {
  sn_strategy strategy = s->w->stands;
  strategy.recompute = SN_RECOMPUTE_UNITS;
  strategy.units = some;
  return strategy;
}

static sn_status count_blocks(search *s) {
  sn_units units = {0};
  sn_route *route = sn_route_new(s->asked->net, s->w->stands.dialect, SN_ORDER_ROUTE, s->err);
  if (route && sn_units_find(route, &units, s->err) == SN_OK) s->blocks = units.count;
  sn_units_clear(&units);
  sn_route_free(route);
  const sn_calls_wish all = {.strategy = with_units(s, 0), .memory_bytes = s->asked->device->memory_bytes};
  sn_calls *calls = s->blocks > 0 && s->err->code == SN_OK ? sn_calls_of(s->asked, &all, s->err) : NULL;
  bool even = calls && calls->units > 0 && s->blocks % calls->units == 0;
  if (even) s->block_units = s->blocks / calls->units;
  sn_calls_free(calls);
  return s->err->code;
}

static sn_status add_all_blocks(search *s) {
  sn_result r;
  sn_strategy strategy = with_units(s, 0);
  bool plain = s->w->stands.recompute == SN_RECOMPUTE_NONE;
  if (!plain || !is_allowed(s, strategy) || count_blocks(s) != SN_OK || s->blocks == 0) return s->err->code;
  if (ask(s, s->w->planner, strategy, &r) != SN_OK) return s->err->code;
  s->all_blocks_bytes = r.least_device_bytes;
  if (!fits(s, &r)) return SN_OK;
  return add(s, SN_CHANGE_CHECKPOINT, blocks_text(s, 0), strategy, s->asked->options->iteration, s->asked->net->batch,
             &r);
}

/* The fewest blocks that do, by the bytes that all of them save. */
static uint32_t guess_blocks(const search *s) {
  uint64_t plain = s->w->as_is->least_device_bytes, all = s->all_blocks_bytes;
  if (plain <= s->target || plain <= all) return 1;
  double share = (double)(plain - s->target) / (double)(plain - all);
  return (uint32_t)sn_max(1, (uint64_t)(share * s->blocks + 0.999));
}

/* From the guess on, until it fits and one block less does not. */
static sn_status add_some_blocks(search *s) {
  sn_result r, best = {0};
  uint32_t found = 0, one = s->block_units, some = (guess_blocks(s) + one - 1) / one * one;
  if (s->all_blocks_bytes == 0 || s->all_blocks_bytes > s->target) return SN_OK;
  for (int tried = 0; tried < TRIED_BLOCKS && some > 0 && some < s->blocks; tried++) {
    if (ask(s, s->w->planner, with_units(s, some), &r) != SN_OK) return s->err->code;
    bool good = fits(s, &r) && r.least_device_bytes <= s->target;
    if (!good && found) break;
    if (good) best = r, found = some;
    some = good ? some - one : some + one * (uint32_t)sn_max(1, s->blocks / one / 12);
  }
  if (!found) return SN_OK;
  return add(s, SN_CHANGE_CHECKPOINT_SOME, blocks_text(s, found), with_units(s, found), s->asked->options->iteration,
             s->asked->net->batch, &best);
}

static sn_status add_offload(search *s, bool with_blocks) {
  sn_result r;
  sn_strategy strategy = with_blocks ? with_units(s, 0) : s->w->stands;
  if (s->w->stands.offload != SN_OFFLOAD_NONE || (with_blocks && s->blocks == 0)) return SN_OK;
  strategy.offload = SN_OFFLOAD_SAVED;
  if (!is_allowed(s, strategy) || s->asked->options->external != SN_EXTERNAL_HOST) return SN_OK;
  if (ask(s, s->w->planner, strategy, &r) != SN_OK || !fits(s, &r)) return s->err->code;
  const char *what = with_blocks ? sn_arena_print(s->arena, "%s, kept in host memory", blocks_text(s, 0))
                                 : "saved tensors in host memory";
  return add(s, SN_CHANGE_OFFLOAD, what, strategy, s->asked->options->iteration, s->asked->net->batch, &r);
}

/* ---- parts of the batch ---- */

static sn_net *net_of(const search *s, uint32_t batch) {
  const sn_asked *a = s->asked;
  return sn_net_is_onnx(a->spec) ? sn_net_load(a->spec, batch, a->image, s->err)
                                 : sn_net_rebatch(a->net, batch, s->err);
}

/* The whole batch in so many parts; *found says whether that fits. */
static sn_status try_parts(search *s, sn_strategy strategy, uint32_t parts, bool *found) {
  sn_result r;
  sn_options options = *s->asked->options;
  uint32_t batch = s->asked->net->batch / parts;
  options.iteration.accumulate = parts * sn_iteration_batches(options.iteration);
  sn_net *net = net_of(s, batch);
  sn_planner *planner = net ? sn_planner_new(net, s->asked->device, &options, s->err) : NULL;
  bool blocks = strategy.recompute != s->w->stands.recompute;
  if (planner && ask(s, planner, strategy, &r) == SN_OK && fits(s, &r) && r.least_device_bytes <= s->target) {
    *found = true;
    const char *what =
        sn_arena_print(s->arena, "%s%s%" PRIu32 " batches of %" PRIu32 ", gradients added",
                       blocks ? blocks_text(s, 0) : "", blocks ? ", " : "", options.iteration.accumulate, batch);
    add(s, blocks ? SN_CHANGE_CHECKPOINT : SN_CHANGE_PARTS, what, strategy, options.iteration, batch, &r);
  }
  sn_planner_free(planner);
  sn_net_free(net);
  return s->err->code;
}

/* The fewest equal parts that do, from a first guess on. */
static sn_status add_parts(search *s, sn_strategy strategy, uint32_t first) {
  uint32_t batch = s->asked->net->batch, before = sn_iteration_batches(s->asked->options->iteration);
  uint32_t tried = 0;
  bool found = false;
  if (s->asked->options->iteration.inference) return SN_OK;
  for (uint32_t parts = (uint32_t)sn_max(first, 2);
       parts <= batch && (uint64_t)parts * before <= SN_ITERATION_BATCHES && tried < TRIED_PARTS && !found; parts++) {
    if (batch % parts > 0) continue;
    if (try_parts(s, strategy, parts, &found) != SN_OK) return s->err->code;
    tried++;
  }
  return SN_OK;
}

static sn_status add_plain_parts(search *s) {
  uint32_t largest = s->w->largest ? s->w->largest->search.value : 0, batch = s->asked->net->batch;
  if (largest == 0) return SN_OK;
  return add_parts(s, s->w->stands, (batch + largest - 1) / largest);
}

static sn_status add_parts_with_blocks(search *s) {
  uint64_t needed = s->all_blocks_bytes;
  if (s->blocks == 0 || needed <= s->target) return SN_OK;
  return add_parts(s, with_units(s, 0), (uint32_t)sn_ceil_div(needed, sn_max(s->target, 1)));
}

/* ---- another precision, another optimizer ---- */

static sn_status try_iteration(search *s, sn_answer_change_kind kind, sn_iteration iteration, const char *what) {
  sn_result r;
  sn_options options = *s->asked->options;
  options.iteration = iteration;
  if (sn_strategy_refuses(s->w->stands, iteration)) return SN_OK;
  sn_planner *planner = sn_planner_new(s->asked->net, s->asked->device, &options, s->err);
  if (planner && ask(s, planner, s->w->stands, &r) == SN_OK && fits(s, &r))
    add(s, kind, what, s->w->stands, iteration, s->asked->net->batch, &r);
  sn_planner_free(planner);
  return s->err->code;
}

static sn_status add_precision(search *s) {
  sn_iteration iteration = s->asked->options->iteration;
  const sn_device *device = s->asked->device;
  if (!sn_precision_is_wide(iteration.precision)) return SN_OK;
  bool bf16 = device->tensor_flops[SN_BF16] > 0, fp16 = device->tensor_flops[SN_FP16] > 0;
  if (!bf16 && !fp16) return SN_OK;
  iteration.precision = bf16 ? SN_AMP_BF16 : SN_AMP_FP16;
  return try_iteration(s, SN_CHANGE_PRECISION, iteration, bf16 ? "autocast to bf16" : "autocast to fp16");
}

static sn_status add_optimizer(search *s) {
  sn_iteration iteration = s->asked->options->iteration;
  sn_optimizer kind = sn_optimizer_kind(iteration.optimizer);
  bool adam = kind == SN_OPTIMIZER_ADAM, adamw = kind == SN_OPTIMIZER_ADAMW;
  if (iteration.inference || (!adam && !adamw)) return SN_OK;
  iteration.optimizer = adam ? SN_OPTIMIZER_ADAM8BIT : SN_OPTIMIZER_ADAMW8BIT;
  return try_iteration(s, SN_CHANGE_OPTIMIZER, iteration, adam ? "8-bit Adam" : "8-bit AdamW");
}

/* ---- another batch: the largest, which was found already ---- */

static sn_status add_batch(search *s) {
  const sn_fit_answer *largest = s->w->largest;
  if (!largest || !largest->result || largest->search.value == s->asked->net->batch) return SN_OK;
  return add(s, SN_CHANGE_BATCH, sn_arena_print(s->arena, "batch %" PRIu32, largest->search.value), s->w->stands,
             s->asked->options->iteration, largest->search.value, largest->result);
}

/* ---- all together ---- */

/* Falling images/s, then rising memory, then the order of kinds. */
static int compare(const void *a, const void *b) {
  const sn_answer_change *x = &((const candidate *)a)->change, *y = &((const candidate *)b)->change;
  if (x->images_per_second != y->images_per_second) return x->images_per_second > y->images_per_second ? -1 : 1;
  if (x->device_bytes != y->device_bytes) return x->device_bytes < y->device_bytes ? -1 : 1;
  return (int)x->kind - (int)y->kind;
}

static void keep_what_leaves(search *s) {
  uint32_t kept = 0;
  bool any = false;
  for (uint32_t i = 0; i < s->count; i++) any = any || s->all[i].leaves;
  for (uint32_t i = 0; i < s->count; i++)
    if (!any || s->all[i].leaves) s->all[kept++] = s->all[i];
  s->count = kept;
}

/* It does not fit, or barely. */
static sn_status find_remedies(search *s) {
  if (add_all_blocks(s) != SN_OK || add_plain_parts(s) != SN_OK || add_some_blocks(s) != SN_OK ||
      add_offload(s, false) != SN_OK || add_precision(s) != SN_OK || add_optimizer(s) != SN_OK)
    return s->err->code;
  if (s->count == 0 && add_parts_with_blocks(s) != SN_OK) return s->err->code;
  if (s->count == 0 && add_offload(s, true) != SN_OK) return s->err->code;
  if (s->count == 0 && s->w->verdict == SN_VERDICT_NO) return add_batch(s);
  return SN_OK;
}

/* Faster, or less memory, by what is worth a change. */
static bool is_gain(const search *s, const sn_answer_change *c) {
  const sn_result *r = s->w->as_is;
  return c->images_per_second > 1.01 * r->images_per_second ||
         (double)c->device_bytes < 0.95 * (double)r->peak_device_bytes;
}

static sn_status find_gains(search *s) {
  if (add_precision(s) != SN_OK || add_all_blocks(s) != SN_OK || add_batch(s) != SN_OK) return s->err->code;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < s->count; i++)
    if (is_gain(s, &s->all[i].change)) s->all[kept++] = s->all[i];
  s->count = kept;
  return SN_OK;
}

static sn_status put_as_is(const search *s, sn_answer_change *changes, uint32_t *count) {
  return sn__change_fill(SN_CHANGE_NONE, "as it stands", s->w->stands, s->asked->options->iteration,
                         s->asked->net->batch, s->w->as_is, s->arena, &changes[(*count)++], s->err);
}

sn_status sn__changes_find(const sn__changes_wish *w, sn_answer_change *changes, uint32_t *count, sn_err *err) {
  const sn_asked *asked = &w->wish->asked;
  uint64_t memory = asked->device->memory_bytes;
  uint64_t host = asked->device->host_memory_bytes ? asked->device->host_memory_bytes : w->wish->host_bytes;
  search s = {.w = w,
              .asked = asked,
              .target = memory - memory / 100 * SN_ANSWER_TIGHT_PERCENT,
              .host = host,
              .block_units = 1,
              .arena = w->arena,
              .err = err};
  *count = 0;
  if (w->verdict == SN_VERDICT_YES ? find_gains(&s) != SN_OK : find_remedies(&s) != SN_OK) return err->code;
  keep_what_leaves(&s);
  qsort(s.all, s.count, sizeof *s.all, compare);
  bool none_leaves = w->verdict == SN_VERDICT_TIGHT && (s.count == 0 || !s.all[0].leaves);
  if ((w->verdict == SN_VERDICT_YES || none_leaves) && put_as_is(&s, changes, count) != SN_OK) return err->code;
  uint32_t most = w->verdict == SN_VERDICT_YES ? 1 + SN_ANSWER_GAINS : SN_ANSWER_CHANGES;
  for (uint32_t i = 0; i < s.count && *count < most; i++) changes[(*count)++] = s.all[i].change;
  return SN_OK;
}
