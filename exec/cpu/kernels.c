/* CPU kernels: making, choosing and running them, and the module's table; see exec/machine/cpu_kernels.h.
 *
 *   conv.c        CONV, DECONV                     attention.c   ATTENTION, ROTARY
 *   row_norm.c    LAYER_NORM, RMS_NORM             tokens.c      EMBEDDING, POSITION, TOKEN, TAKE
 *   product.c     MUL, SCALE                       matrix.c      MATMUL, PROBABILITIES
 *   resize.c      RESIZE, PAD                      arrange.c     RESHAPE, TRANSPOSE, SLICE
 *   fc.c, pool.c, act.c, prelu.c, batch_norm.c, group_norm.c, lrn.c, softmax.c, update.c: what they are called
 *   loops.c       all other operators
 *
 * layout.c says how values lie, primitive.c wraps oneDNN. */
#include "exec/cpu/cpu.h"

#include "base/build_id.h"
#include "base/checked.h"
#include "exec/machine/machine.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

/* Operators on oneDNN. */
static const struct {
  sn_status (*make)(sn__cpu *k, uint32_t layer, sn_err *err);
  sn_status (*forward)(sn__cpu *k, const sn_call *call, sn_err *err);
  sn_status (*backward)(sn__cpu *k, const sn_call *call, sn_err *err);
} primitives[SN_OP_COUNT] = {
    [SN_CONV] = {sn__cpu_conv_make, sn__cpu_conv_forward, sn__cpu_conv_backward},
    [SN_DECONV] = {sn__cpu_deconv_make, sn__cpu_deconv_forward, sn__cpu_deconv_backward},
    [SN_FC] = {sn__cpu_fc_make, sn__cpu_fc_forward, sn__cpu_fc_backward},
    [SN_POOL] = {sn__cpu_pool_make, sn__cpu_pool_forward, sn__cpu_pool_backward},
    [SN_ACT] = {sn__cpu_act_make, sn__cpu_act_forward, sn__cpu_act_backward},
};

/* All others, which cannot fail; `block`: how their values lie, all alike. */
static const struct {
  void (*forward)(const sn_call *call, uint32_t block);
  void (*backward)(const sn_call *call, uint32_t block);
} loops[SN_OP_COUNT] = {
    [SN_BN] = {sn__cpu_bn_forward, sn__cpu_bn_backward},
    [SN_LRN] = {sn__cpu_lrn_forward, sn__cpu_lrn_backward},
    [SN_DROPOUT] = {sn__cpu_dropout_forward, sn__cpu_dropout_backward},
    [SN_SOFTMAX] = {sn__cpu_softmax_forward, sn__cpu_softmax_backward},
    [SN_JOIN] = {sn__cpu_join_forward, sn__cpu_join_backward},
    [SN_FORK] = {sn__cpu_fork_forward, sn__cpu_fork_backward},
    [SN_CONCAT] = {sn__cpu_concat_forward, sn__cpu_concat_backward},
    [SN_MUL] = {sn__cpu_mul_forward, sn__cpu_mul_backward},
    [SN_SCALE] = {sn__cpu_scale_forward, sn__cpu_scale_backward},
    [SN_EMBEDDING] = {sn__cpu_embedding_forward, sn__cpu_embedding_backward},
    [SN_POSITION] = {sn__cpu_position_forward, sn__cpu_position_backward},
    [SN_TOKEN] = {sn__cpu_token_forward, sn__cpu_token_backward},
    [SN_TAKE] = {sn__cpu_take_forward, sn__cpu_take_backward},
    [SN_ROTARY] = {sn__cpu_rotary_forward, sn__cpu_rotary_backward},
    [SN_ATTENTION] = {sn__cpu_attention_forward, sn__cpu_attention_backward},
    [SN_RESHAPE] = {sn__cpu_arrange_forward, sn__cpu_arrange_backward},
    [SN_TRANSPOSE] = {sn__cpu_arrange_forward, sn__cpu_arrange_backward},
    [SN_SLICE] = {sn__cpu_arrange_forward, sn__cpu_arrange_backward},
    [SN_PAD] = {sn__cpu_pad_forward, sn__cpu_pad_backward},
    [SN_RESIZE] = {sn__cpu_resize_forward, sn__cpu_resize_backward},
    [SN_MATMUL] = {sn__cpu_matmul_forward, sn__cpu_matmul_backward},
    [SN_PROBABILITIES] = {sn__cpu_probabilities_forward, sn__cpu_probabilities_backward},
    [SN_GROUP_NORM] = {sn__cpu_group_norm_forward, sn__cpu_group_norm_backward},
    [SN_LAYER_NORM] = {sn__cpu_row_norm_forward, sn__cpu_row_norm_backward},
    [SN_RMS_NORM] = {sn__cpu_row_norm_forward, sn__cpu_row_norm_backward},
};

