/* How the value of each option is read; see the header. */
#include "cli/options/option_values.h"

#include "base/units.h"
#include "models/build/lora.h"
#include "models/net/net.h"
#include "sim/capacity/fit.h"
#include "sim/memory/pack.h"
#include "sim/share/colour.h"
#include "sim/sweep/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_STRATEGY = 200 };

sn_status sn__parse_switch(const char *what, const char *text, void *place, sn_err *err) {
  (void)what, (void)text, (void)err;
  *(bool *)place = true;
  return SN_OK;
}

sn_status sn__parse_text(const char *what, const char *text, void *place, sn_err *err) {
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "%s: the value is empty", what);
  *(const char **)place = text;
  return SN_OK;
}

/* "8": how many there are, as trainers ask. `shares`: of a question that several may share. */
static sn_status check_gpu(const char *what, const char *text, bool shares, sn_err *err) {
  if (!*text || strlen(text) > 3 || text[strspn(text, "0123456789")]) return SN_OK;
  if (!shares)
    return sn_fail(err, SN_BAD_USAGE,
                   "%s: \"%s\" is a number of GPUs, not the name of one; one is asked about, with what it gets of the "
                   "batch; snsim list gpus shows their names",
                   what, text);
  long count = strtol(text, NULL, 10);
  return sn_fail(err, SN_BAD_USAGE,
                 "%s: \"%s\" is a number of GPUs, not the name of one, as snsim list gpus shows them; several share by "
                 "--parallel fsdp=%ld, and the best way is found by snsim advise --gpus %ld",
                 what, text, count > 1 ? count : 8, count > 1 ? count : 8);
}

/* Images that a GPU may have at once where advise looks for how many, unless --batch says. */
enum { ADVISED_BATCH = 1024 };

/* Of advise how many there are, of sweep which. */
sn_status sn__take_gpus(sn_args *args, sn_err *err) {
  const sn_args_lists *list = &args->axes[SN_AXIS_GPUS];
  bool counts = args->command->bit == SN_CMD_ADVISE;
  for (uint32_t i = 0; i < list->count && !counts; i++)
    if (check_gpu("--gpus", list->texts[i], args->command->bit != SN_CMD_SWEEP, err) != SN_OK) return err->code;
  if (!counts || list->count == 0) return SN_OK;
  const char *text = list->texts[list->count - 1];
  uint64_t gpus;
  if (*text && !text[strspn(text, "0123456789")]) {
    if (sn_parse_count(text, "--gpus", 2, SN_MESH_MOST, &gpus, err) != SN_OK) return err->code;
    args->gpus = (uint32_t)gpus;
    if (args->batch == 0) args->batch = ADVISED_BATCH;
    return SN_OK;
  }
  return sn_fail(err, SN_BAD_USAGE,
                 "--gpus: \"%.40s\" is not how many GPUs share, as --gpus 8; which they are: --gpu %.40s", text, text);
}

sn_status sn__parse_gpu(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  if (check_gpu(what, text, true, err) != SN_OK) return err->code;
  if (sn__parse_text(what, text, &args->gpu, err) != SN_OK) return err->code;
  const char *called = sn_device_is_file(text) ? NULL : sn_device_called(text);
  args->profile = args->gpu = called ? called : args->gpu;
  return SN_OK;
}

static sn_status take_count(const char *what, const char *text, uint64_t low, uint64_t high, uint32_t *place,
                            sn_err *err) {
  uint64_t value = 0;
  sn_status status = sn_parse_count(text, what, low, high, &value, err);
  *place = (uint32_t)value;
  return status;
}

sn_status sn__parse_size(const char *what, const char *text, void *place, sn_err *err) {
  return take_count(what, text, 1, SN_MAX_DIM, place, err);
}

/* "224", or "800x1333": rows and columns. */
sn_status sn__parse_image(const char *what, const char *text, void *place, sn_err *err) {
  uint32_t *image = place, height, width;
  const char *by = strchr(text, 'x');
  char rows[12];
  sn_err wrong = SN_ERR_INIT;
  if (!by) return take_count(what, text, 1, SN_MAX_DIM, place, err);
  snprintf(rows, sizeof rows, "%.*s", (int)sn_min((size_t)(by - text), sizeof rows - 1), text);
  if (take_count(what, rows, 1, SN_IMAGE_SIDE, &height, &wrong) != SN_OK ||
      take_count(what, by + 1, 1, SN_IMAGE_SIDE, &width, &wrong) != SN_OK)
    return sn_fail(err, SN_BAD_USAGE,
                   "%s: \"%.40s\" is no size of images: give a side (224), or height and width (800x1333), to %d", what,
                   text, SN_IMAGE_SIDE);
  *image = sn_image_size(height, width);
  return SN_OK;
}

