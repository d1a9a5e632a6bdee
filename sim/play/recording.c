/* Recording; see the header. One pass each way, O(instructions).
 *
 * Numbers are written seven bits a byte, the lowest first, the eighth bit set where more follow; those that may be
 * negative as 2n or -2n - 1. Steps stand as differences to the instruction before, begin times as differences to the
 * end of the instruction before on the same lane, end times to the begin. */
#include "sim/play/recording.h"

#include "base/checked.h"
#include "sim/graph/route.h"
#include "sim/plan/check.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
  FEWEST_BYTES = 5, /* of an instruction */
  LANE_SHIFT = 3
};

/* Plans whose operations run one after another, and co-run plans, which have more lanes, teams and parts. */
typedef struct form {
  uint8_t number, lanes, lane_mask, rerun, algos;
} form;

static const form plain = {1, SN_PLAIN_LANES, 3, 1 << 5, 1 << 6}, corun = {2, SN_CORUN_LANES, 7, 1 << 6, 1 << 7};

static const form *form_of(const sn_plan *plan) {
  return sn_plan_is_corun(plan) ? &corun : &plain;
}

/* ---- writing ---- */

typedef struct writer {
  unsigned char *bytes; /* of room enough; NULL: only counts */
  size_t n;
} writer;

static void put(writer *w, uint64_t number) {
  do {
    unsigned char byte = number & 0x7f;
    number >>= 7;
    if (w->bytes) w->bytes[w->n] = (unsigned char)(byte | (number ? 0x80 : 0));
    w->n++;
  } while (number);
}

static void put_signed(writer *w, int64_t number) {
  put(w, number < 0 ? 2 * (uint64_t)(-(number + 1)) + 1 : 2 * (uint64_t)number);
}

static void put_teams(writer *w, const sn_plan *plan) {
  put(w, plan->cores);
  put(w, plan->slots);
  put(w, plan->n_teams);
  for (uint32_t t = 0; t < plan->n_teams; t++) {
    put(w, plan->teams[t].first);
    put(w, plan->teams[t].count);
    put(w, plan->teams[t].slot);
  }
}

static void put_head(writer *w, const sn_plan *plan, const sn_trace *trace) {
  const form *f = form_of(plan);
  put(w, f->number);
  put(w, plan->n_instrs);
  put(w, plan->n_fences);
  put(w, plan->pool_limit);
  put(w, plan->pool_bytes);
  put(w, plan->external_bytes);
  put_signed(w, trace->end_ns);
  if (sn_plan_is_corun(plan)) put_teams(w, plan);
  for (int lane = 0; lane < f->lanes; lane++) {
    put_signed(w, trace->busy_ns[lane]);
    put_signed(w, trace->stall_ns[lane]);
  }
  put_signed(w, trace->allocation_ns);
}

static void put_instr(writer *w, const form *f, const sn_instr *i, uint32_t step) {
  bool algos = i->algo[0] != SN_NO_ALGO || i->algo[1] != SN_NO_ALGO;
  put(w, (uint64_t)i->kind | (uint64_t)i->lane << LANE_SHIFT | (i->rerun ? f->rerun : 0) | (algos ? f->algos : 0));
  if (algos) put(w, i->algo[0]), put(w, i->algo[1]);
  put_signed(w, (int64_t)i->step - (int64_t)step);
  put(w, i->id);
  if (i->kind == SN_SIGNAL || i->kind == SN_WAIT) return;
  put(w, i->offset);
  put(w, i->bytes);
  if (f == &corun && i->kind == SN_COMPUTE) put(w, i->part), put(w, i->team);
}

static void put_all(writer *w, const sn_plan *plan, const sn_trace *trace) {
  int64_t end[SN_LANES] = {0};
  put_head(w, plan, trace);
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    const sn_span *span = &trace->spans[i];
    put_instr(w, form_of(plan), instr, i > 0 ? plan->instrs[i - 1].step : 0);
    put_signed(w, span->begin_ns - end[instr->lane]);
    put_signed(w, span->end_ns - span->begin_ns);
    end[instr->lane] = span->end_ns;
  }
}

