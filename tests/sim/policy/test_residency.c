/* Residency: what Caffe and Torch keep on the device, tensor by tensor, on a small chain and a small branching net. */
#include "sim/policy/residency.h"

#include "sim/graph/route.h"
#include "sim/plan/check.h"
#include "tests/support/pipeline.h"

#include <stdio.h>
#include <stdlib.h>

/* c1 1, a1 2, c2 3, g 4, fc 5, softmax 6; backward softmax 7, fc 8, g 9, c2 10, a1 11, c1 12. Elements an image: input
 * 128, c1 to c2 256, g 4, fc and softmax 3. */
static const char chain[] = "{\"snsim_net\":1,\"name\":\"chain\",\"input\":[2,8,8],\"layers\":["
                            "{\"name\":\"c1\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                            "{\"name\":\"a1\",\"op\":\"ACT\"},"
                            "{\"name\":\"c2\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                            "{\"name\":\"g\",\"op\":\"POOL\",\"global\":true},"
                            "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                            "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

/* c1 1, a1 2, fork 3, c2 4, c3 5, join 6, g 7, fc 8, softmax 9; backward of i is 19-i. */
static const char branches[] = "{\"snsim_net\":1,\"name\":\"branches\",\"input\":[2,8,8],\"layers\":["
                               "{\"name\":\"c1\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                               "{\"name\":\"a1\",\"op\":\"ACT\"},"
                               "{\"name\":\"c2\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1},"
                               "{\"name\":\"c3\",\"op\":\"CONV\",\"channels\":4,\"kernel\":1,\"input\":\"a1\"},"
                               "{\"name\":\"join\",\"op\":\"JOIN\",\"inputs\":[\"c2\",\"c3\"]},"
                               "{\"name\":\"g\",\"op\":\"POOL\",\"global\":true},"
                               "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":3},"
                               "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

/* Names of the tensors that are on the device while a step computes, in the order of their numbers. */
static char *residents(const sn_plan *plan, uint32_t step) {
  char *text = NULL, name[SN_TENSOR_NAME];
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  bool *here = calloc(plan->route->n_tensors, sizeof *here);
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_COMPUTE && instr->id + 1 == step) break;
    if (instr->kind == SN_ALLOC || instr->kind == SN_RELEASE) here[instr->id] = instr->kind == SN_ALLOC;
  }
  for (uint32_t t = 0; t < plan->route->n_tensors; t++)
    if (here[t]) fprintf(out, "%s ", sn_tensor_name(plan->route, t, name, sizeof name));
  fclose(out);
  free(here);
  return text;
}

typedef struct expectation {
  uint32_t step;
  const char *residents;
} expectation;

static void check_plan(const char *net, const char *strategy, const expectation *expected, size_t count) {
  sn_err err = SN_ERR_INIT;
  pipeline p = pipeline_open(net, 2);
  pipeline_plan(&p, strategy, SN_WORKSPACE_NONE, UINT64_MAX / 2);
  sn_check(p.plan, NULL, &err);
  must(&err);
  for (size_t i = 0; i < count; i++) {
    char *found = residents(p.plan, expected[i].step);
    if (strcmp(found, expected[i].residents) != 0)
      fail_msg("%s, step %u: %s, expected %s", strategy, expected[i].step, found, expected[i].residents);
    free(found);
  }
  pipeline_close(&p);
}

/* fc's gradient (4) is larger than fc's output (3), and the POOL's backward reads its own output: both have memory of
 * their own. Those of c2 (256) and c1 (128) take over the outputs. */
static void caffe_on_a_chain(void **state) {
  (void)state;
  static const expectation expected[] = {{1, "c1.y a1.y c2.y g.y fc.y softmax.y fc.dx g.dx "},
                                         {9, "c1.y a1.y c2.y g.y fc.y softmax.y fc.dx g.dx "},
                                         {10, "c1.y a1.y g.y fc.y softmax.y fc.dx g.dx c2.dx "},
                                         {11, "c1.y a1.y g.y fc.y softmax.y fc.dx g.dx c2.dx "},
                                         {12, "a1.y g.y fc.y softmax.y fc.dx g.dx c2.dx c1.dx "}};
  check_plan(chain, "caffe", expected, sizeof expected / sizeof expected[0]);
}

