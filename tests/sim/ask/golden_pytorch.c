/* Live bytes of the dialect `pytorch` at the peak against PyTorch itself, component by component, and against two
 * traces that PyTorch 1.7 wrote.
 *
 * The first table is what MemTracker (torch.distributed._tools.mem_tracker) of PyTorch 2.15.0 says of torchvision
 * 0.29.2's networks on fake tensors, 2026-11-22: two iterations of zero_grad(); loss = cross_entropy(net(batch),
 * labels); loss.backward(); step(), the higher peak. bench/pytorch_memory.py asks again. Under MemTracker, as under any
 * dispatch mode, gradients that meet are always added into a third tensor: strategy pytorch-1.7. What is asked without
 * one, by the reference counts that PyTorch itself looks at, is strategy pytorch. */
#include "tests/support/live_of.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOMENTUM = SN_OPTIMIZER_MOMENTUM, SGD = SN_OPTIMIZER_SGD, ADAM = SN_OPTIMIZER_ADAM, ADAMW = SN_OPTIMIZER_ADAMW };

#define THIRD    "pytorch-1.7"
#define IN_PLACE "pytorch"

typedef struct row {
  const char *net;
  uint32_t batch;
  int optimizer;
  const char *strategy;
  uint32_t passing; /* elements of the weight gradient of the CONV that has just run: temporary for MemTracker until it
                       has been handed on, which comes behind the sum; a gradient for us */
  sn_live live;     /* what PyTorch says */
} row;

