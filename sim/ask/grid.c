/* Grid: collecting the values of the axes, and what a group's number stands for; see the header. Reading and writing a
 * grid as JSON is in sim/ask/grid_json.c. */
#include "sim/ask/grid.h"

#include "base/arena.h"
#include "base/path.h"
#include "base/units.h"
#include "base/utf8.h"
#include "models/zoo.h"
#include "sim/graph/freeze.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SNSIM_VERSION
#define SNSIM_VERSION "unknown"
#endif

static const char *const axis_names[SN_AXES] = {"nets",       "images",    "gpus",       "memories",   "links",
                                                "workspaces", "externals", "allocators", "optimizers", "accumulates",
                                                "precisions", "pools",     "batches",    "strategies"};

const char *sn_axis_name(sn_axis axis) {
  return axis_names[axis];
}

const char *sn_grid_axis_name(const sn_grid *grid, sn_axis axis) {
  return axis == SN_AXIS_IMAGES && grid->sequences ? "sequences" : axis_names[axis];
}

sn_grid *sn_grid_new(sn_err *err) {
  sn_grid *grid = calloc(1, sizeof *grid);
  if (grid) grid->arena = sn_arena_new();
  if (grid) grid->freeze = grid->margin = "";
  if (grid && grid->arena) return grid;
  sn_fail_memory(err);
  free(grid);
  return NULL;
}

void sn_grid_free(sn_grid *grid) {
  if (!grid) return;
  sn_arena_free(grid->arena);
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

/* The names of an axis whose values are a fixed choice; 0: it is another. */
static uint32_t kinds_of(sn_axis axis, const char *names[SN_GRID_KINDS]) {
  if (axis == SN_AXIS_LINKS) names[0] = "own", names[1] = "shared";
  if (axis == SN_AXIS_WORKSPACES)
    for (uint32_t i = 0; i < SN_WORKSPACE_COUNT; i++) names[i] = sn_workspace_name((sn_workspace)i);
  if (axis == SN_AXIS_EXTERNALS)
    for (uint32_t i = 0; i < SN_EXTERNAL_COUNT; i++) names[i] = sn_external_name((sn_external)i);
  if (axis == SN_AXIS_ALLOCATORS)
    for (uint32_t i = 0; i < SN_ALLOCATOR_COUNT; i++) names[i] = sn_allocator_name((sn_allocator)i);
  if (axis == SN_AXIS_OPTIMIZERS)
    for (uint32_t i = 0; i < SN_OPTIMIZERS; i++) names[i] = sn_optimizer_name((sn_optimizer)i);
  if (axis == SN_AXIS_PRECISIONS)
    for (uint32_t i = 0; i < SN_PRECISION_COUNT; i++) names[i] = sn_precision_name((sn_precision)i);
  return axis == SN_AXIS_LINKS        ? 2
         : axis == SN_AXIS_WORKSPACES ? SN_WORKSPACE_COUNT
         : axis == SN_AXIS_EXTERNALS  ? SN_EXTERNAL_COUNT
         : axis == SN_AXIS_ALLOCATORS ? SN_ALLOCATOR_COUNT
         : axis == SN_AXIS_OPTIMIZERS ? SN_OPTIMIZERS
         : axis == SN_AXIS_PRECISIONS ? SN_PRECISION_COUNT
                                      : 0;
}

/* Other words for an optimizer, a precision or a GPU stand for its own. */
static const char *own_name(sn_axis axis, const char *text) {
  sn_err reason = SN_ERR_INIT; /* of a name that is none, which is told with all there are */
  sn_precision precision;
  sn_optimizer optimizer;
  if (axis == SN_AXIS_PRECISIONS && sn_precision_parse(text, &precision, &reason) == SN_OK)
    return sn_precision_name(precision);
  if (axis == SN_AXIS_OPTIMIZERS && sn_optimizer_parse(text, &optimizer, &reason) == SN_OK)
    return sn_optimizer_name(optimizer);
  if (axis == SN_AXIS_GPUS && !sn_device_is_file(text) && sn_device_called(text)) return sn_device_called(text);
  return text;
}

/* With kinds or implementations in place of all pairs of them. */
static sn_status fail_optimizer(const char *text, sn_err *err) {
  sn_err reason = SN_ERR_INIT;
  sn_optimizer optimizer;
  sn_optimizer_parse(text, &optimizer, &reason);
  return sn_fail(err, reason.code, "%s%s", axis_names[SN_AXIS_OPTIMIZERS], strchr(reason.text, ':'));
}

static sn_status add_kind(sn_grid *grid, sn_axis axis, uint32_t *kinds, const char *text, sn_err *err) {
  const char *names[SN_GRID_KINDS];
  uint32_t count = kinds_of(axis, names), found = 0;
  char all[100] = "";
  text = own_name(axis, text);
  for (; found < count && strcmp(text, names[found]) != 0; found++) {
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", names[found]);
  }
  if (found == count && axis == SN_AXIS_OPTIMIZERS) return fail_optimizer(text, err);
  if (found == count) return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is none of: %s", axis_names[axis], text, all);
  for (uint32_t i = 0; i < grid->n[axis]; i++)
    if (kinds[i] == found) return SN_OK;
  kinds[grid->n[axis]++] = found;
  return SN_OK;
}

/* Bytes or, of images, a number; the word for what there is without being asked is 0. */
static sn_status add_size(sn_grid *grid, sn_axis axis, uint64_t *sizes, uint32_t most, const char *text, sn_err *err) {
  const char *what = sn_grid_axis_name(grid, axis), *none = axis == SN_AXIS_POOLS ? "all" : "own";
  uint64_t size = 0;
  uint32_t *n = &grid->n[axis];
  if (strcmp(text, none) != 0 && axis == SN_AXIS_IMAGES && strspn(text, "0123456789") != strlen(text))
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is neither a number nor \"own\"", what, text);
  if (strcmp(text, none) != 0 && (axis == SN_AXIS_IMAGES ? sn_parse_count(text, what, 1, SN_MAX_DIM, &size, err)
                                                         : sn_parse_bytes(text, what, 1, &size, err)) != SN_OK)
    return err->code;
  for (uint32_t i = 0; i < *n; i++)
    if (sizes[i] == size) return SN_OK;
  if (check_room(grid, axis, most, err) != SN_OK) return err->code;
  sizes[(*n)++] = size;
  return SN_OK;
}

