/* `snsim list nets|gpus|clusters|strategies`. Every network is built once, for one image, to tell its size. GPUs are those known
 * and those measured by `snsim calibrate`, which stand in for a known one of their name as they do in simulations. */
#include "base/arena.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/frame/json.h"
#include "cli/frame/stored.h"
#include "cli/options/options.h"
#include "cli/options/table.h"
#include "db/calibrations.h"
#include "models/zoo/zoo.h"
#include "sim/cluster/cluster.h"

#include <inttypes.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

/* One row of any of the lists goes to a table or to a JSON array. */
typedef struct lister {
  const sn_args *args;
  const sn_out *out;
  sn_table *table; /* NULL: JSON */
  bool begun;
} lister;

static const char *separator(lister *l) {
  const char *text = l->begun ? ",\n" : "\n";
  l->begun = true;
  return text;
}

static sn_status put_net(lister *l, const sn_zoo_entry *entry, sn_err *err) {
  char parameters[SN_UNIT_TEXT], macs[SN_UNIT_TEXT];
  sn_net *net = sn_net_load(entry->name, 1, 0, err);
  if (!net) return err->code;
  if (l->table) {
    sn_table_cell(l->table, "%s", entry->name);
    sn_table_cell(l->table, "%" PRIu32, entry->image);
    sn_table_cell(l->table, "%" PRIu32, net->n_layers);
    sn_table_cell(l->table, "%s", sn_print_count(net->parameters, parameters));
    sn_table_cell(l->table, "%s", sn_print_count(net->macs, macs));
    sn_table_cell(l->table, "%s", entry->description);
  } else {
    sn_json_object o = sn_json_begin();
    sn_json_put_text(&o, "name", entry->name);
    sn_json_put_count(&o, "image", entry->image);
    sn_json_put_count(&o, "layers", net->n_layers);
    sn_json_put_count(&o, "parameters", net->parameters);
    sn_json_put_count(&o, "multiply_adds_per_image", net->macs);
    sn_json_put_text(&o, "description", entry->description);
    sn_json_end(&o, separator(l), false, "", l->out->stream, err);
  }
  sn_net_free(net);
  return err->code;
}

static sn_status list_nets(lister *l, sn_err *err) {
  uint32_t count;
  const sn_zoo_entry *entries = sn_zoo_entries(&count);
  for (uint32_t i = 0; i < count; i++)
    if (put_net(l, &entries[i], err) != SN_OK) return err->code;
  return SN_OK;
}

static const char *times_of(const sn_device *d, bool calibrated) {
  return calibrated ? "measured" : sn_times_from_name(d->times_from);
}

static void gpu_cells(sn_table *table, const sn_device *d, bool calibrated) {
  char text[SN_UNIT_TEXT];
  sn_table_cell(table, "%s", d->name);
  sn_table_cell(table, "%s%s", sn_print_bytes(d->memory_bytes, text), d->memory_nominal ? "*" : "");
  sn_table_cell(table, "%s", sn_print_bytes(d->context_bytes, text));
  sn_table_cell(table, "%.1f", d->memory_bandwidth / 1e9);
  sn_table_cell(table, "%.2f", d->flops / 1e12);
  sn_table_cell(table, "%.1f", d->link_bandwidth[SN_EXTERNAL_HOST] / 1e9);
  sn_table_cell(table, "%s", times_of(d, calibrated));
  sn_table_cell(table, "%s", d->description);
}

static sn_status write_gpu(lister *l, const sn_device *d, bool calibrated, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "name", d->name);
  sn_json_put_count(&o, "memory_bytes", d->memory_bytes);
  sn_json_put_bool(&o, "memory_nominal", d->memory_nominal);
  sn_json_put_count(&o, "context_bytes", d->context_bytes);
  sn_json_put_count(&o, "host_memory_bytes", d->host_memory_bytes);
  sn_json_put_real(&o, "memory_bandwidth", d->memory_bandwidth);
  sn_json_put_real(&o, "flops", d->flops);
  sn_json_put_real(&o, "host_bandwidth", d->link_bandwidth[SN_EXTERNAL_HOST]);
  sn_json_put_real(&o, "peer_bandwidth", d->link_bandwidth[SN_EXTERNAL_PEER]);
  sn_json_put_real(&o, "remote_bandwidth", d->link_bandwidth[SN_EXTERNAL_REMOTE]);
  sn_json_put_real(&o, "disk_bandwidth", d->link_bandwidth[SN_EXTERNAL_DISK]);
  sn_json_put_bool(&o, "calibrated", calibrated);
  sn_json_put_text(&o, "times", times_of(d, calibrated));
  sn_json_put_text(&o, "description", d->description);
  return sn_json_end(&o, separator(l), false, "", l->out->stream, err);
}

