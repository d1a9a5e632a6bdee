/* Caching replay; see the header.
 *
 * What a plan asks for is written down once as a script, which every replay of it follows.
 *
 * The least limit is found by bisection, and no probe does again what another one has done. A replay goes the same way
 * under all limits with which the driver gives and refuses the same: so each probe answers for a range of limits
 * (sn_caching_limits()). And where it stood before its way parted from that under the limits that are left is kept:
 *
 *     too little |-----------+                 the probes after it begin where those under the limits
 *     probe      |-----------+-----------      that are still in question have not parted yet
 *     enough     |-----------------+-----
 */
#include "sim/play/caching_replay.h"

#include "base/checked.h"
#include "sim/play/caching_script.h"
#include "sim/play/caching_seen.h"

#include <stdlib.h>
#include <string.h>

/* How many bisections are looked ahead, to how many limits that leads, with the ends of what is in question, how many
 * states are kept for them, and how many requests are sooner done again than a state is kept for them. */
enum { AHEAD = 3, NEXT = 2 * ((1 << AHEAD) - 1) + 2, STATES = 7, NEAR = 100 };

typedef sn__caching_request request;
typedef sn__caching_script script;

/* Limits between `bad` and `good` are in question: the first is too little, the second is enough. */
typedef struct search {
  const script *script;
  uint64_t step, bad, good, probe;
  uint64_t bad_below, good_from;      /* what the probes have answered for: too little below, enough from there on */
  uint64_t next[NEXT];                /* limits that may be probed after this one */
  uint32_t n_next, n_states, n_older; /* states of earlier probes come first */
  struct replay *states[STATES];      /* where a probe stood before it would have gone another way under one of them */
  struct replay *now;
  struct replay *asking; /* where it stands when the driver is asked, if that may matter */
  sn_err *err;
} search;

/* What is not done in a search: out of the way of what is. */
#define COLD __attribute__((noinline, cold))

typedef struct replay {
  const script *script;
  sn_caching *caching;
  const sn_caching_figures *figures; /* of it */
  uint32_t *blocks;                  /* per tensor, those it holds now; 0: none */
  uint32_t *kept; /* per tensor: the block of an accumulated gradient; 0: none. NULL: none accumulates */
  uint32_t iteration, micro_batch;            /* from 1 on, 0: before the first; from 0 on */
  uint32_t next_before, n_made, next_request; /* what is done next; how many are made */
  uint32_t *extra;         /* blocks that rounds took which came again and that nobody has given back */
  uint32_t again, n_extra; /* how many came again in this iteration */
  sn__seen seen;
  sn_caching_figures before; /* of the first iteration */
  sn_caching_replayed result;
  bool brief; /* nothing but whether it fits is asked: the last iteration is over when nothing more is taken */
} replay;

/* ---- one replay ---- */

static void replay_free(replay *r) {
  if (!r) return;
  sn_caching_free(r->caching);
  sn__seen_clear(&r->seen);
  free(r->blocks);
  free(r);
}

/* `blocks` and `kept`, or `extra`: a stage's iteration is obeyed once. */
static size_t blocks_bytes(const script *s) {
  size_t extra = (size_t)s->rounds.again * s->rounds.n_kept;
  return ((size_t)s->route->n_tensors * (sn__caching_accumulates(s) ? 2 : 1) + extra + 1) * sizeof(uint32_t);
}

/* Behind `blocks`. */
static void place(replay *r) {
  uint32_t *behind = r->blocks + r->script->route->n_tensors;
  r->kept = sn__caching_accumulates(r->script) ? behind : NULL;
  r->extra = r->kept ? behind + r->script->route->n_tensors : behind;
}

static replay *replay_new(const script *s, uint64_t limit, sn_err *err) {
  replay *r = calloc(1, sizeof *r);
  if (!r) return sn_fail_memory(err), NULL;
  *r = (replay){.script = s, .result = {.fits = true, .failed_step = SN_NONE}};
  for (int i = 0; i < SN_CACHING_ITERATIONS; i++) r->result.iterations[i].step = SN_NONE;
  sn_caching_options options = s->load->options;
  options.streams = s->route->mesh ? SN_STREAMS : 1;
  r->caching = sn_caching_new(limit, &options, err);
  r->blocks = r->caching ? calloc(1, blocks_bytes(s)) : NULL;
  if (r->blocks) {
    r->figures = sn_caching_look(r->caching);
    place(r);
    return r;
  }
  if (r->caching) sn_fail_memory(err);
  replay_free(r);
  return NULL;
}