static sn_status add_accumulate(sn_grid *grid, const char *text, sn_err *err) {
  uint32_t *n = &grid->n[SN_AXIS_ACCUMULATES];
  uint64_t count = 0;
  if (sn_parse_count(text, axis_names[SN_AXIS_ACCUMULATES], 1, SN_ITERATION_BATCHES, &count, err) != SN_OK)
    return err->code;
  for (uint32_t i = 0; i < *n; i++)
    if (grid->accumulate[i] == count) return SN_OK;
  if (check_room(grid, SN_AXIS_ACCUMULATES, SN_GRID_ACCUMULATE, err) != SN_OK) return err->code;
  grid->accumulate[(*n)++] = (uint32_t)count;
  return SN_OK;
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

/* "LOW:HIGH:STEP" or "LOW:HIGH:xFACTOR", cut at its colons; false where it is neither. */
static bool cut_range(char *text, char **parts) {
  for (int i = 0; i < 3; i++) {
    parts[i] = text;
    char *colon = text ? strchr(text, ':') : NULL;
    if ((colon == NULL) != (i == 2)) return false;
    if (colon) *colon++ = '\0';
    text = colon;
  }
  return true;
}

static sn_status add_range(sn_grid *grid, const char *text, sn_err *err) {
  const char *what = axis_names[SN_AXIS_BATCHES];
  char copy[64], *parts[3];
  uint64_t low, high, step;
  int length = snprintf(copy, sizeof copy, "%s", text);
  if (length >= (int)sizeof copy || !cut_range(copy, parts))
    return sn_fail(err, SN_BAD_USAGE,
                   "%s: \"%.80s\" is neither a number nor a range LOW:HIGH:STEP (16:256:16) or LOW:HIGH:xFACTOR "
                   "(16:256:x2)",
                   what, text);
  bool grows = parts[2][0] == 'x';
  sn_err why = SN_ERR_INIT;
  if (sn_parse_count(parts[0], "LOW", 1, SN_MAX_DIM, &low, &why) != SN_OK ||
      sn_parse_count(parts[1], "HIGH", low, SN_MAX_DIM, &high, &why) != SN_OK ||
      sn_parse_count(parts[2] + grows, grows ? "FACTOR" : "STEP", grows ? 2 : 1, SN_MAX_DIM, &step, &why) != SN_OK)
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\": %s", what, text, why.text);
  for (uint64_t b = low; b <= high; b = grows ? b * step : b + step)
    if (add_batch(grid, (uint32_t)b, err) != SN_OK) return err->code;
  return SN_OK;
}

