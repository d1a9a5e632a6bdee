/* Distributed data parallel: one rank's route (parallel.md, section 3; PyTorch 2.15, torch/nn/parallel/distributed.py
 * and torch/csrc/distributed/c10d/reducer.cpp).
 *
 *   construction   buckets as large as all gradients, there all the time
 *   backward       as a gradient is made: copied into its bucket; with gradient_as_bucket_view it then goes
 *                  as a bucket's last one is: all-reduce
 *   its end        without the view: buckets are copied back into the gradients, which updates read; with it updates
 *                  read the buckets
 *
 * Gradients in four bytes beside those of two (sn_iteration_keeps_masters()) are the buckets themselves, as Megatron-LM's
 * main_grad are views of the buffer that it reduces (core/distributed/param_and_grad_buffer.py): every micro-batch's are
 * added there, and nothing is copied back.
 *
 * Parameters are in buckets in reverse order, as backward makes their gradients; the first closes at 1 MiB, so that it
 * starts early. Where gradients of several micro-batches are added, all but the last run under no_sync(): they lie
 * beside the graph, in the buckets with the view. */
#include "sim/parallel/fsdp.h"

#include "base/arena.h"
#include "base/checked.h"
#include "sim/graph/precision.h"
#include "sim/parallel/edit.h"
#include "sim/parallel/groups.h"

#include <stdlib.h>

enum { FIRST_BUCKET = 1 << 20 };

typedef struct bucket {
  uint32_t layer, tensor; /* of its first parameter, in reverse order */
  uint64_t bytes;
  uint32_t ready; /* step of the whole: its last gradient is made; SN_NONE: none is */
} bucket;

typedef struct maker {
  sn__edit e;
  sn__groups g;
  const sn_route *whole;
  const sn_mesh *mesh;
  uint32_t width;
  bool masters;        /* sn_iteration_keeps_masters() */
  bool view;           /* updates read the buckets */
  uint32_t *bucket_of; /* per parameter; SN_NONE: not trained */
  uint32_t *made;      /* per parameter: step of the whole in which its gradient is whole; SN_NONE */
  bool *makes;         /* per step of the whole: some gradient is whole behind it */
  bucket *buckets;
  uint32_t n_buckets;
} maker;

static uint64_t bytes_of(const maker *m, uint32_t parameter) {
  const sn_cut *cut = &m->g.parameters[parameter].cut;
  return cut->rows * cut->each * m->width;
}

static void fill_buckets(maker *m) {
  uint64_t room = 0, limit = FIRST_BUCKET;
  for (uint32_t p = m->g.n_parameters; p-- > 0;) {
    m->bucket_of[p] = SN_NONE;
    if (m->made[p] == SN_NONE) continue;
    if (m->n_buckets == 0 || room >= limit) {
      if (m->n_buckets == 1) limit = m->mesh->bucket_bytes;
      m->buckets[m->n_buckets++] = (bucket){.layer = m->g.parameters[p].layer};
      room = 0;
    }
    bucket *b = &m->buckets[m->n_buckets - 1];
    m->bucket_of[p] = m->n_buckets - 1;
    b->bytes += bytes_of(m, p);
    room += bytes_of(m, p);
    if (m->made[p] > b->ready) b->ready = m->made[p];
  }
}

static uint32_t transfer(maker *m, uint32_t group, uint64_t bytes) {
  return sn__edit_transfer(&m->e, (sn_transfer){.kind = SN_ALL_REDUCE,
                                                .axis = SN_MESH_DP,
                                                .group = group,
                                                .ranks = sn_mesh_size(m->mesh, SN_MESH_DP),
                                                .bytes = bytes});
}

/* They are there before the first step. */
static void make_buckets(maker *m) {
  if (m->n_buckets > 0) sn__edit_step(&m->e, m->buckets[0].layer, SN_FORWARD, SN_PACK, transfer(m, 0, 0));
  for (uint32_t b = 0; b < m->n_buckets; b++) {
    m->buckets[b].tensor =
        sn__edit_tensor(&m->e, m->buckets[b].layer, b, m->masters ? SN_SUMMED : SN_BUCKET, m->buckets[b].bytes);
    sn__edit_access(&m->e, m->buckets[b].tensor, SN_WRITE);
  }
}

/* Gradients that the latest step has made. What adding to those in four bytes takes is backward's own. */
static void copy_in(maker *m, uint32_t step) {
  for (uint32_t p = 0; p < m->g.n_parameters; p++) {
    if (m->made[p] != step) continue;
    const sn__parameter *parameter = &m->g.parameters[p];
    uint64_t moved = m->masters ? 0 : bytes_of(m, p);
    sn__edit_step(&m->e, parameter->layer, SN_BACKWARD, SN_PACK, transfer(m, m->bucket_of[p], moved));
    sn__edit_access(&m->e, parameter->gradient, SN_READ);
    sn__edit_access(&m->e, m->buckets[m->bucket_of[p]].tensor, SN_MODIFY);
  }
}

