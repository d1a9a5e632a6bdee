/* Grid: the values of the axes, and what a group's number stands for. As JSON it is in sim/sweep/grid_json.c. */
#include "sim/sweep/grid.h"

#include "base/arena.h"
#include "base/fnv.h"
#include "base/path.h"
#include "base/units.h"
#include "base/utf8.h"
#include "models/zoo/zoo.h"
#include "sim/device/device.h"
#include "sim/graph/freeze.h"
#include "sim/sweep/range.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each axis: its name, and what it is unless somebody says. `within`: groups that differ in it alone have the same
 * network and iteration. */
static const struct {
  const char *name, *usual;
  bool within;
} axes[SN_AXES] = {[SN_AXIS_NETS] = {"nets", NULL, false},
                   [SN_AXIS_IMAGES] = {"images", "own", false},
                   [SN_AXIS_GPUS] = {"gpus", "rtx4090", true},
                   [SN_AXIS_MEMORIES] = {"memories", "own", true},
                   [SN_AXIS_LINKS] = {"links", "own", true},
                   [SN_AXIS_WORKSPACES] = {"workspaces", "dynamic", true},
                   [SN_AXIS_EXTERNALS] = {"externals", "host", true},
                   [SN_AXIS_ALLOCATORS] = {"allocators", "pool", true},
                   [SN_AXIS_OPTIMIZERS] = {"optimizers", "momentum", false},
                   [SN_AXIS_ACCUMULATES] = {"accumulates", "1", false},
                   [SN_AXIS_PRECISIONS] = {"precisions", NULL, false},
                   [SN_AXIS_PARALLELS] = {"parallels", SN_GRID_ONE_GPU, false},
                   [SN_AXIS_POOLS] = {"pools", "all", true},
                   [SN_AXIS_BATCHES] = {"batches", NULL, false},
                   [SN_AXIS_STRATEGIES] = {"strategies", NULL, false}};

const char *sn_axis_name(sn_axis axis) {
  return axes[axis].name;
}

const char *sn_grid_axis_name(const sn_grid *grid, sn_axis axis) {
  return axis == SN_AXIS_IMAGES && grid->sequences ? "sequences" : axes[axis].name;
}

const sn_condition *sn_axis_condition(sn_axis axis) {
  for (uint32_t i = 0; i < SN_CONDITION_ROWS; i++) {
    const char *name = sn_condition_table[i].axis;
    if (name && strcmp(name, axes[axis].name) == 0) return &sn_condition_table[i];
  }
  return NULL;
}

sn_grid *sn_grid_new(sn_err *err) {
  sn_grid *grid = calloc(1, sizeof *grid);
  if (grid) grid->arena = sn_arena_new();
  if (grid) grid->freeze = grid->margin = grid->cluster = "";
  if (grid && grid->arena) return grid;
  sn_fail_memory(err);
  free(grid);
  return NULL;
}

void sn_grid_free(sn_grid *grid) {
  if (grid) sn_arena_free(grid->arena);
  free(grid);
}

/* ---- adding values ---- */

static sn_status check_room(const sn_grid *grid, sn_axis axis, uint32_t most, sn_err *err) {
  if (grid->n[axis] < most) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "%s: more than %u values", sn_grid_axis_name(grid, axis), most);
}

static sn_status add_name(sn_grid *grid, sn_axis axis, const char **names, uint32_t most, const char *text,
                          sn_err *err) {
  for (uint32_t i = 0; i < grid->n[axis]; i++)
    if (strcmp(names[i], text) == 0) return SN_OK;
  if (check_room(grid, axis, most, err) != SN_OK) return err->code;
  char *copy = sn_arena_text(grid->arena, text);
  if (!copy) return sn_fail_memory(err);
  names[grid->n[axis]++] = copy;
  return SN_OK;
}

