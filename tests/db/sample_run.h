/* Sample runs for the tests of the store: random in every member, and printed in every member, so that what comes back
 * can be compared with what was put. Independent of the store's own column tables on purpose. */
#ifndef SN_TESTS_SAMPLE_RUN_H
#define SN_TESTS_SAMPLE_RUN_H

#include "base/arena.h"
#include "sim/ask/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* splitmix64 (Steele, Lea, Flood 2014) */
static inline uint64_t sample_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* One random number per expression: C does not say which of two is drawn first. All magnitudes are equally likely, so
 * small numbers and those near the limit both come up. */
static inline uint64_t sample_u64(uint64_t *state) {
  uint64_t n = sample_random(state) >> 1;
  return n >> (sample_random(state) % 63);
}

static inline uint32_t sample_u32(uint64_t *state) {
  uint64_t n = sample_random(state) >> 32;
  return (uint32_t)(n >> (sample_random(state) % 32));
}

static inline int64_t sample_i64(uint64_t *state) {
  int64_t n = (int64_t)sample_u64(state);
  return sample_random(state) % 2 ? n : -n - 1;
}

static inline int64_t sample_ns(uint64_t *state) {
  return (int64_t)(sample_u64(state) >> 11);
}

static inline bool sample_bool(uint64_t *state) {
  return sample_random(state) % 2;
}

static inline double sample_real(uint64_t *state) {
  double n = (double)sample_i64(state);
  return n / (sample_u32(state) + 1.0);
}

static inline double sample_amount(uint64_t *state) {
  return fabs(sample_real(state));
}

static inline double sample_share(uint64_t *state) {
  return (double)sample_u32(state) / UINT32_MAX;
}

static inline const char *sample_text(uint64_t *state, sn_arena *arena) {
  static const char *const parts[] = {"conv", "4_2", "",  "'; DROP TABLE runs; --", "\xc3\xa9t\xc3\xa9",
                                      "\"",   "%s",  "\n"};
  uint64_t a = sample_random(state) % 8;
  uint64_t b = sample_random(state) % 8;
  return sn_arena_print(arena, "%s%s%" PRIu64, parts[a], parts[b], sample_random(state) % 100);
}

static inline const sn_step_row *sample_route(uint64_t *s, sn_arena *arena, uint32_t count) {
  sn_step_row *rows = sn_arena_alloc(arena, count, sizeof *rows);
  for (uint32_t i = 0; i < count; i++) {
    rows[i].step = i + 1;
    rows[i].layer = sample_text(s, arena);
    rows[i].op = sample_text(s, arena);
    rows[i].pass = sample_text(s, arena);
  }
  return rows;
}

static inline const sn_step_row *sample_steps(uint64_t *s, sn_arena *arena, const sn_step_row *route, uint32_t count) {
  sn_step_row *rows = sn_arena_alloc(arena, count, sizeof *rows);
  for (uint32_t i = 0; i < count; i++) {
    rows[i] = route[i];
    rows[i].tensor_bytes = sample_u64(s);
    rows[i].live_tensors = sample_u32(s);
    rows[i].workspace_bytes = sample_u64(s);
    rows[i].device_bytes = sample_u64(s);
    rows[i].end_ns = sample_ns(s);
    rows[i].begin_ns = sample_ns(s) % (rows[i].end_ns + 1);
  }
  return rows;
}

static inline const sn_peak_row *sample_peak(uint64_t *s, sn_arena *arena, uint32_t count) {
  sn_peak_row *rows = sn_arena_alloc(arena, count, sizeof *rows);
  for (uint32_t i = 0; i < count; i++) {
    rows[i].tensor = sample_text(s, arena);
    rows[i].producer = sample_text(s, arena);
    rows[i].bytes = sample_u64(s);
    rows[i].since_step = sample_u32(s);
    rows[i].next_step = sample_u32(s);
    rows[i].advice = sample_text(s, arena);
  }
  return rows;
}

