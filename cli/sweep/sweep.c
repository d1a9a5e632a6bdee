/* `snsim sweep`: the points of a grid, computed on all cores or under mpirun on many machines, each stored as soon as
 * it is finished.
 *
 *   grid -> its sweep in the store, or a new one -> compute what is missing -> read all rows back -> print
 *
 * What is printed comes from the store, so it is the same whoever computed the rows and however often the sweep was
 * interrupted. */
#include "cli/sweep/sweep.h"

#include "base/units.h"
#include "cli/frame/file_conflict.h"
#include "cli/options/gpu.h"
#include "exec/machine/processors.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4096 };

/* ---- which grid ---- */

static bool has_axes(const sn_args *args) {
  bool any = args->n_strategies > 0 || args->sequences.count > 0 || args->image > 0 || args->options.shared_link ||
             args->host_memory.given || args->placement_given || args->options.iteration.inference ||
             args->options.iteration.accumulate > 0 || *args->freeze || args->margin_text || args->cluster ||
             args->lora || args->loss || args->options.iteration.optimizer != SN_OPTIMIZER_MOMENTUM ||
             sn_args_gave(args, "precision") || sn_args_gave(args, "parallel");
  for (sn_axis axis = 0; axis < SN_AXES; axis++) any = any || args->axes[axis].count > 0;
  return any;
}

static sn_status check_usage(const sn_args *args, sn_err *err) {
  if (args->json && args->csv) return sn_fail(err, SN_BAD_USAGE, "--json and --csv exclude each other");
  if (args->grid && has_axes(args))
    return sn_fail(err, SN_BAD_USAGE,
                   "--grid FILE says all about the points: it cannot be combined with --nets and the like");
  bool sequences = args->sequence > 0 || args->sequences.count > 0;
  if (sequences && (args->axes[SN_AXIS_IMAGES].count > 0 || args->image != args->sequence))
    return sn_fail(err, SN_BAD_USAGE, "--sequences and --images: networks read one or the other; keep one");
  if (args->sequence > 0 && args->sequences.count > 0)
    return sn_fail(err, SN_BAD_USAGE, "--sequence is one value of --sequences, which says all of them; give only that");
  if (sn_image_is_oblong(args->image))
    return sn_fail(err, SN_BAD_USAGE, "--image: images of a sweep are square; give one side, or ask simulate");
  const struct {
    bool given;
    sn_axis axis;
    const char *option;
  } single[] = {{args->image > 0, SN_AXIS_IMAGES, "image"},
                {args->options.shared_link, SN_AXIS_LINKS, "shared-link"},
                {args->options.iteration.optimizer != SN_OPTIMIZER_MOMENTUM, SN_AXIS_OPTIMIZERS, "optimizer"},
                {args->options.iteration.accumulate > 0, SN_AXIS_ACCUMULATES, "accumulate"},
                {sn_args_gave(args, "precision"), SN_AXIS_PRECISIONS, "precision"},
                {sn_args_gave(args, "parallel"), SN_AXIS_PARALLELS, "parallel"}};
  for (size_t i = 0; i < sizeof single / sizeof single[0]; i++)
    if (single[i].given && args->axes[single[i].axis].count)
      return sn_fail(err, SN_BAD_USAGE, "--%s is one value of --%s, which says all of them; give only that",
                     single[i].option, sn_axis_name(single[i].axis));
  if (!args->operand) return SN_OK;
  if (args->grid || has_axes(args))
    return sn_fail(err, SN_BAD_USAGE, "the number of a sweep says all about its points: give that or a grid");
  if (args->fresh || args->no_db)
    return sn_fail(err, SN_BAD_USAGE,
                   "--%s cannot be combined with a sweep number; a stored sweep resumes with its own settings",
                   args->fresh ? "new" : "no-db");
  return SN_OK;
}

/* Errors of the grid name the axis; here it is an option. */
static sn_status add_axis(const sn_args *args, sn_axis axis, sn_grid *grid, sn_err *err) {
  const sn_args_lists *lists = axis == SN_AXIS_IMAGES && grid->sequences ? &args->sequences : &args->axes[axis];
  sn_err own = SN_ERR_INIT;
  for (uint32_t i = 0; i < lists->count; i++)
    if (sn_grid_add_list(grid, axis, lists->texts[i], &own) != SN_OK)
      return sn_fail(err, own.code, "%s%s", own.code == SN_BAD_USAGE ? "--" : "", own.text);
  return SN_OK;
}

