/* Ways; see the header. */
#include "sim/capacity/changed_loop.h"

#include "models/build/lora.h"
#include "models/zoo/zoo.h"
#include "sim/device/device.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 240 };

sn__loop sn__loop_as_asked(const sn__loop_changes *ways) {
  return (sn__loop){.strategy = ways->stands,
                    .iteration = ways->asked->options->iteration,
                    .batch = ways->asked->net->batch,
                    .parts = 1};
}

/* With the accumulation of its parts. */
static sn_iteration iteration_of(const sn__loop *w) {
  sn_iteration iteration = w->iteration;
  if (w->parts > 1) iteration.accumulate = w->parts * sn_iteration_batches(iteration);
  return iteration;
}

static bool has_precision(const sn__loop_changes *s, const sn__loop *w) {
  return w->iteration.precision != s->asked->options->iteration.precision;
}

static bool has_optimizer(const sn__loop_changes *s, const sn__loop *w) {
  return w->iteration.optimizer != s->asked->options->iteration.optimizer;
}

static bool has_mesh(const sn__loop_changes *s, const sn__loop *w) {
  return strcmp(w->iteration.mesh.text, s->asked->options->iteration.mesh.text) != 0;
}

static bool has_blocks(const sn__loop_changes *s, const sn__loop *w) {
  return w->strategy.recompute != s->stands.recompute;
}

static bool has_offload(const sn__loop_changes *s, const sn__loop *w) {
  return w->strategy.offload != s->stands.offload;
}

static sn_answer_change_kind kind_of(const sn__loop_changes *s, const sn__loop *w) {
  if (w->rank > 0) return SN_CHANGE_LORA;
  if (has_offload(s, w)) return SN_CHANGE_OFFLOAD;
  if (has_blocks(s, w)) return w->strategy.units > 0 ? SN_CHANGE_CHECKPOINT_SOME : SN_CHANGE_CHECKPOINT;
  if (has_precision(s, w) || w->nf4) return SN_CHANGE_PRECISION;
  if (has_optimizer(s, w)) return SN_CHANGE_OPTIMIZER;
  if (has_mesh(s, w)) return SN_CHANGE_SHARDS;
  return w->parts > 1 ? SN_CHANGE_PARTS : SN_CHANGE_BATCH;
}

/* ---- planned and played ---- */

static bool is_other_net(const sn__loop *w) {
  return w->rank > 0 || w->nf4;
}

/* The network with the way's adapters, or with 4-bit weights behind its own; `text` has SN_NET_SPEC bytes. */
static const char *spec_of(const sn__loop_changes *s, const sn__loop *w, char *text) {
  char lora[SN_LORA_TEXT + 8], narrow[SN_LORA_TEXT + 16];
  if (!is_other_net(w)) return s->asked->spec;
  const char *own = sn_net_lora(s->asked->spec);
  if (w->rank > 0)
    snprintf(lora, sizeof lora, "%" PRIu32, w->rank);
  else
    snprintf(lora, sizeof lora, "%s", own);
  char *plain = sn_net_plain(s->asked->spec);
  if (!plain) return sn_fail_memory(s->err), NULL;
  sn_net_add_lora(plain, w->nf4 ? sn_lora_with_nf4(lora, narrow, sizeof narrow) : lora, text, s->err);
  free(plain);
  return s->err->code == SN_OK ? text : NULL;
}

/* The caller's to free where it is not the one asked about; NULL: error. */
static const sn_net *net_of(const sn__loop_changes *s, const sn__loop *w, uint32_t batch) {
  char text[SN_NET_SPEC];
  const sn_asked *a = s->asked;
  const char *spec = spec_of(s, w, text);
  if (!spec) return NULL;
  if (!is_other_net(w) && batch == a->net->batch) return a->net;
  bool again = is_other_net(w) || sn_net_is_onnx(a->spec);
  return again ? sn_net_load(spec, batch, a->image, s->err) : sn_net_rebatch(a->net, batch, s->err);
}

static void free_net(const sn__loop_changes *s, const sn_net *net) {
  if (net != s->asked->net) sn_net_free((sn_net *)net);
}

