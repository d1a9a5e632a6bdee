/* Conditions; see the header. Of each: how options ask for it. What options say in words is in sn_conditions_of(). */
#include "sim/policy/conditions.h"

#include "models/net/globs.h"
#include "sim/device/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Nothing outlives the options. */
static const char *own_text(const char *text) {
  return *text ? text : "";
}

sn_conditions sn_conditions_of(const sn_options *options, const sn_net *net) {
  sn_optimizer optimizer = options->iteration.optimizer;
  return (sn_conditions){.pool_limit_bytes = options->pool_bytes,
                         .workspace = sn_workspace_name(options->workspace),
                         .external = sn_external_name(options->external),
                         .allocator = sn_allocator_name(options->allocator),
                         .optimizer = sn_optimizer_name(net ? sn_optimizer_on(optimizer, net) : optimizer),
                         .accumulate = sn_iteration_batches(options->iteration),
                         .inference = options->iteration.inference,
                         .precision = sn_iteration_precision_name(options->iteration),
                         .freeze = sn_iteration_freeze(options->iteration),
                         .parallel = own_text(options->iteration.mesh.text),
                         .cluster = own_text(options->cluster.name),
                         .nodes = *options->cluster.name ? options->cluster.nodes : 0,
                         .host_us = sn_iteration_host_us(options->iteration),
                         .shared_link = options->shared_link};
}

/* ---- asking ---- */

static sn_status apply_pool_limit_bytes(const sn_conditions *c, sn_options *o, sn_err *err) {
  o->pool_bytes = c->pool_limit_bytes;
  return err->code;
}

static sn_status apply_workspace(const sn_conditions *c, sn_options *o, sn_err *err) {
  return sn_workspace_parse(c->workspace, &o->workspace, err);
}

static sn_status apply_external(const sn_conditions *c, sn_options *o, sn_err *err) {
  return sn_external_parse(c->external, &o->external, err);
}

static sn_status apply_allocator(const sn_conditions *c, sn_options *o, sn_err *err) {
  return sn_allocator_parse(c->allocator, &o->allocator, err);
}

static sn_status apply_optimizer(const sn_conditions *c, sn_options *o, sn_err *err) {
  return sn_optimizer_parse(c->optimizer, &o->iteration.optimizer, err);
}

static sn_status apply_accumulate(const sn_conditions *c, sn_options *o, sn_err *err) {
  if (c->accumulate < 1 || c->accumulate > SN_ITERATION_BATCHES)
    return sn_fail(err, SN_BAD_USAGE, "an update of %" PRIu32 " batches; 1 to %d are possible", c->accumulate,
                   SN_ITERATION_BATCHES);
  o->iteration.accumulate = c->accumulate;
  return SN_OK;
}

static sn_status apply_inference(const sn_conditions *c, sn_options *o, sn_err *err) {
  o->iteration.inference = c->inference;
  return err->code;
}

static sn_status apply_precision(const sn_conditions *c, sn_options *o, sn_err *err) {
  return sn_iteration_parse_precision(c->precision, &o->iteration, err);
}

static sn_status apply_freeze(const sn_conditions *c, sn_options *o, sn_err *err) {
  o->iteration.freeze = c->freeze;
  return *c->freeze ? sn_globs_check_text("--freeze", c->freeze, err) : err->code;
}

static sn_status apply_parallel(const sn_conditions *c, sn_options *o, sn_err *err) {
  return sn_mesh_parse(c->parallel, &o->iteration.mesh, err);
}

static sn_status apply_cluster(const sn_conditions *c, sn_options *o, sn_err *err) {
  if (strcmp(c->cluster, o->cluster.name) == 0) return err->code;
  if (*c->cluster) return sn_cluster_load(c->cluster, &o->cluster, err);
  o->cluster = (sn_cluster){0};
  return SN_OK;
}

