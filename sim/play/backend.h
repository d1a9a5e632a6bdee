/* Back end: what can obey a plan. A table of functions owned here and implemented elsewhere: the simulated device
 * (sim/play/device_model.c), and real ones in exec/.
 *
 * sn_play() calls reserve() once; for every iteration begin(), one function per instruction in listed order, and
 * sync(); and close() in every case. `index` is the instruction's number; a back end notes when it ran in the trace, at
 * the latest in sync(). No function decides anything: addresses, lanes, algorithms and order are the plan's.
 */
#ifndef SN_SIM_PLAY_BACKEND_H
#define SN_SIM_PLAY_BACKEND_H

#include "base/err.h"
#include "sim/plan/plan.h"
#include "sim/play/trace.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_backend {
  void *self;
  const struct sn_backend_ops *ops;
} sn_backend;

typedef struct sn_backend_ops {
  const char *name;
  /* Makes the pool and the external pool of the plan ready. */
  sn_status (*reserve)(void *self, const sn_plan *plan, sn_trace *trace, sn_err *err);
  /* An iteration starts (from 0), its trace is empty; NULL: nothing to do. */
  sn_status (*begin)(void *self, uint64_t iteration, sn_err *err);
  sn_status (*alloc)(void *self, uint32_t index, sn_err *err);
  sn_status (*release)(void *self, uint32_t index, sn_err *err);
  sn_status (*compute)(void *self, uint32_t index, sn_err *err);
  sn_status (*copy)(void *self, uint32_t index, sn_err *err);
  sn_status (*signal)(void *self, uint32_t index, sn_err *err);
  sn_status (*wait)(void *self, uint32_t index, sn_err *err);
  /* Returns when every lane is done. */
  sn_status (*sync)(void *self, sn_err *err);
  void (*close)(void *self);
} sn_backend_ops;

/* What the caller of several iterations wants. */
typedef struct sn_play_options {
  uint64_t iterations;
  bool (*stop)(void *user); /* true: stop before the next step; NULL: never */
  /* After each whole iteration, with its trace; anything but SN_OK ends the play. NULL: nothing to do. */
  sn_status (*after)(void *user, uint64_t iteration, const sn_trace *trace, sn_err *err);
  void *user;
} sn_play_options;

/* Plays a checked plan on a back end and closes it. The trace is the caller's; see sn_trace_init(). A play that was
 * stopped ends with SN_OK after the lanes are idle; *done says how many iterations are whole. */
sn_status sn_play_many(const sn_plan *plan, sn_backend backend, const sn_play_options *options, sn_trace *trace,
                       uint64_t *done, sn_err *err);

/* One iteration. */
sn_status sn_play(const sn_plan *plan, sn_backend backend, sn_trace *trace, sn_err *err);

#endif
