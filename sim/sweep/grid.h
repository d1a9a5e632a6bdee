/* Grid: the points of a sweep as data. Every combination of the values of its axes is a point; points that differ in
 * nothing but the strategy are a group, which is simulated in one go.
 *
 *   sn_grid *grid = sn_grid_new(&err);
 *   sn_grid_add_list(grid, SN_AXIS_NETS, "alexnet,resnet:n1=3,n2=4", &err);
 *   sn_grid_add_list(grid, SN_AXIS_BATCHES, "16,32:256:32", &err);
 *   if (sn_grid_finish(grid, &err) == SN_OK) for group = 0 .. grid->n_groups - 1: sn_grid_at(grid, group, at);
 *
 * Numbering: the axes are digits of a number, in the order of sn_axis, strategies last and fastest:
 * point = group * strategies + strategy. It depends on nothing but the order in which values were added; batches are
 * sorted. The text of a grid, a JSON object (docs/sweep.md), gives the same grid when it is read again; two grids with
 * the same text have the same points with the same results, since the text holds the version of snsim and a digest of
 * every file that a network or GPU comes from.
 *
 * Families: groups of one network that differ in the device or what is asked of it alone, and so share all that does
 * not depend on those (sim/sweep/point.h). Turns are the groups' numbers in the order in which they are best computed,
 * family after family.
 */
#ifndef SN_SIM_SWEEP_GRID_H
#define SN_SIM_SWEEP_GRID_H

#include "base/err.h"
#include "models/zoo/resolve.h"
#include "sim/ask/simulate.h"
#include "sim/cluster/cluster.h"
#include "sim/device/device.h"
#include "sim/device/margin.h"
#include "sim/policy/conditions.h"
#include "sim/policy/runtime.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sn_axis {
  SN_AXIS_NETS,     /* names of the zoo, families with parameters, files */
  SN_AXIS_IMAGES,   /* height and width of the images, or lengths of sequences; or "own": the network's; default own */
  SN_AXIS_GPUS,     /* names or files; default k40c */
  SN_AXIS_MEMORIES, /* usable memory of the GPU, or "own": what its profile says; default own */
  SN_AXIS_LINKS,    /* "own": each direction has a bandwidth of its own; "shared": both have one; default own */
  SN_AXIS_WORKSPACES,  /* default dynamic */
  SN_AXIS_EXTERNALS,   /* default host */
  SN_AXIS_ALLOCATORS,  /* default pool */
  SN_AXIS_OPTIMIZERS,  /* default momentum */
  SN_AXIS_ACCUMULATES, /* batches an update; default 1 */
  SN_AXIS_PRECISIONS,  /* default: tf32-conv, as PyTorch starts, of its questions where all GPUs have it; else fp32 */
  SN_AXIS_PARALLELS, /* meshes of GPUs (sim/graph/mesh.h), one number of each may be a range as of batches; default one GPU */
  SN_AXIS_POOLS,      /* sizes, or "all": whatever the device has left; default all */
  SN_AXIS_BATCHES,    /* numbers, ranges LOW:HIGH:STEP or LOW:HIGH:xFACTOR */
  SN_AXIS_STRATEGIES, /* default the 13 of sn_strategy_default(); of two-byte precisions, PyTorch's */
  SN_AXES
} sn_axis;

enum {
  SN_GRID_NETS = 256,
  SN_GRID_IMAGES = 64,
  SN_GRID_GPUS = 64,
  SN_GRID_MEMORIES = 64,
  SN_GRID_CONDITIONS = 64, /* values of one that is an axis */
  SN_GRID_BATCHES = 4096,
  SN_GRID_STRATEGIES = 32,
  SN_GRID_FILES = SN_GRID_NETS + SN_GRID_GPUS + 1 /* of the cluster */
};
#define SN_GRID_ONE_GPU "dp=1"   /* a value of SN_AXIS_PARALLELS */
#define SN_GRID_POINTS  1000000u /* the most in all */

/* A file that a network or GPU of the grid comes from, as it was when the grid was finished. */
typedef struct sn_grid_file {
  const char *path;
  uint64_t digest; /* FNV-1a of its bytes */
} sn_grid_file;