static sn_status put_gpu(lister *l, const sn_device *device, bool calibrated, sn_err *err) {
  if (!l->table) return write_gpu(l, device, calibrated, err);
  gpu_cells(l->table, device, calibrated);
  return SN_OK;
}

/* What was measured, the newest of each name. */
typedef struct measured {
  sn_arena *arena;
  sn_device *devices;
  uint32_t count, room;
} measured;

static const sn_device *find_measured(const measured *m, const char *name) {
  for (uint32_t i = 0; i < m->count; i++)
    if (strcmp(m->devices[i].name, name) == 0) return &m->devices[i];
  return NULL;
}

static sn_status add_measured(void *user, const sn_calibration *c, sn_err *err) {
  measured *m = user;
  if (find_measured(m, c->name)) return SN_OK;
  if (m->count == m->room) {
    uint32_t room = m->room ? 2 * m->room : 8;
    sn_device *devices = sn_arena_alloc(m->arena, room, sizeof *devices);
    if (!devices) return sn_fail_memory(err);
    if (m->count) memcpy(devices, m->devices, m->count * sizeof *devices);
    m->devices = devices;
    m->room = room;
  }
  sn_device *d = &m->devices[m->count++];
  *d = c->profile;
  snprintf(d->name, sizeof d->name, "%s", c->name);
  snprintf(d->description, sizeof d->description, "measured: %.180s", c->hardware);
  return SN_OK;
}

/* A store in which nothing was stored yet has none. */
static sn_status read_measured(const sn_args *args, measured *m, sn_err *err) {
  char path[PATH_ROOM];
  sn_err nothing = SN_ERR_INIT;
  m->arena = sn_arena_new();
  if (!m->arena) return sn_fail_memory(err);
  if (sn_args_database(args, path, sizeof path, args->db ? err : &nothing) != SN_OK) return err->code;
  if (sn_stored_is_nothing(path)) {
    if (args->db) sn_out_say("%.300s: nothing was measured yet; snsim calibrate does it", path);
    return SN_OK;
  }
  sn_store *store = sn_store_open_read(path, err);
  if (store) sn_store_each_calibration(store, add_measured, m, err);
  sn_store_close(store);
  return err->code;
}

static sn_status put_gpus(lister *l, const measured *m, sn_err *err) {
  sn_device device;
  for (uint32_t i = 0; i < sn_device_count(); i++) {
    if (sn_device_known(i, &device, err) != SN_OK) return err->code;
    const sn_device *own = find_measured(m, device.name);
    if (put_gpu(l, own ? own : &device, own != NULL, err) != SN_OK) return err->code;
  }
  for (uint32_t i = 0; i < m->count; i++)
    if (!sn_device_is_known(m->devices[i].name) && put_gpu(l, &m->devices[i], true, err) != SN_OK) return err->code;
  return SN_OK;
}

static sn_status list_gpus(lister *l, sn_err *err) {
  measured m = {0};
  if (read_measured(l->args, &m, err) == SN_OK) put_gpus(l, &m, err);
  sn_arena_free(m.arena);
  return err->code;
}

/* "370 of 450" */
static void link_cell(sn_table *table, const sn_cluster_link *link) {
  sn_table_cell(table, "%.4g of %.4g", link->bus / 1e9, link->line / 1e9);
}

static void cluster_cells(sn_table *table, const sn_cluster *c) {
  char text[SN_UNIT_TEXT];
  sn_table_cell(table, "%s", c->name);
  sn_table_cell(table, "%" PRIu32, c->nodes);
  sn_table_cell(table, "%" PRIu32 " %s", c->gpus_per_node, c->gpu);
  sn_table_cell(table, "%s", sn_fabric_name(c->fabric));
  link_cell(table, &c->node);
  if (c->nics > 0) {
    sn_table_cell(table, "%" PRIu32, c->nics);
    link_cell(table, &c->net);
  } else {
    sn_table_cell(table, "none");
    sn_table_cell(table, "-");
  }
  sn_table_cell(table, "%s", sn_print_bytes(c->communicator_bytes, text));
  sn_table_cell(table, "%s", c->description);
}