static void reduce(maker *m, uint32_t step) {
  for (uint32_t b = 0; b < m->n_buckets; b++) {
    if (m->buckets[b].ready != step) continue;
    sn__edit_step(&m->e, m->buckets[b].layer, SN_BACKWARD, SN_TRANSFER, transfer(m, b, m->buckets[b].bytes));
    sn__edit_access(&m->e, m->buckets[b].tensor, SN_MODIFY);
  }
}

static void copy_back(maker *m, bool accumulates) {
  for (uint32_t p = 0; p < m->g.n_parameters && !m->view; p++) {
    if (m->made[p] == SN_NONE) continue;
    const sn__parameter *parameter = &m->g.parameters[p];
    sn__edit_step(&m->e, parameter->layer, SN_BACKWARD, SN_UNPACK, transfer(m, m->bucket_of[p], bytes_of(m, p)));
    sn__edit_access(&m->e, m->buckets[m->bucket_of[p]].tensor, SN_READ);
    if (!accumulates) sn__edit_access(&m->e, parameter->gradient, SN_MODIFY);
  }
}

/* With the view the buckets are the gradients. */
static void copy_update(maker *m, uint32_t step) {
  const sn_step *s = &m->whole->steps[step];
  sn__edit_copy_bare(&m->e, step);
  for (uint32_t i = 0; i < s->n_accesses; i++) {
    sn_access access = m->whole->accesses[s->first_access + i];
    bool gradient = m->g.gradient_of ? m->g.gradient_of[access.tensor] != SN_NONE
                                     : m->whole->tensors[access.tensor].role == SN_PARAMETER_GRADIENT;
    if (!gradient || !m->view) sn__edit_take(&m->e, access);
  }
  for (uint32_t b = 0; b < m->n_buckets; b++) sn__edit_access(&m->e, m->buckets[b].tensor, SN_READ);
}

static void write(maker *m, bool accumulates) {
  const sn_route *w = m->whole;
  make_buckets(m);
  for (uint32_t s = 0; s < w->n_steps && m->e.err->code == SN_OK; s++) {
    bool backward = w->steps[s].pass == SN_BACKWARD;
    if (s >= w->first_update)
      copy_update(m, s);
    else
      sn__edit_copy(&m->e, s);
    if (backward && m->makes[s]) copy_in(m, s);
    if (backward && m->makes[s]) reduce(m, s);
    if (s + 1 == w->first_update) copy_back(m, accumulates);
  }
}

static sn_status prepare(maker *m, sn_iteration iteration, sn_err *err) {
  if (sn__groups_find(m->whole, iteration, &m->g, err) != SN_OK) return err->code;
  size_t parameters = (size_t)m->g.n_parameters + 1;
  m->masters = sn_iteration_keeps_masters(iteration);
  m->view = m->mesh->view || m->masters;
  m->width = m->whole->net->recorded ? 1 /* cut in bytes */
             : m->masters            ? sn_iteration_kept_bytes(iteration)
                                     : sn_precision_parameter_bytes(iteration.precision);
  m->bucket_of = calloc(parameters, sizeof *m->bucket_of);
  m->made = calloc(parameters, sizeof *m->made);
  m->buckets = calloc(parameters, sizeof *m->buckets);
  m->makes = calloc((size_t)m->whole->n_steps + 1, sizeof *m->makes);
  if (!m->bucket_of || !m->made || !m->buckets || !m->makes) return sn_fail_memory(err);
  if (sn__edit_begin(&m->e, m->whole, err) != SN_OK) return err->code;
  if (sn__groups_find_made(&m->g, m->whole, m->made, err) != SN_OK) return err->code;
  for (uint32_t p = 0; p < m->g.n_parameters; p++)
    if (m->made[p] != SN_NONE) m->makes[m->made[p]] = true;
  fill_buckets(m);
  return SN_OK;
}

sn_route *sn__ddp(const sn_route *whole, sn_iteration iteration, sn_err *err) {
  maker m = {.whole = whole, .mesh = &iteration.mesh};
  sn_status status = prepare(&m, iteration, err);
  if (status == SN_OK) write(&m, sn_iteration_accumulates(iteration));
  if (status == SN_OK) status = sn__groups_hand_over(&m.g, m.mesh, m.e.route, err);
  sn_route *route = sn__edit_end(&m.e, status);
  free(m.bucket_of);
  free(m.made);
  free(m.buckets);
  free(m.makes);
  sn__groups_clear(&m.g);
  return route;
}
