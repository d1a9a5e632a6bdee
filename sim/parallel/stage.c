/* Pipelines: the route of one stage (parallel.md, section 6; PyTorch 2.15, torch/distributed/pipelining/stage.py and
 * schedules.py).
 *
 *   receive h0, F0, send | receive h1, F1, send | receive dh0, B0, send | F2 .. | updates
 *
 * The whole's steps of a part of the network stand once for each micro-batch, in the order of the schedule's list
 * (sim/parallel/pipeline.h); tensors are copies of their own, but for gradients of parameters: the first micro-batch
 * makes one, each later one makes its own, adds it and drops it. What crosses from one part to the next is received and
 * sent by steps. How long it stays, as PyTorch has it:
 *
 *   h           its buffer is made when it is received, and stays until its micro-batch's backward is over
 *   dh          the same; one whose backward stands behind another's (1f1b's end) until the next is received. It is held
 *               elsewhere, so the first sum makes a tensor of its own
 *   sent h      until the next forward is over, or the next gradient is here (1f1b); gpipe: all until the first gradient
 *               is asked for; under DistributedDataParallel until its backward is over
 *   sent dh     until the next backward is over (1f1b), or the next gradient is here (gpipe); the last to the end
 *   outputs     the last part's, until their backward is over; losses to the end, and the h that their graph began with
 *
 * interleaved and zb-h1 are played by PyTorch's runtime. It asks for what it receives as others make it (see
 * pipeline_actions.h), and waits for what it sent forward behind its backward, and for what it sent back at the end. Of
 * zb-h1 backward is over when its second half is, which runs through the layers from first to last; until then the graph
 * is there with all that it has saved but what products alone have read, as none of it can go while what it leads to is
 * left. The first stage has nobody to make gradients of inputs for: all of its backward is the second half. Outputs are
 * not merged: schedule.step(return_outputs=False). */
#include "base/arena.h"
#include "base/checked.h"
#include "models/op/op.h"
#include "sim/parallel/edit.h"
#include "sim/parallel/fsdp.h"
#include "sim/parallel/halves.h"
#include "sim/parallel/pipeline_actions.h"
#include "sim/parallel/stage_parts.h"

#include <stdlib.h>
#include <string.h>

/* What crossed, and is still held, of some micro-batches: tensors of the stage. */
typedef struct held {
  uint32_t *all, n, room;
} held;

typedef struct maker {
  sn__edit e;
  const sn_route *whole;
  const sn_mesh *mesh;
  sn__parts parts;
  uint32_t micros;
  uint32_t *number; /* per tensor of the whole: among those that the stage's steps touch; SN_NONE: none of them does */
  uint32_t numbers; /* how many these are */
  uint32_t *copy;   /* per micro-batch and number: its copy; SN_NONE: none yet */
  uint32_t *only;   /* per tensor of the whole: the copy of all micro-batches; SN_NONE: none yet */
  bool *made;       /* per tensor of the whole: a gradient of a parameter that is there */
  sn__halves halves;
  bool puts_off;  /* what is written is of zb-h1's second half */
  bool masters;   /* gradients are added to others, beside the graph: each micro-batch has its own */
  bool split;     /* backward is in two; then also: */
  uint32_t *left; /* per micro-batch and access of the whole: what a step's second half reads, as it was when the first
                   * half came by; SN_NONE */
  bool *is_left;  /* per micro-batch and number: a second half is still to read it, or it is a buffer */
  uint32_t *run_numbers, *runs; /* as in the route */
  uint32_t n_runs;
  held sent, sent_gradients, received; /* until what comes next: see above */
  sn_turn *turns;
  uint32_t n_turns, turns_room;
  uint64_t updated, updated_own; /* elements of a rank's parameters that are updated; the stage's alone */
  sn_err *err;
} maker;

static bool is_mine(const maker *m, uint32_t p) {
  return p % sn_mesh_size(m->mesh, SN_MESH_PP) == m->mesh->stage;
}

/* ---- writing ---- */

