/* Grid as JSON: reading a grid file (docs/sweep.md), and the text that stands for a finished grid in the store and on
 * its way to other machines. Both have the same form, so there is one reader. */
#include "sim/sweep/grid.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/units.h"
#include "models/net/globs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE = 64, DIGITS = 17 };

static const char *const keys[] = {"snsim_grid",  "version",     "nets",      "gpus",       "workspaces", "externals",
                                   "allocators",  "pools",       "batches",   "strategies", "image",      "shared_link",
                                   "host_memory", "placement",   "files",     "images",     "memories",   "links",
                                   "optimizers",  "accumulates", "inference", "precisions", "sequences",  "freeze",
                                   "margin",      "parallels",   "cluster"};

/* ---- reading ---- */

/* A wrong value in a file is a fault of the file, and its line is known. */
static sn_status place_error(const sn_json *doc, const cJSON *item, sn_err *err) {
  sn_err found = SN_ERR_INIT;
  if (err->code != SN_BAD_USAGE) return err->code;
  sn_json_fail(doc, item, &found, "%s", err->text);
  *err = found;
  return err->code;
}

static sn_status read_value(const sn_json *doc, const cJSON *item, sn_grid *grid, sn_axis axis, sn_err *err) {
  char digits[VALUE];
  const char *text = item->valuestring;
  bool counts = axis == SN_AXIS_BATCHES || axis == SN_AXIS_IMAGES || axis == SN_AXIS_ACCUMULATES;
  if (counts && cJSON_IsNumber(item)) {
    snprintf(digits, sizeof digits, "%.15g", item->valuedouble);
    text = digits;
  } else if (!cJSON_IsString(item)) {
    return sn_json_fail(doc, item, err, "a value of \"%s\" must be a text in quotes%s", sn_grid_axis_name(grid, axis),
                        counts ? " or a number" : "");
  }
  if (sn_grid_add(grid, axis, text, err) != SN_OK) place_error(doc, item, err);
  return err->code;
}

static sn_status read_axis(const sn_json *doc, sn_grid *grid, sn_axis axis, sn_err *err) {
  if (!sn_json_has(sn_json_root(doc), sn_grid_axis_name(grid, axis))) return SN_OK;
  const cJSON *list = sn_json_array(doc, sn_json_root(doc), sn_grid_axis_name(grid, axis), err), *item;
  if (!list) return err->code;
  if (cJSON_GetArraySize(list) == 0)
    return sn_json_fail(doc, list, err, "\"%s\" is empty", sn_grid_axis_name(grid, axis));
  cJSON_ArrayForEach(item, list) if (read_value(doc, item, grid, axis, err) != SN_OK) return err->code;
  return SN_OK;
}

static sn_status read_file(const sn_json *doc, const cJSON *item, sn_grid *grid, sn_err *err) {
  static const char *const file_keys[] = {"path", "digest"};
  char *end;
  if (!cJSON_IsObject(item)) return sn_json_fail(doc, item, err, "a value of \"files\" must be an object");
  if (sn_json_only(doc, item, file_keys, 2, err) != SN_OK) return err->code;
  const char *path = sn_json_text(doc, item, "path", err),
             *digits = path ? sn_json_text(doc, item, "digest", err) : NULL;
  if (!digits) return err->code;
  uint64_t digest = strtoull(digits, &end, 16);
  if (strlen(digits) != DIGITS - 1 || *end || grid->n_files == SN_GRID_FILES)
    return sn_json_fail(doc, item, err, "\"digest\" must have 16 hexadecimal digits, in at most %d files",
                        SN_GRID_FILES);
  const char *copy = sn_arena_text(grid->arena, path);
  grid->files[grid->n_files++] = (sn_grid_file){copy, digest};
  return copy ? SN_OK : sn_fail_memory(err);
}

static sn_status read_files(const sn_json *doc, sn_grid *grid, sn_err *err) {
  if (!sn_json_has(sn_json_root(doc), "files")) return SN_OK;
  const cJSON *list = sn_json_array(doc, sn_json_root(doc), "files", err), *item;
  if (!list) return err->code;
  cJSON_ArrayForEach(item, list) if (read_file(doc, item, grid, err) != SN_OK) return err->code;
  return SN_OK;
}

