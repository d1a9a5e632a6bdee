/* Strategy names: the 13 of the default table and their aliases, every part that clashes, every misspelling. */
#include "sim/policy/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

/* Order and names of the default table. */
static const char *const names[SN_STRATEGY_DEFAULTS] = {
    "baseline",
    "liveness",
    "liveness+offload",
    "liveness+cache",
    "liveness+recompute=speed",
    "liveness+recompute=memory",
    "liveness+recompute=cost",
    "liveness+offload+recompute=speed",
    "liveness+offload+recompute=memory",
    "liveness+offload+recompute=cost",
    "liveness+cache+recompute=speed",
    "liveness+cache+recompute=memory",
    "liveness+cache+recompute=cost",
};

static bool same(sn_strategy a, sn_strategy b) {
  assert_int_equal(sn_strategy_same(a, b), a.liveness == b.liveness && a.offload == b.offload &&
                                               a.recompute == b.recompute && a.dialect == b.dialect &&
                                               a.dynamic == b.dynamic && sn_policy_same(a.corun, b.corun));
  return sn_strategy_same(a, b);
}

static sn_strategy parse(const char *text) {
  sn_err err = SN_ERR_INIT;
  sn_strategy strategy = {.liveness = true, .offload = SN_OFFLOAD_CACHE, .recompute = SN_RECOMPUTE_COST};
  if (sn_strategy_parse(text, &strategy, &err) != SN_OK) fail_msg("%s", err.text);
  return strategy;
}

static void defaults(void **state) {
  (void)state;
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
    char text[SN_STRATEGY_TEXT];
    sn_strategy s = sn_strategy_default(i);
    assert_string_equal(sn_strategy_name(s, text), names[i]);
    assert_true(same(parse(names[i]), s));
    for (uint32_t k = 0; k < i; k++) {
      assert_false(same(sn_strategy_default(k), s));
      assert_string_not_equal(sn_strategy_summary(sn_strategy_default(k)), sn_strategy_summary(s));
    }
  }
}

/* Every combination there is has a name that leads back to it, and a line that says what it does. */
static void all_combinations(void **state) {
  (void)state;
  for (int offload = SN_OFFLOAD_NONE; offload <= SN_OFFLOAD_CACHE; offload++)
    for (int recompute = SN_RECOMPUTE_NONE; recompute <= SN_RECOMPUTE_COST; recompute++) {
      sn_strategy s = {.liveness = true, .offload = (sn_offload)offload, .recompute = (sn_recompute)recompute};
      char text[SN_STRATEGY_TEXT];
      assert_true(same(parse(sn_strategy_name(s, text)), s));
      assert_true(strlen(sn_strategy_summary(s)) > 10);
      for (sn_policy_kind k = SN_POLICY_WORKERS; k < SN_POLICY_KINDS && !offload; k++) {
        s.corun = k == SN_POLICY_WORKERS ? (sn_policy){k, 4, 16} : (sn_policy){.kind = k};
        assert_true(same(parse(sn_strategy_name(s, text)), s));
        assert_true(strlen(sn_strategy_summary(s)) > 10);
      }
    }
}

/* Of stages: without copies and cores, and of SuperNeurons' graph. */
static void stages(void **state) {
  (void)state;
  static const char *const known[] = {"liveness+recompute=sqrt", "liveness+recompute=optimal",
                                      "liveness+recompute=dtr"};
  for (int i = 0; i < 3; i++) {
    char text[SN_STRATEGY_TEXT], sentence[SN_STRATEGY_SENTENCE];
    sn_strategy s = parse(known[i]);
    assert_string_equal(sn_strategy_name(s, text), known[i]);
    assert_int_equal(sn_strategy_adapts(s), i > 0);
    assert_true(strlen(sn_strategy_summary(s)) > 10 && strlen(sn_strategy_sentence(s, sentence)) > 60);
  }
  static const char *const wrong[] = {"liveness+offload+recompute=sqrt",
                                      "liveness+cache+recompute=optimal",
                                      "liveness+recompute=optimal+corun=path",
                                      "pytorch+recompute=sqrt",
                                      "explicit+recompute=optimal",
                                      "liveness+cache+recompute=dtr",
                                      "liveness+recompute=dtr+corun=path",
                                      "pytorch+recompute=dtr"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    sn_err err = SN_ERR_INIT;
    sn_strategy s;
    assert_int_equal(sn_strategy_parse(wrong[i], &s, &err), SN_BAD_USAGE);
  }
}

