/* Mesh: on how many GPUs an iteration runs, and how they share it; and what of a parameter one of them has.
 *
 *   dp=N     DistributedDataParallel: every GPU has all of the model, gradients are averaged
 *   fsdp=N   fully_shard() of each block and of the rest: a GPU keeps 1/N of each parameter, gathers a block's where it
 *            runs, and keeps its part of the gradients' sum. With dp=R: R such groups (HSDP)
 *   zero=Z   with dp=N: DeepSpeed's stages 1, 2 and 3, model states only
 *   tp=N     DTensor's column- and row-wise products, and parts of the sequence between them
 *   pp=N     the layers in N stages, micro-batches one behind the other
 *
 * Ranks are numbered with tp fastest, then fsdp, dp and pp. What is said is what the fullest rank has: the first, which
 * has the most rows of every parameter.
 *
 * A parameter of d0 rows (its first dimension) on W ranks: each keeps a storage of ceil(d0 / W) rows, and of those
 * `own` are rows of the parameter: torch.chunk() gives the last ranks fewer, or none. All W of them are the padded
 * parameter, which is what is gathered (PyTorch 2.15, torch/distributed/fsdp/_fully_shard; parallel.md, section 2).
 */
#ifndef SN_SIM_GRAPH_MESH_H
#define SN_SIM_GRAPH_MESH_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/graph/optimizer.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_mesh_axis { SN_MESH_TP, SN_MESH_FSDP, SN_MESH_DP, SN_MESH_PP, SN_MESH_AXES } sn_mesh_axis;

/* "tp", "fsdp", "dp", "pp" */
const char *sn_mesh_word(sn_mesh_axis axis);

enum {
  SN_MESH_MOST = 65536,       /* GPUs in all */
  SN_MESH_PREFETCH = 16,      /* the most groups that are gathered ahead */
  SN_MESH_BUCKET = 25u << 20, /* bytes of DDP's buckets, but for the first */
  SN_RESHARD_YES = 1,         /* reshard_after_forward=True */
  SN_RESHARD_NO = 0,          /* =False; from 2 on: to groups of so many */
  SN_MESH_TEXT = 96
};

/* Zeroed it is one GPU. */
typedef struct sn_mesh {
  uint32_t size[SN_MESH_AXES]; /* 0 and 1: the axis is not there */
  uint32_t zero;               /* DeepSpeed's stage, 0: none */
  uint32_t reshard;            /* SN_RESHARD_..; looked at with fsdp, as what follows */
  bool keep_last;              /* the last block is not resharded behind its forward */
  uint32_t prefetch;           /* blocks gathered ahead; 0 and 1: PyTorch's own way */
  bool reduce_narrow;      /* gradients are reduced in the width in which they are computed, not in the parameters' */
  bool sync_each;          /* accumulating, each micro-batch's gradients are reduced */
  uint64_t bucket_bytes;   /* dp; 0: SN_MESH_BUCKET */
  bool view;               /* dp: gradient_as_bucket_view */
  uint8_t sought;          /* 1 + the axis whose size is looked for (sn_mesh_parse_sought()); 0: none */
  char text[SN_MESH_TEXT]; /* that reads as this mesh, keys at what they are unless asked for left out:
                              "fsdp=8,prefetch=2"; "" for one GPU */
} sn_mesh;

static inline uint32_t sn_mesh_size(const sn_mesh *mesh, sn_mesh_axis axis) {
  return mesh->size[axis] > 1 ? mesh->size[axis] : 1;
}
/* GPUs in all; no more than SN_MESH_MOST of what was parsed. */
uint32_t sn_mesh_world(const sn_mesh *mesh);
static inline bool sn_mesh_is_one(const sn_mesh *mesh) {
  return sn_mesh_world(mesh) == 1;
}
/* "fsdp=8,prefetch=2"; "" is one GPU. SN_BAD_USAGE: a key that is unknown, stands twice or has no meaning beside the others; a number out of its range. */
sn_status sn_mesh_parse(const char *text, sn_mesh *mesh, sn_err *err);

/* The same of a mesh whose size is looked for: dp or fsdp may stand without a number, "fsdp,prefetch=2". It is to be
 * given one before it is asked about. */
sn_status sn_mesh_parse_sought(const char *text, sn_mesh *mesh, sn_err *err);
/* The mesh with so many along an axis, nothing sought any more. What says how an axis works is left out where that axis
 * is no more. SN_BAD_USAGE: more than SN_MESH_MOST in all. `to` may be `mesh`. */
sn_status sn_mesh_resize(const sn_mesh *mesh, sn_mesh_axis axis, uint32_t size, sn_mesh *to, sn_err *err);

/* ---- a parameter's part ---- */

/* A parameter as it is cut: rows of so many elements each. */
typedef struct sn_cut {
  uint64_t rows, each;
} sn_cut;

/* The parameter tensors of a layer (sn_parameters_of()) as they are cut; how many. */
uint32_t sn_cuts_of(const sn_net *net, const sn_layer *layer, sn_cut cuts[SN_PARAMETER_TENSORS]);

/* Elements of a rank's storage, all of which the first rank has numbers for; and of all ranks' storages. */
uint64_t sn_cut_shard(sn_cut cut, uint32_t ranks);
uint64_t sn_cut_padded(sn_cut cut, uint32_t ranks);

#endif
