/* DTR's logs replayed; see the header. */
#include "sim/dtr/dtr_replay.h"

#include "base/units.h"
#include "sim/dtr/dtr_log.h"

#include <stdlib.h>
#include <string.h>

static const double most_ratio = 10;
static const char digits[] = "0123456789";

sn_status sn_dtr_budget_parse(const char *text, const char *what, sn_dtr_budget *budget, sn_err *err) {
  size_t whole = strspn(text, digits);
  bool is_number = *text && text[strspn(text, "0123456789.")] == '\0';
  bool is_whole = is_number && !text[whole] && strcmp(text, "1") != 0;
  *budget = (sn_dtr_budget){0};
  if (!is_number && !strchr(digits, *text))
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is no budget: give a share such as 0.5, or a size such as 2GiB",
                   what, text);
  if (!is_number) return sn_parse_bytes(text, what, 1, &budget->bytes, err);
  sn_err range = SN_ERR_INIT;
  if (is_whole && sn_parse_count(text, what, 1024, SN_DTR_MOST, &budget->bytes, &range) != SN_OK)
    return sn_fail(err, SN_BAD_USAGE,
                   "%s: \"%.40s\" is no budget: a whole number is one of bytes, 1024 or more; a share has a point, "
                   "such as 0.5",
                   what, text);
  if (is_whole) return SN_OK;
  char *end;
  budget->ratio = strtod(text, &end);
  if (!*end && budget->ratio > 0 && budget->ratio <= most_ratio) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is no share above 0 and up to %g", what, text, most_ratio);
}

sn_dtr_budget sn_dtr_usual_budget(uint32_t index) {
  return (sn_dtr_budget){.ratio = (double)(SN_DTR_BUDGETS - index) / SN_DTR_BUDGETS};
}

/* ---- replaying ---- */

static sn_status fill(const sn_dtr_program *p, const sn_dtr_replay *r, sn_dtr_row *row, sn_err *err) {
  sn_dtr_question q = {.heuristic = row->heuristic, .budget_bytes = row->budget_bytes, .remake_limit_ns = p->cost_ns};
  if (sn_dtr_play(p, &q, &row->answer, err) != SN_OK) return err->code;
  row->overhead = r->cost_ns > 0 ? (double)row->answer.clock_ns / (double)r->cost_ns : 1;
  return SN_OK;
}

static void set_budget(const sn_dtr_replay *r, sn_dtr_row *row, const sn_dtr_budget *budget) {
  double baseline = (double)r->baseline_bytes;
  row->ratio = budget->ratio > 0 ? budget->ratio : baseline > 0 ? (double)budget->bytes / baseline : 0;
  row->budget_bytes = budget->ratio > 0 ? (uint64_t)(baseline * budget->ratio) : budget->bytes;
}

/* ---- the least budget ---- */

enum { HUNDREDTHS = 100 };

/* A row that ends with the least of those asked for, or with the baseline; *low: hundredths of the next below it, that
 * fails. SN_DTR_OK is not its status where there is none. */
static sn_status find_bounds(const sn_dtr_program *p, const sn_dtr_replay *r, const sn_dtr_row *rows, uint32_t count,
                             sn_dtr_row *best, uint32_t *low, sn_err *err) {
  *best = (sn_dtr_row){.ratio = 2, .answer.status = SN_DTR_THRASH};
  for (uint32_t i = 0; i < count; i++)
    if (rows[i].answer.status == SN_DTR_OK && rows[i].ratio < best->ratio) *best = rows[i];
  if (best->answer.status != SN_DTR_OK) {
    *best = (sn_dtr_row){.heuristic = rows[0].heuristic};
    set_budget(r, best, &(sn_dtr_budget){.ratio = 1});
    if (fill(p, r, best, err) != SN_OK) return err->code;
  }
  double highest = 0;
  for (uint32_t i = 0; i < count; i++)
    if (rows[i].ratio < best->ratio && rows[i].ratio > highest) highest = rows[i].ratio;
  *low = (uint32_t)(highest * HUNDREDTHS + 1e-9);
  return SN_OK;
}