/* Graphs of their own: each named, and parts in any order. */
static void frameworks(void **state) {
  (void)state;
  static const char *const framework_names[SN_STRATEGY_FRAMEWORKS] = {
      "pytorch",          "pytorch+recompute=units",
      "pytorch+offload",  "pytorch+offload+recompute=units",
      "pytorch-1.7",      "explicit",
      "explicit+dynamic", "singa-layer",
      "singa-serial",     "singa-bfs"};
  for (uint32_t i = 0; i < SN_STRATEGY_FRAMEWORKS; i++) {
    char text[SN_STRATEGY_TEXT];
    sn_strategy s = sn_strategy_framework(i);
    assert_string_equal(sn_strategy_name(s, text), framework_names[i]);
    assert_true(same(parse(text), s));
    for (uint32_t k = 0; k < i; k++)
      assert_string_not_equal(sn_strategy_summary(sn_strategy_framework(k)), sn_strategy_summary(s));
  }
  for (uint32_t i = 0; i < SN_STRATEGY_FRAMEWORKS; i++)
    assert_int_equal(sn_strategy_is_simulated(sn_strategy_framework(i)), i >= SN_STRATEGY_EXECUTED);
  assert_true(same(parse("recompute=units+pytorch"), sn_strategy_framework(1)));
  assert_true(same(parse("pytorch+offload=conv"), sn_strategy_framework(2)));
}

/* Published systems: their names, each a policy of its own. */
static void systems(void **state) {
  (void)state;
  static const char *const known[SN_STRATEGY_SYSTEMS] = {
      "caffe", "torch7", "mxnet", "tensorflow", "vdnn-all", "vdnn-conv", "superneurons-paper"};
  for (uint32_t i = 0; i < SN_STRATEGY_SYSTEMS; i++) {
    char text[SN_STRATEGY_TEXT];
    sn_strategy s = sn_strategy_system(i);
    assert_string_equal(sn_strategy_name(s, text), known[i]);
    assert_true(same(parse(known[i]), s));
    assert_true(strlen(sn_strategy_summary(s)) > 10);
    assert_int_equal(sn_strategy_is_pageable(s), strcmp(known[i], "tensorflow") == 0);
    assert_int_equal(sn_strategy_has_cache(s), strcmp(known[i], "superneurons-paper") == 0);
    for (uint32_t k = 0; k < i; k++) assert_false(same(sn_strategy_system(k), s));
    for (uint32_t k = 0; k < SN_STRATEGY_DEFAULTS; k++) assert_false(same(sn_strategy_default(k), s));
  }
}