static uint32_t *slot_of(const maker *m, uint32_t micro, uint32_t tensor) {
  const sn_tensor *t = &m->whole->tensors[tensor];
  bool alone = (t->role == SN_PARAMETER_GRADIENT && !m->masters) || sn_tensor_is_weight_cast(t);
  return alone ? &m->only[tensor] : &m->copy[(size_t)micro * m->numbers + m->number[tensor]];
}

static void make_copy(maker *m, uint32_t *copy, uint32_t tensor) {
  const sn_tensor *t = &m->whole->tensors[tensor];
  if (*copy == SN_NONE) *copy = sn__edit_tensor(&m->e, t->layer, t->port, t->role, t->bytes);
}

/* A layer's gradients of parameters stay side by side. */
static void make_gradients(maker *m, uint32_t layer) {
  uint32_t first = m->whole->weight_gradient[layer];
  for (uint32_t i = first; i < m->whole->n_tensors; i++) {
    const sn_tensor *t = &m->whole->tensors[i];
    if (t->role != SN_PARAMETER_GRADIENT || t->layer != layer) break;
    make_copy(m, &m->only[i], i);
  }
}

static uint32_t copy_of(maker *m, uint32_t micro, uint32_t tensor) {
  const sn_tensor *t = &m->whole->tensors[tensor];
  uint32_t *copy = slot_of(m, micro, tensor);
  if (*copy == SN_NONE && t->role == SN_PARAMETER_GRADIENT && !m->masters) make_gradients(m, t->layer);
  make_copy(m, copy, tensor);
  return *copy;
}

/* Of a parameter: made by who comes first; who comes later makes his own and adds it. */
static void add_gradient(maker *m, uint32_t tensor) {
  const sn_tensor *t = &m->whole->tensors[tensor];
  if (m->made[tensor]) {
    sn__edit_access(&m->e, copy_of(m, 0, tensor), SN_MODIFY);
    sn__edit_access(&m->e, sn__edit_tensor(&m->e, t->layer, t->port, SN_SCRATCH, t->bytes), SN_WRITE);
    return;
  }
  sn__edit_access(&m->e, copy_of(m, 0, tensor), SN_WRITE);
  m->made[tensor] = true;
}

/* What the second half of a step reads, which is put off, has to stay as it is. */
static void leave(maker *m, uint32_t step, uint32_t micro) {
  const sn_step *s = &m->whole->steps[step];
  for (uint32_t i = s->first_access; i < s->first_access + s->n_accesses; i++) {
    sn_access access = m->whole->accesses[i];
    if (access.mode != SN_READ || m->halves.of_weights[access.tensor]) continue;
    m->left[(size_t)micro * m->whole->n_accesses + i] = copy_of(m, micro, access.tensor);
    m->is_left[(size_t)micro * m->numbers + m->number[access.tensor]] = true;
  }
}

/* A sum is added in place, unless what it is added to has to stay as it is. */
static void add_in_place(maker *m, uint32_t tensor, uint32_t micro) {
  bool *is_left = &m->is_left[(size_t)micro * m->numbers + m->number[tensor]];
  uint32_t before = copy_of(m, micro, tensor);
  if (!*is_left) {
    sn__edit_access(&m->e, before, SN_MODIFY);
    return;
  }
  *is_left = false;
  *slot_of(m, micro, tensor) = SN_NONE;
  sn__edit_access(&m->e, before, SN_READ);
  sn__edit_access(&m->e, copy_of(m, micro, tensor), SN_WRITE);
}

/* Autocast's copy of a weight: the first micro-batch makes it, and it stays to the end of the schedule, which is under one
 * torch.autocast(). The whole's last forward step has all of them, a stage its own. */
static void access_weight_cast(maker *m, sn_access access) {
  bool is_there = m->only[access.tensor] != SN_NONE;
  if (!is_mine(m, m->parts.of_layer[m->whole->tensors[access.tensor].layer])) return;
  sn__edit_access(&m->e, copy_of(m, 0, access.tensor), is_there ? SN_READ : access.mode);
}

