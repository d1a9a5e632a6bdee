/* Frozen layers (sim/graph/freeze.h): which names a glob holds, what PyTorch's MemTracker counts (PyTorch 2.15.0,
 * torchvision 0.29.2, bench/pytorch_memory.py --freeze, the last of vgg16 with --flat), and what each operation keeps.
 */
#include "tests/support/live_of.h"
#include "tests/support/random_net.h"
#include "tests/support/seed.h"
#include "tests/support/step_text.h"

#include "sim/graph/freeze.h"
#include "sim/graph/route.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- globs ---- */

static void globs(void **state) {
  (void)state;
  static const struct {
    const char *freeze, *name;
    bool holds;
  } cases[] = {
      {"conv1", "conv1", true},       {"conv1", "conv10", false},
      {"conv?", "conv1", true},       {"conv?", "conv", false},
      {"layer1*", "layer1.0", true},  {"*", "", true},
      {"*.bn?", "a.b.bn2", true},     {"*.bn?", "a.bn2.x", false},
      {"a*b*c", "aXbYbZc", true},     {"a*b*c", "acb", false},
      {"x,conv1", "conv1", true},     {"x,y", "x,y", false},
      {"conv1,x", "conv1", true},     {"conv[12]", "conv1", true},
      {"conv[12]", "conv[12]", true}, {"", "", false},
      {"**a**", "bab", true},         {"a", "", false},
      {"conv[12]", "conv3", false},   {"layer[0-3].*", "layer3.0", true},
      {"l[0-3]", "l4", false},        {"l[!0-3]", "l4", true},
      {"l[^0-3]", "l2", false},       {"l[]x]", "l]", true},
      {"l[!]x]", "l]", false},        {"l[a-]", "l-", true},
      {"l[!]", "l[!]", true},         {"*[0-9].w", "a.12.w", true},
      {"l[[]0]", "l[0]", true},       {"l[0]", "l0", true},
      {"x,l[12]", "l2", true},        {"l[0-3]", "l", false},
      {"*[ab]*[cd]", "xaybzd", true}, {"[a-cx-z]", "y", true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (sn_globs_match(cases[i].freeze, cases[i].name) != cases[i].holds)
      fail_msg("\"%s\" and \"%s\"", cases[i].freeze, cases[i].name);
  assert_false(sn_globs_match(NULL, "conv1"));
}

/* A matcher that tries every `*` again would be at this for longer than the universe is old. */
static void hostile_glob(void **state) {
  (void)state;
  char glob[SN_GLOBS_TEXT + 1], name[4001];
  for (size_t i = 0; i < SN_GLOBS_TEXT; i++) glob[i] = i % 2 ? 'a' : '*';
  glob[SN_GLOBS_TEXT - 1] = 'b';
  glob[SN_GLOBS_TEXT] = '\0';
  memset(name, 'a', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  clock_t begin = clock();
  assert_false(sn_globs_match(glob, name));
  assert_true(clock() - begin < CLOCKS_PER_SEC);
}

static void refused(const char *freeze, const sn_net *net, const char *words) {
  sn_err err = SN_ERR_INIT;
  if (sn_globs_check_text("--freeze", freeze, &err) == SN_OK) sn_freeze_check(freeze, net, &err);
  assert_int_equal(err.code, SN_BAD_USAGE);
  if (!strstr(err.text, words)) fail_msg("\"%s\": %s", freeze, err.text);
}

static void refusals(void **state) {
  (void)state;
  char longest[SN_GLOBS_TEXT + 2];
  sn_net *net = load_net("tv_resnet18", 1);
  memset(longest, '*', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  refused("layr1*", net, "did you mean \"layer1\"?");
  refused("relu", net, "no layer of tv_resnet18 with parameters is called \"relu\"");
  refused("conv1,nothing_like_it", net, "\"nothing_like_it\"");
  refused("*", net, "nothing is trained");
  refused("", net, "is empty");
  refused("conv1,,bn1", net, "is empty");
  refused("conv1,", net, "is empty");
  refused("conv\x1b[2J", net, "no part of a name");
  refused("conv\xff", net, "no part of a name");
  refused(longest, net, "1000 bytes");
  refused("layer[1", net, "the [ of \"layer[1\" has no ]");
  refused("layer[1,2]", net, "the [ of \"layer[1\" has no ]");
  refused("conv[!]", net, "has no ]");
  refused("conv[3-1]", net, "\"[3-1]\" is no class");
  refused("conv[\xc3\xa9]", net, "is no class");
  refused("layr[1]*", net, "did you mean \"layer");
  sn_net_free(net);
}

/* ---- live bytes ---- */

typedef struct row {
  const char *net, *freeze;
  uint32_t batch;
  sn_iteration iteration;
  uint64_t total;  /* PyTorch's */
  int64_t between; /* ours beyond that */
} row;

#define ADAM                                                                                                           \
  { .optimizer = SN_OPTIMIZER_ADAM }
#define MOMENTUM                                                                                                       \
  { .optimizer = SN_OPTIMIZER_MOMENTUM }
#define AMP                                                                                                            \
  { .optimizer = SN_OPTIMIZER_MOMENTUM, .precision = SN_AMP_BF16 }

static const row rows[] = {
    {"tv_resnet50", "conv1,bn1,layer1.*,layer2.*", 32, MOMENTUM, 977961104, 0},
    {"tv_resnet50", "conv1,bn1,layer1.*,layer2.*", 32, ADAM, 1074409876, 0},
    {"tv_resnet50", "conv1,bn1,layer*", 32, MOMENTUM, 438188264, 0}, /* --flat */
    {"tv_resnet50", "conv1,bn1,layer*", 32, ADAM, 446384272, 0},     /* --flat */
    {"tv_resnet50", "layer1.*,layer3.*", 32, MOMENTUM, 2958353296, 0},
    {"tv_resnet50", "*bn*", 32, ADAM, 3089474860, 0},
    {"tv_resnet50", "*conv*", 32, MOMENTUM, 2904865936, 0},
    {"tv_resnet50", "fc", 32, MOMENTUM, 2971218000, 0},
    {"tv_resnet50", "layer1.*,layer3.*,conv1", 32, {.accumulate = 2}, 3023053456, 0},
    {"tv_resnet50", "layer1.*,layer3.*,conv1", 32, AMP, 1653158288, 106240}, /* statistics of BN, docs/pytorch.md */
    {"tv_vgg16", "features.*", 32, MOMENTUM, 1889353024, 0},
    {"tv_vgg16", "features.*", 32, ADAM, 2550983736, 8}, /* the loss and its gradient, docs/pytorch.md */
    {"tv_vgg16", "features.5,classifier.0,classifier.3", 32, ADAM, 3105106672, 0},
    {"tv_vgg16", "features.5,classifier.0,classifier.3", 32, AMP, 2308165016, 0},
    {"tv_vgg16", "features.*,classifier.0,classifier.3", 32, ADAM, 1427557608, 0}, /* --flat */
    {"vit_b_16", "*mlp*", 16, MOMENTUM, 1962740776, 0},                            /* on fakes of a GPU */
};

static void live_bytes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const row *r = &rows[i];
    sn_net *net = load_net(r->net, r->batch);
    sn_iteration iteration = r->iteration;
    iteration.freeze = r->freeze;
    sn_live live = live_of(net->name, net, "pytorch", iteration);
    int64_t off = (int64_t)(sn_live_total(&live) - r->total);
    if (off != r->between) fail_msg("%s, %s: %" PRId64 " off, not %" PRId64, r->net, r->freeze, off, r->between);
    sn_net_free(net);
  }
}

/* ---- steps ---- */

static const char small[] = "{\"snsim_net\":1,\"name\":\"small\",\"input\":[4,4,4],\"layers\":["
                            "{\"name\":\"front\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                            "{\"name\":\"first\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                            "{\"name\":\"conv\",\"op\":\"CONV\",\"channels\":4,\"kernel\":3,\"pad\":1},"
                            "{\"name\":\"mul\",\"op\":\"MUL\",\"inputs\":[\"conv\",\"front\"]},"
                            "{\"name\":\"fc\",\"op\":\"FC\",\"channels\":8},"
                            "{\"name\":\"softmax\",\"op\":\"SOFTMAX\"}]}";

/* front has no backward; conv keeps its input though it is frozen, fc does not, and of mul's operands the one that
 * needs no gradient is kept. */
static void steps(void **state) {
  (void)state;
  static const char *const expected[] = {
      "softmax backward softmax.y:r softmax.scratch:w softmax.dx:w",
      "fc backward softmax.dx:r fc.dx:w",
      "mul backward fc.dx:r front.y:r mul.dx0:w",
      "conv backward mul.dx0:r first.y:r conv.dx:w",
      "first backward conv.dx:r front.y:r first.dw:w first.db:w",
      "first update first.dw:r first.db:r softmax.saved:r",
  };
  const uint32_t count = sizeof expected / sizeof expected[0];
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net(small, 1);
  const sn_iteration iteration = {.freeze = "front,conv,f?"};
  sn_route *route = sn_route_new_for(net, SN_DIALECT_PYTORCH, SN_ORDER_ROUTE, iteration, NULL, &err);
  must(&err);
  assert_int_equal(route->n_steps, route->first_backward + count);
  for (uint32_t i = 0; i < count; i++) check_step(route, route->first_backward + i, expected[i]);
  sn_route_free(route);
  for (sn_dialect_id d = 0; d < SN_DIALECTS; d++) {
    route = sn_route_new_for(net, d, SN_ORDER_ROUTE, iteration, NULL, &err);
    assert_true(route ? sn_dialect_of(d)->eager : err.code == SN_BAD_USAGE);
    sn_route_free(route);
    err = (sn_err)SN_ERR_INIT;
  }
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(globs),      cmocka_unit_test(hostile_glob), cmocka_unit_test(refusals),
      cmocka_unit_test(live_bytes), cmocka_unit_test(steps),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
