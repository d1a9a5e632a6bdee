/* The command line: the tables are sound, every form of an option is read, every mistake is named. */
#include "cli/options/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 24 };

/* Parses words parted by spaces. */
static sn_status parse(const char *line, sn_args *args, sn_err *err) {
  static char text[512]; /* args keeps pointers into argv */
  char *argv[MOST] = {"snsim"};
  int argc = 1;
  *err = (sn_err)SN_ERR_INIT;
  assert_true(strlen(line) < sizeof text);
  strcpy(text, line);
  for (char *word = strtok(text, " "); word && argc < MOST; word = strtok(NULL, " ")) argv[argc++] = word;
  return sn_args_parse(argc, argv, args, err);
}

static sn_args good(const char *line) {
  sn_args args;
  sn_err err;
  if (parse(line, &args, &err) != SN_OK) fail_msg("%s: %s", line, err.text);
  return args;
}

static void bad(const char *line, const char *part) {
  sn_args args;
  sn_err err;
  assert_int_equal(parse(line, &args, &err), SN_BAD_USAGE);
  if (!strstr(err.text, part)) fail_msg("%s: \"%s\" says nothing of \"%s\"", line, err.text, part);
  assert_non_null(args.command);
}

static void tables_are_sound(void **state) {
  (void)state;
  uint32_t n_commands, n_options;
  unsigned known = 0;
  const sn_command *commands = sn_command_table(&n_commands);
  const sn_option *options = sn_option_table(&n_options);
  for (uint32_t i = 0; i < n_commands; i++) {
    assert_non_null(commands[i].run);
    assert_int_equal(strncmp(commands[i].synopsis, "snsim ", 6), 0);
    assert_true(strlen(commands[i].examples) > 0);
    assert_true(commands[i].bit != 0 && (commands[i].bit & (commands[i].bit - 1)) == 0);
    assert_int_equal(commands[i].bit & known, 0); /* no two commands share one */
    known |= commands[i].bit;
  }
  for (uint32_t i = 0; i < n_options; i++) {
    const sn_option *o = &options[i];
    assert_true(o->commands & known);
    assert_true(o->place < sizeof(sn_args));
    assert_int_equal(o->help[strlen(o->help) - 1], '.');
    for (uint32_t j = 0; j < i; j++) { /* the same name twice: the same option, for other commands */
      bool same = strcmp(o->name, options[j].name) == 0;
      if (same) {
        assert_int_equal(o->commands & options[j].commands, 0);
        assert_ptr_equal(o->parse, options[j].parse);
        assert_int_equal(o->place, options[j].place);
      }
      if (o->letter && o->letter == options[j].letter) assert_true(same);
    }
  }
}

static void defaults(void **state) {
  (void)state;
  setenv("SNSIM_GPU", "k40c", 1);
  sn_args args = good("--net alexnet --batch 200");
  assert_string_equal(args.command->name, "simulate");
  assert_string_equal(args.net, "tv_alexnet");
  assert_int_equal(args.batch, 200);
  assert_string_equal(args.gpu, "k40c");
  assert_int_equal(args.options.workspace, SN_WORKSPACE_DYNAMIC);
  assert_int_equal(args.options.external, SN_EXTERNAL_HOST);
  assert_int_equal(args.n_strategies, 0);
  assert_false(args.memory.given || args.context.given || args.options.pool_bytes > 0 || args.json || args.no_db);
  assert_null(args.operand);
}

