/* The command line: two tables (cli/options/commands.c, cli/options/option_table.c) and the parser that reads argv by them
 * (cli/options/options.c). Help is printed from the same rows (cli/options/help.c), so what is accepted and what is
 * documented cannot differ.
 *
 *   sn_args args;
 *   if (sn_args_parse(argc, argv, &args, &err) != SN_OK) ...
 *   status = args.command->run(&args, &err);
 *
 * Options may stand anywhere, as --name value or --name=value, -o value or -ovalue; "--" ends them. The first operand
 * names the command; without one it is "simulate". Where an option is given twice the last one counts, except
 * --strategy and the lists of `sweep`, which add.
 */
#ifndef SN_CLI_OPTIONS_OPTIONS_H
#define SN_CLI_OPTIONS_OPTIONS_H

#include "base/err.h"
#include "cli/options/out.h"
#include "exec/session/calibrate.h"
#include "exec/session/session.h"
#include "models/zoo/resolve.h"
#include "models/zoo/zoo.h"
#include "plots/plot.h"
#include "sim/ask/simulate.h"
#include "sim/graph/pass.h"
#include "sim/policy/conditions.h"
#include "sim/policy/runtime.h"
#include "sim/sweep/grid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* More than there are different strategies; the same one twice counts once. */
enum { SN_ARGS_STRATEGIES = 32, SN_ARGS_OPERANDS = 64, SN_ARGS_RUNS = 8, SN_ARGS_LISTS = 64, SN_ARGS_NAME = 80 };

typedef struct sn_args_bytes {
  bool given;
  uint64_t bytes;
} sn_args_bytes;

/* The values of an option that adds, as they stand on the command line. */
typedef struct sn_args_lists {
  uint32_t count;
  const char *texts[SN_ARGS_LISTS];
} sn_args_lists;

/* Where times come from: measured ones where a calibration has them, else formulas; only formulas; or measured ones,
 * and an error where there is no calibration. */
typedef enum sn_cost_source { SN_COSTS_AUTO, SN_COSTS_MODEL, SN_COSTS_MEASURED, SN_COSTS_COUNT } sn_cost_source;

struct sn_command;

typedef struct sn_args {
  const struct sn_command *command;
  const char *operand;   /* the command's first operand, or NULL */
  const char *net, *gpu; /* net: with its loss and adapters, "mine.onnx:loss=mse+lora=8" */
  const char *plain_net; /* without adapters */
  const char *cluster;   /* as given, a name or file; NULL: not */
  const char *lora;      /* as given, with what --quantize adds; NULL: not */
  bool quantize;         /* nf4 */
  const char *units;     /* modules of a recording that are blocks; NULL: not given */
  const char *loss;      /* the same, behind an ONNX file's first output */
  char known_text[SN_NET_SPEC], net_text[SN_NET_SPEC], plain_text[SN_NET_SPEC], loss_text[SN_NET_SPEC];
  char lora_text[SN_NET_SPEC];
  uint32_t batch, image;          /* 0: not given */
  uint64_t samples;               /* of an epoch; 0: not given */
  const char *price;              /* a file; NULL: not given */
  uint32_t sequence;              /* of token sequences what image is of images */
  uint32_t iterations, threads;   /* of `run` */
  uint32_t teams[SN_TEAM_COUNTS]; /* of `calibrate`: counts of threads to be measured, ascending */
  uint32_t n_teams;
  uint32_t warmup; /* of the iterations: those that do not count for times */
  bool warmup_given;
  sn_args_bytes memory, context, host_memory;
  sn_strategy strategies[SN_ARGS_STRATEGIES];
  uint32_t n_strategies;        /* 0: none given */
  sn_options options;           /* but for `freeze`; accumulate 0: not given */
  bool gave[SN_CONDITION_ROWS]; /* whether conditions that are words were given */
  sn_args_lists inputs;         /* of --net FILE.py:NAME and `record`: sizes of a row */
  const char *assume;           /* of `record`; NULL: not given */
  const char *snapshot;         /* of `export`; NULL: not given */
  const char *hf, *config;      /* of `record`: a class of transformers and its config.json; NULL: not given */
  char recorded_text[SN_NET_SPEC];
  bool eager_modules; /* --modules eager */
  bool placement_given;
  char freeze[SN_GLOBS_TEXT + 2]; /* of all --freeze, parted by commas; "": none given */
  bool check, steps, explain, json, no_db, help, version;
  const char *plan, *db, *output; /* NULL: not given */
  sn_color color;
  sn_exec_backend backend;
  bool deterministic, tf32;
  const char *data, *trace;
  sn_weight_files files; /* of `run` */
  bool init_given;
  bool front;         /* of `advise`: rules beside the optimum */
  sn_runtime runtime; /* --for */
  sn_cost_source costs;
  const char *profile;         /* what --gpu gave; NULL: nothing, and gpu is the one that is meant then */
  const char *gpu_why;         /* which is why (cli/options/gpu.h); "" where --gpu gave it */
  sn_hyper hyper;              /* learning rate, momentum, weight decay and seed of the commands that train */
  sn_args_lists axes[SN_AXES]; /* of `sweep`; strategies are above */
  sn_args_lists sequences;     /* lengths of sequences, instead of those of SN_AXIS_IMAGES */
  const char *grid;            /* NULL: not given */
  uint32_t jobs;               /* 0: not given */
  bool csv, fresh;
  const char *max, *min, *which; /* of `fit`: the knob, "memory", "gpu"; NULL: not given */
  const char *margin_text;       /* of --margin, checked; NULL: not given */
  sn_margin margin;
  const char *operands[SN_ARGS_OPERANDS]; /* all of the command's operands */
  uint32_t n_operands;
  const char *name;  /* of a run to be stored, or part of the names to list; NULL: not given */
  bool remove;       /* of `show` */
  const char *table; /* of `export`; NULL: not given */
  bool man;          /* of `help` */
  sn_plot_kind kind; /* of `plot` */
  sn_plot_x x;
  bool with_live;         /* of `plot` */
  sn_args_bytes capacity; /* of `pack` */
  uint32_t moves;
  bool exact;
  uint64_t nodes;        /* 0: not given */
  uint32_t gpus;         /* of `advise`, that share an iteration; 0: not given */
  uint32_t global_batch; /* with it, of all of them an update; 0: not given */
  sn_dialect_id dialect; /* of `graph` */
  sn_order order;
  uint32_t match_range, colours; /* of `memcost`; colours may be SN_COLOURS_ANCESTORS */
  sn_args_lists heuristics;      /* of `dtr`, as budgets are, which others have one of: corun.budget_bytes */
  sn_args_lists budgets;
} sn_args;

