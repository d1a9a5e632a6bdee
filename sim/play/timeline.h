/* Timeline: a played plan as what people look at: bars on lanes, rectangles of memory, memory over time, and what
 * waited for what. Made from any plan and its trace, of the simulated back end or a real one; holds no pointer into
 * either.
 *
 *   compute  [conv1][relu1]~~~[conv2]            bars; ~~~ is a stall
 *   out             [conv1.y]                    arrow: conv1 -> copy of conv1.y
 *   in                          [conv1.y]        arrow: copy of conv1.y -> its first use
 *
 * Steps count from 1 and instructions from 0, as everywhere. Time is ns from the start of the iteration.
 *
 * A tensor's memory is taken by an instruction and given back by another; in the order of the plan no two rectangles
 * overlap. A picture of that order has columns: one a step, or of a co-run plan, where parts of steps stand between
 * those of others, one an operation, in the order in which they start. A column is several instructions:
 * sn_timeline_place() is where each stands. In time, memory is taken when its lane gets there: when what the plan lists
 * before it on the same lane is over. O(instructions log instructions).
 */
#ifndef SN_SIM_PLAY_TIMELINE_H
#define SN_SIM_PLAY_TIMELINE_H

#include "base/err.h"
#include "sim/memory/caching.h"
#include "sim/plan/plan.h"
#include "sim/play/trace.h"

#include <stdbool.h>
#include <stdint.h>

struct sn_caching_map;

typedef enum sn_bar_kind {
  SN_BAR_COMPUTE,  /* a step */
  SN_BAR_COPY_OUT, /* a tensor to the external pool */
  SN_BAR_COPY_IN,  /* and back */
  SN_BAR_STALL,    /* the lane waits at a fence; only where that takes time */
  SN_BAR_ALLOC,    /* the lane is held up by the device's allocator; only where that takes time */
  SN_BAR_RELEASE,
  SN_BAR_KINDS
} sn_bar_kind;

typedef struct sn_bar {
  uint8_t kind; /* sn_bar_kind */
  uint8_t lane; /* sn_lane */
  bool rerun;   /* compute: a recomputation */
  uint8_t part; /* compute: sn_step_part; SN_STEP_WHOLE but in co-run plans */
  sn_team team; /* compute, of a co-run plan: what it runs on; else of 0 cores */
  uint32_t instr;
  uint32_t step;    /* the step of the plan in which it stands */
  uint32_t what;    /* compute: the step it computes (a re-run: that of the forward); stall: the bar it waits for,
                       SN_NONE where the fence is no bar's; else: the tensor, SN_NONE the workspace of `instr` */
  const char *name; /* "conv1", "conv1.y", a workspace's: the layer's; stall: "wait" */
  int64_t begin_ns, end_ns;
  uint64_t bytes; /* compute: workspace; else: of the tensor or workspace; stall: 0 */
} sn_bar;

/* Memory that one tensor or workspace holds: [offset, offset + bytes) of the pool, whole blocks. */
typedef struct sn_rect {
  uint32_t tensor;               /* SN_NONE: the workspace of `from_instr` */
  uint32_t from_instr, to_instr; /* taken and given back by; `to_instr` is the number of all where it is kept */
  uint32_t from_step, to_step;   /* the steps in which those stand; kept: the last step */
  uint64_t offset, bytes;
  int64_t from_ns, to_ns;
} sn_rect;

/* Where PyTorch's caching allocator has what a plan asks for, which has other addresses than the plan, in its steady
 * iteration (sim/play/caching_map.h). */
typedef struct sn_served {
  const sn_extent *rects;             /* of each rectangle */
  const sn_extent *stays, *segments;  /* what is there all the time; what all of it lies in */
  uint32_t n_stays, n_segments;       /* of 0 segments: the plan's addresses are what there is */
  uint64_t end_bytes, reserved_bytes; /* how high all of it is; the segments */
} sn_served;

/* Memory from `ns` on, until the next level. */
typedef struct sn_level {
  int64_t ns;
  uint64_t tensor_bytes, workspace_bytes;
  uint32_t live_tensors;
} sn_level;

/* From the end of one bar to the beginning of another: a tensor's producer to its copy out, or its copy in to the first
 * step that touches it. */
typedef struct sn_arrow {
  uint32_t from_bar, to_bar;
  uint32_t tensor;
} sn_arrow;

