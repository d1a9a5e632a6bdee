/* Answer; see the header. */
#include "sim/capacity/answer.h"

#include "models/net/modules.h"
#include "models/record/record_net.h"
#include "sim/capacity/answer_changes.h"
#include "sim/capacity/bands.h"
#include "sim/capacity/where.h"
#include "sim/device/device.h"
#include "sim/stages/stages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *sn_verdict_name(sn_verdict verdict) {
  static const char *const names[SN_VERDICTS] = {"no", "tight", "yes"};
  return names[verdict];
}

const char *sn_answer_change_name(sn_answer_change_kind kind) {
  static const char *const names[SN_CHANGES] = {
      "none", "parts", "checkpoint", "checkpoint_some", "offload", "precision", "optimizer", "shards", "lora", "batch"};
  return names[kind];
}

uint32_t sn_answer_strategies(sn_runtime runtime, sn_iteration iteration, sn_strategy *strategies) {
  uint32_t count = sn_runtime_strategies(runtime, iteration, strategies);
  return runtime == SN_RUNTIME_PYTORCH && count > 1 ? 1 : count;
}

sn_verdict sn_answer_verdict(uint64_t needed, uint64_t usable) {
  if (needed == 0 || needed > usable) return SN_VERDICT_NO;
  return usable - needed < usable / 100 * SN_ANSWER_TIGHT_PERCENT ? SN_VERDICT_TIGHT : SN_VERDICT_YES;
}

int64_t sn_answer_margin(const sn_answer *answer) {
  return (int64_t)answer->usable_bytes - (int64_t)answer->needed_bytes;
}

/* What an answer is made of before it is put together. */
typedef struct finder {
  const sn_answer_wish *wish;
  sn_staged *planner;
  sn_result *results; /* of each strategy */
  uint32_t stands;    /* which of them */
  sn_arena *arena;
  sn_err *err;
} finder;

static bool is_staged(const sn_answer_wish *wish) {
  return sn_mesh_size(&wish->asked.options->iteration.mesh, SN_MESH_PP) > 1;
}

/* Each stage's plan has all micro-batches, and each batch tried has one of each stage. */
static bool is_long(const sn_answer_wish *wish) {
  uint64_t layers = wish->asked.net->n_layers;
  return is_staged(wish) && layers * sn_iteration_batches(wish->asked.options->iteration) > SN_ANSWER_LAYERS;
}

/* It fits, and nothing more is looked for. */
static bool is_enough(const sn_answer_wish *wish, const sn_result *r) {
  return is_long(wish) && r->fits &&
         sn_answer_verdict(r->least_device_bytes, wish->asked.device->memory_bytes) == SN_VERDICT_YES;
}

static sn_status look_at_all(finder *f) {
  const sn_asked *a = &f->wish->asked;
  f->results = sn_arena_alloc(f->arena, a->n_strategies, sizeof *f->results);
  if (!f->results) return sn_fail_memory(f->err);
  for (uint32_t i = 0; i < a->n_strategies; i++) {
    if (a->results)
      f->results[i] = *a->results[i];
    else if (sn_staged_result(f->planner, a->strategies[i], a->device->memory_bytes, f->arena, &f->results[i],
                              f->err) != SN_OK)
      break;
  }
  return f->err->code;
}

/* The fastest that fits, the leanest of equals; where none fits the one that needs least. */
static bool is_better(const sn_result *a, const sn_result *b) {
  if (a->fits != b->fits) return a->fits;
  uint64_t x = a->least_device_bytes - 1, y = b->least_device_bytes - 1; /* 0, no memory is enough, comes last */
  if (!a->fits) return x < y;
  if (a->iteration_ns != b->iteration_ns) return a->iteration_ns < b->iteration_ns;
  return a->peak_device_bytes < b->peak_device_bytes;
}

static void choose(finder *f) {
  for (uint32_t i = 1; i < f->wish->asked.n_strategies; i++)
    if (is_better(&f->results[i], &f->results[f->stands])) f->stands = i;
}

static sn_fit *find_largest(const finder *f) {
  const sn_asked *a = &f->wish->asked;
  const sn_knob_spec spec = {.kind = SN_KNOB_BATCH, .net = a->spec, .image = a->image, .like = a->net};
  sn_knob knob;
  if (sn_knob_open(&spec, &knob, f->err) != SN_OK) return NULL;
  if (f->wish->runtime == SN_RUNTIME_PYTORCH) /* whose loop does not choose */
    return sn_fit_largest(&knob, a->device, &a->strategies[f->stands], 1, a->options, f->err);
  return sn_fit_largest(&knob, a->device, a->strategies, a->n_strategies, a->options, f->err);
}

