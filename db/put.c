/* Put: one run to rows, in one transaction: all of it or none.
 *
 * Cost: one row per step and strategy dominates (test_store.c and docs/store.md have the measured rate). */
#include "db/store_internal.h"

#include <string.h>

/* Highest number ever given out, plus one: the number of a deleted run does not come back. */
static const char next_run[] = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'runs'), 0) + 1";
static const char next_device[] = "SELECT coalesce(max(id), 0) + 1 FROM devices";

/* The number of the run's device; *found is false where it is not stored yet. */
static sn_status find_device(sn_store *store, const sn_run *run, int64_t *id, bool *found, sn_err *err) {
  sqlite3_stmt *statement = sn__store_prepare(
      store, "SELECT id FROM devices WHERE name = ? AND memory_bytes = ? AND memory_nominal = ?", err);
  if (!statement) return err->code;
  int rc = sqlite3_bind_text(statement, 1, run->gpu, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_bind_int64(statement, 2, (sqlite3_int64)run->memory_bytes);
  if (rc == SQLITE_OK) rc = sqlite3_bind_int(statement, 3, run->memory_nominal);
  if (rc == SQLITE_OK) rc = sqlite3_step(statement);
  *found = rc == SQLITE_ROW;
  *id = *found ? sqlite3_column_int64(statement, 0) : 0;
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) sn__store_fail(store, rc, err);
  sqlite3_finalize(statement);
  return err->code;
}

static sn_status put_device(sn_store *store, const sn_run *run, int64_t *id, sn_err *err) {
  bool found = false;
  if (find_device(store, run, id, &found, err) != SN_OK || found) return err->code;
  if (sn__store_number(store, next_device, id, err) != SN_OK) return err->code;
  return sn__rows_insert(store, &sn__devices, id, run, 1, err);
}

static uint32_t step_count(const sn_result *result) {
  return result->steps ? result->n_steps : 0;
}

/* Of the strategies of a graph the one with the most step rows names the steps of all. */
static const sn_result *longest(const sn_run *run, uint32_t graph) {
  const sn_result *best = NULL;
  for (uint32_t i = 0; i < run->n_results; i++)
    if (run->results[i].graph == graph && (!best || step_count(&run->results[i]) > step_count(best)))
      best = &run->results[i];
  return best;
}

/* Steps are stored by number and named once per graph, so they must be numbered 1, 2, ... and named alike. */
static sn_status check_steps(const sn_result *result, const sn_result *named, sn_err *err) {
  for (uint32_t i = 0; i < step_count(result); i++) {
    const sn_step_row *a = &result->steps[i], *b = &named->steps[i];
    if (a->step != i + 1)
      return sn_fail(err, SN_BUG, "store: step row %u of %s is numbered %u", i + 1, result->strategy, a->step);
    if (strcmp(a->layer, b->layer) != 0 || strcmp(a->op, b->op) != 0 || strcmp(a->pass, b->pass) != 0)
      return sn_fail(err, SN_BUG, "store: step %u is %s %s with %s but %s %s with %s", i + 1, a->layer, a->pass,
                     result->strategy, b->layer, b->pass, named->strategy);
  }
  return SN_OK;
}

static bool is_first_of_graph(const sn_run *run, uint32_t result) {
  for (uint32_t i = 0; i < result; i++)
    if (run->results[i].graph == run->results[result].graph) return false;
  return true;
}

static sn_status put_route(sn_store *store, const sn_run *run, int64_t id, sn_err *err) {
  for (uint32_t i = 0; i < run->n_results; i++) {
    uint32_t graph = run->results[i].graph;
    const sn_result *named = longest(run, graph);
    const int64_t owners[SN__OWNERS] = {id, graph};
    if (check_steps(&run->results[i], named, err) != SN_OK) return err->code;
    if (is_first_of_graph(run, i) &&
        sn__rows_insert(store, &sn__route, owners, named->steps, step_count(named), err) != SN_OK)
      return err->code;
  }
  return SN_OK;
}

static sn_status put_rows(sn_store *store, const sn_run *run, int64_t id, sn_err *err) {
  sn__rows_insert(store, &sn__results, &id, run->results, run->n_results, err);
  for (uint32_t i = 0; err->code == SN_OK && i < run->n_results; i++) {
    const sn_result *result = &run->results[i];
    int64_t owners[SN__OWNERS] = {id, i + 1};
    if (sn__rows_insert(store, &sn__steps, owners, result->steps, step_count(result), err) == SN_OK)
      sn__rows_insert(store, &sn__peaks, owners, result->peak, result->peak ? result->n_peak : 0, err);
  }
  if (err->code != SN_OK || sn__rows_insert(store, &sn__failures, &id, run->failures, run->n_failures, err) != SN_OK)
    return err->code;
  if (sn__rows_insert(store, &sn__origins, &id, run->origins, run->n_origins, err) != SN_OK) return err->code;
  return sn__rows_insert(store, &sn__tensors, &id, run->tensors, run->tensors ? run->n_tensors : 0, err);
}

static sn_status put_all(sn_store *store, const sn_run *run, int64_t *id, sn_err *err) {
  int64_t owners[SN__OWNERS];
  if (sn__store_number(store, next_run, &owners[0], err) != SN_OK || put_device(store, run, &owners[1], err) != SN_OK ||
      sn__rows_insert(store, &sn__runs, owners, run, 1, err) != SN_OK || put_route(store, run, owners[0], err) != SN_OK)
    return err->code;
  *id = owners[0];
  return put_rows(store, run, owners[0], err);
}

sn_status sn_store_put(sn_store *store, const sn_run *run, int64_t *id, sn_err *err) {
  int64_t given = 0;
  if (sn__store_begin(store, SN__WRITE, err) != SN_OK) return err->code;
  put_all(store, run, &given, err);
  if (sn__store_end(store, err) == SN_OK) *id = given;
  return err->code;
}