static void hold_weight_casts(maker *m) {
  for (uint32_t t = 0; t < m->whole->n_tensors; t++)
    if (sn_tensor_is_weight_cast(&m->whole->tensors[t]) && m->only[t] != SN_NONE) sn__edit_hold(&m->e, m->only[t]);
}

static void begin_step(maker *m, uint32_t step, uint32_t micro, sn__half half) {
  bool cut = half != SN__ALL && sn__halves_cut(&m->halves, step);
  sn__edit_copy_bare(&m->e, step);
  if (m->e.err->code != SN_OK) return;
  sn_step *copy = &m->e.steps[m->e.route->n_steps - 1];
  copy->put_off = m->puts_off;
  if (cut) copy->kernel = copy->put_off ? SN_FILTER_GRADIENT : SN_DATA_GRADIENT;
  if (!cut || !copy->put_off) m->runs[(size_t)micro * m->n_runs + m->run_numbers[step]] = m->e.route->n_steps - 1;
}

/* Gradients of a norm's input are added before it is at its fullest (route_cast.c), and gone then but for what is left. */
static void stay_beside_sum(maker *m, uint32_t step, uint32_t micro) {
  const sn_route *w = m->whole;
  const sn_layer *layer = &w->layers[w->steps[step].layer];
  const sn_step *sum = &w->steps[step + 1 < w->n_steps ? step + 1 : step];
  if (layer->op != SN_RMS_NORM || layer->attr->fused || step < w->first_backward || sum->kernel != SN_SUM) return;
  for (uint32_t i = sum->first_access; i < sum->first_access + sum->n_accesses; i++) {
    uint32_t t = w->accesses[i].tensor;
    if (w->accesses[i].mode == SN_MODIFY && m->is_left[(size_t)micro * m->numbers + m->number[t]])
      sn__edit_access(&m->e, sn__edit_tensor(&m->e, sum->layer, 0, SN_SCRATCH, w->tensors[t].bytes), SN_WRITE);
  }
}

static void copy_step(maker *m, uint32_t step, uint32_t micro, sn__half half) {
  const sn_step *s = &m->whole->steps[step];
  if (half == SN__OF_INPUTS && m->halves.weights[step]) leave(m, step, micro);
  if (!sn__halves_run(&m->halves, half, step)) return;
  begin_step(m, step, micro, half);
  for (uint32_t i = s->first_access; i < s->first_access + s->n_accesses; i++) {
    sn_access access = m->whole->accesses[i];
    uint32_t left = half == SN__OF_WEIGHTS ? m->left[(size_t)micro * m->whole->n_accesses + i] : SN_NONE;
    if (!sn__halves_touch(&m->halves, half, step, access)) continue;
    if (sn_tensor_is_weight_cast(&m->whole->tensors[access.tensor]))
      access_weight_cast(m, access);
    else if (left != SN_NONE)
      sn__edit_take(&m->e, (sn_access){.tensor = left, .mode = SN_READ, .held = access.held});
    else if (access.mode == SN_MODIFY)
      add_in_place(m, access.tensor, micro);
    else if (access.mode == SN_WRITE && m->whole->tensors[access.tensor].role == SN_PARAMETER_GRADIENT && !m->masters)
      add_gradient(m, access.tensor);
    else if (access.held)
      sn__edit_hold(&m->e, *slot_of(m, micro, access.tensor)); /* where the stage has it */
    else
      sn__edit_access(&m->e, copy_of(m, micro, access.tensor), access.mode);
  }
  uint64_t more = half == SN__OF_INPUTS ? sn__halves_norm_bytes(m->whole, step) : 0;
  if (more > 0) sn__edit_access(&m->e, sn__edit_tensor(&m->e, s->layer, 0, SN_SCRATCH, more), SN_WRITE);
  if (half == SN__ALL) stay_beside_sum(m, step, micro);
}

/* The part that sends what `p` sends or receives. */
static uint32_t sender(const maker *m, const sn__part *p, sn_pass pass, sn_transfer_kind kind) {
  const uint32_t own = (uint32_t)(p - m->parts.all);
  return kind == SN_SEND ? own : pass == SN_FORWARD ? own - 1 : own + 1;
}

