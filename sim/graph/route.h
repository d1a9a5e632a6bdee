/* Route: the operations of one training iteration in execution order, with the tensors each touches: the graph that
 * everything behind it plans, checks and plays, whichever dialect (sim/graph/dialect.h) made it.
 *
 *   SN_ORDER_ROUTE   algorithm 1 of [SN]: depth first from DATA, a layer is entered only when all its inputs have been
 *                    produced, branches in declaration order; backward the other way round; then one update step per
 *                    layer that has parameters. Where forks copy, with N layers (DATA excluded) forward of the i-th
 *                    layer is step i, its backward step 2N+1-i; where they do not, a FORK has a backward step only
 *   SN_ORDER_POST    depth-first post-order over what steps read, in the order in which they read it: from the losses,
 *                    then from each layer that has parameters, backward; steps that nothing needs come last. Layers that
 *                    share parameters go backward in SN_ORDER_ROUTE, as their gradients are summed. Updates as above.
 *                    Not for dialects that write gradients in place or are eager. (planning, part C)
 *   SN_ORDER_SERIAL  dialect singa: as SINGA buffers its operations, and its SN_ORDER_ROUTE too. Forward as declared;
 *                    backward takes the layer whose gradients were completed last
 *   SN_ORDER_BFS     dialect singa: a queue. First the steps that wait for nothing, in buffered order; a step enters
 *                    when the last it waits for is done. It waits for who made what it reads, and for all who use what
 *                    it changes before it, parameters and momenta too
 *
 * Where the dialect is by_kernel (SINGA), updates stand among the backward steps, each behind who made its gradient.
 *
 * Where the dialect is eager (PyTorch), operations run in the order in which they are declared - one that is declared
 * before its inputs, as soon as it can -, backward in exactly the reverse order, and a layer has a backward step only
 * where it or something before it is trained. The last update reads all gradients of parameters: they live until then.
 *
 * Tensors are layer outputs, gradients with respect to layer inputs, what forward saves for backward and, where the
 * dialect is eager, gradients of parameters. What is written in place is the same tensor passed on, touched by several
 * layers' steps. O(layers + values), eager O(.. log layers); explicit stacks.
 */
#ifndef SN_SIM_GRAPH_ROUTE_H
#define SN_SIM_GRAPH_ROUTE_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/graph/dialect.h"
#include "sim/graph/iteration.h"
#include "sim/graph/mesh.h"
#include "sim/graph/pass.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sn_role {
  SN_VALUE,              /* a layer's output */
  SN_GRADIENT,           /* with respect to a layer's input */
  SN_SAVED,              /* made by forward for backward alone: a mask, a norm, mean and variance */
  SN_PARAMETER_GRADIENT, /* port 0: of the weights or gamma, 1: of the bias or beta; only where the dialect is declared
                          */
  SN_SCRATCH, /* made and dropped by one step; by_kernel: a CONV's workspace, which its three kernels share; eager: a
               * layer's own gradient of a parameter that several have, which its SN_SHARED_SUM adds */
  SN_CARRIED, /* another tensor's value of the iteration before, which is `port`: sn_route_carry() */
  /* of one of several GPUs; `port` is the group, route->groups[port], but of the second a parameter's: */
  SN_GATHERED,  /* parameters of a group, side by side, as an all-gather makes them */
  SN_UNSHARDED, /* a parameter, whole: port as of its gradient */
  SN_SUMMED,    /* a parameter's gradient, whole, of the micro-batches before; port as of the gradient */
  SN_BUCKET,    /* gradients of a group, side by side, as they are reduced */
  SN_SHARD,     /* a GPU's part of a group's reduced gradients */
  SN_ROLES
} sn_role;

/* The port of a product of an FC that adds its bias in a step of its own; and of the flat input of an FC that has a
 * step of its own to make it flat, and of the gradient with respect to that: tensors of the FC, though it is neither
 * its output nor its own input's gradient. */
enum { SN_FLAT = 1, SN_PRODUCT = 1 };

/* The ports of copies in another width: of weights and bias (SN_SAVED; their gradients SN_SCRATCH), and of inputs
 * (SN_SAVED; their gradients SN_GRADIENT). */
enum { SN_CAST_WEIGHTS = 1 << 24, SN_CAST_BIAS, SN_CAST_INPUT };

/* The ports of what transformers' decoders make once behind the table of words, for the ROTARY of all layers (SN_SAVED):
 * positions x channels of a head each. */
enum { SN_PORT_COSINES = 1 << 23, SN_PORT_SINES };

