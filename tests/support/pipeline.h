/* The stages of the simulator by hand, for tests that look between them: net, route, schedule, costs, plan, trace.
 *
 *   pipeline p = pipeline_open("lenet", 4);
 *   pipeline_plan(&p, "superneurons", SN_WORKSPACE_DYNAMIC, 300 * 1024);
 *   ... p.plan ...
 *   pipeline_close(&p);
 *
 * Whatever fails ends the test with the error's text.
 */
#ifndef SN_TESTS_PIPELINE_H
#define SN_TESTS_PIPELINE_H

#include "models/zoo/zoo.h"
#include "sim/device/cost.h"
#include "sim/graph/route.h"
#include "sim/plan/lower.h"
#include "sim/play/device_model.h"
#include "sim/schedule/schedule.h"
#include "tests/support/named_layer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

typedef struct pipeline {
  sn_net *net;
  sn_device device;
  sn_route *route;
  sn_costs *costs;
  sn_strategy strategy;
  sn_schedule *schedule;
  sn_plan *plan;
} pipeline;

static inline void must(const sn_err *err) {
  if (err->code != SN_OK) fail_msg("%s: %s", sn_status_name(err->code), err->text);
}

/* `spec` is what sn_net_load() takes, or the JSON text of a network. */
static inline sn_net *load_net(const char *spec, uint32_t batch) {
  sn_err err = SN_ERR_INIT;
  sn_net *net =
      *spec == '{' ? sn_net_from_json("test", spec, strlen(spec), batch, &err) : sn_net_load(spec, batch, 0, &err);
  must(&err);
  assert_non_null(net);
  return net;
}

static inline sn_device load_gpu(const char *name) {
  sn_err err = SN_ERR_INIT;
  sn_device device;
  sn_device_load(name, &device, &err);
  must(&err);
  return device;
}

static inline sn_strategy parse_strategy(const char *text) {
  sn_err err = SN_ERR_INIT;
  sn_strategy strategy = {0};
  sn_strategy_parse(text, &strategy, &err);
  must(&err);
  return strategy;
}

/* Up to the route and the costs on a K40c. */
static inline pipeline pipeline_open(const char *spec, uint32_t batch) {
  sn_err err = SN_ERR_INIT;
  pipeline p = {.net = load_net(spec, batch), .device = load_gpu("k40c")};
  p.route = sn_route_new(p.net, SN_DIALECT_SUPERNEURONS, SN_ORDER_ROUTE, &err);
  must(&err);
  p.costs = sn_costs_new(p.net, &p.device, &err);
  must(&err);
  return p;
}

static inline void pipeline_drop_plan(pipeline *p) {
  sn_plan_free(p->plan);
  sn_schedule_free(p->schedule);
  p->plan = NULL;
  p->schedule = NULL;
}

/* Makes the plan of a strategy in place of the one before. */
static inline void pipeline_plan(pipeline *p, const char *strategy, sn_workspace workspace, uint64_t pool_bytes) {
  sn_err err = SN_ERR_INIT;
  pipeline_drop_plan(p);
  p->strategy = parse_strategy(strategy);
  p->schedule = sn_schedule_new(p->route, p->strategy.recompute, &err);
  must(&err);
  p->plan = sn_lower(p->schedule, p->strategy, workspace, p->costs, pool_bytes, &err);
  must(&err);
}

/* Plays the plan on the simulated device; the caller clears the trace. */
static inline sn_trace pipeline_play(const pipeline *p, bool shared_link) {
  sn_err err = SN_ERR_INIT;
  sn_trace trace;
  sn_device_model model = {.device = &p->device, .costs = p->costs, .shared_link = shared_link};
  sn_trace_init(&trace, p->plan, &err);
  must(&err);
  sn_play(p->plan, sn_device_model_backend(&model), &trace, &err);
  must(&err);
  return trace;
}

static inline void pipeline_close(pipeline *p) {
  pipeline_drop_plan(p);
  sn_costs_free(p->costs);
  sn_route_free(p->route);
  sn_net_free(p->net);
}

/* The tensor of a name ("conv1.y"). */
static inline uint32_t find_tensor(const sn_route *route, const char *name) {
  char text[SN_TENSOR_NAME];
  for (uint32_t t = 0; t < route->n_tensors; t++)
    if (strcmp(sn_tensor_name(route, t, text, sizeof text), name) == 0) return t;
  fail_msg("no tensor %s", name);
  return SN_NONE;
}

#endif
