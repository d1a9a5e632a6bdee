/* What to change in PyTorch's loop; see the headers. Every candidate is planned, checked and played; of the number of
 * blocks and of parts the first guess is by the bytes that are missing, and what fits is found from there. */
#include "sim/capacity/answer_changes.h"

#include "base/checked.h"
#include "base/units.h"
#include "models/build/lora.h"
#include "models/net/modules.h"
#include "models/record/record_net.h"
#include "models/zoo/zoo.h"
#include "sim/capacity/calls.h"
#include "sim/capacity/calls_blocks.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/parallel/shard.h"
#include "sim/schedule/units.h"

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
  sn__loop_changes ways;
  uint64_t target;           /* leaves 3 % */
  uint64_t host;             /* 0: not limited */
  uint64_t all_blocks_bytes; /* needed with all of them checkpointed */
  candidate all[SN_ANSWER_CHANGES + 1];
  uint32_t count;
  const char
      *short_of_host; /* the way that the device has room for, of those that the host has none for the one that */
  uint64_t short_host_bytes; /* takes the least of it: what, and of both memories how much; NULL: there is none */
  uint64_t short_device_bytes;
  sn_arena *arena;
  sn_err *err;
} search;

/* Whether the host has room for it, and the device. */
static bool fits(const search *s, const sn_result *r) {
  return r->fits && (s->host == 0 || r->host_bytes <= s->host);
}

static bool leaves(const search *s, const sn_result *r) {
  return fits(s, r) && r->least_device_bytes <= s->target;
}

static bool any_leaves(const search *s) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->all[i].leaves) return true;
  return false;
}

static sn_status add(search *s, const sn__loop *way, const sn_result *r) {
  if (s->count == SN_ANSWER_CHANGES) return SN_OK;
  candidate *c = &s->all[s->count++];
  c->leaves = r->least_device_bytes <= s->target;
  return sn__loop_tell(&s->ways, way, r, &c->change);
}

/* Several GPUs do not share weights of 4 bits (sim/parallel/shard.h). */
static bool is_allowed(const sn__loop *way) {
  bool shared = !way->nf4 || sn_mesh_is_one(&way->iteration.mesh);
  return shared && !sn_strategy_refuses(way->strategy, way->iteration) && !sn_shard_refuses(way->iteration);
}

static bool is_staged(const search *s) {
  return sn_mesh_size(&s->asked->options->iteration.mesh, SN_MESH_PP) > 1;
}

/* The loop is the recording's: another precision, optimizer or number of parts is recorded anew. */
static bool is_recorded(const search *s) {
  return s->asked->net->recorded != NULL;
}

/* What is not offered as the host is what has too little. */
static void note_short_host(search *s, const sn__loop *way, const sn_result *r) {
  bool lacks = s->host > 0 && r->host_bytes > s->host && r->peak_device_bytes <= s->asked->device->memory_bytes;
  if (!lacks || (s->short_of_host && r->host_bytes >= s->short_host_bytes)) return;
  s->short_of_host = sn__loop_what(&s->ways, way);
  s->short_host_bytes = r->host_bytes;
  s->short_device_bytes = r->peak_device_bytes;
}

/* A way that has to fit. */
static sn_status try_way(search *s, const sn__loop *way) {
  sn_result r;
  if (!is_allowed(way)) return SN_OK;
  if (sn__loop_play(&s->ways, way, &r) != SN_OK) return s->err->code;
  note_short_host(s, way, &r);
  return fits(s, &r) ? add(s, way, &r) : SN_OK;
}

/* ---- checkpoints and the host's memory, at the batch that is asked for ---- */

static sn__loop with_units(const search *s, sn__loop way, uint32_t some) {
  if (s->ways.blocks == 0) return way;
  way.strategy.recompute = SN_RECOMPUTE_UNITS;
  way.strategy.units = some;
  return way;
}

