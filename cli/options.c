/* The table of options and the parser; see the header. One pass over argv, O(arguments * options). */
#include "cli/options.h"

#include "base/text.h"
#include "base/units.h"
#include "db/store.h"
#include "models/net.h"
#include "models/zoo.h"

#include <stdio.h>
#include <string.h>

/* Bits of the commands, in the order of their table. */
enum { SIMULATE = 1, RUN = 2, LIST = 4, SHOW = 8, PLOT = 16, HELP = 32, ALL = 63 };

static sn_status parse_switch(const char *what, const char *text, void *place, sn_err *err) {
  (void)what, (void)text, (void)err;
  *(bool *)place = true;
  return SN_OK;
}

static sn_status parse_text(const char *what, const char *text, void *place, sn_err *err) {
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "%s: the value is empty", what);
  *(const char **)place = text;
  return SN_OK;
}

static sn_status parse_size(const char *what, const char *text, void *place, sn_err *err) {
  uint64_t value = 0;
  sn_status status = sn_parse_count(text, what, 1, SN_MAX_DIM, &value, err);
  *(uint32_t *)place = (uint32_t)value;
  return status;
}

static sn_status take_bytes(const char *what, const char *text, uint64_t low, sn_args_bytes *bytes, sn_err *err) {
  bytes->given = true;
  return sn_parse_bytes(text, what, low, &bytes->bytes, err);
}

static sn_status parse_bytes(const char *what, const char *text, void *place, sn_err *err) {
  return take_bytes(what, text, 1, place, err);
}

/* A context of nothing is a question one may ask; a device or pool of nothing is not. */
static sn_status parse_bytes_or_0(const char *what, const char *text, void *place, sn_err *err) {
  return take_bytes(what, text, 0, place, err);
}

static sn_status parse_strategy(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  sn_strategy s;
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "%s: the value is empty; snsim list strategies shows them", what);
  if (sn_strategy_parse(text, &s, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < args->n_strategies; i++) {
    const sn_strategy *old = &args->strategies[i];
    if (old->liveness == s.liveness && old->offload == s.offload && old->recompute == s.recompute) return SN_OK;
  }
  if (args->n_strategies == SN_ARGS_STRATEGIES) return sn_fail(err, SN_BUG, "%s: more strategies than there are", what);
  args->strategies[args->n_strategies++] = s;
  return SN_OK;
}

static sn_status parse_workspace(const char *what, const char *text, void *place, sn_err *err) {
  (void)what; /* the parsers of sim/ name the option themselves */
  return sn_workspace_parse(text, place, err);
}

static sn_status parse_external(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_external_parse(text, place, err);
}

static sn_status parse_allocator(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_allocator_parse(text, place, err);
}

static sn_status parse_color(const char *what, const char *text, void *place, sn_err *err) {
  static const char *const names[] = {"auto", "always", "never"};
  for (int i = 0; i < 3; i++)
    if (strcmp(text, names[i]) == 0) {
      *(sn_color *)place = (sn_color)i;
      return SN_OK;
    }
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is none of auto, always, never", what, text);
}