static void transfer(maker *m, const sn__part *p, const sn__list *tensors, uint32_t micro, sn_pass pass,
                     sn_transfer_kind kind) {
  for (uint32_t i = 0; i < tensors->n; i++) {
    const sn_tensor *t = &m->whole->tensors[tensors->all[i]];
    uint32_t number = sn__edit_transfer(&m->e, (sn_transfer){.kind = kind,
                                                             .axis = SN_MESH_PP,
                                                             .ranks = 2,
                                                             .what = tensors->all[i],
                                                             .micro = micro,
                                                             .from = sender(m, p, pass, kind),
                                                             .bytes = t->bytes});
    bool asked = *slot_of(m, micro, tensors->all[i]) != SN_NONE;
    sn__edit_step(&m->e, t->layer, pass, SN_TRANSFER, number);
    sn__edit_access(&m->e, copy_of(m, micro, tensors->all[i]),
                    kind == SN_SEND ? SN_READ
                    : asked         ? SN_MODIFY
                                    : SN_WRITE);
    if (kind == SN_RECEIVE && pass == SN_BACKWARD)
      m->is_left[(size_t)micro * m->numbers + m->number[tensors->all[i]]] = true;
  }
}

/* ---- what crossed stays for a while ---- */

/* By the latest step. */
static void hold_all(maker *m, const sn__list *tensors, uint32_t micro) {
  for (uint32_t i = 0; i < tensors->n; i++) sn__edit_hold(&m->e, copy_of(m, micro, tensors->all[i]));
}

static void keep(maker *m, held *h, const sn__list *tensors, uint32_t micro) {
  for (uint32_t i = 0; i < tensors->n && m->err->code == SN_OK; i++) {
    uint32_t room = h->n < h->room ? h->room : 2 * h->room + 16;
    uint32_t *all = room > h->room ? realloc(h->all, room * sizeof *all) : h->all;
    if (!all) {
      sn_fail_memory(m->err);
      return;
    }
    *h = (held){.all = all, .n = h->n, .room = room};
    h->all[h->n++] = copy_of(m, micro, tensors->all[i]);
  }
}

static void hold_kept(maker *m, const held *h) {
  for (uint32_t i = 0; i < h->n; i++) sn__edit_hold(&m->e, h->all[i]);
}

/* With the latest step. */
static void let_go(maker *m, held *h) {
  hold_kept(m, h);
  h->n = 0;
}

static bool waits(const maker *m) {
  return m->mesh->schedule == SN_SCHEDULE_1F1B || m->mesh->schedule == SN_SCHEDULE_GPIPE;
}

static bool is_gpipe(const maker *m) {
  return m->mesh->schedule == SN_SCHEDULE_GPIPE;
}

/* Where DistributedDataParallel starts backward from: the tensors themselves. */
static bool is_replicated(const maker *m) {
  return sn_mesh_size(m->mesh, SN_MESH_DP) > 1 && sn_mesh_size(m->mesh, SN_MESH_FSDP) == 1;
}

static const sn__part *part_of(const maker *m, const sn_pipeline_entry *entry) {
  return &m->parts.all[entry->chunk * sn_mesh_size(m->mesh, SN_MESH_PP) + m->mesh->stage];
}

/* Has room for what an entry is to receive, also where the stage's other part has sent a gradient of the same sums. */
static void ask(maker *m, const sn_pipeline_entry *entry) {
  const sn__part *p = part_of(m, entry);
  const bool forward = entry->pass == SN_PIPELINE_FORWARD;
  const sn__list *l = forward ? &p->given : &p->given_gradients;
  if (l->n == 0) return;
  const sn_transfer none = {.kind = SN_RECEIVE, .axis = SN_MESH_PP, .ranks = 2};
  sn__edit_step(&m->e, m->whole->tensors[l->all[0]].layer, forward ? SN_FORWARD : SN_BACKWARD, SN_PACK,
                sn__edit_transfer(&m->e, none));
  for (uint32_t i = 0; i < l->n; i++) {
    *slot_of(m, entry->micro, l->all[i]) = SN_NONE;
    sn__edit_access(&m->e, copy_of(m, entry->micro, l->all[i]), SN_WRITE);
  }
}

