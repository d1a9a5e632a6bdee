/* The parser of the command line; see the header. One pass over argv, O(arguments * options). */
#include "cli/options/options.h"

#include "base/checked.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/options/gpu.h"
#include "cli/options/option_values.h"
#include "cli/options/synonyms.h"
#include "db/store.h"
#include "models/build/lora.h"
#include "models/zoo/resolve.h"
#include "sim/ask/memcost.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

bool sn_option_belongs(const sn_option *option, const sn_command *command) {
  return (option->commands & command->bit) != 0;
}

/* The first option at or behind a place that belongs and is of the group. */
static const sn_option *find_option(const sn_command *command, uint32_t from, const char *group) {
  uint32_t count;
  const sn_option *all = sn_option_table(&count);
  for (uint32_t i = from; i < count; i++)
    if ((!command || sn_option_belongs(&all[i], command)) && strcmp(all[i].group, group) == 0) return &all[i];
  return NULL;
}

const sn_option *sn_option_next(const sn_command *command, const sn_option *option) {
  uint32_t count, from = 0;
  const sn_option *all = sn_option_table(&count);
  if (option) {
    const sn_option *same = find_option(command, (uint32_t)(option - all) + 1, option->group);
    if (same) return same;
    from = (uint32_t)(find_option(command, 0, option->group) - all) + 1;
  }
  for (uint32_t i = from; i < count; i++)
    if ((!command || sn_option_belongs(&all[i], command)) && find_option(command, 0, all[i].group) == &all[i])
      return &all[i];
  return NULL;
}

enum { MOST_OPTIONS = 176 };

/* What the parser knows while it goes along argv. */
typedef struct parser {
  int argc, at;
  char *const *argv;
  sn_args *args;
  const sn_option *options;
  uint32_t n_options;
  bool given[MOST_OPTIONS];                   /* by row */
  const char *operands[1 + SN_ARGS_OPERANDS]; /* the command and its own */
  uint32_t n_operands;
} parser;

/* The command named so far, which may still come; by default the first. */
static const sn_command *command_so_far(const parser *p) {
  sn_err reason = SN_ERR_INIT; /* of a name that is none, which is told where no option is wrong */
  const sn_command *named = p->n_operands ? sn_command_find(p->operands[0], &reason) : NULL;
  return named ? named : p->args->command;
}

/* What is given by its number alone, --id 3, --run=3, --sweep 3: what stands before the number; else NULL. */
static const char *number_prefix(const sn_command *command, const char *name) {
  static const char *const names[] = {"id", "run", "run-id", "number"};
  bool sweep = strcmp(name, "sweep") == 0, run = false;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) run = run || strcmp(name, names[i]) == 0;
  if (sweep && command->operand && strstr(command->operand, "SWEEP")) return "sweep:";
  return run && command->operand && strstr(command->operand, "RUN") ? "" : NULL;
}

/* Dashes are no part of a name: -net means --net. Names the command takes are offered before others. */
static sn_status unknown_option(const parser *p, const char *text, size_t length, sn_err *err) {
  const sn_command *command = command_so_far(p);
  const char *own[MOST_OPTIONS], *all[MOST_OPTIONS];
  char given[88], suggestion[120] = "";
  uint32_t n_own = 0;
  for (uint32_t i = 0; i < p->n_options; i++) {
    all[i] = p->options[i].name;
    if (sn_option_belongs(&p->options[i], command)) own[n_own++] = all[i];
  }
  snprintf(given, sizeof given, "%.*s", (int)(length < 80 ? length : 80), text);
  const char *name = given + strspn(given, "-"), *near = NULL;
  const char *prefix = number_prefix(command, name);
  if (prefix)
    return sn_fail(err, SN_BAD_USAGE, "unknown option %s; the number stands alone: snsim %s %s3, snsim %s %slast",
                   given, command->name, prefix, command->name, prefix);
  if (!*sn_synonym_option(name, command, suggestion, sizeof suggestion)) near = sn_text_nearest(name, own, n_own);
  if (!near && !*suggestion) near = sn_text_nearest(name, all, p->n_options);
  if (near) snprintf(suggestion, sizeof suggestion, " (did you mean --%s?)", near);
  bool first = command == p->args->command; /* which the overview explains */
  return sn_fail(err, SN_BAD_USAGE, "unknown option %s%s; snsim help%s%s lists the options", given, suggestion,
                 first ? "" : " ", first ? "" : command->name);
}

