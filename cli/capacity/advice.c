/* What to try where nothing fits: sim/capacity/remedy.h for what the command line asked. */
#include "cli/frame/question.h"
#include "sim/capacity/remedy.h"

static sn_asked asked_of(const sn_question *q) {
  return (sn_asked){.spec = q->args->net,
                    .image = q->args->image,
                    .net = q->net,
                    .device = &q->device,
                    .options = &q->options,
                    .strategies = q->strategies,
                    .n_strategies = q->n_strategies};
}

sn_status sn_question_largest_batch(const sn_question *question, sn_strategy strategy, uint32_t *batch, sn_err *err) {
  const sn_asked asked = asked_of(question);
  return sn_remedy_batch(&asked, strategy, batch, err);
}

sn_status sn_question_advise(const sn_question *question, const sn_result *const *results, sn_err *err) {
  sn_asked asked = asked_of(question);
  sn_remedy remedy;
  char text[SN_REMEDY_TEXT];
  asked.results = results;
  if (sn_remedy_find(&asked, &remedy, err) != SN_OK) return err->code;
  if (question->args->command->bit == SN_CMD_ADVISE) remedy.points_to_advise = false;
  return sn_fail(err, SN_NO_FIT, "%s", sn_remedy_print(&remedy, text));
}