static void every_form_is_read(void **state) {
  (void)state;
  sn_args args = good("--net=./a=b.json --batch=7 --image 300 -oout.txt --memory 8GiB --context=0 --pool 1.5GB");
  assert_string_equal(args.net, "./a=b.json");
  assert_int_equal(args.batch, 7);
  assert_int_equal(args.image, 300);
  assert_string_equal(args.output, "out.txt");
  assert_true(args.memory.bytes == UINT64_C(8) << 30);
  assert_true(args.context.given && args.context.bytes == 0);
  assert_true(args.options.pool_bytes == 1500000000);
  assert_int_equal(args.options.iteration.optimizer, SN_OPTIMIZER_MOMENTUM);
  args = good("fit --max batch --optimizer adamw");
  assert_int_equal(args.options.iteration.optimizer, SN_OPTIMIZER_ADAMW);
  args = good("--context 0GiB");
  assert_true(args.context.given && args.context.bytes == 0);
  args = good("--external peer --workspace max --allocator cuda --shared-link --color never -o - --plan -");
  assert_int_equal(args.options.external, SN_EXTERNAL_PEER);
  assert_int_equal(args.options.workspace, SN_WORKSPACE_MAX);
  assert_int_equal(args.options.allocator, SN_ALLOCATOR_CUDA);
  assert_int_equal(args.color, SN_COLOR_NEVER);
  assert_true(args.options.shared_link);
  assert_string_equal(args.output, "-");
  assert_string_equal(args.plan, "-");
}

static void numbers_of_a_training(void **state) {
  (void)state;
  sn_args args = good("run --learning-rate 1e-2 --momentum=0 --weight-decay .25 --seed 18446744073709551615");
  assert_true(args.hyper.learning_rate == 0.01f && args.hyper.momentum == 0 && args.hyper.weight_decay == 0.25f);
  assert_true(args.hyper.seed == UINT64_MAX);
  args = good("run");
  assert_true(args.hyper.learning_rate == 0.001f && args.hyper.momentum == 0.9f && args.hyper.weight_decay == 0.0005f);
  assert_true(args.hyper.seed == 1);
  bad("run --learning-rate fast", "--learning-rate: \"fast\" is not a number");
  bad("run --learning-rate=", "is not a number");
  bad("run --learning-rate nan", "is not a number");
  bad("run --learning-rate 0x1", "is not a number");
  bad("run --learning-rate 0.1.2", "is not a number");
  bad("run --learning-rate 1e9", "--learning-rate: 1e9 is out of range (from 0 to below 1000)");
  bad("run --learning-rate 1e999", "out of range");
  bad("run --momentum -0.1", "--momentum: -0.1 is out of range (from 0 to below 1)");
  bad("run --momentum 1", "out of range");
  bad("run --momentum 0.99999999999", "out of range"); /* 1 in float */
  bad("run --weight-decay 1", "out of range");
  bad("run --seed -1", "--seed: \"-1\" is not a whole number");
  bad("run --seed 18446744073709551616", "out of range");
}

static void options_stand_anywhere_and_the_last_counts(void **state) {
  (void)state;
  sn_args args = good("--json show --steps 12");
  assert_string_equal(args.command->name, "show");
  assert_string_equal(args.operand, "12");
  assert_true(args.json && args.steps);
  assert_int_equal(good("--batch 1 --batch 2").batch, 2);
  assert_string_equal(good("show -- --x").operand, "--x");
  assert_true(good("list --help").help);
  assert_true(good("--version --steps plot").version);
}

static void strategies_add_up(void **state) {
  (void)state;
  sn_args args = good("--strategy superneurons --strategy=baseline --strategy recompute=cost+cache+liveness");
  assert_int_equal(args.n_strategies, 2); /* the third is the first by another name */
  assert_true(args.strategies[0].liveness && args.strategies[0].offload == SN_OFFLOAD_CACHE);
  assert_false(args.strategies[1].liveness);
}

static void assert_run(const char *line, int64_t id, const char *name) {
  sn_err err = SN_ERR_INIT;
  int64_t found = -1;
  const char *named = "";
  sn_args args = good(line);
  assert_int_equal(sn_args_run_at(&args, 0, &found, &named, &err), SN_OK);
  assert_int_equal(found, id);
  assert_true((name != NULL) == (named != NULL));
  if (name) assert_string_equal(named, name);
}

