/* The back end: obeys a plan on the GPU. One stream per lane, one event per fence; addresses are looked up when an
 * instruction is fed, and nothing waits before sync(), so the host runs ahead of the device as far as it likes.
 *
 * Times: an event behind every computation and copy, and one before it where its lane has waited or done nothing yet;
 * else it begins where the one before it ended. So what the device does between two operations belongs to the second,
 * and there are hardly more events than operations. On a lane that waited, the time between the end of its last
 * operation and the beginning of the next is the wait's. */
#include "exec/cuda/cuda.h"

#include "exec/kernel/kernel_internal.h"
#include "models/op/op.h"
#include "sim/graph/route.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct sn__cuda_play {
  const sn_plan *plan;
  sn_trace *trace;
  unsigned char *pool, *external;
  unsigned char **place;      /* per tensor: where it lies, or NULL */
  float **pointers;           /* of the current call; see sn_call_fill() */
  cudaEvent_t *begins, *ends; /* per instruction; NULL for what takes no time, or begins where another ended */
  cudaEvent_t *fences;
  cudaEvent_t start, idle[SN_PLAIN_LANES];
  uint64_t iteration;
  uint32_t fed; /* instructions of this iteration */
} play;

static bool takes_time(const sn_instr *i) {
  return i->kind == SN_COMPUTE || i->kind == SN_COPY_OUT || i->kind == SN_COPY_IN;
}

/* ---- memory and events ---- */

static sn_status make_tables(const sn__cuda *m, play *p, sn_err *err) {
  p->place = calloc(m->route->n_tensors, sizeof *p->place);
  p->pointers = calloc((size_t)4 * sn_call_widest(m->route->net), sizeof *p->pointers);
  p->begins = calloc((size_t)p->plan->n_instrs + 1, sizeof(cudaEvent_t));
  p->ends = calloc((size_t)p->plan->n_instrs + 1, sizeof(cudaEvent_t));
  p->fences = calloc((size_t)p->plan->n_fences + 1, sizeof(cudaEvent_t));
  return p->place && p->pointers && p->begins && p->ends && p->fences ? SN_OK : sn_fail_memory(err);
}

/* Operations that begin apart from the end of the one before them. */
static sn_status make_begins(play *p, sn_err *err) {
  bool apart[SN_PLAIN_LANES];
  sn_status status = SN_OK;
  for (int lane = 0; lane < SN_PLAIN_LANES; lane++) apart[lane] = true;
  for (uint32_t i = 0; i < p->plan->n_instrs && status == SN_OK; i++) {
    const sn_instr *instr = &p->plan->instrs[i];
    if (instr->kind == SN_WAIT) apart[instr->lane] = true;
    if (!takes_time(instr)) continue;
    if (apart[instr->lane]) status = CUDA(cudaEventCreateWithFlags(&p->begins[i], cudaEventDefault));
    apart[instr->lane] = false;
  }
  return status;
}

static sn_status make_events(play *p, sn_err *err) {
  sn_status status = CUDA(cudaEventCreateWithFlags(&p->start, cudaEventDefault));
  for (int lane = 0; lane < SN_PLAIN_LANES && status == SN_OK; lane++)
    status = CUDA(cudaEventCreateWithFlags(&p->idle[lane], cudaEventDefault));
  for (uint32_t f = 0; f < p->plan->n_fences && status == SN_OK; f++)
    status = CUDA(cudaEventCreateWithFlags(&p->fences[f], cudaEventDisableTiming));
  for (uint32_t i = 0; i < p->plan->n_instrs && status == SN_OK; i++)
    if (takes_time(&p->plan->instrs[i])) status = CUDA(cudaEventCreateWithFlags(&p->ends[i], cudaEventDefault));
  return status == SN_OK ? make_begins(p, err) : status;
}

static sn_status reserve(void *self, const sn_plan *plan, sn_trace *trace, sn_err *err) {
  sn__cuda *m = self;
  void *pool = NULL, *external = NULL;
  if (plan->layouts[0] && strcmp(plan->layouts, "plain") != 0)
    return sn_fail(err, SN_BAD_DEVICE,
                   "the plan was made for kernels whose values lie as \"%s\", and a GPU's lie plain; make one for it",
                   plan->layouts);
  play *p = m->play = calloc(1, sizeof *p);
  if (!p) return sn_fail_memory(err);
  p->plan = plan;
  p->trace = trace;
  if (make_tables(m, p, err) != SN_OK || sn__gpu_malloc(&pool, plan->pool_bytes, "the plan's pool", err) != SN_OK)
    return err->code;
  p->pool = pool;
  if (sn__gpu_pin(&external, plan->external_bytes, "offloaded tensors", err) != SN_OK) return err->code;
  p->external = external;
  return make_events(p, err);
}

static void destroy_events(cudaEvent_t *events, uint32_t count) {
  for (uint32_t i = 0; events && i < count; i++)
    if (events[i]) cudaEventDestroy(events[i]);
  free(events);
}