/* Reads the value of option `index`: what stands behind '=' or the next argument. */
static sn_status take(parser *p, uint32_t index, const char *attached, sn_err *err) {
  const sn_option *o = &p->options[index];
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
  for (uint32_t i = 0; i < p->n_options; i++)
    if (strlen(p->options[i].name) == length - 2 && strncmp(text + 2, p->options[i].name, length - 2) == 0)
      return take(p, i, attached, err);
  return unknown_option(p, text, length, err);
}

static sn_status take_short(parser *p, const char *text, sn_err *err) {
  for (uint32_t i = 0; i < p->n_options; i++)
    if (p->options[i].letter == text[1] && (p->options[i].argument || !text[2]))
      return take(p, i, text[2] ? text + 2 : NULL, err);
  return unknown_option(p, text, strlen(text), err);
}

static sn_status take_operand(parser *p, const char *text, sn_err *err) {
  if (p->n_operands == 1 + SN_ARGS_OPERANDS)
    return sn_fail(err, SN_BAD_USAGE, "too many arguments, beginning with \"%.80s\"", text);
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

/* `snsim run alexnet`: the name of a network where a plan should be. */
static sn_status check_net_name(const char *name, sn_err *err) {
  if (sn_net_is_file(name) || !sn_net_is_known(name)) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "unknown plan \"%s\"; a network is given as --net %s", name, name);
}

void sn_command_operands(const sn_command *command, uint32_t *least, uint32_t *most) {
  *least = *most = 0;
  for (const char *word = command->operand; word && *word; word += strspn(word, " ")) {
    size_t length = strcspn(word, " ");
    ++*most;
    *least += word[0] != '[';
    if (length > 2 && strncmp(word + length - 2, "..", 2) == 0)
      *most = strncmp(word, "[RUN", 4) == 0 ? SN_ARGS_RUNS : SN_ARGS_OPERANDS;
    word += length;
  }
}

static sn_status check_operands(const parser *p, const sn_command *command, sn_err *err) {
  uint32_t least, most, given = p->n_operands - 1;
  sn_command_operands(command, &least, &most);
  if (given > most && most == SN_ARGS_RUNS)
    return sn_fail(err, SN_BAD_USAGE, "too many arguments, beginning with \"%.80s\"", p->operands[1 + most]);
  if (given > most)
    return sn_fail(err, SN_BAD_USAGE, "unexpected argument \"%.80s\"; usage: %s", p->operands[1 + most],
                   command->synopsis);
  if (given < least && !p->args->help)
    return sn_fail(err, SN_BAD_USAGE, "%s needs %s%s", command->name, strchr(command->operand, '|') ? "one of " : "",
                   command->operand);
  return SN_OK;
}

/* The first operand is the command, the others the command's own. */
static sn_status set_command(const parser *p, sn_err *err) {
  sn_args *args = p->args;
  if (p->n_operands == 0) return SN_OK;
  const sn_command *command = sn_command_find(p->operands[0], err);
  if (!command) return err->code;
  args->command = command;
  if (check_operands(p, command, err) != SN_OK) return err->code;
  args->n_operands = p->n_operands - 1;
  memcpy(args->operands, p->operands + 1, args->n_operands * sizeof p->operands[0]);
  args->operand = args->operands[0];
  return SN_OK;
}

/* An option may stand in several rows, each with what it means to some commands. */
static bool takes(const parser *p, const char *name) {
  for (uint32_t i = 0; i < p->n_options; i++)
    if (strcmp(p->options[i].name, name) == 0 && sn_option_belongs(&p->options[i], p->args->command)) return true;
  return false;
}

