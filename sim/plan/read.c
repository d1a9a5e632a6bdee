/* Reading plans; see the header. */
#include "sim/plan/read.h"

#include "base/checked.h"
#include "models/op/op.h"
#include "sim/device/conv.h"
#include "sim/graph/route.h"
#include "sim/plan/read_internal.h"
#include "sim/plan/transfers.h"
#include "sim/policy/conditions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IMAGE = 65536, MOST_TEAMS = 4096 };

/* ---- opening ---- */

/* In the order in which they are read. */
static const char *const list_keys[] = {"tensors", "steps", "instructions"};

sn_json_lists *sn_plan_load(const char *path, sn_err *err) {
  return sn_json_lists_load(path, list_keys, sizeof list_keys / sizeof *list_keys, err);
}

sn_json_lists *sn_plan_parse(const char *name, const char *text, size_t bytes, sn_err *err) {
  return sn_json_lists_parse(name, text, bytes, list_keys, sizeof list_keys / sizeof *list_keys, err);
}

/* ---- what it is a plan of ---- */

#define KEY(type, name, usual, told, over, title, axis) #name,
static const char *const head_keys[] = {SN_CONDITIONS(KEY) "snsim_plan",
                                        "net",
                                        "batch",
                                        "image_height",
                                        "image_width",
                                        "strategy",
                                        "gpu",
                                        "memory_bytes",
                                        "host_memory_bytes",
                                        "costs",
                                        "lanes",
                                        "fits",
                                        "placement",
                                        "pool_offered_bytes",
                                        "pool_bytes",
                                        "tensors",
                                        "largest_load_bytes",
                                        "steps",
                                        "instructions",
                                        "block_bytes",
                                        "external_bytes",
                                        "fences",
                                        "layouts",
                                        "cores",
                                        "slots",
                                        "mesh",
                                        "stage",
                                        "groups"};

static void read_count(const sn_json *doc, const char *key, uint64_t low, uint64_t high, uint64_t *out, sn_err *err) {
  if (sn_json_has(sn_json_root(doc), key)) sn_json_count(doc, sn_json_root(doc), key, low, high, out, err);
}

/* A condition that the file tells; one that it does not is as usual. */
static void read_condition(const sn_json *doc, const sn_condition *c, sn_conditions *conditions, sn_err *err) {
  void *value = sn_condition_place(c, conditions);
  uint64_t number = 0;
  if (!sn_json_has(sn_json_root(doc), c->name)) return;
  switch (c->kind) {
  case SN_CONDITION_WORD:
    *(const char **)value = sn_json_text(doc, sn_json_root(doc), c->name, err);
    return;
  case SN_CONDITION_FLAG:
    sn_json_bool(doc, sn_json_root(doc), c->name, value, err);
    return;
  case SN_CONDITION_COUNT:
    sn_json_count(doc, sn_json_root(doc), c->name, 1, SN_ITERATION_BATCHES, &number, err);
    *(uint32_t *)value = (uint32_t)number;
    return;
  case SN_CONDITION_BYTES:
    sn_json_count(doc, sn_json_root(doc), c->name, 0, MOST_BYTES, value, err);
    return;
  }
}

static void read_conditions(const sn_json *doc, sn_plan_head *head, sn_err *err) {
  sn_options usual = SN_OPTIONS_INIT;
  sn_conditions conditions = sn_conditions_of(&usual, NULL);
  for (uint32_t i = 0; i < SN_CONDITION_ROWS && err->code == SN_OK; i++) {
    const sn_condition *c = &sn_condition_table[i];
    sn_err why = SN_ERR_INIT;
    read_condition(doc, c, &conditions, err);
    if (err->code == SN_OK && c->apply(&conditions, &head->options, &why) != SN_OK)
      sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(sn_json_root(doc), c->name), err, "%s", why.text);
  }
}