static void torch_on_a_chain(void **state) {
  (void)state;
  static const expectation expected[] = {{1, "c1.y a1.y c2.y g.y fc.y softmax.y "},
                                         {7, "c1.y a1.y c2.y g.y fc.y softmax.y "},
                                         {8, "c1.y a1.y c2.y g.y fc.y softmax.y fc.dx "},
                                         {9, "c1.y a1.y c2.y g.y fc.y softmax.y fc.dx g.dx "},
                                         {10, "c1.y a1.y c2.y g.y fc.y softmax.y g.dx c2.dx "},
                                         {12, "c1.y a1.y c2.y g.y fc.y softmax.y c2.dx c1.dx "}};
  check_plan(chain, "torch7", expected, sizeof expected / sizeof expected[0]);
}

/* At the branches nothing is shared: the gradients of c2 and c3 (the FORK's), of g (the JOIN's dy) and the JOIN's copy
 * stay; c1's takes over its output, or comes and goes. */
static void at_branches(void **state) {
  (void)state;
#define OUTPUTS "a1.y a1/fork.y0 a1/fork.y1 c2.y c3.y join.y g.y fc.y softmax.y "
  static const expectation caffe[] = {{1, "c1.y " OUTPUTS "fc.dx g.dx join.dx1 c3.dx c2.dx "},
                                      {17, "c1.y " OUTPUTS "fc.dx g.dx join.dx1 c3.dx c2.dx "},
                                      {18, OUTPUTS "fc.dx g.dx join.dx1 c3.dx c2.dx c1.dx "}};
  static const expectation torch[] = {{1, "c1.y " OUTPUTS "g.dx join.dx1 c3.dx c2.dx "},
                                      {12, "c1.y " OUTPUTS "fc.dx g.dx join.dx1 c3.dx c2.dx "},
                                      {13, "c1.y " OUTPUTS "g.dx join.dx1 c3.dx c2.dx "},
                                      {18, "c1.y " OUTPUTS "g.dx join.dx1 c3.dx c2.dx c1.dx "}};
#undef OUTPUTS
  check_plan(branches, "caffe", caffe, sizeof caffe / sizeof caffe[0]);
  check_plan(branches, "torch7", torch, sizeof torch / sizeof torch[0]);
}

/* Over all networks: a gradient takes an output that is held and fits, no output is taken twice, and only caffe takes;
 * the pool never grows past what is allocated at first. */
static void take_overs_are_sound(void **state) {
  (void)state;
  uint32_t count;
  const sn_zoo_entry *entries = sn_zoo_entries(&count);
  for (uint32_t k = 0; k < count; k++) {
    sn_err err = SN_ERR_INIT;
    pipeline p = pipeline_open(entries[k].name, 2);
    for (sn_liveness liveness = SN_LIVENESS_NONE; liveness <= SN_LIVENESS_GRADIENTS; liveness++) {
      sn_residency r;
      sn_residency_make(p.route, liveness, &r, &err);
      must(&err);
      bool *taken = calloc(p.route->n_tensors, sizeof *taken);
      uint32_t takes = 0;
      for (uint32_t t = 0; t < p.route->n_tensors; t++) {
        if (r.takes[t] == SN_NONE) continue;
        takes++;
        assert_true(!r.held[t] && r.held[r.takes[t]] && !taken[r.takes[t]]);
        assert_true(p.route->tensors[t].bytes <= p.route->tensors[r.takes[t]].bytes);
        taken[r.takes[t]] = true;
      }
      assert_int_equal(takes > 0, liveness == SN_LIVENESS_TAKE_OVER);
      free(taken);
      sn_residency_clear(&r);
    }
    pipeline_plan(&p, "caffe", SN_WORKSPACE_NONE, UINT64_MAX / 2);
    assert_true(p.plan->use[0].tensor_bytes >= p.plan->use[p.route->n_steps - 1].tensor_bytes);
    assert_true(p.plan->largest_hole == 0); /* the pool was full when it was largest: at first */
    pipeline_close(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(caffe_on_a_chain),
      cmocka_unit_test(torch_on_a_chain),
      cmocka_unit_test(at_branches),
      cmocka_unit_test(take_overs_are_sound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
