/* Caching seen; see the header. */
#include "sim/play/caching_seen.h"

#include <stdlib.h>

void sn__seen_clear(sn__seen *seen) {
  free(seen->held);
  *seen = (sn__seen){0};
}

void sn__seen_forget(sn__seen *seen) {
  seen->reserved_bytes = seen->next = 0;
}

static bool is_same(const sn__seen *seen, const sn__caching_rounds *rounds, const sn_caching *caching,
                    const uint32_t *blocks) {
  const sn_caching_figures *f = sn_caching_look(caching);
  bool same = seen->reserved_bytes > 0 && seen->reserved_bytes == f->reserved_bytes && seen->retries == f->retries;
  for (uint32_t i = 0; i < rounds->n_held && same; i++) {
    const sn_extent now = sn_caching_extent(caching, blocks[rounds->held[i]]), then = seen->held[i];
    same = now.offset == then.offset && now.bytes == then.bytes;
  }
  return same;
}

static sn_status note(sn__seen *seen, const sn__caching_rounds *rounds, const sn_caching *caching,
                      const uint32_t *blocks, uint32_t again, sn_err *err) {
  const sn_caching_figures *f = sn_caching_look(caching);
  if (!seen->held) seen->held = malloc(((size_t)rounds->n_held + 1) * sizeof *seen->held);
  if (!seen->held) return sn_fail_memory(err);
  for (uint32_t i = 0; i < rounds->n_held; i++) seen->held[i] = sn_caching_extent(caching, blocks[rounds->held[i]]);
  seen->again = again;
  seen->next = again + again / 4 + 1;
  seen->reserved_bytes = f->reserved_bytes;
  seen->retries = f->retries;
  return SN_OK;
}

sn_status sn__seen_look(sn__seen *seen, const sn__caching_rounds *rounds, const sn_caching *caching,
                        const uint32_t *blocks, uint32_t again, uint32_t *period, sn_err *err) {
  *period = 0;
  if (rounds->n_kept > 0) return SN_OK;
  if (is_same(seen, rounds, caching, blocks)) return *period = again - seen->again, SN_OK;
  return again < seen->next ? SN_OK : note(seen, rounds, caching, blocks, again, err);
}