/* Of how many units a block is: a checkpoint of some has whole blocks. */
static sn_status find_block_units(search *s, const sn_route *route) {
  sn__blocks blocks;
  if (sn__blocks_find(route, NULL, &blocks, s->err) == SN_OK && blocks.count > 0 && s->ways.blocks % blocks.count == 0)
    s->ways.block_units = s->ways.blocks / blocks.count;
  sn__blocks_clear(&blocks);
  return s->err->code;
}

static sn_status count_blocks(search *s) {
  sn_units units = {0};
  sn_route *route = sn_route_new(s->asked->net, s->w->stands.dialect, SN_ORDER_ROUTE, s->err);
  if (route && sn_units_find(route, &units, s->err) == SN_OK) s->ways.blocks = sn_units_modules(&units);
  if (s->ways.blocks > 0 && s->err->code == SN_OK) find_block_units(s, route);
  sn_units_clear(&units);
  sn_route_free(route);
  return s->err->code;
}

static sn_status add_all_blocks(search *s) {
  sn_result r;
  sn__loop way = sn__loop_as_asked(&s->ways);
  bool plain = way.strategy.recompute == SN_RECOMPUTE_NONE;
  way.strategy.recompute = SN_RECOMPUTE_UNITS;
  bool brief = is_staged(s) && !s->w->largest && !sn__loop_known(&s->ways, way.strategy);
  if (!plain || brief || !is_allowed(&way) || count_blocks(s) != SN_OK || s->ways.blocks == 0) return s->err->code;
  if (sn__loop_play(&s->ways, &way, &r) != SN_OK) return s->err->code;
  s->all_blocks_bytes = r.least_device_bytes;
  return fits(s, &r) ? add(s, &way, &r) : SN_OK;
}

/* The fewest blocks that do, by the bytes that all of them save. */
static uint32_t guess_blocks(const search *s) {
  uint64_t plain = s->w->as_is->least_device_bytes, all = s->all_blocks_bytes;
  if (plain <= s->target || plain <= all) return 1;
  double share = (double)(plain - s->target) / (double)(plain - all);
  return (uint32_t)sn_max(1, (uint64_t)(share * s->ways.blocks + 0.999));
}

/* From the guess on, until it fits and one block less does not. */
static sn_status add_some_blocks(search *s) {
  sn_result r, best = {0};
  sn__loop found = {0};
  uint32_t one = s->ways.block_units, some = (guess_blocks(s) + one - 1) / one * one;
  if (s->all_blocks_bytes == 0 || s->all_blocks_bytes > s->target) return SN_OK;
  for (int tried = 0; tried < TRIED_BLOCKS && some > 0 && some < s->ways.blocks; tried++) {
    const sn__loop way = with_units(s, sn__loop_as_asked(&s->ways), some);
    if (sn__loop_play(&s->ways, &way, &r) != SN_OK) return s->err->code;
    bool good = leaves(s, &r);
    if (!good && found.batch) break;
    if (good) best = r, found = way;
    some = good ? some - one : some + one * (uint32_t)sn_max(1, s->ways.blocks / one / 12);
  }
  return found.batch ? add(s, &found, &best) : SN_OK;
}

/* Of a pipeline, whose fullest stage is another one as blocks of the first run again: by halves, as where more of them run
 * again no stage needs more. */
static sn_status add_some_of_stages(search *s) {
  sn_result r, best = {0};
  sn__loop found = {0};
  uint32_t one = s->ways.block_units, low = 0, high = s->ways.blocks / one;
  if (s->all_blocks_bytes == 0 || s->all_blocks_bytes > s->target) return SN_OK;
  while (high - low > 1) {
    uint32_t some = low + (high - low) / 2;
    const sn__loop way = with_units(s, sn__loop_as_asked(&s->ways), some * one);
    if (sn__loop_play(&s->ways, &way, &r) != SN_OK) return s->err->code;
    bool good = leaves(s, &r);
    *(good ? &high : &low) = some;
    if (good) best = r, found = way;
  }
  return found.batch ? add(s, &found, &best) : SN_OK;
}