typedef struct sn_grid {
  uint32_t n[SN_AXES];  /* how many values each axis has */
  sn_net_origin origin; /* of networks that are added: whose a name is that both have; the paper's unless set */
  sn_runtime runtime;   /* whose strategies are tried where none is added; PyTorch's unless set */
  const char *nets[SN_GRID_NETS], *gpus[SN_GRID_GPUS];
  const char *conditions[SN_AXES][SN_GRID_CONDITIONS]; /* of axes that are conditions (sim/policy/conditions.h), as grid
                                                          files have them: "dynamic", "shared", "4", "all" */
  uint64_t images[SN_GRID_IMAGES], memories[SN_GRID_MEMORIES]; /* 0: own */
  uint32_t batches[SN_GRID_BATCHES];
  sn_strategy strategies[SN_GRID_STRATEGIES];
  sn_placement placement;     /* of every point's plan */
  bool sequences;             /* SN_AXIS_IMAGES has lengths of sequences; to be set before the first */
  bool inference;             /* networks are run, not trained, at every point */
  const char *freeze;         /* layers that are not trained at any point (sim/graph/freeze.h); "": none */
  const char *cluster;        /* that meshes lie on, a name or file; "": the known one of each GPU, else assumed */
  uint64_t host_memory_bytes; /* of every GPU's host; 0: what its profile says */
  const char *margin;         /* of every GPU's memory, kept free (sim/device/margin.h); "": none */
  const char *version;        /* of the snsim whose grid it is; NULL until it is finished */
  /* set by sn_grid_finish() */
  uint32_t n_groups, n_points;
  sn_cluster where; /* name "": no cluster was said */
  sn_margin kept_free;
  sn_device devices[SN_GRID_GPUS];
  uint32_t n_files;
  sn_grid_file files[SN_GRID_FILES];
  struct sn_arena *arena;
} sn_grid;

sn_grid *sn_grid_new(sn_err *err);
void sn_grid_free(sn_grid *grid);

/* "nets", "gpus", ...: what an axis is called in a grid file. */
const char *sn_axis_name(sn_axis axis);
/* The same, but "sequences" where the images are that. */
const char *sn_grid_axis_name(const sn_grid *grid, sn_axis axis);
/* The condition that an axis has values of; NULL: it is no condition. */
const sn_condition *sn_axis_condition(sn_axis axis);

/* Adds one value (for batches also a range); one that is there already counts once. SN_BAD_USAGE. */
sn_status sn_grid_add(sn_grid *grid, sn_axis axis, const char *text, sn_err *err);
/* Adds values parted by commas, but for meshes, which have commas: one. A part that reads KEY=VALUE belongs to the
 * network family before it. */
sn_status sn_grid_add_list(sn_grid *grid, sn_axis axis, const char *text, sn_err *err);

/* Gives every network that was added a loss, adapters, or both (NULL: none), as models/zoo/zoo.h has them. SN_BAD_USAGE. */
sn_status sn_grid_specify_nets(sn_grid *grid, const char *loss, const char *lora, sn_err *err);

/* Reads a grid file, or the text of a grid; the grid still has to be finished. SN_BAD_INPUT with file and line. */
sn_grid *sn_grid_load(const char *path, sn_err *err);
sn_grid *sn_grid_parse(const char *name, const char *text, size_t bytes, sn_err *err);

/* Puts in the defaults, loads the GPUs, tries every network with one image of every size, counts the points.
 * SN_BAD_USAGE where nets or batches are missing, a name is unknown or the points are too many; SN_BAD_INPUT for bad
 * files, strategies that inference has no use for, and for a text whose snsim had another version or whose files have
 * changed. */
sn_status sn_grid_finish(sn_grid *grid, sn_err *err);

/* The text of a finished grid, NULL and SN_NO_MEMORY; it lives as long as the grid. */
const char *sn_grid_text(const sn_grid *grid, sn_err *err);
/* Digest of a text (FNV-1a), and of a file, as a grid has that of its networks and GPUs. SN_BAD_FILE. */
uint64_t sn_grid_key(const char *text);
sn_status sn_grid_digest(const char *path, uint64_t *digest, sn_err *err);

/* Which value of each axis a group has; at[SN_AXIS_STRATEGIES] is 0. */
void sn_grid_at(const sn_grid *grid, uint32_t group, uint32_t at[SN_AXES]);
/* The group whose turn it is, and the number of its family; turn and group are from 0 to n_groups - 1. */
uint32_t sn_grid_group_at(const sn_grid *grid, uint32_t turn);
uint32_t sn_grid_family(const sn_grid *grid, uint32_t group);
uint32_t sn_grid_family_size(const sn_grid *grid); /* groups of a family, whose turns follow each other */
/* What a group asks. */
sn_options sn_grid_options(const sn_grid *grid, const uint32_t at[SN_AXES]);
/* Whether a GPU has the precision, as a fault of a grid and not of an option. SN_BAD_USAGE. */
sn_status sn_grid_check_precision(const sn_device *device, sn_precision precision, sn_err *err);
/* The GPU of a group of a finished grid, with the memory that it has there, without the margin. */
sn_device sn_grid_device(const sn_grid *grid, const uint32_t at[SN_AXES]);

#endif
