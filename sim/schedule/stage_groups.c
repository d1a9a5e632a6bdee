/* Groups of stages; see the header. */
#include "sim/schedule/stage_groups.h"

#include "base/checked.h"

#include <assert.h>
#include <stdlib.h>

static sn_group group_of(const sn_stages *all, uint32_t first, uint32_t end) {
  const sn_stage *last = &all->stages[end - 1];
  sn_group g = {.first = first, .end = end, .output_bytes = last->output_bytes, .n_keepings = SN_KEEPINGS};
  g.gradient_bytes = last->gradient_bytes;
  g.reads_output = last->reads_output;
  g.reads_input = all->stages[first].reads_input;
  uint64_t waiting = g.gradient_bytes + (g.reads_output ? g.output_bytes : 0);
  uint64_t before[SN_KEEPINGS] = {0}; /* kept of the stages up to here */
  uint64_t inside = 0;                /* their outputs, while they run */
  for (uint32_t i = first; i < end; i++) {
    const sn_stage *s = &all->stages[i];
    g.forward_ns += s->forward_ns;
    g.backward_ns += s->backward_ns;
    g.drop_load = sn_max(g.drop_load, i > first ? s->pass_load : s->drop_load);
    g.pass_load = sn_max(g.pass_load, s->pass_load);
    g.needs_input = g.needs_input || s->needs_input || end - first > 1;
    g.keep_load = sn_max(g.keep_load, inside + s->keep_load);
    for (int k = 0; k < SN_KEEPINGS; k++) {
      bool alone = end - first == 1, whole = k == SN_KEEPS_INPUT && i + 1 < end;
      int own = (uint32_t)k < s->n_keepings ? k : SN_KEEPS_ALL;
      const sn_keeping *keeping = &s->keeping[whole ? SN_KEEPS_ALL : own];
      sn_keeping *sum = &g.keeping[k];
      sum->backward_load = sn_max(sum->backward_load, before[k] + keeping->backward_load);
      sum->bytes += k == SN_KEEPS_INPUT ? 0 : keeping->bytes;
      sum->remake_ns += whole ? s->forward_ns : keeping->remake_ns;
      before[k] += s->keeping[k == SN_KEEPS_INPUT ? SN_KEEPS_ALL : own].bytes;
      if (alone && (uint32_t)k >= s->n_keepings) g.n_keepings = s->n_keepings;
      if (!alone && k == SN_KEEPS_INPUT)
        sum->backward_load = sn_max(sum->backward_load, inside + s->keep_load + waiting);
    }
    inside += s->keeping[SN_KEEPS_ALL].bytes;
  }
  return g;
}

sn_group *sn__stage_groups(const sn_stages *all, uint32_t most, uint32_t *count, sn_err *err) {
  assert(most > 0);
  uint64_t total = 0, part = 0;
  sn_group *groups = calloc((size_t)all->count + 1, sizeof *groups);
  *count = 0;
  if (!groups) {
    sn_fail_memory(err);
    return NULL;
  }
  for (uint32_t i = 0; i < all->count; i++) total += all->stages[i].keeping[SN_KEEPS_ALL].bytes;
  uint64_t enough = all->count > most ? 2 * total / most : 0;
  for (uint32_t i = 0, first = 0; i < all->count; i++) {
    part += all->stages[i].keeping[SN_KEEPS_ALL].bytes;
    if (part < enough && i + 1 < all->count) continue;
    groups[(*count)++] = group_of(all, first, i + 1);
    first = i + 1;
    part = 0;
  }
  return groups;
}