/* Sets a condition to what a value says; `what` is what errors call the axis. */
static sn_status set_condition(const sn_condition *c, const char *what, const char *text, sn_conditions *conditions,
                               sn_err *err) {
  void *place = sn_condition_place(c, conditions);
  uint64_t number = 0;
  switch (c->kind) {
  case SN_CONDITION_WORD:
    *(const char **)place = text;
    break;
  case SN_CONDITION_FLAG:
    for (int value = 0; value < 2; value++)
      if (sn_condition_word(c, value, text)) *(bool *)place = value, number++;
    if (number == 0)
      return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is none of: %.*s, %s", what, text, (int)strcspn(c->over, "|"),
                     c->over, strchr(c->over, '|') + 1);
    break;
  case SN_CONDITION_COUNT:
    sn_parse_count(text, what, 1, SN_ITERATION_BATCHES, &number, err);
    *(uint32_t *)place = (uint32_t)number;
    break;
  case SN_CONDITION_BYTES:
    if (strcmp(text, "all") != 0) sn_parse_bytes(text, what, 1, &number, err);
    *(uint64_t *)place = number;
    break;
  }
  return err->code;
}

/* A value as the grid's text has it. */
static const char *value_of(const sn_condition *c, const sn_conditions *conditions, sn_arena *arena) {
  char room[SN_CONDITION_TEXT];
  const char *text = sn_condition_text(c, conditions, room);
  if (c->kind == SN_CONDITION_FLAG)
    return *(const bool *)sn_condition_of(c, conditions)
               ? strchr(c->over, '|') + 1
               : sn_arena_print(arena, "%.*s", (int)strcspn(c->over, "|"), c->over);
  if (c->kind == SN_CONDITION_BYTES) return strcmp(text, "0") == 0 ? "all" : sn_arena_print(arena, "%sB", text);
  return sn_arena_text(arena, *text ? text : SN_GRID_ONE_GPU);
}

/* Other words for an optimizer or a precision stand for its own. An error of an option is one of the axis. */
static sn_status add_condition(sn_grid *grid, sn_axis axis, const char *text, sn_err *err) {
  const sn_condition *c = sn_axis_condition(axis);
  sn_options options = SN_OPTIONS_INIT;
  sn_conditions conditions = sn_conditions_of(&options, NULL);
  sn_err reason = SN_ERR_INIT;
  if (set_condition(c, axes[axis].name, text, &conditions, err) != SN_OK) return err->code;
  if (c->apply(&conditions, &options, &reason) != SN_OK)
    return sn_fail(err, reason.code, "%s%s", axes[axis].name, strchr(reason.text, ':'));
  conditions = sn_conditions_of(&options, NULL);
  const char *value = value_of(c, &conditions, grid->arena);
  return value ? add_name(grid, axis, grid->conditions[axis], SN_GRID_CONDITIONS, value, err) : sn_fail_memory(err);
}

/* Bytes or, of images, a number; the word for what there is without being asked is 0. */
static sn_status add_size(sn_grid *grid, sn_axis axis, uint64_t *sizes, uint32_t most, const char *text, sn_err *err) {
  const char *what = sn_grid_axis_name(grid, axis);
  uint64_t size = 0;
  uint32_t *n = &grid->n[axis];
  if (strcmp(text, "own") != 0 && axis == SN_AXIS_IMAGES && strspn(text, "0123456789") != strlen(text))
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is neither a number nor \"own\"", what, text);
  if (strcmp(text, "own") != 0 && (axis == SN_AXIS_IMAGES ? sn_parse_count(text, what, 1, SN_MAX_DIM, &size, err)
                                                          : sn_parse_bytes(text, what, 1, &size, err)) != SN_OK)
    return err->code;
  for (uint32_t i = 0; i < *n; i++)
    if (sizes[i] == size) return SN_OK;
  if (check_room(grid, axis, most, err) != SN_OK) return err->code;
  sizes[(*n)++] = size;
  return SN_OK;
}