sn_blob sn_recording_write(const sn_plan *plan, const sn_trace *trace, sn_arena *arena, sn_err *err) {
  writer w = {0};
  put_all(&w, plan, trace);
  size_t n_bytes = w.n;
  w = (writer){.bytes = sn_arena_alloc(arena, n_bytes, 1)};
  if (!w.bytes) {
    sn_fail_memory(err);
    return (sn_blob){0};
  }
  put_all(&w, plan, trace);
  return (sn_blob){w.bytes, n_bytes};
}

/* ---- reading ---- */

typedef struct reader {
  const unsigned char *at, *end;
  bool bad; /* the bytes ended too early, or a number is out of its range */
} reader;

static uint64_t take(reader *r, uint64_t most) {
  uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
    unsigned char byte = *r->at++;
    uint64_t part = byte & 0x7f;
    if (shift == 63 && part > 1) break;
    number |= part << shift;
    if (byte & 0x80) continue;
    if (number <= most) return number;
    break;
  }
  r->bad = true;
  return 0;
}

static int64_t take_signed(reader *r) {
  uint64_t number = take(r, UINT64_MAX);
  return number & 1 ? -(int64_t)(number >> 1) - 1 : (int64_t)(number >> 1);
}

/* Three are added up at most: what is longer than seventy years is none. */
static const int64_t longest_ns = INT64_C(1) << 61;

static int64_t take_ns(reader *r) {
  int64_t ns = take_signed(r), most = longest_ns;
  if (ns < -most || ns > most) r->bad = true;
  return r->bad ? 0 : ns;
}

typedef struct recorded {
  const form *form;
  sn_plan plan;
  sn_trace trace;
} recorded;

static void take_teams(reader *r, sn_plan *plan) {
  plan->cores = (uint16_t)take(r, SN_MAX_CORES);
  plan->slots = (uint16_t)take(r, 2);
  plan->n_teams = (uint32_t)take(r, sn_min((uint64_t)(r->end - r->at), UINT16_MAX));
  plan->teams = calloc((size_t)plan->n_teams + 1, sizeof *plan->teams);
  if (!plan->teams || plan->n_teams == 0) r->bad = true;
  for (uint32_t t = 0; t < plan->n_teams && !r->bad; t++) {
    plan->teams[t].first = (uint16_t)take(r, UINT16_MAX);
    plan->teams[t].count = (uint16_t)take(r, UINT16_MAX);
    plan->teams[t].slot = (uint8_t)take(r, SN_SLOT_ANY);
  }
}

static void take_head(reader *r, recorded *made) {
  uint64_t number = take(r, corun.number);
  made->form = number == corun.number ? &corun : &plain;
  if (number == 0) r->bad = true;
  made->plan.n_instrs = (uint32_t)take(r, (uint64_t)(r->end - r->at) / FEWEST_BYTES);
  made->plan.n_fences = (uint32_t)take(r, made->plan.n_instrs);
  made->plan.pool_limit = take(r, INT64_MAX);
  made->plan.pool_bytes = take(r, INT64_MAX);
  made->plan.external_bytes = take(r, INT64_MAX);
  made->trace.end_ns = take_ns(r);
  if (made->form == &corun) take_teams(r, &made->plan);
  for (int lane = 0; lane < made->form->lanes; lane++) {
    made->trace.busy_ns[lane] = take_ns(r);
    made->trace.stall_ns[lane] = take_ns(r);
  }
  made->trace.allocation_ns = take_ns(r);
}

/* How many there are of what an instruction names. */
static uint32_t ids_of(const sn_plan *plan, unsigned kind) {
  if (kind == SN_COMPUTE) return plan->route->n_steps;
  return kind == SN_SIGNAL || kind == SN_WAIT ? plan->n_fences : plan->route->n_tensors;
}

/* The steps of a co-run plan are in any order. */
static bool is_step(const recorded *made, int64_t step, uint32_t before) {
  return step >= (made->form == &corun ? 0 : (int64_t)before) && step < made->plan.route->n_steps;
}