/* Bytes of any value, or none. */
static inline sn_blob sample_blob(uint64_t *s, sn_arena *arena) {
  size_t count = sample_bool(s) ? (size_t)(sample_random(s) % 40 + 1) : 0;
  unsigned char *bytes = sn_arena_alloc(arena, count, 1);
  for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)sample_random(s);
  return (sn_blob){count ? bytes : NULL, count};
}

static inline sn_corun_row sample_corun(uint64_t *s, sn_arena *arena) {
  return (sn_corun_row){.policy = sample_text(s, arena),
                        .sharing = sample_text(s, arena),
                        .interval = sample_text(s, arena),
                        .budget_bytes = sample_u64(s),
                        .cores = sample_u32(s),
                        .slots = sample_u32(s),
                        .ops = sample_u32(s),
                        .chain_ops = sample_u32(s),
                        .serial_ns = sample_ns(s),
                        .chain_ns = sample_ns(s),
                        .area_ns = sample_ns(s),
                        .average_corun = sample_amount(s),
                        .max_corun = sample_u32(s),
                        .added_waits = sample_u32(s),
                        .profile_steps = sample_u32(s)};
}

static inline void sample_result(uint64_t *s, sn_arena *arena, sn_result *r) {
  r->strategy = sample_text(s, arena);
  r->fits = sample_bool(s);
  r->tensor_count = sample_u32(s);
  r->peak_tensor_bytes = sample_u64(s);
  r->peak_step = sample_u32(s);
  r->peak_layer = sample_text(s, arena);
  r->peak_pass = sample_text(s, arena);
  r->peak_fork_bytes = sample_u64(s);
  r->live_tensors_at_peak = sample_u32(s);
  r->max_live_tensors = sample_u32(s);
  r->peak_device_bytes = sample_u64(s);
  r->least_device_bytes = sample_u64(s);
  r->context_bytes = sample_u64(s);
  r->persistent.parameters = sample_u64(s);
  r->persistent.parameter_gradients = sample_u64(s);
  r->persistent.optimizer_state = sample_u64(s);
  r->persistent.auxiliary = sample_u64(s);
  r->persistent.input_batch = sample_u64(s);
  r->persistent.labels = sample_u64(s);
  r->pool_bytes = sample_u64(s);
  r->pool_step = sample_u32(s);
  r->pool_layer = sample_text(s, arena);
  r->pool_pass = sample_text(s, arena);
  r->pool_cause = sample_text(s, arena);
  r->placement = sample_bool(s) ? "packed" : "first_fit";
  r->dialect = sample_bool(s) ? "superneurons" : "singa";
  r->step_order = sample_bool(s) ? "route" : "bfs";
  r->largest_load_bytes = sample_u64(s);
  r->pool_tensor_bytes = sample_u64(s);
  r->pool_workspace_bytes = sample_u64(s);
  r->pool_hole_bytes = sample_u64(s);
  r->pool_bare_bytes = sample_u64(s);
  r->pool_largest_hole = sample_u64(s);
  r->pool_fragmentation = sample_share(s);
  r->workspace_peak_bytes = sample_u64(s);
  r->offload_bytes = sample_u64(s);
  r->prefetch_bytes = sample_u64(s);
  r->external_bytes = sample_u64(s);
  r->host_bytes = sample_u64(s);
  r->cache_hits = sample_u64(s);
  r->cache_misses = sample_u64(s);
  r->evictions = sample_u64(s);
  r->recomputed_layers = sample_u32(s);
  r->iteration_ns = sample_ns(s);
  r->compute_ns = sample_ns(s);
  r->stall_ns = sample_ns(s);
  r->allocation_ns = sample_ns(s);
  r->images_per_second = sample_amount(s);
  r->instructions = sample_u64(s);
  r->events = sample_u64(s);
  r->source = sample_text(s, arena);
  r->known_ns = sample_ns(s);
  r->reserved_pool_bytes = sample_u64(s);
  r->iterations = sample_u64(s);
  r->loss = sample_bool(s) ? sample_real(s) : NAN;
  r->accuracy = sample_share(s);
  r->out_ns = sample_ns(s);
  r->in_ns = sample_ns(s);
  r->difference = sample_real(s);
  r->digest = sample_random(s); /* all 64 bits */
  r->fastest_ns = sample_ns(s);
  r->slowest_ns = sample_ns(s);
  r->recording = sample_blob(s, arena);
  r->corun = sample_corun(s, arena);
}