/* A name that a run is to be stored under; of `show` it is a part of one. */
static sn_status check_name(const sn_args *args, sn_err *err) {
  if (!args->name || args->command->bit == SN_CMD_SHOW) return SN_OK;
  if (sn_args_is_name(args->name) && strlen(args->name) <= SN_ARGS_NAME) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--name: \"%.80s\" cannot be a run's name: at most %d bytes, and no number, \"last\", \"sweeps\", "
                 "\"calibrations\" or \"sweep:..\"",
                 args->name, SN_ARGS_NAME);
}

/* Where co-running has a budget it has one: the last. Those of DTR's logs are read by whoever replays these. */
static sn_status check_budget(sn_args *args, sn_err *err) {
  if (args->budgets.count == 0 || args->command->bit == SN_CMD_DTR || args->command->bit == SN_CMD_PLOT) return SN_OK;
  return sn__parse_corun_budget(args->budgets.texts[args->budgets.count - 1], &args->options.corun.budget_bytes, err);
}

/* A plan from a file says itself what is trained and how. */
static sn_status check_plan(const parser *p, sn_err *err) {
  static const char *const said[] = {"batch",      "image",     "sequence", "optimizer",
                                     "accumulate", "precision", "freeze",   "lora"};
  const sn_args *args = p->args;
  bool trains = args->command->bit == SN_CMD_RUN || args->command->bit == SN_CMD_VALIDATE;
  if (!trains || !args->operand || check_net_name(args->operand, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < p->n_options; i++)
    for (size_t s = 0; p->given[i] && s < sizeof said / sizeof *said; s++)
      if (strcmp(p->options[i].name, said[s]) == 0)
        return sn_fail(err, SN_BAD_USAGE,
                       "--%s cannot be combined with a plan from a file, which says that itself; leave it out",
                       said[s]);
  if (args->name)
    return sn_fail(err, SN_BAD_USAGE, "--name cannot be combined with a plan from a file: what it gave is not stored");
  return SN_OK;
}

static sn_status check_options(const parser *p, sn_err *err) {
  const sn_args *args = p->args;
  char suggestion[120];
  for (uint32_t i = 0; i < p->n_options; i++)
    if (p->given[i] && !takes(p, p->options[i].name))
      return sn_fail(err, SN_BAD_USAGE, "--%s cannot be combined with %s%s; snsim help %s lists what can",
                     p->options[i].name, args->command->name,
                     sn_synonym_option(p->options[i].name, args->command, suggestion, sizeof suggestion),
                     args->command->name);
  if (check_budget(p->args, err) != SN_OK || check_name(args, err) != SN_OK) return err->code;
  return check_plan(p, err);
}

/* It is told behind the rank of the adapters, which are of an option or of the network's name. */
static sn_status take_quantize(sn_args *args, sn_err *err) {
  if (!args->quantize) return SN_OK;
  const char *own = args->net ? sn_net_lora(args->net) : NULL;
  sn_lora named = {0};
  if (own && (args->lora || sn_lora_parse(own, &named, err) != SN_OK || named.nf4)) return err->code;
  if (!args->lora && !own)
    return sn_fail(err, SN_BAD_USAGE,
                   "--quantize nf4 needs --lora, as weights of 4 bits are not trained: add --lora 8");
  args->lora = sn_lora_with_nf4(args->lora ? args->lora : own, args->lora_text, sizeof args->lora_text);
  if (!own) return SN_OK;
  snprintf(args->plain_text, sizeof args->plain_text, "%.*s",
           (int)(own - args->net - (ptrdiff_t)strlen(SN_NET_ADAPTED)), args->net);
  args->net = args->plain_text;
  return SN_OK;
}

/* Adapters are a part of what the network is called; its file is called so without them. A sweep's networks get theirs
 * in its grid. */
static sn_status take_lora(sn_args *args, sn_err *err) {
  if (take_quantize(args, err) != SN_OK) return err->code;
  const char *own = args->net ? sn_net_lora(args->net) : NULL;
  args->plain_net = args->net;
  if (args->net && args->lora) {
    args->net = args->net_text;
    return sn_net_add_lora(args->plain_net, args->lora, args->net_text, err);
  }
  if (!own) return SN_OK;
  size_t length = (size_t)(own - args->net) - strlen(SN_NET_ADAPTED);
  int plain = snprintf(args->plain_text, SN_NET_SPEC, "%.*s", (int)sn_min(length, SN_NET_SPEC), args->net);
  args->plain_net = args->plain_text;
  if (plain < SN_NET_SPEC) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "--net: a name has fewer than %d bytes", SN_NET_SPEC);
}