static void read_strategy(const sn_json *doc, sn_plan_head *head, sn_err *err) {
  const cJSON *root = sn_json_root(doc);
  sn_err why = SN_ERR_INIT;
  const char *text = sn_json_has(root, "strategy") ? sn_json_text(doc, root, "strategy", err) : NULL;
  if (text && sn_strategy_parse(text, &head->strategy, &why) != SN_OK)
    sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(root, "strategy"), err, "%s", why.text);
  if (err->code == SN_OK && sn_strategy_is_corun(head->strategy) != sn_json_has(root, "cores"))
    sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(root, sn_json_has(root, "cores") ? "cores" : "strategy"), err,
                 "plans of operations side by side, and no others, have a strategy with +corun and \"cores\"");
}

static void read_numbers(const sn_json *doc, sn_plan_head *head, sn_err *err) {
  uint64_t batch = 0, height = 0, width = 0;
  sn_json_count(doc, sn_json_root(doc), "batch", 1, UINT32_MAX, &batch, err);
  read_count(doc, "image_height", 1, MOST_IMAGE, &height, err);
  read_count(doc, "image_width", 1, MOST_IMAGE, &width, err);
  read_count(doc, "memory_bytes", 0, MOST_BYTES, &head->memory_bytes, err);
  read_count(doc, "host_memory_bytes", 0, MOST_BYTES, &head->host_memory_bytes, err);
  head->batch = (uint32_t)batch;
  head->image_height = (uint32_t)height;
  head->image_width = (uint32_t)width;
}

sn_status sn_plan_read_head(const sn_json_lists *file, sn_plan_head *head, sn_err *err) {
  const sn_json *doc = sn_json_lists_head(file);
  const cJSON *root = sn_json_root(doc);
  uint64_t format = 0;
  *head = (sn_plan_head){.strategy = {.liveness = SN_LIVENESS_FULL}, .options = SN_OPTIONS_INIT};
  if (!cJSON_IsObject(root)) return sn_json_fail(doc, root, err, "a plan is an object, {\"snsim_plan\": 1, ..}");
  if (sn_json_count(doc, root, "snsim_plan", 1, UINT32_MAX, &format, err) != SN_OK) return err->code;
  if (format > SN__PLAN_FORMAT_GPUS)
    return sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(root, "snsim_plan"), err,
                        "a plan of version %" PRIu64 "; this snsim reads versions %d and %d", format, SN__PLAN_FORMAT,
                        SN__PLAN_FORMAT_GPUS);
  if (sn_json_only(doc, root, head_keys, sizeof head_keys / sizeof *head_keys, err) != SN_OK) return err->code;
  head->net = sn_json_text(doc, root, "net", err);
  if (sn_json_has(root, "gpu")) head->gpu = sn_json_text(doc, root, "gpu", err);
  read_numbers(doc, head, err);
  read_strategy(doc, head, err);
  read_conditions(doc, head, err);
  return err->code == SN_OK ? sn__transfers_read_head(doc, format, head, err) : err->code;
}

/* ---- instructions ---- */

/* Those of version 1, and behind them what steps do that are transfers. */
enum { COLLECTIVE = SN_INSTR_KINDS, SEND, RECEIVE, KINDS };

/* Keys of one kind of instruction, and the lanes that it may be on. */
typedef struct form {
  const char *keys[12];           /* of co-run plans all, of others those ahead of "part" */
  bool lanes[SN_PLAIN_LANES + 1]; /* the last: of communicators, and those to send and receive */
} form;

static const form forms[KINDS] = {
    [SN_ALLOC] = {{"do", "lane", "at_step", "tensor", "offset", "bytes"}, {true, false, true, true}},
    [SN_RELEASE] = {{"do", "lane", "at_step", "tensor", "offset", "bytes"}, {true, false, false, true}},
    [SN_COMPUTE] = {{"do", "lane", "at_step", "step", "recompute", "forward", "backward_data", "backward_filter",
                     "workspace", "part", "cores"},
                    {true, false, false}},
    [SN_COPY_OUT] = {{"do", "lane", "at_step", "tensor", "external_offset", "bytes"}, {false, true, false}},
    [SN_COPY_IN] = {{"do", "lane", "at_step", "tensor", "external_offset", "bytes"}, {false, false, true}},
    [SN_SIGNAL] = {{"do", "lane", "at_step", "fence"}, {true, true, true, true}},
    [SN_WAIT] = {{"do", "lane", "at_step", "fence"}, {true, true, true, true}},
    [COLLECTIVE] = {{"do", "lane", "at_step", "step", "recompute", "kind", "group", "bytes"},
                    {[SN_PLAIN_LANES] = true}},
    [SEND] = {{"do", "lane", "at_step", "step", "recompute", "peer", "tensor", "micro", "bytes"},
              {[SN_PLAIN_LANES] = true}},
    [RECEIVE] = {{"do", "lane", "at_step", "step", "recompute", "peer", "tensor", "micro", "bytes"},
                 {[SN_PLAIN_LANES] = true}},
};