const sn_result *sn__loop_known(const sn__loop_changes *s, sn_strategy strategy) {
  for (uint32_t i = 0; s->asked->results && i < s->asked->n_strategies; i++)
    if (sn_strategy_same(s->asked->strategies[i], strategy)) return s->asked->results[i];
  return NULL;
}

sn_status sn__loop_play(const sn__loop_changes *s, const sn__loop *w, sn_result *result) {
  const uint64_t memory = s->asked->device->memory_bytes;
  const uint32_t batch = w->batch / w->parts;
  bool same = !is_other_net(w) && batch == s->asked->net->batch && !has_precision(s, w) && !has_optimizer(s, w) &&
              !has_mesh(s, w);
  const sn_result *asked = same ? sn__loop_known(s, w->strategy) : NULL;
  if (asked) return *result = *asked, SN_OK;
  if (same) return sn_staged_result(s->planner, w->strategy, memory, s->arena, result, s->err);
  sn_options options = *s->asked->options;
  options.iteration = iteration_of(w);
  const sn_net *net = net_of(s, w, batch);
  sn_staged *planner = net ? sn_staged_new(NULL, net, s->asked->device, &options, s->err) : NULL;
  if (planner) sn_staged_result(planner, w->strategy, memory, s->arena, result, s->err);
  sn_staged_free(planner);
  free_net(s, net);
  return s->err->code;
}

/* ---- told ---- */

typedef struct text {
  char all[TEXT];
  size_t used;
} text;

__attribute__((format(printf, 3, 4))) static void put(text *t, const char *between, const char *format, ...) {
  va_list args;
  if (t->used > 0) t->used += (size_t)snprintf(t->all + t->used, sizeof t->all - t->used, "%s", between);
  va_start(args, format);
  t->used += (size_t)vsnprintf(t->all + t->used, sizeof t->all - t->used, format, args);
  va_end(args);
}

static void put_blocks(const sn__loop_changes *s, const sn__loop *w, text *t) {
  const uint32_t some = w->strategy.units / s->block_units, all = s->blocks / s->block_units;
  if (some > 0)
    put(t, " + ", "checkpoint %" PRIu32 " of %" PRIu32 " blocks", some, all);
  else
    put(t, " + ", "checkpoint all %" PRIu32 " blocks", all);
}

const char *sn__loop_what(const sn__loop_changes *s, const sn__loop *w) {
  static const char *const precisions[SN_PRECISION_COUNT] = {
      [SN_AMP_BF16] = "autocast to bf16", [SN_AMP_FP16] = "autocast to fp16", [SN_BF16] = "all in bf16"};
  text t = {.used = 0};
  if (w->rank > 0) put(&t, " + ", "%s of rank %" PRIu32, w->nf4 ? "QLoRA" : "LoRA", w->rank);
  if (has_mesh(s, w)) put(&t, " + ", "shards, %s", w->iteration.mesh.text);
  if (w->rank == 0 && w->nf4) put(&t, " + ", "weights of 4 bits (nf4)");
  if (has_precision(s, w)) put(&t, " + ", "%s", precisions[w->iteration.precision]);
  if (has_optimizer(s, w))
    put(&t, " + ", "8-bit %s", w->iteration.optimizer == SN_OPTIMIZER_ADAM8BIT ? "Adam" : "AdamW");
  if (has_blocks(s, w)) put_blocks(s, w, &t);
  if (has_offload(s, w)) put(&t, ", ", has_blocks(s, w) ? "kept in host memory" : "saved tensors in host memory");
  if (w->parts > 1)
    put(&t, " + ", "%" PRIu32 " batches of %" PRIu32 ", gradients added", iteration_of(w).accumulate,
        w->batch / w->parts);
  else if (w->batch != s->asked->net->batch)
    put(&t, " + ", "batch %" PRIu32, w->batch);
  return sn_arena_text(s->arena, t.all);
}