/* ---- entries ---- */

static void forward_entry(maker *m, const sn__part *p, uint32_t micro) {
  transfer(m, p, &p->given, micro, SN_FORWARD, SN_RECEIVE);
  for (uint32_t i = 0; i < p->forward.n; i++) copy_step(m, p->forward.all[i], micro, SN__ALL);
  if (!is_gpipe(m)) let_go(m, &m->sent);
  transfer(m, p, &p->handed, micro, SN_FORWARD, SN_SEND);
  if (waits(m) && !is_replicated(m)) keep(m, &m->sent, &p->handed, micro);
}

/* What is there until backward is over. */
static void end_backward(maker *m, const sn__part *p, uint32_t micro) {
  if (is_replicated(m) || !waits(m)) hold_all(m, &p->handed, micro);
  hold_all(m, &p->given, micro);
  m->split ? hold_all(m, &p->given_gradients, micro) : hold_kept(m, &m->received);
}

static bool is_first(const maker *m, const sn__part *p) {
  return p == m->parts.all;
}

/* What forward has saved: for layers from the last one with weights on down, or for those behind it. */
static void hold_saved(maker *m, const sn__list *backward, uint32_t micro, bool below) {
  const sn_route *w = m->whole;
  bool is_below = false;
  for (uint32_t i = 0; i < backward->n; i++) {
    const sn_step *step = &w->steps[backward->all[i]];
    is_below = is_below || m->halves.weights[backward->all[i]];
    if (is_below != below) continue;
    for (uint32_t a = step->first_access; a < step->first_access + step->n_accesses; a++) {
      uint32_t tensor = w->accesses[a].tensor;
      sn_role role = w->tensors[tensor].role;
      bool made_back = role == SN_GRADIENT || role == SN_PARAMETER_GRADIENT || role == SN_SCRATCH;
      if (!made_back && !sn__halves_go_early(w, step, tensor)) sn__edit_hold(&m->e, copy_of(m, micro, tensor));
    }
  }
}

/* Of a gradient from two bytes to its parameter's four. Autocast's copy of a weight, and with it the node that casts back,
 * is of the first micro-batch; autograd calls what forward has made last first, so a later micro-batch's gradients wait in
 * two bytes until all else of its backward is over. */
static bool casts_late(const maker *m, uint32_t step, uint32_t micro) {
  const sn_step *s = &m->whole->steps[step];
  return micro > 0 && s->kernel == SN_CAST && s->parameter != SN_NONE;
}

static void write_backward(maker *m, const sn__part *p, uint32_t micro) {
  const uint32_t *steps = p->backward.all;
  for (uint32_t i = 0; i < p->backward.n; i++)
    if (!casts_late(m, steps[i], micro)) copy_step(m, steps[i], micro, m->split ? SN__OF_INPUTS : SN__ALL);
  for (uint32_t i = 0; i < p->backward.n; i++)
    if (casts_late(m, steps[i], micro)) copy_step(m, steps[i], micro, SN__ALL);
}

static void backward_entry(maker *m, const sn__part *p, uint32_t micro, bool behind_another) {
  if (is_gpipe(m)) let_go(m, &m->sent);
  transfer(m, p, &p->given_gradients, micro, SN_BACKWARD, SN_RECEIVE);
  let_go(m, &m->sent);
  let_go(m, &m->received);
  keep(m, &m->received, &p->given_gradients, micro); /* before sums make others of them */
  if (is_gpipe(m)) let_go(m, &m->sent_gradients);
  if (!m->split || !is_first(m, p)) write_backward(m, p, micro);
  hold_all(m, &p->outputs, micro);
  m->split ? hold_saved(m, &p->backward, micro, false) : end_backward(m, p, micro);
  if (waits(m)) let_go(m, &m->sent_gradients);
  transfer(m, p, &p->handed_gradients, micro, SN_BACKWARD, SN_SEND);
  keep(m, &m->sent_gradients, &p->handed_gradients, micro);
  if (!waits(m) || is_gpipe(m) || !behind_another) m->received.n = 0;
}