/* Of the rows of one heuristic. */
static sn_status find_least(const sn_dtr_program *p, sn_dtr_replay *r, const sn_dtr_row *rows, uint32_t count,
                            sn_err *err) {
  sn_dtr_row best, row = {.heuristic = rows[0].heuristic};
  uint32_t low = 0;
  bool fails = false;
  for (uint32_t i = 0; i < count; i++) fails = fails || rows[i].answer.status != SN_DTR_OK;
  if (!fails || find_bounds(p, r, rows, count, &best, &low, err) != SN_OK || best.answer.status != SN_DTR_OK)
    return err->code;
  uint32_t high = (uint32_t)(best.ratio * HUNDREDTHS + 0.999999);
  while (high > low + 1) {
    uint32_t middle = low + (high - low) / 2;
    set_budget(r, &row, &(sn_dtr_budget){.ratio = (double)middle / HUNDREDTHS});
    if (fill(p, r, &row, err) != SN_OK) return err->code;
    bool ends = row.answer.status == SN_DTR_OK;
    *(ends ? &high : &low) = middle;
    if (ends) best = row;
  }
  r->least[r->n_least++] = best;
  return SN_OK;
}

static sn_status fill_all(const sn_dtr_program *p, sn_dtr_replay *r, const sn_dtr_heuristic *heuristics,
                          uint32_t n_heuristics, const sn_dtr_budget *budgets, uint32_t n_budgets, sn_err *err) {
  r->operations = p->n_ops;
  r->storages = p->n_storages;
  r->cost_ns = p->cost_ns;
  r->rows = calloc((size_t)n_heuristics * n_budgets + 1, sizeof *r->rows);
  r->least = calloc((size_t)n_heuristics + 1, sizeof *r->least);
  if (!r->rows || !r->least) return sn_fail_memory(err);
  if (sn_dtr_baseline(p, &r->baseline_bytes, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < n_heuristics * n_budgets && err->code == SN_OK; i++) {
    r->rows[i].heuristic = heuristics[i / n_budgets];
    set_budget(r, &r->rows[i], &budgets[i % n_budgets]);
    fill(p, r, &r->rows[i], err);
    r->n_rows++;
  }
  for (uint32_t h = 0; h < n_heuristics && n_budgets > 0 && err->code == SN_OK; h++)
    find_least(p, r, &r->rows[(size_t)h * n_budgets], n_budgets, err);
  return err->code;
}

sn_dtr_replay *sn_dtr_replay_program(const sn_dtr_program *program, const sn_dtr_heuristic *heuristics,
                                     uint32_t n_heuristics, const sn_dtr_budget *budgets, uint32_t n_budgets,
                                     sn_err *err) {
  sn_dtr_replay *r = calloc(1, sizeof *r);
  if (!r) sn_fail_memory(err);
  if (r && fill_all(program, r, heuristics, n_heuristics, budgets, n_budgets, err) == SN_OK) return r;
  sn_dtr_replay_free(r);
  return NULL;
}

sn_dtr_replay *sn_dtr_replay_log(const char *path, const sn_dtr_heuristic *heuristics, uint32_t n_heuristics,
                                 const sn_dtr_budget *budgets, uint32_t n_budgets, sn_err *err) {
  sn_dtr_program *p = sn_dtr_log_load(path, err);
  sn_dtr_replay *r = p ? sn_dtr_replay_program(p, heuristics, n_heuristics, budgets, n_budgets, err) : NULL;
  sn_dtr_program_free(p);
  return r;
}

void sn_dtr_replay_free(sn_dtr_replay *replay) {
  if (!replay) return;
  free(replay->rows);
  free(replay->least);
  free(replay);
}