static replay *replay_copy(const replay *r, sn_err *err) {
  replay *copy = malloc(sizeof *copy);
  if (!copy) return sn_fail_memory(err), NULL;
  *copy = *r;
  copy->seen = (sn__seen){0};
  copy->caching = sn_caching_copy(r->caching, err);
  copy->blocks = malloc(blocks_bytes(r->script));
  if (copy->caching && copy->blocks) {
    memcpy(copy->blocks, r->blocks, blocks_bytes(r->script));
    copy->figures = sn_caching_look(copy->caching);
    place(copy);
    return copy;
  }
  replay_free(copy);
  return sn_fail_memory(err), NULL;
}

static uint32_t step_of(const replay *r) {
  const script *s = r->script;
  return r->iteration > 0 ? s->plan->instrs[s->requests[r->next_request].instr].step : SN_NONE;
}

/* What the next request asks for. */
static uint64_t asked_bytes(const replay *r) {
  const script *s = r->script;
  if (r->iteration == 0) return s->load->before[r->next_before];
  const request *q = &s->requests[r->next_request];
  if (q->kind == SN__PASS) return s->plan->instrs[q->id].bytes;
  return q->kind == SN__MAKE ? s->load->made[q->id].bytes : s->route->tensors[q->id].bytes;
}

static void note_failure(replay *r) {
  r->result.fits = false;
  r->result.failed_iteration = r->iteration;
  r->result.failed_step = step_of(r);
  r->result.failed_bytes = asked_bytes(r);
}

/* `peak`: what was allocated at most before the request. */
static inline sn_status note(replay *r, uint64_t peak, sn_status status) {
  bool rises = !r->brief && r->figures->allocated_peak > peak && r->iteration > 0;
  if (rises) r->result.iterations[r->iteration - 1].step = step_of(r);
  return status;
}

static inline sn_status take(replay *r, const sn_caching_size *size, uint32_t *block, sn_err *err) {
  uint64_t peak = r->figures->allocated_peak;
  return note(r, peak, sn_caching_take_size(r->caching, size, block, err));
}

static inline sn_status pass(replay *r, const sn_caching_size *size, sn_err *err) {
  uint64_t peak = r->figures->allocated_peak;
  return note(r, peak, sn_caching_pass_size(r->caching, size, err));
}

static COLD sn_status take_and_show(replay *r, const request *q, uint32_t instr, uint32_t *block, sn_err *err) {
  const sn_caching_observer *observer = r->script->load->observer;
  sn_status status = take(r, &q->size, block, err);
  if (status == SN_OK && *block) observer->takes(observer->user, instr, sn_caching_extent(r->caching, *block));
  return status;
}

static COLD sn_status pass_and_show(replay *r, const request *q, sn_err *err) {
  uint32_t block;
  sn_status status = take_and_show(r, q, q->id, &block, err);
  if (status == SN_OK) sn_caching_give(r->caching, block);
  return status;
}

static inline sn_status pass_or_leave(replay *r, const request *q, sn_err *err) {
  sn_status status = r->script->load->observer ? pass_and_show(r, q, err) : pass(r, &q->size, err);
  return status == SN_NO_FIT && r->script->load->workspaces == SN_CACHING_OPTIONAL ? SN_OK : status;
}

static inline sn_status keep(replay *r, const sn_caching_size *size, sn_err *err) {
  uint64_t peak = r->figures->allocated_peak;
  return note(r, peak, sn_caching_keep_size(r->caching, size, err));
}

static sn_status make_before(replay *r, sn_err *err) {
  const sn_caching_load *load = r->script->load;
  sn_status status = SN_OK;
  for (; r->next_before < load->n_before && status == SN_OK; r->next_before += status == SN_OK) {
    const sn_caching_size size = sn_caching_size_of(load->before[r->next_before]);
    status = keep(r, &size, err);
  }
  return status;
}

static sn_status make(replay *r, const request *q, sn_err *err) {
  if (q->id < r->n_made) return SN_OK;
  sn_status status = keep(r, &q->size, err);
  r->n_made += status == SN_OK;
  return status;
}