static sn_status add_offload(search *s, bool with_blocks) {
  sn__loop way = sn__loop_as_asked(&s->ways);
  if (way.strategy.offload != SN_OFFLOAD_NONE || (with_blocks && s->ways.blocks == 0)) return SN_OK;
  if (s->asked->options->external != SN_EXTERNAL_HOST) return SN_OK;
  if (is_recorded(s) && s->asked->net->recorded->backwards != 1) return SN_OK; /* nothing leaves */
  if (with_blocks) way = with_units(s, way, 0);
  way.strategy.offload = SN_OFFLOAD_SAVED;
  return try_way(s, &way);
}

/* ---- parts of the batch ---- */

/* The fewest equal parts that leave what they should, from a first guess on. */
static sn_status add_parts(search *s, sn__loop way, uint32_t first) {
  sn_result r;
  const uint32_t before = sn_iteration_batches(way.iteration);
  uint32_t tried = 0;
  if (way.iteration.inference || is_recorded(s)) return SN_OK;
  for (way.parts = (uint32_t)sn_max(first, 2);
       way.parts <= way.batch && (uint64_t)way.parts * before <= SN_ITERATION_BATCHES && tried < TRIED_PARTS;
       way.parts++) {
    if (way.batch % way.parts > 0) continue;
    if (sn__loop_play(&s->ways, &way, &r) != SN_OK) return s->err->code;
    if (leaves(s, &r)) return add(s, &way, &r);
    tried++;
  }
  return SN_OK;
}

static sn_status add_plain_parts(search *s) {
  uint32_t largest = s->w->largest ? s->w->largest->search.value : 0, batch = s->asked->net->batch;
  if (largest == 0) return SN_OK;
  return add_parts(s, sn__loop_as_asked(&s->ways), (batch + largest - 1) / largest);
}

static sn_status add_parts_with_blocks(search *s) {
  uint64_t needed = s->all_blocks_bytes;
  if (s->ways.blocks == 0 || needed <= s->target) return SN_OK;
  return add_parts(s, with_units(s, sn__loop_as_asked(&s->ways), 0),
                   (uint32_t)sn_ceil_div(needed, sn_max(s->target, 1)));
}

/* ---- another precision, another optimizer ---- */

/* Whether there is one that is narrower. */
static bool autocast(const search *s, sn__loop *way) {
  const sn_device *device = s->asked->device;
  bool bf16 = device->tensor_flops[SN_BF16] > 0, fp16 = device->tensor_flops[SN_FP16] > 0;
  if (is_recorded(s) || !sn_precision_is_wide(way->iteration.precision) || (!bf16 && !fp16)) return false;
  way->iteration.precision = bf16 ? SN_AMP_BF16 : SN_AMP_FP16;
  return true;
}

static bool use_8_bits(sn__loop *way) {
  sn_optimizer kind = sn_optimizer_kind(way->iteration.optimizer);
  bool adam = kind == SN_OPTIMIZER_ADAM, adamw = kind == SN_OPTIMIZER_ADAMW;
  if (way->iteration.inference || (!adam && !adamw)) return false;
  way->iteration.optimizer = adam ? SN_OPTIMIZER_ADAM8BIT : SN_OPTIMIZER_ADAMW8BIT;
  return true;
}

static sn_status add_precision(search *s) {
  sn__loop way = sn__loop_as_asked(&s->ways);
  return autocast(s, &way) ? try_way(s, &way) : SN_OK;
}

static sn_status add_optimizer(search *s) {
  sn__loop way = sn__loop_as_asked(&s->ways);
  return use_8_bits(&way) ? try_way(s, &way) : SN_OK;
}

/* ---- shards in place of replicas ---- */

/* Of as many GPUs. What cannot be shared so is not offered. */
static sn_status try_shards(search *s, sn__loop way) {
  sn_result r;
  if (!is_allowed(&way)) return SN_OK;
  if (sn__loop_play(&s->ways, &way, &r) == SN_OK) return fits(s, &r) ? add(s, &way, &r) : SN_OK;
  if (s->err->code != SN_BAD_INPUT) return s->err->code;
  *s->err = (sn_err)SN_ERR_INIT;
  return SN_OK;
}