static void aliases(void **state) {
  (void)state;
  static const char *const pairs[][2] = {
      {"superneurons", "liveness+cache+recompute=cost"},
      {"liveness+offload=conv", "liveness+offload"},
      {"offload+liveness", "liveness+offload"},
      {"recompute=cost+cache+liveness", "liveness+cache+recompute=cost"},
      {"recompute=memory+liveness+offload=checkpoints", "liveness+offload=checkpoints+recompute=memory"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    char text[SN_STRATEGY_TEXT];
    assert_string_equal(sn_strategy_name(parse(pairs[i][0]), text), pairs[i][1]);
  }
}

typedef struct refusal {
  const char *text, *said;
} refusal;

static void check_refusals(const refusal *list, size_t count) {
  for (size_t i = 0; i < count; i++) {
    sn_err err = SN_ERR_INIT;
    sn_strategy s = {.liveness = true, .offload = SN_OFFLOAD_CONV, .recompute = SN_RECOMPUTE_SPEED};
    assert_int_equal(sn_strategy_parse(list[i].text, &s, &err), SN_BAD_USAGE);
    if (!strstr(err.text, list[i].said)) fail_msg("\"%s\": %s", list[i].text, err.text);
    assert_true(s.liveness && s.offload == SN_OFFLOAD_CONV && s.recompute == SN_RECOMPUTE_SPEED); /* untouched */
  }
}

static void clashes(void **state) {
  (void)state;
  static const refusal list[] = {
      {"baseline+liveness", "strategy \"baseline+liveness\": baseline, superneurons and published systems stand alone"},
      {"liveness+baseline", "stand alone"},
      {"baseline+offload", "stand alone"},
      {"baseline+baseline", "stand alone"},
      {"superneurons+cache", "stand alone"},
      {"superneurons+liveness", "stand alone"},
      {"liveness+superneurons", "stand alone"},
      {"cache+superneurons", "stand alone"},
      {"caffe+recompute=cost", "stand alone"},
      {"liveness+mxnet", "stand alone"},
      {"singa-serial+offload", "stand alone"},
      {"liveness+singa-bfs", "stand alone"},
      {"liveness+liveness", "only one of liveness, pytorch and explicit"},
      {"liveness+cache+liveness", "only one of liveness, pytorch and explicit"},
      {"liveness+offload+cache", "only one of offload and cache"},
      {"liveness+cache+offload=checkpoints", "only one of offload and cache"},
      {"liveness+offload+offload", "only one of offload and cache"},
      {"liveness+cache+cache", "only one of offload and cache"},
      {"liveness+recompute=cost+recompute=speed", "only one kind of recompute"},
      {"liveness+recompute=cost+recompute=cost", "only one kind of recompute"},
      {"pytorch+cache", "pytorch+offload"},
      {"pytorch+recompute=cost", "pytorch+recompute=units"},
      {"liveness+recompute=units", "pytorch+recompute=units"},
      {"liveness+dynamic", "only explicit can be dynamic"},
      {"explicit+offload", "explicit or explicit+dynamic"},
      {"liveness+pytorch", "only one of"},
      {"offload", "strategy \"offload\": offload, cache, recompute and corun need liveness"},
      {"cache", "need liveness"},
      {"recompute=memory", "need liveness"},
      {"cache+recompute=cost", "need liveness"},
      {"corun=path", "need liveness"},
      {"baseline+corun=path", "stand alone"},
      {"corun=path+baseline", "stand alone"},
      {"superneurons+corun=path", "stand alone"},
      {"liveness+corun=path+corun=s1", "only one corun"},
      {"liveness+offload+corun=path", "cannot be combined with offload or cache"},
      {"liveness+corun=path+cache+recompute=cost", "cannot be combined with offload or cache"},
      {"pytorch+corun=path", "only SuperNeurons' graph is run side by side: liveness+corun=.."},
      {"explicit+corun=4x16", "only SuperNeurons' graph"},
  };
  check_refusals(list, sizeof list / sizeof list[0]);
}

static void misspellings(void **state) {
  (void)state;
  static const refusal list[] = {
      {"", "unknown strategy \"\": a part of it is empty; snsim list strategies shows them"},
      {"+", "unknown strategy \"+\": a part of it is empty"},
      {"liveness+", "unknown strategy \"liveness+\": a part of it is empty"},
      {"+liveness", "unknown strategy \"+liveness\": a part of it is empty"},
      {"liveness++cache", "unknown strategy \"liveness++cache\": a part of it is empty"},
      {"livenes", "unknown strategy \"livenes\" (did you mean \"liveness\"?); snsim list strategies"},
      {"Liveness", "\"Liveness\" (did you mean \"liveness\"?)"},
      {" liveness", "\" liveness\" (did you mean \"liveness\"?)"},
      {"base-line", "(did you mean \"baseline\"?)"},
      {"liveness+ofload", "unknown strategy \"liveness+ofload\": \"ofload\" (did you mean \"liveness+offload\"?)"},
      {"liveness+offload=checkpoint", "(did you mean \"liveness+offload=checkpoints\"?)"},
      {"liveness+offload=", "\"offload=\" (did you mean \"liveness+offload"},
      {"liveness+cahce", "(did you mean \"liveness+cache\"?)"},
      {"liveness+recompute=costs", "(did you mean \"liveness+recompute=cost\"?)"},
      {"ofload", "(did you mean \"pytorch+offload\"?)"}, /* alone it is none */
      {"torch", "strategy \"torch\": torch7 is Torch of 2015; PyTorch is pytorch"},
      {"Torch", "torch7 is Torch of 2015; PyTorch is pytorch"},
      {"superneuron", "(did you mean \"superneurons\"?)"},
      {"liveness,cache", "unknown strategy \"liveness,cache\""},
      {"vdnn", "unknown strategy \"vdnn\""},
      {"tensorflo", "(did you mean \"tensorflow\"?)"},
      {"liveness+corun", "\"corun\" (did you mean"},
      {"liveness+corum=path", "\"corum=path\" (did you mean \"liveness+corun=path\"?)"},
      {"liveness+corun=", "strategy \"liveness+corun=\": no co-run policy is called \"\""},
      {"liveness+corun=pth", "no co-run policy is called \"pth\" (did you mean \"path\"?)"},
      {"liveness+corun=7x4", "there are 1 to 6 workers"},
      {"liveness+0123456789012345678901234567890123456789012345678901234567890123456789", "unknown strategy"},
  };
  check_refusals(list, sizeof list / sizeof list[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(defaults), cmocka_unit_test(all_combinations), cmocka_unit_test(aliases),
      cmocka_unit_test(stages),   cmocka_unit_test(frameworks),       cmocka_unit_test(systems),
      cmocka_unit_test(clashes),  cmocka_unit_test(misspellings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