static sn_status find_changes(finder *f, const sn_fit *fit, sn_answer *answer, sn_answer_change *changes) {
  const sn_asked *a = &f->wish->asked;
  const sn_result *r = &f->results[f->stands];
  if (f->wish->runtime != SN_RUNTIME_PYTORCH) {
    if (!r->fits) return SN_OK;
    answer->n_changes = 1;
    return sn__loop_tell_none(a->strategies[f->stands], a->options->iteration, a->net->batch, r, f->arena, &changes[0],
                              f->err);
  }
  const sn__changes_wish wish = {.wish = f->wish,
                                 .stands = a->strategies[f->stands],
                                 .as_is = r,
                                 .verdict = answer->verdict,
                                 .largest = fit ? &fit->answers[0] : NULL,
                                 .planner = f->planner,
                                 .arena = f->arena};
  const char *left_out = "";
  if (sn__changes_find(&wish, changes, &answer->n_changes, &left_out, f->err) != SN_OK || !*left_out)
    return f->err->code;
  answer->note = sn_arena_print(f->arena, "%s%s%s", answer->note, *answer->note ? "\n" : "", left_out);
  return answer->note ? SN_OK : sn_fail_memory(f->err);
}

/* Where the memory is, in groups that the user's model has names for. */
static sn_status add_groups(const finder *f, sn_answer *answer) {
  sn_asked asked = f->wish->asked;
  const sn_options stage = sn_stages_options(asked.options, f->results[f->stands].shared.stage);
  if (is_staged(f->wish)) asked.options = &stage;
  sn_where *where = sn_where_find(&asked, asked.strategies[f->stands], f->err);
  if (!where) return f->err->code;
  sn_answer_group *groups = sn_arena_alloc(f->arena, (size_t)where->n_groups + 1, sizeof *groups);
  bool ok = groups && (answer->moment = sn_arena_text(f->arena, where->moment));
  for (uint32_t i = 0; ok && i < where->n_groups; i++) {
    groups[i] = (sn_answer_group){sn_arena_text(f->arena, where->groups[i].name), where->groups[i].bytes,
                                  sn_arena_text(f->arena, where->groups[i].advice)};
    ok = groups[i].name && groups[i].advice;
  }
  if (ok) {
    answer->groups = groups;
    answer->n_groups = where->n_groups;
    answer->step = where->step;
    answer->n_steps = where->n_steps;
  }
  sn_where_free(where);
  return ok ? SN_OK : sn_fail_memory(f->err);
}

/* Of each change, or of what stands where there is none. */
static sn_status add_time_band(const finder *f, sn_answer *answer) {
  const sn_asked *a = &f->wish->asked;
  char text[SN_BANDS_TEXT];
  sn_timed rows[SN_ANSWER_CHANGES + 1] = {sn_timed_of(a->net, a->device, a->options, a->strategies[f->stands])};
  for (uint32_t i = 0; i < answer->n_changes; i++) {
    rows[i] = rows[0];
    if (sn_strategy_parse(answer->changes[i].strategy, &rows[i].strategy, f->err) != SN_OK) return f->err->code;
    sn_iteration changed = a->options->iteration;
    if (a->net->recorded) continue;
    if (sn_iteration_parse_precision(answer->changes[i].precision, &changed, f->err) != SN_OK) return f->err->code;
    rows[i].precision = changed.precision;
  }
  answer->time_within = sn_band_share(sn_band_find(&rows[0]));
  answer->time_band = sn_arena_text(f->arena, sn_band_of_times(rows, answer->n_changes ? answer->n_changes : 1, text));
  return answer->time_band ? SN_OK : sn_fail_memory(f->err);
}

static sn_status add_bands(const finder *f, sn_answer *answer) {
  char text[SN_BAND_TEXT];
  const sn_asked *a = &f->wish->asked;
  const sn_mesh *mesh = &a->options->iteration.mesh;
  sn_band_of_memory(a->net, mesh, !sn_mesh_is_one(mesh), text);
  answer->memory_band = sn_arena_text(f->arena, text);
  return answer->memory_band ? add_time_band(f, answer) : sn_fail_memory(f->err);
}