/* The ports of what several GPUs make beside: of a parameter that was resharded to fewer of them (SN_UNSHARDED, added to
 * its port), of shards in the width in which they are gathered, and of what was reduced in another than shards have
 * (SN_SCRATCH). Of tensor parallel: what was gathered of a value, of its gradient or of a table's; what is one of the
 * summands of a value, or a part of a gradient; and what collectives and a loss of split logits make and drop
 * (SN_SCRATCH). */
enum {
  SN_PORT_PART = 1 << 25,
  SN_PORT_GATHER,
  SN_PORT_REDUCE,
  SN_PORT_WHOLE = 1 << 26,
  SN_PORT_PARTIAL,
  SN_PORT_MOVED,
  SN_PORT_LOSS
};

struct sn_tensor {
  uint32_t layer; /* whose output, or whose backward makes the gradient */
  uint32_t port;  /* which output, or which input the gradient is for, or which of what is saved; SN_FLAT */
  sn_role role;
  uint64_t bytes;
};

/* The streams of a GPU on which PyTorch asks for memory. Its allocator keeps their blocks apart. */
typedef enum sn_stream { SN_STREAM_COMPUTE, SN_STREAM_GATHER, SN_STREAM_REDUCE, SN_STREAMS } sn_stream;

/* Gather's: shards in the width in which they are gathered, and what is gathered. Reduce's: what was reduced, and so
 * the shards of gradients. Compute's: all else, parameters and gradients that lie side by side to be reduced too. */
sn_stream sn_tensor_stream(const sn_tensor *tensor);

/* A copy of weights, which autocast makes where they are used and drops when it ends. */
static inline bool sn_tensor_is_weight_cast(const sn_tensor *tensor) {
  return tensor->role == SN_SAVED && (tensor->port == SN_CAST_WEIGHTS || tensor->port == SN_CAST_BIAS);
}

typedef struct sn_access {
  uint32_t tensor;
  sn_access_mode mode : 8;
  bool held : 1; /* a READ that no computation needs: the program that was recorded has the tensor until this step */
} sn_access;

/* Accesses of one step, as numbers from 0: what `to` makes may take the bytes of what `from` reads, which are as many.
 * Whether it does is the plan's: where `from` is used for the last time. */
typedef struct sn_permit {
  uint16_t from, to;
} sn_permit;

struct sn_step {
  uint32_t layer;
  sn_pass pass : 8;
  sn_kernel kernel : 8;
  bool put_off : 1;   /* of a pipeline: of the half of backward that makes gradients of weights (zb-h1) */
  uint32_t sum;       /* SN_SUM: route->sums[sum]; SN_TRANSFER, SN_PACK and SN_UNPACK: transfers[sum] */
  uint32_t parameter; /* of the update's four kernels: 0 weights or gamma, 1 bias or beta; SN_CAST and
                                        SN_SHARED_SUM: whose gradient it is, SN_NONE: an input's */
  uint32_t share;     /* it does one part of so many of what its layer does; 0 and 1: all */
  uint32_t first_access, n_accesses; /* route->accesses[first_access ..]; a tensor stands at most once in a step */
  uint32_t first_permit, n_permits;  /* route->permits[first_permit ..]; the first that can be used is */
};

/* How a gradient lies in its tensor, which has `channels` an image. Alone, element by element as its value, where `of`
 * is SN_NONE. Else it is part of another, or in its order: of that with respect to what the reader of value `of` makes,
 * which hands it on (JOIN, CONCAT, RESHAPE, TRANSPOSE, POSITION, TOKEN). `of` is the value itself, or a branch of its
 * FORK. */
typedef struct sn_part {
  uint32_t channels, of;
} sn_part;

typedef struct sn_summand {
  uint32_t tensor;
  sn_part part;
} sn_summand;

/* to = earlier + later; `to` is `earlier`, changed in place, or another tensor. */
typedef struct sn_sum {
  sn_summand earlier, later, to;
} sn_sum;

/* What a step of a recording costs; steps of described networks cost what their layer's pass does (sim/device/cost.h). */
typedef struct sn_step_work {
  const char *called;                      /* what PyTorch calls it, "convolution" */
  double flops, bytes;                     /* multiplications and additions; read and written by its kernels */
  const struct sn_record_conv *conv;       /* a convolution's shapes; NULL: it is none */
  const struct sn_record_product *product; /* a product's; the same */
  uint32_t batch;
  uint32_t columns;         /* of the backward of a layer norm: of each of its rows, which are the gradients of
                                        its parameters; of a batch norm in training, channels first: its channels;
                                        0: of anything else */
  int launches;             /* kernels */
  bool narrow, fp16;        /* in two bytes, and in float16 */
  bool norm, channels_last; /* a batch norm; a convolution of such operands */
} sn_step_work;

