/* Rounds of a caching script: what one of them moves so that it can come again; see caching_script.h. */
#include "sim/parallel/rounds.h"
#include "sim/plan/cursor.h"
#include "sim/play/caching_script.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* Requests that take, in their order, up to the end of the round, and by which of them what is held there was taken. */
typedef struct takes {
  uint32_t *all, *by; /* n requests; per tensor a place in all[], SN_NONE: nobody holds it */
  uint32_t n, warm, first;
} takes;

static void list_takes(const sn__caching_script *s, uint32_t warm, takes *t) {
  memset(t->by, 0xff, s->route->n_tensors * sizeof *t->by);
  for (uint32_t i = 0; i < s->rounds.end; i++) {
    const sn__caching_request *q = &s->requests[i];
    if (i == warm) t->warm = t->n;
    if (i == s->rounds.first) t->first = t->n;
    if (q->kind == SN__GIVE) t->by[q->id] = SN_NONE;
    if (q->kind != SN__TAKE) continue;
    t->by[q->id] = t->n;
    t->all[t->n++] = i;
  }
}

/* Rounds take the same since they are warm. */
static bool takes_again(const sn__caching_script *s, const takes *t) {
  for (uint32_t i = t->warm; i < t->first; i++)
    if (!is_same(&s->requests[t->all[i]], &s->requests[t->all[i + t->n - t->first]])) return false;
  return true;
}

static uint32_t tensor_at(const sn__caching_script *s, const takes *t, uint32_t place) {
  return s->requests[t->all[place]].id;
}

/* What the round took in a place and is held counts as what the round before took there, what that took as what the one
 * before it did, up to the tensor that this round has given. Where it has given none the tensor is kept. */
static sn_status find_moves(sn__caching_script *s, const takes *t, uint32_t place, sn_err *err) {
  sn__caching_rounds *r = &s->rounds;
  const uint32_t round = t->n - t->first, id = tensor_at(s, t, place);
  uint32_t oldest = place;
  if (t->by[id] != place) return SN_OK;
  while (t->by[tensor_at(s, t, oldest)] == oldest && oldest >= t->warm + round) oldest -= round;
  const uint32_t given = tensor_at(s, t, oldest);
  if (given == id && oldest != place) return r->held[r->n_held++] = id, SN_OK;
  if (t->by[given] == oldest) return r->kept[r->n_kept++] = id, SN_OK;
  if (t->by[given] != SN_NONE) return sn_fail(err, SN_BUG, "tensor %" PRIu32 " of a round is taken again in it", given);
  for (uint32_t p = oldest; p < place; p += round) {
    r->held[r->n_held++] = r->to[r->n_moves] = tensor_at(s, t, p);
    r->from[r->n_moves++] = tensor_at(s, t, p + round);
  }
  return SN_OK;
}

/* The first request that gives what is kept. */
static void find_given(sn__caching_script *s, const takes *t) {
  sn__caching_rounds *r = &s->rounds;
  for (r->given = 2 * r->end - r->first; r->given < s->n_requests; r->given++) {
    const sn__caching_request *q = &s->requests[r->given];
    const uint32_t by = q->kind == SN__GIVE ? t->by[q->id] : SN_NONE;
    for (uint32_t i = 0; i < r->n_kept && by != SN_NONE; i++)
      if (r->kept[i] == q->id) return;
  }
}

static sn_status find_all_moves(sn__caching_script *s, takes *t, uint32_t warm, sn_err *err) {
  sn__caching_rounds *r = &s->rounds;
  list_takes(s, warm, t);
  if (!takes_again(s, t)) return r->again = 0, SN_OK;
  r->to = malloc((4 * (size_t)t->n + 1) * sizeof *r->to);
  if (!r->to) return sn_fail_memory(err);
  r->from = r->to + t->n;
  r->kept = r->from + t->n;
  r->held = r->kept + t->n;
  for (uint32_t i = t->first; i < t->n && err->code == SN_OK; i++) find_moves(s, t, i, err);
  find_given(s, t);
  return err->code;
}

sn_status sn__caching_rounds_find(sn__caching_script *s, sn_err *err) {
  sn__caching_rounds *r = &s->rounds;
  const sn_rounds rounds = sn_rounds_of(s->route);
  if (rounds.again == 0) return SN_OK;
  *r = (sn__caching_rounds){
      .first = request_of(s, rounds.first), .end = request_of(s, rounds.end), .again = rounds.again};
  if (!comes_again(s, r)) return r->again = 0, SN_OK; /* who asks is told: sn_caching_rounds_alike() */
  takes t = {.all = malloc(((size_t)r->end + 1) * sizeof *t.all),
             .by = malloc(((size_t)s->route->n_tensors + 1) * sizeof *t.by)};
  sn_status status = t.all && t.by ? find_all_moves(s, &t, request_of(s, rounds.warm), err) : sn_fail_memory(err);
  free(t.all);
  free(t.by);
  return status;
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

static uint32_t next_taken(const sn_plan *plan, uint32_t i) {
  while (i < plan->n_instrs && plan->instrs[i].kind != SN_ALLOC) i++;
  return i;
}

static bool is_same_tensor(const sn_plan *plan, uint32_t i, uint32_t k) {
  const sn_tensor *a = &plan->route->tensors[plan->instrs[i].id], *b = &plan->route->tensors[plan->instrs[k].id];
  return a->bytes == b->bytes && a->role == b->role;
}

/* Each round takes what the last one takes since they are warm. */
static bool takes_alike(const sn_plan *plan, const sn_rounds *rounds) {
  const uint32_t first = first_of(plan, rounds->first), end = first_of(plan, rounds->end);
  const uint32_t warm = next_taken(plan, first_of(plan, rounds->warm));
  uint32_t i = warm, k = warm;
  for (uint32_t n = next_taken(plan, first); n < end; n = next_taken(plan, n + 1)) k = next_taken(plan, k + 1);
  for (; k < end; i = next_taken(plan, i + 1), k = next_taken(plan, k + 1))
    if (!is_same_tensor(plan, i, k)) return false;
  return true;
}

bool sn_caching_rounds_alike(const sn_plan *plan) {
  const sn_rounds rounds = sn_rounds_of(plan->route);
  if (rounds.again == 0) return true;
  const uint32_t end = first_of(plan, rounds.end);
  if (!takes_alike(plan, &rounds)) return false;
  uint32_t i = next_move(plan, first_of(plan, rounds.first)), k = next_move(plan, end);
  for (; i < end; i = next_move(plan, i + 1), k = next_move(plan, k + 1)) {
    if (k >= plan->n_instrs || plan->instrs[i].kind != plan->instrs[k].kind) return false;
    if (!is_same_tensor(plan, i, k)) return false;
  }
  return true;
}
