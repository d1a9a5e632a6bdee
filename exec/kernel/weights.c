/* Weights and gradients in files; see the header. A list of the net's tensors is what files are compared with and
 * written from. */
#include "exec/kernel/weights.h"

#include "base/arena.h"
#include "base/text.h"
#include "base/utf8.h"
#include "exec/data/tensor_file.h"
#include "exec/kernel/kernel_internal.h"
#include "models/op/op.h"
#include "sim/graph/freeze.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OF_A_LAYER = 4 };

static const char *const holds[] = {[SN_SAVE_WEIGHTS] = "weights", [SN_SAVE_GRADIENTS] = "gradients"};

/* One tensor of a net, and where its numbers lie in a state. */
typedef struct entry {
  sn__tensor_source tensor; /* `from` is set when it is written */
  uint32_t layer;
  uint64_t at; /* numbers from the start of the layer's parameters, or of its statistics */
  bool is_statistic;
} entry;

typedef struct list {
  sn_arena *arena;
  entry *entries;
  uint32_t count;
  bool lost; /* no memory for one of them */
} list;

struct sn_weights {
  const sn_net *net;
  sn__tensor_file file;
  list list;
};

/* -- the tensors of a net ---------------------------------------------------------------------------------------- */

static entry *add(list *l, const sn_net *net, uint32_t layer, const char *kind, uint64_t size) {
  entry *e = &l->entries[l->count++];
  *e = (entry){.layer = layer, .tensor = {.n_sizes = 1, .sizes = {size}}};
  e->tensor.name = sn_arena_print(l->arena, "%s.%s", net->layers[layer].name, kind);
  if (!e->tensor.name) l->lost = true;
  return e;
}

/* Weights, and behind them the bias. */
static void add_linear(list *l, const sn_net *net, uint32_t index) {
  const sn_layer *layer = &net->layers[index];
  const sn_attr *a = layer->attr;
  bool convolves = sn_op_of(layer)->convolves;
  uint64_t outputs = a->channels, weights = layer->parameters - (a->bias ? outputs : 0);
  uint64_t rows = layer->op == SN_DECONV ? sn_layer_input_shape(net, layer, 0).c : outputs;
  sn__tensor_source *t = &add(l, net, index, "weight", rows)->tensor;
  const uint64_t depth = a->kernel_d > 0 ? a->kernel_d : 1;
  t->sizes[t->n_sizes++] = convolves ? weights / rows / depth / a->kernel_h / a->kernel_w : weights / rows;
  if (convolves) {
    if (sn__minds_planes(layer)) t->sizes[t->n_sizes++] = depth;
    t->sizes[t->n_sizes++] = a->kernel_h;
    t->sizes[t->n_sizes++] = a->kernel_w;
  }
  if (a->bias) add(l, net, index, "bias", outputs)->at = weights;
}

/* Of a norm, and SCALE: a number a channel, and as many again where it shifts. */
static void add_norm(list *l, const sn_net *net, uint32_t index, bool statistics) {
  const sn_layer *layer = &net->layers[index];
  uint64_t channels = layer->out.c;
  sn__tensor_source *t = &add(l, net, index, "weight", channels)->tensor;
  while (layer->op == SN_SCALE && t->n_sizes < 3) t->sizes[t->n_sizes++] = 1;
  if (sn_op_of(layer)->shifts) add(l, net, index, "bias", channels)->at = channels;
  for (uint64_t i = 0; statistics && layer->op == SN_BN && i < 2; i++) {
    entry *e = add(l, net, index, i == 0 ? "running_mean" : "running_var", channels);
    e->at = i * channels;
    e->is_statistic = true;
  }
}

/* A row of numbers for each token or position, of an ATTENTION for each distance; of a TOKEN one. */
static void add_table(list *l, const sn_net *net, uint32_t index) {
  const sn_layer *layer = &net->layers[index];
  sn__tensor_source *t = &add(l, net, index, "weight", layer->op == SN_TOKEN ? 1 : layer->attr->rows)->tensor;
  t->sizes[t->n_sizes++] = layer->op == SN_ATTENTION ? layer->attr->heads : layer->out.c;
}

static void add_layer(list *l, const sn_net *net, uint32_t index, bool statistics) {
  const sn_op op = net->layers[index].op;
  if (op == SN_FC || sn_op_table[op]->convolves)
    add_linear(l, net, index);
  else if (op == SN_EMBEDDING || op == SN_POSITION || op == SN_TOKEN || op == SN_ATTENTION)
    add_table(l, net, index);
  else if (op == SN_ACT) /* PReLU's slopes */
    add(l, net, index, "weight", net->layers[index].parameters);
  else
    add_norm(l, net, index, statistics);
}

static void list_free(list *l) {
  sn_arena_free(l->arena);
  *l = (list){0};
}

/* Of all parameters with the statistics beside them, or of those that have gradients. */
static sn_status list_net(const sn_net *net, sn_save what, const char *freeze, list *l, sn_err *err) {
  const bool weights = what == SN_SAVE_WEIGHTS;
  *l = (list){.arena = sn_arena_new()};
  if (l->arena) l->entries = sn_arena_alloc(l->arena, (size_t)MOST_OF_A_LAYER * net->n_layers, sizeof *l->entries);
  l->lost = !l->entries;
  for (uint32_t i = 0; i < net->n_layers && !l->lost; i++)
    if (net->layers[i].parameters > 0 && (weights || sn_freeze_trains(freeze, &net->layers[i])))
      add_layer(l, net, i, weights);
  if (!l->lost) return SN_OK;
  list_free(l);
  return sn_fail_memory(err);
}