/* Layer by layer from the first on, each layer's steps in their order. */
static void write_weights(maker *m, const sn__list *backward, uint32_t micro) {
  const sn_step *steps = m->whole->steps;
  for (uint32_t end = backward->n, first; end > 0; end = first) {
    first = end - 1;
    while (first > 0 && steps[backward->all[first - 1]].layer == steps[backward->all[first]].layer) first--;
    for (uint32_t i = first; i < end; i++) copy_step(m, backward->all[i], micro, SN__OF_WEIGHTS);
  }
}

static void weights_entry(maker *m, const sn__part *p, uint32_t micro) {
  m->puts_off = true;
  for (uint32_t i = 0; i < p->backward.n && is_first(m, p); i++) copy_step(m, p->backward.all[i], micro, SN__ALL);
  if (!is_first(m, p)) {
    write_weights(m, &p->backward, micro);
    hold_saved(m, &p->backward, micro, true);
  }
  end_backward(m, p, micro);
  m->puts_off = false;
}

static void write_entry(maker *m, const sn_pipeline_entry *entry, const sn_pipeline_entry *before) {
  const sn__part *p = part_of(m, entry);
  if (entry->pass == SN_PIPELINE_FORWARD)
    forward_entry(m, p, entry->micro);
  else if (entry->pass == SN_PIPELINE_BACKWARD)
    backward_entry(m, p, entry->micro, before && before->pass == SN_PIPELINE_BACKWARD);
  else
    weights_entry(m, p, entry->micro);
}

/* Losses are kept to the end, and with their graph what it began with: what the last part has received. */
static void hold_losses(maker *m) {
  const sn_route *w = m->whole;
  if (!is_mine(m, m->parts.n - 1)) return;
  for (uint32_t micro = 0; micro < m->micros && !m->split; micro++)
    hold_all(m, &m->parts.all[m->parts.n - 1].given, micro);
  for (uint32_t s = 0; s < w->first_backward; s++) {
    const sn_step *step = &w->steps[s];
    if (w->layers[step->layer].op != SN_SOFTMAX || !is_mine(m, m->parts.of_step[s])) continue;
    for (uint32_t micro = 0; micro < m->micros; micro++)
      for (uint32_t i = 0; i < step->n_accesses; i++) {
        const sn_access access = w->accesses[step->first_access + i];
        const sn_tensor *t = &w->tensors[access.tensor];
        if (t->role == SN_SAVED && t->bytes <= 8) sn__edit_hold(&m->e, copy_of(m, micro, access.tensor));
      }
  }
}

/* ---- updates ---- */

/* What the optimizer makes for all parameters at once is as large as the stage's. */
static uint32_t temporary_of(maker *m, uint32_t tensor) {
  uint32_t *copy = &m->only[tensor];
  const sn_tensor *t = &m->whole->tensors[tensor];
  if (*copy != SN_NONE) return *copy;
  if (m->updated == 0) m->updated_own = sn__parts_updated(&m->parts, m->whole, m->mesh, &m->updated);
  *copy = sn__edit_tensor(&m->e, t->layer, t->port, t->role,
                          m->updated > 0 ? t->bytes / m->updated * m->updated_own : t->bytes);
  return *copy;
}

static void copy_update(maker *m, uint32_t step, uint32_t first) {
  const sn_step *s = &m->whole->steps[step];
  sn__edit_copy_bare(&m->e, step);
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    sn_access access = m->whole->accesses[s->first_access + i];
    sn_role role = m->whole->tensors[access.tensor].role;
    if (role == SN_SCRATCH)
      sn__edit_access(&m->e, temporary_of(m, access.tensor), first == SN_NONE ? SN_WRITE : SN_READ);
    else if (role == SN_PARAMETER_GRADIENT && m->made[access.tensor])
      sn__edit_access(&m->e, copy_of(m, 0, access.tensor), SN_READ);
  }
}