/* What crosses links, of steps SN_TRANSFER; and what is copied into and out of that, of SN_PACK and SN_UNPACK. */
typedef struct sn_transfer {
  sn_transfer_kind kind;
  uint8_t axis;         /* sn_mesh_axis: among whom */
  uint32_t group;       /* route->groups[group]; SN_NONE on the axis tp, whose collectives are of values */
  uint32_t ranks;       /* how many take part */
  uint32_t what, micro; /* of stages: the tensor of the whole route, and the micro-batch */
  uint32_t from;        /* of stages: the part of the network that sends it; nothing of plans that were read */
  uint64_t bytes;       /* of all that is gathered or reduced; of a send what is sent */
} sn_transfer;

/* "all_gather", "reduce_scatter", "all_reduce", "send", "receive" */
const char *sn_transfer_kind_name(sn_transfer_kind kind);

/* The same to be read: "all-gather", "reduce-scatter", "all-reduce", "send", "receive". */
const char *sn_transfer_kind_words(sn_transfer_kind kind);

/* Layers whose parameters are gathered and reduced together. */
typedef struct sn_parameter_group {
  const char *name; /* the path of the block, "layers.0"; "root": what is in none */
} sn_parameter_group;

/* A forward step that runs again, and ahead of which other; n_steps: behind the last. */
typedef struct sn_again {
  uint32_t step, at_step;
} sn_again;

/* What a pipeline's stage does from a step on: an entry of its schedule's list, or what PyTorch does between entries. */
typedef struct sn_turn {
  uint32_t step;
  uint16_t chunk;
  uint8_t kind; /* sn__action_kind (sim/parallel/pipeline_actions.h) */
} sn_turn;

struct sn_route {
  const char *name; /* of the network or recording */
  uint32_t batch;   /* images of an iteration */
  uint32_t n_layers;
  const sn_named_module *modules; /* by layer; NULL: layers' names are their paths */
  const sn_layer *layers; /* of steps and tensors: their names, modules, operators and sizes. Behind who makes the
                             route nobody looks for values at their inputs and outputs */
  const sn_net *net; /* what back ends compute, and costs and resident tensors (sim/graph/resident.h) are made of */
  const sn_dialect *dialect;
  uint32_t first_backward; /* steps[0 ..] are forward, */
  uint32_t first_update; /* steps[first_backward ..] backward, steps[first_update ..] updates. by_kernel: updates stand
                            before that, in SN_ORDER_BFS among forward steps too */
  uint32_t n_steps;      /* steps[0] is step 1 */
  uint32_t n_tensors, n_accesses, n_permits, n_sums;
  const sn_step *steps;
  const sn_access *accesses;
  const sn_permit *permits;
  const sn_tensor *tensors;
  const sn_sum *sums;
  const sn_step_work *work; /* per step, of a recording; NULL: the layers' */
  uint32_t n_regions;
  const struct sn_record_region *regions; /* of a recording: its blocks (models/record/record_net.h); NULL: they are
                                           * found by how values meet (sim/schedule/units.h) */
  const uint16_t *rules;    /* per layer of the net: which of its dialect; NULL: a recording's, which goes by none */
  const uint32_t *output;   /* per value of the net: the tensor that holds it; SN_NONE for DATA's */
  const uint32_t *gradient; /* per value: the tensor that holds the gradient with respect to it; SN_NONE: none */
  const sn_part *part;      /* per value: where in that tensor */
  const uint32_t *weight_gradient; /* per layer: its first SN_PARAMETER_GRADIENT; the bias', where it has one, is the
                                      next; SN_NONE: none */
  const uint32_t *saved; /* per layer of the net: the first tensor that forward saves for backward; SN_NONE: nothing */
  const uint32_t *forward_step;  /* per layer: its own forward step; SN_NONE for DATA, and FORKs that do not copy */
  const uint32_t *backward_step; /* per layer: its own backward step, the last one of a FORK; SN_NONE: none */
  uint64_t tensor_bytes;         /* all tensors but those of steps that run again */
  uint32_t n_again;              /* steps that run again, of a route under checkpoints; 0: schedules say what does */
  const sn_again *again;         /* in order */
  const sn_step *steps_again;    /* per forward step: what it touches where it runs again; NULL: the same */
  uint32_t tensors_again;        /* from this tensor on they are made where steps run again; 0: none is */
  /* of one of several GPUs, else NULL and 0 */
  const sn_mesh *mesh;
  const sn_transfer *transfers;
  const sn_parameter_group *groups;
  uint32_t n_transfers, n_groups;
  const struct sn_route *whole; /* what it is a part of; it frees that but where it is the `of_rank` of that, */
  bool shares_whole;            /* or where it is of another stage, whose that is */
  const uint32_t *moved;        /* per step of the whole: which of its own it is */
  const uint32_t *runs;         /* of a pipeline's stage: sn_route_run_of(); else NULL */
  const uint32_t *run_numbers;  /* per step of the whole: which of those that the stage runs; SN_NONE: it does not */
  uint32_t n_runs;              /* how many these are */
  const sn_turn *turns;         /* of a pipeline's stage upon which nothing lies yet: in the order of its schedule */
  uint32_t n_turns;
  uint32_t micros;             /* of a pipeline's stage: micro-batches, whose forward and backward steps are mixed: all
                                 * are ahead of first_backward, which is first_update. Else 0 */
  struct sn_under_list *under; /* of a recording: what sn_route_under() has made; else NULL */
  struct sn_route *of_rank;    /* of what sn_route_under() has made: a part of it, which it frees; NULL: none */
  struct sn_route *holding;    /* what sn_route_hold() has made of it, which it frees; NULL: nothing */
  const uint32_t *of_storage;  /* of a recording, per storage of it: the tensor in which it lies; SN_NONE */
  struct sn_arena *arena;
};

