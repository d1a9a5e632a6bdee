/* Rounds of a caching script: what one of them moves so that it can come again; see caching_script.h. */
#include "sim/parallel/rounds.h"
#include "sim/plan/cursor.h"
#include "sim/play/caching_script.h"

#include <stdlib.h>

static uint32_t request_of(const sn__caching_script *s, uint32_t step) {
  uint32_t i = 0;
  while (i < s->n_requests && s->plan->instrs[s->requests[i].instr].step < step) i++;
  return i;
}

static bool is_same(const sn__caching_request *a, const sn__caching_request *b) {
  return a->kind == b->kind && a->kind != SN__MAKE && a->size.bytes == b->size.bytes && a->size.pool == b->size.pool;
}

/* The round behind it asks for the same. */
static bool comes_again(const sn__caching_script *s, const sn__caching_rounds *r) {
  uint32_t n = r->end - r->first;
  if (n > s->n_requests - r->end) return false;
  for (uint32_t i = r->first; i < r->end; i++)
    if (!is_same(&s->requests[i], &s->requests[i + n])) return false;
  return true;
}

/* Where a tensor that is held was taken. One that runs again is taken more than once. */
enum { NOWHERE, BEFORE, IN_ROUND, KEPT };

/* What is given in the round and was taken before; in its place is what is given as late in the round behind it, unless
 * that is the same tensor, taken again since. And what is taken in it and given in neither. */
static void find_moves(const sn__caching_script *s, sn__caching_rounds *r, uint8_t *held) {
  const uint32_t behind = r->end + (r->end - r->first);
  for (uint32_t i = 0; i < behind; i++) {
    const sn__caching_request *q = &s->requests[i];
    const uint32_t again = i >= r->first && i < r->end ? s->requests[i + behind - r->end].id : q->id;
    if (q->kind == SN__GIVE && again != q->id && held[q->id] == BEFORE) {
      r->to[r->n_moves] = q->id;
      r->from[r->n_moves++] = again;
    }
    if (q->kind == SN__GIVE) held[q->id] = NOWHERE;
    if (q->kind == SN__TAKE) held[q->id] = i >= r->first && i < r->end ? IN_ROUND : BEFORE;
  }
  for (uint32_t i = r->first; i < r->end; i++) {
    const sn__caching_request *q = &s->requests[i];
    if (q->kind != SN__TAKE || held[q->id] != IN_ROUND) continue;
    r->kept[r->n_kept++] = q->id;
    held[q->id] = KEPT;
  }
  for (r->given = behind; r->given < s->n_requests; r->given++) {
    const sn__caching_request *q = &s->requests[r->given];
    if (q->kind == SN__GIVE && held[q->id] == KEPT) break;
  }
}

sn_status sn__caching_rounds_find(sn__caching_script *s, sn_err *err) {
  sn__caching_rounds *r = &s->rounds;
  const sn_rounds rounds = sn_rounds_of(s->route);
  if (rounds.again == 0) return SN_OK;
  *r = (sn__caching_rounds){
      .first = request_of(s, rounds.first), .end = request_of(s, rounds.end), .again = rounds.again};
  if (!comes_again(s, r)) return r->again = 0, SN_OK; /* who asks is told: sn_caching_rounds_alike() */
  const size_t n = r->end - r->first;
  r->to = malloc((3 * n + 1) * sizeof *r->to);
  uint8_t *held = calloc((size_t)s->route->n_tensors + 1, sizeof *held);
  if (r->to && held) {
    r->from = r->to + n;
    r->kept = r->from + n;
    find_moves(s, r, held);
  }
  free(held);
  return held && r->to ? SN_OK : sn_fail_memory(err);
}

/* The next that takes or gives from an instruction on. */
static uint32_t next_move(const sn_plan *plan, uint32_t i) {
  while (i < plan->n_instrs && !sn_instr_moves(&plan->instrs[i])) i++;
  return i;
}

static uint32_t first_of(const sn_plan *plan, uint32_t step) {
  uint32_t i = 0;
  while (i < plan->n_instrs && plan->instrs[i].step < step) i++;
  return i;
}

bool sn_caching_rounds_alike(const sn_plan *plan) {
  const sn_rounds rounds = sn_rounds_of(plan->route);
  if (rounds.again == 0) return true;
  const uint32_t end = first_of(plan, rounds.end);
  uint32_t i = next_move(plan, first_of(plan, rounds.first)), k = next_move(plan, end);
  for (; i < end; i = next_move(plan, i + 1), k = next_move(plan, k + 1)) {
    if (k >= plan->n_instrs || plan->instrs[i].kind != plan->instrs[k].kind) return false;
    const sn_tensor *a = &plan->route->tensors[plan->instrs[i].id], *b = &plan->route->tensors[plan->instrs[k].id];
    if (a->bytes != b->bytes || a->role != b->role) return false;
  }
  return true;
}
