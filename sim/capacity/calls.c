/* Calls; see the header. Which units run again is the plan's; blocks are those of models/net/modules.h. */
#include "sim/capacity/calls.h"

#include "models/net/modules.h"
#include "sim/ask/simulate.h"
#include "sim/capacity/calls_blocks.h"
#include "sim/graph/route.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80, PATH = SN__CALLS_PATH };

void sn__text_add(sn__text *t, const char *format, ...) {
  if (t->count == t->room) {
    uint32_t room = t->room ? 2 * t->room : 16;
    const char **grown = sn_arena_alloc(t->arena, room, sizeof *grown);
    if (grown && t->count > 0) memcpy(grown, t->lines, t->count * sizeof *grown);
    t->failed = t->failed || !grown;
    if (!grown) return;
    t->lines = grown;
    t->room = room;
  }
  va_list args;
  va_start(args, format);
  const char *line = sn_arena_vprint(t->arena, format, args);
  va_end(args);
  t->failed = t->failed || !line;
  if (line) t->lines[t->count++] = line;
}

/* ---- modules in Python ---- */

/* "layer2.3" as "model.layer2[3]". peft's model holds the one whose modules these are. */
static void write_python(const sn__blocks *b, const char *path, size_t length, char *to, size_t room) {
  size_t used = (size_t)snprintf(to, room, b->adapted ? "model.base_model.model" : "model");
  for (size_t at = 0; at < length && used < room;) {
    size_t part = strcspn(path + at, ".");
    if (part > length - at) part = length - at;
    bool number = isdigit((unsigned char)path[at]);
    used += (size_t)snprintf(to + used, room - used, number ? "[%.*s]" : ".%.*s", (int)part, path + at);
    at += part + 1;
  }
}

/* A block in its parent: "encoder.layers", 3; indexed by where it stands there, which its number says. */
typedef struct place {
  size_t parent; /* length of the parent's path; 0: the model itself */
  uint32_t number;
  bool numbered;
} place;

static place place_of(const char *path) {
  const char *dot = strrchr(path, '.'), *end = path + strlen(path), *digits = end;
  while (digits > path && isdigit((unsigned char)digits[-1])) digits--;
  return (place){.parent = dot ? (size_t)(dot - path) : 0,
                 .number = (uint32_t)strtoul(digits, NULL, 10),
                 .numbered = dot && digits < end && digits > dot};
}

static bool same_parent(const char *a, const char *b) {
  place x = place_of(a), y = place_of(b);
  return x.numbered && y.numbered && x.parent == y.parent && strncmp(a, b, x.parent) == 0;
}

/* Whether the parent has modules from that number on. */
static bool goes_on(const sn_route *route, const char *path, size_t parent, uint32_t number) {
  for (uint32_t i = 0; i < route->n_layers && route->modules; i++) {
    const char *other = route->modules[i].path;
    bool inside = other && strncmp(other, path, parent) == 0 && other[parent] == '.';
    if (inside && isdigit((unsigned char)other[parent + 1]) && strtoul(other + parent + 1, NULL, 10) >= number)
      return true;
  }
  return false;
}

/* What a run of blocks is called as one thing that can be gone through: "model.encoder.layers[:6]". `from` and `end`
 * are of the blocks; whole: they are all that the parent has. */
static void write_run(const sn__blocks *b, uint32_t from, uint32_t end, char *to, size_t room) {
  const sn__block *blocks = b->all;
  place first = place_of(blocks[from].path);
  uint32_t low = from, high = end;
  while (low > 0 && same_parent(blocks[low - 1].path, blocks[from].path)) low--;
  while (high < b->count && same_parent(blocks[high].path, blocks[from].path)) high++;
  uint32_t base = place_of(blocks[low].path).number == 1 ? 1 : 0; /* a ModuleDict, which is not indexed */
  char parent[PATH + 64], all[PATH + 96];
  write_python(b, blocks[from].path, first.parent, parent, sizeof parent);
  bool more = goes_on(b->route, blocks[from].path, first.parent, first.number + end - from);
  bool dict = base == 1 && !isdigit((unsigned char)blocks[from].path[first.parent + 1]);
  if (!dict) base = 0;
  bool whole = low == from && high == end && first.number == base && !more;
  snprintf(all, sizeof all, dict ? whole ? "%s.children()" : "[*%s.children()]" : "%s", parent);
  uint32_t begin = first.number - base, behind = begin + end - from;
  if (whole)
    snprintf(to, room, "%s", all);
  else if (begin == 0)
    snprintf(to, room, "%s[:%" PRIu32 "]", all, behind);
  else if (high == end && !more)
    snprintf(to, room, "%s[%" PRIu32 ":]", all, begin);
  else
    snprintf(to, room, "%s[%" PRIu32 ":%" PRIu32 "]", all, begin, behind);
}

