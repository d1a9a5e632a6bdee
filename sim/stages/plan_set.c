/* Plans of several GPUs, right together; see the header. */
#include "sim/stages/plan_set.h"

#include "sim/graph/route.h"
#include "sim/policy/conditions.h"
#include "sim/stages/match.h"

#include <inttypes.h>
#include <string.h>

/* The report says so of a file, with the instruction or SN_NONE. */
static void note_rule(const sn_plan_set *set, uint32_t file, uint32_t instruction) {
  set->files[file]->report.rule = SN_RULE_MATCH;
  set->files[file]->report.instruction = instruction;
}

static sn_status fail_question(sn_plan_set *set, uint32_t file, const char *text, sn_err *err) {
  const sn_json *head = sn_json_lists_head(set->files[file]->text);
  note_rule(set, file, SN_NONE);
  set->faulty = file;
  return sn_json_fail(head, sn_json_root(head), err, "%s (rule: %s)", text, sn_rule_name(SN_RULE_MATCH));
}

/* `text` is "match: NAME, instruction 7: ..", or "match: .." of none alone. */
static sn_status fail_match(sn_plan_set *set, sn_match_fault fault, const char *text, sn_err *err) {
  bool alone = fault.member != SN_NONE;
  size_t begin = strlen("match: ") + (alone ? strlen(set->names[fault.member]) + strlen(", ") : 0);
  const char *what = begin < strlen(text) ? text + begin : text, *rule = sn_rule_name(SN_RULE_MATCH);
  note_rule(set, alone ? fault.member : 0, fault.at);
  if (!alone) return sn_fail(err, SN_BAD_INPUT, "%s (rule: %s)", what, rule);
  set->faulty = fault.member;
  return sn_json_lists_fail(set->files[fault.member]->text, "instructions", fault.at, err, "%s (rule: %s)", what, rule);
}

/* The same question of other stages and ranks. */
static bool is_same(const sn_plan_file *a, const sn_plan_file *b) {
  const sn_conditions one = sn_conditions_of(&a->head.options, a->net),
                      other = sn_conditions_of(&b->head.options, b->net);
  return strcmp(a->net->name, b->net->name) == 0 && a->net->batch == b->net->batch &&
         a->route->net->layers[0].out.w == b->route->net->layers[0].out.w &&
         a->route->net->layers[0].out.h == b->route->net->layers[0].out.h &&
         sn_strategy_same(a->head.strategy, b->head.strategy) && a->route->micros == b->route->micros &&
         sn_conditions_same(&one, &other);
}

static sn_status check_questions(sn_plan_set *set, sn_err *err) {
  for (uint32_t i = 0; i < set->count; i++) {
    char text[300];
    if (!set->files[i]->route->mesh) return fail_question(set, i, "this plan is of one GPU, and meets no others", err);
    if (is_same(set->files[0], set->files[i])) continue;
    snprintf(text, sizeof text, "this plan is of another network, strategy, mesh or condition than %.200s",
             set->names[0]);
    return fail_question(set, i, text, err);
  }
  return SN_OK;
}

static sn_status match(sn_plan_set *set, sn_err *err) {
  sn_err why = SN_ERR_INIT;
  sn_match_fault fault = {SN_NONE, SN_NONE};
  sn_match *all = sn_match_new(sn_mesh_size(set->files[0]->route->mesh, SN_MESH_PP), err);
  for (uint32_t i = 0; all && i < set->count && err->code == SN_OK; i++)
    sn_match_add_plan(all, set->names[i], set->files[i]->plan, err);
  if (err->code == SN_OK) sn_match_judge(all, &fault, &why);
  sn_match_free(all);
  if (why.code != SN_BUG) return err->code == SN_OK && why.code != SN_OK ? sn_fail_memory(err) : err->code;
  return fail_match(set, fault, why.text, err);
}

sn_status sn_plan_set_check(sn_plan_set *set, sn_err *err) {
  set->faulty = set->count;
  if (set->count > 1 && (check_questions(set, err) != SN_OK || match(set, err) != SN_OK)) return err->code;
  for (uint32_t i = 0; i < set->count; i++) {
    if (sn_plan_file_prove(set->files[i], err) == SN_OK) continue;
    set->faulty = i;
    break;
  }
  return err->code;
}