/* A mesh, of which one number may be a range: "tp=8,fsdp=1:8:x2". */
static sn_status add_meshes(sn_grid *grid, const char *text, sn_err *err) {
  sn__range range;
  for (const char *at = text + strcspn(text, "="); *at; at += strcspn(at, "=")) {
    size_t length = strcspn(++at, ",");
    if (!sn__is_range(at, length)) continue;
    if (sn__range_read(axes[SN_AXIS_PARALLELS].name, at, length, SN_MESH_MOST, &range, err) != SN_OK) return err->code;
    for (uint64_t n = range.low; n <= range.high && err->code == SN_OK; n = sn__range_next(&range, n)) {
      char mesh[2 * SN_MESH_TEXT];
      snprintf(mesh, sizeof mesh, "%.*s%" PRIu64 "%s", (int)(at - text), text, n, at + length);
      add_condition(grid, SN_AXIS_PARALLELS, mesh, err);
    }
    return err->code;
  }
  return add_condition(grid, SN_AXIS_PARALLELS, text, err);
}

static sn_status add_batch(sn_grid *grid, uint32_t batch, sn_err *err) {
  uint32_t *n = &grid->n[SN_AXIS_BATCHES];
  uint32_t at = *n;
  while (at > 0 && grid->batches[at - 1] >= batch) at--;
  if (at < *n && grid->batches[at] == batch) return SN_OK;
  if (check_room(grid, SN_AXIS_BATCHES, SN_GRID_BATCHES, err) != SN_OK) return err->code;
  memmove(&grid->batches[at + 1], &grid->batches[at], (*n - at) * sizeof grid->batches[0]);
  grid->batches[at] = batch;
  ++*n;
  return SN_OK;
}

static sn_status add_range(sn_grid *grid, const char *text, sn_err *err) {
  sn__range range;
  if (sn__range_read(axes[SN_AXIS_BATCHES].name, text, strlen(text), SN_MAX_DIM, &range, err) != SN_OK)
    return err->code;
  for (uint64_t b = range.low; b <= range.high; b = sn__range_next(&range, b))
    if (add_batch(grid, (uint32_t)b, err) != SN_OK) return err->code;
  return SN_OK;
}

static sn_status add_batches(sn_grid *grid, const char *text, sn_err *err) {
  uint64_t batch;
  if (strchr(text, ':') || strspn(text, "0123456789") != strlen(text)) return add_range(grid, text, err);
  if (sn_parse_count(text, axes[SN_AXIS_BATCHES].name, 1, SN_MAX_DIM, &batch, err) != SN_OK) return err->code;
  return add_batch(grid, (uint32_t)batch, err);
}