/* Whether a condition that is a word was given, "precision": else PyTorch's questions are asked as PyTorch starts
 * (sn_device_starts_in()). */
bool sn_args_gave(const sn_args *args, const char *condition);
/* As if it had not been. */
void sn_args_forget(sn_args *args, const char *condition);

/* Whether --net is FILE.py:NAME, a model in Python, and its NAME. */
bool sn_args_is_source(const sn_args *args);
const char *sn_args_source_name(const char *net);

/* Every command has a bit, by which options name the commands that take them. */
enum {
  SN_CMD_SIMULATE = 1 << 0,
  SN_CMD_FIT = 1 << 1,
  SN_CMD_ADVISE = 1 << 2,
  SN_CMD_SWEEP = 1 << 3,
  SN_CMD_REPRODUCE = 1 << 4,
  SN_CMD_RUN = 1 << 5,
  SN_CMD_VALIDATE = 1 << 6,
  SN_CMD_CALIBRATE = 1 << 7,
  SN_CMD_LIST = 1 << 8,
  SN_CMD_SHOW = 1 << 9,
  SN_CMD_PLOT = 1 << 10,
  SN_CMD_REPORT = 1 << 11,
  SN_CMD_TRACE = 1 << 12,
  SN_CMD_DIFF = 1 << 13,
  SN_CMD_EXPORT = 1 << 14,
  SN_CMD_COMPLETIONS = 1 << 15,
  SN_CMD_HELP = 1 << 16,
  SN_CMD_PACK = 1 << 17,
  SN_CMD_GRAPH = 1 << 18,
  SN_CMD_MEMCOST = 1 << 19,
  SN_CMD_THREADS = 1 << 20,
  SN_CMD_DTR = 1 << 21,
  SN_CMD_CHECK = 1 << 22,
  SN_CMD_PLAY = 1 << 23,
  SN_CMD_SHOW_NET = 1 << 24,
  SN_CMD_RECORD = 1 << 25,
  SN_CMD_ALL = (1 << 26) - 1
};

/* A command. Texts are paragraphs parted by newlines, wrapped when printed; examples stand as they are. */
typedef struct sn_command {
  const char *name, *synopsis, *summary, *description, *examples;
  const char *operand; /* "RUN", "[RUN]", "RUN RUN", "[RUN]..": how many there are, and of what; NULL: none */
  unsigned bit;        /* SN_CMD_.. */
  sn_status (*run)(const sn_args *args, sn_err *err);
} sn_command;

/* An option. `commands` has the bit of every command that takes it. Rows with the same name are the same option, read
 * the same way, with what it means to different commands.
 *
 * Arguments and operands are words parted by '|': small letters stand for themselves, capitals for something of that
 * kind, which completions offer where they know it: NET, GPU, S (strategy), RUN, SWEEP (as "sweep:3"), COMMAND, FILE,
 * FILE.json (one whose name ends so). ",.." behind them: several, parted by commas. */
