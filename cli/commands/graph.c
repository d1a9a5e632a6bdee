/* `snsim graph`: the iteration of a network as a dialect makes it, before any strategy: every step with what it reads
 * and makes, and which bytes it may take over. As a table, as JSON, or as a graph for Graphviz. */
#include "cli/frame/json.h"
#include "cli/options/options.h"
#include "cli/options/table.h"
#include "models/zoo/zoo.h"
#include "sim/graph/route.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_ROOM = 4096, LISTED = 6, MIB = 1 << 20 };

static bool is_listed(sn_access access, bool reads) {
  return access.mode == SN_MODIFY || (access.mode == SN_READ) == reads;
}

/* Names of what a step reads or makes, parted by blanks. A CONCAT may have thousands, and the last update of an eager
 * dialect reads the gradients of all parameters: of many the first are named, and how many more there are. */
static void list_tensors(const sn_route *r, const sn_step *step, bool reads, char text[CELL_ROOM]) {
  size_t used = 0;
  uint32_t count = 0, named = 0;
  for (uint32_t i = 0; i < step->n_accesses; i++) count += is_listed(r->accesses[step->first_access + i], reads);
  uint32_t most = count > LISTED + 1 ? LISTED : count;
  snprintf(text, CELL_ROOM, "-");
  for (uint32_t i = 0; i < step->n_accesses && named < most; i++) {
    sn_access access = r->accesses[step->first_access + i];
    char name[SN_TENSOR_NAME];
    if (!is_listed(access, reads)) continue;
    used += (size_t)snprintf(text + used, CELL_ROOM - used, "%s%s", named++ ? " " : "",
                             sn_tensor_name(r, access.tensor, name, sizeof name));
  }
  if (named < count) snprintf(text + used, CELL_ROOM - used, " and %" PRIu32 " more", count - named);
}

static uint32_t tensor_of(const sn_route *r, const sn_step *step, uint32_t access) {
  return r->accesses[step->first_access + access].tensor;
}

/* "relu1.y<conv1.y": may take the bytes of. */
static void list_permits(const sn_route *r, const sn_step *step, char text[CELL_ROOM]) {
  size_t used = 0;
  snprintf(text, CELL_ROOM, "-");
  for (uint32_t i = 0; i < step->n_permits && used + (size_t)2 * SN_TENSOR_NAME < CELL_ROOM; i++) {
    char name[SN_TENSOR_NAME];
    sn_permit p = r->permits[step->first_permit + i];
    used += (size_t)snprintf(text + used, CELL_ROOM - used, "%s%s", used ? " " : "",
                             sn_tensor_name(r, tensor_of(r, step, p.from), name, sizeof name));
  }
}

static uint64_t made_bytes(const sn_route *r, const sn_step *step) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < step->n_accesses; i++)
    if (r->accesses[step->first_access + i].mode == SN_WRITE) bytes += r->tensors[tensor_of(r, step, i)].bytes;
  return bytes;
}

/* ---- as a table ---- */

static void put_step(sn_table *table, const sn_route *r, uint32_t s, char *room) {
  const sn_step *step = &r->steps[s];
  const sn_layer *layer = &r->layers[step->layer];
  sn_table_cell(table, "%" PRIu32, s + 1);
  snprintf(room, CELL_ROOM, "%s", layer->name);
  sn_table_cell(table, "%s", sn_table_clean(room));
  sn_table_cell(table, "%s", sn_step_op_name(r, step));
  sn_table_cell(table, "%s", sn_pass_name(step->pass));
  list_tensors(r, step, true, room);
  sn_table_cell(table, "%s", sn_table_clean(room));
  list_tensors(r, step, false, room);
  sn_table_cell(table, "%s", sn_table_clean(room));
  if (made_bytes(r, step) > 0)
    sn_table_cell(table, "%.3f", (double)made_bytes(r, step) / MIB);
  else
    sn_table_cell(table, "-");
  list_permits(r, step, room);
  sn_table_cell(table, "%s", sn_table_clean(room));
}

static void print_sums(const sn_route *r, FILE *out) {
  static const char *const plural[SN_ROLES] = {"outputs", "gradients", "saved for backward", "parameters' gradients",
                                               "scratch", "carried"};
  uint64_t bytes[SN_ROLES] = {0};
  uint32_t count[SN_ROLES] = {0}, steps[SN_PASSES] = {0}, sums = 0;
  const char *separator = "";
  for (uint32_t t = 0; t < r->n_tensors; t++)
    bytes[r->tensors[t].role] += r->tensors[t].bytes, count[r->tensors[t].role]++;
  for (uint32_t s = 0; s < r->n_steps; s++) {
    steps[r->steps[s].pass]++;
    sums += r->steps[s].pass == SN_BACKWARD && r->layers[r->steps[s].layer].op == SN_FORK;
  }
  fprintf(out, "\n%" PRIu32 " steps: %" PRIu32 " forward", r->n_steps, steps[SN_FORWARD]);
  if (r->n_steps > steps[SN_FORWARD])
    fprintf(out, ", %" PRIu32 " backward, of which %" PRIu32 " sum gradients, %" PRIu32 " updates", steps[SN_BACKWARD],
            sums, steps[SN_UPDATE]);
  fprintf(out, "\n%" PRIu32 " tensors, %.3f MiB if none shared memory: ", r->n_tensors, (double)r->tensor_bytes / MIB);
  for (sn_role role = 0; role < SN_ROLES; role++) {
    if (count[role] == 0) continue;
    fprintf(out, "%s%" PRIu32 " %s %.3f MiB", separator, count[role], plural[role], (double)bytes[role] / MIB);
    separator = ", ";
  }
  fputs("\n", out);
}