static sn_status add_strategy(sn_grid *grid, const char *text, sn_err *err) {
  sn_strategy s;
  uint32_t *n = &grid->n[SN_AXIS_STRATEGIES];
  if (sn_strategy_parse(text, &s, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < *n; i++)
    if (sn_strategy_same(grid->strategies[i], s)) return SN_OK;
  if (check_room(grid, SN_AXIS_STRATEGIES, SN_GRID_STRATEGIES, err) != SN_OK) return err->code;
  grid->strategies[(*n)++] = s;
  return SN_OK;
}

/* The grid's text is JSON, which other names would not survive: the sweep could neither be gone on with by its number
 * nor sent to other machines. */
static sn_status check_utf8(sn_axis axis, const char *text, sn_err *err) {
  uint32_t point;
  for (size_t bytes; *text; text += bytes)
    if ((bytes = sn_utf8_next(text, &point)) == 0)
      return sn_fail(err, SN_BAD_USAGE,
                     "%s: a name that is no UTF-8 cannot be kept with a sweep; rename the file, or make a link to it",
                     axes[axis].name);
  return SN_OK;
}

static sn_status add_net(sn_grid *grid, const char *text, sn_err *err) {
  char name[SN_NET_SPEC];
  if (sn_net_resolve(text, grid->origin, name, err) != SN_OK) return err->code;
  return add_name(grid, SN_AXIS_NETS, grid->nets, SN_GRID_NETS, name, err);
}

/* Other words for a GPU stand for its own. */
static sn_status add_gpu(sn_grid *grid, const char *text, sn_err *err) {
  const char *called = sn_device_is_file(text) ? NULL : sn_device_called(text);
  return add_name(grid, SN_AXIS_GPUS, grid->gpus, SN_GRID_GPUS, called ? called : text, err);
}

sn_status sn_grid_add(sn_grid *grid, sn_axis axis, const char *text, sn_err *err) {
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "%s: a value is empty", axes[axis].name);
  if (check_utf8(axis, text, err) != SN_OK) return err->code;
  if (axis == SN_AXIS_PARALLELS) return add_meshes(grid, text, err);
  if (sn_axis_condition(axis)) return add_condition(grid, axis, text, err);
  switch (axis) {
  case SN_AXIS_NETS:
    return add_net(grid, text, err);
  case SN_AXIS_GPUS:
    return add_gpu(grid, text, err);
  case SN_AXIS_IMAGES:
    return add_size(grid, axis, grid->images, SN_GRID_IMAGES, text, err);
  case SN_AXIS_MEMORIES:
    return add_size(grid, axis, grid->memories, SN_GRID_MEMORIES, text, err);
  case SN_AXIS_BATCHES:
    return add_batches(grid, text, err);
  case SN_AXIS_STRATEGIES:
    return add_strategy(grid, text, err);
  default:
    return sn_fail(err, SN_BUG, "grid: axis %d", (int)axis);
  }
}

/* ---- lists ---- */

/* KEY=VALUE, or a number, behind a family's "name:...", of networks or GPUs */
static bool goes_on(const char *item, const char *next, size_t length) {
  size_t key = strspn(next, "abcdefghijklmnopqrstuvwxyz0123456789_");
  bool told = key > 0 && (key < length ? next[key] == '=' : strspn(next, "0123456789") == length);
  return told && strchr(item, ':') && !sn_net_is_file(item);
}

sn_status sn_grid_add_list(sn_grid *grid, sn_axis axis, const char *text, sn_err *err) {
  if (axis == SN_AXIS_PARALLELS) return sn_grid_add(grid, axis, text, err); /* which has commas itself */
  char *item = malloc(strlen(text) + 1);
  if (!item) return sn_fail_memory(err);
  for (const char *at = text; at;) {
    size_t length = strcspn(at, ","), used = length;
    memcpy(item, at, length);
    item[length] = '\0';
    at = at[length] ? at + length + 1 : NULL;
    while ((axis == SN_AXIS_NETS || axis == SN_AXIS_GPUS) && at && goes_on(item, at, length = strcspn(at, ","))) {
      item[used++] = ',';
      memcpy(item + used, at, length);
      item[used += length] = '\0';
      at = at[length] ? at + length + 1 : NULL;
    }
    if (sn_grid_add(grid, axis, item, err) != SN_OK) break;
  }
  free(item);
  return err->code;
}

static sn_status rename_net(sn_grid *grid, uint32_t i, const char *name, sn_err *err) {
  grid->nets[i] = sn_arena_text(grid->arena, name);
  return grid->nets[i] ? SN_OK : sn_fail_memory(err);
}

sn_status sn_grid_specify_nets(sn_grid *grid, const char *loss, const char *lora, sn_err *err) {
  char text[SN_NET_SPEC];
  for (uint32_t i = 0; i < grid->n[SN_AXIS_NETS]; i++) {
    if (loss && (sn_net_add_loss(grid->nets[i], loss, text, err) != SN_OK || rename_net(grid, i, text, err) != SN_OK))
      break;
    if (lora && (sn_net_add_lora(grid->nets[i], lora, text, err) != SN_OK || rename_net(grid, i, text, err) != SN_OK))
      break;
  }
  return err->code;
}