/* What is one value for all points, and an axis of one. */
static sn_status add_single(const sn_args *args, sn_grid *grid, sn_err *err) {
  char image[12], accumulate[12];
  snprintf(image, sizeof image, "%" PRIu32, args->image);
  snprintf(accumulate, sizeof accumulate, "%" PRIu32, args->options.iteration.accumulate);
  grid->sequences = args->sequence > 0 || args->sequences.count > 0;
  if (args->image) sn_grid_add(grid, SN_AXIS_IMAGES, image, err);
  if (args->options.shared_link) sn_grid_add(grid, SN_AXIS_LINKS, "shared", err);
  if (args->options.iteration.accumulate) sn_grid_add(grid, SN_AXIS_ACCUMULATES, accumulate, err);
  if (args->options.iteration.optimizer != SN_OPTIMIZER_MOMENTUM)
    sn_grid_add(grid, SN_AXIS_OPTIMIZERS, sn_optimizer_name(args->options.iteration.optimizer), err);
  if (sn_args_gave(args, "precision"))
    sn_grid_add(grid, SN_AXIS_PRECISIONS, sn_iteration_precision_name(args->options.iteration), err);
  sn_mesh mesh = args->options.iteration.mesh;
  if (sn_args_gave(args, "parallel") && sn_mesh_parse(args->options.iteration.mesh.text, &mesh, err) == SN_OK)
    sn_grid_add(grid, SN_AXIS_PARALLELS, *mesh.text ? mesh.text : SN_GRID_ONE_GPU, err);
  grid->host_memory_bytes = args->host_memory.bytes;
  grid->placement = args->options.placement;
  grid->inference = args->options.iteration.inference;
  grid->freeze = args->freeze;
  if (args->margin_text) grid->margin = args->margin_text;
  if (args->cluster) grid->cluster = args->cluster;
  return err->code;
}

static sn_grid *grid_of_args(const sn_args *args, sn_err *err) {
  sn_grid *grid = sn_grid_new(err);
  char name[SN_STRATEGY_TEXT];
  if (!grid) return NULL;
  grid->origin = sn_args_origin(args);
  add_single(args, grid, err);
  for (sn_axis axis = 0; axis < SN_AXES && err->code == SN_OK; axis++) add_axis(args, axis, grid, err);
  for (uint32_t i = 0; i < args->n_strategies && err->code == SN_OK; i++)
    sn_grid_add(grid, SN_AXIS_STRATEGIES, sn_strategy_name(args->strategies[i], name), err);
  if (err->code == SN_OK && sn_grid_specify_nets(grid, args->loss, args->lora, err) == SN_OK) return grid;
  sn_grid_free(grid);
  return NULL;
}

/* The grid of a stored sweep; *id is set to its number. */
static sn_grid *grid_of_store(const sn_args *args, sn_store *store, int64_t *id, sn_err *err) {
  char name[40];
  if (sn_args_sweep(args, id, err) != SN_OK) return NULL;
  sn_sweep *sweep = sn_sweep_get_head(store, *id, err);
  if (!sweep) return NULL;
  *id = sweep->head.id;
  snprintf(name, sizeof name, "the grid of sweep %" PRId64, *id);
  sn_grid *grid = sn_grid_parse(name, sweep->head.grid, strlen(sweep->head.grid), err);
  sn_sweep_free(sweep);
  return grid;
}

/* Points are fp32 where one GPU has no TF32, though PyTorch starts with it on the others. */
static void tell_precision(const sn_args *args, const sn_grid *grid) {
  const sn_device *without = NULL;
  bool starts = false, own = args->operand || args->grid || sn_args_gave(args, "precision");
  if (own || args->axes[SN_AXIS_PRECISIONS].count > 0 || grid->origin != SN_NETS_OF_TORCHVISION) return;
  for (uint32_t i = 0; i < grid->n[SN_AXIS_GPUS]; i++) {
    bool starts_in_fp32 = sn_device_starts_in(&grid->devices[i], NULL) == SN_FP32;
    if (starts_in_fp32) without = &grid->devices[i];
    starts = starts || !starts_in_fp32;
  }
  if (starts && without)
    sn_out_say("note: fp32 at all points, as %s has no TF32; PyTorch starts with --precisions tf32-conv on the others",
               without->name);
}