static sn_status add_batches(sn_grid *grid, const char *text, sn_err *err) {
  uint64_t batch;
  if (strchr(text, ':') || strspn(text, "0123456789") != strlen(text)) return add_range(grid, text, err);
  if (sn_parse_count(text, axis_names[SN_AXIS_BATCHES], 1, SN_MAX_DIM, &batch, err) != SN_OK) return err->code;
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
                     axis_names[axis]);
  return SN_OK;
}

static sn_status add_net(sn_grid *grid, const char *text, sn_err *err) {
  char name[SN_NET_SPEC];
  if (sn_net_resolve(text, grid->origin, name, err) != SN_OK) return err->code;
  return add_name(grid, SN_AXIS_NETS, grid->nets, SN_GRID_NETS, name, err);
}

sn_status sn_grid_add(sn_grid *grid, sn_axis axis, const char *text, sn_err *err) {
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "%s: a value is empty", axis_names[axis]);
  if (check_utf8(axis, text, err) != SN_OK) return err->code;
  switch (axis) {
  case SN_AXIS_NETS:
    return add_net(grid, text, err);
  case SN_AXIS_GPUS:
    return add_name(grid, axis, grid->gpus, SN_GRID_GPUS, own_name(axis, text), err);
  case SN_AXIS_IMAGES:
    return add_size(grid, axis, grid->images, SN_GRID_IMAGES, text, err);
  case SN_AXIS_MEMORIES:
    return add_size(grid, axis, grid->memories, SN_GRID_MEMORIES, text, err);
  case SN_AXIS_LINKS:
    return add_kind(grid, axis, grid->links, text, err);
  case SN_AXIS_WORKSPACES:
    return add_kind(grid, axis, grid->workspaces, text, err);
  case SN_AXIS_EXTERNALS:
    return add_kind(grid, axis, grid->externals, text, err);
  case SN_AXIS_ALLOCATORS:
    return add_kind(grid, axis, grid->allocators, text, err);
  case SN_AXIS_OPTIMIZERS:
    return add_kind(grid, axis, grid->optimizers, text, err);
  case SN_AXIS_ACCUMULATES:
    return add_accumulate(grid, text, err);
  case SN_AXIS_PRECISIONS:
    return add_kind(grid, axis, grid->precisions, text, err);
  case SN_AXIS_POOLS:
    return add_size(grid, axis, grid->pools, SN_GRID_POOLS, text, err);
  case SN_AXIS_BATCHES:
    return add_batches(grid, text, err);
  case SN_AXIS_STRATEGIES:
    return add_strategy(grid, text, err);
  case SN_AXES:
    break;
  }
  return sn_fail(err, SN_BUG, "grid: axis %d", (int)axis);
}

/* ---- lists ---- */

/* KEY=VALUE behind a family's "name:...", of networks or GPUs */
static bool goes_on(const char *item, const char *next, size_t length) {
  size_t key = strspn(next, "abcdefghijklmnopqrstuvwxyz0123456789_");
  return strchr(item, ':') && !sn_net_is_file(item) && key > 0 && key < length && next[key] == '=';
}

sn_status sn_grid_add_list(sn_grid *grid, sn_axis axis, const char *text, sn_err *err) {
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

static const uint64_t fnv_start = UINT64_C(14695981039346656037), fnv_prime = UINT64_C(1099511628211);

uint64_t sn_grid_key(const char *text) {
  uint64_t digest = fnv_start;
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) digest = (digest ^ *c) * fnv_prime;
  return digest;
}

sn_status sn_grid_digest(const char *path, uint64_t *digest, sn_err *err) {
  FILE *in = sn_path_open(path, err);
  if (!in) return err->code;
  *digest = fnv_start;
  for (int c = getc(in); c != EOF; c = getc(in)) *digest = (*digest ^ (unsigned)c) * fnv_prime;
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
  return (sn_precision)grid->precisions[i];
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
 * convolutions. */
static sn_precision starts_in(const sn_grid *grid) {
  uint32_t of_images = 0;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_NETS]; i++) of_images += !sn_net_is_sequence(grid->nets[i]);
  if (grid->origin != SN_NETS_OF_TORCHVISION || of_images == 0) return SN_FP32;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_GPUS]; i++)
    if (sn_device_starts_in(&grid->devices[i], NULL) == SN_FP32) return SN_FP32;
  return SN_TF32_CONV;
}