/* ---- finishing ---- */

uint64_t sn_grid_key(const char *text) {
  return sn_fnv_text(text);
}

sn_status sn_grid_digest(const char *path, uint64_t *digest, sn_err *err) {
  FILE *in = sn_path_open(path, err);
  if (!in) return err->code;
  *digest = SN_FNV_START;
  for (int c = getc(in); c != EOF; c = getc(in)) *digest = sn_fnv_add(*digest, (unsigned)c);
  if (ferror(in)) sn_fail(err, SN_BAD_FILE, "%.300s: cannot be read: %s", path, strerror(errno));
  fclose(in);
  return err->code;
}

/* Notes what is in the file; where the grid's text knew it, it must be the same still. */
static sn_status note_file(sn_grid *grid, const char *spec, uint32_t known, sn_err *err) {
  uint64_t digest = 0;
  if (!sn_net_is_file(spec)) return SN_OK;
  const char *path = sn_arena_print(grid->arena, "%.*s", (int)(sn_net_file_end(spec) - spec), spec);
  if (!path) return sn_fail_memory(err);
  if (sn_grid_digest(path, &digest, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < grid->n_files; i++) {
    if (strcmp(grid->files[i].path, path) != 0) continue;
    if (i >= known || grid->files[i].digest == digest) return SN_OK;
    return sn_fail(err, SN_BAD_INPUT, "%.300s: has changed since the sweep began; begin a new sweep", path);
  }
  if (grid->n_files < SN_GRID_FILES) grid->files[grid->n_files++] = (sn_grid_file){path, digest};
  return SN_OK;
}

static const char *refuses(const sn_grid *grid, sn_strategy strategy) {
  return sn_strategy_refuses(strategy, (sn_iteration){.inference = grid->inference, .freeze = grid->freeze});
}

static sn_precision precision_of(const sn_grid *grid, uint32_t i) {
  sn_iteration iteration = {0};
  sn_err none = SN_ERR_INIT; /* it was added */
  sn_iteration_parse_precision(grid->conditions[SN_AXIS_PRECISIONS][i], &iteration, &none);
  return iteration.precision;
}

/* The strategies of a sweep that names none: the runtime's, but for those that one of its precisions or networks has
 * not. */
static void add_strategies(sn_grid *grid) {
  bool lora = false;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_NETS]; i++) lora = lora || sn_net_lora(grid->nets[i]);
  sn_iteration iteration = {.inference = grid->inference, .freeze = lora ? "*" : grid->freeze};
  for (uint32_t i = 0; i < grid->n[SN_AXIS_PRECISIONS]; i++)
    if (sn_precision_is_amp(precision_of(grid, i))) iteration.precision = precision_of(grid, i);
  sn_runtime runtime = grid->runtime == SN_RUNTIME_DEFAULT ? SN_RUNTIME_PYTORCH : grid->runtime;
  grid->n[SN_AXIS_STRATEGIES] = sn_runtime_strategies(runtime, iteration, grid->strategies);
}

/* That of PyTorch as it starts, where the question is PyTorch's and all GPUs have it; networks of tokens have no
 * convolutions, and recordings their own types. */
static sn_precision starts_in(const sn_grid *grid) {
  uint32_t of_images = 0;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_NETS]; i++)
    of_images += !sn_net_is_sequence(grid->nets[i]) && !sn_net_is_recording(grid->nets[i]);
  if (grid->origin != SN_NETS_OF_TORCHVISION || of_images == 0) return SN_FP32;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_GPUS]; i++)
    if (sn_device_starts_in(&grid->devices[i], NULL) == SN_FP32) return SN_FP32;
  return SN_TF32_CONV;
}