/* The length of sequences goes the way of the images' size. Of a network from a file it is only known when it is read:
 * sn_question_net(). */
static sn_status take_sequence(sn_args *args, sn_err *err) {
  bool known = args->net && !sn_net_is_file(args->net) && sn_net_is_known(args->net),
       reads = known && sn_net_is_sequence(args->net);
  if (args->sequence && args->image)
    return sn_fail(err, SN_BAD_USAGE, "--sequence and --image: a network reads one or the other; keep one");
  if (args->sequence && known && !reads)
    return sn_fail(err, SN_BAD_USAGE, "--sequence: %.80s reads no sequences of tokens; gpt2, bert_base and llama do",
                   args->net);
  if (args->image && reads && args->command->bit != SN_CMD_PLOT)
    return sn_fail(err, SN_BAD_USAGE, "--image: %.80s reads sequences of tokens; give --sequence", args->net);
  if (args->sequence) args->image = args->sequence;
  return SN_OK;
}

sn_net_origin sn_args_origin(const sn_args *args) {
  const unsigned asking = SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP;
  sn_runtime runtime = args->n_strategies ? sn_runtime_of_all(args->strategies, args->n_strategies) : args->runtime;
  bool pytorch = runtime == SN_RUNTIME_DEFAULT || runtime == SN_RUNTIME_PYTORCH || runtime == SN_RUNTIME_ALL;
  return args->command->bit & asking && pytorch && !args->front ? SN_NETS_OF_TORCHVISION : SN_NETS_OF_PAPERS;
}

const char *sn_args_source_name(const char *net) {
  const char *found = NULL;
  for (const char *at = strstr(net, ".py:"); at; at = strstr(at + 1, ".py:")) found = at;
  return found ? found + strlen(".py:") : net;
}

bool sn_args_is_source(const sn_args *args) {
  const unsigned recording = SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE;
  return args->command->bit & recording && args->net && sn_args_source_name(args->net) != args->net;
}

/* The network by its own name; of `show` it is a part of one, and a model in Python is recorded first. */
static sn_status take_net(sn_args *args, sn_err *err) {
  if (!args->net || args->command->bit == SN_CMD_SHOW || sn_args_is_source(args)) return SN_OK;
  if (sn_net_resolve(args->net, sn_args_origin(args), args->known_text, err) == SN_OK) args->net = args->known_text;
  return err->code;
}

/* Goes the way of a network's parameters: "mine.onnx:loss=mse". */
static sn_status take_loss(sn_args *args, sn_err *err) {
  if (!args->loss || args->command->bit == SN_CMD_SWEEP) return SN_OK;
  if (sn_net_add_loss(args->net ? args->net : "", args->loss, args->loss_text, err) == SN_OK)
    args->net = args->loss_text;
  return err->code;
}

static sn_status take_units(sn_args *args, sn_err *err) {
  if (!args->units || sn_args_is_source(args)) return SN_OK; /* cli/frame/recorder.c */
  if (sn_net_add_units(args->net ? args->net : "", args->units, args->loss_text, err) == SN_OK)
    args->net = args->loss_text;
  return err->code;
}

/* Of commands that ask about a GPU. */
static void take_gpu(sn_args *args) {
  const unsigned asking = SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_MEMCOST | SN_CMD_PLAY | SN_CMD_DTR;
  if (*args->options.cluster.name && !args->profile) args->gpu = args->profile = args->options.cluster.gpu;
  if (args->profile || !(args->command->bit & asking)) return;
  const sn_gpu_meant meant = sn_gpu_unnamed();
  args->gpu = meant.name;
  args->gpu_why = meant.why;
}

