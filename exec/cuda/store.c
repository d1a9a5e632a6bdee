/* What lies outside the pool for the whole training: on the device one block with parameters, gradients, momentum,
 * statistics, masks, one-hot labels and the input batch, with what alignment adds (at most 512 bytes a layer and kind);
 * on the host, pinned, what is drawn there and the logits. Everything here runs between iterations. */
#include "exec/cuda/cuda.h"

#include "exec/kernel/kernel_internal.h"
#include "sim/graph/route.h"

#include <math.h>
#include <string.h>

sn_status sn__store_open(sn__cuda *m, sn_persistent *persistent, sn_err *err) {
  const sn_net *net = m->route->net;
  uint64_t states = sn_optimizer_states(m->options.hyper.optimizer); /* 0 or 1: machine.c refuses others */
  uint64_t floats = (2 + states) * m->n_parameters + m->n_statistics + m->n_given + net->data_bytes / sizeof(float);
  void *host = NULL;
  if (sn__gpu_malloc(&m->resident, floats * sizeof(float), "what is trained (parameters and the batch)", err) !=
          SN_OK ||
      CUDA(cudaMemset(m->resident, 0, floats * sizeof(float))) != SN_OK ||
      sn__gpu_pin(&host, (m->n_given + m->n_logits) * sizeof(float), "masks and labels", err) != SN_OK)
    return err->code;
  m->parameters = m->resident;
  m->gradients = m->parameters + m->n_parameters;
  m->momentum = states > 0 ? m->gradients + m->n_parameters : NULL;
  m->statistics = m->gradients + (1 + states) * m->n_parameters;
  m->given = m->statistics + m->n_statistics;
  m->data = m->given + m->n_given;
  m->host_given = host;
  persistent->parameters = persistent->parameter_gradients = m->n_parameters * sizeof(float);
  persistent->optimizer_state = states * persistent->parameters;
  persistent->auxiliary = (m->n_statistics + m->n_given) * sizeof(float);
  persistent->input_batch = net->data_bytes;
  m->host_logits = m->host_given + m->n_given;
  return SN_OK;
}

void sn__store_close(sn__cuda *m) {
  if (m->resident) cudaFree(m->resident);
  if (m->host_given) cudaFreeHost(m->host_given);
}

/* ---- state ---- */