/* The end of the run of blocks with the same `chosen` that `from` begins: neighbours in one parent. */
static uint32_t run_end(const sn__block *blocks, uint32_t from, uint32_t n) {
  uint32_t end = from + 1;
  while (end < n && sn__block_is_chosen(&blocks[end]) == sn__block_is_chosen(&blocks[from]) &&
         same_parent(blocks[end - 1].path, blocks[end].path) &&
         place_of(blocks[end].path).number == place_of(blocks[end - 1].path).number + 1)
    end++;
  return end;
}

/* One block, or all of a run. */
static void write_item(const sn__blocks *b, uint32_t from, uint32_t end, bool alone, char *to, size_t room) {
  const sn__block *blocks = b->all;
  if (end - from == 1 && !place_of(blocks[from].path).numbered) {
    size_t used = (size_t)snprintf(to, room, "%s", alone ? "[" : "");
    write_python(b, blocks[from].path, strlen(blocks[from].path), to + used, room - used);
    if (alone) strncat(to, "]", room - strlen(to) - 1);
    return;
  }
  if (!alone) *to++ = '*', room--;
  write_run(b, from, end, to, room);
}

void sn__text_add_loop(sn__text *t, const sn__blocks *b, bool chosen) {
  enum { ROOM = PATH + 128 };
  char line[COLUMNS + ROOM], item[ROOM];
  uint32_t items = 0, only = 0, only_end = 0;
  for (uint32_t i = 0, end; i < b->count; i = end) {
    end = run_end(b->all, i, b->count);
    if (sn__block_is_chosen(&b->all[i]) != chosen) continue;
    items++;
    only = i;
    only_end = end;
  }
  if (items == 1) {
    write_item(b, only, only_end, true, item, sizeof item);
    sn__text_add(t, "for block in %s:", item);
    return;
  }
  int used = snprintf(line, sizeof line, "for block in [");
  bool empty = true;
  for (uint32_t i = 0, end; i < b->count; i = end) {
    end = run_end(b->all, i, b->count);
    if (sn__block_is_chosen(&b->all[i]) != chosen) continue;
    write_item(b, i, end, false, item, sizeof item);
    if (!empty && used + (int)strlen(item) + 2 > COLUMNS) {
      sn__text_add(t, "%s,", line);
      used = snprintf(line, sizeof line, "              ");
      empty = true;
    }
    used += snprintf(line + used, sizeof line - (size_t)used, "%s%s", empty ? "" : ", ", item);
    empty = false;
  }
  sn__text_add(t, "%s]:", line);
}

/* ---- checkpoints ---- */

/* Whether several blocks run again as one. */
static bool spans_blocks(const sn__blocks *b) {
  for (uint32_t i = 1; i < b->count; i++)
    if (sn__block_is_chosen(&b->all[i]) && sn__block_is_chosen(&b->all[i - 1]) &&
        b->all[i].region == b->all[i - 1].region)
      return true;
  return false;
}

/* Where what runs again as one begins: a block, or a module ahead of all blocks. */
static void write_begin(const sn__blocks *b, uint32_t region, char *to, size_t room) {
  uint32_t unit = 0;
  while (b->region[unit] != region) unit++;
  uint32_t layer = b->route->steps[b->units.first[unit]].layer;
  const char *block = sn_route_block(b->route, layer), *path = block ? block : sn_route_module(b->route, layer);
  const char *dot =
      block || b->route->layers[layer].parameters > 0 ? NULL : strrchr(path, '.'); /* it may be no module */
  write_python(b, path, dot ? (size_t)(dot - path) : strlen(path), to, room);
}