static const char *isa_name(dnnl_cpu_isa_t isa) {
  static const struct {
    dnnl_cpu_isa_t isa;
    const char *name;
  } names[] = {
      {dnnl_cpu_isa_sse41, "sse41"},
      {dnnl_cpu_isa_avx, "avx"},
      {dnnl_cpu_isa_avx2, "avx2"},
      {dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
      {dnnl_cpu_isa_avx512_core, "avx512_core"},
      {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
      {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
      {dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (names[i].isa == isa) return names[i].name;
  return "other instructions";
}

static void describe(sn__cpu *k) {
  const dnnl_version_t *v = dnnl_version();
  snprintf(k->version, sizeof k->version, "oneDNN %d.%d.%d, %s", v->major, v->minor, v->patch,
           isa_name(dnnl_get_effective_cpu_isa()));
}

static uint64_t largest_plane(const sn_net *net) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < net->n_layers; i++)
    if (net->layers[i].op == SN_POOL && net->layers[i].attr->pool == SN_POOL_MAX)
      largest = sn_max(largest, sn__plane(net->layers[i].out));
  return largest;
}

/* How oneDNN splits their work is fixed here. */
static sn_status prepare(sn__cpu *k, uint32_t index, sn_err *err) {
  const sn_layer *layer = &k->net->layers[index];
  if (k->layers[index].made || !primitives[layer->op].make) return SN_OK;
  omp_set_num_threads(k->threads);
  k->layers[index].made = true;
  if (primitives[layer->op].make(k, index, err) == SN_OK) return SN_OK;
  sn_err_prefix(err, "layer \"%s\"", layer->name);
  return err->code;
}

/* What a run needs, beside primitives. */
static sn_status make_room(sn__cpu *k, sn_err *err) {
  k->positions = calloc(largest_plane(k->net) * k->block + 1, sizeof *k->positions);
  if (!k->positions) return sn_fail_memory(err);
  return sn__dnnl_check(dnnl_stream_create(&k->stream, k->engine, dnnl_stream_default_flags), "make a stream", err);
}

static sn_status make_parts(sn__cpu *k, sn_err *err) {
  k->layers = calloc(k->net->n_layers, sizeof *k->layers);
  if (!k->layers) return sn_fail_memory(err);
  if (sn__dnnl_check(dnnl_engine_create(&k->engine, dnnl_cpu, 0), "start", err) || sn__layouts_choose(k, err) ||
      make_room(k, err))
    return err->code;
  describe(k);
  return SN_OK;
}

static void free_layers(sn__cpu *k) {
  for (uint32_t i = 0; k->layers && i < k->net->n_layers; i++) {
    sn__primitive_free(&k->layers[i].forward);
    sn__primitive_free(&k->layers[i].backward);
    sn__primitive_free(&k->layers[i].weights);
  }
  free(k->layers);
  free(k->layouts);
  dnnl_engine_destroy(k->engine);
}

static void free_kernels(sn__cpu *k) {
  if (!k) return;
  dnnl_stream_destroy(k->stream);
  if (!k->shares) free_layers(k);
  free(k->positions);
  free(k);
}

/* Without primitives; threads 0: as many as there are processors. */
static sn__cpu *make_bare(const sn_net *net, unsigned threads, bool lasting, sn_err *err) {
  if (threads > SN_MACHINE_THREADS) {
    sn_fail(err, SN_BAD_USAGE, "%u threads are more than %d; give fewer, or none for all processors", threads,
            SN_MACHINE_THREADS);
    return NULL;
  }
  sn__cpu *k = calloc(1, sizeof *k);
  if (!k) {
    sn_fail_memory(err);
    return NULL;
  }
  k->net = net;
  k->lasting = lasting;
  k->threads = threads ? (int)threads : omp_get_num_procs();
  if (make_parts(k, err) == SN_OK) return k;
  free_kernels(k);
  return NULL;
}

static sn__cpu *share(const sn__cpu *k, sn_err *err) {
  sn__cpu *other = malloc(sizeof *other);
  if (!other) {
    sn_fail_memory(err);
    return NULL;
  }
  *other = *k;
  other->shares = true;
  other->stream = NULL;
  other->positions = NULL;
  if (make_room(other, err) == SN_OK) return other;
  free_kernels(other);
  return NULL;
}

static uint64_t scratch_of(const sn__cpu *k, uint32_t layer, sn_pass pass, sn_step_part part) {
  const sn__cpu_layer *made = &k->layers[layer];
  if (pass == SN_UPDATE) return 0;
  if (k->net->layers[layer].op == SN_LRN)
    return sn__cpu_lrn_scratch(&k->net->layers[layer], pass == SN_BACKWARD, k->threads);
  if (k->net->layers[layer].op == SN_ATTENTION) return sn__cpu_attention_scratch(&k->net->layers[layer], k->threads);
  if (pass == SN_FORWARD) return made->forward.scratch_bytes;
  if (part == SN_STEP_FILTER) return made->weights.scratch_bytes;
  if (part == SN_STEP_DATA) return made->backward.scratch_bytes;
  return sn_max(made->backward.scratch_bytes, made->weights.scratch_bytes);
}

static sn_status check_workspace(const sn__cpu *k, const sn_call *call, sn_err *err) {
  uint64_t needed = scratch_of(k, call->layer, call->pass, call->part);
  if (needed == 0 || (call->workspace && call->workspace_bytes >= needed)) return SN_OK;
  return sn_fail(err, SN_BUG, "layer \"%s\" %s needs %" PRIu64 " bytes of workspace and was given %" PRIu64,
                 sn__call_layer(call)->name, sn_pass_name(call->pass), needed,
                 call->workspace ? call->workspace_bytes : 0);
}

static sn_status check_labels(const sn_call *call, sn_err *err) {
  sn_shape s = sn__call_layer(call)->out;
  const uint64_t labels = sn__has_targets(sn__call_layer(call)) ? 0 : s.n * sn__plane(s);
  for (uint64_t i = 0; i < labels; i++)
    if (call->labels[i] < 0 || (uint32_t)call->labels[i] >= s.c)
      return sn_fail(err, SN_BAD_INPUT,
                     "label %" PRId32 " of image %" PRIu64 " is not one of the %" PRIu32
                     " classes of layer \"%s\", which are 0 to %" PRIu32,
                     call->labels[i], i / sn__plane(s), s.c, sn__call_layer(call)->name, s.c - 1);
  return SN_OK;
}

static sn_status check_tokens(const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  const int64_t *tokens = (const int64_t *)(const void *)call->x[0];
  for (uint64_t i = 0; i < layer->out.n * sn__plane(layer->out); i++)
    if (tokens[i] < 0 || (uint64_t)tokens[i] >= layer->attr->rows)
      return sn_fail(err, SN_BAD_INPUT, "token %" PRId64 " is not one of the %" PRIu32 " of layer \"%s\"", tokens[i],
                     layer->attr->rows, layer->name);
  return SN_OK;
}

static sn_status run(sn__cpu *k, const sn_call *call, sn_err *err) {
  const sn_layer *layer = sn__call_layer(call);
  bool forward = call->pass == SN_FORWARD;
  sn_status status = check_workspace(k, call, err);
  if (status == SN_OK && forward && layer->op == SN_SOFTMAX) status = check_labels(call, err);
  if (status == SN_OK && forward && layer->op == SN_EMBEDDING) status = check_tokens(call, err);
  if (status != SN_OK) return status;
  omp_set_num_threads(k->threads);
  if (call->pass == SN_UPDATE)
    sn__cpu_update(call);
  else if (primitives[layer->op].make)
    status = (forward ? primitives[layer->op].forward : primitives[layer->op].backward)(k, call, err);
  else
    (forward ? loops[layer->op].forward : loops[layer->op].backward)(call, sn__output_layout(k, call->layer));
  if (status != SN_OK) sn_err_prefix(err, "layer \"%s\" %s", layer->name, sn_pass_name(call->pass));
  return status;
}

static uint32_t layout_of(const sn__cpu *k, uint32_t value) {
  return k->layouts[value];
}

static const char *layouts_of(const sn__cpu *k) {
  return k->named;
}

static unsigned threads_of(const sn__cpu *k) {
  return (unsigned)k->threads;
}

static const char *version_of(const sn__cpu *k) {
  return k->version;
}

extern SN_MODULE_TABLE const sn_cpu_table sn_cpu_module;
const sn_cpu_table sn_cpu_module = {
    .head = {sn_build_id},
    .make_bare = make_bare,
    .prepare = prepare,
    .share = share,
    .try_threads = sn__cpu_try_threads,
    .free = free_kernels,
    .scratch = scratch_of,
    .layout = layout_of,
    .turn = sn__weights_turn,
    .run = run,
    .layouts = layouts_of,
    .threads = threads_of,
    .version = version_of,
};