/* `count` floats between host and device. */
static sn_status move(float *host, float *device, uint64_t count, bool up, sn_err *err) {
  size_t bytes = count * sizeof(float);
  if (count == 0) return SN_OK;
  if (up) return CUDA(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
  return CUDA(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
}

/* What is 0 on both sides need not cross the link: two thirds of a state that nobody has trained. */
static sn_status move_layer(const sn__cuda *m, uint32_t index, bool up, sn_err *err) {
  const sn__layer *l = &m->layers[index];
  const sn_state *s = m->state;
  uint64_t at = s->parameter_offset[index], channels = m->route->layers[index].out.c;
  float *const host[] = {s->parameters, s->gradients, s->states[0]};
  float *const device[] = {m->parameters, m->gradients, m->momentum};
  int moved = up && s->fresh ? 1 : m->momentum ? 3 : 2;
  for (int i = 0; i < moved; i++)
    if (move(host[i] + at, device[i] + l->at, l->head, up, err) != SN_OK ||
        move(host[i] + at + l->head, device[i] + l->tail_at, l->tail, up, err) != SN_OK)
      return err->code;
  for (uint64_t i = 0; l->statistics_step > 0 && i < 4; i++)
    if (move(s->statistics + s->statistics_offset[index] + i * channels,
             m->statistics + l->statistics_at + i * l->statistics_step, channels, up, err) != SN_OK)
      return err->code;
  return SN_OK;
}

static sn_status move_state(const sn__cuda *m, bool up, sn_err *err) {
  const sn_net *net = m->route->net;
  for (uint32_t i = 1; i < net->n_layers; i++)
    if (move_layer(m, i, up, err) != SN_OK) return err->code;
  return SN_OK;
}

sn_status sn__store_upload(sn__cuda *m, sn_err *err) {
  if (m->state->fresh &&
      CUDA(cudaMemset(m->gradients, 0, (m->momentum ? 2 : 1) * m->n_parameters * sizeof(float))) != SN_OK)
    return err->code;
  return move_state(m, true, err);
}

sn_status sn__store_download(sn__cuda *m, sn_err *err) {
  m->state->fresh = false;
  return move_state(m, false, err);
}

/* ---- the batch ---- */

static sn_status check_labels(const sn__cuda *m, const sn_layer *layer, sn_err *err) {
  for (uint32_t n = 0; n < layer->out.n; n++)
    if (m->batch->labels[n] < 0 || (uint32_t)m->batch->labels[n] >= layer->out.c)
      return sn_fail(err, SN_BAD_INPUT, "label %d of image %u is none of the classes of layer \"%.80s\", 0 to %u",
                     m->batch->labels[n], n, layer->name, layer->out.c - 1);
  return SN_OK;
}

sn_status sn__store_feed(sn__cuda *m, const sn_batch *batch, sn_err *err) {
  const sn_net *net = m->route->net;
  m->batch = batch;
  for (uint32_t i = 1; i < net->n_layers; i++)
    if (net->layers[i].op == SN_SOFTMAX && check_labels(m, &net->layers[i], err) != SN_OK) return err->code;
  if (CUDA(cudaMemcpy(m->data, batch->data, net->data_bytes, cudaMemcpyHostToDevice)) != SN_OK) return err->code;
  return CUDA(cudaDeviceSynchronize()); /* lanes do not wait for these copies, nor for those of a new state */
}

static void draw_mask(const sn__cuda *m, uint32_t index, uint64_t iteration) {
  const sn_net *net = m->route->net;
  sn_call call = {.net = net, .layer = index, .iteration = iteration, .hyper = &m->options.hyper};
  sn__mask mask = sn__mask_of(&call);
  uint64_t count = sn__count(net->layers[index].out);
  float *to = m->host_given + m->layers[index].given_at, kept = (float)(1 / (1 - net->layers[index].attr->ratio));
  for (uint64_t i = 0; i < count; i++) to[i] = sn__mask_keeps(mask, i) ? kept : 0;
}

static void draw_labels(const sn__cuda *m, uint32_t index) {
  sn_shape s = m->route->layers[index].out;
  float *to = m->host_given + m->layers[index].given_at;
  memset(to, 0, sn__count(s) * sizeof *to);
  for (uint32_t n = 0; n < s.n; n++) to[(uint64_t)n * s.c + (uint32_t)m->batch->labels[n]] = 1;
}

sn_status sn__store_draw(sn__cuda *m, uint64_t iteration, sn_err *err) {
  const sn_net *net = m->route->net;
  for (uint32_t i = 1; i < net->n_layers; i++) {
    if (net->layers[i].op == SN_DROPOUT) draw_mask(m, i, iteration);
    if (net->layers[i].op == SN_SOFTMAX) draw_labels(m, i);
  }
  if (m->n_given == 0) return SN_OK;
  return CUDA(cudaMemcpyAsync(m->given, m->host_given, m->n_given * sizeof(float), cudaMemcpyHostToDevice,
                              m->gpu.streams[SN_LANE_COMPUTE]));
}

/* ---- the outcome ---- */

/* Cross-entropy of one image from the inputs of SOFTMAX, and whether its label is the most likely class. */
static double judge_image(const float *x, uint32_t classes, uint32_t label, uint32_t *correct) {
  uint32_t top = 0;
  double sum = 0;
  for (uint32_t c = 1; c < classes; c++)
    if (x[c] > x[top]) top = c;
  for (uint32_t c = 0; c < classes; c++) sum += exp((double)x[c] - (double)x[top]);
  *correct += top == label;
  return log(sum) + (double)x[top] - (double)x[label];
}

void sn__store_judge(sn__cuda *m) {
  const sn_net *net = m->route->net;
  m->outcome = (sn_outcome){0};
  for (uint32_t r = 0; r < m->route->first_backward; r++) {
    uint32_t index = m->route->steps[r].layer;
    sn_shape s = net->layers[index].out;
    if (net->layers[index].op != SN_SOFTMAX) continue;
    const float *x = m->host_logits + m->layers[index].logits_at;
    double loss = 0;
    m->outcome.correct = 0; /* of the last one */
    for (uint32_t n = 0; n < s.n; n++)
      loss += judge_image(x + (uint64_t)n * s.c, s.c, (uint32_t)m->batch->labels[n], &m->outcome.correct);
    m->outcome.loss += loss / s.n;
  }
}