static sn_status add_defaults(sn_grid *grid, sn_err *err) {
  static const char *const defaults[SN_AXES] = {
      [SN_AXIS_IMAGES] = "own",      [SN_AXIS_GPUS] = "rtx4090",        [SN_AXIS_MEMORIES] = "own",
      [SN_AXIS_LINKS] = "own",       [SN_AXIS_WORKSPACES] = "dynamic",  [SN_AXIS_EXTERNALS] = "host",
      [SN_AXIS_ALLOCATORS] = "pool", [SN_AXIS_OPTIMIZERS] = "momentum", [SN_AXIS_ACCUMULATES] = "1",
      [SN_AXIS_POOLS] = "all",
  };
  for (sn_axis axis = 0; axis < SN_AXES && err->code == SN_OK; axis++)
    if (grid->n[axis] == 0 && defaults[axis]) sn_grid_add(grid, axis, defaults[axis], err);
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
      (grid->n[SN_AXIS_ACCUMULATES] > 1 || grid->accumulate[0] > 1 || grid->n[SN_AXIS_OPTIMIZERS] > 1))
    return sn_fail(err, SN_BAD_USAGE, "inference updates nothing: optimizers and accumulates do not go with it");
  if (grid->inference && *grid->freeze)
    return sn_fail(err, SN_BAD_USAGE, "freeze does not go with inference, which trains nothing; leave one out");
  for (uint32_t i = 0; i < grid->n[SN_AXIS_STRATEGIES]; i++) {
    const char *why = refuses(grid, grid->strategies[i]);
    if (why)
      return sn_fail(err, SN_BAD_USAGE, "strategies: %s does not go with %s: %s",
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
    return sn_fail(err, SN_BAD_USAGE, "precisions: no strategy goes with %s: %s; try pytorch",
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
  if (check_version(grid, err) != SN_OK || add_defaults(grid, err) != SN_OK || load_gpus(grid, known, err) != SN_OK ||
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

/* Whether groups that differ in this axis alone have the same network and iteration. */
static bool is_within_families(sn_axis axis) {
  return axis == SN_AXIS_GPUS || axis == SN_AXIS_MEMORIES || axis == SN_AXIS_LINKS || axis == SN_AXIS_WORKSPACES ||
         axis == SN_AXIS_EXTERNALS || axis == SN_AXIS_ALLOCATORS || axis == SN_AXIS_POOLS;
}

uint32_t sn_grid_group_at(const sn_grid *grid, uint32_t turn) {
  uint32_t at[SN_AXES], group = 0;
  for (int within = 1; within >= 0; within--)
    for (int axis = SN_AXIS_STRATEGIES - 1; axis >= 0; axis--) {
      if (is_within_families((sn_axis)axis) != within) continue;
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
    if (!is_within_families((sn_axis)axis)) family = family * grid->n[axis] + at[axis];
  return family;
}

uint32_t sn_grid_family_size(const sn_grid *grid) {
  uint32_t size = 1;
  for (int axis = 0; axis < SN_AXIS_STRATEGIES; axis++)
    if (is_within_families((sn_axis)axis)) size *= grid->n[axis];
  return size;
}

static sn_iteration iteration_at(const sn_grid *grid, const uint32_t at[SN_AXES]) {
  return (sn_iteration){.optimizer = (sn_optimizer)grid->optimizers[at[SN_AXIS_OPTIMIZERS]],
                        .accumulate = grid->accumulate[at[SN_AXIS_ACCUMULATES]],
                        .inference = grid->inference,
                        .precision = precision_of(grid, at[SN_AXIS_PRECISIONS]),
                        .freeze = grid->freeze};
}

sn_options sn_grid_options(const sn_grid *grid, const uint32_t at[SN_AXES]) {
  return (sn_options){.workspace = (sn_workspace)grid->workspaces[at[SN_AXIS_WORKSPACES]],
                      .external = (sn_external)grid->externals[at[SN_AXIS_EXTERNALS]],
                      .allocator = (sn_allocator)grid->allocators[at[SN_AXIS_ALLOCATORS]],
                      .placement = grid->placement,
                      .corun = SN_CORUN_INIT,
                      .iteration = iteration_at(grid, at),
                      .shared_link = grid->links[at[SN_AXIS_LINKS]] == 1,
                      .pool_bytes = grid->pools[at[SN_AXIS_POOLS]]};
}

sn_device sn_grid_device(const sn_grid *grid, const uint32_t at[SN_AXES]) {
  sn_device device = with_memory(&grid->devices[at[SN_AXIS_GPUS]], grid->memories[at[SN_AXIS_MEMORIES]]);
  uint64_t kept_bytes;
  sn_err err = SN_ERR_INIT;
  sn_margin_take(grid->kept_free, &device, &kept_bytes, &err); /* which the finished grid can */
  return device;
}