static float *place_of(const entry *e, const sn_state *s, sn_save what) {
  if (e->is_statistic) return s->statistics + s->statistics_offset[e->layer] + e->at;
  return (what == SN_SAVE_WEIGHTS ? s->parameters : s->gradients) + s->parameter_offset[e->layer] + e->at;
}

/* -- a file of the net? ------------------------------------------------------------------------------------------ */

static sn_status check_shape(const sn_weights *w, const entry *e, const sn__tensor *t, sn_err *err) {
  const sn__tensor_source *want = &e->tensor;
  char there[SN__TENSOR_TEXT], wanted[SN__TENSOR_TEXT];
  if (t->n_sizes == want->n_sizes && memcmp(t->sizes, want->sizes, t->n_sizes * sizeof *t->sizes) == 0) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT, "%.200s: tensor \"%.60s\" is %s, %.60s needs %s", w->file.file.path, t->name,
                 sn__tensor_shape(t->sizes, t->n_sizes, there), w->net->name,
                 sn__tensor_shape(want->sizes, want->n_sizes, wanted));
}

static sn_status fail_missing(const sn_weights *w, const entry *e, sn_err *err) {
  char wanted[SN__TENSOR_TEXT];
  return sn_fail(err, SN_BAD_INPUT,
                 "%.200s: has no tensor \"%.60s\" (%s), which %.60s needs; snsim run --save-weights writes a file with "
                 "all names",
                 w->file.file.path, e->tensor.name, sn__tensor_shape(e->tensor.sizes, e->tensor.n_sizes, wanted),
                 w->net->name);
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* There are more tensors in the file than the net has: names the first that is none of its. */
static sn_status fail_strange(const sn_weights *w, sn_err *err) {
  uint32_t count = w->list.count, at = 0;
  const char **names = sn_arena_alloc(w->list.arena, count, sizeof *names);
  char hint[200];
  if (!names) return sn_fail_memory(err);
  for (uint32_t i = 0; i < count; i++) names[i] = w->list.entries[i].tensor.name;
  qsort(names, count, sizeof *names, by_name);
  while (at < count && strcmp(w->file.tensors[at].name, names[at]) == 0) at++;
  const char *strange = w->file.tensors[at].name;
  sn_fail(err, SN_BAD_INPUT, "%.200s: tensor \"%.60s\" is none of %.60s%s", w->file.file.path, strange, w->net->name,
          sn_text_suggest(strange, names, count, hint, sizeof hint));
  sn_utf8_clean(err->text);
  return err->code;
}

static sn_status check_file(const sn_weights *w, sn_err *err) {
  if (w->file.holds && strcmp(w->file.holds, holds[SN_SAVE_GRADIENTS]) == 0)
    return sn_fail(err, SN_BAD_INPUT, "%.300s: holds gradients; snsim run --save-weights writes weights",
                   w->file.file.path);
  for (uint32_t i = 0; i < w->list.count; i++) {
    const entry *e = &w->list.entries[i];
    const sn__tensor *t = sn__tensor_file_find(&w->file, e->tensor.name);
    if (!t) return fail_missing(w, e, err);
    if (check_shape(w, e, t, err) != SN_OK) return err->code;
  }
  return w->file.count > w->list.count ? fail_strange(w, err) : SN_OK;
}

sn_weights *sn_weights_open(const char *path, const sn_net *net, sn_err *err) {
  sn_weights *w = calloc(1, sizeof *w);
  if (!w) {
    sn_fail_memory(err);
    return NULL;
  }
  w->net = net;
  if (sn__tensor_file_open(path, &w->file, err) == SN_OK &&
      list_net(net, SN_SAVE_WEIGHTS, NULL, &w->list, err) == SN_OK && check_file(w, err) == SN_OK)
    return w;
  sn_weights_close(w);
  return NULL;
}

sn_status sn_weights_read(const sn_weights *w, sn_state *state, sn_err *err) {
  if (sn__data_file_check_unchanged(&w->file.file, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < w->list.count && err->code == SN_OK; i++) {
    const entry *e = &w->list.entries[i];
    sn__tensor_file_read(&w->file, sn__tensor_file_find(&w->file, e->tensor.name), place_of(e, state, SN_SAVE_WEIGHTS),
                         err);
  }
  return err->code;
}

void sn_weights_close(sn_weights *w) {
  if (!w) return;
  sn__tensor_file_close(&w->file);
  list_free(&w->list);
  free(w);
}

/* -- writing ----------------------------------------------------------------------------------------------------- */

sn_status sn_weights_save(const char *path, sn_save what, const sn_state *state, sn_err *err) {
  list l;
  if (list_net(state->net, what, state->freeze, &l, err) != SN_OK) return err->code;
  sn__tensor_source *tensors = sn_arena_alloc(l.arena, l.count, sizeof *tensors);
  for (uint32_t i = 0; tensors && i < l.count; i++) {
    tensors[i] = l.entries[i].tensor;
    tensors[i].from = place_of(&l.entries[i], state, what);
  }
  if (tensors)
    sn__tensor_file_write(path, state->net->name, holds[what], tensors, l.count, err);
  else
    sn_fail_memory(err);
  list_free(&l);
  return err->code;
}

sn_status sn_weight_files_save(const sn_weight_files *files, const sn_state *state, sn_err *err) {
  if (files->save) sn_weights_save(files->save, SN_SAVE_WEIGHTS, state, err);
  if (files->gradients && err->code == SN_OK) sn_weights_save(files->gradients, SN_SAVE_GRADIENTS, state, err);
  return err->code;
}