/* Checkpoints around several blocks each: whoever calls them has to call them in one function. */
static void add_spans(sn__text *t, const sn__blocks *b) {
  enum { ROOM = PATH + 64 };
  char first[ROOM], last[ROOM];
  for (uint32_t i = 0, end; i < b->count; i = end) {
    end = i + 1;
    if (!sn__block_is_chosen(&b->all[i])) continue;
    while (end < b->count && sn__block_is_chosen(&b->all[end]) && b->all[end].region == b->all[i].region) end++;
    write_python(b, b->all[i].path, strlen(b->all[i].path), first, sizeof first);
    write_python(b, b->all[end - 1].path, strlen(b->all[end - 1].path), last, sizeof last);
    if (end - i > 1) write_begin(b, b->all[i].region, first, sizeof first);
    if (end - i == 1)
      sn__text_add(t, "x = checkpoint(%s, x, use_reentrant=False)", first);
    else
      sn__text_add(t, "# one checkpoint: a function that calls %s .. %s in turn", first, last);
  }
}

/* The policy of sim/schedule/units.h, one a call of a block, as products are counted within it. */
static void add_policy(sn__text *t) {
  static const char *const lines[] = {"from torch.utils.checkpoint import (",
                                      "    CheckpointPolicy, create_selective_checkpoint_contexts)",
                                      "aten = torch.ops.aten",
                                      "kept = [aten.mm.default, aten._scaled_dot_product_flash_attention.default,",
                                      "        aten._scaled_dot_product_efficient_attention.default,",
                                      "        aten._scaled_dot_product_cudnn_attention.default]",
                                      "def contexts():",
                                      "    seen = [0, 0]",
                                      "    def policy(context, op, *args, **kwargs):",
                                      "        seen[context.is_recompute] += op == aten.mm.default",
                                      "        second = op == aten.mm.default and seen[context.is_recompute] % 2 == 0",
                                      "        return (CheckpointPolicy.MUST_SAVE if op in kept and not second",
                                      "                else CheckpointPolicy.PREFER_RECOMPUTE)",
                                      "    return create_selective_checkpoint_contexts(policy)"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) sn__text_add(t, "%s", lines[i]);
}

/* A ModuleDict's blocks (DenseNet's) take a list, to which their caller adds before they run again: they get a copy. */
static void add_wrap(sn__text *t, const sn__blocks *b, bool selective) {
  const char *path = b->all[0].path;
  place first = place_of(path);
  bool lists = first.numbered && first.number == 1 && !isdigit((unsigned char)path[first.parent + 1]);
  const char *more = selective ? "," : ")";
  if (!lists)
    sn__text_add(t, "    block.forward = partial(checkpoint, block.forward, use_reentrant=False%s", more);
  else
    sn__text_add(t, "    again = partial(checkpoint, block.forward, use_reentrant=False%s", more);
  if (selective) sn__text_add(t, "        context_fn=contexts)");
  if (!lists) return;
  sn__text_add(t, "    block.forward = lambda inputs, again=again: again([*inputs])");
}

static void add_blocks(sn__text *t, const sn_net *net, const sn__blocks *b, bool selective) {
  bool transformers = sn_module_library(net) == SN_LIBRARY_TRANSFORMERS;
  if (b->chosen == 0) return;
  if (selective) add_policy(t);
  if (spans_blocks(b)) {
    add_spans(t, b);
  } else if (transformers) {
    /* Said, as transformers 4 has it the other way, which is other memory, and no gradients behind frozen embeddings. */
    sn__text_add(t, "model.gradient_checkpointing_enable(%s", selective ? "" : "{\"use_reentrant\": False})");
    if (selective) sn__text_add(t, "    {\"use_reentrant\": False, \"context_fn\": contexts})");
    if (b->chosen == b->count) return;
    sn__text_add_loop(t, b, false);
    sn__text_add(t, "    block.gradient_checkpointing = False");
  } else {
    sn__text_add(t, "from functools import partial; from torch.utils.checkpoint import checkpoint");
    sn__text_add_loop(t, b, true);
    add_wrap(t, b, selective);
  }
}

/* Names that differ in numbers alone. */
static bool alike(const char *a, const char *b) {
  for (;; a++, b++) {
    bool numbers = isdigit((unsigned char)*a) && isdigit((unsigned char)*b);
    while (numbers && isdigit((unsigned char)a[1])) a++;
    while (numbers && isdigit((unsigned char)b[1])) b++;
    if (!numbers && *a != *b) return false;
    if (!*a) return true;
  }
}

static const char *step_name(const sn__blocks *b, uint32_t step) {
  return sn_route_module(b->route, b->route->steps[step].layer);
}

/* The end of what runs again as one from a unit on. */
static uint32_t region_end(const sn__blocks *b, uint32_t unit) {
  uint32_t end = unit + 1;
  while (end < b->units.count && b->is_other[end] && b->region[end] == b->region[unit]) end++;
  return end;
}

