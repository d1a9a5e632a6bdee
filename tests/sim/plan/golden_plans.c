/* Plans and traces as text, compared with tests/golden: one line an instruction with lane, place and time. LeNet under
 * all 13 strategies with a pool so small that the cache evicts, and a branching net over a shared link. The device is
 * made up here, of round numbers, so that a change of a known profile changes nothing.
 *
 *   golden_plans --update      (or SN_UPDATE_GOLDEN=1)     writes the files anew instead of comparing */
#include "tests/support/pipeline.h"

#include "sim/graph/route.h"
#include "sim/plan/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool update;

static const char branching[] = "{\"snsim_net\":1,\"name\":\"branching\",\"input\":[2,8,8],\"layers\":["
                                "{\"name\":\"c1\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                                "{\"name\":\"a1\",\"op\":\"ACT\"},"
                                "{\"name\":\"c2\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                                "{\"name\":\"b2\",\"op\":\"BN\"},"
                                "{\"name\":\"a2\",\"op\":\"ACT\"},"
                                "{\"name\":\"c3\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1,\"input\":\"a1\"},"
                                "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"a2\",\"c3\"]},"
                                "{\"name\":\"cat\",\"op\":\"CONCAT\",\"inputs\":[\"join\",\"a1\"]},"
                                "{\"name\":\"g\",\"op\":\"POOL\",\"global\":true},"
                                "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                                "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

/* 1 TFLOP/s, 100 GB/s, 10 GB/s to the host; every overhead 1 us. */
static sn_device round_device(void) {
  sn_device d = {.name = "round",
                 .memory_bytes = UINT64_C(1) << 30,
                 .flops = 1e12,
                 .memory_bandwidth = 100e9,
                 .memory_efficiency = 1,
                 .gemm_efficiency = 1,
                 .conv_efficiency = 1,
                 .link_latency_ns = 1000,
                 .launch_ns = 1000,
                 .malloc_ns = 1000,
                 .free_ns = 1000};
  for (sn_external e = 0; e < SN_EXTERNAL_COUNT; e++) d.link_bandwidth[e] = 10e9;
  return d;
}

static const char *algo_name(uint8_t algo) {
  return algo == SN_NO_ALGO ? "-" : sn_conv_algo_name((sn_conv_algo)algo);
}

static void print_instr(FILE *out, const sn_plan *plan, const sn_instr *i, sn_span span) {
  char name[SN_TENSOR_NAME] = "";
  const sn_step *step = i->kind == SN_COMPUTE ? &plan->route->steps[i->id] : NULL;
  fprintf(out, "%2u %-7s %-8s ", i->step + 1, sn_lane_name((sn_lane)i->lane),
          sn_instr_kind_name((sn_instr_kind)i->kind));
  if (i->kind == SN_SIGNAL || i->kind == SN_WAIT)
    fprintf(out, "%u", i->id);
  else if (step)
    fprintf(out, "%s %s%s", plan->route->layers[step->layer].name, sn_pass_name(step->pass), i->rerun ? " again" : "");
  else
    fprintf(out, "%s", sn_tensor_name(plan->route, i->id, name, sizeof name));
  if (step && i->algo[0] != SN_NO_ALGO) fprintf(out, " %s %s", algo_name(i->algo[0]), algo_name(i->algo[1]));
  if (i->bytes > 0) fprintf(out, " [%" PRIu64 " +%" PRIu64 "]", i->offset, i->bytes);
  if (span.begin_ns >= 0) fprintf(out, "  %" PRId64 "..%" PRId64, span.begin_ns, span.end_ns);
  fputc('\n', out);
}

static char *print_plan(const pipeline *p, uint64_t offered, bool shared_link) {
  char *text = NULL;
  size_t bytes = 0;
  char name[SN_STRATEGY_TEXT];
  const sn_plan *plan = p->plan;
  sn_trace trace = pipeline_play(p, shared_link);
  FILE *out = open_memstream(&text, &bytes);
  fprintf(out, "%s, batch %u, %s, %" PRIu64 " bytes on offer%s\n", p->net->name, p->net->batch,
          sn_strategy_name(p->strategy, name), offered, shared_link ? ", shared link" : "");
  fprintf(out, "pool %" PRIu64 ", largest hole %" PRIu64 ", reserved %" PRIu64 ", external %" PRIu64 ", fences %u\n",
          plan->pool_bytes, plan->largest_hole, plan->reserved_peak, plan->external_bytes, plan->n_fences);
  fprintf(out,
          "out %" PRIu64 ", in %" PRIu64 ", hits %" PRIu64 ", misses %" PRIu64 ", evictions %" PRIu64 ", reruns %u\n",
          plan->counts.offload_bytes, plan->counts.prefetch_bytes, plan->counts.cache_hits, plan->counts.cache_misses,
          plan->counts.evictions, plan->counts.recomputed_layers);
  fprintf(out, "end %" PRId64 " ns, compute busy %" PRId64 ", stalled %" PRId64 ", events %" PRIu64 "\n\n",
          trace.end_ns, trace.busy_ns[SN_LANE_COMPUTE], trace.stall_ns[SN_LANE_COMPUTE], trace.events);
  for (uint32_t i = 0; i < plan->n_instrs; i++) print_instr(out, plan, &plan->instrs[i], trace.spans[i]);
  sn_trace_clear(&trace);
  assert_int_equal(fclose(out), 0);
  return text;
}

/* The file's text, or NULL where there is none. */
static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  for (int c; (c = fgetc(file)) != EOF;) fputc(c, out);
  fclose(out);
  fclose(file);
  return text;
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  if (!file || fputs(text, file) < 0 || fclose(file) != 0) fail_msg("%s: %s", path, strerror(errno));
}

/* Fails at the first line that differs. */
static void compare(const char *path, const char *stored, const char *text) {
  size_t at = 0, begin = 0;
  unsigned line = 1;
  for (; stored[at] && stored[at] == text[at]; at++) {
    if (stored[at] != '\n') continue;
    line++;
    begin = at + 1;
  }
  if (stored[at] == text[at]) return;
  fail_msg("%s:%u:\nstored: %.*s\nnow:    %.*s\nIf the change is meant: golden_plans --update", path, line,
           (int)strcspn(stored + begin, "\n"), stored + begin, (int)strcspn(text + begin, "\n"), text + begin);
}

static void check_golden(const pipeline *p, uint64_t offered, bool shared_link) {
  char path[400], name[SN_STRATEGY_TEXT];
  sn_strategy_name(p->strategy, name);
  for (char *at = name; *at; at++)
    if (*at == '+' || *at == '=') *at = *at == '+' ? '_' : '-';
  snprintf(path, sizeof path, "%s/tests/golden/%s_%s.txt", SNSIM_SOURCE_DIR, p->net->name, name);
  char *text = print_plan(p, offered, shared_link), *stored = update ? NULL : read_file(path);
  if (update)
    write_file(path, text);
  else if (!stored)
    fail_msg("%s is not there; golden_plans --update writes it", path);
  else
    compare(path, stored, text);
  free(text);
  free(stored);
}

static pipeline open_round(const char *spec) {
  sn_err err = SN_ERR_INIT;
  pipeline p = pipeline_open(spec, 4);
  sn_costs_free(p.costs);
  p.device = round_device();
  p.costs = sn_costs_new(p.net, &p.device, &err);
  must(&err);
  return p;
}

/* What the plan says it counted is what it lists. */
static void check_counts(const sn_plan *plan) {
  uint64_t out = 0, in = 0;
  uint32_t again = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_COPY_OUT) out += instr->bytes;
    if (instr->kind == SN_COPY_IN) in += instr->bytes;
    again += instr->rerun;
  }
  assert_true(out == plan->counts.offload_bytes && in == plan->counts.prefetch_bytes);
  assert_int_equal(again, plan->counts.recomputed_layers);
}