/* Not of recordings. */
static inline const sn_op_rule *sn_route_rule(const sn_route *route, uint32_t layer) {
  return &route->dialect->rules[route->rules[layer]];
}

/* An ATTENTION of a network that keeps its probabilities: by its attribute, or as no fused kernel takes its heads. */
static inline bool sn_route_is_in_parts(const sn_route *route, uint32_t layer) {
  const sn_saving saves = route->rules ? (sn_saving)sn_route_rule(route, layer)->saves : SN_SAVES_NOTHING;
  return saves == SN_SAVES_PROBABILITIES || saves == SN_SAVES_DROPPED || saves == SN_SAVES_CAPPED;
}

/* Tensors without those of steps that run again. */
static inline uint32_t sn_route_tensors(const sn_route *route) {
  return route->tensors_again > 0 ? route->tensors_again : route->n_tensors;
}

/* Of a pipeline's stage: as which of its steps it runs one of the whole for a micro-batch; SN_NONE: it does not. */
static inline uint32_t sn_route_run_of(const sn_route *route, uint32_t micro, uint32_t step) {
  uint32_t number = route->run_numbers[step];
  return number == SN_NONE ? SN_NONE : route->runs[(size_t)micro * route->n_runs + number];
}

/* What runs, for the first time or again. */
static inline const sn_step *sn_route_run(const sn_route *route, uint32_t step, bool rerun) {
  return rerun && route->steps_again ? &route->steps_again[step] : &route->steps[step];
}

/* SN_BAD_INPUT where the sum of all tensors is beyond SN_MAX_NET_BYTES; SN_BAD_USAGE for an order that the dialect does
 * not have. */
sn_route *sn_route_new(const sn_net *net, sn_dialect_id dialect, sn_order order, sn_err *err);
/* Of another iteration than sn_route_new()'s, which trains by momentum, a batch an update. Adam and AdamW of an eager
 * dialect make a temporary as large as all parameters, which lives through the updates (PyTorch's foreach
 * implementation). Where an eager dialect accumulates, the route is that of a later micro-batch: gradients of
 * parameters are dropped by the step that makes them, as what they are added to lies beside the graph. Inference has
 * the forward steps alone: nothing is saved for backward, values die where forward reads them last, and a DROPOUT of an
 * eager dialect is no step. A precision other than fp32 and tf32 is of eager dialects (SN_BAD_USAGE elsewhere). And
 * with bytes of workspace for every CONV, by layer, which are tensors of dialects that are by_kernel; NULL, as with
 * sn_route_new(): none. */
sn_route *sn_route_new_for(const sn_net *net, sn_dialect_id dialect, sn_order order, sn_iteration iteration,
                           const uint64_t *workspace, sn_err *err);
void sn_route_free(sn_route *route);

/* The dialect makes routes in this order. SN_ORDER_ROUTE is every dialect's. */
bool sn_dialect_has_order(sn_dialect_id dialect, sn_order order);

/* Of the route of a recording: the same iteration with these blocks under checkpoints (models/record/checkpoint.h), in
 * the order of `spans`. Its steps are those of `route` with what they touch then, and steps_again what blocks touch
 * that run again: tensors of their own. It lives as long as `route`, which makes it once. NULL after an error. */
struct sn_record_span;
const sn_route *sn_route_under(const sn_route *route, const struct sn_record_span *spans, uint32_t n_spans,
                               sn_err *err);
