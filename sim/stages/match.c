/* Transfers of several GPUs meet; see the header. */
#include "sim/stages/match.h"

#include "sim/parallel/rounds.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum item_kind { ITEM_SEND, ITEM_RECEIVE, ITEM_COLLECTIVE, ITEM_SIGNAL, ITEM_WAIT } item_kind;

/* What somebody may wait for, or waits with. */
typedef struct item {
  uint8_t kind, lane;
  uint8_t transfer; /* sn_transfer_kind */
  bool forward;     /* of a send and a receive: to the next stage, not to the one before */
  uint32_t at;      /* step or instruction */
  uint32_t id;      /* fence; of stages the tensor; of a collective its group */
  uint32_t micro;
  uint32_t next; /* of the lane; SN_NONE: none */
  uint64_t bytes;
} item;

typedef struct queue {
  const item **sent;
  uint32_t n, room, received;
} queue;

typedef struct member {
  const char *name;     /* NULL: a route's */
  uint32_t stage, turn; /* the turn-th of its stage, from 0 */
  item *items;
  uint32_t n_items, room;
  uint32_t now[SN_LANES], last[SN_LANES]; /* per lane: the item that is next; the one added last */
  bool *passed;                           /* per fence */
  uint32_t n_fences;
  queue sent[2];          /* by `forward` */
  struct member *side[2]; /* whom it sends to, by `forward` */
} member;

struct sn_match {
  uint32_t stages;
  member *members;
  uint32_t n_members;
  sn_match_fault fault;
  sn_err *err;
};

sn_match *sn_match_new(uint32_t stages, sn_err *err) {
  sn_match *m = calloc(1, sizeof *m);
  if (m)
    m->stages = stages;
  else
    sn_fail_memory(err);
  return m;
}

void sn_match_free(sn_match *m) {
  for (uint32_t i = 0; m && i < m->n_members; i++) {
    free(m->members[i].items);
    free(m->members[i].passed);
    for (int way = 0; way < 2; way++) free(m->members[i].sent[way].sent);
  }
  if (m) free(m->members);
  free(m);
}

/* ---- adding ---- */

static member *new_member(sn_match *m, const char *name, const sn_route *route, sn_err *err) {
  member *more = realloc(m->members, ((size_t)m->n_members + 1) * sizeof *more);
  if (!more) return sn_fail_memory(err), NULL;
  m->members = more;
  member *made = &more[m->n_members];
  *made = (member){.name = name, .stage = route->mesh ? route->mesh->stage : 0};
  memset(made->now, 0xff, sizeof made->now);
  memset(made->last, 0xff, sizeof made->last);
  for (uint32_t i = 0; i < m->n_members; i++) made->turn += more[i].stage == made->stage;
  m->n_members++;
  return made;
}

static sn_status add_item(member *to, item one, sn_err *err) {
  if (to->n_items == to->room) {
    size_t room = 2 * (size_t)to->room + 64;
    item *more = realloc(to->items, room * sizeof *more);
    if (!more) return sn_fail_memory(err);
    to->items = more;
    to->room = (uint32_t)room;
  }
  uint32_t *before = to->last[one.lane] == SN_NONE ? &to->now[one.lane] : &to->items[to->last[one.lane]].next;
  *before = to->last[one.lane] = to->n_items;
  one.next = SN_NONE;
  to->items[to->n_items++] = one;
  return SN_OK;
}

/* Of a micro-batch so much later than the step's. */
static sn_status add_transfer(member *to, const sn_route *route, uint32_t step, uint32_t at, sn_lane lane,
                              uint32_t later, sn_err *err) {
  const sn_transfer *t = &route->transfers[route->steps[step].sum];
  bool stages = t->axis == SN_MESH_PP;
  item_kind kind = !stages ? ITEM_COLLECTIVE : t->kind == SN_SEND ? ITEM_SEND : ITEM_RECEIVE;
  return add_item(to,
                  (item){.kind = (uint8_t)kind,
                         .lane = (uint8_t)lane,
                         .transfer = (uint8_t)t->kind,
                         .forward = route->steps[step].pass == SN_FORWARD,
                         .at = at,
                         .id = stages ? t->what : t->group,
                         .micro = t->micro + later,
                         .bytes = t->bytes},
                  err);
}

/* A round that stands for others comes as often, each time with the next micro-batches. */
sn_status sn_match_add_route(sn_match *m, const sn_route *route, sn_err *err) {
  member *to = new_member(m, NULL, route, err);
  const sn_rounds rounds = sn_rounds_of(route);
  uint32_t turned = 0;
  for (uint32_t s = 0; to && s < route->n_steps && err->code == SN_OK; s++) {
    if (turned < rounds.again && s == rounds.end) s = rounds.first, turned++;
    const sn_step *step = &route->steps[s];
    bool moves = step->kernel == SN_TRANSFER && route->transfers[step->sum].axis == SN_MESH_PP;
    uint32_t later = turned > 0 ? turned * (route->mesh->idle / rounds.again) : 0;
    if (moves) add_transfer(to, route, s, s, SN_LANE_COMPUTE, later, err);
  }
  return err->code;
}

