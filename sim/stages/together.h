/* What stages of a pipeline take together (internal to sim/stages/): the fullest one's memory, and the time that they take
 * with each other, each by what its own plan says.
 *
 *   sn__together all;
 *   sn__together_open(&all, net, device, options, true, &err);
 *   sn__together_add(&all, stage, route, &err); ..            each stage's
 *   sn__together_judge(&all, &err);                          what they send is what they receive
 *   sn__together_join(&all, results, &result, &err);          of one strategy, one a stage
 *   sn__together_close(&all);
 */
#ifndef SN_SIM_STAGES_TOGETHER_H
#define SN_SIM_STAGES_TOGETHER_H

#include "sim/ask/run.h"
#include "sim/cluster/cluster.h"
#include "sim/device/device.h"
#include "sim/parallel/pipeline.h"
#include "sim/policy/options.h"
#include "sim/stages/match.h"

typedef struct sn__together {
  const sn_net *net;
  const sn_device *device;
  const sn_options *options; /* of the whole question */
  uint32_t stages, chunks, micros;
  sn_pipeline *pipeline;
  sn_match *match; /* NULL: transfers are not matched */
  sn_cluster cluster;
  int64_t *forward_hop_ns, *backward_hop_ns; /* a part of the network: of what it sends of a micro-batch */
  int64_t *hops_ns;                          /* a stage: of all that it sends and receives */
} sn__together;

/* All are looked at until it is closed, which it is to be in any case. */
sn_status sn__together_open(sn__together *all, const sn_net *net, const sn_device *device, const sn_options *options,
                            bool matches, sn_err *err);
void sn__together_close(sn__together *all);

/* Whatever the strategy: one's route says what a stage sends and receives. */
sn_status sn__together_add(sn__together *all, uint32_t stage, const sn_route *route, sn_err *err);
sn_status sn__together_judge(sn__together *all, sn_err *err);

/* The result of its fullest GPU, with the times of all. */
sn_status sn__together_join(const sn__together *all, const sn_result *const *stages, sn_result *result, sn_err *err);

#endif
