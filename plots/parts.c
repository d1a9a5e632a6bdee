/* Parts: what memory and time are made of, each with one colour and letter in every picture and page. The report's page
 * gets its colours from here too (page_data.c). */
#include "models/zoo/zoo.h"
#include "plots/plot_internal.h"

#include <stdlib.h>
#include <string.h>

const sn__part sn__parts[SN__PARTS] = {
    [SN__PART_CONTEXT] = {"", "context", "#5f6f80", 'x'},
    [SN__PART_PARAMETERS] = {"", "parameters", "#8797a8", 'p'},
    [SN__PART_GRADIENTS] = {"", "their gradients", "#a9b7c4", 'g'},
    [SN__PART_OPTIMIZER] = {"", "momentum", "#c6d1da", 'm'},
    [SN__PART_DATA] = {"", "input, masks", "#dfe6ec", 'd'},
    [SN__PART_CONV] = {"CONV", "CONV", SN__BLUE, 'C'},
    [SN__PART_FC] = {"FC", "FC", SN__VERMILLION, 'F'},
    [SN__PART_BN] = {"BN", "BN", SN__GREEN, 'B'},
    [SN__PART_ACT] = {"ACT", "ACT", SN__ORANGE, 'A'},
    [SN__PART_POOL] = {"POOL", "POOL", SN__SKY_BLUE, 'P'},
    [SN__PART_LRN] = {"LRN", "LRN", SN__PURPLE, 'L'},
    [SN__PART_CONCAT] = {"CONCAT", "CONCAT", SN__YELLOW, 'T'},
    [SN__PART_JOIN] = {"JOIN", "JOIN", "#7e57c2", 'J'},
    [SN__PART_FORK] = {"FORK", "FORK", "#9c6b3f", 'Y'},
    [SN__PART_ATTENTION] = {"ATTENTION", "ATTENTION", "#882255", 'Q'},
    [SN__PART_NORM] = {"LAYER_NORM", "norms", "#44aa99", 'N'},
    [SN__PART_MUL] = {"MUL", "MUL, SCALE", "#ddcc77", 'M'},
    [SN__PART_DROPOUT] = {"DROPOUT", "DROPOUT", "#999933", 'D'},
    [SN__PART_EMBEDDING] = {"EMBEDDING", "EMBEDDING", "#117733", 'E'},
    [SN__PART_SOFTMAX] = {"SOFTMAX", "loss", "#4433a8", 'S'},
    [SN__PART_OTHER] = {"", "RESHAPE, SLICE and the like", "#8c8c8c", 'o'},
    [SN__PART_WORKSPACE] = {"", "workspace", "#555555", 'w'},
    [SN__PART_HOLES] = {"", "holes", "#f6c9bd", '.'},
    [SN__PART_WAITING] = {"", "waiting, updates", "#e0e0e0", '~'},
    [SN__PART_SIDE_BY_SIDE] = {"", "operations side by side", "#bcbddc", '='},
};

const char *sn__part_name(unsigned part, const sn_run *run) {
  bool other = part == SN__PART_OPTIMIZER &&
               (strcmp(run->conditions.optimizer, "momentum") != 0 || sn_net_is_recording(run->net));
  return other ? "optimizer state" : sn__parts[part].name;
}

/* Operators that are told with another one: products with FCs, what attention is made of, .. */
static const struct {
  const char *op;
  unsigned part;
} alike[] = {{"DECONV", SN__PART_CONV},      {"EXPERTS", SN__PART_FC},       {"PROBABILITIES", SN__PART_ATTENTION},
             {"MATMUL", SN__PART_ATTENTION}, {"ROTARY", SN__PART_ATTENTION}, {"RMS_NORM", SN__PART_NORM},
             {"GROUP_NORM", SN__PART_NORM},  {"SCALE", SN__PART_MUL},        {"POSITION", SN__PART_EMBEDDING},
             {"TOKEN", SN__PART_EMBEDDING}};

/* Words in the names of PyTorch's operations, as recordings have them; the first one counts. */
static const struct {
  const char *word;
  unsigned part;
} words[] = {{"conv", SN__PART_CONV},       {"attention", SN__PART_ATTENTION},
             {"norm", SN__PART_NORM},       {"embedding", SN__PART_EMBEDDING},
             {"dropout", SN__PART_DROPOUT}, {"pool", SN__PART_POOL},
             {"softmax", SN__PART_SOFTMAX}, {"nll_loss", SN__PART_SOFTMAX},
             {"addmm", SN__PART_FC},        {"bmm", SN__PART_ATTENTION},
             {"mm", SN__PART_FC},           {"rnn", SN__PART_FC},
             {"relu", SN__PART_ACT},        {"gelu", SN__PART_ACT},
             {"silu", SN__PART_ACT},        {"sigmoid", SN__PART_ACT},
             {"tanh", SN__PART_ACT},        {"threshold", SN__PART_ACT},
             {"cat", SN__PART_CONCAT},      {"add", SN__PART_JOIN},
             {"mul", SN__PART_MUL}};

static unsigned part_of_operation(const char *name) {
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strstr(name, words[i].word)) return words[i].part;
  return SN__PART_OTHER;
}

unsigned sn__part_of(const char *op) {
  for (size_t i = 0; i < sizeof alike / sizeof alike[0]; i++)
    if (strcmp(alike[i].op, op) == 0) return alike[i].part;
  for (unsigned i = SN__PART_CONV; i < SN__PART_OTHER; i++)
    if (strcmp(sn__parts[i].op, op) == 0) return i;
  return part_of_operation(op);
}

static int by_layer(const void *a, const void *b) {
  const sn__owner *x = a, *y = b;
  return strcmp(x->layer, y->layer);
}

void sn__owners_sort(sn__owner *owners, uint32_t count) {
  qsort(owners, count, sizeof *owners, by_layer);
}

unsigned sn__owner_part(const sn__owner *owners, uint32_t count, const char *layer) {
  const sn__owner *found = bsearch(&(sn__owner){.layer = layer}, owners, count, sizeof *owners, by_layer);
  return found ? sn__part_of(found->op) : SN__PART_OTHER;
}

uint8_t *sn__tensor_parts(const sn_timeline *t, sn_err *err) {
  sn__owner *owners = calloc((size_t)t->n_steps + 1, sizeof *owners);
  uint8_t *parts = malloc((size_t)t->n_tensors + 1);
  if (!owners || !parts) {
    sn_fail_memory(err);
    free(owners);
    free(parts);
    return NULL;
  }
  for (uint32_t i = 0; i < t->n_steps; i++) owners[i] = (sn__owner){t->steps[i].layer, t->steps[i].op};
  sn__owners_sort(owners, t->n_steps);
  for (uint32_t i = 0; i < t->n_tensors; i++)
    parts[i] = (uint8_t)sn__owner_part(owners, t->n_steps, t->tensors[i].layer);
  free(owners);
  return parts;
}

uint64_t sn__resident_part(const sn_result *r, unsigned part) {
  const sn_persistent *p = &r->persistent;
  switch (part) {
  case SN__PART_CONTEXT:
    return r->context_bytes;
  case SN__PART_PARAMETERS:
    return p->parameters;
  case SN__PART_GRADIENTS:
    return p->parameter_gradients;
  case SN__PART_OPTIMIZER:
    return p->optimizer_state;
  case SN__PART_DATA:
    return p->auxiliary + p->input_batch + p->labels;
  default:
    return 0;
  }
}