static int compare_counts(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* "4": threads; "1,2,4": teams of so many as well. */
sn_status sn__parse_thread_counts(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  args->n_teams = 0;
  for (const char *at = text; at;) {
    char item[24];
    size_t length = strcspn(at, ",");
    snprintf(item, sizeof item, "%.*s", (int)(length < sizeof item ? length : sizeof item - 1), at);
    if (args->n_teams == SN_TEAM_COUNTS)
      return sn_fail(err, SN_BAD_USAGE, "%s: at most %d counts", what, SN_TEAM_COUNTS);
    if (take_count(what, item, 1, SN_MACHINE_THREADS, &args->teams[args->n_teams++], err) != SN_OK) return err->code;
    at = at[length] ? at + length + 1 : NULL;
  }
  qsort(args->teams, args->n_teams, sizeof *args->teams, compare_counts);
  args->threads = args->teams[args->n_teams - 1];
  if (args->n_teams == 1) args->n_teams = 0;
  return SN_OK;
}

sn_status sn__parse_jobs(const char *what, const char *text, void *place, sn_err *err) {
  return take_count(what, text, 1, SN_WORKERS_MOST, place, err);
}

sn_status sn__parse_accumulate(const char *what, const char *text, void *place, sn_err *err) {
  return take_count(what, text, 1, SN_ITERATION_BATCHES, place, err);
}

sn_status sn__parse_moves(const char *what, const char *text, void *place, sn_err *err) {
  return take_count(what, text, 0, SN_PACK_MOST_MOVES, place, err);
}

sn_status sn__parse_nodes(const char *what, const char *text, void *place, sn_err *err) {
  return sn_parse_count(text, what, 1, UINT64_C(1000000000000), place, err);
}

sn_status sn__parse_samples(const char *what, const char *text, void *place, sn_err *err) {
  return sn_parse_count(text, what, 1, UINT64_C(1000000000000000), place, err);
}

sn_status sn__parse_match_range(const char *what, const char *text, void *place, sn_err *err) {
  return take_count(what, text, 0, SN_MAX_DIM, place, err);
}

sn_status sn__parse_colours(const char *what, const char *text, void *place, sn_err *err) {
  uint64_t value = SN_COLOURS_ANCESTORS;
  if (strcmp(text, "ancestors") != 0 && (!*text || text[strspn(text, "0123456789")]))
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is neither a number of colours nor ancestors", what, text);
  if (strcmp(text, "ancestors") != 0) sn_parse_count(text, what, 1, SN_COLOURS_MOST, &value, err);
  *(uint32_t *)place = (uint32_t)value;
  return err->code;
}

sn_status sn__parse_warmup(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  uint64_t value = 0;
  sn_status status = sn_parse_count(text, what, 0, SN_MAX_DIM, &value, err);
  args->warmup = (uint32_t)value;
  args->warmup_given = true;
  return status;
}

sn_status sn__parse_seed(const char *what, const char *text, void *place, sn_err *err) {
  return sn_parse_count(text, what, 0, UINT64_MAX, place, err);
}

/* From 0 to below `limit`; an exponent is allowed, hexadecimal and "nan" are not. */
static sn_status take_real(const char *what, const char *text, float limit, float *value, sn_err *err) {
  char *end;
  float number = strtof(text, &end);
  if (!*text || *end || text[strspn(text, "0123456789.eE+-")])
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is not a number", what, text);
  if (number < 0 || number >= limit)
    return sn_fail(err, SN_BAD_USAGE, "%s: %.80s is out of range (from 0 to below %g)", what, text, (double)limit);
  *value = number;
  return SN_OK;
}

sn_status sn__parse_rate(const char *what, const char *text, void *place, sn_err *err) {
  return take_real(what, text, 1000, place, err);
}

sn_status sn__parse_share(const char *what, const char *text, void *place, sn_err *err) {
  return take_real(what, text, 1, place, err);
}

static sn_status take_bytes(const char *what, const char *text, uint64_t low, sn_args_bytes *bytes, sn_err *err) {
  bytes->given = true;
  return sn_parse_bytes(text, what, low, &bytes->bytes, err);
}

sn_status sn__parse_bytes(const char *what, const char *text, void *place, sn_err *err) {
  return take_bytes(what, text, 1, place, err);
}

/* Blocks have no unit but bytes, and neither has what they go into. */
sn_status sn__parse_capacity(const char *what, const char *text, void *place, sn_err *err) {
  sn_args_bytes *bytes = place;
  if (!*text || text[strspn(text, "0123456789")]) return take_bytes(what, text, 0, bytes, err);
  bytes->given = true;
  return sn_parse_count(text, what, 0, UINT64_MAX, &bytes->bytes, err);
}

/* A context of nothing is a question one may ask; a device or pool of nothing is not. */
sn_status sn__parse_bytes_or_0(const char *what, const char *text, void *place, sn_err *err) {
  return take_bytes(what, text, 0, place, err);
}

static sn_status take_strategy(const char *what, const char *text, sn_args *args, sn_err *err) {
  sn_strategy s;
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "%s: the value is empty; snsim list strategies shows them", what);
  if (sn_strategy_parse(text, &s, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < args->n_strategies; i++)
    if (sn_strategy_same(args->strategies[i], s)) return SN_OK;
  if (args->n_strategies == SN_ARGS_STRATEGIES)
    return sn_fail(err, SN_BAD_USAGE, "%s: at most %d strategies at a time; ask about the others in a second run", what,
                   SN_ARGS_STRATEGIES);
  args->strategies[args->n_strategies++] = s;
  return SN_OK;
}

/* One, or several parted by commas. */
sn_status sn__parse_strategy(const char *what, const char *text, void *place, sn_err *err) {
  for (const char *at = text; err->code == SN_OK && at;) {
    char one[LONGEST_STRATEGY];
    size_t length = strcspn(at, ",");
    snprintf(one, sizeof one, "%.*s", (int)length, at); /* what is longer is none, and cut none either */
    take_strategy(what, one, place, err);
    at = at[length] ? at + length + 1 : NULL;
  }
  return err->code;
}

/* Read when the grid is made of it. */
sn_status sn__parse_list(const char *what, const char *text, void *place, sn_err *err) {
  sn_args_lists *lists = place;
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "%s: the value is empty", what);
  if (lists->count == SN_ARGS_LISTS)
    return sn_fail(err, SN_BAD_USAGE, "%s is given more than %d times; part values by commas, or use --grid FILE", what,
                   SN_ARGS_LISTS);
  lists->texts[lists->count++] = text;
  return SN_OK;
}

