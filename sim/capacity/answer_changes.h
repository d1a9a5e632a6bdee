/* The changes of an answer for PyTorch (internal to the answers of sim/capacity): each a plan that was made and played. */
#ifndef SN_SIM_CAPACITY_ANSWER_CHANGES_H
#define SN_SIM_CAPACITY_ANSWER_CHANGES_H

#include "sim/capacity/answer.h"
#include "sim/capacity/changed_loop.h"
#include "sim/capacity/fit.h"

typedef struct sn__changes_wish {
  const sn_answer_wish *wish;
  sn_strategy stands; /* the strategy whose verdict it is */
  const sn_result *as_is;
  sn_verdict verdict;
  const sn_fit_answer *largest; /* of that strategy; NULL: not looked for */
  sn_staged *planner;           /* of the question as it stands */
  sn_arena *arena;              /* of the answer */
} sn__changes_wish;

/* Into `changes` of SN_ANSWER_CHANGES, best first; *count of them. *left_out: in lines of text what is not offered though
 * people ask for it, and why; "": nothing. */
sn_status sn__changes_find(const sn__changes_wish *wish, sn_answer_change *changes, uint32_t *count,
                           const char **left_out, sn_err *err);

/* Whether the loss is made in float32, of which the precision is not (models/net/net.h). */
bool sn__answer_has_fp32_loss(const sn_net *net, sn_iteration iteration);

#endif
