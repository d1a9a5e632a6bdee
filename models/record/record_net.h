/* A recording as a network: a layer for each operation of the forward pass, named by its module and its kernel. Values
 * have no shapes, and nothing is known of it but what the recording says: which step makes, reads and changes what is
 * the route's (sim/graph/route_recorded.c), made of net->recorded.
 *
 * Of the iterations that were recorded the last one is the network's, from its first operation on: the one in which the
 * optimizer has its states already.
 *
 * sn_net_load() makes one of a path that ends in ".rec" or ".rec.gz"; batch 0 is the one it was recorded with. SN_BAD_USAGE for a batch that the recording does
 * not hold for; errors of sn_record_load().
 */
#ifndef SN_MODELS_RECORD_RECORD_NET_H
#define SN_MODELS_RECORD_RECORD_NET_H

#include "models/net/net.h"
#include "models/record/record.h"

/* A call of a block, a module that a ModuleList or Sequential has several of: what people put into
 * torch.utils.checkpoint. In operations of the iteration. */
typedef struct sn_record_region {
  uint32_t first, end; /* it is first .. end - 1, in the forward pass */
  uint32_t again_end;  /* where it is run again, it stops ahead of this one: nothing behind is kept for backward */
  uint32_t first_event, end_event; /* of the call: the one with which it begins; behind that with which it ends */
} sn_record_region;

/* What a network of a recording has beside its layers. */
struct sn_recorded {
  const sn_record *record;
  uint32_t first_event, end_event;       /* the iteration: record->events[first_event .. end_event - 1] */
  uint32_t first_op, n_ops;              /* its operations: record->ops[first_op ..] */
  uint32_t n_forward;                    /* ahead of the first operation of backward; n_ops where there is none */
  uint32_t n_backward;                   /* from there to the end of the last run of backward */
  uint32_t backwards;                    /* how many runs of backward there are, with forward operations between them */
  const struct sn_record_life *lives[2]; /* per storage (models/record/lives.h): sums apart, and in place */
  const uint32_t *layer;                 /* per operation of the iteration: an operation of backward has the layer whose
                                    * forward made its node */
  bool chosen;                           /* the blocks are the user's choice (--units) */
  uint32_t n_regions;
  const sn_record_region *regions;       /* the outermost ones, in order; of those that keep something */
  const struct sn_record_owners *owners; /* whose storages are (models/record/owners.h) */
  const uint32_t *part_of; /* per operation: which one's part it is; SN_NONE: none's (models/record/kinds.h) */
  const bool *aside;       /* per storage: a mask or statistics. Both NULL without one run of backward */
  uint32_t n_again;        /* operations of blocks that run again (models/record/checkpoint.h) */
  const uint32_t *again;   /* per operation: which of the iteration without checkpoints it is once more; SN_NONE:
                                    * none. NULL: no block runs again */
};

/* Backward is one pass, in which the recorded loop itself runs blocks again. */
static inline bool sn_recorded_checkpoints(const struct sn_recorded *recorded) {
  return recorded->backwards > 1 && recorded->record->passes == 1;
}

/* The only batch that the recording of a network holds for; 0: any, or the network is of none. */
static inline uint32_t sn_recorded_batch(const sn_net *net) {
  return net->recorded && net->recorded->record->n_batches == 1 ? net->recorded->record->batches[0] : 0;
}

#endif