static inline const sn_tensor_row *sample_tensors(uint64_t *s, sn_arena *arena, uint32_t count) {
  sn_tensor_row *rows = sn_arena_alloc(arena, count, sizeof *rows);
  for (uint32_t i = 0; i < count; i++) {
    rows[i].id = sample_u32(s);
    rows[i].name = sample_text(s, arena);
    rows[i].kind = sample_text(s, arena);
    rows[i].layer = sample_text(s, arena);
    rows[i].bytes = sample_u64(s);
  }
  return rows;
}

static inline const sn_failure *sample_failures(uint64_t *s, sn_arena *arena, uint32_t count) {
  sn_failure *rows = sn_arena_alloc(arena, count, sizeof *rows);
  for (uint32_t i = 0; i < count; i++) {
    rows[i].strategy = sample_text(s, arena);
    rows[i].reason = sample_text(s, arena);
  }
  return rows;
}

static inline const sn_origin *sample_origins(uint64_t *s, sn_arena *arena, uint32_t count) {
  sn_origin *rows = sn_arena_alloc(arena, count, sizeof *rows);
  for (uint32_t i = 0; i < count; i++) rows[i] = (sn_origin){sample_text(s, arena), sample_text(s, arena)};
  return rows;
}

static inline void sample_conditions(uint64_t *s, sn_arena *arena, sn_conditions *conditions) {
  for (const sn_condition *c = sn_condition_table; c < sn_condition_table + SN_CONDITION_ROWS; c++) {
    void *place = sn_condition_place(c, conditions);
    if (c->kind == SN_CONDITION_WORD) *(const char **)place = sample_text(s, arena);
    if (c->kind == SN_CONDITION_FLAG) *(bool *)place = sample_bool(s);
    if (c->kind == SN_CONDITION_COUNT) *(uint32_t *)place = sample_u32(s);
    if (c->kind == SN_CONDITION_BYTES) *(uint64_t *)place = sample_u64(s);
  }
}

static inline void sample_head(uint64_t *s, sn_arena *arena, sn_run *run) {
  run->created = "";
  run->version = sample_text(s, arena);
  run->net_name = sample_text(s, arena);
  run->batch = sample_u32(s);
  run->image_height = sample_u32(s);
  run->image_width = sample_u32(s);
  run->image_depth = sample_u32(s);
  run->host_memory_bytes = sample_u64(s);
  run->gpu = sample_bool(s) ? "k40c" : sample_text(s, arena);
  run->memory_bytes = sample_bool(s) ? 11439u * UINT64_C(1048576) : sample_u64(s);
  run->memory_nominal = sample_bool(s);
  sample_conditions(s, arena, &run->conditions);
  run->disk_bandwidth = sample_bool(s) ? 2e9 : 0;
  run->costs = sample_text(s, arena);
  run->device = sample_text(s, arena);
  run->data = sample_text(s, arena);
  run->iterations = sample_u64(s);
  run->name = sample_text(s, arena);
  run->warmup = sample_u64(s);
  run->processors = sample_u32(s);
  run->load = sample_amount(s);
  run->layers = sample_u32(s);
  run->n_steps = sample_u32(s);
  run->parameters = sample_u64(s);
  run->macs = sample_u64(s);
}

/* A run that depends on the seed only; the seed is in its net's name. Up to 5 strategies of up to `most` rows, some
 * without steps or peak. */