/* With blocks that run again where nothing else is enough. */
static sn_status add_shards(search *s) {
  sn__loop way = sn__loop_as_asked(&s->ways);
  const sn_mesh *asked = &s->asked->options->iteration.mesh;
  sn_mesh one;
  if (sn_mesh_size(asked, SN_MESH_DP) == 1 || way.iteration.inference) return SN_OK;
  if (sn_mesh_resize(asked, SN_MESH_DP, 1, &one, s->err) != SN_OK ||
      sn_mesh_resize(&one, SN_MESH_FSDP, sn_mesh_copies(asked), &way.iteration.mesh, s->err) != SN_OK)
    return s->err->code;
  if (try_shards(s, way) != SN_OK || any_leaves(s)) return s->err->code;
  if (way.strategy.recompute != SN_RECOMPUTE_NONE || s->ways.blocks == 0) return SN_OK;
  return try_shards(s, with_units(s, way, 0));
}

/* ---- several changes together ---- */

/* With all blocks checkpointed too, and where that is not enough in parts. */
static sn_status try_with_blocks(search *s, sn__loop way) {
  sn_result r;
  if (way.strategy.recompute == SN_RECOMPUTE_NONE) way = with_units(s, way, 0);
  if (!is_allowed(&way)) return SN_OK;
  if (sn__loop_play(&s->ways, &way, &r) != SN_OK) return s->err->code;
  if (leaves(s, &r)) return add(s, &way, &r);
  if (r.least_device_bytes <= s->target) return SN_OK; /* the host is what has too little */
  return add_parts(s, way, (uint32_t)sn_min(sn_ceil_div(r.least_device_bytes, sn_max(s->target, 1)), UINT32_MAX));
}

static sn_status add_together(search *s) {
  sn__loop narrow = sn__loop_as_asked(&s->ways), states = narrow, both;
  bool has_narrow = autocast(s, &narrow), has_states = use_8_bits(&states);
  both = narrow;
  if (has_states && try_with_blocks(s, states) != SN_OK) return s->err->code;
  if (has_narrow && try_with_blocks(s, narrow) != SN_OK) return s->err->code;
  if (s->count > 0 || !has_narrow || !use_8_bits(&both)) return SN_OK;
  return try_with_blocks(s, both);
}

/* ---- adapters in place of the network ---- */

enum { RANK = 16 }; /* as most users of peft have it, of all linear layers of one of transformers' models */

static bool can_adapt(const search *s) {
  const sn_iteration iteration = s->asked->options->iteration;
  bool divided = is_staged(s) || sn_mesh_size(&iteration.mesh, SN_MESH_TP) > 1;
  return !iteration.inference && !divided && !*sn_iteration_freeze(iteration) &&
         sn_module_library(s->asked->net) == SN_LIBRARY_TRANSFORMERS && !sn_net_is_file(s->asked->spec);
}

static sn_status add_adapters(search *s, bool nf4, sn_precision precision) {
  sn__loop way = sn__loop_as_asked(&s->ways);
  way.rank = sn_net_lora(s->asked->spec) ? 0 : RANK;
  way.nf4 = nf4;
  way.iteration.precision = precision;
  const uint32_t before = s->count;
  if (try_way(s, &way) != SN_OK || (s->count > before && s->all[before].leaves)) return s->err->code;
  return try_with_blocks(s, way);
}

static bool is_narrower(const search *s, sn_precision precision) {
  return sn_precision_is_wide(precision) && s->asked->device->tensor_flops[SN_BF16] > 0;
}

static sn_status add_lora(search *s) {
  const sn_precision asked = s->asked->options->iteration.precision;
  bool narrow = is_narrower(s, asked);
  if (!can_adapt(s) || sn_net_lora(s->asked->spec) || sn_lora_wants_names(s->asked->net)) return SN_OK;
  if (add_adapters(s, false, asked) != SN_OK) return s->err->code;
  if (s->count == 0 && narrow && add_adapters(s, false, SN_BF16) != SN_OK) return s->err->code;
  return any_leaves(s) ? SN_OK : add_adapters(s, true, narrow ? SN_BF16 : asked);
}