static void free_play(play *p) {
  destroy_events(p->begins, p->plan->n_instrs);
  destroy_events(p->ends, p->plan->n_instrs);
  destroy_events(p->fences, p->plan->n_fences);
  if (p->start) cudaEventDestroy(p->start);
  for (int lane = 0; lane < SN_PLAIN_LANES; lane++)
    if (p->idle[lane]) cudaEventDestroy(p->idle[lane]);
  if (p->pool) cudaFree(p->pool);
  if (p->external) cudaFreeHost(p->external);
  free(p->place);
  free(p->pointers);
  free(p);
}

/* After an error lanes may still be at work. */
static void close_play(void *self) {
  sn__cuda *m = self;
  if (!m->play) return;
  cudaDeviceSynchronize();
  free_play(m->play);
  m->play = NULL;
}

/* ---- an iteration ---- */

/* No lane begins before the clock does. */
static sn_status begin(void *self, uint64_t iteration, sn_err *err) {
  sn__cuda *m = self;
  play *p = m->play;
  p->iteration = iteration;
  p->fed = 0;
  memset(p->place, 0, m->route->n_tensors * sizeof *p->place);
  if (m->batch && sn__store_draw(m, iteration, err) != SN_OK) return err->code; /* a play of copies alone needs none */
  if (CUDA(cudaEventRecord(p->start, m->gpu.streams[SN_LANE_COMPUTE])) != SN_OK) return err->code;
  for (int lane = 0; lane < SN_PLAIN_LANES; lane++)
    if (CUDA(cudaStreamWaitEvent(m->gpu.streams[lane], p->start, 0)) != SN_OK) return err->code;
  return SN_OK;
}

static const sn_instr *take(play *p, uint32_t index) {
  p->fed = index + 1;
  return &p->plan->instrs[index];
}

static sn_status alloc(void *self, uint32_t index, sn_err *err) {
  play *p = ((sn__cuda *)self)->play;
  const sn_instr *i = take(p, index);
  (void)err;
  p->place[i->id] = p->pool + i->offset;
  return SN_OK;
}

static sn_status release(void *self, uint32_t index, sn_err *err) {
  play *p = ((sn__cuda *)self)->play;
  (void)err;
  p->place[take(p, index)->id] = NULL;
  return SN_OK;
}

static sn_status record_begin(const sn__cuda *m, uint32_t index, sn_err *err) {
  cudaEvent_t begin = m->play->begins[index];
  return begin ? CUDA(cudaEventRecord(begin, m->gpu.streams[m->play->plan->instrs[index].lane])) : SN_OK;
}

static sn__step make_step(const sn__cuda *m, const sn_instr *i) {
  const sn_step *step = &m->route->steps[i->id];
  const sn__layer *l = &m->layers[step->layer];
  sn__step made = {.call = {.net = m->route->net,
                            .layer = step->layer,
                            .pass = step->pass,
                            .rerun = i->rerun,
                            .iteration = m->play->iteration,
                            .hyper = &m->options.hyper,
                            .parameters = m->parameters + l->at,
                            .gradients = m->gradients + l->at,
                            .states = {m->momentum ? m->momentum + l->at : NULL},
                            .statistics = m->statistics + l->statistics_at,
                            .workspace = i->bytes > 0 ? m->play->pool + i->offset : NULL,
                            .workspace_bytes = i->bytes},
                   .algo = {i->algo[0], i->algo[1]}};
  sn_call_fill(&made.call, m->route, m->play->place, m->data, m->play->pointers);
  return made;
}

static sn_status compute(void *self, uint32_t index, sn_err *err) {
  sn__cuda *m = self;
  play *p = m->play;
  const sn_instr *i = take(p, index);
  cudaStream_t stream = m->gpu.streams[i->lane];
  if (!m->batch) return sn_fail(err, SN_BUG, "an iteration was fed no batch");
  sn__step step = make_step(m, i);
  if (record_begin(m, index, err) == SN_OK && sn__kernel_run(m, &step, err) == SN_OK)
    CUDA(cudaEventRecord(p->ends[index], stream));
  if (err->code != SN_OK)
    sn_err_prefix(err, "layer \"%.80s\" %s%s (instruction %u)", sn__call_layer(&step.call)->name,
                  sn_pass_name(step.call.pass), i->rerun ? " re-run" : "", index);
  return err->code;
}

static sn_status copy(void *self, uint32_t index, sn_err *err) {
  sn__cuda *m = self;
  play *p = m->play;
  char name[SN_TENSOR_NAME];
  const sn_instr *i = take(p, index);
  cudaStream_t stream = m->gpu.streams[i->lane];
  bool out = i->kind == SN_COPY_OUT;
  unsigned char *device = p->place[i->id], *outside = p->external + i->offset;
  if (record_begin(m, index, err) == SN_OK &&
      CUDA(cudaMemcpyAsync(out ? outside : device, out ? device : outside, i->bytes,
                           out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, stream)) == SN_OK)
    CUDA(cudaEventRecord(p->ends[index], stream));
  if (err->code != SN_OK)
    sn_err_prefix(err, "%s of %s (instruction %u)", sn_instr_kind_name((sn_instr_kind)i->kind),
                  sn_tensor_name(m->route, i->id, name, sizeof name), index);
  return err->code;
}