static sn__do do_of(uint32_t kind) {
  return kind < COLLECTIVE ? SN__DO_COMPUTE : (sn__do)(SN__DO_COLLECTIVE + kind - COLLECTIVE);
}

/* Which of `count` names the text of a key is; `count` after an error. */
static uint32_t read_name(const sn__reader *r, const cJSON *item, const char *key, uint32_t count,
                          const char *(*name)(uint32_t index)) {
  const char *text = sn_json_text(r->doc, item, key, r->err);
  for (uint32_t i = 0; text && i < count; i++)
    if (strcmp(name(i), text) == 0) return i;
  if (!text) return count;
  char all[200] = "";
  for (uint32_t i = 0; i < count; i++) {
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", name(i));
  }
  sn_json_fail(r->doc, cJSON_GetObjectItemCaseSensitive(item, key), r->err, "unknown \"%s\" \"%.40s\"; there are %s",
               key, text, all);
  return count;
}

static const char *kind_name(uint32_t kind) {
  return kind < COLLECTIVE ? sn_instr_kind_name((sn_instr_kind)kind) : sn__do_name(do_of(kind));
}

static const char *lane_name(uint32_t lane) {
  return sn_lane_name((sn_lane)lane);
}

static const char *lane_of_gpus(uint32_t index) {
  return lane_name(index < SN_PLAIN_LANES ? index : SN_CORUN_LANES + index - SN_PLAIN_LANES);
}

/* Lanes of operations side by side are known, but not of other plans; nor are those of transfers. */
static uint32_t read_lane(const sn__reader *r, const cJSON *item) {
  if (r->route->mesh) {
    uint32_t index = read_name(r, item, "lane", SN_PLAIN_LANES + SN_LANES - SN_CORUN_LANES, lane_of_gpus);
    return index < SN_PLAIN_LANES ? index : SN_CORUN_LANES + index - SN_PLAIN_LANES;
  }
  const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, "lane");
  for (uint32_t lane = SN_PLAIN_LANES; !r->corun && cJSON_IsString(value) && lane < SN_CORUN_LANES; lane++) {
    if (strcmp(lane_name(lane), value->valuestring) != 0) continue;
    sn_json_fail(r->doc, value, r->err,
                 "lane \"%s\" is of plans of operations side by side, which have a strategy with +corun and \"cores\"",
                 lane_name(lane));
    return SN_LANES;
  }
  return read_name(r, item, "lane", r->corun ? SN_CORUN_LANES : SN_PLAIN_LANES, lane_name);
}

static const char *algo_name(uint32_t algo) {
  return sn_conv_algo_name((sn_conv_algo)algo);
}

static sn_status read_id(const sn__reader *r, const cJSON *item, const char *key, uint32_t low, uint64_t end,
                         sn_instr *instr) {
  uint64_t id = 0;
  const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, key);
  if (sn_json_count(r->doc, item, key, low, UINT32_MAX, &id, r->err) != SN_OK) return r->err->code;
  if (id - low >= end)
    return sn_json_fail(r->doc, value, r->err, "there is no %s %" PRIu64 "; the last one is %" PRIu64, key, id,
                        end + low - 1);
  instr->id = (uint32_t)(id - low);
  return SN_OK;
}

static sn_status read_bytes(const sn__reader *r, const cJSON *item, const char *offset, sn_instr *instr) {
  sn_json_count(r->doc, item, offset, 0, MOST_BYTES, &instr->offset, r->err);
  return sn_json_count(r->doc, item, "bytes", 0, MOST_BYTES, &instr->bytes, r->err);
}

