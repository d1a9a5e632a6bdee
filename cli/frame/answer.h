/* The answer on the screen: yes or no, the largest batch, what to change. Also how the frame asks for it. */
#ifndef SN_CLI_FRAME_ANSWER_H
#define SN_CLI_FRAME_ANSWER_H

#include "cli/frame/question.h"
#include "cli/options/out.h"
#include "sim/capacity/answer.h"

/* The answer to a question whose network is loaded. */
sn_answer *sn_question_answer(const sn_question *question, sn_err *err);

/* The strategies that the verdict on a question is of, into `strategies` of SN_ARGS_STRATEGIES; returns how many. */
uint32_t sn_question_judged(const sn_question *question, sn_strategy *strategies);

/* The same as run->answer, kept in the run's arena; none where no strategy that the verdict would be of was planned. */
sn_status sn_question_answer_run(const sn_question *question, sn_run *run, sn_err *err);

/* SN_NO_FIT where the verdict is no: what is needed, what there is and which options the first change is. */
sn_status sn_answer_fail(const sn_answer *answer, const sn_question *question, sn_err *err);

/* As a further member of an object that is being written: ",\"answer\":{..}". */
sn_status sn_answer_put(const sn_answer *answer, FILE *out, sn_err *err);

/* How fast it is with its first change on so many GPUs together; without an answer, NULL, the run's fastest row. `run`
 * may be NULL. */
sn_pace sn_answer_pace(const sn_answer *answer, const sn_run *run, uint32_t gpus);

/* Verdict and table of changes, in lines of at most 80 columns where names are short. `unit` is what a batch is made
 * of: "images"; `epoch` what there is to say of one (sn_epoch_line()), or "". */
sn_status sn_answer_print(const sn_answer *answer, const char *unit, const char *epoch, const sn_out *out, sn_err *err);

#endif
