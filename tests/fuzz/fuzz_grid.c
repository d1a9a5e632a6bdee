/* Fuzz target: the grid of a sweep, JSON. Whatever the bytes, there is a grid or an error that says where. One whose
 * names are all known is finished, unless it is large, which would take long, and then its text gives the same grid
 * again. Names of files are not followed. */
#include "tests/fuzz/fuzz.h"

#include "models/zoo/zoo.h"
#include "sim/sweep/grid.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 2 };

/* Not assert(): the fuzzer must see it in every build. */
static void require(int truth) {
  if (!truth) abort();
}

static int is_small(const sn_grid *grid) {
  if (grid->n[SN_AXIS_NETS] > FEW || grid->n[SN_AXIS_IMAGES] > FEW) return 0;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_NETS]; i++)
    if (strcmp(grid->nets[i], "lenet") != 0 && strcmp(grid->nets[i], "alexnet") != 0) return 0;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_GPUS]; i++)
    if (!sn_device_is_known(grid->gpus[i])) return 0;
  return 1;
}

static void check_numbers(const sn_grid *grid) {
  require(grid->n_groups > 0 && grid->n_points == grid->n_groups * grid->n[SN_AXIS_STRATEGIES]);
  require(grid->n_points <= SN_GRID_POINTS);
  uint32_t at[SN_AXES];
  sn_grid_at(grid, grid->n_groups - 1, at);
  for (int axis = 0; axis < SN_AXIS_STRATEGIES; axis++) require(at[axis] == grid->n[axis] - 1);
  for (uint32_t i = 1; i < grid->n[SN_AXIS_BATCHES]; i++) require(grid->batches[i - 1] < grid->batches[i]);
}

static void check_text(const sn_grid *grid) {
  sn_err err = SN_ERR_INIT;
  const char *text = sn_grid_text(grid, &err);
  require(text != NULL);
  sn_grid *again = sn_grid_parse("again.json", text, strlen(text), &err);
  require(again != NULL && sn_grid_finish(again, &err) == SN_OK);
  const char *same = sn_grid_text(again, &err);
  require(same != NULL && strcmp(text, same) == 0);
  sn_grid_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sn_err err = SN_ERR_INIT;
  sn_grid *grid = sn_grid_parse("fuzz.json", (const char *)data, size, &err);
  require((grid != NULL) == (err.code == SN_OK));
  require(grid || strncmp(err.text, "fuzz.json:", 10) == 0);
  if (grid && is_small(grid) && sn_grid_finish(grid, &err) == SN_OK) {
    check_numbers(grid);
    check_text(grid);
  }
  sn_grid_free(grid);
  return 0;
}