static inline sn_run *sample_run(uint64_t seed, uint32_t most) {
  uint64_t state = seed, *s = &state;
  sn_arena *arena = sn_arena_new();
  sn_run *run = sn_arena_alloc(arena, 1, sizeof *run);
  run->arena = arena;
  sample_head(s, arena, run);
  run->net = sn_arena_print(arena, "sample:%" PRIu64, seed);
  run->answer = seed % 2 ? ""
                         : "{\"runtime\":\"pytorch\",\"verdict\":\"yes\",\"strategy\":\"pytorch\",\"needed_bytes\":1,"
                           "\"usable_bytes\":2,\"margin_bytes\":1,\"largest_batch\":3,\"changes\":[],\"where\":[],"
                           "\"where_moment\":\"\",\"where_step\":0,\"where_steps\":0}";
  run->n_results = (uint32_t)(sample_random(s) % 6);
  run->n_tensors = sample_bool(s) ? (uint32_t)(sample_random(s) % (most + 1)) : 0;
  run->tensors = run->n_tensors ? sample_tensors(s, arena, run->n_tensors) : NULL;
  sn_result *results = sn_arena_alloc(arena, run->n_results, sizeof *results);
  const sn_step_row *route = sample_route(s, arena, most);
  for (uint32_t i = 0; i < run->n_results; i++) {
    sn_result *r = &results[i];
    sample_result(s, arena, r);
    r->n_steps = (uint32_t)(sample_random(s) % (most + 1));
    r->steps = r->n_steps && sample_bool(s) ? sample_steps(s, arena, route, r->n_steps) : NULL;
    r->n_peak = (uint32_t)(sample_random(s) % 20);
    r->peak = r->n_peak && sample_bool(s) ? sample_peak(s, arena, r->n_peak) : NULL;
  }
  run->results = results;
  run->n_failures = (uint32_t)(sample_random(s) % 3);
  run->failures = sample_failures(s, arena, run->n_failures);
  run->n_origins = (uint32_t)(sample_random(s) % 5);
  run->origins = sample_origins(s, arena, run->n_origins);
  return run;
}

/* ---- every member as text; id and created are the store's own and left out ---- */

static inline void dump_steps(FILE *out, const sn_result *r) {
  for (uint32_t i = 0; r->steps && i < r->n_steps; i++) {
    const sn_step_row *t = &r->steps[i];
    fprintf(out, "step %u %s %s %s %" PRIu64 " %u %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 "\n", t->step, t->layer,
            t->op, t->pass, t->tensor_bytes, t->live_tensors, t->workspace_bytes, t->device_bytes, t->begin_ns,
            t->end_ns);
  }
  for (uint32_t i = 0; r->peak && i < r->n_peak; i++) {
    const sn_peak_row *p = &r->peak[i];
    fprintf(out, "peak %s %s %" PRIu64 " %u %u %s\n", p->tensor, p->producer, p->bytes, p->since_step, p->next_step,
            p->advice);
  }
}