/* A size, as pools are. */
static sn_status read_host_memory(const sn_json *doc, sn_grid *grid, sn_err *err) {
  const cJSON *root = sn_json_root(doc);
  sn_err reason = SN_ERR_INIT;
  if (!sn_json_has(root, "host_memory")) return SN_OK;
  const char *text = sn_json_text(doc, root, "host_memory", err);
  if (!text || sn_parse_bytes(text, "host_memory", 1, &grid->host_memory_bytes, &reason) == SN_OK) return err->code;
  return sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(root, "host_memory"), err, "%s", reason.text);
}

static sn_status read_placement(const sn_json *doc, sn_grid *grid, sn_err *err) {
  const cJSON *root = sn_json_root(doc);
  sn_err reason = SN_ERR_INIT;
  if (!sn_json_has(root, "placement")) return SN_OK;
  const char *text = sn_json_text(doc, root, "placement", err);
  if (!text || sn_placement_parse(text, &grid->placement, &reason) == SN_OK) return err->code;
  const char *key = reason.text + strlen("--"); /* the option's name is the key */
  return sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(root, "placement"), err, "%s", key);
}

/* One value for all points: what a grid could say before the axis was one, and sweeps of that time still do. */
static sn_status check_alone(const sn_json *doc, const char *key, sn_axis axis, sn_err *err) {
  const cJSON *root = sn_json_root(doc);
  if (!sn_json_has(root, sn_axis_name(axis))) return SN_OK;
  return sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(root, key), err,
                      "\"%s\" is one value of \"%s\", which says all of them; give only that", key, sn_axis_name(axis));
}

static sn_status read_image(const sn_json *doc, sn_grid *grid, sn_err *err) {
  char digits[VALUE];
  uint64_t image;
  if (!sn_json_has(sn_json_root(doc), "image")) return SN_OK;
  if (check_alone(doc, "image", SN_AXIS_IMAGES, err) != SN_OK ||
      sn_json_count(doc, sn_json_root(doc), "image", 1, SN_MAX_DIM, &image, err) != SN_OK)
    return err->code;
  snprintf(digits, sizeof digits, "%" PRIu64, image);
  return sn_grid_add(grid, SN_AXIS_IMAGES, digits, err);
}

static sn_status read_shared_link(const sn_json *doc, sn_grid *grid, sn_err *err) {
  bool shared;
  if (!sn_json_has(sn_json_root(doc), "shared_link")) return SN_OK;
  if (check_alone(doc, "shared_link", SN_AXIS_LINKS, err) != SN_OK ||
      sn_json_bool(doc, sn_json_root(doc), "shared_link", &shared, err) != SN_OK)
    return err->code;
  return sn_grid_add(grid, SN_AXIS_LINKS, shared ? "shared" : "own", err);
}

static sn_status read_freeze(const sn_json *doc, sn_grid *grid, sn_err *err) {
  const cJSON *root = sn_json_root(doc);
  sn_err reason = SN_ERR_INIT;
  if (!sn_json_has(root, "freeze")) return SN_OK;
  const char *text = sn_json_text(doc, root, "freeze", err);
  if (!text) return err->code;
  if (sn_globs_check_text("freeze", text, &reason) != SN_OK)
    return sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(root, "freeze"), err, "%s", reason.text);
  grid->freeze = sn_arena_text(grid->arena, text);
  return grid->freeze ? SN_OK : sn_fail_memory(err);
}

static sn_status read_margin(const sn_json *doc, sn_grid *grid, sn_err *err) {
  const cJSON *root = sn_json_root(doc);
  sn_margin margin;
  sn_err reason = SN_ERR_INIT;
  if (!sn_json_has(root, "margin")) return SN_OK;
  const char *text = sn_json_text(doc, root, "margin", err);
  if (!text) return err->code;
  if (sn_margin_parse(text, "margin", &margin, &reason) != SN_OK)
    return sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(root, "margin"), err, "%s", reason.text);
  grid->margin = sn_arena_text(grid->arena, text);
  return grid->margin ? SN_OK : sn_fail_memory(err);
}

