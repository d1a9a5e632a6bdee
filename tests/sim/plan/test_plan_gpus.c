/* Plans of several GPUs as files, version 2: written and read they are the same to the byte, alone and together they are
 * right, and what is damaged in one of them is refused by the rule that it breaks. */
#include "models/zoo/zoo.h"
#include "sim/ask/simulate.h"
#include "sim/stages/plan_set.h"
#include "sim/stages/stages.h"
#include "tests/support/pipeline.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4 };

static const char *const names[MOST] = {"0.json", "1.json", "2.json", "3.json"};

typedef struct asked {
  const char *net, *mesh, *strategy;
  uint32_t batch, tokens, micros;
} asked;

static const asked fsdp = {"llm:2,64,4,4,128,100", "fsdp=4", "pytorch", 1, 16, 1};
static const asked staged = {"llm:4,64,4,4,128,100", "tp=2,pp=4", "pytorch", 1, 16, 4};

/* The texts of a mesh's plans, one a stage. */
static uint32_t write_all(const asked *a, char *texts[MOST]) {
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("h100");
  sn_options options = SN_OPTIONS_INIT;
  sn_net *net = sn_net_load(a->net, a->batch, a->tokens, &err);
  options.iteration.optimizer = SN_OPTIMIZER_ADAMW;
  options.iteration.accumulate = a->micros;
  sn_mesh_parse(a->mesh, &options.iteration.mesh, &err);
  must(&err);
  uint32_t stages = sn_mesh_size(&options.iteration.mesh, SN_MESH_PP);
  for (uint32_t s = 0; s < stages; s++) {
    size_t bytes;
    const sn_options own = stages > 1 ? sn_stages_options(&options, s) : options;
    FILE *out = open_memstream(&texts[s], &bytes);
    assert_non_null(out);
    sn_simulate_write_plan(net, &gpu, parse_strategy(a->strategy), &own, out, &err);
    must(&err);
    fclose(out);
  }
  sn_net_free(net);
  return stages;
}

static void free_all(char *texts[MOST], uint32_t count) {
  for (uint32_t i = 0; i < count; i++) free(texts[i]);
}

/* ---- checking ---- */

typedef struct found {
  sn_err err;
  sn_rule rule;
  uint32_t faulty;
} found;

/* Of what is wrong with one of them alone "format" is SN_RULE_NONE. */
static found check_all(char *const texts[MOST], uint32_t count) {
  found f = {.err = SN_ERR_INIT, .faulty = MOST};
  sn_device gpu = load_gpu("h100");
  sn_plan_file *files[MOST] = {NULL};
  for (uint32_t i = 0; i < count && f.err.code == SN_OK; i++) {
    files[i] = sn_plan_file_parse(names[i], texts[i], strlen(texts[i]), &f.err);
    if (files[i]) sn_plan_file_read(files[i], NULL, &gpu, &f.err);
    f.faulty = f.err.code == SN_OK ? MOST : i;
  }
  if (f.err.code == SN_OK) {
    sn_plan_set set = {.files = files, .names = names, .count = count};
    sn_plan_set_check(&set, &f.err);
    f.faulty = set.faulty;
    f.rule = f.err.code == SN_OK ? SN_RULE_NONE : files[set.faulty < count ? set.faulty : 0]->report.rule;
  }
  for (uint32_t i = 0; i < count; i++) sn_plan_file_free(files[i]);
  return f;
}

static void must_break(char *const texts[MOST], uint32_t count, sn_rule rule, const char *why) {
  found f = check_all(texts, count);
  if (f.err.code != SN_BAD_INPUT || f.rule != rule || !strstr(f.err.text, why))
    fail_msg("rule \"%s\", not \"%s\" because of \"%s\": %s", sn_rule_name(f.rule), sn_rule_name(rule), why,
             f.err.text);
}

/* ---- damage ---- */

/* The n-th line that has both, from its begin; in front of its line break. */
static char *find_line(char *text, const char *one, const char *other, uint32_t n) {
  for (char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    size_t length = strcspn(line, "\n");
    char kept = line[length];
    line[length] = '\0';
    bool has = strstr(line, one) && strstr(line, other);
    line[length] = kept;
    if (has && n-- == 0) return line;
  }
  fail_msg("no line %s", one);
  return NULL;
}

