/* Cells: rectangles as text. Each cell shows what covers most of it. O(cells that the rectangles cover). */
#include "plots/plot_internal.h"

#include <stdlib.h>

sn_status sn__cells_init(sn__cells *cells, unsigned columns, unsigned rows, unsigned kinds, sn_err *err) {
  *cells = (sn__cells){.columns = columns, .rows = rows, .kinds = kinds};
  cells->area = calloc((size_t)columns * rows * kinds, sizeof *cells->area);
  return cells->area ? SN_OK : sn_fail_memory(err);
}

void sn__cells_clear(sn__cells *cells) {
  free(cells->area);
}

/* How much of [cell, cell + 1) lies within [from, to). */
static double overlap(unsigned cell, double from, double to) {
  double low = from > cell ? from : cell, high = to < cell + 1.0 ? to : cell + 1.0;
  return high > low ? high - low : 0;
}

void sn__cells_cover(sn__cells *cells, unsigned kind, const double across[2], const double up[2]) {
  for (unsigned y = (unsigned)up[0]; y < cells->rows && y < up[1]; y++)
    for (unsigned x = (unsigned)across[0]; x < cells->columns && x < across[1]; x++)
      cells->area[((size_t)y * cells->columns + x) * cells->kinds + kind] +=
          overlap(x, across[0], across[1]) * overlap(y, up[0], up[1]);
}

unsigned sn__cells_kind(const sn__cells *cells, unsigned row, unsigned column) {
  const double *area = &cells->area[((size_t)row * cells->columns + column) * cells->kinds];
  double all = 0;
  unsigned most = 0;
  for (unsigned k = 0; k < cells->kinds; k++) {
    all += area[k];
    if (area[k] > area[most]) most = k;
  }
  return all < 0.5 ? cells->kinds : most;
}