static inline void give(replay *r, uint32_t *block) {
  sn_caching_give(r->caching, *block);
  *block = 0;
}

/* What the first micro-batch makes of a parameter's gradient is the gradient from then on. */
static inline void give_tensor(replay *r, uint32_t tensor, bool gradient) {
  const sn_caching_observer *observer = r->script->load->observer;
  if (gradient && r->micro_batch == 0 && r->blocks[tensor]) {
    if (observer) observer->stays(observer->user, sn_caching_extent(r->caching, r->blocks[tensor]));
    r->kept[tensor] = r->blocks[tensor];
    r->blocks[tensor] = 0;
  }
  give(r, &r->blocks[tensor]);
}

static sn_status obey(replay *r, const request *q, sn_err *err) {
  switch ((sn__caching_kind)q->kind) {
  case SN__TAKE:
    if (r->script->load->observer) return take_and_show(r, q, q->instr, &r->blocks[q->id], err);
    return take(r, &q->size, &r->blocks[q->id], err);
  case SN__GIVE:
    give_tensor(r, q->id, q->gradient);
    return SN_OK;
  case SN__PASS:
    return pass_or_leave(r, q, err);
  default:
    return make(r, q, err);
  }
}

/* Up to a request, without those of updates where another micro-batch follows. */
static sn_status obey_until(replay *r, uint32_t end, bool last, sn_err *err) {
  const script *s = r->script;
  for (uint32_t i = r->next_request; i < end; i++) {
    const request *q = &s->requests[i];
    r->next_request = i;
    sn_status status = last || s->plan->instrs[q->instr].step < s->route->first_update ? obey(r, q, err) : SN_OK;
    if (status != SN_OK) return status;
  }
  r->next_request = end;
  return SN_OK;
}

/* What the round behind would find is what it found itself. */
static void turn_back(replay *r) {
  const sn__caching_rounds *rounds = &r->script->rounds;
  for (uint32_t i = 0; i < rounds->n_kept; i++) {
    r->extra[r->n_extra++] = r->blocks[rounds->kept[i]];
    r->blocks[rounds->kept[i]] = 0;
  }
  for (uint32_t i = 0; i < rounds->n_moves; i++) {
    r->blocks[rounds->to[i]] = r->blocks[rounds->from[i]];
    r->blocks[rounds->from[i]] = 0;
  }
  r->next_request = rounds->first;
  r->again++;
}

/* Whole periods are left out: nothing is new in them. */
static sn_status skip_periods(replay *r, sn_err *err) {
  const sn_caching_load *load = r->script->load;
  const uint32_t all = r->script->rounds.again;
  uint32_t period = 0;
  if (load->observer || load->options.expandable_segments || load->options.max_split_bytes) return SN_OK;
  sn_status status = sn__seen_look(&r->seen, &r->script->rounds, r->caching, r->blocks, r->again, &period, err);
  if (period > 0) r->again += (all - r->again) / period * period;
  return status;
}

/* Of a stage of a pipeline. */
static COLD sn_status obey_rounds(replay *r, bool last, sn_err *err) {
  const sn__caching_rounds *rounds = &r->script->rounds;
  sn_status status = SN_OK;
  if (r->again == 0) sn__seen_forget(&r->seen);
  while (r->again < rounds->again) {
    if ((status = obey_until(r, rounds->end, last, err)) != SN_OK) return status;
    turn_back(r);
    if ((status = skip_periods(r, err)) != SN_OK) return status;
  }
  if (r->n_extra > 0) status = obey_until(r, rounds->given, last, err);
  if (status != SN_OK) return status;
  for (; r->n_extra > 0; r->n_extra--) sn_caching_give(r->caching, r->extra[r->n_extra - 1]);
  return SN_OK;
}

/* All requests once; then what is still held goes. */
static sn_status obey_all(replay *r, bool last, sn_err *err) {
  const script *s = r->script;
  bool ends = r->brief && last && r->iteration == SN_CACHING_ITERATIONS;
  sn_status status = s->rounds.again > 0 ? obey_rounds(r, last, err) : SN_OK;
  if (status == SN_OK) status = obey_until(r, ends ? s->n_until_taken : s->n_requests, last, err);
  if (status != SN_OK) return status;
  bool all_given = ends || (last && s->gives_all);
  for (uint32_t t = 0; t < s->route->n_tensors && !all_given; t++)
    if (r->blocks[t]) give_tensor(r, t, sn__caching_is_gradient(s, t));
  r->next_request = r->again = 0;
  return SN_OK;
}