/* The text without the line; the comma behind it goes, too. */
static char *without(char *text, const char *one, const char *other, uint32_t n) {
  char *line = find_line(text, one, other, n), *made = strdup(text);
  size_t at = (size_t)(line - text), length = strcspn(line, "\n") + 1;
  memmove(made + at, made + at + length, strlen(text) - at - length + 1);
  return made;
}

/* With the first `from` behind the line's begin as `to`. */
static char *with(char *text, const char *one, const char *other, uint32_t n, const char *from, const char *to) {
  char *line = find_line(text, one, other, n), *at = strstr(line, from);
  assert_non_null(at);
  char *made = malloc(strlen(text) + strlen(to) + 1);
  assert_non_null(made);
  sprintf(made, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  return made;
}

/* Two lines change places. */
static char *swapped(char *text, const char *one, const char *other, uint32_t first, uint32_t second) {
  char *a = find_line(text, one, other, first), *b = find_line(text, one, other, second);
  int a_length = (int)strcspn(a, "\n"), b_length = (int)strcspn(b, "\n");
  char *made = malloc(strlen(text) + 1);
  assert_non_null(made);
  sprintf(made, "%.*s%.*s%.*s%.*s%s", (int)(a - text), text, b_length, b, (int)(b - a - a_length), a + a_length,
          a_length, a, b + b_length);
  return made;
}

static void broken_one(const asked *a, uint32_t stage, char *made, sn_rule rule, const char *why) {
  char *texts[MOST] = {NULL};
  uint32_t count = write_all(a, texts);
  free(texts[stage]);
  texts[stage] = made;
  must_break(texts, count, rule, why);
  free_all(texts, count);
}

/* ---- tests ---- */

static void come_back(void **state) {
  static const asked rows[] = {
      {"llm:2,64,4,4,128,100", "fsdp=4", "pytorch", 1, 16, 1},
      {"llm:2,64,4,4,128,100", "dp=2,fsdp=4,reshard=2,prefetch=2", "pytorch+recompute=units", 2, 16, 2},
      {"llm:2,64,4,4,128,100", "dp=8,view=yes", "pytorch", 1, 16, 1},
      {"llm:2,64,4,4,128,100", "tp=2,fsdp=2", "pytorch+recompute=units", 1, 16, 1},
      {"llm:4,64,4,4,128,100", "tp=2,pp=3,stages=1,1,2", "pytorch", 1, 16, 4},
      {"llm:2,64,4,4,128,100", "tp=2,fsdp=2,sequence=whole", "pytorch+recompute=units", 1, 15, 1},
      {"llm:4,64,4,4,128,100", "dp=2,pp=2,schedule=interleaved:2,stages=1,1,1,1", "pytorch+recompute=units", 1, 16, 4},
      {"tv_resnet18", "fsdp=8", "pytorch", 2, 0, 1},
      {"tv_vgg16", "pp=3,schedule=gpipe", "pytorch", 1, 0, 3},
  };
  (void)state;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    char *texts[MOST] = {NULL};
    sn_device gpu = load_gpu("h100");
    uint32_t count = write_all(&rows[r], texts);
    for (uint32_t i = 0; i < count; i++) {
      sn_err err = SN_ERR_INIT;
      size_t bytes;
      char *again = NULL;
      assert_non_null(strstr(texts[i], "\"snsim_plan\": 2,\n"));
      sn_plan_file *file = sn_plan_file_parse(names[i], texts[i], strlen(texts[i]), &err);
      if (file) sn_plan_file_check(file, NULL, &gpu, &err);
      if (err.code != SN_OK) fail_msg("%s: %s", rows[r].mesh, err.text);
      file->plan->pool_limit = strtoull(strstr(texts[i], "\"pool_offered_bytes\": ") + 22, NULL, 10);
      FILE *out = open_memstream(&again, &bytes);
      sn_plan_write(file->plan, rows[r].strategy, &gpu, &file->head.options, out, &err);
      must(&err);
      fclose(out);
      if (strcmp(again, texts[i]) != 0) fail_msg("%s, stage %u: it changes", rows[r].mesh, i);
      free(again);
      sn_plan_file_free(file);
    }
    found all = check_all(texts, count);
    if (all.err.code != SN_OK) fail_msg("%s: %s", rows[r].mesh, all.err.text);
    free_all(texts, count);
  }
}

