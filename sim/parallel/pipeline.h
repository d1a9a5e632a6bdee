/* Pipelines: in which order each of several stages works on the micro-batches of an update, as lists, and how long that
 * takes. A network is cut into `stages` parts, each on GPUs of its own; what one makes is sent to the next.
 *
 *   1f1b, 3 stages, 4 micro-batches, backward drawn as long as forward; three, two, one of them in flight
 *
 *   stage 0   F0 F1 F2 .. .. B0 F3 B1 .. B2 .. B3
 *   stage 1   .. F0 F1 .. B0 F2 B1 F3 B2 .. B3
 *   stage 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3
 *
 * A schedule is nothing but the lists: how many micro-batches are kept at once, how long stages wait, whether it ends
 * at all is found by going through them. Known schedules:
 *
 *   gpipe          all forward, then all backward (Huang et al., NeurIPS 2019)
 *   1f1b           forward as few as keep the later stages busy, then one backward for each forward (PipeDream-Flush;
 *                  Narayanan et al., ICML 2021)
 *   interleaved    each stage has `chunks` parts of the network, part c of stage r being the (c stages + r)th, and goes
 *                  through them in rounds of `stages` micro-batches (Megatron-LM; Narayanan et al., SC 2021)
 *   zb-h1          backward in two, of inputs and of weights, which nobody waits for and which fill gaps: no more
 *                  memory than 1f1b's first stage (Qi et al., ICLR 2024)
 *
 *   sn_pipeline *pipeline = sn_pipeline_new(SN_PIPELINE_1F1B, 4, 32, 1, &err);
 *   uint32_t kept = sn_pipeline_in_flight(pipeline, 0);
 *   sn_pipeline_play(pipeline, &times, &result, &err);
 *   sn_pipeline_free(pipeline);
 *
 * Making, counting and playing are one pass over the entries each.
 */
#ifndef SN_SIM_PARALLEL_PIPELINE_H
#define SN_SIM_PARALLEL_PIPELINE_H

#include "base/err.h"
#include "sim/graph/mesh.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_pipeline_kind {
  SN_PIPELINE_GPIPE,
  SN_PIPELINE_1F1B,
  SN_PIPELINE_INTERLEAVED,
  SN_PIPELINE_ZB_H1,
  SN_PIPELINE_KINDS
} sn_pipeline_kind;

/* "gpipe", "1f1b", "interleaved", "zb-h1". */
const char *sn_pipeline_kind_name(sn_pipeline_kind kind);

typedef enum sn_pipeline_pass {
  SN_PIPELINE_FORWARD,
  SN_PIPELINE_BACKWARD, /* of inputs, and but for zb-h1 of weights as well */
  SN_PIPELINE_WEIGHTS   /* of zb-h1 alone */
} sn_pipeline_pass;

typedef struct sn_pipeline_entry {
  uint32_t micro; /* from 0, as all */
  uint16_t chunk;
  uint8_t pass;
} sn_pipeline_entry;

enum {
  SN_PIPELINE_STAGES = 4096,
  SN_PIPELINE_CHUNKS = 1024,
  SN_PIPELINE_ENTRIES = 1 << 24
}; /* at most; entries of all stages */

typedef struct sn_pipeline {
  sn_pipeline_kind kind;
  uint32_t stages, micros, chunks;
  bool split;                 /* backward is in two */
  uint32_t n_entries;         /* of each stage */
  sn_pipeline_entry *entries; /* n_entries of stage 0, then of stage 1, .. */
} sn_pipeline;

/* Of a mesh's schedule. */
sn_pipeline_kind sn_pipeline_kind_of(const sn_mesh *mesh);

/* `chunks` is 1 but of interleaved. SN_BAD_USAGE with what works where a number is 0 or too large, or interleaved's
 * micro-batches are no multiple of its stages; SN_NO_MEMORY. */
sn_pipeline *sn_pipeline_new(sn_pipeline_kind kind, uint32_t stages, uint32_t micros, uint32_t chunks, sn_err *err);
void sn_pipeline_free(sn_pipeline *pipeline); /* NULL is fine */

/* The list of a stage: pipeline->n_entries. */
const sn_pipeline_entry *sn_pipeline_list(const sn_pipeline *pipeline, uint32_t stage);

/* How many micro-batches of a chunk a stage keeps at most at once, from their forward to the end of their backward. A
 * chunk is 1 / chunks of what the stage has. */
uint32_t sn_pipeline_in_flight(const sn_pipeline *pipeline, uint32_t stage);

/* How long one micro-batch takes in each part of the network; part c stages + r is chunk c of stage r. None is negative.
 * A hop lasts from the end of what a part has sent to another stage to where that one has it; it keeps nobody busy. */
typedef struct sn_pipeline_times {
  const int64_t *forward_ns, *backward_ns;         /* stages x chunks */
  const int64_t *weights_ns;                       /* the same; NULL where backward is in one */
  const int64_t *forward_hop_ns, *backward_hop_ns; /* by the part that sends; both NULL: links take no time */
  const int64_t *first_ns; /* what the forward of the first micro-batch takes beside, of each part; NULL: nothing */
} sn_pipeline_times;

/* What a stage did from 0 to the end of the last one. */
typedef struct sn_pipeline_played {
  int64_t time_ns;
  int64_t *busy_ns, *idle_ns; /* room for a number a stage, the caller's; their sum is time_ns */
  int64_t *end_ns;            /* the same: when each has done its last entry; NULL: nobody asks */
} sn_pipeline_played;

/* Plays the lists: an entry starts when the one before it has ended and what it needs is there. Forward needs the
 * forward of the part before, backward its own forward and the backward of the part behind, weights their own backward.
 * SN_BUG, naming the entry, where stages wait for each other; SN_BAD_USAGE where times are too long to be added;
 * SN_NO_MEMORY. */
sn_status sn_pipeline_play(const sn_pipeline *pipeline, const sn_pipeline_times *times, sn_pipeline_played *played,
                           sn_err *err);

#endif