static sn_status read_cluster(const sn_json *doc, sn_grid *grid, sn_err *err) {
  if (!sn_json_has(sn_json_root(doc), "cluster")) return SN_OK;
  const char *text = sn_json_text(doc, sn_json_root(doc), "cluster", err);
  if (!text) return err->code;
  grid->cluster = sn_arena_text(grid->arena, text);
  return grid->cluster ? SN_OK : sn_fail_memory(err);
}

static sn_status read_scalars(const sn_json *doc, sn_grid *grid, sn_err *err) {
  const cJSON *root = sn_json_root(doc);
  if (read_image(doc, grid, err) != SN_OK || read_shared_link(doc, grid, err) != SN_OK) return err->code;
  if (read_host_memory(doc, grid, err) != SN_OK || read_placement(doc, grid, err) != SN_OK ||
      read_freeze(doc, grid, err) != SN_OK || read_margin(doc, grid, err) != SN_OK ||
      read_cluster(doc, grid, err) != SN_OK)
    return err->code;
  if (sn_json_has(root, "inference") && sn_json_bool(doc, root, "inference", &grid->inference, err) != SN_OK)
    return err->code;
  if (!sn_json_has(root, "version")) return SN_OK;
  const char *version = sn_json_text(doc, root, "version", err);
  if (!version) return err->code;
  grid->version = sn_arena_text(grid->arena, version);
  return grid->version ? SN_OK : sn_fail_memory(err);
}

static sn_status read_grid(const sn_json *doc, sn_grid *grid, sn_err *err) {
  const cJSON *root = sn_json_root(doc);
  uint64_t form;
  if (!cJSON_IsObject(root)) return sn_json_fail(doc, root, err, "a grid is a JSON object; see docs/sweep.md");
  if (sn_json_only(doc, root, keys, sizeof keys / sizeof keys[0], err) != SN_OK ||
      sn_json_count(doc, root, "snsim_grid", 1, 1, &form, err) != SN_OK)
    return err->code;
  grid->sequences = sn_json_has(root, "sequences");
  if (grid->sequences && (sn_json_has(root, "images") || sn_json_has(root, "image")))
    return sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(root, "sequences"), err,
                        "\"sequences\" and \"images\": networks read one or the other; keep one");
  for (sn_axis axis = 0; axis < SN_AXES; axis++)
    if (read_axis(doc, grid, axis, err) != SN_OK) return err->code;
  if (read_scalars(doc, grid, err) != SN_OK || read_files(doc, grid, err) != SN_OK) return err->code;
  if (grid->n[SN_AXIS_NETS] > 0 && grid->n[SN_AXIS_BATCHES] > 0) return SN_OK;
  return sn_json_fail(doc, root, err, "\"%s\" is missing", grid->n[SN_AXIS_NETS] ? "batches" : "nets");
}

static sn_grid *take_document(sn_json *doc, sn_err *err) {
  sn_grid *grid = doc ? sn_grid_new(err) : NULL;
  if (grid && read_grid(doc, grid, err) != SN_OK) {
    sn_grid_free(grid);
    grid = NULL;
  }
  sn_json_free(doc);
  return grid;
}

sn_grid *sn_grid_load(const char *path, sn_err *err) {
  return take_document(sn_json_load(path, err), err);
}

sn_grid *sn_grid_parse(const char *name, const char *text, size_t bytes, sn_err *err) {
  return take_document(sn_json_parse(name, text, bytes, err), err);
}

/* ---- writing ---- */

/* cJSON's own numbers are doubles, printed as such. */
static bool add_number(cJSON *list, uint64_t number) {
  char digits[24];
  snprintf(digits, sizeof digits, "%" PRIu64, number);
  return cJSON_AddItemToArray(list, cJSON_CreateRaw(digits)) != 0;
}

static bool add_text(cJSON *list, const char *text) {
  return cJSON_AddItemToArray(list, cJSON_CreateString(text)) != 0;
}

/* Bytes, or the word for 0. */
static bool add_size(cJSON *list, uint64_t bytes, const char *none) {
  char text[VALUE];
  snprintf(text, sizeof text, "%" PRIu64 "B", bytes);
  return add_text(list, bytes ? text : none);
}