static const char *part_name(uint32_t part) {
  return sn_step_part_name((sn_step_part)part);
}

/* Its number among the plan's teams, where it is new as the last. */
static sn_status add_team(const sn__reader *r, const cJSON *item, sn_team team, uint16_t *index) {
  sn_plan *plan = r->plan;
  uint32_t i = plan->n_teams;
  while (i > 0 && (plan->teams[i - 1].first != team.first || plan->teams[i - 1].count != team.count ||
                   plan->teams[i - 1].slot != team.slot))
    i--;
  if (i == 0) {
    if (plan->n_teams == MOST_TEAMS)
      return sn_json_fail(r->doc, item, r->err, "more than %d different teams of cores", MOST_TEAMS);
    plan->teams[plan->n_teams] = team;
    i = ++plan->n_teams;
  }
  *index = (uint16_t)(i - 1);
  return SN_OK;
}

/* {"first", "count", "slot"}, or {"count", "slot": "any", "of"}. */
static sn_status read_team(const sn__reader *r, const cJSON *item, sn_instr *instr) {
  static const char *const held[] = {"count", "slot", "first"}, *const floating[] = {"count", "slot", "of"};
  uint64_t first = 0, count = 0, slot = SN_SLOT_ANY;
  const cJSON *cores = cJSON_GetObjectItemCaseSensitive(item, "cores");
  if (!cJSON_IsObject(cores)) return sn_json_fail(r->doc, item, r->err, "\"cores\" is to be an object");
  const cJSON *of = cJSON_GetObjectItemCaseSensitive(cores, "slot");
  bool any = cJSON_IsString(of) && strcmp(of->valuestring, "any") == 0;
  sn_json_only(r->doc, cores, any ? floating : held, 3, r->err);
  sn_json_count(r->doc, cores, "count", 1, UINT16_MAX, &count, r->err);
  if (!any) sn_json_count(r->doc, cores, "first", 0, UINT16_MAX, &first, r->err);
  if (any) first = count;
  if (any && sn_json_has(cores, "of")) sn_json_count(r->doc, cores, "of", 1, UINT16_MAX, &first, r->err);
  if (!any) sn_json_count(r->doc, cores, "slot", 0, SN_SLOT_SECOND, &slot, r->err);
  if (r->err->code != SN_OK) return r->err->code;
  const sn_team team = {(uint16_t)first, (uint16_t)count, (uint8_t)slot};
  return add_team(r, cores, team, &instr->team);
}

static sn_status read_part(const sn__reader *r, const cJSON *item, sn_instr *instr) {
  if (!r->corun) return SN_OK;
  if (sn_json_has(item, "part")) instr->part = (uint8_t)read_name(r, item, "part", SN_STEP_PARTS, part_name);
  return r->err->code == SN_OK ? read_team(r, item, instr) : r->err->code;
}

/* Whether an operation runs that kernel of a convolution, as lowering has it. */
static bool runs_kernel(const sn__reader *r, const sn_instr *instr, sn_conv_kernel kernel) {
  const sn_step *step = &r->route->steps[instr->id];
  bool by_kernel = r->route->dialect->by_kernel, filter = kernel == SN_CONV_BACKWARD_FILTER;
  if (!sn_op_of(&r->route->layers[step->layer])->convolves || sn_step_follows(step)) return false;
  if (kernel == SN_CONV_FORWARD || step->pass != SN_BACKWARD)
    return kernel == SN_CONV_FORWARD && step->pass == SN_FORWARD;
  if (by_kernel) return step->kernel == (filter ? SN_FILTER_GRADIENT : SN_DATA_GRADIENT);
  return instr->part != (filter ? SN_STEP_DATA : SN_STEP_FILTER);
}