static sn_grid *load_grid(const sn_args *args, sn_store *store, int64_t *id, sn_err *err) {
  sn_grid *grid = args->operand ? grid_of_store(args, store, id, err)
                  : args->grid  ? sn_grid_load(args->grid, err)
                                : grid_of_args(args, err);
  if (grid) grid->runtime = args->runtime;
  if (grid && grid->n[SN_AXIS_GPUS] == 0 && !*grid->cluster)
    sn_grid_add(grid, SN_AXIS_GPUS, sn_gpu_unnamed().name, err);
  if (grid && err->code == SN_OK && sn_grid_finish(grid, err) == SN_OK &&
      sn_file_conflict_check_grid(args, grid, err) == SN_OK) {
    tell_precision(args, grid);
    return grid;
  }
  sn_grid_free(grid);
  return NULL;
}

/* ---- which sweep ---- */

/* Reads which points are stored; returns how many. */
static uint32_t look(const sn_sweep_job *job, bool *stored, sn_err *err) {
  uint32_t there = 0;
  if (sn_sweep_stored(job->store, job->id, job->grid->n_points, stored, err) != SN_OK) return 0;
  for (uint32_t i = 0; i < job->grid->n_points; i++) there += stored[i];
  return there;
}

/* Finds or makes the sweep of the grid, and what of it is stored already. That is looked at again after entering: until
 * then another program may have stored more. */
static sn_status enter(const sn_args *args, sn_sweep_job *job, bool *stored, sn_err *err) {
  uint32_t n_points = job->grid->n_points;
  if (job->id == 0 && !args->fresh && sn_sweep_find(job->store, job->text, &job->id, err) != SN_OK) return err->code;
  if (job->id == 0 && sn_sweep_create(job->store, job->text, n_points, &job->id, err) != SN_OK) return err->code;
  uint32_t there = look(job, stored, err);
  if (err->code == SN_OK && there < n_points && sn_sweep_enter(job->store, job->id, &job->session, err) == SN_OK)
    there = look(job, stored, err);
  if (err->code == SN_OK && there > 0)
    sn_out_say("sweep %" PRId64 ": %" PRIu32 " of %" PRIu32 " points are stored already%s", job->id, there, n_points,
               there == n_points ? "; --new computes them again" : "");
  return err->code;
}

/* ---- what it came to ---- */

static const sn_sweep_row *first_failed(const sn_sweep *sweep) {
  for (uint32_t i = 0; i < sweep->n_rows; i++)
    if (sweep->rows[i].failure[0]) return &sweep->rows[i];
  return NULL;
}

/* Of a point that an older snsim stored only what its plan takes is known. */
static uint64_t needed(const sn_sweep_row *row) {
  return row->least_device_bytes ? row->least_device_bytes : row->peak_device_bytes;
}

/* The point that fits least badly. */
static const sn_sweep_row *nearest(const sn_sweep *sweep) {
  const sn_sweep_row *best = NULL;
  for (uint32_t i = 0; i < sweep->n_rows; i++) {
    const sn_sweep_row *row = &sweep->rows[i];
    if (!row->failure[0] && (!best || needed(row) < needed(best))) best = row;
  }
  return best;
}

static sn_status judge(const sn_sweep *sweep, sn_err *err) {
  const sn_sweep_row *failed = first_failed(sweep), *least = nearest(sweep);
  char need[SN_UNIT_TEXT], memory[SN_UNIT_TEXT];
  if (failed)
    sn_out_say("%" PRIu32 " of %" PRIu32 " points could not be computed; the first is point %" PRIu32
               ", %s, batch %" PRIu32 " on %s, %s: %s",
               sweep->head.n_failed, sweep->head.n_points, failed->point, failed->net, failed->batch, failed->gpu,
               failed->strategy, failed->failure);
  if (sweep->head.n_fit > 0) return SN_OK;
  if (!least) return sn_fail(err, SN_NO_FIT, "none of the %" PRIu32 " points could be computed", sweep->head.n_points);
  return sn_fail(err, SN_NO_FIT,
                 "none of the %" PRIu32 " points; the least is needed by %.100s, batch %" PRIu32
                 ", with %s: %s of %s on "
                 "%.60s; try smaller --batches or other --gpus",
                 sweep->head.n_points, least->net, least->batch, least->strategy, sn_print_bytes(needed(least), need),
                 sn_print_bytes(least->memory_bytes, memory), least->gpu);
}

