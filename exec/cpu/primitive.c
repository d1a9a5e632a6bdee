/* CPU kernels: making, running and freeing one oneDNN primitive; see exec/cpu/cpu.h. The scratchpad is the
 * caller's: a primitive that has one crashes without it. A run costs one pointer per argument besides the kernel. */
#include "exec/cpu/cpu.h"

#include <oneapi/dnnl/dnnl_debug.h>

sn_status sn__dnnl_check(dnnl_status_t status, const char *what, sn_err *err) {
  if (status == dnnl_success) return SN_OK;
  if (status == dnnl_out_of_memory) return sn_fail_memory(err);
  return sn_fail(err, SN_BAD_DEVICE, "oneDNN could not %s: %s", what, dnnl_status2str(status));
}

sn_status sn__dnnl_tensor(dnnl_memory_desc_t *desc, int n_dims, const dnnl_dims_t dims, sn_err *err) {
  return sn__dnnl_check(dnnl_memory_desc_init_by_strides(desc, n_dims, dims, dnnl_f32, NULL), "describe a tensor", err);
}

sn_status sn__dnnl_nchw(dnnl_memory_desc_t *desc, sn_shape shape, sn_err *err) {
  return sn__dnnl_tensor(desc, 4, (const dnnl_dims_t){shape.n, shape.c, shape.h, shape.w}, err);
}

/* The memory object has no data yet; sn__primitive_run() gives it some. */
static sn_status add_arg(sn__cpu *k, const_dnnl_primitive_desc_t desc, int arg, dnnl_exec_arg_t *made, sn_err *err) {
  const dnnl_memory_desc_t *memory = dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, arg);
  made->arg = arg;
  return sn__dnnl_check(dnnl_memory_create(&made->memory, memory, k->engine, DNNL_MEMORY_NONE), "make a memory object",
                        err);
}

static sn_status add_args(sn__cpu *k, const int *args, int n_args, sn__primitive *p, sn_err *err) {
  const_dnnl_primitive_desc_t desc;
  if (sn__dnnl_check(dnnl_primitive_get_primitive_desc(p->handle, &desc), "describe a primitive", err))
    return err->code;
  for (; p->n_args < n_args; p->n_args++)
    if (add_arg(k, desc, args[p->n_args], &p->args[p->n_args], err)) return err->code;
  p->scratch_bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0));
  return p->scratch_bytes ? add_arg(k, desc, DNNL_ARG_SCRATCHPAD, &p->args[n_args], err) : SN_OK;
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
                            int n_args, sn__primitive *primitive, sn_err *err) {
  const_dnnl_primitive_desc_t hint = NULL;
  if (forward && sn__dnnl_check(dnnl_primitive_get_primitive_desc(forward->handle, &hint), "describe a primitive", err))
    return err->code;
  if (make(k, descriptor, hint, primitive, err)) return err->code;
  return add_args(k, args, n_args, primitive, err);
}

void sn__primitive_free(sn__primitive *primitive) {
  for (int i = 0; i < SN__MAX_ARGS; i++) dnnl_memory_destroy(primitive->args[i].memory);
  dnnl_primitive_destroy(primitive->handle);
}

sn_status sn__primitive_run(const sn__cpu *k, const sn__primitive *p, float *const *tensors, const sn_call *call,
                            sn_err *err) {
  dnnl_status_t status = dnnl_success;
  for (int i = 0; i < p->n_args && status == dnnl_success; i++)
    status = dnnl_memory_set_data_handle(p->args[i].memory, tensors[i]);
  int n_args = p->n_args;
  if (p->scratch_bytes && status == dnnl_success)
    status = dnnl_memory_set_data_handle(p->args[n_args++].memory, call->workspace);
  if (status == dnnl_success) status = dnnl_primitive_execute(p->handle, k->stream, n_args, p->args);
  if (status == dnnl_success) status = dnnl_stream_wait(k->stream);
  return sn__dnnl_check(status, "run a primitive", err);
}
