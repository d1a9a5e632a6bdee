/* Operations of PyTorch that its exporter took apart; see models/onnx/onnx_internal.h.
 *
 * The exporter says of every node which call of PyTorch it is of. Nodes of one call stand one behind the other, and the
 * last of them makes what the call returns: where a rule below knows the call, they become what it is, not what they
 * are by themselves. Of the nodes between only those are looked at that compute constants, which nodes of other calls
 * may read, too. */
#include "models/onnx/onnx_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a call says ---- */

/* An argument, "%transpose_2" or "0.1"; no characters: it has none such. */
typedef struct argument {
  const char *text;
  size_t length;
} argument;

/* The first item of a list, up to a comma or its end that is in no brackets. */
static argument item_of(const char *list) {
  size_t length = 0;
  for (int depth = 0; list[length]; length++) {
    if (strchr("([{", list[length])) depth++;
    if (strchr(")]}", list[length]) && depth-- == 0) break;
    if (list[length] == ',' && depth == 0) break;
  }
  return (argument){list, length};
}

static const char *behind(const argument *item) {
  const char *at = item->text + item->length;
  return *at == ',' ? at + 1 + (at[1] == ' ') : NULL;
}

/* The n-th of those without names, or the one of that name. */
static argument argument_of(const char *call, uint32_t n, const char *name) {
  static const char positional[] = "(args = (", named[] = "kwargs = {";
  const char *at = strstr(call, positional), *words = strstr(call, named);
  argument none = {"", 0}, item;
  for (at = at ? at + strlen(positional) : NULL; at; at = behind(&item)) {
    item = item_of(at);
    if (n-- == 0) return item;
  }
  size_t length = strlen(name);
  for (at = words ? words + strlen(named) : NULL; at; at = behind(&item)) {
    item = item_of(at);
    if (item.length > length + 2 && strncmp(item.text, name, length) == 0 && item.text[length] == ':')
      return (argument){item.text + length + 2, item.length - length - 2};
  }
  return none;
}

static bool is_true(argument a) {
  return a.length == 4 && strncmp(a.text, "True", 4) == 0;
}

/* What it says where it is a number, else 0. */
static double number_of(argument a) {
  return a.length > 0 ? strtod(a.text, NULL) : 0;
}

/* The value of the graph that the argument is, made before. */
static const sn__onnx_value *value_of(sn__importer *m, argument a) {
  char name[120];
  if (a.length < 2 || *a.text != '%' || a.length > sizeof name) return NULL;
  memcpy(name, a.text + 1, a.length - 1);
  name[a.length - 1] = '\0';
  return sn__onnx_named(m, name);
}

/* ---- rules ---- */

static bool can_attend(sn__importer *m, const sn__onnx_value *in[3]) {
  for (uint32_t i = 0; i < 3; i++) {
    static const char *const names[] = {"query", "key", "value"};
    in[i] = value_of(m, argument_of(m->node->call, i, names[i]));
    if (!in[i] || in[i]->kind != SN__ONNX_LAYER || in[i]->half || in[i]->sequence || in[i]->rank < 3) return false;
  }
  return true;
}

static sn_status attention(sn__importer *m) {
  const char *call = m->node->call;
  const sn__onnx_value *in[3];
  if (!can_attend(m, in)) return sn__onnx_fail(m, "its queries, keys and values are not made before it");
  const sn_attr a = {.ratio = number_of(argument_of(call, 4, "dropout_p")),
                     .causal = is_true(argument_of(call, 5, "is_causal"))};
  return sn__onnx_attend(m, in, &a);
}

static const struct {
  const char *call;
  sn__onnx_rule rule;
} rules[] = {{"scaled_dot_product_attention", attention}};

static sn__onnx_rule rule_of_call(const char *call) {
  static const char target[] = "target=torch.ops.aten.";
  const char *at = strstr(call, target);
  for (size_t i = 0; at && i < sizeof rules / sizeof rules[0]; i++) {
    const size_t length = strlen(rules[i].call);
    if (strncmp(at + strlen(target), rules[i].call, length) == 0 && at[strlen(target) + length] == '.')
      return rules[i].rule;
  }
  return NULL;
}

sn__onnx_rule sn__onnx_call(const sn__importer *m, uint32_t from, uint32_t *last) {
  const sn__onnx_node *nodes = m->model.nodes;
  const char *call = nodes[from].call;
  sn__onnx_rule rule = *call && strcmp(nodes[from].op, "Constant") != 0 ? rule_of_call(call) : NULL;
  *last = from;
  for (uint32_t i = from + 1; rule && i < m->model.n_nodes; i++) {
    if (nodes[i].call == call)
      *last = i;
    else if (strcmp(nodes[i].op, "Constant") != 0)
      break;
  }
  return *last > from ? rule : NULL;
}

bool sn__onnx_computes_constant(sn__importer *m) {
  bool constant = sn__onnx_rule_of(m->node) != NULL || sn__onnx_folds(m->node);
  for (uint32_t i = 0; constant && i < m->node->n_inputs; i++) {
    const sn__onnx_value *v = sn__onnx_input(m, i);
    bool known = v && v->kind != SN__ONNX_UNKNOWN && v->kind != SN__ONNX_LOST;
    constant = !*m->node->inputs[i] || (known && (v->kind == SN__ONNX_CONSTANT || strcmp(m->node->op, "Shape") == 0));
  }
  return constant;
}