/* Whether the first and the last layers of two regions are named alike. */
static bool regions_alike(const sn__blocks *b, uint32_t u, uint32_t v) {
  const uint32_t *first = b->units.first;
  return alike(step_name(b, first[u]), step_name(b, first[v])) &&
         alike(step_name(b, first[region_end(b, u)] - 1), step_name(b, first[region_end(b, v)] - 1));
}

/* What runs again and is of no chosen block; regions alike behind one another in one line. */
static void add_others(sn__text *t, const sn__blocks *b) {
  bool told = false;
  for (uint32_t u = 0, end; u < b->units.count; u = end) {
    end = u + 1;
    if (!b->is_other[u]) continue;
    uint32_t more = 0;
    end = region_end(b, u);
    const char *from = step_name(b, b->units.first[u]), *to = step_name(b, b->units.first[end] - 1);
    for (; end < b->units.count && b->is_other[end] && regions_alike(b, u, end); more++) end = region_end(b, end);
    if (!told) sn__text_add(t, "# checkpoint(f, x, use_reentrant=False), where f calls one after the other:");
    told = true;
    if (more > 0)
      sn__text_add(t, "#   %s .. %s, and %" PRIu32 " more like it", from, to, more);
    else
      sn__text_add(t, "#   %s .. %s", from, to);
  }
}

/* A chain cut into segments, of which all but the last run again. */
static void add_sequential(sn__text *t, const sn_units *units) {
  sn__text_add(t, "x = torch.utils.checkpoint.checkpoint_sequential(");
  sn__text_add(t, "    net, %" PRIu32 ", x, use_reentrant=False)", units->segments);
  sn__text_add(t, "# net: nn.Sequential of all layers, each with what changes its output in place");
}

/* No module of its own: the function that makes scores, drops some and multiplies values by them. */
static void add_attention(sn__text *t) {
  sn__text_add(t, "from torch.utils.checkpoint import checkpoint");
  sn__text_add(t, "# in each attention, around what makes its scores and reads them:");
  sn__text_add(t, "x = checkpoint(core_attention, query, key, value, use_reentrant=False)");
}

static void add_checkpoints(sn__text *t, const sn_asked *asked, const sn_calls_wish *wish, const sn__blocks *blocks) {
  if (wish->strategy.recompute == SN_RECOMPUTE_ATTENTION) {
    if (blocks->n_rerun > 0) add_attention(t);
    return;
  }
  bool sequential = blocks->units.segments > 0 && wish->strategy.recompute == SN_RECOMPUTE_UNITS;
  if (sequential) add_sequential(t, &blocks->units);
  if (!sequential) add_blocks(t, asked->net, blocks, wish->strategy.recompute == SN_RECOMPUTE_SELECTIVE);
  if (!sequential) add_others(t, blocks);
}

/* Lines that name modules, which the route knows, and the plan what runs again of them. `staged`: then of a pipeline, too,
 * whose trace keeps no checkpoints; NULL: there is none. */
static sn_status add_planned(sn__text *t, const sn_asked *asked, const sn_calls_wish *wish, bool checkpoints,
                             const sn_iteration *staged, sn_calls *calls, sn_err *err) {
  sn_planner *planner = sn_planner_new(asked->net, asked->device, asked->options, err);
  sn_plan *plan =
      planner && checkpoints ? sn_planner_plan(planner, wish->strategy, wish->memory_bytes, false, err) : NULL;
  const sn_route *route = plan                            ? plan->route
                          : planner && err->code == SN_OK ? sn_planner_route(planner, wish->strategy, err)
                                                          : NULL;
  sn__blocks blocks = {0};
  if (route && sn__blocks_find(route, plan, &blocks, err) == SN_OK) {
    blocks.adapted = asked->net->adapted || wish->rank > 0;
    bool later = staged && wish->strategy.recompute == SN_RECOMPUTE_UNITS;
    if (checkpoints && !later) add_checkpoints(t, asked, wish, &blocks);
    if (staged) sn__calls_add_pipeline(t, asked->net, *staged, later ? &blocks : NULL);
    if (wish->mesh) sn__calls_add_mesh(t, asked->options->iteration, &blocks, err);
    calls->chosen = blocks.count ? blocks.chosen : blocks.n_rerun;
    calls->units = blocks.count ? blocks.count : sn_units_modules(&blocks.units);
  }
  sn__blocks_clear(&blocks);
  sn_plan_free(plan);
  sn_planner_free(planner);
  return err->code;
}

