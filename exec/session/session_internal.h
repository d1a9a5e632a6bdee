/* Session, internal: what its parts share. Opening, adding and the run are in session.c, plans and what is predicted of
 * them in session_plan.c, training and what is measured of it in session_measure.c. */
#ifndef SN_EXEC_SESSION_SESSION_INTERNAL_H
#define SN_EXEC_SESSION_SESSION_INTERNAL_H

#include "exec/machine/host.h"
#include "exec/session/session.h"
#include "sim/ask/corun_plans.h"
#include "sim/ask/result.h"
#include "sim/device/device.h"
#include "sim/schedule/schedule.h"

/* What all strategies of one dialect share, made when first asked for. */
typedef struct sn__graph {
  sn_route *route;
  sn_costs *costs; /* with what the machine's kernels need for this route */
  sn_schedule *schedules[SN_RECOMPUTES];
} sn__graph;

struct sn_session {
  const char *spec;
  const sn_net *net;
  sn_session_options options;
  sn_iteration iteration;
  sn_dialect_id dialect; /* of the graph that the machine is opened for */
  sn_machine machine;
  sn_calibration *calibration; /* NULL: none */
  const sn_device *profile;    /* NULL: times are not known */
  sn_device device;            /* the profile, or any: with one algorithm a convolution all give the same plans */
  sn_device by_cores;          /* the device as co-run plans see it; steps that run alone have the times of `device` */
  bool teams_measured;         /* its cores and times on them are the calibration's */
  sn__graph graphs[SN_DIALECTS];
  sn_corun_plans corun;
  bool adopted;     /* the plan at hand is from elsewhere */
  sn_options asked; /* what co-run plans are asked for with */
  uint64_t room;    /* the largest pool that the device can give */
  float *first;     /* gradients and parameters of the first measured result that is whole */
  sn_batches *batches;
  sn_host_load load;   /* when it was opened */
  bool has_batches;    /* their buffers are there */
  sn_weights *weights; /* NULL: drawn from the seed */
  bool saved;          /* weights and gradients, where they are wanted */
  sn_arena *arena;
  sn_run *run; /* what follows is its as well */
  sn_result *results;
  sn_failure *failures;
  uint32_t n_results, n_failures;
};

/* Costs of a route with what the machine's kernels need; NULL after an error. */
sn_costs *sn__session_costs(const sn_session *session, const sn_route *route, sn_err *err);

/* A plan of a strategy; NULL after an error. The facts of a co-run plan are the session's until the next one. */
sn_plan *sn__session_plan(sn_session *session, sn_strategy strategy, sn_err *err);

/* A plan from elsewhere as this machine can execute it; NULL after an error. */
sn_plan *sn__session_adopt(sn_session *session, sn_strategy strategy, const sn_plan *plan, sn_err *err);

/* What a result of a plan is made from, and what its peak is made of, for pictures and pages. */
sn_result_source sn__session_source(const sn_session *session, const sn_plan *plan, const sn_trace *trace);
sn_status sn__session_explain(const sn_session *session, const sn_plan *plan, sn_strategy strategy, sn_result *result,
                              sn_err *err);

/* What is to be told of a co-run plan, the last that was made; of another nothing. */
sn_status sn__session_tell(const sn_session *session, const sn_plan *plan, sn_strategy strategy, sn_result *result,
                           sn_err *err);

/* Adds a result: what the simulated device says of the plan. */
sn_status sn__session_predict(sn_session *session, sn_strategy strategy, const sn_plan *plan, sn_trace *trace,
                              sn_err *err);

/* Trains by the plan and adds a result, where a whole iteration was done. */
sn_status sn__session_measure(sn_session *session, sn_strategy strategy, const sn_plan *plan, sn_trace *trace,
                              sn_err *err);

/* Trains by a co-run plan with all its operations on one lane, so one after another with the same threads, and compares
 * the result with the last one. SN_BUG where they differ in a bit. */
sn_status sn__session_prove(sn_session *session, const sn_plan *plan, sn_trace *trace, sn_err *err);

/* Instructions of a plan that are recorded at most. */
uint64_t sn__session_most_recorded(const sn_net *net);

#endif