static sn_status iterate(replay *r, sn_err *err) {
  sn_caching_peak *peak = &r->result.iterations[r->iteration - 1];
  uint32_t count = r->script->micro_batches;
  sn_status status = SN_OK;
  if (r->micro_batch == 0 && r->next_request == 0) sn_caching_reset_peaks(r->caching);
  for (; r->micro_batch < count; r->micro_batch++)
    if ((status = obey_all(r, r->micro_batch + 1 == count, err)) != SN_OK) break;
  for (uint32_t t = 0; t < r->script->route->n_tensors && r->kept && status == SN_OK; t++) give(r, &r->kept[t]);
  peak->allocated_bytes = r->figures->allocated_peak;
  peak->reserved_bytes = r->figures->reserved_peak;
  return status;
}

static void show_begin(const replay *r, uint32_t iteration) {
  const sn_caching_observer *observer = r->script->load->observer;
  if (observer) observer->begins(observer->user, r->caching, iteration);
}

/* To the end, or to what does not fit, which is no error but noted in the result. */
static sn_status go_on(replay *r, sn_err *err) {
  sn_status status = SN_OK;
  if (r->iteration == 0) {
    status = make_before(r, err);
    r->before = *r->figures;
    if (status == SN_OK) r->iteration = 1;
  }
  if (status == SN_OK) show_begin(r, r->iteration);
  while (status == SN_OK && (status = iterate(r, err)) == SN_OK && r->iteration < SN_CACHING_ITERATIONS) {
    show_begin(r, ++r->iteration);
    r->micro_batch = 0;
  }
  if (status == SN_OK) show_begin(r, SN_CACHING_ITERATIONS + 1);
  if (status == SN_NO_FIT) note_failure(r);
  return err->code;
}

/* Peaks of all: those before the first iteration, and of both. */
static void sum_up(replay *r) {
  sn_caching_replayed *result = &r->result;
  sn_caching_figures *f = &result->figures;
  sn_caching_peak steady = result->iterations[SN_CACHING_ITERATIONS - 1];
  *f = *r->figures;
  f->allocated_peak = r->before.allocated_peak;
  f->reserved_peak = r->before.reserved_peak;
  for (int i = 0; i < SN_CACHING_ITERATIONS; i++) {
    const sn_caching_peak *peak = &result->iterations[i];
    if (peak->allocated_bytes > f->allocated_peak) f->allocated_peak = peak->allocated_bytes;
    if (peak->reserved_bytes > f->reserved_peak) f->reserved_peak = peak->reserved_bytes;
  }
  if (!result->fits) steady = (sn_caching_peak){f->allocated_peak, f->reserved_peak, SN_NONE};
  if (steady.reserved_bytes > 0)
    result->fragmentation = 1 - (double)steady.allocated_bytes / (double)steady.reserved_bytes;
  result->largest_split_bytes = sn_caching_largest_split(r->caching);
}

sn_status sn_caching_replay(const sn_plan *plan, const sn_caching_load *load, sn_caching_replayed *result,
                            sn_err *err) {
  script s;
  replay *r = sn__caching_script_init(&s, plan, load, err) == SN_OK ? replay_new(&s, load->limit_bytes, err) : NULL;
  if (r && go_on(r, err) == SN_OK) sum_up(r);
  *result = r ? r->result : (sn_caching_replayed){0};
  replay_free(r);
  sn__caching_script_clear(&s);
  return err->code;
}

/* ---- the least limit ---- */

static bool is_within(uint64_t limit, sn_caching_range range) {
  return limit >= range.from && limit < range.below;
}

/* Whether one of the next limits is in the first range, but not in the second. */
static bool loses_next(const search *s, sn_caching_range range, sn_caching_range left) {
  for (uint32_t i = 0; i < s->n_next; i++)
    if (is_within(s->next[i], range) && !is_within(s->next[i], left)) return true;
  return false;
}

/* Whether a state of this probe is so little behind that going on from there is cheaper than another one. */
static bool is_near(const search *s) {
  const replay *last = s->n_states > s->n_older ? s->states[s->n_states - 1] : NULL;
  return last && last->iteration == s->now->iteration && last->micro_batch == s->now->micro_batch &&
         last->again == s->now->again && s->now->next_request - last->next_request < NEAR;
}