/* ---- the loop ---- */

/* By precision: what is done to the model once, and the type of autocast. */
static const struct {
  const char *once, *autocast;
} precisions[SN_PRECISION_COUNT] = {
    [SN_TF32] = {"torch.set_float32_matmul_precision(\"high\")", NULL},
    [SN_BF16] = {"model = model.bfloat16()", NULL},
    [SN_FP16] = {"model = model.half()", NULL},
    [SN_AMP_BF16] = {NULL, "bfloat16"},
    [SN_AMP_FP16] = {"scaler = torch.amp.GradScaler(\"cuda\")", "float16"},
};

/* As peft and bitsandbytes have what models/build/lora.h does. */
static void add_lora(sn__text *t, uint32_t rank, bool nf4) {
  if (nf4) {
    sn__text_add(t, "config = transformers.BitsAndBytesConfig(load_in_4bit=True,");
    sn__text_add(t, "    bnb_4bit_quant_type=\"nf4\", bnb_4bit_use_double_quant=True,");
    sn__text_add(t, "    bnb_4bit_compute_dtype=torch.bfloat16)");
    sn__text_add(t, "# model: from_pretrained(.., quantization_config=config)");
  }
  if (rank == 0) return;
  sn__text_add(t, "lora = peft.LoraConfig(r=%" PRIu32 ", target_modules=\"all-linear\")", rank);
  sn__text_add(t, "model = peft.get_peft_model(model, lora, autocast_adapter_dtype=False)");
}

/* Of `parameters`. */
static void add_optimizer(sn__text *t, sn_optimizer optimizer, const char *parameters) {
  static const char *const classes[SN_OPTIMIZER_KINDS] = {
      [SN_OPTIMIZER_MOMENTUM] = "torch.optim.SGD",
      [SN_OPTIMIZER_SGD] = "torch.optim.SGD",
      [SN_OPTIMIZER_ADAM] = "torch.optim.Adam",
      [SN_OPTIMIZER_ADAMW] = "torch.optim.AdamW",
      [SN_OPTIMIZER_ADAM8BIT] = "bitsandbytes.optim.Adam8bit",
      [SN_OPTIMIZER_ADAMW8BIT] = "bitsandbytes.optim.AdamW8bit",
      [SN_OPTIMIZER_RMSPROP] = "torch.optim.RMSprop",
      [SN_OPTIMIZER_ADAGRAD] = "torch.optim.Adagrad",
      [SN_OPTIMIZER_ADAFACTOR] = "torch.optim.Adafactor",
      [SN_OPTIMIZER_LION] = "lion_pytorch.Lion",
  };
  const char *impl = strchr(sn_optimizer_name(optimizer), '='), *keyword = "";
  if (impl) keyword = strcmp(impl, "=fused") == 0 ? ", fused=True" : ", foreach=True";
  if (impl && strcmp(impl, "=loop") == 0) keyword = ", foreach=False";
  const sn_optimizer kind = sn_optimizer_kind(optimizer);
  const char *rate = kind == SN_OPTIMIZER_MOMENTUM ? ", lr=lr, momentum=0.9"
                     : kind == SN_OPTIMIZER_SGD    ? ", lr=lr"
                                                   : "";
  if (classes[kind]) sn__text_add(t, "optimizer = %s(%s%s%s)", classes[kind], parameters, rate, keyword);
}

/* Its schedule goes through the parts. */
static void add_pipelined_step(sn__text *t, const sn_asked *asked, const sn_calls_wish *wish) {
  const char *autocast = wish->precision ? precisions[asked->options->iteration.precision].autocast : NULL;
  if (autocast) sn__text_add(t, "# schedule.step() under torch.autocast(\"cuda\", dtype=torch.%s)", autocast);
}