static void tell(const sn_args *args, const sn_sweep_job *job, const char *path) {
  char db[SN_ARGS_DB_ROOM];
  if (args->no_db) return;
  sn_args_db_option(args, db);
  sn_out_say("sweep %" PRId64 " stored in %s; snsim show sweep:%" PRId64 "%s prints it, snsim plot sweep:%" PRId64
             "%s draws it",
             job->id, path, job->id, db, job->id, db);
}

static sn_status conclude(const sn_args *args, const sn_sweep_job *job, const char *path, sn_err *err) {
  sn_sweep *sweep = sn_sweep_get(job->store, job->id, err);
  if (!sweep) return err->code;
  bool printed = sn_sweep_print(args, sweep, err) == SN_OK;
  if (sn_store_is_there(job->store))
    tell(args, job, path);
  else
    sn_store_fail_gone(job->store, err);
  if (err->code == SN_OK && printed) judge(sweep, err);
  sn_sweep_free(sweep);
  return err->code;
}

/* The signal that was held back ends the program, now that all is stored. */
static void end_by(const sn_args *args, const sn_sweep_job *job, int number) {
  char db[SN_ARGS_DB_ROOM];
  if (args->no_db)
    sn_out_say("interrupted; with --no-db nothing is kept");
  else
    sn_out_say("interrupted; what is finished is stored, snsim sweep %" PRId64 "%s continues it", job->id,
               sn_args_db_option(args, db));
  raise(number);
}

/* ---- the command ---- */

static uint32_t choose_jobs(const sn_args *args) {
  if (args->jobs) return args->jobs;
  return sn_ranks_launched() ? 1 : sn_processors_count(); /* mpirun's -n says how many */
}

/* The store, the grid and its text; job->text is NULL where that fails. A grid that makes no sense leaves no file. */
static void prepare(const sn_args *args, sn_sweep_job *job, sn_grid **grid, char *path, sn_err *err) {
  if (check_usage(args, err) != SN_OK) return;
  if (!args->no_db && sn_args_database(args, path, PATH_ROOM, err) != SN_OK) return;
  if (!args->operand) *grid = load_grid(args, NULL, &job->id, err);
  if (err->code == SN_OK) job->store = sn_store_open(path, err);
  if (job->store && args->operand) *grid = load_grid(args, job->store, &job->id, err);
  if (job->store && *grid) job->text = sn_grid_text(*grid, err);
  job->grid = *grid;
}

static int compute(const sn_args *args, sn_sweep_job *job, sn_err *err) {
  int number = 0;
  bool *stored = calloc(job->grid->n_points, sizeof *stored);
  if (!stored) sn_fail_memory(err);
  job->stored = stored;
  if (stored && enter(args, job, stored, err) == SN_OK) sn_sweep_run(job, &number, err);
  free(stored);
  return number;
}

static sn_status sweep(const sn_args *args, sn_ranks *ranks, sn_err *err) {
  char path[PATH_ROOM] = ":memory:";
  sn_grid *grid = NULL;
  int number = 0;
  sn_sweep_job job = {.ranks = ranks, .jobs = choose_jobs(args)};
  prepare(args, &job, &grid, path, err);
  if (grid && job.text) number = compute(args, &job, err);
  if (ranks) sn_sweep_dismiss(ranks);
  if (err->code == SN_OK && number != 0)
    end_by(args, &job, number);
  else if (err->code == SN_OK)
    conclude(args, &job, path, err);
  sn_store_close(job.store);
  sn_grid_free(grid);
  return err->code;
}

sn_status sn_cli_sweep(const sn_args *args, sn_err *err) {
  if (sn_ranks_launched()) sn_sweep_hold_signals(); /* from MPI's threads too */
  sn_ranks *ranks = sn_ranks_open(err);
  if (err->code != SN_OK) return err->code;
  sn_args plain = *args;
  if (sn_ranks_launched() && args->color == SN_COLOR_AUTO)
    plain.color = SN_COLOR_NEVER; /* mpirun's terminals are not the user's */
  if (ranks && sn_ranks_own(ranks) > 0)
    sn_sweep_serve(ranks, choose_jobs(args), err);
  else
    sweep(&plain, ranks, err);
  sn_ranks_close(ranks, sn_status_exit_code(err->code));
  return err->code;
}
