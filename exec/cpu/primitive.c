/* CPU kernels: making, running and freeing one oneDNN primitive; see exec/cpu/cpu.h. The scratchpad is the
 * caller's: a primitive that has one crashes without it. A run costs one pointer per argument besides the kernel. */
#include "exec/cpu/cpu.h"

#include <oneapi/dnnl/dnnl_debug.h>
#include <stdlib.h>
#include <string.h>

sn_status sn__dnnl_check(dnnl_status_t status, const char *what, sn_err *err) {
  if (status == dnnl_success) return SN_OK;
  if (status == dnnl_out_of_memory) return sn_fail_memory(err);
  return sn_fail(err, SN_BAD_DEVICE, "oneDNN could not %s: %s", what, dnnl_status2str(status));
}

sn_status sn__dnnl_tensor(dnnl_memory_desc_t *desc, int n_dims, const dnnl_dims_t dims, sn_err *err) {
  return sn__dnnl_check(dnnl_memory_desc_init_by_strides(desc, n_dims, dims, dnnl_f32, NULL), "describe a tensor", err);
}

sn_status sn__dnnl_image(dnnl_memory_desc_t *desc, sn_shape s, uint32_t planes, uint32_t block, sn_err *err) {
  const dnnl_dims_t image = {s.n, s.c, s.h, s.w}, volume = {s.n, s.c, planes, planes > 0 ? s.h / planes : 0, s.w};
  const dnnl_format_tag_t image_tag = block == 16  ? dnnl_nChw16c
                                      : block == 8 ? dnnl_nChw8c
                                                   : dnnl_nchw,
                          volume_tag = block == 16  ? dnnl_nCdhw16c
                                       : block == 8 ? dnnl_nCdhw8c
                                                    : dnnl_ncdhw;
  return sn__dnnl_check(planes > 0 ? dnnl_memory_desc_init_by_tag(desc, 5, volume, dnnl_f32, volume_tag)
                                   : dnnl_memory_desc_init_by_tag(desc, 4, image, dnnl_f32, image_tag),
                        "describe an image", err);
}

/* The memory object has no data yet; sn__primitive_run() gives it some. */
static sn_status add_arg(sn__cpu *k, const_dnnl_primitive_desc_t desc, int arg, dnnl_exec_arg_t *made, sn_err *err) {
  const dnnl_memory_desc_t *memory = dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, arg);
  made->arg = arg;
  return sn__dnnl_check(dnnl_memory_create(&made->memory, memory, k->engine, DNNL_MEMORY_NONE), "make a memory object",
                        err);
}

enum { LINE = 64 };

static uint64_t whole_lines(uint64_t bytes) {
  return (bytes + LINE - 1) / LINE * LINE;
}

static sn_status make_reorder(const sn__cpu *k, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                              dnnl_primitive_t *reorder, sn_err *err) {
  dnnl_primitive_desc_t desc = NULL;
  dnnl_status_t status = dnnl_reorder_primitive_desc_create(&desc, from, k->engine, to, k->engine, NULL);
  if (status == dnnl_success) status = dnnl_primitive_create(reorder, desc);
  dnnl_primitive_desc_destroy(desc);
  return sn__dnnl_check(status, "make a reorder", err);
}

static sn_status reorder(const sn__cpu *k, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to, void *source,
                         void *target, sn_err *err) {
  dnnl_primitive_t primitive = NULL;
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
  dnnl_status_t status = dnnl_memory_create(&args[0].memory, from, k->engine, source);
  if (status == dnnl_success) status = dnnl_memory_create(&args[1].memory, to, k->engine, target);
  sn__dnnl_check(status, "make a memory object", err);
  if (err->code == SN_OK && make_reorder(k, from, to, &primitive, err) == SN_OK) {
    status = dnnl_primitive_execute(primitive, k->stream, 2, args);
    if (status == dnnl_success) status = dnnl_stream_wait(k->stream);
    sn__dnnl_check(status, "reorder weights", err);
  }
  dnnl_primitive_destroy(primitive);
  dnnl_memory_destroy(args[0].memory);
  dnnl_memory_destroy(args[1].memory);
  return err->code;
}

sn_status sn__weights_turn(const sn__cpu *k, uint32_t layer, float *weights, bool back, sn_err *err) {
  const sn__cpu_layer *made = &k->layers[layer];
  const dnnl_memory_desc_t *from = back ? &made->lasting : &made->plain, *to = back ? &made->plain : &made->lasting;
  if (made->lasting.ndims == 0) return SN_OK;
  size_t bytes = dnnl_memory_desc_get_size(to);
  void *room = malloc(bytes);
  if (!room) return sn_fail_memory(err);
  if (reorder(k, from, to, weights, room, err) == SN_OK) memcpy(weights, room, bytes);
  free(room);
  return err->code;
}

static bool is_result(int arg) {
  return arg == DNNL_ARG_DST || arg == DNNL_ARG_DIFF_SRC || arg == DNNL_ARG_DIFF_WEIGHTS || arg == DNNL_ARG_DIFF_BIAS;
}