static sn_status search(finder *f, sn_answer *answer) {
  sn_answer_change *changes = sn_arena_alloc(f->arena, SN_ANSWER_CHANGES + 1, sizeof *changes);
  if (!changes) return sn_fail_memory(f->err);
  answer->gpus = sn_mesh_world(&f->wish->asked.options->iteration.mesh);
  answer->searched = !is_enough(f->wish, &f->results[f->stands]);
  sn_fit *fit = answer->searched ? find_largest(f) : NULL;
  if (f->err->code == SN_OK) {
    const sn_fit_answer *best = fit ? sn_fit_best(fit) : NULL;
    answer->one_batch = sn_recorded_batch(f->wish->asked.net) > 0;
    if (answer->one_batch) best = NULL;
    answer->largest_batch = best ? best->search.value : 0;
    answer->largest_host_bytes = best && best->result ? best->result->host_bytes : 0;
    answer->changes = changes;
    find_changes(f, fit, answer, changes);
    bool pytorch = f->err->code == SN_OK && f->wish->runtime == SN_RUNTIME_PYTORCH;
    if (pytorch && add_groups(f, answer) == SN_OK) add_bands(f, answer);
  }
  sn_fit_free(fit);
  return f->err->code;
}

bool sn__answer_has_fp32_loss(const sn_net *net, sn_iteration iteration) {
  bool has = false;
  for (uint32_t i = 0; i < net->n_layers; i++)
    has = has || (net->layers[i].op == SN_SOFTMAX && net->layers[i].attr->loss == SN_LOSS_CROSS_ENTROPY_FP32);
  return has && !sn_precision_is_wide(iteration.precision) && !iteration.inference;
}

static bool has_eager_attention(const sn_net *net) {
  bool has = false;
  for (uint32_t i = 0; i < net->n_layers; i++)
    has = has || (net->layers[i].op == SN_ATTENTION && net->layers[i].attr->parts);
  return has && sn_module_library(net) == SN_LIBRARY_TRANSFORMERS;
}

static bool has_fused_attention(const sn_net *net) {
  bool has = false;
  for (uint32_t i = 0; i < net->n_layers; i++)
    has = has || (net->layers[i].op == SN_ATTENTION && !net->layers[i].attr->parts);
  return has;
}

static bool recorded_flash(const sn_record *record) {
  bool has = false;
  for (uint32_t i = 0; i < record->n_kernels; i++)
    has = has || (record->kernels[i].flags & SN_RECORD_ATTENTION && strstr(record->kernels[i].called, "flash"));
  return has;
}

/* Of GPUs before Ampere, which have no tensor cores for bf16 and other kernels of attention than later ones. */
static const char *attention_note(const sn_answer_wish *wish) {
  const sn_net *net = wish->asked.net;
  const sn_device *device = wish->asked.device;
  sn_precision precision = wish->asked.options->iteration.precision;
  if (wish->runtime != SN_RUNTIME_PYTORCH || !sn_device_emulates(device, SN_BF16)) return "";
  if (net->recorded && !recorded_flash(net->recorded->record)) return "";
  if (net->recorded)
    return "its attention is flash, which this GPU has not: record it with python -m snsim.record --sm 75, or 70 of "
           "Volta";
  bool bf16 = precision == SN_BF16 || precision == SN_AMP_BF16;
  return bf16 && has_fused_attention(net)
             ? "PyTorch has no fused attention in bf16 on this GPU: what its parts keep is not counted; fp16 has one"
             : "";
}

/* What a recording assumed. */
static const char *assumed_of(const sn_record *record, sn_arena *arena) {
  if (record->n_assumed == 0) return "";
  if (record->n_assumed == 1)
    return sn_arena_print(arena, "assumed while recording: %s (%s)", record->assumed, record->assumed_at);
  return sn_arena_print(arena, "assumed while recording: %s (%s), and %" PRIu32 " more", record->assumed,
                        record->assumed_at, record->n_assumed - 1);
}