/* On the GPU, without waiting for the host. */
static bool any_leaves_here(const search *s) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->all[i].leaves && s->all[i].change.host_bytes == 0) return true;
  return false;
}

/* 4-bit weights behind adapters that the network has. */
static sn_status add_4_bits(search *s) {
  sn_lora own;
  const char *named = sn_net_lora(s->asked->spec);
  const sn_precision asked = s->asked->options->iteration.precision;
  if (!named || !can_adapt(s) || sn_lora_parse(named, &own, s->err) != SN_OK || own.nf4) return s->err->code;
  return add_adapters(s, true, is_narrower(s, asked) ? SN_BF16 : asked);
}

/* ---- another batch: the largest, which was found already ---- */

static sn_status add_batch(search *s) {
  const sn_fit_answer *largest = s->w->largest;
  if (!largest || !largest->result || largest->search.value == s->asked->net->batch) return SN_OK;
  sn__loop way = sn__loop_as_asked(&s->ways);
  way.batch = largest->search.value;
  return add(s, &way, largest->result);
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
  bool any = any_leaves(s);
  for (uint32_t i = 0; i < s->count; i++)
    if (!any || s->all[i].leaves) s->all[kept++] = s->all[i];
  s->count = kept;
}

/* It does not fit, or barely. */
static sn_status find_remedies(search *s) {
  if (add_all_blocks(s) != SN_OK || add_plain_parts(s) != SN_OK ||
      (is_staged(s) ? add_some_of_stages(s) : add_some_blocks(s)) != SN_OK || add_offload(s, false) != SN_OK ||
      add_precision(s) != SN_OK || add_optimizer(s) != SN_OK || add_shards(s) != SN_OK)
    return s->err->code;
  if (!any_leaves(s) && add_parts_with_blocks(s) != SN_OK) return s->err->code;
  if (!any_leaves(s) && add_offload(s, true) != SN_OK) return s->err->code;
  if (s->w->verdict != SN_VERDICT_NO) return SN_OK;
  if (!any_leaves_here(s) && add_4_bits(s) != SN_OK) return s->err->code;
  if (!any_leaves(s) && add_together(s) != SN_OK) return s->err->code;
  if (s->count == 0 && add_lora(s) != SN_OK) return s->err->code;
  return s->count == 0 ? add_batch(s) : SN_OK;
}

static bool is_faster(const search *s, const sn_answer_change *c) {
  return c->images_per_second > 1.01 * s->w->as_is->images_per_second;
}

/* Faster, or less memory, by what is worth a change. */
static bool is_gain(const search *s, const sn_answer_change *c) {
  const sn_result *r = s->w->as_is;
  return is_faster(s, c) || (double)c->device_bytes < 0.95 * (double)r->peak_device_bytes;
}

/* Stages wait less for each other where there are more micro-batches: of one image each, where that is faster. */
static sn_status add_least_parts(search *s) {
  uint32_t batch = s->asked->net->batch, before = s->count;
  if (!is_staged(s) || batch == 1 || !s->w->largest) return SN_OK;
  if (add_parts(s, sn__loop_as_asked(&s->ways), batch) != SN_OK) return s->err->code;
  if (s->count > before && !is_faster(s, &s->all[before].change)) s->count = before;
  return SN_OK;
}

static sn_status find_gains(search *s) {
  if (add_least_parts(s) != SN_OK || add_precision(s) != SN_OK || add_all_blocks(s) != SN_OK || add_batch(s) != SN_OK)
    return s->err->code;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < s->count; i++)
    if (is_gain(s, &s->all[i].change)) s->all[kept++] = s->all[i];
  s->count = kept;
  return SN_OK;
}

/* ---- what is not offered ---- */