sn_status sn_args_parse(int argc, char *const *argv, sn_args *args, sn_err *err) {
  uint32_t count;
  *args = (sn_args){.command = sn_command_table(&count),
                    .gpu = "rtx4090",
                    .gpu_why = "",
                    .iterations = 3,
                    .moves = 5000,
                    .match_range = SN_MEMCOST_MATCH_RANGE,
                    .colours = 1,
                    .warmup = 1,
                    .options = SN_OPTIONS_INIT,
                    .hyper = ((sn_session_options)SN_SESSION_OPTIONS_INIT).machine.hyper};
  parser p = {.argc = argc, .argv = argv, .args = args};
  p.options = sn_option_table(&p.n_options);
  assert(p.n_options <= MOST_OPTIONS);
  if (take_all(&p, err) != SN_OK || set_command(&p, err) != SN_OK) return err->code;
  if (args->help || args->version) return SN_OK;
  if (sn__take_gpus(args, err) != SN_OK || check_options(&p, err) != SN_OK || take_net(args, err) != SN_OK ||
      take_loss(args, err) != SN_OK || take_units(args, err) != SN_OK || take_lora(args, err) != SN_OK)
    return err->code;
  take_gpu(args);
  return take_sequence(args, err);
}

sn_status sn_args_database(const sn_args *args, char *path, size_t room, sn_err *err) {
  if (!args->db) return sn_store_default_path(path, room, err);
  const char *folder = strcmp(args->db, ":memory:") == 0 ? "./" : ""; /* a file of that name, unlike in the library */
  if (snprintf(path, room, "%s%s", folder, args->db) < (int)room) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "--db: the path is longer than %zu bytes", room - 1);
}

const char *sn_args_db_option(const sn_args *args, char text[SN_ARGS_DB_ROOM]) {
  static const char option[] = " --db ";
  char quoted[SN_ARGS_DB_ROOM - sizeof option];
  text[0] = '\0';
  if (args->db) snprintf(text, SN_ARGS_DB_ROOM, "%s%s", option, sn_out_quote(args->db, quoted, sizeof quoted));
  return text;
}

sn_status sn_args_run_at(const sn_args *args, uint32_t index, int64_t *id, const char **name, sn_err *err) {
  const char *text = index < args->n_operands ? args->operands[index] : "last";
  uint64_t number = 0;
  *name = NULL;
  *id = 0;
  if (strcmp(text, "last") == 0) return SN_OK;
  if (!sn_args_is_name(text)) {
    sn_err reason = SN_ERR_INIT; /* its limits would tell nobody anything */
    if (sn_parse_count(text, "RUN", 1, INT64_MAX, &number, &reason) != SN_OK)
      return sn_fail(err, SN_BAD_USAGE,
                     "\"%.80s\" is no run: give its number, its name, or \"last\"; snsim show lists the runs", text);
    *id = (int64_t)number;
  } else {
    *name = text;
  }
  return SN_OK;
}

bool sn_args_is_name(const char *text) {
  static const char *const taken[] = {"last", "sweeps", "calibrations"};
  for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
    if (strcmp(text, taken[i]) == 0) return false;
  if (strncmp(text, "sweep:", 6) == 0 || !*text || *text == '-') return false;
  return text[strspn(text, "0123456789")] != '\0';
}

static const char sweep_prefix[] = "sweep:";

bool sn_args_is_sweep(const sn_args *args) {
  return args->operand && strncmp(args->operand, sweep_prefix, strlen(sweep_prefix)) == 0;
}

sn_status sn_args_sweep(const sn_args *args, int64_t *id, sn_err *err) {
  const char *text = args->operand + (sn_args_is_sweep(args) ? strlen(sweep_prefix) : 0);
  uint64_t number = 0;
  sn_err reason = SN_ERR_INIT;
  if (strcmp(text, "last") != 0 && sn_parse_count(text, "SWEEP", 1, INT64_MAX, &number, &reason) != SN_OK)
    return sn_fail(err, SN_BAD_USAGE,
                   "\"%.80s\" is no sweep: give its number, or \"last\"; snsim show sweeps lists them", args->operand);
  *id = (int64_t)number;
  return SN_OK;
}