static sn_status print_table(const sn_route *r, const sn_args *args, const sn_out *out, sn_err *err) {
  static const sn_table_column columns[] = {
      {"", "step", SN_TABLE_NUMBER},     {"", "layer", SN_TABLE_TEXT},
      {"", "op", SN_TABLE_TEXT},         {"", "pass", SN_TABLE_TEXT},
      {"", "reads", SN_TABLE_TEXT},      {"", "makes", SN_TABLE_TEXT},
      {"makes", "MiB", SN_TABLE_NUMBER}, {"may take the", "bytes of", SN_TABLE_TEXT},
  };
  char *room = malloc(CELL_ROOM);
  sn_table *table = sn_table_new(columns, sizeof columns / sizeof columns[0]);
  fprintf(out->stream, "%s, batch %" PRIu32 ", dialect %s%s%s%s%s\n%s\n\n", r->name, r->batch, r->dialect->name,
          args->options.iteration.precision == SN_FP32 ? "" : ", ",
          args->options.iteration.precision == SN_FP32 ? "" : sn_iteration_precision_name(args->options.iteration),
          *args->freeze ? ", frozen: " : "", args->freeze, r->dialect->summary);
  for (uint32_t s = 0; s < r->n_steps && room; s++) put_step(table, r, s, room);
  if (!room)
    sn_fail_memory(err);
  else if (sn_table_print(table, out->stream, out->color, err) == SN_OK)
    print_sums(r, out->stream);
  sn_table_free(table);
  free(room);
  return err->code;
}

/* ---- as JSON ---- */

static void put_ids(const sn_route *r, const sn_step *step, bool reads, FILE *out) {
  const char *separator = "";
  fprintf(out, ",\"%s\":[", reads ? "reads" : "writes");
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = r->accesses[step->first_access + i];
    if (!is_listed(access, reads)) continue;
    fprintf(out, "%s%" PRIu32, separator, access.tensor);
    separator = ",";
  }
  fputs("]", out);
}

static void put_permits(const sn_route *r, const sn_step *step, FILE *out) {
  fputs(",\"permits\":[", out);
  for (uint32_t i = 0; i < step->n_permits; i++) {
    sn_permit p = r->permits[step->first_permit + i];
    fprintf(out, "%s{\"from\":%" PRIu32 ",\"to\":%" PRIu32 "}", i ? "," : "", tensor_of(r, step, p.from),
            tensor_of(r, step, p.to));
  }
  fputs("]}", out);
}

static sn_status put_json_step(const sn_route *r, uint32_t s, FILE *out, sn_err *err) {
  const sn_step *step = &r->steps[s];
  sn_json_object o = sn_json_begin();
  sn_json_put_count(&o, "step", s + 1);
  sn_json_put_text(&o, "layer", r->layers[step->layer].name);
  sn_json_put_text(&o, "op", sn_step_op_name(r, step));
  sn_json_put_text(&o, "pass", sn_pass_name(step->pass));
  if (sn_json_end(&o, s ? ",\n" : "\n", true, "", out, err) != SN_OK) return err->code;
  put_ids(r, step, true, out);
  put_ids(r, step, false, out);
  put_permits(r, step, out);
  return SN_OK;
}

static sn_status put_json_tensor(const sn_route *r, uint32_t t, FILE *out, sn_err *err) {
  char name[SN_TENSOR_NAME];
  sn_json_object o = sn_json_begin();
  sn_json_put_count(&o, "id", t);
  sn_json_put_text(&o, "name", sn_tensor_name(r, t, name, sizeof name));
  sn_json_put_text(&o, "role", sn_role_name(r->tensors[t].role));
  sn_json_put_count(&o, "bytes", r->tensors[t].bytes);
  return sn_json_end(&o, t ? ",\n" : "\n", false, "", out, err);
}