static const sn_option options[] = {
    {"net", "NAME|FILE", 0, SIMULATE | RUN, "What to train",
     "The network: a name of `snsim list nets`, a family with its parameters (resnet:n1=3,n2=4,n3=6,n4=3), or the path "
     "of a JSON file (one that holds a '/' or ends in .json).",
     parse_text, offsetof(sn_args, net)},
    {"batch", "N", 0, SIMULATE | RUN, "What to train", "Images per iteration.", parse_size, offsetof(sn_args, batch)},
    {"image", "N", 0, SIMULATE | RUN, "What to train", "Height and width of the images, instead of the network's own.",
     parse_size, offsetof(sn_args, image)},
    {"gpu", "NAME|FILE", 0, SIMULATE, "Where",
     "The GPU: a name of `snsim list gpus` or the path of a JSON file. Default: k40c.", parse_text,
     offsetof(sn_args, gpu)},
    {"memory", "SIZE", 0, SIMULATE, "Where",
     "Usable memory of the device instead of its own: 8GiB, 11439MiB, 12GB; the i makes it a power of 1024.",
     parse_bytes, offsetof(sn_args, memory)},
    {"context", "SIZE", 0, SIMULATE, "Where", "Memory that driver and libraries take; 0 is allowed.", parse_bytes_or_0,
     offsetof(sn_args, context)},
    {"pool", "SIZE", 0, SIMULATE | RUN, "Where",
     "Size of the pool for tensors and workspace, instead of all that context and parameters leave.", parse_bytes,
     offsetof(sn_args, pool)},
    {"external", "WHERE", 0, SIMULATE, "Where",
     "Where offloaded tensors go: host (default), peer (a GPU under the same switch), remote (over RDMA).",
     parse_external, offsetof(sn_args, external)},
    {"shared-link", NULL, 0, SIMULATE, "Where", "Copies out and in share the bandwidth of one direction.", parse_switch,
     offsetof(sn_args, shared_link)},
    {"strategy", "S", 0, SIMULATE | RUN, "How",
     "A strategy of `snsim list strategies`; may be given several times. Default: the 13 of that list.", parse_strategy,
     0},
    {"strategy", "S", 0, PLOT, "How", "A strategy to draw; may be given several times.", parse_strategy, 0},
    {"workspace", "KIND", 0, SIMULATE, "How",
     "Convolution workspace: none, dynamic (the fastest algorithm that fits in what is left at that step; default), "
     "max "
     "(the fastest, whether it fits or not).",
     parse_workspace, offsetof(sn_args, workspace)},
    {"allocator", "KIND", 0, SIMULATE, "How",
     "Who hands out memory: pool (default), or cuda (cudaMalloc and cudaFree for every tensor, with what they cost).",
     parse_allocator, offsetof(sn_args, allocator)},
    {"iterations", "N", 0, RUN, "How", "Training iterations, 1 to 16777216. Default: 3.", parse_size,
     offsetof(sn_args, iterations)},
    {"threads", "N", 0, RUN, "How", "Threads of the kernels. Default: as many as there are processors.", parse_size,
     offsetof(sn_args, threads)},
    {"check", NULL, 0, RUN, "How",
     "Watch every byte of the pool: what is released or belongs to nobody must not be read or written.", parse_switch,
     offsetof(sn_args, check)},
    {"steps", NULL, 0, SIMULATE | SHOW, "What to print", "Also a row for every step, strategy by strategy.",
     parse_switch, offsetof(sn_args, steps)},
    {"explain", NULL, 0, SIMULATE | SHOW, "What to print",
     "Also the tensors that make up each peak, largest first: who made them, how long they have been there, what would "
     "remove them.",
     parse_switch, offsetof(sn_args, explain)},
    {"json", NULL, 0, SIMULATE | RUN | LIST | SHOW, "What to print", "One JSON object instead of tables.", parse_switch,
     offsetof(sn_args, json)},
    {"plan", "FILE", 0, SIMULATE, "What to print",
     "Writes the plan of the one strategy asked for as JSON; - puts it on standard output in place of the table.",
     parse_text, offsetof(sn_args, plan)},
    {"output", "FILE", 'o', SIMULATE | RUN | LIST | SHOW | HELP, "What to print",
     "Writes to FILE instead of standard output.", parse_text, offsetof(sn_args, output)},
    {"output", "FILE", 'o', PLOT, "What to print",
     "The picture: FILE ends in .png, .svg or .pdf. Without it the picture is text in the terminal.", parse_text,
     offsetof(sn_args, output)},
    {"color", "WHEN", 0, ALL, "What to print", "auto (default: on a terminal, unless NO_COLOR is set), always, never.",
     parse_color, offsetof(sn_args, color)},
    {"db", "FILE", 0, SIMULATE | SHOW | PLOT, "Stored runs",
     "The database, instead of $XDG_DATA_HOME/snsim/snsim.db (~/.local/share/snsim/snsim.db).", parse_text,
     offsetof(sn_args, db)},
    {"no-db", NULL, 0, SIMULATE, "Stored runs", "Stores nothing.", parse_switch, offsetof(sn_args, no_db)},
    {"help", NULL, 'h', ALL, "About", "Help on the command.", parse_switch, offsetof(sn_args, help)},
    {"version", NULL, 0, ALL, "About", "The version of snsim.", parse_switch, offsetof(sn_args, version)},
};