static sn_status add_defaults(sn_grid *grid, sn_err *err) {
  for (sn_axis axis = 0; axis < SN_AXES && err->code == SN_OK; axis++)
    if (grid->n[axis] == 0 && axes[axis].usual) sn_grid_add(grid, axis, axes[axis].usual, err);
  return err->code;
}

/* What the GPUs and the runtime say, where nobody else does. */
static sn_status add_precision_and_strategies(sn_grid *grid, sn_err *err) {
  if (grid->n[SN_AXIS_PRECISIONS] == 0) sn_grid_add(grid, SN_AXIS_PRECISIONS, sn_precision_name(starts_in(grid)), err);
  if (err->code == SN_OK && grid->n[SN_AXIS_STRATEGIES] == 0) add_strategies(grid);
  return err->code;
}

/* What is accumulated at some points only fails at those. */
static sn_status check_iteration(const sn_grid *grid, sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  if (grid->inference &&
      (grid->n[SN_AXIS_ACCUMULATES] > 1 || strcmp(grid->conditions[SN_AXIS_ACCUMULATES][0], "1") != 0 ||
       grid->n[SN_AXIS_OPTIMIZERS] > 1))
    return sn_fail(err, SN_BAD_USAGE,
                   "inference updates nothing: optimizers and accumulates cannot be combined with it");
  if (grid->inference && *grid->freeze)
    return sn_fail(err, SN_BAD_USAGE, "freeze cannot be combined with inference, which trains nothing; leave one out");
  for (uint32_t i = 0; i < grid->n[SN_AXIS_STRATEGIES]; i++) {
    const char *why = refuses(grid, grid->strategies[i]);
    if (why)
      return sn_fail(err, SN_BAD_USAGE, "strategies: %s cannot be combined with %s: %s",
                     sn_strategy_name(grid->strategies[i], name), grid->inference ? "inference" : "freeze", why);
  }
  return SN_OK;
}

/* An error of an option is one of a key of the same name. */
static sn_status without_dashes(const sn_err *reason, sn_err *err) {
  if (reason->code == SN_OK) return SN_OK;
  return sn_fail(err, reason->code, "%s", reason->text + strlen("--"));
}

sn_status sn_grid_check_precision(const sn_device *device, sn_precision precision, sn_err *err) {
  sn_err reason = SN_ERR_INIT;
  sn_device_check_precision(device, precision, &reason);
  return without_dashes(&reason, err);
}

/* Whether a precision is one of some GPU and of some strategy; those that lack it fail at its points. */
static sn_status check_precision(const sn_grid *grid, sn_precision precision, sn_err *err) {
  const char *why = NULL;
  sn_err lacking = SN_ERR_INIT, none = SN_ERR_INIT;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_STRATEGIES] && (i == 0 || why); i++)
    why = sn_strategy_refuses(grid->strategies[i], (sn_iteration){.precision = precision});
  if (why)
    return sn_fail(err, SN_BAD_USAGE, "precisions: no strategy can be combined with %s: %s; try pytorch",
                   sn_precision_name(precision), why);
  for (uint32_t i = 0; i < grid->n[SN_AXIS_GPUS]; i++, none = (sn_err)SN_ERR_INIT)
    if (sn_grid_check_precision(&grid->devices[i], precision, i ? &none : &lacking) == SN_OK) return SN_OK;
  *err = lacking;
  return err->code;
}

static sn_status count_points(sn_grid *grid, sn_err *err) {
  uint64_t points = 1;
  for (sn_axis axis = 0; axis < SN_AXES; axis++) {
    points *= grid->n[axis]; /* below 2^24 * 2^12 */
    if (points > SN_GRID_POINTS)
      return sn_fail(err, SN_BAD_USAGE, "the sweep has more than %u points; leave out some values, or make two of it",
                     SN_GRID_POINTS);
  }
  grid->n_points = (uint32_t)points;
  grid->n_groups = (uint32_t)(points / grid->n[SN_AXIS_STRATEGIES]);
  return SN_OK;
}