static sn_status print_json(const sn_route *r, const sn_args *args, FILE *out, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "net", r->name);
  sn_json_put_count(&o, "batch", r->batch);
  sn_json_put_text(&o, "dialect", r->dialect->name);
  sn_json_put_text(&o, "order", sn_order_name(args->order));
  if (args->options.iteration.precision != SN_FP32)
    sn_json_put_text(&o, "precision", sn_iteration_precision_name(args->options.iteration));
  if (*args->freeze) sn_json_put_text(&o, "freeze", args->freeze);
  sn_json_put_count(&o, "tensor_bytes", r->tensor_bytes);
  sn_json_end(&o, "", true, ",\n\"tensors\":[", out, err);
  for (uint32_t t = 0; t < r->n_tensors && err->code == SN_OK; t++) put_json_tensor(r, t, out, err);
  fputs("\n],\n\"steps\":[", out);
  for (uint32_t s = 0; s < r->n_steps && err->code == SN_OK; s++) put_json_step(r, s, out, err);
  fputs("\n],\n\"network\":", out);
  if (err->code == SN_OK) sn_net_write_json(r->net, out, err);
  fputs("}\n", out);
  return err->code;
}

/* ---- for Graphviz ---- */

/* In quotes, as DOT wants it. */
static void put_quoted(const char *text, FILE *out) {
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') fputc('\\', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

/* An edge from each step that makes or changes a tensor to those that read what it left; dashed where its bytes may be
 * taken. */
static void put_edges(const sn_route *r, uint32_t s, uint32_t *writer, FILE *out) {
  const sn_step *step = &r->steps[s];
  for (uint32_t i = 0; i < step->n_accesses; i++) {
    sn_access access = r->accesses[step->first_access + i];
    char name[SN_TENSOR_NAME];
    bool taken = false;
    for (uint32_t p = 0; p < step->n_permits; p++) taken = taken || r->permits[step->first_permit + p].from == i;
    if (access.mode != SN_WRITE) {
      fprintf(out, "  s%" PRIu32 " -> s%" PRIu32 " [label=", writer[access.tensor] + 1, s + 1);
      put_quoted(sn_tensor_name(r, access.tensor, name, sizeof name), out);
      fprintf(out, "%s];\n", taken ? ", style=dashed" : "");
    }
    if (access.mode != SN_READ) writer[access.tensor] = s;
  }
}

static sn_status print_dot(const sn_route *r, FILE *out, sn_err *err) {
  static const char *const colors[SN_PASSES] = {"#cfe3f6", "#f9d9c6", "#e4e4e4"};
  uint32_t *writer = calloc((size_t)r->n_tensors + 1, sizeof *writer);
  if (!writer) return sn_fail_memory(err);
  fputs("digraph ", out);
  put_quoted(r->name, out);
  fputs(" {\n  node [shape=box, style=filled, fontname=sans];\n  edge [fontname=sans, fontsize=10];\n", out);
  for (uint32_t s = 0; s < r->first_update; s++) {
    char label[SN_TENSOR_NAME];
    const sn_layer *layer = &r->layers[r->steps[s].layer];
    bool kernel = r->dialect->by_kernel && r->steps[s].kernel != SN_WHOLE;
    const char *what = r->steps[s].kernel == SN_FLATTEN ? " flatten" : "";
    snprintf(label, sizeof label, "%" PRIu32 " %.100s%s %s%s%s", s + 1, layer->name, what,
             sn_pass_name(r->steps[s].pass), kernel ? " " : "", kernel ? sn_step_op_name(r, &r->steps[s]) : "");
    fprintf(out, "  s%" PRIu32 " [fillcolor=\"%s\", label=", s + 1, colors[r->steps[s].pass]);
    put_quoted(label, out);
    fputs("];\n", out);
  }
  for (uint32_t s = 0; s < r->first_update; s++) put_edges(r, s, writer, out);
  fputs("}\n", out);
  free(writer);
  return SN_OK;
}

/* ---- the command ---- */

static bool ends_in(const char *path, const char *ending) {
  size_t length = path ? strlen(path) : 0, end = strlen(ending);
  return length > end && strcmp(path + length - end, ending) == 0;
}

static sn_status print(const sn_args *args, const sn_route *route, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  if (args->json || ends_in(args->output, ".json"))
    print_json(route, args, out.stream, err);
  else if (ends_in(args->output, ".dot"))
    print_dot(route, out.stream, err);
  else
    print_table(route, args, &out, err);
  return sn_out_close(&out, err);
}

static sn_route *make_route(const sn_net *net, const sn_args *args, sn_err *err) {
  const sn_iteration iteration = {.inference = args->options.iteration.inference,
                                  .precision = args->options.iteration.precision,
                                  .freeze = args->freeze};
  if (sn_net_check_training(net, args->options.iteration.inference, err) != SN_OK ||
      sn_freeze_check(args->freeze, net, err) != SN_OK)
    return NULL;
  return sn_route_new_for(net, args->dialect, args->order, iteration, NULL, err);
}

sn_status sn_cli_graph(const sn_args *args, sn_err *err) {
  if (!args->net) return sn_fail(err, SN_BAD_USAGE, "--net is missing; for instance: snsim graph --net lenet");
  sn_net *net = sn_net_load(args->net, args->batch ? args->batch : 1, args->image, err);
  sn_route *route = net ? make_route(net, args, err) : NULL;
  if (route) print(args, route, err);
  sn_route_free(route);
  sn_net_free(net);
  return err->code;
}