sn_status sn_match_add_plan(sn_match *m, const char *name, const sn_plan *plan, sn_err *err) {
  member *to = new_member(m, name, plan->route, err);
  if (!to) return err->code;
  to->n_fences = plan->n_fences;
  to->passed = calloc((size_t)plan->n_fences + 1, sizeof *to->passed);
  if (!to->passed) return sn_fail_memory(err);
  for (uint32_t i = 0; i < plan->n_instrs && err->code == SN_OK; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_SIGNAL || instr->kind == SN_WAIT)
      add_item(to,
               (item){.kind = instr->kind == SN_SIGNAL ? ITEM_SIGNAL : ITEM_WAIT,
                      .lane = instr->lane,
                      .at = i,
                      .id = instr->id},
               err);
    else if (instr->kind == SN_COMPUTE && plan->route->steps[instr->id].kernel == SN_TRANSFER)
      add_transfer(to, plan->route, instr->id, i, (sn_lane)instr->lane, 0, err);
  }
  return err->code;
}

/* ---- going through them ---- */

static sn_status reject(sn_match *m, const member *who, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static sn_status reject(sn_match *m, const member *who, uint32_t at, const char *format, ...) {
  char what[300], name[300];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  if (who->name)
    snprintf(name, sizeof name, "%.200s, instruction %" PRIu32, who->name, at);
  else
    snprintf(name, sizeof name, "stage %" PRIu32 ", step %" PRIu32, who->stage, at + 1);
  m->fault = (sn_match_fault){(uint32_t)(who - m->members), at};
  return sn_fail(m->err, SN_BUG, "match: %s: %s", name, what);
}

static const item *now_of(const member *who, uint32_t lane) {
  return who->now[lane] == SN_NONE ? NULL : &who->items[who->now[lane]];
}

static bool put(sn_match *m, queue *q, const item *sent) {
  if (q->n == q->room) {
    uint32_t room = 2 * q->room + 64;
    const item **more = realloc(q->sent, room * sizeof(const item *));
    if (!more) return sn_fail_memory(m->err), false;
    q->sent = more;
    q->room = room;
  }
  q->sent[q->n++] = sent;
  return true;
}

/* Whether it was there. */
static bool take(sn_match *m, const member *who, const item *wanted) {
  queue *q = &who->side[!wanted->forward]->sent[wanted->forward];
  if (q->received == q->n) return false;
  const item *sent = q->sent[q->received];
  if (sent->id == wanted->id && sent->micro == wanted->micro && sent->bytes == wanted->bytes) {
    q->received++;
    return true;
  }
  reject(m, who, wanted->at,
         "it receives tensor %" PRIu32 " of micro-batch %" PRIu32 ", %" PRIu64 " bytes, and is sent tensor %" PRIu32
         " of micro-batch %" PRIu32 ", %" PRIu64 " bytes",
         wanted->id, wanted->micro, wanted->bytes, sent->id, sent->micro, sent->bytes);
  return false;
}

static bool is_same(const item *a, const item *b) {
  return a->transfer == b->transfer && a->id == b->id && a->bytes == b->bytes;
}

/* Whether all of the stage are at it; then the others have done it. */
static bool meet(sn_match *m, const member *who, const item *own) {
  for (uint32_t i = 0; i < m->n_members; i++) {
    const member *other = &m->members[i];
    if (other->stage != who->stage || other == who) continue;
    const item *its = now_of(other, own->lane);
    if (!its) return reject(m, who, own->at, "%.200s has not this collective", other->name), false;
    if (its->kind != ITEM_COLLECTIVE) return false;
    if (is_same(own, its)) continue;
    reject(m, who, own->at, "it is another collective than that of %.200s, instruction %" PRIu32, other->name, its->at);
    return false;
  }
  for (uint32_t i = 0; i < m->n_members; i++) {
    member *other = &m->members[i];
    if (other->stage == who->stage && other != who) other->now[own->lane] = now_of(other, own->lane)->next;
  }
  return true;
}

/* Whether the lane is done with its next item. */
static bool step_on(sn_match *m, member *who, const item *next) {
  switch ((item_kind)next->kind) {
  case ITEM_SEND:
    return put(m, &who->sent[next->forward], next);
  case ITEM_RECEIVE:
    return take(m, who, next);
  case ITEM_COLLECTIVE:
    return meet(m, who, next);
  case ITEM_SIGNAL:
    if (next->id < who->n_fences) who->passed[next->id] = true;
    return true;
  case ITEM_WAIT:
    return next->id < who->n_fences && who->passed[next->id];
  }
  return false;
}

/* A round; whether anybody got on. */
static bool advance(sn_match *m) {
  bool moves = false;
  for (uint32_t i = 0; i < m->n_members; i++)
    for (uint32_t lane = 0; lane < SN_LANES; lane++) {
      member *who = &m->members[i];
      for (const item *next; (next = now_of(who, lane)) && step_on(m, who, next); moves = true)
        who->now[lane] = next->next;
      if (m->err->code != SN_OK) return false;
    }
  return moves;
}

/* ---- judging ---- */

/* As many of every stage. */
static sn_status count_members(sn_match *m) {
  for (uint32_t s = 0; s < m->stages; s++) {
    uint32_t first = 0, count = 0;
    for (uint32_t i = 0; i < m->n_members; i++) {
      first += m->members[i].stage == 0;
      count += m->members[i].stage == s;
    }
    if (count != first || count == 0)
      return sn_fail(m->err, SN_BUG,
                     "match: %" PRIu32 " of stage 0, and %" PRIu32 " of stage %" PRIu32 " of %" PRIu32
                     ": one of each stage is to be there, or as many of each",
                     first, count, s, m->stages);
  }
  return SN_OK;
}

/* Stages send round: the chunks behind those of the last are the first's. */
static void find_sides(sn_match *m) {
  for (uint32_t i = 0; i < m->n_members; i++)
    for (uint32_t k = 0; k < m->n_members; k++) {
      member *who = &m->members[i], *other = &m->members[k];
      if (who->turn != other->turn) continue;
      if (other->stage == (who->stage + 1) % m->stages) who->side[true] = other;
      if (who->stage == (other->stage + 1) % m->stages) who->side[false] = other;
    }
}

/* Whether it has yet to send anything that way. */
static bool will_send(const member *who, bool forward) {
  for (uint32_t lane = 0; lane < SN_LANES; lane++)
    for (uint32_t i = who->now[lane]; i != SN_NONE; i = who->items[i].next)
      if (who->items[i].kind == ITEM_SEND && who->items[i].forward == forward) return true;
  return false;
}

/* What one waits for, that which says most about what is wrong first. */
typedef enum cause { NEVER_SENT, OTHERS_WAIT, FENCE, CAUSES } cause;

static cause cause_of(const member *who, const item *next) {
  if (next->kind == ITEM_WAIT) return FENCE;
  bool receives = next->kind == ITEM_RECEIVE;
  return receives && !will_send(who->side[!next->forward], next->forward) ? NEVER_SENT : OTHERS_WAIT;
}

static sn_status reject_waiting(sn_match *m, const member *who, const item *next) {
  uint32_t from = next->kind == ITEM_RECEIVE ? who->side[!next->forward]->stage : 0;
  switch (cause_of(who, next)) {
  case NEVER_SENT:
    return reject(m, who, next->at, "it receives micro-batch %" PRIu32 ", which stage %" PRIu32 " does not send",
                  next->micro, from);
  case OTHERS_WAIT:
    if (next->kind == ITEM_COLLECTIVE)
      return reject(m, who, next->at, "it waits for others of its communicator, which wait as well: a cycle");
    return reject(m, who, next->at,
                  "it waits for micro-batch %" PRIu32 " from stage %" PRIu32 ", which waits as well: a cycle",
                  next->micro, from);
  case FENCE:
  case CAUSES:
    break;
  }
  return reject(m, who, next->at, "it waits for fence %" PRIu32 ", which is never passed: a cycle", next->id);
}

/* Of those who wait for ever the one that says most. */
static sn_status find_waiting(sn_match *m) {
  for (cause why = 0; why < CAUSES; why++)
    for (uint32_t i = 0; i < m->n_members; i++)
      for (uint32_t lane = 0; lane < SN_LANES; lane++) {
        const item *next = now_of(&m->members[i], lane);
        if (next && cause_of(&m->members[i], next) == why) return reject_waiting(m, &m->members[i], next);
      }
  return SN_OK;
}

static sn_status find_unreceived(sn_match *m) {
  for (uint32_t i = 0; i < m->n_members; i++)
    for (uint32_t way = 0; way < 2; way++) {
      const member *who = &m->members[i];
      const queue *q = &who->sent[way];
      if (q->received < q->n)
        return reject(m, who, q->sent[q->received]->at,
                      "it sends micro-batch %" PRIu32 " %s, and stage %" PRIu32 " does not receive it",
                      q->sent[q->received]->micro, way ? "on" : "back", who->side[way]->stage);
    }
  return SN_OK;
}

sn_status sn_match_judge(sn_match *m, sn_match_fault *fault, sn_err *err) {
  m->err = err;
  m->fault = (sn_match_fault){SN_NONE, SN_NONE};
  if (count_members(m) == SN_OK) {
    find_sides(m);
    while (advance(m)) {}
    if (err->code == SN_OK && find_waiting(m) == SN_OK) find_unreceived(m);
  }
  if (fault) *fault = m->fault;
  return err->code;
}