static sn_status signal_fence(void *self, uint32_t index, sn_err *err) {
  sn__cuda *m = self;
  const sn_instr *i = take(m->play, index);
  return CUDA(cudaEventRecord(m->play->fences[i->id], m->gpu.streams[i->lane]));
}

static sn_status wait_fence(void *self, uint32_t index, sn_err *err) {
  sn__cuda *m = self;
  const sn_instr *i = take(m->play, index);
  return CUDA(cudaStreamWaitEvent(m->gpu.streams[i->lane], m->play->fences[i->id], 0));
}

/* ---- times ---- */

static sn_status since_start(const play *p, cudaEvent_t event, int64_t *ns, sn_err *err) {
  float ms = 0;
  sn_status status = CUDA(cudaEventElapsedTime(&ms, p->start, event));
  *ns = llround((double)ms * 1e6);
  return status;
}

static sn_status read_events(const play *p, sn_err *err) {
  int64_t now[SN_PLAIN_LANES] = {0};
  for (uint32_t i = 0; i < p->fed; i++) {
    sn_span *span = &p->trace->spans[i];
    int64_t *lane_ns = &now[p->plan->instrs[i].lane];
    *span = (sn_span){-1, -1};
    if (!takes_time(&p->plan->instrs[i])) continue;
    span->begin_ns = *lane_ns;
    if ((p->begins[i] && since_start(p, p->begins[i], &span->begin_ns, err) != SN_OK) ||
        since_start(p, p->ends[i], &span->end_ns, err) != SN_OK)
      return err->code;
    *lane_ns = span->end_ns;
  }
  return SN_OK;
}

/* What each lane did between its operations: a wait lasts until the lane's next operation begins. */
static void fill_spans(const play *p) {
  sn_trace *t = p->trace;
  int64_t now[SN_PLAIN_LANES] = {0};
  uint32_t waited[SN_PLAIN_LANES]; /* the first wait since the lane's last operation */
  for (int lane = 0; lane < SN_PLAIN_LANES; lane++) waited[lane] = SN_NONE;
  memset(t->busy_ns, 0, sizeof t->busy_ns);
  memset(t->stall_ns, 0, sizeof t->stall_ns);
  for (uint32_t n = 0; n < p->fed; n++) {
    const sn_instr *i = &p->plan->instrs[n];
    if (i->kind == SN_SIGNAL || i->kind == SN_WAIT) t->spans[n] = (sn_span){now[i->lane], now[i->lane]};
    if (i->kind == SN_WAIT && waited[i->lane] == SN_NONE) waited[i->lane] = n;
    if (!takes_time(i)) continue;
    if (waited[i->lane] != SN_NONE && t->spans[n].begin_ns > now[i->lane]) {
      t->spans[waited[i->lane]].end_ns = t->spans[n].begin_ns;
      t->stall_ns[i->lane] += t->spans[n].begin_ns - now[i->lane];
    }
    waited[i->lane] = SN_NONE;
    t->busy_ns[i->lane] += t->spans[n].end_ns - t->spans[n].begin_ns;
    now[i->lane] = t->spans[n].end_ns;
  }
}

static sn_status sync_all(void *self, sn_err *err) {
  sn__cuda *m = self;
  play *p = m->play;
  int64_t end = 0;
  for (int lane = 0; lane < SN_PLAIN_LANES; lane++)
    if (CUDA(cudaEventRecord(p->idle[lane], m->gpu.streams[lane])) != SN_OK) return err->code;
  if (CUDA(cudaDeviceSynchronize()) != SN_OK) {
    sn_err_prefix(err, "a step or copy of iteration %llu failed on the device (CUDA_LAUNCH_BLOCKING=1 tells which)",
                  (unsigned long long)p->iteration);
    return err->code;
  }
  if (read_events(p, err) != SN_OK) return err->code;
  fill_spans(p);
  p->trace->end_ns = 0;
  for (int lane = 0; lane < SN_PLAIN_LANES; lane++) {
    if (since_start(p, p->idle[lane], &end, err) != SN_OK) return err->code;
    if (end > p->trace->end_ns) p->trace->end_ns = end;
  }
  if (p->fed == p->plan->n_instrs && m->batch) sn__store_judge(m);
  m->batch = NULL;
  return SN_OK;
}

static const sn_backend_ops ops = {
    .name = "cuda",
    .reserve = reserve,
    .begin = begin,
    .alloc = alloc,
    .release = release,
    .compute = compute,
    .copy = copy,
    .signal = signal_fence,
    .wait = wait_fence,
    .sync = sync_all,
    .close = close_play,
};

sn_backend sn__cuda_backend(sn__cuda *m) {
  return (sn_backend){.self = m, .ops = &ops};
}