static void add_step(sn__text *t, const sn_asked *asked, const sn_calls_wish *wish) {
  const char *autocast = wish->precision ? precisions[asked->options->iteration.precision].autocast : NULL;
  bool offload = wish->strategy.offload == SN_OFFLOAD_SAVED, scaled = autocast && strcmp(autocast, "float16") == 0;
  bool parts = wish->parts > 1;
  if (!autocast && !offload) {
    if (parts) sn__text_add(t, "for x, y in parts: (loss(model(x), y) / %" PRIu32 ").backward()", wish->parts);
    return;
  }
  const char *in = parts ? "    " : "";
  char divided[24] = "";
  if (parts) snprintf(divided, sizeof divided, " / %" PRIu32, wish->parts);
  if (parts) sn__text_add(t, "for x, y in parts:");
  if (offload) sn__text_add(t, "%swith torch.autograd.graph.save_on_cpu(pin_memory=True):", in);
  if (autocast)
    sn__text_add(t, "%s%swith torch.autocast(\"cuda\", dtype=torch.%s):", in, offload ? "    " : "", autocast);
  sn__text_add(t, "%s%s    l = loss(model(x), y)%s", in, offload && autocast ? "    " : "", divided);
  sn__text_add(t, scaled ? "%sscaler.scale(l).backward()" : "%sl.backward()", in);
  if (scaled) sn__text_add(t, "scaler.step(optimizer); scaler.update()");
}

/* Of a pipeline, whose blocks are those of the network on one GPU. */
static sn_status add_stages(sn__text *t, const sn_asked *asked, const sn_calls_wish *wish, bool checkpoints,
                            sn_calls *calls, sn_err *err) {
  sn_options options = *asked->options;
  sn_asked whole = *asked;
  sn_calls_wish alone = *wish;
  options.iteration.mesh = (sn_mesh){0};
  options.iteration.master = false; /* which shards have */
  options.iteration.accumulate = 1;
  options.cluster = (sn_cluster){0};
  whole.options = &options;
  alone.mesh = false;
  if (checkpoints) return add_planned(t, &whole, &alone, true, &asked->options->iteration, calls, err);
  sn__calls_add_pipeline(t, asked->net, asked->options->iteration, NULL);
  return SN_OK;
}

static sn_status fill(const sn_asked *asked, const sn_calls_wish *wish, sn_calls *calls, sn_err *err) {
  sn__text t = {.arena = calls->arena};
  bool eager = sn_dialect_of(wish->strategy.dialect)->eager;
  bool checkpoints = eager && wish->strategy.recompute != SN_RECOMPUTE_NONE;
  const sn_iteration *iteration = &asked->options->iteration;
  sn_calls_wish planned = *wish;
  planned.mesh = wish->mesh && !sn_mesh_is_one(&iteration->mesh);
  const char *once = precisions[iteration->precision].once; /* of bf16-master the policy says it */
  bool masters = sn_iteration_keeps_masters(*iteration), copies = masters && wish->mesh;
  const char *parameters = copies ? "masters" : "model.parameters()";
  sn_optimizer optimizer = sn_optimizer_on(iteration->optimizer, asked->net);
  bool traced = iteration->master && sn_mesh_size(&iteration->mesh, SN_MESH_PP) > 1; /* in what is computed */
  if (once && (iteration->master ? copies || traced : wish->precision)) sn__text_add(&t, "%s", once);
  add_lora(&t, wish->rank, wish->nf4);
  if (wish->optimizer && !planned.mesh && !copies) add_optimizer(&t, optimizer, parameters);
  bool staged = planned.mesh && sn_mesh_size(&iteration->mesh, SN_MESH_PP) > 1;
  if (staged && add_stages(&t, asked, &planned, checkpoints, calls, err) != SN_OK) return err->code;
  if (!staged && (checkpoints || planned.mesh) &&
      add_planned(&t, asked, &planned, checkpoints, NULL, calls, err) != SN_OK)
    return err->code;
  if (copies) sn__calls_add_masters(&t, *iteration);
  if (copies || (wish->optimizer && planned.mesh)) add_optimizer(&t, optimizer, parameters);
  if (staged)
    add_pipelined_step(&t, asked, wish);
  else
    add_step(&t, asked, wish);
  if (copies) sn__calls_add_masters_update(&t, *iteration);
  calls->lines = t.lines;
  calls->count = t.count;
  return t.failed ? sn_fail_memory(err) : SN_OK;
}

sn_calls *sn_calls_of(const sn_asked *asked, const sn_calls_wish *wish, sn_err *err) {
  sn_arena *arena = sn_arena_new();
  sn_calls *calls = arena ? sn_arena_alloc(arena, 1, sizeof *calls) : NULL;
  if (!calls) {
    sn_arena_free(arena);
    return sn_fail_memory(err), NULL;
  }
  *calls = (sn_calls){.arena = arena};
  if (fill(asked, wish, calls, err) == SN_OK) return calls;
  sn_calls_free(calls);
  return NULL;
}

void sn_calls_free(sn_calls *calls) {
  if (calls) sn_arena_free(calls->arena);
}