static sn_status write_cluster(lister *l, const sn_cluster *c, sn_err *err) {
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "name", c->name);
  sn_json_put_text(&o, "gpu", c->gpu);
  sn_json_put_count(&o, "gpus_per_node", c->gpus_per_node);
  sn_json_put_count(&o, "nodes", c->nodes);
  sn_json_put_text(&o, "link", sn_fabric_word(c->fabric));
  sn_json_put_real(&o, "node_line", c->node.line);
  sn_json_put_real(&o, "node_bus", c->node.bus);
  sn_json_put_count(&o, "nics", c->nics);
  sn_json_put_real(&o, "net_line", c->net.line);
  sn_json_put_real(&o, "net_bus", c->net.bus);
  sn_json_put_count(&o, "communicator_bytes", c->communicator_bytes);
  sn_json_put_text(&o, "description", c->description);
  return sn_json_end(&o, separator(l), false, "", l->out->stream, err);
}

static sn_status list_clusters(lister *l, sn_err *err) {
  sn_cluster cluster;
  for (uint32_t i = 0; i < sn_cluster_count() && sn_cluster_known(i, &cluster, err) == SN_OK; i++)
    if (l->table)
      cluster_cells(l->table, &cluster);
    else
      write_cluster(l, &cluster, err);
  return err->code;
}

static sn_status put_strategy(lister *l, const char *name, const char *summary, sn_err *err) {
  if (l->table) {
    sn_table_cell(l->table, "%s", name);
    sn_table_cell(l->table, "%s", summary);
    return SN_OK;
  }
  sn_json_object o = sn_json_begin();
  sn_json_put_text(&o, "name", name);
  sn_json_put_text(&o, "description", summary);
  return sn_json_end(&o, separator(l), false, "", l->out->stream, err);
}

static sn_status list_strategies(lister *l, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  for (uint32_t i = 0; i < SN_STRATEGY_FRAMEWORKS; i++) {
    sn_strategy framework = sn_strategy_framework(i);
    if (put_strategy(l, sn_strategy_name(framework, name), sn_strategy_summary(framework), err) != SN_OK)
      return err->code;
  }
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
    sn_strategy s = sn_strategy_default(i);
    if (put_strategy(l, sn_strategy_name(s, name), sn_strategy_summary(s), err) != SN_OK) return err->code;
  }
  static const sn_recompute checkpoints[] = {SN_RECOMPUTE_SELECTIVE, SN_RECOMPUTE_ATTENTION, SN_RECOMPUTE_OPTIMAL};
  for (size_t i = 0; i < sizeof checkpoints / sizeof *checkpoints; i++) {
    sn_strategy of = {.dialect = SN_DIALECT_PYTORCH, .liveness = SN_LIVENESS_FULL, .recompute = checkpoints[i]};
    if (put_strategy(l, sn_strategy_name(of, name), sn_strategy_summary(of), err) != SN_OK) return err->code;
  }
  for (sn_recompute r = SN_RECOMPUTE_SQRT; r <= SN_RECOMPUTE_DTR; r++) {
    sn_strategy stages = {.liveness = SN_LIVENESS_FULL, .recompute = r};
    if (put_strategy(l, sn_strategy_name(stages, name), sn_strategy_summary(stages), err) != SN_OK) return err->code;
  }
  sn_strategy both = {.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_PLANNED, .recompute = SN_RECOMPUTE_OPTIMAL};
  if (put_strategy(l, sn_strategy_name(both, name), sn_strategy_summary(both), err) != SN_OK) return err->code;
  sn_strategy s = {.liveness = SN_LIVENESS_FULL, .offload = SN_OFFLOAD_CHECKPOINTS};
  if (put_strategy(l, "superneurons", "another name of liveness+cache+recompute=cost", err) != SN_OK ||
      put_strategy(l, sn_strategy_name(s, name), sn_strategy_summary(s), err) != SN_OK ||
      put_strategy(l, "liveness+corun=POLICY", "liveness, and runs operations side by side on a device's cores", err) !=
          SN_OK)
    return err->code;
  for (uint32_t i = 0; i < SN_STRATEGY_SYSTEMS; i++) {
    s = sn_strategy_system(i);
    if (put_strategy(l, sn_strategy_name(s, name), sn_strategy_summary(s), err) != SN_OK) return err->code;
  }
  return SN_OK;
}