/* From now on sn_route_under() goes by what it has found for `known`, which outlives `route`: of the same recording at
 * another batch, in the same dialect. What would have been recorded, of any batch, is found once then. */
void sn_route_under_like(const sn_route *route, const sn_route *known);

/* A tensor that is there until a step is over, though no computation needs it. */
typedef struct sn_hold {
  uint32_t step, tensor; /* the step does not touch the tensor itself */
} sn_hold;

/* The same route with tensors held longer: `holds`, by step in rising order. It is made once, and lives as long as
 * `route`. NULL after an error. */
const sn_route *sn_route_hold(const sn_route *route, const sn_hold *holds, uint32_t n_holds, sn_err *err);

/* Adds what the iteration before has left on the device: a tensor of role SN_CARRIED for each that stays until the next
 * forward has ended, which are values and saved tensors that a backward step reads. No step touches them: a plan
 * allocates them before the first step and releases them behind the last forward step (sim/policy/residency.h). */
sn_status sn_route_carry(sn_route *route, sn_err *err);

/* Uses permits: what a step makes becomes the tensor of the operand that it may take, changed in place, where that is
 * used for the last time in this step. Of several permits the first that holds. The route then needs no more memory
 * whatever the strategy, and what follows the route knows nothing of permits. Done already where the dialect is
 * in_place. */
sn_status sn_route_take(sn_route *route, sn_err *err);

/* Steps that make or free tensors, the first so many: forward and backward, and the updates too where the dialect is
 * eager. */
static inline uint32_t sn_route_steps_that_matter(const sn_route *route) {
  return route->dialect->eager ? route->n_steps : route->first_update;
}

/* How long a step takes whose layer's pass does, of which launches are not divided. */
static inline int64_t sn_step_share(const sn_step *step, int64_t ns, int64_t launch_ns) {
  return step->share > 1 && ns > launch_ns ? launch_ns + (ns - launch_ns) / step->share : ns;
}

/* A step that moves tensors of one of several GPUs, and computes nothing. */
static inline bool sn_step_moves(const sn_step *step) {
  return step->kernel == SN_TRANSFER || step->kernel == SN_UNPACK || step->kernel == SN_PACK;
}

/* A backward step behind a layer's own: gradients that this has made are added, or copied into another width. */
static inline bool sn_step_follows(const sn_step *step) {
  return step->kernel == SN_SUM || step->kernel == SN_CAST || step->kernel == SN_SHARED_SUM;
}

/* Tensors and steps that are no layer's: what one of several GPUs has and does beside. Collectives of values (tp) are
 * the layers', and run again where those do. */
static inline bool sn_role_is_beside(sn_role role) {
  return role >= SN_GATHERED;
}
static inline bool sn_step_is_beside(const sn_route *route, const sn_step *step) {
  return sn_step_moves(step) && route->transfers[step->sum].axis != SN_MESH_TP;
}

/* The path of a layer's module, and of its block, NULL where it is in none. */
static inline const char *sn_route_module(const sn_route *route, uint32_t layer) {
  return route->modules ? route->modules[layer].path : route->layers[layer].name;
}
static inline const char *sn_route_block(const sn_route *route, uint32_t layer) {
  return route->modules ? route->modules[layer].block : NULL;
}

/* The first tensor that a step reads, and the first that it makes; SN_NONE where it has none: the input batch is no
 * tensor. */
uint32_t sn_route_first_read(const sn_route *route, uint32_t step);
uint32_t sn_route_first_made(const sn_route *route, uint32_t step);

enum { SN_TENSOR_NAME = 160 };

/* "conv1.y", "relu1/fork.y1", "pool1.dx", "add1.dx1", "drop1.saved", "bn1.saved0", "fc1.flat", "fc1.dflat", "fc1.dw",
 * "fc1.db", "fc1.product", "conv1.scratch", "fc1.cast_x", "fc1.cast_dw", "conv1.y before", "bn1:relu.y again": cut to
 * fit `room`; returns text. */
char *sn_tensor_name(const sn_route *route, uint32_t tensor, char *text, size_t room);

/* What a step's layer is: the name of its operator; in a recording, whose steps are operations of their own, of that. */
const char *sn_step_layer_op(const sn_route *route, const sn_step *step);
/* What a step of the route does: the name of its layer's operator, or "FLATTEN"; by_kernel: of its kernel, "FILTER". */
const char *sn_step_op_name(const sn_route *route, const sn_step *step);
/* "output", "gradient", "saved", "parameter gradient", "scratch", "carried" */
const char *sn_role_name(sn_role role);

#endif