/* Played, a rank's plan takes what the question says. */
static void plays_as_asked(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  sn_device gpu = load_gpu("h100");
  sn_options options = SN_OPTIONS_INIT;
  sn_strategy pytorch = parse_strategy("pytorch");
  char *texts[MOST] = {NULL};
  write_all(&fsdp, texts);
  sn_net *net = sn_net_load(fsdp.net, fsdp.batch, fsdp.tokens, &err);
  options.iteration.optimizer = SN_OPTIMIZER_ADAMW;
  sn_mesh_parse(fsdp.mesh, &options.iteration.mesh, &err);
  sn_run *own = sn_simulate(fsdp.net, net, &gpu, &pytorch, 1, &options, &err);
  must(&err);
  sn_timeline *timeline = NULL;
  sn_plan_file *file = sn_plan_file_parse(names[0], texts[0], strlen(texts[0]), &err);
  must(&err);
  sn_plan_file_check(file, NULL, &gpu, &err);
  must(&err);
  sn_run *run = sn_plan_file_play(file, &gpu, &timeline, &err);
  must(&err);
  const sn_result *a = &own->results[0], *b = &run->results[0];
  assert_int_equal(a->iteration_ns, b->iteration_ns);
  assert_int_equal(a->peak_device_bytes, b->peak_device_bytes);
  assert_int_equal(a->shared.exposed_ns, b->shared.exposed_ns);
  assert_int_equal(a->shared.communicator_bytes, b->shared.communicator_bytes);
  sn_timeline_free(timeline);
  sn_run_free(run);
  sn_run_free(own);
  sn_plan_file_free(file);
  sn_net_free(net);
  free(texts[0]);
}

static void transfers_must_meet(void **state) {
  char *texts[MOST], *ranks[MOST] = {NULL};
  (void)state;
  write_all(&staged, texts);
  char *swap = swapped(texts[1], "\"do\": \"send\"", "\"peer\": 2", 0, 1);
  broken_one(&staged, 1, swap, SN_RULE_MATCH, "is sent");
  broken_one(&staged, 2, without(texts[2], "\"do\": \"receive\"", "\"peer\": 1", 3), SN_RULE_MATCH,
             "does not receive it");
  broken_one(&staged, 0, without(texts[0], "\"do\": \"send\"", "\"peer\": 1", 3), SN_RULE_MATCH,
             "which stage 0 does not send");
  /* it sends its first gradients only when its last activations are here, which wait for those */
  char *signal = find_line(texts[3], "\"do\": \"signal\"", "\"lane\": \"receive\"", 3), fence[40];
  snprintf(fence, sizeof fence, "\"fence\": %lu", strtoul(strstr(signal, "\"fence\": ") + 9, NULL, 10));
  char *line = find_line(texts[3], "\"do\": \"wait\"", "\"lane\": \"send\"", 0), before[40];
  snprintf(before, sizeof before, "\"fence\": %lu", strtoul(strstr(line, "\"fence\": ") + 9, NULL, 10));
  broken_one(&staged, 3, with(texts[3], "\"do\": \"wait\"", "\"lane\": \"send\"", 0, before, fence), SN_RULE_MATCH,
             "a cycle");
  must_break(texts, 3, SN_RULE_MATCH, "0 of stage 3 of 4");
  free_all(texts, 4);
  write_all(&fsdp, ranks);
  ranks[1] = swapped(ranks[0], "\"do\": \"collective\"", "\"all_gather\"", 0, 1);
  must_break(ranks, 2, SN_RULE_MATCH, "it is another collective than that of");
  free(ranks[1]);
  ranks[1] = strdup(ranks[0]);
  assert_int_equal(check_all(ranks, 2).err.code, SN_OK);
  free_all(ranks, 2);
}

/* Each wait of a communicator's lane, and each for one: without it the plan is refused, or another one says the same. */
static void waits_are_needed(void **state) {
  char *texts[MOST] = {NULL};
  uint32_t refused = 0, tried = 0, waits = 0;
  (void)state;
  write_all(&fsdp, texts);
  for (const char *at = texts[0]; (at = strstr(at, "\"do\": \"wait\"")); at++) waits++;
  for (uint32_t n = 0; n < waits; n++, tried++) {
    char *damaged[MOST] = {without(texts[0], "\"do\": \"wait\"", "lane", n)};
    found f = check_all(damaged, 1);
    bool broken = f.rule == SN_RULE_FENCES || f.rule == SN_RULE_MEMORY;
    if (f.err.code != SN_OK && !broken) fail_msg("wait %u: %s", n, f.err.text);
    refused += broken;
    free(damaged[0]);
  }
  print_message("%u of %u lost waits are refused\n", refused, tried);
  assert_true(tried > 10 && refused * 10 >= tried * 9);
  free(texts[0]);
}