static const sn_table_column net_columns[] = {
    {"", "net", SN_TABLE_TEXT},
    {"", "image", SN_TABLE_NUMBER},
    {"", "layers", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"", "parameters", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"multiply-", "adds/image", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"", "source", SN_TABLE_TEXT | SN_TABLE_GAP | SN_TABLE_WRAP},
};
static const sn_table_column gpu_columns[] = {
    {"", "gpu", SN_TABLE_TEXT},
    {"usable", "memory", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"CUDA", "context", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(1)},
    {"memory", "GB/s", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"fp32", "TFLOP/s", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"host link", "GB/s", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(2)},
    {"", "times", SN_TABLE_TEXT},
    {"", "", SN_TABLE_TEXT | SN_TABLE_GAP | SN_TABLE_WRAP},
};
static const sn_table_column cluster_columns[] = {
    {"", "cluster", SN_TABLE_TEXT},
    {"", "nodes", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"", "of", SN_TABLE_TEXT | SN_TABLE_GAP},
    {"", "link", SN_TABLE_TEXT | SN_TABLE_GAP},
    {"", "GB/s", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"", "NICs", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"each", "GB/s", SN_TABLE_NUMBER | SN_TABLE_GAP},
    {"", "NCCL", SN_TABLE_NUMBER | SN_TABLE_GAP | SN_TABLE_SPARE(1)},
    {"", "", SN_TABLE_TEXT | SN_TABLE_GAP | SN_TABLE_WRAP},
};
static const sn_table_column strategy_columns[] = {
    {"", "strategy", SN_TABLE_TEXT},
    {"", "what it does", SN_TABLE_TEXT | SN_TABLE_GAP | SN_TABLE_WRAP},
};

static const struct list {
  const char *name, *note;
  sn_status (*rows)(lister *l, sn_err *err);
  const sn_table_column *columns;
  uint32_t n_columns;
} lists[] = {
    {"nets", "Layers with FORK and DATA. For a network of your own: --net FILE.json.", list_nets, net_columns,
     sizeof net_columns / sizeof net_columns[0]},
    {"gpus",
     "* of the nominal size: what CUDA reports is not known. For a GPU of your\nown: --gpu FILE.json, or snsim "
     "calibrate.\n"
     "times: fitted, the model's constants were chosen with published times of this\ncard in view; carried over, with "
     "those of another card of its architecture;\ndata sheet, with none; measured, by snsim calibrate.",
     list_gpus, gpu_columns, sizeof gpu_columns / sizeof gpu_columns[0]},
    {"clusters",
     "GB/s: what a ring reaches, of what the line carries one way, of a GPU in its\nnode and of each NIC. NCCL: memory "
     "of each GPU that its communicators take,\nassumed. For the sources, and a cluster of your own: docs/parallel.md.",
     list_clusters, cluster_columns, sizeof cluster_columns / sizeof cluster_columns[0]},
    {"strategies",
     "Where no --strategy is given, pytorch is simulated, and the 13 from baseline to\n"
     "liveness+cache+recompute=cost. offload=checkpoints goes with recompute as well.\n"
     "corun goes with recompute, on devices with cores (knl7250); POLICY is KxP (4x16:\n"
     "4 workers of 16 threads each), manual, s1, s12, s123, s1234, path or best;\n"
     "the last seven, published systems (docs/baselines.md), stand alone.",
     list_strategies, strategy_columns, sizeof strategy_columns / sizeof strategy_columns[0]},
};

enum { N_LISTS = sizeof lists / sizeof lists[0] };

static sn_status print_list(const struct list *list, const sn_args *args, const sn_out *out, sn_err *err) {
  lister l = {.args = args, .out = out};
  if (args->json) {
    fprintf(out->stream, "{\"%s\":[", list->name);
    if (list->rows(&l, err) == SN_OK) fputs("\n]}\n", out->stream);
    return err->code;
  }
  l.table = sn_table_new(list->columns, list->n_columns);
  if (!l.table) return sn_fail_memory(err);
  if (list->rows(&l, err) == SN_OK) sn_out_table(out, l.table, err);
  if (err->code == SN_OK) fprintf(out->stream, "\n%s\n", list->note);
  sn_table_free(l.table);
  return err->code;
}

static const struct list *find_list(const char *name, sn_err *err) {
  const char *names[N_LISTS];
  char suggestion[80];
  for (uint32_t i = 0; i < N_LISTS; i++) {
    if (strcmp(lists[i].name, name) == 0) return &lists[i];
    names[i] = lists[i].name;
  }
  sn_text_suggest(name, names, N_LISTS, suggestion, sizeof suggestion);
  sn_fail(err, SN_BAD_USAGE, "list: unknown list \"%.80s\"%s; there are nets, gpus, clusters and strategies", name,
          suggestion);
  return NULL;
}

sn_status sn_cli_list(const sn_args *args, sn_err *err) {
  sn_out out;
  const struct list *list = find_list(args->operand, err);
  if (!list || sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  print_list(list, args, &out, err);
  return sn_out_close(&out, err);
}