/* An image given to a product of matrices is wanted as the matrix of its rows. */
static sn_status add_turn(sn__cpu *k, const_dnnl_primitive_desc_t desc, int arg, const dnnl_memory_desc_t *given,
                          sn__primitive *p, sn__turn *turn, sn_err *err) {
  dnnl_memory_desc_t wanted = *dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, arg);
  if (!given || dnnl_memory_desc_equal(given, &wanted)) return SN_OK;
  if (wanted.ndims != given->ndims) {
    const dnnl_memory_desc_t flat = wanted;
    if (sn__dnnl_check(dnnl_memory_desc_reshape(&wanted, &flat, given->ndims, given->dims), "shape an image", err))
      return err->code;
    if (dnnl_memory_desc_equal(given, &wanted)) return SN_OK;
  }
  turn->result = is_result(arg);
  turn->at = p->scratch_bytes;
  p->scratch_bytes += whole_lines(dnnl_memory_desc_get_size(&wanted));
  dnnl_status_t status = dnnl_memory_create(&turn->given, given, k->engine, DNNL_MEMORY_NONE);
  if (status == dnnl_success) status = dnnl_memory_create(&turn->wanted, &wanted, k->engine, DNNL_MEMORY_NONE);
  if (sn__dnnl_check(status, "make a memory object", err)) return err->code;
  return turn->result ? make_reorder(k, &wanted, given, &turn->reorder, err)
                      : make_reorder(k, given, &wanted, &turn->reorder, err);
}

static sn_status add_args(sn__cpu *k, const int *args, const dnnl_memory_desc_t *const *given, int n_args,
                          sn__primitive *p, sn_err *err) {
  const_dnnl_primitive_desc_t desc;
  if (sn__dnnl_check(dnnl_primitive_get_primitive_desc(p->handle, &desc), "describe a primitive", err))
    return err->code;
  p->scratchpad_bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0));
  p->scratch_bytes = p->scratchpad_bytes;
  for (; p->n_args < n_args; p->n_args++) {
    int i = p->n_args;
    if (given && given[i]) p->scratch_bytes = whole_lines(p->scratch_bytes);
    if (add_arg(k, desc, args[i], &p->args[i], err) ||
        add_turn(k, desc, args[i], given ? given[i] : NULL, p, &p->turns[i], err))
      return err->code;
  }
  return p->scratchpad_bytes ? add_arg(k, desc, DNNL_ARG_SCRATCHPAD, &p->args[n_args], err) : SN_OK;
}

static sn_status make(sn__cpu *k, const void *descriptor, const_dnnl_primitive_desc_t hint, sn__primitive *p,
                      sn_err *err) {
  dnnl_primitive_attr_t attr = NULL;
  dnnl_primitive_desc_t desc = NULL;
  dnnl_status_t status = dnnl_primitive_attr_create(&attr);
  if (status == dnnl_success) status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  if (status == dnnl_success) status = dnnl_primitive_desc_create(&desc, descriptor, attr, k->engine, hint);
  if (status == dnnl_success) status = dnnl_primitive_create(&p->handle, desc);
  dnnl_primitive_desc_destroy(desc);
  dnnl_primitive_attr_destroy(attr);
  return sn__dnnl_check(status, "make a primitive", err);
}

sn_status sn__primitive_new(sn__cpu *k, const void *descriptor, const sn__primitive *forward, const int *args,
                            const dnnl_memory_desc_t *const *given, int n_args, sn__primitive *primitive, sn_err *err) {
  const_dnnl_primitive_desc_t hint = NULL;
  if (forward && sn__dnnl_check(dnnl_primitive_get_primitive_desc(forward->handle, &hint), "describe a primitive", err))
    return err->code;
  if (make(k, descriptor, hint, primitive, err)) return err->code;
  return add_args(k, args, given, n_args, primitive, err);
}

void sn__primitive_free(sn__primitive *primitive) {
  for (int i = 0; i < SN__MAX_ARGS; i++) {
    dnnl_memory_destroy(primitive->args[i].memory);
    dnnl_memory_destroy(primitive->turns[i].given);
    dnnl_memory_destroy(primitive->turns[i].wanted);
    dnnl_primitive_destroy(primitive->turns[i].reorder);
  }
  dnnl_primitive_destroy(primitive->handle);
}

/* Makes the copies that the kernel reads, or those of what it has written. */
static dnnl_status_t take_turns(const sn__cpu *k, const sn__primitive *p, bool results) {
  dnnl_status_t status = dnnl_success;
  for (int i = 0; i < p->n_args && status == dnnl_success; i++) {
    const sn__turn *turn = &p->turns[i];
    if (!turn->reorder || turn->result != results) continue;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, results ? turn->wanted : turn->given},
                                    {DNNL_ARG_TO, results ? turn->given : turn->wanted}};
    status = dnnl_primitive_execute(turn->reorder, k->stream, 2, args);
  }
  return status;
}

/* Points the arguments, and what they are copied from or to, at their memory. */
static dnnl_status_t point(const sn__primitive *p, float *const *tensors, const sn_call *call) {
  dnnl_status_t status = dnnl_success;
  for (int i = 0; i < p->n_args && status == dnnl_success; i++) {
    const sn__turn *turn = &p->turns[i];
    void *at = turn->reorder ? (unsigned char *)call->workspace + turn->at : (void *)tensors[i];
    status = dnnl_memory_set_data_handle(p->args[i].memory, at);
    if (!turn->reorder) continue;
    if (status == dnnl_success) status = dnnl_memory_set_data_handle(turn->wanted, at);
    if (status == dnnl_success) status = dnnl_memory_set_data_handle(turn->given, tensors[i]);
  }
  if (p->scratchpad_bytes && status == dnnl_success)
    status = dnnl_memory_set_data_handle(p->args[p->n_args].memory, call->workspace);
  return status;
}

sn_status sn__primitive_run(const sn__cpu *k, const sn__primitive *p, float *const *tensors, const sn_call *call,
                            sn_err *err) {
  dnnl_status_t status = point(p, tensors, call);
  if (status == dnnl_success) status = take_turns(k, p, false);
  if (status == dnnl_success)
    status = dnnl_primitive_execute(p->handle, k->stream, p->n_args + (p->scratchpad_bytes > 0), p->args);
  if (status == dnnl_success) status = take_turns(k, p, true);
  if (status == dnnl_success) status = dnnl_stream_wait(k->stream);
  return sn__dnnl_check(status, "run a primitive", err);
}
