/* Where the memory is: groups of every network of the zoo add up to the live peak, to the byte, and are few, told apart
 * by name and none of them empty; and what they say of networks whose figures are known by hand. */
#include "sim/capacity/where.h"
#include "tests/support/pipeline.h"

#include "sim/ask/result.h"
#include "sim/ask/simulate.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct question {
  sn_net *net;
  sn_device gpu;
  sn_options options;
  sn_where *where;
} question;

static question ask(const char *spec, uint32_t batch, const char *strategy, sn_optimizer optimizer,
                    sn_precision precision) {
  sn_err err = SN_ERR_INIT;
  question q = {.net = load_net(spec, batch), .gpu = load_gpu("h200")};
  q.options = (sn_options)SN_OPTIONS_INIT;
  q.options.iteration.optimizer = optimizer;
  q.options.iteration.precision = precision;
  const sn_asked asked = {.spec = spec, .net = q.net, .device = &q.gpu, .options = &q.options};
  q.where = sn_where_find(&asked, parse_strategy(strategy), &err);
  must(&err);
  return q;
}

static uint64_t bytes_of(const sn_where *w, const char *name) {
  for (uint32_t i = 0; i < w->n_groups; i++)
    if (strcmp(w->groups[i].name, name) == 0) return w->groups[i].bytes;
  for (uint32_t i = 0; i < w->n_groups; i++)
    printf("%s: %llu\n", w->groups[i].name, (unsigned long long)w->groups[i].bytes);
  fail_msg("no group %s", name);
  return 0;
}

static void close_question(question *q) {
  sn_where_free(q->where);
  sn_net_free(q->net);
}

/* The result's own peak: another way through the same plan. */
static void check_sum(const question *q, const char *strategy) {
  sn_err err = SN_ERR_INIT;
  const sn_strategy s = parse_strategy(strategy);
  sn_run *run = sn_simulate("net", q->net, &q->gpu, &s, 1, &q->options, &err);
  must(&err);
  const sn_result *r = &run->results[0];
  uint64_t sum = 0;
  for (uint32_t i = 0; i < q->where->n_groups; i++) {
    sum += q->where->groups[i].bytes;
    assert_true(q->where->groups[i].bytes > 0);
    for (uint32_t k = 0; k < i; k++) assert_string_not_equal(q->where->groups[i].name, q->where->groups[k].name);
  }
  assert_true(q->where->n_groups >= 1 && q->where->n_groups <= SN_WHERE_GROUPS);
  assert_int_equal(sum, q->where->total_bytes);
  assert_int_equal(sum, sn_live_total(&r->live));
  assert_int_equal(q->where->step, r->peak_step);
  sn_run_free(run);
}

static void adds_up(void **state) {
  (void)state;
  static const char *const strategies[] = {"pytorch", "pytorch+recompute=units", "pytorch+offload"};
  uint32_t count;
  const sn_zoo_entry *entries = sn_zoo_entries(&count);
  for (uint32_t i = 0; i < count; i++)
    for (size_t k = i % 3; k < sizeof strategies / sizeof strategies[0]; k += 2) {
      bool amp = k == 0 && i % 2 == 0;
      question q = ask(entries[i].name, 2, strategies[k], i % 3 ? SN_OPTIMIZER_ADAMW : SN_OPTIMIZER_MOMENTUM,
                       amp ? SN_AMP_BF16 : SN_FP32);
      check_sum(&q, strategies[k]);
      close_question(&q);
    }
}

/* GPT-2 of 12 layers, 768 channels, 1,024 tokens and 50,257 words, batch 4, fp32. An MLP keeps what its norm makes, the
 * first product (4 x) and what the GELU's operations keep of it; parameters are 124,439,808, and AdamW keeps two
 * numbers of each, and a counter a tensor. */
static void gpt2(void **state) {
  (void)state;
  question q = ask("gpt2", 4, "pytorch", SN_OPTIMIZER_ADAMW, SN_FP32);
  assert_true(bytes_of(q.where, "logits and loss") >= UINT64_C(4) * 4 * 1024 * 50257);
  uint64_t resident = bytes_of(q.where, "parameters and AdamW"), parameters = UINT64_C(4) * 3 * 124439808;
  assert_true(resident >= parameters && resident < parameters + 65536);
  assert_true(bytes_of(q.where, "kept by 12 MLPs") > bytes_of(q.where, "kept by 12 attentions"));
  assert_string_equal(q.where->moment, "when backward begins");
  close_question(&q);
  q = ask("gpt2+lora=8:*c_attn,*c_proj,*c_fc", 4, "pytorch", SN_OPTIMIZER_ADAMW, SN_FP32); /* adapters end no block */
  assert_true(bytes_of(q.where, "kept by 12 MLPs") > bytes_of(q.where, "residual stream"));
  close_question(&q);
}

/* ViT-B/16 of 197 positions under autocast: what goes on from half a block to the next stays in four bytes, 24 of them;
 * the last one is dropped with the backward of the last norm, just ahead of the peak. */
static void residual(void **state) {
  (void)state;
  question q = ask("vit_b_16", 64, "pytorch", SN_OPTIMIZER_ADAMW, SN_AMP_BF16);
  assert_int_equal(bytes_of(q.where, "residual stream, fp32"), UINT64_C(23) * 4 * 64 * 197 * 768);
  bytes_of(q.where, "kept by 12 MLPs");
  bytes_of(q.where, "kept by 12 attentions");
  close_question(&q);
}

/* A router has a softmax, but attends to nothing. */
static void experts(void **state) {
  (void)state;
  question q = ask("mixtral:layers=2", 8, "pytorch", SN_OPTIMIZER_SGD, SN_BF16);
  assert_true(bytes_of(q.where, "kept by 2 MLPs") > bytes_of(q.where, "kept by 2 attentions"));
  close_question(&q);
}

static void stages(void **state) {
  (void)state;
  question q = ask("tv_resnet50", 32, "pytorch", SN_OPTIMIZER_MOMENTUM, SN_FP32);
  bytes_of(q.where, "kept by layer1, 3 blocks");
  bytes_of(q.where, "kept by layer3, 6 blocks");
  close_question(&q);
}

static void other_graphs(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_net *net = load_net("lenet", 2);
  sn_device gpu = load_gpu("h200");
  sn_options options = SN_OPTIONS_INIT;
  const sn_asked asked = {.spec = "lenet", .net = net, .device = &gpu, .options = &options};
  assert_null(sn_where_find(&asked, parse_strategy("liveness"), &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  sn_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(adds_up),  cmocka_unit_test(gpt2),
                                     cmocka_unit_test(residual), cmocka_unit_test(stages),
                                     cmocka_unit_test(experts),  cmocka_unit_test(other_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