static sn_status apply_nodes(const sn_conditions *c, sn_options *o, sn_err *err) {
  if (c->nodes == 0 || c->nodes == o->cluster.nodes) return err->code;
  if (*o->cluster.name) return sn_cluster_set_nodes(&o->cluster, c->nodes, err);
  return sn_fail(err, SN_BAD_USAGE, "--nodes %" PRIu32 ": of which cluster? Say --cluster, too", c->nodes);
}

static sn_status apply_host_us(const sn_conditions *c, sn_options *o, sn_err *err) {
  o->iteration.host_us = c->host_us;
  return *c->host_us ? sn_host_us_check(c->host_us, err) : err->code;
}

static sn_status apply_shared_link(const sn_conditions *c, sn_options *o, sn_err *err) {
  o->shared_link = c->shared_link;
  return err->code;
}

sn_status sn_conditions_apply(const sn_conditions *conditions, sn_options *options, sn_err *err) {
  for (uint32_t i = 0; i < SN_CONDITION_ROWS && err->code == SN_OK; i++)
    sn_condition_table[i].apply(conditions, options, err);
  return err->code;
}

/* ---- by name ---- */

#define KIND(member)                                                                                                   \
  _Generic((member), const char * : SN_CONDITION_WORD, bool : SN_CONDITION_FLAG, uint32_t : SN_CONDITION_COUNT,        \
           uint64_t : SN_CONDITION_BYTES)
#define ROW(type, name, usual, told, over, title, axis)                                                                \
  {#name,       KIND(((sn_conditions *)0)->name), offsetof(sn_conditions, name), usual, told, over, title, axis,       \
   apply_##name},

const sn_condition sn_condition_table[SN_CONDITION_ROWS] = {SN_CONDITIONS(ROW)};

const void *sn_condition_of(const sn_condition *condition, const sn_conditions *conditions) {
  return (const char *)conditions + condition->offset;
}

void *sn_condition_place(const sn_condition *condition, sn_conditions *conditions) {
  return (char *)conditions + condition->offset;
}

const char *sn_condition_text(const sn_condition *condition, const sn_conditions *conditions,
                              char room[SN_CONDITION_TEXT]) {
  const void *member = sn_condition_of(condition, conditions);
  switch (condition->kind) {
  case SN_CONDITION_WORD:
    return *(const char *const *)member;
  case SN_CONDITION_FLAG:
    return *(const bool *)member ? "true" : "false";
  case SN_CONDITION_COUNT:
    snprintf(room, SN_CONDITION_TEXT, "%" PRIu32, *(const uint32_t *)member);
    return room;
  case SN_CONDITION_BYTES:
    break;
  }
  snprintf(room, SN_CONDITION_TEXT, "%" PRIu64, *(const uint64_t *)member);
  return room;
}

bool sn_condition_word(const sn_condition *condition, bool value, const char *word) {
  size_t first = strcspn(condition->over, "|");
  return value ? strcmp(word, condition->over + first + 1) == 0
               : strlen(word) == first && strncmp(word, condition->over, first) == 0;
}

bool sn_condition_is_usual(const sn_condition *condition, const sn_conditions *conditions) {
  char room[SN_CONDITION_TEXT];
  return strcmp(sn_condition_text(condition, conditions, room), condition->usual) == 0;
}

bool sn_conditions_are_usual(const sn_conditions *conditions) {
  uint32_t usual = 0;
  for (uint32_t i = 0; i < SN_CONDITION_ROWS; i++) usual += sn_condition_is_usual(&sn_condition_table[i], conditions);
  return usual == SN_CONDITION_ROWS;
}

bool sn_conditions_same(const sn_conditions *a, const sn_conditions *b) {
  char x[SN_CONDITION_TEXT], y[SN_CONDITION_TEXT];
  for (uint32_t i = 0; i < SN_CONDITION_ROWS; i++)
    if (strcmp(sn_condition_text(&sn_condition_table[i], a, x), sn_condition_text(&sn_condition_table[i], b, y)) != 0)
      return false;
  return true;
}