static void take_instr(reader *r, const recorded *made, sn_instr *i, uint32_t before) {
  const form *f = made->form;
  const sn_plan *plan = &made->plan;
  unsigned code = (unsigned)take(r, 2u * f->algos - 1), kind = code & ((1u << LANE_SHIFT) - 1);
  unsigned lane = code >> LANE_SHIFT & f->lane_mask;
  *i = (sn_instr){
      .kind = (uint8_t)kind, .lane = (uint8_t)lane, .rerun = (code & f->rerun) != 0, .algo = {SN_NO_ALGO, SN_NO_ALGO}};
  for (int a = 0; a < 2 && (code & f->algos); a++) i->algo[a] = (uint8_t)take(r, SN_NO_ALGO);
  int64_t difference = take_signed(r), most = INT32_MAX;
  bool near = difference >= -most && difference <= most;
  if (kind >= SN_INSTR_KINDS || lane >= f->lanes || !near || !is_step(made, before + difference, before)) r->bad = true;
  uint32_t ids = ids_of(plan, kind);
  if (ids == 0) r->bad = true;
  if (r->bad) return;
  i->step = (uint32_t)(before + difference);
  i->id = (uint32_t)take(r, ids - 1);
  if (kind == SN_SIGNAL || kind == SN_WAIT) return;
  i->offset = take(r, INT64_MAX);
  i->bytes = take(r, INT64_MAX - i->offset);
  if (f == &plain || kind != SN_COMPUTE) return;
  i->part = (uint8_t)take(r, SN_STEP_PARTS - 1);
  i->team = (uint16_t)take(r, plan->n_teams - 1);
}

static void take_all(reader *r, recorded *made) {
  int64_t end[SN_LANES] = {0};
  for (uint32_t i = 0; i < made->plan.n_instrs && !r->bad; i++) {
    sn_instr *instr = &made->plan.instrs[i];
    sn_span *span = &made->trace.spans[i];
    take_instr(r, made, instr, i > 0 ? made->plan.instrs[i - 1].step : 0);
    if (r->bad) return;
    int64_t gap = take_ns(r), length = take_ns(r);
    span->begin_ns = end[instr->lane] + gap;
    span->end_ns = end[instr->lane] = span->begin_ns + length;
    if (length < 0 || span->begin_ns < -1 || span->end_ns > longest_ns) r->bad = true; /* -1: takes no time */
  }
  if (r->at != r->end) r->bad = true;
}

static bool make_room(recorded *made) {
  sn_plan *plan = &made->plan;
  plan->instrs = calloc(plan->n_instrs + 1, sizeof *plan->instrs);
  plan->use = calloc((size_t)plan->route->n_steps + 1, sizeof *plan->use);
  made->trace.spans = calloc(plan->n_instrs + 1, sizeof *made->trace.spans);
  made->trace.n_spans = plan->n_instrs;
  return plan->instrs && plan->use && made->trace.spans;
}

static sn_status fail(const char *why, sn_err *err) {
  *err = (sn_err)SN_ERR_INIT;
  return sn_fail(err, SN_BAD_INPUT, "the recording is damaged, or of another network (%.200s)", why);
}

/* A wrong plan is a bug of ours only where we made it. */
static sn_status check(const recorded *made, sn_err *err) {
  sn_check_report report = {.use = made->plan.use};
  if (sn_check(&made->plan, &report, err) == SN_OK) return SN_OK;
  if (err->code != SN_BUG) return err->code;
  const sn_err why = *err;
  return fail(why.text, err);
}

static sn_timeline *read_timeline(recorded *made, reader *r, sn_err *err) {
  take_head(r, made);
  if (!r->bad && !make_room(made)) {
    sn_fail_memory(err);
    return NULL;
  }
  if (!r->bad) take_all(r, made);
  if (r->bad)
    fail("its bytes do not add up", err);
  else if (check(made, err) == SN_OK)
    return sn_timeline_new(&made->plan, &made->trace, err);
  return NULL;
}

sn_timeline *sn_recording_timeline(const sn_route *route, sn_blob recording, sn_err *err) {
  recorded made = {.plan.route = route};
  reader r = {recording.bytes, recording.bytes ? recording.bytes + recording.n_bytes : recording.bytes, false};
  sn_timeline *timeline = read_timeline(&made, &r, err);
  free(made.plan.teams);
  free(made.plan.instrs);
  free(made.plan.use);
  free(made.trace.spans);
  return timeline;
}
