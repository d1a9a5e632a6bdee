/* `snsim --net NAME --batch N`: asks the simulator, stores the run, prints it.
 *
 *   load -> simulate -> store -> print -> plan -> what the store said -> does it fit
 *
 * Storing comes before printing, so that a run is kept even if whoever reads the table stops reading (`| head`); what
 * the store has to say waits until the table is out, so that its failure does not lose the table. Only a --db that
 * cannot be written is an error at once: it is what was asked for. */
#include "base/units.h"
#include "cli/frame/answer.h"
#include "cli/frame/json.h"
#include "cli/frame/origins.h"
#include "cli/frame/question.h"
#include "cli/frame/report.h"
#include "cli/frame/stored.h"
#include "cli/options/options.h"
#include "db/store.h"
#include "sim/stages/stages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Large runs are stored without steps and peaks unless those were asked for: 200,000 step rows are 10 MB. */
enum { STORED_STEPS = 200000, STORED_TENSORS = 100000, SLOW_STEPS = 50000 };

/* What became of a run in the store. */
typedef struct stored {
  const sn_run *run;
  int64_t id; /* 0: not stored */
  char path[SN_STORED_PATH];
  sn_err err;
} stored;

static uint64_t step_rows(const sn_question *q) {
  return UINT64_C(2) * q->net->n_layers * q->n_strategies;
}

static bool is_staged(const sn_question *q) {
  return sn_mesh_size(&q->options.iteration.mesh, SN_MESH_PP) > 1;
}

/* The store wants all that `show` may be asked for; a gradient may go with every value. Of a pipeline each strategy has
 * the steps of its own fullest stage, and there are none in the store. */
static void choose_details(const sn_args *args, sn_question *q) {
  bool all = !args->no_db && !is_staged(q) && step_rows(q) <= STORED_STEPS;
  q->options.want_steps = args->steps || all;
  q->options.want_peak = args->explain || all;
  q->options.want_tensors = !args->no_db && !is_staged(q) && UINT64_C(2) * q->net->n_values <= STORED_TENSORS;
}

static bool slow(const sn_question *q) {
  return step_rows(q) > SLOW_STEPS;
}

static sn_run *simulate(const sn_question *q, sn_err *err) {
  if (slow(q)) sn_out_progress("simulating ...");
  sn_run *run = sn_stages_simulate(q->args->net, q->net, &q->device, q->strategies, q->n_strategies, &q->options, err);
  if (slow(q) || q->shown) sn_out_progress(NULL);
  return run;
}

static void advise(const sn_question *q, const sn_run *run, sn_err *err) {
  const sn_result *results[SN_ARGS_STRATEGIES];
  if (slow(q)) sn_out_progress("nothing fits; looking for what would ...");
  for (uint32_t i = 0; i < run->n_results; i++) results[i] = &run->results[i];
  sn_question_advise(q, run->n_results == q->n_strategies ? results : NULL, err);
  if (slow(q) || q->shown) sn_out_progress(NULL);
}

/* In the words of the answer, which the screen has, where there is one of PyTorch. */
static void fail_by_answer(const sn_question *q, const sn_run *run, sn_err *err) {
  sn_answer *answer = sn_answer_read(run->answer, err);
  if (answer && answer->runtime == SN_RUNTIME_PYTORCH && answer->searched)
    sn_answer_fail(answer, q, err);
  else if (answer && answer->verdict == SN_VERDICT_NO)
    advise(q, run, err);
  sn_answer_free(answer);
}

/* Of strategies that were named one is enough; else the verdict says it. */
static void fail_no_fit(const sn_question *q, const sn_run *run, sn_err *err) {
  if (q->args->n_strategies > 0 && sn_run_best(run)) return;
  if (*run->answer)
    fail_by_answer(q, run, err);
  else if (!sn_run_best(run))
    advise(q, run, err);
}

static sn_status put_run(sn_store *store, void *what, sn_err *err) {
  stored *kept = what;
  return sn_store_put(store, kept->run, &kept->id, err);
}

static void keep(const sn_args *args, const sn_run *run, stored *kept) {
  sn_origins origins;
  if (args->no_db) return;
  if (run->n_stages > 0 && (args->steps || args->explain)) {
    sn_out_say("not stored: a pipeline's steps are those of several stages; leave --steps and --explain out");
    return;
  }
  const sn_run whole = sn_origins_with(args, run, &origins);
  kept->run = &whole;
  sn_stored_write(args, put_run, kept, kept->path, &kept->err);
  kept->run = NULL;
  sn_origins_free(&origins);
}