static sn_status read_algo(const sn__reader *r, const cJSON *item, sn_conv_kernel kernel, sn_instr *instr) {
  static const char *const keys[SN_CONV_KERNELS] = {
      [SN_CONV_FORWARD] = "forward",
      [SN_CONV_BACKWARD_DATA] = "backward_data",
      [SN_CONV_BACKWARD_FILTER] = "backward_filter",
  };
  const char *key = keys[kernel];
  const sn_step *step = &r->route->steps[instr->id];
  if (!sn_json_has(item, key) || r->err->code != SN_OK) return r->err->code;
  if (!runs_kernel(r, instr, kernel))
    return sn_json_fail(r->doc, cJSON_GetObjectItemCaseSensitive(item, key), r->err,
                        "\"%s\" is the algorithm of a kernel that step %" PRIu32 ", %.80s %s (%s), has not", key,
                        instr->id + 1, r->route->layers[step->layer].name, sn_pass_name(step->pass),
                        sn_step_op_name(r->route, step));
  instr->algo[kernel == SN_CONV_BACKWARD_FILTER] = (uint8_t)read_name(r, item, key, SN_CONV_ALGOS, algo_name);
  return r->err->code;
}

static sn_status read_compute(const sn__reader *r, const cJSON *item, sn__do what, sn_instr *instr) {
  static const char *const keys[] = {"offset", "bytes"};
  const cJSON *workspace = cJSON_GetObjectItemCaseSensitive(item, "workspace");
  if (read_id(r, item, "step", 1, r->route->n_steps, instr) != SN_OK || read_part(r, item, instr) != SN_OK)
    return r->err->code;
  if (sn_json_has(item, "recompute")) sn_json_bool(r->doc, item, "recompute", &instr->rerun, r->err);
  if (sn__transfers_read(r, item, what, instr->id) != SN_OK || what != SN__DO_COMPUTE) return r->err->code;
  for (sn_conv_kernel k = 0; k < SN_CONV_KERNELS; k++) read_algo(r, item, k, instr);
  if (!workspace || r->err->code != SN_OK) return r->err->code;
  if (!cJSON_IsObject(workspace)) return sn_json_fail(r->doc, workspace, r->err, "\"workspace\" is to be an object");
  if (sn_json_only(r->doc, workspace, keys, 2, r->err) != SN_OK) return r->err->code;
  return read_bytes(r, workspace, "offset", instr);
}

static sn_status read_what(const sn__reader *r, const cJSON *item, sn__do what, sn_instr *instr) {
  switch ((sn_instr_kind)instr->kind) {
  case SN_ALLOC:
  case SN_RELEASE:
  case SN_COPY_OUT:
  case SN_COPY_IN:
    if (read_id(r, item, "tensor", 0, r->route->n_tensors, instr) != SN_OK) return r->err->code;
    return read_bytes(r, item, instr->kind == SN_ALLOC || instr->kind == SN_RELEASE ? "offset" : "external_offset",
                      instr);
  case SN_COMPUTE:
    return read_compute(r, item, what, instr);
  case SN_SIGNAL:
  case SN_WAIT:
    return read_id(r, item, "fence", 0, SN_NONE, instr);
  case SN_INSTR_KINDS:
    break;
  }
  return SN_OK;
}

static uint32_t form_lane(uint32_t lane) {
  return sn_lane_computes((sn_lane)lane) ? SN_LANE_COMPUTE : lane < SN_PLAIN_LANES ? lane : SN_PLAIN_LANES;
}

static sn_status read_instr(const sn__reader *r, const cJSON *item, sn_instr *instr) {
  uint64_t step = 0;
  *instr = (sn_instr){.algo = {SN_NO_ALGO, SN_NO_ALGO}, .part = SN_STEP_WHOLE, .step = SN_NONE};
  if (!cJSON_IsObject(item)) return sn_json_fail(r->doc, item, r->err, "an instruction is to be an object");
  uint32_t kind = read_name(r, item, "do", r->route->mesh ? KINDS : SN_INSTR_KINDS, kind_name);
  if (r->err->code != SN_OK) return r->err->code;
  size_t n_keys = 0;
  while (n_keys < 12 && forms[kind].keys[n_keys] && (r->corun || strcmp(forms[kind].keys[n_keys], "part") != 0))
    n_keys++;
  if (sn_json_only(r->doc, item, forms[kind].keys, n_keys, r->err) != SN_OK) return r->err->code;
  uint32_t lane = read_lane(r, item);
  if (r->err->code == SN_OK && !forms[kind].lanes[form_lane(lane)])
    return sn_json_fail(r->doc, item, r->err, "%s does not go on lane %s", kind_name(kind), lane_name(lane));
  if (sn_json_has(item, "at_step")) {
    sn_json_count(r->doc, item, "at_step", 1, r->route->n_steps, &step, r->err);
    instr->step = (uint32_t)(step - 1);
  }
  instr->kind = (uint8_t)(kind < COLLECTIVE ? kind : SN_COMPUTE);
  instr->lane = (uint8_t)lane;
  return r->err->code == SN_OK ? read_what(r, item, do_of(kind), instr) : r->err->code;
}