typedef struct sn_timeline_step {
  const char *layer, *op, *pass; /* "conv1", "CONV", "forward", "backward", "update" */
  const char *transfer;          /* "all-gather", of what crosses links to other GPUs; NULL: of all else */
  uint32_t fullest;              /* the step holds the most just before this instruction; see sn_rect_is_live() */
  uint64_t tensor_bytes, workspace_bytes;
  uint32_t live_tensors;
} sn_timeline_step;

typedef struct sn_timeline_column {
  uint32_t first_instr, n_instrs;
  uint32_t step; /* from 0: that the column is, or in which its operation stands */
} sn_timeline_column;

typedef struct sn_timeline_tensor {
  const char *name, *layer, *kind; /* "conv1.y", "conv1", "output" or "gradient" */
  uint64_t bytes;                  /* its own, not whole blocks */
} sn_timeline_tensor;

typedef struct sn_timeline {
  const char *net; /* the network's own name */
  uint32_t batch;
  int64_t batch_ns;   /* how long one takes that another one follows (sn_trace_batch_ns()) */
  uint32_t n_instrs;  /* of the plan */
  uint32_t n_steps;   /* updates included */
  uint32_t n_forward; /* the first steps, */
  uint32_t n_trained; /* and these with the backward ones behind them */
  uint32_t n_tensors, n_bars, n_rects, n_levels, n_arrows;
  uint32_t n_columns;       /* n_steps, or of a co-run plan its operations */
  uint32_t n_shown_columns; /* of these the first: behind them come only updates, which take and give back nothing */
  const sn_timeline_step *steps;     /* steps[0] is step 1 */
  const sn_timeline_column *columns; /* in the plan's order; together they have all its instructions */
  const sn_timeline_tensor *tensors; /* by number */
  const sn_bar *bars;                /* in the plan's order, so each lane's in the order of time */
  const sn_rect *rects;              /* in the order in which the plan takes them */
  const sn_level *levels;            /* ascending ns, no two at the same */
  const sn_arrow *arrows;            /* in the order of their ends in the plan */
  const double *places;              /* by instruction; see sn_timeline_place() */
  sn_served served;
  uint64_t pool_bytes, pool_limit, external_bytes;
  uint32_t cores, slots; /* of a co-run plan: the device's; else 0 */
  int64_t end_ns, busy_ns[SN_LANES], stall_ns[SN_LANES], allocation_ns;
  struct sn_arena *arena;
} sn_timeline;

/* `trace` is of a whole iteration. SN_BUG where it is not the plan's, or a plan that is not of co-running goes back a
 * step. */
sn_timeline *sn_timeline_new(const sn_plan *plan, const sn_trace *trace, sn_err *err);
void sn_timeline_free(sn_timeline *timeline);

/* Fills `served` from a map of the timeline's plan. SN_NO_MEMORY. */
sn_status sn_timeline_serve(sn_timeline *timeline, const struct sn_caching_map *map, sn_err *err);

static inline bool sn_timeline_is_corun(const sn_timeline *timeline) {
  return timeline->cores > 0;
}

/* The lanes that are to be seen, from top to bottom: compute, out and in; of a co-run plan those that have something to
 * do, compute lanes first. How many. */
uint32_t sn_timeline_lanes(const sn_timeline *timeline, sn_lane lanes[SN_LANES]);

/* A lane that waits has nothing to do, but for the only one that computes: that is held up. */
static inline bool sn_bar_is_idle(const sn_timeline *timeline, const sn_bar *bar) {
  return bar->kind == SN_BAR_STALL && (bar->lane != SN_LANE_COMPUTE || sn_timeline_is_corun(timeline));
}

/* Where an instruction begins on the axis of columns: column c has [c + 1, c + 2), of which computing gets most, taking
 * and giving back memory a little, and all else nothing. The number of all instructions is the end of the axis. */
static inline double sn_timeline_place(const sn_timeline *timeline, uint32_t instr) {
  return timeline->places[instr];
}

/* Where on it the first backward step begins. */
double sn_timeline_divide(const sn_timeline *timeline);

/* Whether a rectangle is held just before `instr`; of a workspace: while its instruction runs. */
static inline bool sn_rect_is_live(const sn_rect *rect, uint32_t instr) {
  if (rect->tensor == UINT32_MAX) return rect->from_instr == instr;
  return rect->from_instr < instr && instr <= rect->to_instr;
}

/* What the name of a bar lacks where it is a part of its step: " filter", " data", else "". */
const char *sn_bar_part(const sn_bar *bar);

/* "compute", "copy_out", "copy_in", "stall", "alloc", "release" */
const char *sn_bar_kind_name(sn_bar_kind kind);

#endif