static sn_status print(const sn_question *q, const sn_run *run, sn_err *err) {
  sn_out out;
  const sn_args *args = q->args;
  const sn_report_wish wish = {.steps = args->steps,
                               .explain = args->explain,
                               .margin_bytes = q->margin_bytes,
                               .gpu_why = args->gpu_why,
                               .epoch = q->epoch};
  if (args->plan && strcmp(args->plan, "-") == 0) return SN_OK;
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  if (args->json)
    sn_json_write_run_with(run, args->steps, args->explain, &q->epoch, out.stream, err);
  else
    sn_report_run(run, wish, &out, err);
  return sn_out_close(&out, err);
}

static sn_status write_plan_to(const sn_question *q, const char *path, const sn_options *options, sn_err *err) {
  sn_out out;
  if (sn_out_open(&out, path, SN_COLOR_NEVER, err) != SN_OK) return err->code;
  if (sn_simulate_write_plan(q->net, &q->device, q->strategies[0], options, out.stream, err) != SN_OK)
    sn_err_prefix(err, "%s", path);
  return sn_out_close(&out, err);
}

/* plan.json of the third stage is plan.2.json. To be freed; NULL after an error. */
static char *path_of_stage(const char *path, uint32_t stage, sn_err *err) {
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  size_t room = strlen(path) + 16;
  bool ends = dot && dot > (slash ? slash + 1 : path);
  int front = (int)(ends ? dot - path : (long)strlen(path));
  char *made = malloc(room);
  if (made)
    snprintf(made, room, "%.*s.%" PRIu32 "%s", front, path, stage, path + front);
  else
    sn_fail_memory(err);
  return made;
}

/* Of a pipeline one a stage. */
static sn_status write_plan(const sn_question *q, sn_err *err) {
  uint32_t stages = sn_mesh_size(&q->options.iteration.mesh, SN_MESH_PP);
  if (!q->args->plan) return SN_OK;
  if (stages == 1) return write_plan_to(q, q->args->plan, &q->options, err);
  for (uint32_t s = 0; s < stages && err->code == SN_OK; s++) {
    const sn_options own = sn_stages_options(&q->options, s);
    char *path = path_of_stage(q->args->plan, s, err);
    if (path) write_plan_to(q, path, &own, err);
    free(path);
  }
  return err->code;
}

/* What was not stored can be had by asking for it. */
static void tell_left_out(const sn_question *q) {
  const char *what = "steps and peaks are not stored; --steps and --explain store them";
  if (is_staged(q)) {
    sn_out_say("of a pipeline the store has no steps, peaks or stages; --json has the stages");
    return;
  }
  if (q->options.want_steps && q->options.want_peak) return;
  if (q->options.want_steps) what = "peaks are not stored; --explain stores them";
  if (q->options.want_peak) what = "steps are not stored; --steps stores them";
  sn_out_say("it is large (%" PRIu64 " step rows): its %s", step_rows(q), what);
}

static void tell(const sn_question *q, const stored *kept, bool lost) {
  char db[SN_ARGS_DB_ROOM];
  if (kept->id == 0) return;
  const char *verb = lost || !q->options.want_steps ? "show" : "plot";
  sn_out_say("run %" PRId64 " %sstored in %s; snsim %s %" PRId64 "%s %s it", kept->id,
             lost ? "could not be printed but is " : "", kept->path, verb, kept->id, sn_args_db_option(q->args, db),
             strcmp(verb, "plot") == 0 ? "draws" : "prints");
  tell_left_out(q);
}

static sn_status answer(const sn_question *q, sn_err *err) {
  stored kept = {.err = SN_ERR_INIT};
  sn_run *run = simulate(q, err);
  if (!run) return err->code;
  if (q->args->name) run->name = q->args->name;
  if (sn_question_answer_run(q, run, err) != SN_OK) {
    sn_run_free(run);
    return err->code;
  }
  keep(q->args, run, &kept);
  bool printed = print(q, run, err) == SN_OK;
  if (printed) write_plan(q, err);
  tell(q, &kept, !printed);
  if (err->code == SN_OK) fail_no_fit(q, run, err);
  sn_run_free(run);
  if (kept.err.code == SN_OK || (err->code != SN_OK && err->code != SN_NO_FIT)) return err->code;
  if (err->code == SN_NO_FIT) sn_out_complain(sn_status_name(err->code), err->text); /* two things to say */
  *err = kept.err;
  return err->code;
}

sn_status sn_cli_simulate(const sn_args *args, sn_err *err) {
  sn_question question;
  if (sn_question_load(args, &question, err) != SN_OK) return err->code;
  choose_details(args, &question);
  if (!args->db || sn_stored_check(args, err) == SN_OK) answer(&question, err);
  sn_question_free(&question);
  return err->code;
}
