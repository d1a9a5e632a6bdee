/* Transfers of several GPUs meet; see the header. */
#include "sim/stages/match.h"

#include <inttypes.h>
#include <stdlib.h>

/* The transfer of a step on this axis; NULL: it is none. */
static const sn_transfer *transfer_of(const sn_route *route, uint32_t step, sn_mesh_axis axis) {
  const sn_step *s = &route->steps[step];
  const sn_transfer *t = s->kernel == SN_TRANSFER ? &route->transfers[s->sum] : NULL;
  return t && t->axis == axis ? t : NULL;
}

static bool is_same(const sn_transfer *a, const sn_transfer *b) {
  return a->what == b->what && a->micro == b->micro && a->bytes == b->bytes;
}

/* ---- ranks ---- */

static uint32_t next_on(const sn_route *route, uint32_t step, sn_mesh_axis axis) {
  while (step < route->n_steps && !transfer_of(route, step, axis)) step++;
  return step;
}

sn_status sn_match_ranks(const sn_route *one, const sn_route *other, sn_mesh_axis axis, sn_err *err) {
  uint32_t a = next_on(one, 0, axis), b = next_on(other, 0, axis);
  for (; a < one->n_steps && b < other->n_steps; a = next_on(one, a + 1, axis), b = next_on(other, b + 1, axis)) {
    const sn_transfer *x = transfer_of(one, a, axis), *y = transfer_of(other, b, axis);
    if (x->kind != y->kind || x->ranks != y->ranks || x->bytes != y->bytes || x->group != y->group)
      return sn_fail(err, SN_BUG, "match: step %u of a rank is another %s transfer than step %u of the other", a + 1,
                     sn_mesh_word(axis), b + 1);
  }
  if (a == one->n_steps && b == other->n_steps) return SN_OK;
  return sn_fail(err, SN_BUG, "match: a rank has a %s transfer, step %u, that the other has not", sn_mesh_word(axis),
                 (a < one->n_steps ? a : b) + 1);
}

/* ---- stages ---- */

/* What was sent from one stage to the next or to the one before, in order, and how much of it was received. */
typedef struct queue {
  const sn_transfer **sent;
  uint32_t n, room, received;
} queue;

typedef struct matcher {
  const sn_route *const *routes;
  uint32_t count;
  uint32_t *at;  /* per stage: its next step */
  queue *queues; /* per stage: forward from it, then backward from it */
  sn_err *err;
} matcher;

static bool goes_forward(const sn_route *route, uint32_t step) {
  return route->steps[step].pass == SN_FORWARD;
}

/* Stages send round: the chunks behind those of the last are the first's. */
static queue *queue_from(matcher *m, uint32_t stage, bool forward) {
  return &m->queues[2 * stage + !forward];
}

static queue *queue_to(matcher *m, uint32_t stage, bool forward) {
  return queue_from(m, (stage + (forward ? m->count - 1 : 1)) % m->count, forward);
}

static sn_status put(matcher *m, queue *q, const sn_transfer *t) {
  if (q->n == q->room) {
    uint32_t room = 2 * q->room + 64;
    const sn_transfer **more = realloc(q->sent, room * sizeof(const sn_transfer *));
    if (!more) return sn_fail_memory(m->err);
    q->sent = more;
    q->room = room;
  }
  q->sent[q->n++] = t;
  return SN_OK;
}

/* Whether it was there. */
static bool take(matcher *m, uint32_t stage, uint32_t step, const sn_transfer *t) {
  queue *q = queue_to(m, stage, goes_forward(m->routes[stage], step));
  if (q->received == q->n) return false;
  const sn_transfer *sent = q->sent[q->received];
  if (is_same(sent, t)) {
    q->received++;
    return true;
  }
  sn_fail(m->err, SN_BUG, "match: stage %u receives micro-batch %u at step %u, and is sent micro-batch %u", stage,
          t->micro, step + 1, sent->micro);
  return false;
}

/* As far as it gets; whether it got on. */
static bool advance(matcher *m, uint32_t stage) {
  const sn_route *route = m->routes[stage];
  uint32_t before = m->at[stage];
  for (; m->at[stage] < route->n_steps && m->err->code == SN_OK; m->at[stage]++) {
    const sn_transfer *t = transfer_of(route, m->at[stage], SN_MESH_PP);
    if (t && t->kind == SN_SEND)
      put(m, queue_from(m, stage, goes_forward(route, m->at[stage])), t);
    else if (t && !take(m, stage, m->at[stage], t))
      break;
  }
  return m->at[stage] > before;
}

static sn_status judge(matcher *m) {
  for (uint32_t s = 0; s < m->count && m->err->code == SN_OK; s++) {
    if (m->at[s] < m->routes[s]->n_steps)
      return sn_fail(m->err, SN_BUG, "match: stage %u waits at step %u for what nobody sends", s, m->at[s] + 1);
    for (uint32_t way = 0; way < 2; way++)
      if (m->queues[2 * s + way].received < m->queues[2 * s + way].n)
        return sn_fail(m->err, SN_BUG, "match: stage %u sends %s what nobody receives", s, way ? "back" : "on");
  }
  return m->err->code;
}

sn_status sn_match_stages(const sn_route *const *routes, uint32_t count, sn_err *err) {
  matcher m = {.routes = routes,
               .count = count,
               .at = calloc(count, sizeof *m.at),
               .queues = calloc(2 * (size_t)count, sizeof *m.queues),
               .err = err};
  bool moves = m.at && m.queues;
  if (!moves) sn_fail_memory(err);
  while (moves && err->code == SN_OK) {
    moves = false;
    for (uint32_t s = 0; s < count && err->code == SN_OK; s++) moves = advance(&m, s) || moves;
  }
  if (err->code == SN_OK) judge(&m);
  for (uint32_t q = 0; m.queues && q < 2 * count; q++) free(m.queues[q].sent);
  free(m.queues);
  free(m.at);
  return err->code;
}