/* A network that cannot have an image of one of the sizes, or a sequence, is one for another sweep. */
static sn_status check_net(sn_grid *grid, const char *spec, uint32_t known, sn_err *err) {
  for (uint32_t i = 0; i < grid->n[SN_AXIS_IMAGES]; i++) {
    sn_net *net = sn_net_load(spec, 1, (uint32_t)grid->images[i], err);
    if (!net) return err->code;
    bool tokens = net->values[0].dtype == SN_I64, other = grid->images[i] > 0 && tokens != grid->sequences;
    sn_err frozen = SN_ERR_INIT;
    if (sn_net_check_training(net, grid->inference, err) == SN_OK) sn_freeze_check(grid->freeze, net, &frozen);
    sn_net_free(net);
    if (err->code != SN_OK || without_dashes(&frozen, err) != SN_OK) return err->code;
    if (other)
      return sn_fail(err, SN_BAD_USAGE,
                     tokens ? "images: %.80s reads sequences of tokens; give sequences"
                            : "sequences: %.80s reads images; give images",
                     spec);
  }
  return note_file(grid, spec, known, err);
}

/* 0: its own. */
static sn_device with_memory(const sn_device *profile, uint64_t memory_bytes) {
  sn_device device = *profile;
  if (memory_bytes) {
    device.memory_bytes = memory_bytes;
    device.memory_nominal = false;
  }
  return device;
}

/* Does it leave something of each memory of each GPU? */
static sn_status check_margin(sn_grid *grid, sn_err *err) {
  if (*grid->margin && sn_margin_parse(grid->margin, "margin", &grid->kept_free, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_GPUS]; i++)
    for (uint32_t m = 0; m < grid->n[SN_AXIS_MEMORIES]; m++) {
      sn_device device = with_memory(&grid->devices[i], grid->memories[m]);
      uint64_t kept_bytes;
      if (sn_margin_take(grid->kept_free, &device, &kept_bytes, err) != SN_OK) return err->code;
    }
  return SN_OK;
}

/* Whose GPUs they are, unless some were named. */
static sn_status load_cluster(sn_grid *grid, uint32_t known, sn_err *err) {
  if (!*grid->cluster) return SN_OK;
  if (sn_cluster_load(grid->cluster, &grid->where, err) != SN_OK || note_file(grid, grid->cluster, known, err) != SN_OK)
    return err->code;
  return grid->n[SN_AXIS_GPUS] == 0 ? sn_grid_add(grid, SN_AXIS_GPUS, grid->where.gpu, err) : SN_OK;
}

/* `known`: how many files the grid's text told of. */
static sn_status load_gpus(sn_grid *grid, uint32_t known, sn_err *err) {
  for (uint32_t i = 0; i < grid->n[SN_AXIS_GPUS]; i++) {
    if (sn_device_load(grid->gpus[i], &grid->devices[i], err) != SN_OK ||
        note_file(grid, grid->gpus[i], known, err) != SN_OK)
      return err->code;
    if (grid->host_memory_bytes) grid->devices[i].host_memory_bytes = grid->host_memory_bytes;
  }
  return check_margin(grid, err);
}

static sn_status check_nets(sn_grid *grid, uint32_t known, sn_err *err) {
  for (uint32_t i = 0; i < grid->n[SN_AXIS_NETS]; i++)
    if (check_net(grid, grid->nets[i], known, err) != SN_OK) return err->code;
  return SN_OK;
}

static sn_status check_version(sn_grid *grid, sn_err *err) {
  if (!grid->version) grid->version = SNSIM_VERSION;
  if (strcmp(grid->version, SNSIM_VERSION) == 0) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "the sweep was begun by snsim %.40s and this is " SNSIM_VERSION
                 ", whose results may differ; begin a new sweep",
                 grid->version);
}