/* What of it the command line lacks: " --strategy pytorch+recompute=units --batch 64 --accumulate 2". */
static const char *options_of(const sn__loop_changes *s, const sn__loop *w) {
  const sn_iteration iteration = iteration_of(w);
  char name[SN_STRATEGY_TEXT];
  text t = {.used = 0};
  if (w->rank > 0) put(&t, " ", "--lora %" PRIu32, w->rank);
  if (w->nf4) put(&t, " ", "--quantize nf4");
  if (has_mesh(s, w)) put(&t, " ", "--parallel %s", iteration.mesh.text);
  if (has_blocks(s, w) || has_offload(s, w)) put(&t, " ", "--strategy %s", sn_strategy_name(w->strategy, name));
  if (w->parts > 1 || w->batch != s->asked->net->batch) put(&t, " ", "--batch %" PRIu32, w->batch / w->parts);
  if (w->parts > 1) put(&t, " ", "--accumulate %" PRIu32, iteration.accumulate);
  if (has_precision(s, w)) put(&t, " ", "--precision %s", sn_precision_name(iteration.precision));
  if (has_optimizer(s, w)) put(&t, " ", "--optimizer %s", sn_optimizer_name(iteration.optimizer));
  return sn_arena_text(s->arena, t.all);
}

sn_status sn__loop_keep_calls(const sn_asked *asked, const sn_calls_wish *wish, sn_arena *arena, sn_answer_change *c,
                              sn_err *err) {
  sn_calls *calls = sn_calls_of(asked, wish, err);
  const char **lines = calls ? sn_arena_alloc(arena, (size_t)calls->count + 1, sizeof *lines) : NULL;
  if (calls && !lines) sn_fail_memory(err);
  for (uint32_t i = 0; lines && i < calls->count; i++)
    if (!(lines[i] = sn_arena_text(arena, calls->lines[i]))) sn_fail_memory(err);
  c->calls = lines;
  c->n_calls = lines ? calls->count : 0;
  sn_calls_free(calls);
  return err->code;
}

sn_status sn__loop_add_calls(const sn__loop_changes *s, const sn__loop *w, sn_answer_change *c) {
  sn_options options = *s->asked->options;
  sn_asked asked = *s->asked;
  options.iteration = iteration_of(w);
  asked.options = &options;
  asked.net = net_of(s, w, s->asked->net->batch);
  const sn_calls_wish wish = {.strategy = w->strategy,
                              .memory_bytes = asked.device->memory_bytes,
                              .parts = w->parts > 1 ? options.iteration.accumulate : 1,
                              .precision = has_precision(s, w),
                              .optimizer = has_optimizer(s, w),
                              .mesh = true,
                              .rank = w->rank,
                              .nf4 = w->nf4};
  if (asked.net) sn__loop_keep_calls(&asked, &wish, s->arena, c, s->err);
  free_net(s, asked.net);
  return s->err->code;
}

sn_status sn__loop_tell_none(sn_strategy strategy, sn_iteration iteration, uint32_t batch, const sn_result *r,
                             sn_arena *arena, sn_answer_change *change, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  *change = (sn_answer_change){.kind = SN_CHANGE_NONE,
                               .what = "as it stands",
                               .options = "",
                               .strategy = sn_arena_text(arena, sn_strategy_name(strategy, name)),
                               .precision = sn_iteration_precision_name(iteration),
                               .optimizer = sn_arena_text(arena, sn_optimizer_name(iteration.optimizer)),
                               .batch = batch,
                               .accumulate = sn_iteration_batches(iteration),
                               .device_bytes = r->peak_device_bytes,
                               .host_bytes = r->host_bytes,
                               .iteration_ns = r->iteration_ns,
                               .images_per_second = r->images_per_second};
  return change->strategy && change->optimizer ? SN_OK : sn_fail_memory(err);
}

sn_status sn__loop_tell(const sn__loop_changes *s, const sn__loop *w, const sn_result *r, sn_answer_change *change) {
  if (sn__loop_tell_none(w->strategy, iteration_of(w), w->batch / w->parts, r, s->arena, change, s->err) != SN_OK)
    return s->err->code;
  change->kind = kind_of(s, w);
  change->what = sn__loop_what(s, w);
  change->options = options_of(s, w);
  if (!change->what || !change->options) return sn_fail_memory(s->err);
  return sn__loop_add_calls(s, w, change);
}