/* Where it is not said: the step that runs next, or the last. */
static void fill_steps(sn_plan *plan) {
  uint32_t next = plan->route->n_steps - 1;
  for (uint32_t i = plan->n_instrs; i-- > 0;) {
    sn_instr *instr = &plan->instrs[i];
    if (instr->kind == SN_COMPUTE && !instr->rerun) next = instr->id;
    if (instr->step == SN_NONE) instr->step = next;
  }
}

/* The device's, which operations of a co-run plan have parts of. */
static sn_status read_cores(sn__reader *r) {
  const cJSON *root = sn_json_root(r->doc);
  uint64_t cores = 0, slots = 1;
  r->corun = sn_json_has(root, "cores");
  if (!r->corun) return SN_OK;
  sn_json_count(r->doc, root, "cores", 1, SN_MAX_CORES, &cores, r->err);
  read_count(r->doc, "slots", 1, SN_SLOT_ANY, &slots, r->err);
  r->plan->cores = (uint16_t)cores;
  r->plan->slots = (uint16_t)slots;
  r->plan->teams = calloc(MOST_TEAMS, sizeof *r->plan->teams);
  return r->plan->teams ? r->err->code : sn_fail_memory(r->err);
}

/* The next instruction, for which there is room. */
static sn_status add_instr(sn__reader *r, const cJSON *item, uint32_t index) {
  sn_plan *plan = r->plan;
  if (index == r->room) {
    const size_t room = 2 * (size_t)r->room;
    sn_instr *instrs = realloc(plan->instrs, room * sizeof *instrs);
    if (!instrs) return sn_fail_memory(r->err);
    plan->instrs = instrs;
    r->room = (uint32_t)room;
  }
  plan->n_instrs = index + 1;
  return read_instr(r, item, &plan->instrs[index]);
}

/* Each fence is signalled by an instruction, so there are not more of them. */
static sn_status count_fences(sn__reader *r) {
  sn_plan *plan = r->plan;
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    if (instr->kind != SN_SIGNAL && instr->kind != SN_WAIT) continue;
    if (instr->id >= plan->n_instrs)
      return sn_json_lists_fail(r->file, "instructions", i, r->err,
                                "there is no fence %" PRIu32
                                ": fences are numbered from 0, each is signalled once, and "
                                "there are %" PRIu32 " instructions",
                                instr->id, plan->n_instrs);
    if (instr->id >= plan->n_fences) plan->n_fences = instr->id + 1;
  }
  return SN_OK;
}

static sn_status read_instrs(sn__reader *r) {
  uint32_t count;
  r->room = 256;
  r->plan->instrs = calloc(r->room, sizeof *r->plan->instrs);
  if (!r->plan->instrs) return sn_fail_memory(r->err);
  if (!sn__read_elements(r, "instructions", add_instr, &count) || count_fences(r) != SN_OK) return r->err->code;
  fill_steps(r->plan);
  return SN_OK;
}

/* ---- sizes ---- */

static void count_copies(sn_plan *plan) {
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    uint64_t end = instr->offset + instr->bytes;
    bool out = instr->kind == SN_COPY_OUT, in = instr->kind == SN_COPY_IN;
    if (out || in)
      plan->external_bytes = sn_max(plan->external_bytes, end);
    else if (instr->kind == SN_ALLOC || instr->kind == SN_RELEASE || instr->kind == SN_COMPUTE)
      plan->pool_bytes = sn_max(plan->pool_bytes, end);
    plan->counts.offload_bytes += out ? instr->bytes : 0;
    plan->counts.prefetch_bytes += in ? instr->bytes : 0;
    plan->counts.recomputed_layers += instr->kind == SN_COMPUTE && instr->rerun;
  }
}

