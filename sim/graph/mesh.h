/* Mesh: on how many GPUs an iteration runs, and how they share it; and what of a parameter one of them has.
 *
 *   dp=N     DistributedDataParallel: every GPU has all of the model, gradients are averaged
 *   fsdp=N   fully_shard() of each block and of the rest: a GPU keeps 1/N of each parameter, gathers a block's where it
 *            runs, and keeps its part of the gradients' sum. With dp=R: R such groups (HSDP)
 *   zero=Z   with dp=N: DeepSpeed's stages 1 and 2, model states only; its stage 3 is read as fsdp=N
 *   tp=N     DTensor's column- and row-wise products, and parts of the sequence between them; with sequence=whole all of it
 *   pp=N     the layers in N stages, micro-batches one behind the other
 *
 * Ranks are numbered with tp fastest, then fsdp, dp and pp. What is said is what the fullest rank has: the first, which
 * has the most rows of every parameter.
 *
 * A parameter of d0 rows (its first dimension) on W ranks: each keeps a storage of ceil(d0 / W) rows, and of those
 * `own` are rows of the parameter: torch.chunk() gives the last ranks fewer, or none. All W of them are the padded
 * parameter, which is what is gathered (PyTorch 2.15, torch/distributed/fsdp/_fully_shard; parallel.md, section 2).
 *
 * tp divides a parameter first, and the ranks of fsdp what is left of it (parallel.md, section 5):
 *
 *   an FC of a value that is whole or split by positions    by outputs ("column-wise")     q k v, gate, up, head
 *   an FC of what such FCs made, split by features          by inputs ("row-wise")         o, down
 *   a table of words                                        by words
 *   norms                                                   not at all
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
  SN_MESH_UNITS = 64,         /* the most parts whose units are said */
  SN_MESH_TEXT = 256
};

/* In which order stages work on micro-batches (sim/parallel/pipeline.h). */
typedef enum sn_mesh_schedule {
  SN_SCHEDULE_1F1B,
  SN_SCHEDULE_GPIPE,
  SN_SCHEDULE_ZB_H1,
  SN_SCHEDULE_INTERLEAVED = 16
} sn_mesh_schedule;

/* Zeroed it is one GPU. */
typedef struct sn_mesh {
  uint32_t size[SN_MESH_AXES]; /* 0 and 1: the axis is not there */
  uint32_t zero;               /* DeepSpeed's stage, 1 or 2; 0: none */
  uint32_t reshard;            /* SN_RESHARD_..; looked at with fsdp, as what follows */
  bool keep_last;              /* the last block is not resharded behind its forward */
  uint32_t prefetch;           /* blocks gathered ahead; 0 and 1: PyTorch's own way */
  bool reduce_narrow;     /* gradients are reduced in the width in which they are computed, not in the parameters' */
  bool sync_each;         /* accumulating, each micro-batch's gradients are reduced */
  uint64_t bucket_bytes;  /* dp; 0: SN_MESH_BUCKET */
  bool view;              /* dp: gradient_as_bucket_view */
  uint32_t schedule;      /* pp: sn_mesh_schedule, or SN_SCHEDULE_INTERLEAVED and chunks */
  uint32_t stage, micros; /* pp, not asked for: of whose GPU a route is, and micro-batches an update (0: one) */
  uint32_t idle;          /* the same: micro-batches beside those, for which rounds of them stand (sn_rounds_of()) */
  uint32_t n_units;       /* pp: parts whose blocks are said one by one; 0: as many in each as in any other */
  uint16_t units[SN_MESH_UNITS];
  bool loss_whole;         /* tp: logits are gathered ahead of the loss */
  bool gather_again;       /* tp: inputs of products are kept split and gathered once more by backward (Megatron) */
  bool sequence_whole;     /* tp: no sequence parallelism, values between products are whole on every rank */
  uint8_t sought;          /* 1 + the axis whose size is looked for (sn_mesh_parse_sought()); 0: none */
  char text[SN_MESH_TEXT]; /* that reads as this mesh, keys at what they are unless asked for left out:
                              "fsdp=8,prefetch=2"; "" for one GPU */
} sn_mesh;

static inline uint32_t sn_mesh_size(const sn_mesh *mesh, sn_mesh_axis axis) {
  return mesh->size[axis] > 1 ? mesh->size[axis] : 1;
}

