/* Files that must differ; see the header. Every pair is compared: there are fewer than a hundred. */
#include "cli/frame/file_conflict.h"

#include "base/path.h"
#include "cli/frame/origins.h"
#include "exec/data/batch.h"
#include "models/zoo/zoo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4096, MOST_USES = 16, SIDECARS = 3, ENDING_ROOM = 16 };

typedef struct use {
  const char *what, *path;
} use;

typedef struct uses {
  use all[MOST_USES];
  unsigned count;
} uses;

static void add(uses *u, const char *what, const char *path) {
  if (path && path[0]) u->all[u->count++] = (use){what, path};
}

/* Which file it is; NULL: a standard stream, or none. */
static const char *written(const char *path) {
  return path && strcmp(path, "-") != 0 ? path : NULL;
}

/* The files that SQLite keeps beside a database, links followed. */
static void print_sidecars(const char *database, char paths[SIDECARS][PATH_ROOM + ENDING_ROOM]) {
  static const char *const endings[SIDECARS] = {"-wal", "-shm", "-journal"};
  char *real = sn_path_real(database);
  for (int i = 0; i < SIDECARS; i++) {
    int length = real ? snprintf(paths[i], PATH_ROOM + ENDING_ROOM, "%s%s", real, endings[i]) : 0;
    if (length <= 0 || length >= PATH_ROOM + ENDING_ROOM) paths[i][0] = '\0';
  }
  free(real);
}

static sn_status compare(const uses *u, sn_err *err) {
  for (unsigned i = 0; i < u->count; i++)
    for (unsigned j = 0; j < i; j++)
      if (sn_path_same(u->all[i].path, u->all[j].path))
        return sn_fail(err, SN_BAD_USAGE, "%s and %s are the same file, %.300s; give each its own", u->all[j].what,
                       u->all[i].what, u->all[i].path);
  return SN_OK;
}

/* Weights may be trained on in their own file, which is replaced when all is done. */
static bool continues(const sn_args *args) {
  const sn_weight_files *files = &args->files;
  return files->load && files->save && sn_path_same(files->load, files->save);
}

sn_status sn_file_conflict_check(const sn_args *args, sn_err *err) {
  char database[PATH_ROOM], sidecars[SIDECARS][PATH_ROOM + ENDING_ROOM];
  uses u = {.count = 0};
  sn_err reason = SN_ERR_INIT; /* told where the database is needed */
  char *labels = args->data ? sn_batches_labels(args->data) : NULL, *net = sn_origin_net(args->plain_net);
  add(&u, "--net", net);
  add(&u, "--gpu", sn_origin_file(args->gpu));
  add(&u, "--grid", args->grid);
  const unsigned readers = SN_CMD_PACK | SN_CMD_PLAY | SN_CMD_RUN | SN_CMD_VALIDATE; /* of one file */
  add(&u, "FILE", args->command && (args->command->bit & readers) ? written(args->operand) : NULL);
  add(&u, "--data", args->data);
  add(&u, "the labels of --data", labels);
  if (!continues(args)) add(&u, "--load-weights", args->files.load);
  if (sn_args_database(args, database, sizeof database, &reason) == SN_OK) {
    print_sidecars(database, sidecars);
    add(&u, "the database", database);
    for (int i = 0; i < SIDECARS; i++) add(&u, "a file of the database", sidecars[i]);
  }
  add(&u, "--plan", written(args->plan));
  add(&u, "--trace", written(args->trace));
  add(&u, "--save-weights", args->files.save);
  add(&u, "--save-gradients", args->files.gradients);
  add(&u, "--output", written(args->output));
  compare(&u, err);
  free(labels);
  free(net);
  return err->code;
}

static sn_status fail_origin(const sn_run *run, const char *what, const char *output, sn_err *err) {
  return sn_fail(err, SN_BAD_USAGE,
                 "the %.60s of run %" PRId64 " and --output are the same file, %.300s; give each its own", what,
                 run->id, output);
}

/* Older runs have no origins: a path of theirs is looked for from here. */
sn_status sn_file_conflict_check_run(const sn_args *args, const sn_run *run, sn_err *err) {
  const char *output = written(args->output);
  for (uint32_t i = 0; output && i < run->n_origins; i++)
    if (sn_path_same(output, run->origins[i].path)) return fail_origin(run, run->origins[i].what, output, err);
  bool same = output && run->n_origins == 0 && sn_net_is_file(run->net) && sn_path_same(output, run->net);
  return same ? fail_origin(run, "network", output, err) : SN_OK;
}

/* By its path, which may have been given in another folder, or by what is in it. */
static bool is_grid_file(const char *output, const sn_grid_file *file) {
  uint64_t digest;
  sn_err unread = SN_ERR_INIT;
  return sn_path_same(output, file->path) ||
         (sn_path_same(output, output) && sn_grid_digest(output, &digest, &unread) == SN_OK && digest == file->digest);
}

sn_status sn_file_conflict_check_grid(const sn_args *args, const sn_grid *grid, sn_err *err) {
  const char *output = written(args->output);
  for (uint32_t i = 0; output && i < grid->n_files; i++)
    if (is_grid_file(output, &grid->files[i]))
      return sn_fail(err, SN_BAD_USAGE, "--output and a network or GPU are the same file, %.300s; give each its own",
                     output);
  return SN_OK;
}

sn_status sn_file_conflict_check_sweep(const sn_args *args, const char *text, sn_err *err) {
  sn_err unread = SN_ERR_INIT;
  sn_grid *grid = written(args->output) ? sn_grid_parse("the grid", text, strlen(text), &unread) : NULL;
  if (grid) sn_file_conflict_check_grid(args, grid, err);
  sn_grid_free(grid);
  return err->code;
}