static void check_plan(pipeline *p, const char *strategy, uint64_t offered, bool shared_link) {
  sn_err err = SN_ERR_INIT;
  pipeline_plan(p, strategy, SN_WORKSPACE_DYNAMIC, offered);
  sn_check(p->plan, NULL, &err);
  must(&err);
  check_counts(p->plan);
  if (p->strategy.offload == SN_OFFLOAD_CACHE) assert_true(p->plan->counts.evictions > 0);
  check_golden(p, offered, shared_link);
}

static void lenet(void **state) {
  (void)state;
  pipeline p = open_round("lenet");
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
    char name[SN_STRATEGY_TEXT];
    check_plan(&p, sn_strategy_name(sn_strategy_default(i), name), 300 * 1024, false);
  }
  pipeline_close(&p);
}

static void branches(void **state) {
  (void)state;
  static const char *const strategies[] = {"liveness+cache", "liveness+offload=checkpoints+recompute=speed",
                                           "superneurons"};
  pipeline p = open_round(branching);
  for (size_t i = 0; i < sizeof strategies / sizeof strategies[0]; i++) check_plan(&p, strategies[i], 30 * 1024, true);
  pipeline_close(&p);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lenet),
      cmocka_unit_test(branches),
  };
  update = getenv("SN_UPDATE_GOLDEN") || (argc > 1 && strcmp(argv[1], "--update") == 0);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