/* The ranks that see images of their own. */
static inline uint32_t sn_mesh_copies(const sn_mesh *mesh) {
  return sn_mesh_size(mesh, SN_MESH_FSDP) * sn_mesh_size(mesh, SN_MESH_DP);
}
/* GPUs in all; no more than SN_MESH_MOST of what was parsed. */
uint32_t sn_mesh_world(const sn_mesh *mesh);
static inline bool sn_mesh_is_one(const sn_mesh *mesh) {
  return sn_mesh_world(mesh) == 1;
}
/* "fsdp=8,prefetch=2"; "" is one GPU. SN_BAD_USAGE: a key that is unknown, stands twice or has no meaning beside the others; a number out of its range. */
sn_status sn_mesh_parse(const char *text, sn_mesh *mesh, sn_err *err);

/* Parts of the network that a stage of a pipeline has: 1, or interleaved's chunks. */
static inline uint32_t sn_mesh_chunks(const sn_mesh *mesh) {
  return mesh->schedule > SN_SCHEDULE_INTERLEAVED ? mesh->schedule - SN_SCHEDULE_INTERLEAVED : 1;
}

/* The network in parts one behind the other: whole blocks (sn_named_module), as many in each as in any other or one
 * fewer, or as mesh->units has them; what is ahead of the first block in the first part, what is behind the last in the last. Where nothing is a
 * block each layer with parameters is one.
 *
 *   sn_mesh_parts parts = sn_mesh_parts_of(net, &mesh);
 *   for (uint32_t l = 0; l < net->n_layers; l++) part = sn_mesh_part_next(&parts);       each layer's, in order
 */
typedef struct sn_mesh_parts {
  const sn_net *net;
  const sn_mesh *mesh;
  uint32_t parts, blocks; /* how many */
  uint32_t part, filled;  /* of units that are said: the part so far, and all blocks up to its end */
  uint32_t layer, begun;  /* what comes next; blocks so far */
  uint32_t tail;          /* from this layer on nothing is in a block */
  bool named;             /* blocks are the modules' */
  const char *last;
} sn_mesh_parts;

/* Both outlive it. */
sn_mesh_parts sn_mesh_parts_of(const sn_net *net, const sn_mesh *mesh);
uint32_t sn_mesh_part_next(sn_mesh_parts *parts);
/* How many blocks a stage has, of all its parts. */
uint32_t sn_mesh_stage_blocks(const sn_net *net, const sn_mesh *mesh, uint32_t stage);
/* SN_BAD_INPUT: fewer blocks than parts. SN_BAD_USAGE: the units that are said are not all blocks. With what works. */
sn_status sn_mesh_check_parts(const sn_net *net, const sn_mesh *mesh, sn_err *err);
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

/* How tp divides a layer's parameters. */
typedef enum sn_division { SN_UNDIVIDED, SN_BY_OUTPUTS, SN_BY_INPUTS, SN_BY_WORDS } sn_division;

/* O(layers between it and the product or norm ahead of it). */
sn_division sn_division_of(const sn_net *net, const sn_layer *layer);

/* Whether an update for all parameters at once (foreach) takes a layer's for themselves: with sequence=whole what tp does
 * not divide are plain tensors, of which PyTorch takes none beside DTensors; DistributedDataParallel makes all plain. */
bool sn_mesh_updates_apart(const sn_mesh *mesh, const sn_net *net, const sn_layer *layer);

/* The parameter tensors of a layer (sn_parameters_of()) as they are cut, of one of `tp` ranks; how many. */
uint32_t sn_cuts_of(const sn_net *net, const sn_layer *layer, uint32_t tp, sn_cut cuts[SN_PARAMETER_TENSORS]);

/* Elements of a rank's storage, all of which the first rank has numbers for; and of all ranks' storages. */
uint64_t sn_cut_shard(sn_cut cut, uint32_t ranks);
uint64_t sn_cut_padded(sn_cut cut, uint32_t ranks);

/* Bytes that a rank has of a storage of a recording, of so many bytes: its part where the storage is a parameter's or of
 * a parameter's size (models/record/owners.h), all of it elsewhere. */
struct sn_recorded;
uint64_t sn_cut_recorded(const struct sn_recorded *recorded, uint32_t storage, uint64_t bytes, uint32_t ranks);

#endif