typedef struct sn_option {
  const char *name, *argument; /* "batch", "N"; no argument: a switch */
  char letter;                 /* 'o' for -o, or 0 */
  unsigned commands;
  const char *group, *help;
  sn_status (*parse)(const char *what, const char *text, void *place, sn_err *err);
  size_t place; /* offset in sn_args */
} sn_option;

const sn_command *sn_command_table(uint32_t *count);
const sn_option *sn_option_table(uint32_t *count);

/* SN_BAD_USAGE with the nearest name for an unknown one; NULL then. */
const sn_command *sn_command_find(const char *name, sn_err *err);
bool sn_option_belongs(const sn_option *option, const sn_command *command);
/* The options of a command, of all for NULL, group by group: behind that one the next, the first behind NULL. Groups come
 * in the order of their first options. NULL behind the last. */
const sn_option *sn_option_next(const sn_command *command, const sn_option *option);
/* How many operands the command's row asks for and allows. */
void sn_command_operands(const sn_command *command, uint32_t *least, uint32_t *most);

/* Whose network a name means that both have: torchvision's where PyTorch is asked about, else that of the paper. */
sn_net_origin sn_args_origin(const sn_args *args);

/* Reads argv by the tables. SN_BAD_USAGE. `args` is complete also on an error, so that help can be given. */
sn_status sn_args_parse(int argc, char *const *argv, sn_args *args, sn_err *err);

/* The database to use: --db, or the default one. */
sn_status sn_args_database(const sn_args *args, char *path, size_t room, sn_err *err);
/* " --db FILE" as a shell reads it, where the next command needs it to find the same database; "" else. Returns text.
 */
enum { SN_ARGS_DB_ROOM = 4 * 4096 };
const char *sn_args_db_option(const sn_args *args, char text[SN_ARGS_DB_ROOM]);
/* Operand `index`, of which there may be fewer, as the number of a run; 0, the newest, where there is none or it is
 * "last". Another text is a run's name: *name is set to it, else to NULL. */
sn_status sn_args_run_at(const sn_args *args, uint32_t index, int64_t *id, const char **name, sn_err *err);

/* Whether a text may be the name of a run: it is no number and no word that means something else there. */
bool sn_args_is_name(const char *text);

/* What the overview of `snsim help` says before and behind the tables; shared with the manual page. */
extern const char sn_help_purpose[], sn_help_statuses[], sn_help_stored[], sn_help_repeated[];
/* The manual page as roff (cli/options/man.c). */
void sn_man_write(FILE *out);

/* The operand as the number of a sweep, "sweep:7" or "7", "sweep:last" or "last"; 0, the newest, for those two. */
sn_status sn_args_sweep(const sn_args *args, int64_t *id, sn_err *err);
/* Whether the operand is "sweep:.." */
bool sn_args_is_sweep(const sn_args *args);

/* The commands: cli/commands/simulate.c, list.c, show.c, plot.c, help.c. */
sn_status sn_cli_simulate(const sn_args *args, sn_err *err);
sn_status sn_cli_run(const sn_args *args, sn_err *err);
sn_status sn_cli_list(const sn_args *args, sn_err *err);
sn_status sn_cli_show(const sn_args *args, sn_err *err);
sn_status sn_cli_plot(const sn_args *args, sn_err *err);
sn_status sn_cli_help(const sn_args *args, sn_err *err);
sn_status sn_cli_validate(const sn_args *args, sn_err *err);
sn_status sn_cli_calibrate(const sn_args *args, sn_err *err);
sn_status sn_cli_report(const sn_args *args, sn_err *err);
sn_status sn_cli_memcost(const sn_args *args, sn_err *err);
sn_status sn_cli_threads(const sn_args *args, sn_err *err);
sn_status sn_cli_show_net(const sn_args *args, sn_err *err);
sn_status sn_cli_graph(const sn_args *args, sn_err *err);
sn_status sn_cli_trace(const sn_args *args, sn_err *err);
sn_status sn_cli_sweep(const sn_args *args, sn_err *err);
sn_status sn_cli_fit(const sn_args *args, sn_err *err);
sn_status sn_cli_fit_check(const sn_args *args, sn_err *err); /* what can be said without the network */
sn_status sn_cli_advise(const sn_args *args, sn_err *err);
sn_status sn_cli_advise_check(const sn_args *args, sn_err *err); /* the same */
sn_status sn_cli_diff(const sn_args *args, sn_err *err);
sn_status sn_cli_export(const sn_args *args, sn_err *err);
sn_status sn_cli_completions(const sn_args *args, sn_err *err);
sn_status sn_cli_dtr(const sn_args *args, sn_err *err);
sn_status sn_cli_pack(const sn_args *args, sn_err *err);
sn_status sn_cli_check(const sn_args *args, sn_err *err);
sn_status sn_cli_play(const sn_args *args, sn_err *err);
sn_status sn_cli_reproduce(const sn_args *args, sn_err *err);
sn_status sn_cli_record(const sn_args *args, sn_err *err);

#endif