static const char *tell_short_host(const search *s) {
  char device[SN_UNIT_TEXT], takes[SN_UNIT_TEXT], has[SN_UNIT_TEXT];
  const bool shared = s->asked->device->host_shares > 1;
  if (!s->short_of_host) return "";
  bool given = s->asked->device->host_memory_bytes > 0;
  const char *whose = given ? "--host-memory is" : "this machine has", *other = given ? "" : " (--host-memory)";
  return sn_arena_print(s->arena, "not offered: %s (%s of the GPU), for want of RAM: it takes %s%s, and %s %s%s%s",
                        s->short_of_host, sn_print_bytes(s->short_device_bytes, device),
                        sn_print_bytes(s->short_host_bytes, takes), shared ? " a GPU" : "", whose,
                        sn_print_bytes(s->host, has), shared ? " for each" : "", other);
}

/* The events of a recording are those of one batch an update, of one precision and optimizer. */
static const char *tell_other_loops(const search *s) {
  if (!is_recorded(s) || s->asked->net->recorded->backwards != 1) return "";
  return "not tried, as the loop is the recording's: parts of the batch with gradients "
         "added, other precisions and optimizers; record a loop that has them";
}

static sn_status tell_left_out(const search *s, const char **left_out) {
  const char *host = s->w->verdict == SN_VERDICT_YES ? "" : tell_short_host(s);
  const char *loops = s->w->verdict == SN_VERDICT_YES ? "" : tell_other_loops(s);
  if (host) *left_out = sn_arena_print(s->arena, "%s%s%s", host, *host && *loops ? "\n" : "", loops);
  return host && *left_out ? SN_OK : sn_fail_memory(s->err);
}

static sn_status put_as_is(const search *s, sn_answer_change *changes, uint32_t *count) {
  const sn_iteration iteration = s->asked->options->iteration;
  sn_answer_change *change = &changes[(*count)++];
  if (sn__loop_tell_none(s->w->stands, iteration, s->asked->net->batch, s->w->as_is, s->arena, change, s->err) != SN_OK)
    return s->err->code;
  const sn__loop as_it_stands = sn__loop_as_asked(&s->ways);
  bool plain = sn_mesh_is_one(&iteration.mesh) && !sn_iteration_keeps_masters(iteration);
  return plain ? SN_OK : sn__loop_add_calls(&s->ways, &as_it_stands, change);
}

sn_status sn__changes_find(const sn__changes_wish *w, sn_answer_change *changes, uint32_t *count, const char **left_out,
                           sn_err *err) {
  const sn_asked *asked = &w->wish->asked;
  uint64_t memory = asked->device->memory_bytes;
  uint64_t host = asked->device->host_memory_bytes ? asked->device->host_memory_bytes : w->wish->host_bytes;
  const uint32_t gpus = asked->device->host_shares > 1 ? asked->device->host_shares : 1;
  search s = {
      .w = w,
      .asked = asked,
      .ways =
          {.asked = asked, .stands = w->stands, .planner = w->planner, .block_units = 1, .arena = w->arena, .err = err},
      .target = memory - memory / 100 * SN_ANSWER_TIGHT_PERCENT,
      .host = host / gpus,
      .arena = w->arena,
      .err = err};
  *count = 0;
  if (w->verdict == SN_VERDICT_YES ? find_gains(&s) != SN_OK : find_remedies(&s) != SN_OK) return err->code;
  if (tell_left_out(&s, left_out) != SN_OK) return err->code;
  keep_what_leaves(&s);
  qsort(s.all, s.count, sizeof *s.all, compare);
  bool none_leaves = w->verdict == SN_VERDICT_TIGHT && (s.count == 0 || !s.all[0].leaves);
  if ((w->verdict == SN_VERDICT_YES || none_leaves) && put_as_is(&s, changes, count) != SN_OK) return err->code;
  uint32_t most = w->verdict == SN_VERDICT_YES ? 1 + SN_ANSWER_GAINS : SN_ANSWER_CHANGES;
  for (uint32_t i = 0; i < s.count && *count < most; i++) changes[(*count)++] = s.all[i].change;
  return SN_OK;
}
