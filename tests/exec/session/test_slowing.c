/* How much copies and computation slow each other, from a trace made by hand. */
#include "exec/session/slowing.h"

#include "models/zoo/zoo.h"
#include "sim/graph/route.h"
#include "tests/support/pipeline.h"

#include <math.h>
#include <stdlib.h>

enum { INSTRS = 5 };

/* Three steps of 100 ns each; the whole machine is `factor` as slow as it was, the copy takes `copy` ns of its 100
 * bytes.
 *
 *   compute   |-------0-------|--------1--------|---2---|
 *   out                       |...copy...|             */
static sn_device speeds_of(double factor, int64_t with_copy, int64_t copy) {
  sn_err err = SN_ERR_INIT;
  sn_device profile = {.compute_speed = 0};
  pipeline p = pipeline_open("lenet", 1);
  const int64_t alone = llround(100 * factor);
  sn_instr instrs[INSTRS] = {{.kind = SN_COMPUTE, .id = 0},
                             {.kind = SN_COMPUTE, .id = 1},
                             {.kind = SN_COPY_OUT, .lane = SN_LANE_OUT, .bytes = 100},
                             {.kind = SN_COMPUTE, .id = 2},
                             {.kind = SN_RELEASE}};
  sn_span spans[INSTRS] = {{0, alone},
                           {alone, alone + with_copy},
                           {alone, alone + copy},
                           {alone + with_copy, 2 * alone + with_copy},
                           {-1, -1}};
  const sn_plan plan = {.route = p.route, .instrs = instrs, .n_instrs = copy ? INSTRS : 2};
  const sn_trace trace = {.spans = spans, .n_spans = INSTRS};
  const sn_copy_rates rates = {.out = 2e9, .in = 1e9, .out_latency_ns = 10};
  size_t slots = (size_t)p.route->n_layers * SN_PASSES;
  int64_t *step_ns = calloc(slots, sizeof *step_ns);
  for (size_t i = 0; i < slots; i++) step_ns[i] = 100;
  sn__slowing *s = sn__slowing_new(p.route->net, &err);
  assert_non_null(s);
  for (int i = 0; i < 3; i++) sn__slowing_visit(s, &plan, &trace);
  sn__slowing_speeds(s, step_ns, &rates, &profile);
  sn__slowing_free(s);
  free(step_ns);
  pipeline_close(&p);
  return profile;
}

static void is(sn_device found, double compute, double copies) {
  if (fabs(found.compute_speed - compute) > 1e-9 || fabs(found.copy_speed - copies) > 1e-9)
    fail_msg("%g and %g, expected %g and %g", found.compute_speed, found.copy_speed, compute, copies);
}

/* A copy alone takes 10 + 100 / 2 = 60 ns. */
static void by_hand(void **state) {
  (void)state;
  is(speeds_of(1, 140, 80), 0.5, 0.75);   /* in 80 ns 40 were done */
  is(speeds_of(1.5, 190, 80), 0.5, 0.75); /* the same on a machine that has become slower */
  is(speeds_of(1, 100, 60), 1, 1);        /* neither minds */
  is(speeds_of(1, 90, 50), 1, 1);         /* nobody becomes faster */
  is(speeds_of(1, 900, 800), 0.1, 0.1);   /* hardly anything is done: as far as the engine goes */
  is(speeds_of(1, 100, 0), 0, 0);         /* no copy: nothing is known */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