static inline void dump_result(FILE *out, const sn_result *r) {
  const sn_persistent *p = &r->persistent;
  fprintf(out, "result %s %d %u %" PRIu64 " %u %s %s %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", r->strategy, r->fits,
          r->tensor_count, r->peak_tensor_bytes, r->peak_step, r->peak_layer, r->peak_pass, r->live_tensors_at_peak,
          r->max_live_tensors, r->peak_device_bytes, r->least_device_bytes, r->context_bytes);
  fprintf(out, "kept %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", p->parameters,
          p->parameter_gradients, p->optimizer_state, p->auxiliary, p->input_batch, p->labels);
  fprintf(out, "pool %" PRIu64 " %" PRIu64 " %a %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", r->pool_bytes,
          r->pool_largest_hole, r->pool_fragmentation, r->workspace_peak_bytes, r->offload_bytes, r->prefetch_bytes,
          r->external_bytes);
  fprintf(out,
          "set %u %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " forks %" PRIu64 " host %" PRIu64
          " placed %s %s %s %" PRIu64 "\n",
          r->pool_step, r->pool_layer, r->pool_pass, r->pool_cause, r->pool_tensor_bytes, r->pool_workspace_bytes,
          r->pool_hole_bytes, r->pool_bare_bytes, r->peak_fork_bytes, r->host_bytes, r->placement, r->dialect,
          r->step_order, r->largest_load_bytes);
  fprintf(out, "cache %" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n", r->cache_hits, r->cache_misses, r->evictions,
          r->recomputed_layers);
  fprintf(out, "time %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %a %" PRIu64 " %" PRIu64 "\n", r->iteration_ns,
          r->compute_ns, r->stall_ns, r->allocation_ns, r->images_per_second, r->instructions, r->events);
  fprintf(out, "measured %s %" PRId64 " %" PRIu64 " %" PRIu64 " %a %a %" PRIx64 " %" PRId64 " %" PRId64 " %a\n",
          r->source, r->known_ns, r->reserved_pool_bytes, r->iterations, r->loss, r->accuracy, r->digest, r->out_ns,
          r->in_ns, r->difference);
  fprintf(out, "spread %" PRId64 " %" PRId64 "\n", r->fastest_ns, r->slowest_ns);
  fprintf(out, "recording %d", r->recording.bytes != NULL);
  for (size_t i = 0; i < r->recording.n_bytes; i++) fprintf(out, " %02x", r->recording.bytes[i]);
  fputs("\n", out);
  fprintf(out, "rows %u %d %u %d\n", r->n_steps, r->steps != NULL, r->n_peak, r->peak != NULL);
  dump_steps(out, r);
}

/* The caller frees the text. */
static inline char *dump_run(const sn_run *run) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  fprintf(out, "image %u %u %u host %" PRIu64 "\n", run->image_height, run->image_width, run->image_depth,
          run->host_memory_bytes);
  fprintf(out, "disk %a\n", run->disk_bandwidth);
  fprintf(out, "run %s %s %u %s %" PRIu64 " %d %u %u %" PRIu64 " %" PRIu64 " %u %u %d\n", run->version, run->net,
          run->batch, run->gpu, run->memory_bytes, run->memory_nominal, run->layers, run->n_steps, run->parameters,
          run->macs, run->n_results, run->n_tensors, run->tensors != NULL);
  fprintf(out, "net name %s\n", run->net_name);
  fprintf(out, "answer %s\n", run->answer);
  for (const sn_condition *c = sn_condition_table; c < sn_condition_table + SN_CONDITION_ROWS; c++) {
    char room[SN_CONDITION_TEXT];
    fprintf(out, "%s %s\n", c->name, sn_condition_text(c, &run->conditions, room));
  }
  fprintf(out, "costs %s device %s data %s iterations %" PRIu64 "\n", run->costs, run->device, run->data,
          run->iterations);
  fprintf(out, "name %s\n", run->name);
  fprintf(out, "warmup %" PRIu64 " processors %u load %a\n", run->warmup, run->processors, run->load);
  for (uint32_t i = 0; i < run->n_failures; i++)
    fprintf(out, "failure %s %s\n", run->failures[i].strategy, run->failures[i].reason);
  for (uint32_t i = 0; i < run->n_origins; i++)
    fprintf(out, "origin %s %s\n", run->origins[i].what, run->origins[i].path);
  for (uint32_t i = 0; i < run->n_results; i++) dump_result(out, &run->results[i]);
  for (uint32_t i = 0; run->tensors && i < run->n_tensors; i++) {
    const sn_tensor_row *t = &run->tensors[i];
    fprintf(out, "tensor %u %s %s %s %" PRIu64 "\n", t->id, t->name, t->kind, t->layer, t->bytes);
  }
  fclose(out);
  return text;
}

#endif