/* The parsers of sim/ name the option themselves. */
/* Of an option's name a hyphen is an underline of the condition's. */
static bool is_called(const char *condition, const char *option) {
  for (; *condition && (*condition == *option || (*condition == '_' && *option == '-')); condition++) option++;
  return *condition == *option;
}

sn_status sn__parse_condition(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  sn_conditions conditions = sn_conditions_of(&args->options, NULL);
  for (uint32_t i = 0; i < SN_CONDITION_ROWS; i++) {
    const sn_condition *c = &sn_condition_table[i];
    if (c->kind != SN_CONDITION_WORD || !is_called(c->name, what + strlen("--"))) continue;
    *(const char **)sn_condition_place(c, &conditions) = text;
    args->gave[i] = true;
    return c->apply(&conditions, &args->options, err);
  }
  return sn_fail(err, SN_BUG, "%s: no condition of this name", what);
}

static uint32_t condition_row(const char *condition) {
  uint32_t i = 0;
  while (i + 1 < SN_CONDITION_ROWS && strcmp(sn_condition_table[i].name, condition) != 0) i++;
  return i;
}

/* As it was given, too: a sweep keeps the path of a file. */
sn_status sn__parse_cluster(const char *what, const char *text, void *place, sn_err *err) {
  ((sn_args *)place)->cluster = text;
  return sn__parse_condition(what, text, place, err);
}

/* Whether a size is looked for is known behind the other options. */
sn_status sn__parse_scheme(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  args->gave[condition_row(what + strlen("--"))] = true;
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "--parallel is empty; say fsdp=8, or leave it out for one GPU");
  return sn_mesh_parse_sought(text, &args->options.iteration.mesh, err);
}

bool sn_args_gave(const sn_args *args, const char *condition) {
  return args->gave[condition_row(condition)];
}

void sn_args_forget(sn_args *args, const char *condition) {
  args->gave[condition_row(condition)] = false;
}

sn_status sn__parse_pool(const char *what, const char *text, void *place, sn_err *err) {
  return sn_parse_bytes(text, what, 1, place, err);
}

