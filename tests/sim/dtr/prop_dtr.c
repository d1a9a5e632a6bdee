/* Property: random programs under every heuristic and random budgets, played beside the definitions (dtr_naive.h):
 * every operation run, every storage evicted and every figure are the same.
 *
 *   SN_SEED        first seed
 *   SN_PROP_NETS   how many programs (default 60) */
#include "tests/sim/dtr/dtr_naive.h"
#include "tests/support/seed.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MOST_OPS = 36, MOST_ARGS = 3, MOST_OUTPUTS = 3 };

/* The tensors that something refers to, and how often. */
typedef struct growing {
  sn_dtr_program *p;
  uint32_t references[NAIVE_TENSORS];
  uint64_t dice;
  sn_err err;
} growing;

static void must(const sn_err *err) {
  if (err->code != SN_OK) fail_msg("%s", err->text);
}

static uint32_t any_referenced(growing *g) {
  for (uint32_t tries = 0; tries < 100; tries++) {
    uint32_t recent = g->p->n_tensors > 12 && prng_chance(&g->dice, 70) ? g->p->n_tensors - 12 : 0;
    uint32_t t = prng_from(&g->dice, recent, g->p->n_tensors - 1);
    if (g->references[t] > 0) return t;
  }
  return UINT32_MAX;
}

/* Bytes and costs of few different values, so that scores are often equal; some are 0. */
static uint64_t any_size(growing *g) {
  return prng_chance(&g->dice, 8) ? 0 : (uint64_t)prng_from(&g->dice, 1, 6) * 16;
}

static void add_constant(growing *g) {
  sn_dtr_output x = {.bytes = any_size(g) / 4, .view_of = SN_DTR_OWN};
  g->references[g->p->n_tensors] = 1;
  sn_dtr_program_run(g->p, 0, NULL, 0, &x, 1, &g->err);
  sn_dtr_program_act(g->p, SN_DTR_PIN, g->p->n_tensors - 1, &g->err);
}

/* Of one argument there may be a view, which alone makes it one. */
static void add_op(growing *g) {
  uint32_t args[MOST_ARGS], n_args = 0, wanted = prng_from(&g->dice, 1, MOST_ARGS);
  sn_dtr_output outputs[MOST_OUTPUTS];
  for (uint32_t i = 0; i < wanted; i++) {
    uint32_t t = any_referenced(g);
    if (t != UINT32_MAX) args[n_args++] = t;
  }
  bool views = n_args == 1 && prng_chance(&g->dice, 40);
  uint32_t n = views ? prng_from(&g->dice, 1, 2) : prng_from(&g->dice, 1, MOST_OUTPUTS);
  for (uint32_t i = 0; i < n; i++) {
    outputs[i] = (sn_dtr_output){.bytes = any_size(g), .view_of = views ? 0 : SN_DTR_OWN};
    g->references[g->p->n_tensors + i] = 1;
  }
  sn_dtr_program_run(g->p, any_size(g), args, n_args, outputs, n, &g->err);
}

static void change_references(growing *g) {
  uint32_t t = any_referenced(g);
  if (t == UINT32_MAX) return;
  bool more = prng_chance(&g->dice, 25);
  g->references[t] += more ? 1 : UINT32_MAX;
  sn_dtr_program_act(g->p, more ? SN_DTR_HOLD : SN_DTR_RELEASE, t, &g->err);
}

static sn_dtr_program *random_program(uint64_t seed) {
  growing g = {.dice = seed, .err = SN_ERR_INIT};
  g.p = sn_dtr_program_new(&g.err);
  uint32_t ops = prng_from(&g.dice, 3, MOST_OPS);
  for (uint32_t i = prng_from(&g.dice, 1, 3); i > 0; i--) add_constant(&g);
  while (g.p->n_ops < ops) {
    add_op(&g);
    for (uint32_t i = prng_below(&g.dice, 3); i > 0; i--) change_references(&g);
    must(&g.err);
  }
  for (uint32_t t = 0; t < g.p->n_tensors; t++)
    if (g.references[t] > 0 && prng_chance(&g.dice, 50)) sn_dtr_program_act(g.p, SN_DTR_PIN, t, &g.err);
  sn_dtr_program_close(g.p, &g.err);
  must(&g.err);
  return g.p;
}

/* ---- both ---- */

static naive by_definition;
static naive_events expected, happened;

static void on_run(void *who, uint32_t op, bool again) {
  naive_note(who, 3 * op + again);
}

static void on_evicted(void *who, uint32_t storage) {
  naive_note(who, 3 * storage + 2);
}

static void compare(const sn_dtr_program *p, sn_dtr_question q, uint64_t seed) {
  const char *name = sn_dtr_heuristic_name(q.heuristic);
  sn_err err = SN_ERR_INIT;
  sn_dtr_answer a;
  happened.n = 0;
  q.watch = (sn_dtr_watch){.who = &happened, .ran = on_run, .evicted = on_evicted};
  sn_dtr_play(p, &q, &a, &err);
  must(&err);
  naive_play(&by_definition, p, &q, &expected);
  const sn_dtr_answer *b = &by_definition.a;
  for (uint32_t i = 0; i < happened.n && i < expected.n; i++)
    if (happened.list[i] != expected.list[i])
      fail_msg("seed %" PRIu64 ", %s, budget %" PRIu64 ": event %u is %u, by definition %u", seed, name, q.budget_bytes,
               i, happened.list[i], expected.list[i]);
  bool same = happened.n == expected.n && a.status == b->status && a.peak_bytes == b->peak_bytes &&
              a.clock_ns == b->clock_ns && a.remade_ns == b->remade_ns && a.evictions == b->evictions &&
              a.evaluations == b->evaluations;
  if (!same) fail_msg("seed %" PRIu64 ", %s, budget %" PRIu64 ": figures differ", seed, name, q.budget_bytes);
}

static void programs_go_by_the_definitions(void **state) {
  (void)state;
  uint32_t programs = case_count(60);
  uint64_t seed = first_seed(1), evictions = 0, again = 0, failed = 0;
  for (uint32_t i = 0; i < programs; i++, seed++) {
    sn_dtr_program *p = random_program(seed);
    uint64_t dice = seed, baseline;
    sn_err err = SN_ERR_INIT;
    assert_int_equal(sn_dtr_baseline(p, &baseline, &err), SN_OK);
    for (sn_dtr_heuristic h = 0; h < SN_DTR_HEURISTICS; h++)
      for (int budget = 0; budget < 3; budget++) {
        uint64_t bytes = baseline * prng_from(&dice, 15, 100) / 100;
        compare(p, (sn_dtr_question){.heuristic = h, .budget_bytes = bytes, .remake_limit_ns = 3 * p->cost_ns}, seed);
        evictions += by_definition.a.evictions;
        again += by_definition.a.remade_ns > 0;
        failed += by_definition.a.status != SN_DTR_OK;
      }
    sn_dtr_program_free(p);
  }
  print_message("%" PRIu64 " evictions; of %u runs %" PRIu64 " made something again, %" PRIu64 " failed\n", evictions,
                18 * programs, again, failed);
  assert_true(evictions > 5 * programs);
  assert_true(again > programs);
  assert_true(failed < 14 * programs);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs_go_by_the_definitions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