static void write_updates(maker *m) {
  const sn_route *w = m->whole;
  uint32_t first = SN_NONE;
  for (uint32_t s = w->first_update; s < w->n_steps; s++) {
    if (!is_mine(m, m->parts.of_layer[w->steps[s].layer])) continue;
    copy_update(m, s, first);
    if (first == SN_NONE) first = s;
  }
  for (uint32_t t = 0; t < w->n_tensors; t++) /* all live until the last update */
    if (m->made[t]) sn__edit_access(&m->e, copy_of(m, 0, t), SN_READ);
}

/* ---- the route ---- */

/* What is written from here on. */
static void note_turn(maker *m, sn__action_kind kind, uint16_t chunk) {
  if (m->n_turns == m->turns_room) {
    const uint32_t room = 2 * m->turns_room + 64;
    sn_turn *turns = realloc(m->turns, room * sizeof *turns);
    if (!turns) {
      sn_fail_memory(m->err);
      return;
    }
    m->turns = turns;
    m->turns_room = room;
  }
  m->turns[m->n_turns++] = (sn_turn){.step = m->e.route->n_steps, .chunk = chunk, .kind = (uint8_t)kind};
}

/* What it has is reduced behind the last one. */
static void write_entries(maker *m, const sn_pipeline *pipeline) {
  const sn_pipeline_entry *entries = sn_pipeline_list(pipeline, m->mesh->stage);
  for (uint32_t i = 0; i < pipeline->n_entries && m->err->code == SN_OK; i++) {
    note_turn(m, SN__COMPUTE, 0);
    write_entry(m, &entries[i], i > 0 ? &entries[i - 1] : NULL);
  }
  note_turn(m, SN__REDUCE, 0);
}

/* Of a stage that PyTorch's runtime plays. */
static void write_actions(maker *m, const sn_pipeline *pipeline) {
  sn__actions actions;
  if (sn__actions_of(pipeline, m->mesh->stage, &actions, m->err) != SN_OK) actions.n = 0;
  for (size_t i = 0; i < actions.n && m->err->code == SN_OK; i++) {
    note_turn(m, actions.all[i].kind, actions.all[i].entry.chunk);
    if (actions.all[i].kind == SN__ASK) ask(m, &actions.all[i].entry);
    if (actions.all[i].kind == SN__COMPUTE) write_entry(m, &actions.all[i].entry, NULL);
  }
  free(actions.all);
}

static sn_status write(maker *m) {
  uint32_t stages = sn_mesh_size(m->mesh, SN_MESH_PP), chunks = sn_mesh_chunks(m->mesh);
  sn_pipeline *pipeline = sn_pipeline_new(sn_pipeline_kind_of(m->mesh), stages, m->micros, chunks, m->err);
  if (!pipeline) return m->err->code;
  waits(m) ? write_entries(m, pipeline) : write_actions(m, pipeline);
  hold_losses(m);
  hold_weight_casts(m);
  let_go(m, &m->sent_gradients);
  let_go(m, &m->received);
  write_updates(m);
  sn_pipeline_free(pipeline);
  return m->err->code;
}

/* A stage has its own steps for all micro-batches and copies of what they touch, not of all there is. */
static sn_status number_own(maker *m) {
  const sn_route *w = m->whole;
  for (uint32_t s = 0; s < w->n_steps; s++) {
    m->run_numbers[s] = s < w->first_update && is_mine(m, m->parts.of_step[s]) ? m->n_runs++ : SN_NONE;
    if (m->run_numbers[s] == SN_NONE) continue;
    for (uint32_t i = 0; i < w->steps[s].n_accesses; i++) {
      uint32_t *number = &m->number[w->accesses[w->steps[s].first_access + i].tensor];
      if (*number == SN_NONE) *number = m->numbers++;
    }
  }
  size_t copies = ((size_t)m->micros * m->numbers + 1) * sizeof *m->copy;
  m->copy = malloc(copies);
  m->is_left = calloc((size_t)m->micros * m->numbers + 1, sizeof *m->is_left);
  m->runs = sn_arena_alloc(m->e.route->arena, (size_t)m->micros * m->n_runs, sizeof *m->runs);
  if (!m->copy || !m->is_left || !m->runs) return sn_fail_memory(m->err);
  memset(m->copy, 0xff, copies);
  return SN_OK;
}