sn_status sn_grid_finish(sn_grid *grid, sn_err *err) {
  static const char example[] = "for instance: snsim sweep --nets alexnet,vgg16 --batches 16:256:16";
  if (grid->n[SN_AXIS_NETS] == 0) return sn_fail(err, SN_BAD_USAGE, "a sweep needs nets; %s", example);
  if (grid->n[SN_AXIS_BATCHES] == 0) return sn_fail(err, SN_BAD_USAGE, "a sweep needs batches; %s", example);
  uint32_t known = grid->n_files;
  if (check_version(grid, err) != SN_OK || load_cluster(grid, known, err) != SN_OK ||
      add_defaults(grid, err) != SN_OK || load_gpus(grid, known, err) != SN_OK ||
      add_precision_and_strategies(grid, err) != SN_OK || check_iteration(grid, err) != SN_OK ||
      count_points(grid, err) != SN_OK || check_nets(grid, known, err) != SN_OK)
    return err->code;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_PRECISIONS] && err->code == SN_OK; i++)
    check_precision(grid, precision_of(grid, i), err);
  return err->code;
}

void sn_grid_at(const sn_grid *grid, uint32_t group, uint32_t at[SN_AXES]) {
  at[SN_AXIS_STRATEGIES] = 0;
  for (int axis = SN_AXIS_STRATEGIES - 1; axis >= 0; axis--) {
    at[axis] = group % grid->n[axis];
    group /= grid->n[axis];
  }
}

uint32_t sn_grid_group_at(const sn_grid *grid, uint32_t turn) {
  uint32_t at[SN_AXES], group = 0;
  for (int within = 1; within >= 0; within--)
    for (int axis = SN_AXIS_STRATEGIES - 1; axis >= 0; axis--) {
      if (axes[axis].within != within) continue;
      at[axis] = turn % grid->n[axis];
      turn /= grid->n[axis];
    }
  for (int axis = 0; axis < SN_AXIS_STRATEGIES; axis++) group = group * grid->n[axis] + at[axis];
  return group;
}

uint32_t sn_grid_family(const sn_grid *grid, uint32_t group) {
  uint32_t at[SN_AXES], family = 0;
  sn_grid_at(grid, group, at);
  for (int axis = 0; axis < SN_AXIS_STRATEGIES; axis++)
    if (!axes[axis].within) family = family * grid->n[axis] + at[axis];
  return family;
}

uint32_t sn_grid_family_size(const sn_grid *grid) {
  uint32_t size = 1;
  for (int axis = 0; axis < SN_AXIS_STRATEGIES; axis++)
    if (axes[axis].within) size *= grid->n[axis];
  return size;
}

sn_options sn_grid_options(const sn_grid *grid, const uint32_t at[SN_AXES]) {
  sn_options options = SN_OPTIONS_INIT;
  sn_conditions conditions = sn_conditions_of(&options, NULL);
  sn_err none = SN_ERR_INIT; /* the values were added */
  for (sn_axis axis = 0; axis < SN_AXES; axis++) {
    const sn_condition *c = sn_axis_condition(axis);
    if (c) set_condition(c, axes[axis].name, grid->conditions[axis][at[axis]], &conditions, &none);
  }
  conditions.inference = grid->inference;
  conditions.freeze = grid->freeze;
  conditions.cluster = "";
  sn_conditions_apply(&conditions, &options, &none);
  options.placement = grid->placement;
  if (!sn_mesh_is_one(&options.iteration.mesh)) options.cluster = grid->where;
  return options;
}

sn_device sn_grid_device(const sn_grid *grid, const uint32_t at[SN_AXES]) {
  sn_device device = with_memory(&grid->devices[at[SN_AXIS_GPUS]], grid->memories[at[SN_AXIS_MEMORIES]]);
  uint64_t kept_bytes;
  sn_err err = SN_ERR_INIT;
  sn_margin_take(grid->kept_free, &device, &kept_bytes, &err); /* which the finished grid can */
  return device;
}
