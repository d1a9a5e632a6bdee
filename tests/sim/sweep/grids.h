/* Grids for tests: made, filled, finished, refused. */
#ifndef SN_TESTS_SIM_SWEEP_GRIDS_H
#define SN_TESTS_SIM_SWEEP_GRIDS_H

#include "sim/sweep/grid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static inline sn_grid *new_grid(void) {
  sn_err err = SN_ERR_INIT;
  sn_grid *grid = sn_grid_new(&err);
  assert_non_null(grid);
  return grid;
}

static inline void add(sn_grid *grid, sn_axis axis, const char *list) {
  sn_err err = SN_ERR_INIT;
  if (sn_grid_add_list(grid, axis, list, &err) != SN_OK) fail_msg("%s", err.text);
}

static inline void finish(sn_grid *grid) {
  sn_err err = SN_ERR_INIT;
  if (sn_grid_finish(grid, &err) != SN_OK) fail_msg("%s", err.text);
}

static inline void assert_error(const sn_err *err, sn_status code, const char *words) {
  if (err->code != code || !strstr(err->text, words)) print_error("%s: %s\n", sn_status_name(err->code), err->text);
  assert_int_equal(err->code, code);
  assert_non_null(strstr(err->text, words));
}

static inline void refuse_finish(sn_grid *grid, sn_status code, const char *words) {
  sn_err err = SN_ERR_INIT;
  sn_grid_finish(grid, &err);
  assert_error(&err, code, words);
  sn_grid_free(grid);
}

#endif