enum { N_OPTIONS = sizeof options / sizeof options[0] };

const sn_option *sn_option_table(uint32_t *count) {
  *count = N_OPTIONS;
  return options;
}

bool sn_option_belongs(const sn_option *option, const sn_command *command) {
  uint32_t count;
  return option->commands >> (command - sn_command_table(&count)) & 1;
}

/* What the parser knows while it goes along argv. */
typedef struct parser {
  int argc, at;
  char *const *argv;
  sn_args *args;
  bool given[N_OPTIONS];
  const char *operands[3];
  uint32_t n_operands;
} parser;

/* Dashes are no part of a name: -net means --net. */
static sn_status unknown_option(const char *text, size_t length, sn_err *err) {
  const char *names[N_OPTIONS];
  char given[88], suggestion[80] = "";
  for (uint32_t i = 0; i < N_OPTIONS; i++) names[i] = options[i].name;
  snprintf(given, sizeof given, "%.*s", (int)(length < 80 ? length : 80), text);
  const char *near = sn_text_nearest(given + strspn(given, "-"), names, N_OPTIONS);
  if (near) snprintf(suggestion, sizeof suggestion, " (did you mean --%s?)", near);
  return sn_fail(err, SN_BAD_USAGE, "unknown option %s%s; snsim help lists the options", given, suggestion);
}

/* Reads the value of option `index`: what stands behind '=' or the next argument. */
static sn_status take(parser *p, uint32_t index, const char *attached, sn_err *err) {
  const sn_option *o = &options[index];
  char what[32];
  snprintf(what, sizeof what, "--%s", o->name);
  if (!o->argument && attached) return sn_fail(err, SN_BAD_USAGE, "%s takes no value", what);
  const char *value = attached;
  if (o->argument && !value) {
    value = p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL;
    if (!value || strncmp(value, "--", 2) == 0)
      return sn_fail(err, SN_BAD_USAGE, "%s needs a value: %s %s", what, what, o->argument);
    p->at++;
  }
  p->given[index] = true;
  return o->parse(what, value, (char *)p->args + o->place, err);
}

static sn_status take_long(parser *p, const char *text, sn_err *err) {
  size_t length = strcspn(text, "=");
  const char *attached = text[length] ? text + length + 1 : NULL;
  for (uint32_t i = 0; i < N_OPTIONS; i++)
    if (strlen(options[i].name) == length - 2 && strncmp(text + 2, options[i].name, length - 2) == 0)
      return take(p, i, attached, err);
  return unknown_option(text, length, err);
}

static sn_status take_short(parser *p, const char *text, sn_err *err) {
  for (uint32_t i = 0; i < N_OPTIONS; i++)
    if (options[i].letter == text[1] && (options[i].argument || !text[2]))
      return take(p, i, text[2] ? text + 2 : NULL, err);
  return unknown_option(text, strlen(text), err);
}

static sn_status take_operand(parser *p, const char *text, sn_err *err) {
  if (p->n_operands == 3) return sn_fail(err, SN_BAD_USAGE, "too many arguments, beginning with \"%.80s\"", text);
  p->operands[p->n_operands++] = text;
  return SN_OK;
}

static sn_status take_all(parser *p, sn_err *err) {
  bool only_operands = false;
  for (p->at = 1; p->at < p->argc && err->code == SN_OK; p->at++) {
    const char *text = p->argv[p->at];
    if (only_operands || text[0] != '-' || !text[1])
      take_operand(p, text, err);
    else if (strcmp(text, "--") == 0)
      only_operands = true;
    else if (text[1] == '-')
      take_long(p, text, err);
    else
      take_short(p, text, err);
  }
  return err->code;
}