sn_status sn__parse_modules(const char *what, const char *text, void *place, sn_err *err) {
  bool *eager = place;
  *eager = strcmp(text, "eager") == 0;
  if (*eager || strcmp(text, "lazy") == 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is neither lazy nor eager", what, text);
}

sn_status sn__parse_placement(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  (void)what;
  args->placement_given = true;
  return sn_placement_parse(text, &args->options.placement, err);
}

sn_status sn__parse_corun_budget(const char *text, uint64_t *bytes, sn_err *err) {
  *bytes = strcmp(text, "any") == 0 ? SN_BUDGET_ANY : SN_BUDGET_SERIAL;
  if (*bytes == SN_BUDGET_ANY || strcmp(text, "serial") == 0) return SN_OK;
  return sn_parse_bytes(text, "--budget", 1, bytes, err);
}

sn_status sn__parse_sharing(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_reuse_parse(text, place, err);
}

sn_status sn__parse_quantize(const char *what, const char *text, void *place, sn_err *err) {
  if (strcmp(text, "nf4") != 0)
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.60s\" is not known; there is nf4, QLoRA's 4 bits", what, text);
  *(bool *)place = true;
  return SN_OK;
}

sn_status sn__parse_lora(const char *what, const char *text, void *place, sn_err *err) {
  sn_lora lora;
  (void)what;
  *(const char **)place = text;
  return sn_lora_parse(text, &lora, err);
}

/* Given several times, it adds up. */
sn_status sn__parse_freeze(const char *what, const char *text, void *place, sn_err *err) {
  char *all = place;
  size_t used = strlen(all);
  (void)what;
  if (sn_globs_check_text("--freeze", text, err) != SN_OK) return err->code;
  snprintf(all + used, SN_GLOBS_TEXT + 2 - used, "%s%s", used ? "," : "", text);
  return sn_globs_check_text("--freeze", all, err);
}

sn_status sn__parse_init(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  (void)what;
  args->init_given = true;
  return sn_init_parse(text, &args->hyper.init, err);
}

sn_status sn__parse_dialect(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_dialect_parse(text, place, err);
}

sn_status sn__parse_order(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_order_parse(text, place, err);
}

sn_status sn__parse_for(const char *what, const char *text, void *place, sn_err *err) {
  if (sn_runtime_parse(text, place, err) != SN_OK) sn_err_prefix(err, "%s", what);
  return err->code;
}

sn_status sn__parse_kind(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_plot_kind_parse(text, place, err);
}

sn_status sn__parse_x(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_plot_x_parse(text, place, err);
}

sn_status sn__parse_backend(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_exec_backend_parse(text, place, err);
}

sn_status sn__parse_costs(const char *what, const char *text, void *place, sn_err *err) {
  static const char *const names[SN_COSTS_COUNT] = {"auto", "model", "measured"};
  for (int i = 0; i < SN_COSTS_COUNT; i++)
    if (strcmp(text, names[i]) == 0) {
      *(sn_cost_source *)place = (sn_cost_source)i;
      return SN_OK;
    }
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is none of auto, model, measured", what, text);
}

sn_status sn__parse_color(const char *what, const char *text, void *place, sn_err *err) {
  static const char *const names[] = {"auto", "always", "never"};
  for (int i = 0; i < 3; i++)
    if (strcmp(text, names[i]) == 0) {
      *(sn_color *)place = (sn_color)i;
      return SN_OK;
    }
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is none of auto, always, never", what, text);
}

sn_status sn__parse_interval(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_interval_parse(text, place, err);
}

sn_status sn__parse_max(const char *what, const char *text, void *place, sn_err *err) {
  sn_knob_kind kind;
  *(const char **)place = text;
  return sn_knob_parse(what, text, &kind, err);
}

/* An option with one value so far. */
static sn_status take_only(const char *what, const char *text, const char *only, void *place, sn_err *err) {
  *(const char **)place = text;
  return strcmp(text, only) == 0 ? SN_OK : sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is not %s", what, text, only);
}

sn_status sn__parse_min(const char *what, const char *text, void *place, sn_err *err) {
  *(const char **)place = text;
  if (strcmp(text, "memory") == 0 || strcmp(text, "gpus") == 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is none of memory and gpus", what, text);
}

sn_status sn__parse_which(const char *what, const char *text, void *place, sn_err *err) {
  return take_only(what, text, "gpu", place, err);
}

/* The later one counts. */
sn_status sn__parse_margin(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  args->margin_text = text;
  return sn_margin_parse(text, what, &args->margin, err);
}