/* What makes a recording's answer less certain, or narrower; NULL where memory is out. */
static const char *note_of(const sn_answer_wish *wish, const sn_result *r, sn_arena *arena) {
  const sn_net *net = wish->asked.net;
  if (is_staged(wish))
    return sn_arena_print(arena, "the fullest is stage %" PRIu32 " of %" PRIu32 ", counted from 0%s", r->shared.stage,
                          sn_mesh_size(&wish->asked.options->iteration.mesh, SN_MESH_PP),
                          is_enough(wish, r) ? "; for its largest batch ask snsim fit --max batch" : "");
  const char *attention = attention_note(wish);
  if (!net->recorded) return attention;
  const sn_record *record = net->recorded->record;
  const char *compiled =
      record->compiled ? "recorded as it runs without torch.compile, which fuses and keeps less" : "";
  const char *assumed = assumed_of(record, arena), *passes = "";
  if (sn_recorded_checkpoints(net->recorded))
    passes = "its loop runs blocks again itself: nothing else is planned to run again or to leave, and strategies that "
             "differ "
             "in that alone are one";
  else if (net->recorded->backwards > 1)
    passes =
        sn_arena_print(arena,
                       "its loop has %" PRIu32 " backward passes: samples/s count the batch once a step, nothing is "
                       "planned to run again or to leave, and strategies that differ in that alone are one",
                       record->passes > 0 ? record->passes : net->recorded->backwards);
  else if (net->recorded->backwards == 0)
    passes = "no backward pass ran while recording: this is what running it takes, not training";
  if (!assumed || !passes) return NULL;
  const char *parts[] = {compiled, passes, assumed, attention};
  const char *note = "";
  for (size_t i = 0; i < sizeof parts / sizeof parts[0] && note; i++)
    if (*parts[i]) note = *note ? sn_arena_print(arena, "%s; %s", note, parts[i]) : parts[i];
  return note;
}

static sn_answer *find(const sn_answer_wish *wish, sn_options *options, sn_arena *arena, sn_err *err) {
  finder f = {.wish = wish, .arena = arena, .err = err};
  sn_answer *answer = sn_arena_alloc(arena, 1, sizeof *answer);
  char name[SN_STRATEGY_TEXT];
  if (!answer) sn_fail_memory(err);
  f.planner = answer ? sn_staged_new(NULL, wish->asked.net, wish->asked.device, options, err) : NULL;
  if (f.planner && look_at_all(&f) == SN_OK) {
    choose(&f);
    const sn_result *r = &f.results[f.stands];
    uint64_t usable = wish->asked.device->memory_bytes;
    *answer =
        (sn_answer){.runtime = wish->runtime,
                    .verdict = r->fits ? sn_answer_verdict(r->least_device_bytes, usable) : SN_VERDICT_NO,
                    .strategy = sn_arena_text(arena, sn_strategy_name(wish->asked.strategies[f.stands], name)),
                    .needed_bytes = r->least_device_bytes,
                    .usable_bytes = usable,
                    .context_bytes = r->context_bytes,
                    .fp32_loss = wish->runtime == SN_RUNTIME_PYTORCH &&
                                 sn__answer_has_fp32_loss(wish->asked.net, wish->asked.options->iteration),
                    .eager_attention = wish->runtime == SN_RUNTIME_PYTORCH && has_eager_attention(wish->asked.net),
                    .note = note_of(wish, r, arena),
                    .moment = "",
                    .memory_band = "",
                    .time_band = "",
                    .arena = arena};
    if (!answer->strategy || !answer->note) sn_fail_memory(err);
    if (err->code == SN_OK && wish->asked.net->n_layers <= SN_ANSWER_LAYERS) search(&f, answer);
  }
  sn_staged_free(f.planner);
  return err->code == SN_OK ? answer : NULL;
}

sn_answer *sn_answer_find(const sn_answer_wish *wish, sn_err *err) {
  sn_options options = *wish->asked.options;
  sn_answer_wish plain = *wish;
  options.want_steps = options.want_peak = options.want_tensors = false;
  if (wish->runtime == SN_RUNTIME_PYTORCH) options.placement = SN_PLACEMENT_FIRST_FIT; /* its allocator has addresses */
  plain.asked.options = &options;
  sn_arena *arena = sn_arena_new();
  if (!arena) sn_fail_memory(err);
  sn_answer *answer = arena ? find(&plain, &options, arena, err) : NULL;
  if (!answer) sn_arena_free(arena);
  return answer;
}

void sn_answer_free(sn_answer *answer) {
  if (answer) sn_arena_free(answer->arena);
}