static sn_status prepare_halves(maker *m) {
  size_t left = (size_t)m->micros * m->whole->n_accesses + 1;
  m->left = malloc(left * sizeof *m->left);
  if (!m->left) return sn_fail_memory(m->err);
  memset(m->left, 0xff, left * sizeof *m->left);
  return sn__halves_find(m->whole, &m->halves, m->err);
}

static sn_status prepare(maker *m) {
  const sn_route *w = m->whole;
  size_t tensors = ((size_t)w->n_tensors + 1) * sizeof(uint32_t);
  m->number = malloc(tensors);
  m->only = malloc(tensors);
  m->made = calloc((size_t)w->n_tensors + 1, sizeof *m->made);
  if (sn__edit_begin_bare(&m->e, w, m->err) != SN_OK) return m->err->code;
  m->e.mixed = true;
  m->run_numbers = sn_arena_alloc(m->e.route->arena, (size_t)w->n_steps + 1, sizeof *m->run_numbers);
  if (!m->number || !m->only || !m->made || !m->run_numbers) return sn_fail_memory(m->err);
  memset(m->number, 0xff, tensors);
  memset(m->only, 0xff, tensors);
  m->split = m->mesh->schedule == SN_SCHEDULE_ZB_H1;
  if (sn__parts_find(w, m->mesh, &m->parts, m->err) != SN_OK || number_own(m) != SN_OK) return m->err->code;
  return m->split ? prepare_halves(m) : SN_OK;
}

static void clear(maker *m) {
  sn__parts_clear(&m->parts);
  sn__halves_clear(&m->halves);
  void *const rooms[] = {m->number,       m->copy,    m->only,     m->made,
                         m->left,         m->is_left, m->sent.all, m->sent_gradients.all,
                         m->received.all, m->turns};
  for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) free(rooms[i]);
}

/* Gradients of parameters have other numbers now. */
static sn_status hand_over(maker *m, sn_route *route, sn_err *err) {
  sn_mesh *mesh = sn_arena_alloc(route->arena, 1, sizeof *mesh);
  sn_parameter_group *groups = sn_arena_alloc(route->arena, 1, sizeof *groups);
  uint32_t *gradients = sn_arena_alloc(route->arena, route->n_layers, sizeof *gradients);
  if (!mesh || !groups || !gradients || !sn_arena_adopt(route->arena, m->turns)) return sn_fail_memory(err);
  route->turns = m->turns;
  route->n_turns = m->n_turns;
  m->turns = NULL;
  for (uint32_t l = 0; l < route->n_layers; l++) {
    uint32_t first = m->whole->weight_gradient[l];
    bool known = first != SN_NONE && (!m->masters || m->number[first] != SN_NONE);
    gradients[l] = known ? *slot_of(m, m->micros - 1, first) : SN_NONE;
  }
  *mesh = *m->mesh;
  groups[0].name = "stage";
  route->mesh = mesh;
  route->groups = groups;
  route->n_groups = 1;
  route->weight_gradient = gradients;
  route->runs = m->runs;
  route->run_numbers = m->run_numbers;
  route->n_runs = m->n_runs;
  route->micros = m->micros;
  return SN_OK;
}

sn_route *sn__stage(const sn_route *whole, sn_iteration iteration, sn_err *err) {
  maker m = {.whole = whole,
             .mesh = &iteration.mesh,
             .micros = iteration.mesh.micros > 1 ? iteration.mesh.micros : 1,
             .masters = sn_iteration_keeps_masters(iteration),
             .err = err};
  sn_status status = prepare(&m);
  if (status == SN_OK) status = write(&m);
  if (status == SN_OK) status = hand_over(&m, m.e.route, err);
  sn_route *route = sn__edit_end(&m.e, status);
  clear(&m);
  return route;
}