/* A count is a number. */
static bool add_condition(cJSON *list, const sn_condition *c, const char *value) {
  return c->kind == SN_CONDITION_COUNT ? cJSON_AddItemToArray(list, cJSON_CreateRaw(value)) != 0
                                       : add_text(list, value);
}

static bool write_value(const sn_grid *grid, sn_axis axis, uint32_t i, cJSON *list) {
  char text[SN_STRATEGY_TEXT];
  const sn_condition *condition = sn_axis_condition(axis);
  if (condition) return add_condition(list, condition, grid->conditions[axis][i]);
  switch (axis) {
  case SN_AXIS_NETS:
    return add_text(list, grid->nets[i]);
  case SN_AXIS_GPUS:
    return add_text(list, grid->gpus[i]);
  case SN_AXIS_IMAGES:
    return grid->images[i] ? add_number(list, grid->images[i]) : add_text(list, "own");
  case SN_AXIS_MEMORIES:
    return add_size(list, grid->memories[i], "own");
  case SN_AXIS_BATCHES:
    return add_number(list, grid->batches[i]);
  case SN_AXIS_STRATEGIES:
    return add_text(list, sn_strategy_name(grid->strategies[i], text));
  default:
    return false;
  }
}

/* Sweeps of a time when every point was of one GPU have texts without meshes, and are found by them still. */
static bool is_of_one_gpu(const sn_grid *grid) {
  return grid->n[SN_AXIS_PARALLELS] == 1 && strcmp(grid->conditions[SN_AXIS_PARALLELS][0], SN_GRID_ONE_GPU) == 0;
}

static bool write_axes(const sn_grid *grid, cJSON *root) {
  for (sn_axis axis = 0; axis < SN_AXES; axis++) {
    if (axis == SN_AXIS_PARALLELS && is_of_one_gpu(grid)) continue;
    cJSON *list = cJSON_AddArrayToObject(root, sn_grid_axis_name(grid, axis));
    for (uint32_t i = 0; i < grid->n[axis]; i++)
      if (!list || !write_value(grid, axis, i, list)) return false;
  }
  return true;
}

static bool write_files(const sn_grid *grid, cJSON *root) {
  cJSON *list = grid->n_files ? cJSON_AddArrayToObject(root, "files") : NULL;
  for (uint32_t i = 0; i < grid->n_files; i++) {
    char digits[DIGITS];
    snprintf(digits, sizeof digits, "%016" PRIx64, grid->files[i].digest);
    cJSON *file = cJSON_CreateObject();
    if (!list || !cJSON_AddItemToArray(list, file) || !cJSON_AddStringToObject(file, "path", grid->files[i].path) ||
        !cJSON_AddStringToObject(file, "digest", digits))
      return false;
  }
  return true;
}

static bool write_all(const sn_grid *grid, cJSON *root) {
  if (!cJSON_AddRawToObject(root, "snsim_grid", "1") || !cJSON_AddStringToObject(root, "version", grid->version) ||
      !write_axes(grid, root))
    return false;
  char digits[VALUE];
  snprintf(digits, sizeof digits, "%" PRIu64 "B", grid->host_memory_bytes);
  if (grid->host_memory_bytes && !cJSON_AddStringToObject(root, "host_memory", digits)) return false;
  if (grid->inference && !cJSON_AddBoolToObject(root, "inference", true)) return false;
  if (*grid->cluster && !cJSON_AddStringToObject(root, "cluster", grid->cluster)) return false;
  if (*grid->margin && !cJSON_AddStringToObject(root, "margin", grid->margin)) return false;
  if (*grid->freeze && !cJSON_AddStringToObject(root, "freeze", grid->freeze)) return false;
  const char *placement = sn_placement_name(grid->placement);
  if (grid->placement != SN_PLACEMENT_PACKED && !cJSON_AddStringToObject(root, "placement", placement)) return false;
  return write_files(grid, root);
}

const char *sn_grid_text(const sn_grid *grid, sn_err *err) {
  cJSON *root = cJSON_CreateObject();
  char *text = root && write_all(grid, root) ? cJSON_PrintUnformatted(root) : NULL;
  const char *copy = text ? sn_arena_text(grid->arena, text) : NULL;
  cJSON_free(text);
  cJSON_Delete(root);
  if (!copy) sn_fail_memory(err);
  return copy;
}