/* The largest sums of reserved bytes, of each stream's pool. A plan that does not hold may release what it has not. */
static void count_load(sn_plan *plan) {
  uint64_t loads[SN_STREAMS] = {0}, most[SN_STREAMS] = {0};
  for (uint32_t i = 0; i < plan->n_instrs; i++) {
    const sn_instr *instr = &plan->instrs[i];
    bool places = instr->kind == SN_ALLOC || instr->kind == SN_RELEASE;
    sn_stream stream =
        plan->transfers && places ? sn_tensor_stream(&plan->route->tensors[instr->id]) : SN_STREAM_COMPUTE;
    uint64_t *load = &loads[stream];
    if (instr->kind == SN_ALLOC) *load += instr->bytes;
    if (instr->kind == SN_RELEASE) *load -= sn_min(*load, instr->bytes);
    if (instr->kind == SN_ALLOC || instr->kind == SN_COMPUTE)
      most[stream] = sn_max(most[stream], *load + (instr->kind == SN_COMPUTE ? instr->bytes : 0));
  }
  for (sn_stream s = 0; s < SN_STREAMS; s++) plan->reserved_peak += most[s];
}

static sn_status read_sizes(const sn__reader *r) {
  const sn_json *doc = r->doc;
  const cJSON *root = sn_json_root(doc);
  sn_err *err = r->err;
  uint64_t pool = 0, external = 0;
  const char *layouts = sn_json_has(root, "layouts") ? sn_json_text(doc, root, "layouts", err) : NULL;
  count_copies(r->plan);
  count_load(r->plan);
  sn_err why = SN_ERR_INIT;
  const char *placement = sn_json_has(root, "placement") ? sn_json_text(doc, root, "placement", err) : NULL;
  if (placement && sn_placement_parse(placement, &r->plan->placement, &why) != SN_OK)
    sn_json_fail(doc, cJSON_GetObjectItemCaseSensitive(root, "placement"), err, "%s", why.text);
  read_count(doc, "pool_bytes", 0, MOST_BYTES, &pool, err);
  read_count(doc, "external_bytes", 0, MOST_BYTES, &external, err);
  if (pool > 0) r->plan->pool_bytes = pool;
  if (external > 0) r->plan->external_bytes = external;
  if (layouts) snprintf(r->plan->layouts, sizeof r->plan->layouts, "%s", layouts);
  r->plan->pool_limit = r->plan->pool_bytes;
  return r->err->code;
}

sn_plan *sn_plan_read(sn_json_lists *file, const sn_route *route, sn_err *err) {
  sn_plan *plan = calloc(1, sizeof *plan);
  sn__reader r = {.file = file, .doc = sn_json_lists_head(file), .route = route, .plan = plan, .err = err};
  if (!plan) {
    sn_fail_memory(err);
    return NULL;
  }
  plan->route = route;
  plan->transfers = route->mesh != NULL;
  plan->use = calloc((size_t)route->n_steps + 1, sizeof *plan->use);
  if (!plan->use)
    sn_fail_memory(err);
  else if (sn__read_lists(&r) == SN_OK && read_cores(&r) == SN_OK && read_instrs(&r) == SN_OK)
    read_sizes(&r);
  if (err->code == SN_OK) return plan;
  sn_plan_free(plan);
  return NULL;
}

sn_status sn_plan_check_read(sn_json_lists *file, sn_plan *plan, sn_check_report *report, sn_err *err) {
  sn_err why = SN_ERR_INIT;
  *report = (sn_check_report){.use = plan->use};
  if (sn_check(plan, report, &why) == SN_OK) return SN_OK;
  if (why.code != SN_BUG) return sn_fail(err, why.code, "%s", why.text);
  static const char begin[] = "plan check: ";
  const char *text = strncmp(why.text, begin, sizeof begin - 1) == 0 ? why.text + sizeof begin - 1 : why.text;
  return sn_json_lists_fail(file, "instructions", report->instruction, err, "%s (rule: %s)", text,
                            sn_rule_name(report->rule));
}