/* `snsim alexnet`: the name of a network where a command should be. */
static sn_status check_net_as_command(const char *name, sn_err *err) {
  uint32_t count;
  const sn_zoo_entry *nets = sn_zoo_entries(&count);
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(nets[i].name, name) == 0)
      return sn_fail(err, SN_BAD_USAGE, "unknown command \"%s\"; a network is given as --net %s", name, name);
  return SN_OK;
}

/* The first operand is the command, the second the command's own. */
static sn_status set_command(const parser *p, sn_err *err) {
  sn_args *args = p->args;
  if (p->n_operands == 0) return SN_OK;
  if (check_net_as_command(p->operands[0], err) != SN_OK) return err->code;
  const sn_command *command = sn_command_find(p->operands[0], err);
  if (!command) return err->code;
  args->command = command;
  uint32_t most = command->operand ? 2 : 1;
  if (p->n_operands > most)
    return sn_fail(err, SN_BAD_USAGE, "unexpected argument \"%.80s\"; usage: %s", p->operands[most], command->synopsis);
  if (p->n_operands == 2) args->operand = p->operands[1];
  if (command->operand && command->operand[0] != '[' && !args->operand && !args->help)
    return sn_fail(err, SN_BAD_USAGE, "%s needs one of %s", command->name, command->operand);
  return SN_OK;
}

/* An option may stand in several rows, each with what it means to some commands. */
static bool takes(const sn_command *command, const char *name) {
  for (uint32_t i = 0; i < N_OPTIONS; i++)
    if (strcmp(options[i].name, name) == 0 && sn_option_belongs(&options[i], command)) return true;
  return false;
}

static sn_status check_options(const parser *p, sn_err *err) {
  const sn_args *args = p->args;
  for (uint32_t i = 0; i < N_OPTIONS; i++)
    if (p->given[i] && !takes(args->command, options[i].name))
      return sn_fail(err, SN_BAD_USAGE, "--%s does not go with %s; snsim help %s lists what does", options[i].name,
                     args->command->name, args->command->name);
  if (args->db && args->no_db) return sn_fail(err, SN_BAD_USAGE, "--db and --no-db exclude each other");
  return SN_OK;
}

sn_status sn_args_parse(int argc, char *const *argv, sn_args *args, sn_err *err) {
  uint32_t count;
  *args = (sn_args){.command = sn_command_table(&count),
                    .argv = argv,
                    .gpu = "k40c",
                    .iterations = 3,
                    .workspace = SN_WORKSPACE_DYNAMIC};
  parser p = {.argc = argc, .argv = argv, .args = args};
  if (take_all(&p, err) != SN_OK || set_command(&p, err) != SN_OK) return err->code;
  return args->help || args->version ? SN_OK : check_options(&p, err);
}

sn_status sn_args_database(const sn_args *args, char *path, size_t room, sn_err *err) {
  if (!args->db) return sn_store_default_path(path, room, err);
  const char *folder = strcmp(args->db, ":memory:") == 0 ? "./" : ""; /* a file of that name, unlike in the library */
  if (snprintf(path, room, "%s%s", folder, args->db) < (int)room) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "--db: the path is longer than %zu bytes", room - 1);
}

sn_status sn_args_run(const sn_args *args, int64_t *id, sn_err *err) {
  uint64_t number = 0;
  bool newest = !args->operand || strcmp(args->operand, "last") == 0;
  sn_err reason = SN_ERR_INIT; /* its limits would tell nobody anything */
  if (!newest && sn_parse_count(args->operand, "RUN", 1, INT64_MAX, &number, &reason) != SN_OK)
    return sn_fail(err, SN_BAD_USAGE, "\"%.80s\" is no run: give its number, or \"last\"; snsim show lists the runs",
                   args->operand);
  *id = (int64_t)number;
  return SN_OK;
}