/* The driver is about to be asked, first for so much that `needed` bytes are reserved then. Where it refuses, what it
 * is asked for after that is not known yet. */
static void note_asking(void *user, uint64_t needed) {
  search *s = user;
  sn_caching_range range = sn_caching_limits(s->now->caching), given = {sn_max(range.from, needed), range.below};
  bool matters = loses_next(s, range, needed <= s->probe ? given : (sn_caching_range){0});
  if (matters && s->n_states < STATES && !is_near(s) && s->err->code == SN_OK) s->asking = replay_copy(s->now, s->err);
}

static void note_asked(void *user) {
  search *s = user;
  if (!s->asking) return;
  if (loses_next(s, sn_caching_limits(s->asking->caching), sn_caching_limits(s->now->caching)))
    s->states[s->n_states++] = s->asking;
  else
    replay_free(s->asking);
  s->asking = NULL;
}

static uint64_t middle(const search *s, uint64_t bad, uint64_t good) {
  return bad + (good - bad) / 2 / s->step * s->step;
}

static void add_next(search *s, uint64_t bad, uint64_t good, int ahead) {
  if (ahead == 0 || good <= bad + s->step) return;
  uint64_t limit = middle(s, bad, good);
  s->next[s->n_next++] = limit;
  add_next(s, bad, limit, ahead - 1);
  add_next(s, limit, good, ahead - 1);
}

/* With both ends, as whatever limit is lost, one of them is. While nothing is known of what is reserved, some that are
 * more than the least. */
static void find_next(search *s) {
  enum { GUESSES = STATES - 2, SHARE = 32 };
  s->n_next = 0;
  s->next[s->n_next++] = s->bad + 1;
  s->next[s->n_next++] = s->good - 1;
  for (uint64_t i = 1; i < GUESSES && s->probe == SN_CACHING_NO_LIMIT; i++)
    s->next[s->n_next++] = s->bad + i * (s->bad / SHARE);
  if (s->probe == SN_CACHING_NO_LIMIT) return;
  add_next(s, s->bad, s->probe, AHEAD);
  add_next(s, s->probe, s->good, AHEAD);
}

static bool is_further(const replay *r, const replay *other) {
  if (r->iteration != other->iteration) return r->iteration > other->iteration;
  if (r->micro_batch != other->micro_batch) return r->micro_batch > other->micro_batch;
  if (r->again != other->again) return r->again > other->again;
  return r->next_request > other->next_request;
}

/* Takes the furthest state from which the probe goes on out; NULL: there is none. Drops those that are of no more use.
 */
static replay *take_state(search *s) {
  replay *best = NULL;
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n_states; i++) {
    sn_caching_range range = sn_caching_limits(s->states[i]->caching);
    if (is_within(s->probe, range) && (!best || is_further(s->states[i], best))) best = s->states[i];
  }
  for (uint32_t i = 0; i < s->n_states; i++) {
    replay *r = s->states[i];
    sn_caching_range range = sn_caching_limits(r->caching);
    if (r == best) continue;
    if (range.from >= s->good || range.below <= s->bad + 1)
      replay_free(r);
    else
      s->states[n++] = r;
  }
  s->n_states = s->n_older = n;
  return best;
}

static replay *begin_probe(search *s) {
  replay *r = take_state(s);
  if (!r) r = replay_new(s->script, s->probe, s->err);
  if (r) sn_caching_set_limit(r->caching, s->probe);
  return r;
}

/* Replays under the limit s->probe, from where that is known; *result where it is wanted. */
static sn_status probe(search *s, sn_caching_replayed *result) {
  find_next(s);
  s->now = begin_probe(s);
  if (!s->now) return s->err->code;
  bool shares = !s->script->load->options.expandable_segments; /* whose addresses depend on the limit */
  s->now->brief = !result;
  if (shares) sn_caching_watch(s->now->caching, note_asking, note_asked, s);
  go_on(s->now, s->err);
  bool fits = s->now->result.fits;
  sn_caching_range range = sn_caching_limits(s->now->caching);
  if (result) sum_up(s->now);
  if (result) *result = s->now->result;
  replay_free(s->now);
  if (fits)
    s->good_from = shares ? range.from : s->probe;
  else
    s->bad_below = shares ? range.below : s->probe + 1;
  return s->err->code;
}