/* live: parameters, buffers, gradients, optimizer, activations, temporary */
static const row rows[] = {
    {"tv_resnet50", 32, MOMENTUM, THIRD, 0, {102228128, 212904, 8196000, 102228128, 2749054728, 25690112}},
    {"tv_vgg16", 64, MOMENTUM, THIRD, 0, {553430176, 0, 522889120, 553430176, 4508615176, 205520896}},
    {"tv_densenet121", 84, MOMENTUM, THIRD, 0, {31915424, 335560, 4100000, 31915424, 10950344104, 33718272}},
    {"tv_alexnet", 256, ADAM, THIRD, 0, {244403360, 0, 234524576, 488806784, 893782024, 88604672}},
    {"tv_resnet18", 32, MOMENTUM, THIRD, 512 * 256 * 9, {46758048, 38560, 30908320, 46758048, 680806152, 23986176}},
    {"tv_resnet18", 32, MOMENTUM, IN_PLACE, 0, {46758048, 38560, 30908320, 46758048, 680806152, 20774912}},
    {"tv_resnet50", 16, MOMENTUM, THIRD, 1024 * 512, {102228128, 212904, 65957792, 102228128, 1300684424, 40632320}},
    {"tv_resnet50", 16, MOMENTUM, IN_PLACE, 0, {102228128, 212904, 65953696, 102228128, 1313533576, 25690112}},
    {"tv_resnet101", 16, SGD, THIRD, 1024 * 512, {178196640, 422208, 65957792, 0, 1955991176, 40632320}},
    {"tv_resnet101", 16, SGD, IN_PLACE, 0, {178196640, 422208, 65953696, 0, 1968840328, 25690112}},
    {"tv_resnet152", 8, ADAM, THIRD, 1024 * 512, {240771232, 606936, 65957792, 481544332, 1382964808, 21364736}},
    {"tv_resnet152", 8, ADAM, IN_PLACE, 0, {240771232, 606936, 65953696, 481544332, 1389391432, 12845056}},
    {"tv_inception_v3", 16, ADAMW, THIRD, 2048 * 448, {95338272, 138480, 19515296, 190677680, 1547683144, 37224448}},
    {"tv_inception_v3", 16, ADAMW, IN_PLACE, 0, {95338272, 138480, 19515296, 190677680, 1547683144, 30670848}},
    {"tv_densenet121", 16, SGD, THIRD, 0, {31915424, 335560, 4100000, 0, 2086050696, 6422528}},
    {"tv_resnet50", 64, ADAM, IN_PLACE, 0, {102228128, 212904, 8196000, 204456900, 5497896968, 51380224}},
    {"tv_resnet101", 48, MOMENTUM, IN_PLACE, 0, {178196640, 422208, 8196000, 178196640, 6088978312, 38535168}},
    {"tv_resnet152", 32, ADAMW, IN_PLACE, 0, {240771232, 606936, 8196000, 481544332, 5678120712, 25690112}},
    {"tv_inception_v3", 64, SGD, IN_PLACE, 0, {95338272, 138480, 8197536, 0, 6276358408, 71827456}},
    {"tv_densenet121", 64, ADAM, IN_PLACE, 0, {31915424, 335560, 4100000, 63832304, 8343198984, 25690112}},
    {"tv_mobilenet_v2", 32, MOMENTUM, IN_PLACE, 0, {14019488, 136864, 5124000, 14019488, 2502514184, 16056320}},
    {"tv_mobilenet_v2", 96, ADAM, IN_PLACE, 0, {14019488, 136864, 5124000, 28039608, 7507269640, 48168960}},
    {"tv_squeezenet1_1", 32, ADAMW, IN_PLACE, 0, {4941984, 0, 0, 9884176, 665924872, 43264000}},
    {"tv_squeezenet1_1", 256, SGD, IN_PLACE, 0, {4941984, 0, 0, 0, 5327398920, 346112000}},
    {"tv_vgg16", 96, SGD, IN_PLACE, 0, {553430176, 0, 522889120, 0, 6762922760, 308281344}},
    {"tv_vgg19", 16, MOMENTUM, IN_PLACE, 0, {574668960, 0, 532328352, 574668960, 1204224136, 51380224}},
    {"tv_vgg19", 64, ADAM, IN_PLACE, 0, {574668960, 0, 532328352, 1149338072, 4816896520, 205520896}},
    {"tv_alexnet", 32, MOMENTUM, IN_PLACE, 0, {244403360, 0, 243080608, 244403360, 79880456, 35831808}},
    {"tv_alexnet", 512, ADAMW, IN_PLACE, 0, {244403360, 0, 234524576, 488806784, 1787564040, 177209344}},
    {"convnext_tiny", 16, MOMENTUM, IN_PLACE, 0, {114356512, 0, 3085216, 114356512, 1743987208, 23890944}},
    {"convnext_tiny", 64, ADAM, IN_PLACE, 0, {114356512, 0, 3085216, 228713752, 6975948808, 67243008}},
    {"mobilenet_v3_large", 16, SGD, IN_PLACE, 0, {21932128, 97968, 10044320, 0, 705613768, 6021120}},
    {"mobilenet_v3_large", 64, MOMENTUM, IN_PLACE, 0, {21932128, 97968, 10044320, 21932128, 2822162248, 24084480}},
    {"unet", 2, MOMENTUM, IN_PLACE, 0, {124150792, 47248, 520, 124150792, 2749413384, 268435456}},
    {"unet", 4, MOMENTUM, IN_PLACE, 0, {124150792, 47248, 520, 124150792, 5498779656, 536870912}},
    {"efficientnet_b0", 16, MOMENTUM, IN_PLACE, 0, {21154192, 168456, 5124000, 21154192, 1411109192, 8028160}},
    {"tv_r3d_18", 8, MOMENTUM, IN_PLACE, 0, {133485888, 38560, 121830976, 133485888, 1278090824, 61341696}},
    {"tv_mc3_18", 8, ADAM, IN_PLACE, 0, {46781760, 38560, 820800, 93563768, 1856149064, 25690112}},
    {"tv_r2plus1d_18", 8, ADAM, IN_PLACE, 0, {126021300, 101696, 96574416, 252043052, 3952509648, 35323904}},
    {SNSIM_SOURCE_DIR "/models/examples/unet3d.json",
     2,
     MOMENTUM,
     IN_PLACE,
     0,
     {5424268, 5200, 396, 5424268, 446698504, 67108864}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Two batches an update: the peak is in the second one's backward. */
static const row accumulated[] = {
    {"tv_squeezenet1_1", 16, ADAM, IN_PLACE, 0, {4941984, 0, 4941984, 9884176, 332962440, 21632000}},
    {"tv_alexnet", 64, SGD, IN_PLACE, 0, {244403360, 0, 244403360, 0, 233472520, 154419200}},
    {"tv_vgg16", 16, MOMENTUM, IN_PLACE, 0, {553430176, 0, 553430176, 553430176, 1172111496, 412925952}},
    {"tv_vgg19", 64, ADAM, IN_PLACE, 0, {574668960, 0, 574668960, 1149338072, 5022417416, 418529280}},
    {"tv_mobilenet_v2", 64, SGD, IN_PLACE, 0, {14019488, 136864, 14019488, 0, 5004891912, 32112640}},
    {"tv_resnet50", 64, MOMENTUM, IN_PLACE, 0, {102228128, 212904, 102228128, 102228128, 5497896968, 51380224}},
    {"tv_inception_v3", 16, MOMENTUM, IN_PLACE, 0, {95338272, 138480, 95338272, 95338272, 1569191752, 19136512}},
    {"tv_densenet121", 16, ADAM, IN_PLACE, 0, {31915424, 335560, 31915424, 63832304, 2086050696, 6422528}},
    {"tv_resnet152", 16, ADAM, IN_PLACE, 0, {240771232, 606936, 240771232, 481544332, 2839363208, 12845056}},
};
enum { ACCUMULATED = sizeof accumulated / sizeof accumulated[0] };

/* The network alone, its layers one after the other: eval mode, no gradients. */
static const struct {
  const char *net;
  uint64_t total;
} running[] = {
    {"tv_resnet18", 159190848},      {"tv_resnet50", 266215496},     {"tv_alexnet", 275385504},
    {"tv_vgg16", 974105760},         {"tv_densenet121", 176757864},  {"tv_mobilenet_v2", 177930816},
    {"tv_squeezenet1_1", 102213792}, {"tv_inception_v3", 289662672}, {"inception_v4", 365159048},
    {"alexnet", 333749344},
};
enum { RUNNING = sizeof running / sizeof running[0], RUNNING_BATCH = 16 };

static void check(const row *expected, const char *what, uint64_t ours, uint64_t theirs) {
  if (ours != theirs)
    fail_msg("%s, batch %u, optimizer %d, %s: %s %" PRIu64 ", PyTorch %" PRIu64, expected->net, expected->batch,
             expected->optimizer, expected->strategy, what, ours, theirs);
}

static sn_live live_of_row(const row *r, uint32_t accumulate) {
  sn_net *net = load_net(r->net, r->batch);
  const sn_iteration iteration = {.optimizer = (sn_optimizer)r->optimizer, .accumulate = accumulate};
  sn_live live = live_of(r->net, net, r->strategy, iteration);
  sn_net_free(net);
  return live;
}

static void check_rows(const row *all, size_t count, uint32_t accumulate) {
  for (size_t i = 0; i < count; i++) {
    const row *r = &all[i];
    uint64_t passing = UINT64_C(4) * r->passing;
    sn_live live = live_of_row(r, accumulate);
    check(r, "parameters", live.parameters, r->live.parameters);
    check(r, "buffers", live.buffers, r->live.buffers);
    check(r, "gradients", live.gradients, r->live.gradients + passing);
    check(r, "optimizer", live.optimizer, r->live.optimizer);
    check(r, "activations", live.activations, r->live.activations);
    check(r, "temporary", live.temporary + passing, r->live.temporary);
    check(r, "total", sn_live_total(&live), sn_live_total(&r->live));
  }
}

static void live_bytes(void **state) {
  (void)state;
  check_rows(rows, ROWS, 1);
}

/* Of three or more batches as of two. */
static void accumulated_gradients(void **state) {
  (void)state;
  check_rows(accumulated, ACCUMULATED, 2);
  check_rows(accumulated, 2, 7);
}

static void inference(void **state) {
  (void)state;
  for (size_t i = 0; i < RUNNING; i++) {
    sn_net *net = load_net(running[i].net, RUNNING_BATCH);
    sn_live live = live_of(running[i].net, net, "pytorch", (sn_iteration){.inference = true});
    if (sn_live_total(&live) != running[i].total)
      fail_msg("%s run: %" PRIu64 ", PyTorch %" PRIu64, running[i].net, sn_live_total(&live), running[i].total);
    assert_int_equal(live.gradients + live.optimizer + live.temporary, 0);
    sn_net_free(net);
  }
}

/* A peak in the update: P more, the square roots that Adam makes for all parameters at once. All that step() makes is
 * the optimizer's for MemTracker. The 4 bytes of the loss' gradient, which ours still has then, are gone in PyTorch. */
static void peak_in_the_update(void **state) {
  (void)state;
  enum { LOSS_GRADIENT = 4 };
  static const row adam = {"tv_alexnet", 32, ADAM, IN_PLACE, 0, {244403360, 0, 244403360, 733210144, 19267844, 0}};
  sn_live live = live_of_row(&adam, 1);
  check(&adam, "parameters", live.parameters, adam.live.parameters);
  check(&adam, "gradients", live.gradients, adam.live.gradients);
  check(&adam, "optimizer and temporary", live.optimizer + live.temporary, adam.live.optimizer);
  check(&adam, "temporary", live.temporary, adam.live.parameters);
  check(&adam, "activations", live.activations, adam.live.activations + LOSS_GRADIENT);
}

/* Of each, what a GPU keeps and fake tensors do not, two seeds of 8 bytes an attention; and what is not modelled, the
 * 64-bit numbers of the positions, and T5's mask of what is to come, a number for each two positions. Buffers of BERT
 * and Swin, which hold such numbers, are not either. */
static const struct {
  row row;
  uint64_t seeds, unmodelled;
} sequences[] = {
    /* on fakes of a GPU */
    {{"vit_b_16", 16, MOMENTUM, IN_PLACE, 0, {346270624, 0, 3082144, 346270624, 1987624264, 57854976}}, 0, 0},
    {{"gpt2", 4, ADAMW, IN_PLACE, 0, {497759232, 0, 0, 995519056, 5158330376, 1646821376}}, 12 * 16, 1024 * 8},
    {{"bert_base", 32, MOMENTUM, IN_PLACE, 0, {437928960, 0, 2368512, 437928960, 9978384648, 311430144}},
     12 * 16,
     512 * 8},
    {{"swin_t", 16, MOMENTUM, IN_PLACE, 0, {113153416, 0, 3082144, 113153416, 1703683656, 23890944}}, 0, 0},
    {{"t5_base", 4, MOMENTUM, IN_PLACE, 0, {891614208, 0, 0, 891614208, 7880589320, 526385152}}, 0, 4 * 512 * 512 * 4},
};

static void transformers(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++) {
    const row *r = &sequences[i].row;
    sn_live live = live_of_row(r, 1);
    check(r, "parameters", live.parameters, r->live.parameters);
    check(r, "gradients", live.gradients, r->live.gradients);
    check(r, "optimizer", live.optimizer, r->live.optimizer);
    check(r, "activations", live.activations + sequences[i].unmodelled, r->live.activations + sequences[i].seeds);
    check(r, "temporary", live.temporary, r->live.temporary);
  }
}

/* Frameworks, section 8: with a mask of 4 MiB beside. */
static void gpt2_of_frameworks(void **state) {
  (void)state;
  const uint64_t published = UINT64_C(8302591800);
  static const row gpt2 = {.net = "gpt2", .batch = 4, .optimizer = ADAMW, .strategy = IN_PLACE};
  sn_live live = live_of_row(&gpt2, 1);
  assert_in_range(sn_live_total(&live), published / 1000 * 999, published / 1000 * 1001);
}

/* ---- DTR's traces ----
 *
 * The peaks of the logs of DTR's simulator (Kirisame et al., ICLR 2021; simrd/logs.zip of uwsampl/dtr-prototype) when
 * nothing is evicted: PyTorch 1.7, no optimizer. Beside the iteration the logs hold the logits, which the training loop
 * keeps in a variable. */

static void check_trace(sn_net *net, uint64_t classes, uint64_t expected) {
  sn_live live = live_of(net->name, net, "pytorch-1.7", (sn_iteration){.optimizer = SN_OPTIMIZER_SGD});
  uint64_t found = sn_live_total(&live) + 4 * classes * net->batch;
  if (found != expected) fail_msg("%s: %" PRIu64 ", DTR %" PRIu64, net->name, found, expected);
}

static void dtr_densenet121(void **state) {
  (void)state;
  sn_net *net = load_net("tv_densenet121", 84);
  check_trace(net, 1000, UINT64_C(11020749360));
  sn_net_free(net);
}

/* `text` with one occurrence of `old` made `new`; malloc'd. */
static char *replaced(const char *text, const char *old, const char *new) {
  const char *at = strstr(text, old);
  assert_non_null(at);
  assert_null(strstr(at + 1, old));
  size_t room = strlen(text) + strlen(new) + 1;
  char *out = malloc(room);
  assert_non_null(out);
  snprintf(out, room, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
  return out;
}

/* Theirs has 1,001 classes, and its last pool is an average over a window of 8x8, which keeps its input, not a mean. */
static void dtr_inception_v4(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *ours = load_net("inception_v4", 64);
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  sn_net_write_json(ours, out, &err);
  must(&err);
  fclose(out);
  char *windowed = replaced(text, "\"global\":true", "\"kernel\":8,\"stride\":1");
  char *theirs = replaced(windowed, "\"channels\":1000,", "\"channels\":1001,");
  sn_net *net = load_net(theirs, 64);
  check_trace(net, 1001, UINT64_C(11245348984));
  sn_net_free(net);
  sn_net_free(ours);
  free(theirs);
  free(windowed);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(live_bytes),      cmocka_unit_test(accumulated_gradients),
      cmocka_unit_test(inference),       cmocka_unit_test(peak_in_the_update),
      cmocka_unit_test(transformers),    cmocka_unit_test(gpt2_of_frameworks),
      cmocka_unit_test(dtr_densenet121), cmocka_unit_test(dtr_inception_v4),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