static void forms_are_kept(void **state) {
  static const struct {
    const char *one, *other, *from, *to, *why;
    bool staged;
  } bad[] = {
      {"\"snsim_plan\"", "2", "2", "1", "are of version 2", false},
      {"\"snsim_plan\"", "2", "2", "3", "this snsim reads versions 1 and 2", false},
      {"\"parallel\"", "fsdp", "fsdp=4", "fsdp=1", "are of version 2", false},
      {"\"parallel\"", "fsdp", "fsdp=4", "fsdp=0", "--parallel: fsdp", false},
      {"\"mesh\"", "fsdp", "\"fsdp\": 4", "\"fsdp\": 8", "fsdp is 8 here, and 4 in \"parallel\"", false},
      {"\"groups\"", "fsdp", "\"ranks\": 4", "\"ranks\": 2", "group 0 is of 4 ranks along fsdp", false},
      {"\"groups\"", "fsdp", "[{\"id\": 0, \"axis\": \"fsdp\", \"ranks\": 4}]", "[]", "along fsdp is missing", false},
      {"\"stage\"", "1", "1", "4", "from 0 to 3", true},
      {"\"do\": \"collective\"", "step", "all_gather", "all_reduce", "\"kind\" is \"all_reduce\" here", false},
      {"\"do\": \"collective\"", "step", "\"group\": 0", "\"group\": 1", "\"group\" is 1 here, and 0", false},
      {"\"do\": \"collective\"", "step", "collective", "compute", "unknown key", false},
      {"\"do\": \"collective\"", "step", "collective", "gather", "unknown \"do\"", false},
      {"\"do\": \"collective\"", "step", "\"lane\": \"fsdp\"", "\"lane\": \"compute\"", "does not go on lane", false},
      {"\"do\": \"send\"", "step", "\"peer\": 2", "\"peer\": 3", "\"peer\" is 3 here, and 2", true},
      {"\"do\": \"send\"", "step", "\"micro\": 0", "\"micro\": 1", "\"micro\" is 1 here, and 0", true},
      {"\"do\": \"receive\"", "step", "\"tensor\": 0", "\"tensor\": 2", "\"tensor\" is 2 here, and 0", true},
      {"\"do\": \"receive\"", "step", "receive", "send", "is a receive, and no send", true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char *texts[MOST] = {NULL}, *one[MOST] = {NULL};
    uint32_t count = write_all(bad[i].staged ? &staged : &fsdp, texts), which = bad[i].staged ? 1 : 0;
    one[0] = with(texts[which], bad[i].one, bad[i].other, 0, bad[i].from, bad[i].to);
    must_break(one, 1, SN_RULE_NONE, bad[i].why);
    free(one[0]);
    free_all(texts, count);
  }
}

/* Another question's, and one GPU's. */
static void others_do_not_meet(void **state) {
  const asked micros = {"llm:4,64,4,4,128,100", "tp=2,pp=4", "pytorch", 1, 16, 8};
  const asked one = {"llm:2,64,4,4,128,100", "", "pytorch", 1, 16, 1};
  char *texts[MOST], *other[MOST], *alone[MOST];
  (void)state;
  write_all(&staged, texts);
  write_all(&micros, other);
  write_all(&one, alone);
  assert_non_null(strstr(alone[0], "\"snsim_plan\": 1,\n"));
  assert_null(strstr(alone[0], "\"mesh\""));
  char *mixed[MOST] = {texts[0], texts[1], other[2], texts[3]};
  must_break(mixed, 4, SN_RULE_MATCH, "another network, strategy, mesh or condition than 0.json");
  char *two[MOST] = {alone[0], alone[0]};
  must_break(two, 2, SN_RULE_MATCH, "is of one GPU");
  free_all(texts, 4);
  free_all(other, 4);
  free_all(alone, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(come_back),           cmocka_unit_test(plays_as_asked),
                                     cmocka_unit_test(transfers_must_meet), cmocka_unit_test(waits_are_needed),
                                     cmocka_unit_test(forms_are_kept),      cmocka_unit_test(others_do_not_meet)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