static uint64_t round_up(uint64_t bytes, uint64_t step) {
  return sn_ceil_div(bytes, step) * step;
}

static bool fits(search *s, uint64_t limit) {
  s->probe = limit;
  if (limit >= s->bad_below && limit < s->good_from) probe(s, NULL);
  return limit >= s->good_from && s->err->code == SN_OK;
}

static void find_edge(search *s) {
  enum { PROBES = 16 };
  for (int i = 0; i < PROBES && s->err->code == SN_OK && s->good > s->bad + s->step; i++) {
    uint64_t limit = middle(s, s->bad, s->good);
    *(fits(s, limit) ? &s->good : &s->bad) = limit;
  }
}

/* Between what is too little and what is enough; of neither side is more known. */
static void open_window(search *s, uint64_t bad, uint64_t good) {
  s->bad = bad;
  s->good = s->good_from = good;
  s->bad_below = 0;
}

static bool is_expandable(const search *s) {
  return s->script->load->options.expandable_segments;
}

/* From `good` on, which is then enough. Segments of their own need no more than they take without a limit; expandable
 * ones have fewer addresses under one, and may need more than they took. */
static void open_enough(search *s, uint64_t bad, uint64_t good) {
  open_window(s, bad, good);
  for (uint64_t more = s->step; is_expandable(s) && s->err->code == SN_OK; more *= 2) {
    s->good_from = SN_CACHING_NO_LIMIT;
    if (fits(s, s->good)) break;
    s->bad = s->good;
    s->good += more;
  }
}

/* What is allocated without a limit counts as too little; where nothing was found to be, that is tried. Expandable
 * segments have addresses by the limit, so their edge may lie within a step. */
static void narrow(search *s, uint64_t lowest) {
  enum { BLOCK = 1024 };
  uint64_t step = s->step;
  find_edge(s);
  while (s->bad <= lowest && s->bad < s->good && s->bad >= step && fits(s, s->bad))
    open_window(s, s->bad - step, s->bad);
  if (!is_expandable(s)) return;
  s->step = BLOCK;
  find_edge(s);
  s->step = step;
}

/* Where the limit that is asked about does otherwise than what was found says, another edge: the highest below it, or
 * the first met above it. */
static void agree(search *s, uint64_t lowest, uint64_t enough) {
  uint64_t limit = s->script->load->limit_bytes;
  if (limit == SN_CACHING_NO_LIMIT || (!is_expandable(s) && limit >= enough) || s->err->code != SN_OK) return;
  uint64_t same = is_expandable(s) ? limit : limit / s->step * s->step, found = s->good;
  s->bad_below = 0;
  s->good_from = SN_CACHING_NO_LIMIT;
  bool good = fits(s, same);
  if (good && found > same)
    open_window(s, sn_min(lowest, same), same);
  else if (!good && found <= same)
    open_enough(s, same, sn_max(enough, same + s->step));
  else
    open_window(s, found, found);
  if (s->good != s->bad) narrow(s, lowest);
}

static void find_least(search *s, const sn_caching_figures *unlimited) {
  uint64_t allocated = unlimited->allocated_peak, enough = unlimited->reserved_peak;
  uint64_t lowest = round_up(allocated, s->step);
  if (is_expandable(s))
    lowest = allocated > 0 ? (allocated - 1) / s->step * s->step : 0; /* all is cut: no less will do */
  open_enough(s, lowest, enough);
  narrow(s, lowest);
  agree(s, lowest, enough);
}

sn_status sn_caching_least(const sn_plan *plan, const sn_caching_load *load, uint64_t step,
                           sn_caching_replayed *unlimited, uint64_t *least, sn_err *err) {
  script all;
  search s = {.script = &all, .step = step, .err = err};
  *unlimited = (sn_caching_replayed){0};
  if (sn__caching_script_init(&all, plan, load, err) == SN_OK) {
    s.bad = sn__caching_least_allocated(&all);
    s.good = SN_CACHING_NO_LIMIT - 1;
    s.probe = SN_CACHING_NO_LIMIT;
    if (probe(&s, unlimited) == SN_OK) find_least(&s, &unlimited->figures);
  }
  for (uint32_t i = 0; i < s.n_states; i++) replay_free(s.states[i]);
  sn__caching_script_clear(&all);
  *least = s.good;
  return err->code;
}