static void runs_are_numbers_or_names(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  int64_t id;
  const char *name;
  assert_run("plot", 0, NULL);
  assert_run("show last", 0, NULL);
  assert_run("show 12", 12, NULL);
  assert_run("show 0x1", 0, "0x1");
  assert_run("show mine", 0, "mine");
  sn_args args = good("show 0");
  assert_int_equal(sn_args_run_at(&args, 0, &id, &name, &err), SN_BAD_USAGE);
  bad("--net alexnet --batch 1 --name 12", "cannot be a run's name");
  bad("--net alexnet --batch 1 --name last", "cannot be a run's name");
  bad("--net alexnet --batch 1 --name sweep:3", "cannot be a run's name");
}

static void mistakes_are_named(void **state) {
  (void)state;
  bad("--nte alexnet", "--net");
  bad("-net alexnet", "--net");
  bad("--zzzzzz", "--zzzzzz");
  bad("-x", "-x");
  bad("--bat 3", "did you mean --batch?");
  bad("-b 3", "did you mean --batch?");
  bad("--=3", "unknown option --;");
  bad("--strategy=", "empty");
  bad("--net", "--net NET");
  bad("--net --batch 3", "--net needs a value");
  bad("--net=", "empty");
  bad("--json=yes", "no value");
  bad("alexnet", "--net alexnet");
  bad("simulat", "simulate");
  bad("show 1 2", "\"2\"");
  bad("plot a b c d e f g h i j", "too many");
  bad("diff 1", "needs RUN RUN");
  bad("diff 1 2 3", "\"3\"");
  bad("list", "nets|gpus|clusters|strategies");
  bad("show --batch 3", "cannot be combined with show");
  bad("plot --json", "cannot be combined with plot");
  bad("--batch abc", "abc");
  bad("--batch 0", "--batch");
  bad("--batch -3", "-3");
  bad("--batch 1e9", "1e9");
  bad("--batch 99999999999999999999", "--batch");
  bad("--batch 16777217", "--batch");
  bad("--image 0", "--image");
  bad("--memory 0", "--memory");
  bad("--memory 8Gib7", "--memory");
  bad("--memory nan", "--memory");
  bad("--memory 1e400GiB", "--memory");
  bad("--memory 8", "--memory");
  bad("--memory 0x10GiB", "--memory");
  bad("--pool 0", "--pool");
  bad("--pool 0GiB", "--pool");
  bad("--strategy livenes", "liveness");
  bad("--workspace full", "--workspace");
  bad("--external cloud", "--external");
  bad("--allocator malloc", "--allocator");
  bad("--placement best-fit", "none of: packed, first-fit");
  assert_int_equal(good("--placement first-fit").options.placement, SN_PLACEMENT_FIRST_FIT);
  assert_int_equal(good("").options.placement, SN_PLACEMENT_PACKED);
  bad("--optimizer adadelta", "--optimizer: \"adadelta\" is none of: momentum, sgd, adam, adamw");
  bad("--color red", "--color");
}

/* What SQLite would take for something else is a file when it comes from the command line. */
static void the_database_is_a_file(void **state) {
  (void)state;
  char path[64];
  sn_err err = SN_ERR_INIT;
  sn_args args = good("show --db :memory:");
  assert_int_equal(sn_args_database(&args, path, sizeof path, &err), SN_OK);
  assert_string_equal(path, "./:memory:");
  args = good("show --db some.db");
  assert_int_equal(sn_args_database(&args, path, sizeof path, &err), SN_OK);
  assert_string_equal(path, "some.db");
  assert_int_equal(sn_args_database(&args, path, 5, &err), SN_BAD_USAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tables_are_sound),
      cmocka_unit_test(defaults),
      cmocka_unit_test(every_form_is_read),
      cmocka_unit_test(numbers_of_a_training),
      cmocka_unit_test(options_stand_anywhere_and_the_last_counts),
      cmocka_unit_test(strategies_add_up),
      cmocka_unit_test(runs_are_numbers_or_names),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(the_database_is_a_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
