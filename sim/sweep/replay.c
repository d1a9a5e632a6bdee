/* Replay; see the header. */
#include "sim/sweep/replay.h"

#include "base/checked.h"
#include "models/zoo/zoo.h"
#include "sim/ask/simulate.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"
#include "sim/play/recording.h"
#include "sim/schedule/schedule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SNSIM_VERSION
#define SNSIM_VERSION "unknown"
#endif

struct sn_replay {
  const sn_run *run;
  const sn_calibration *calibration; /* NULL: none was used */
  char *spec;                        /* of the net */
  uint32_t image;                    /* 0: its own */
  sn_net *net;
  sn_device device;
  sn_options options;
};

/* ---- what the run was made from ---- */

/* A store may come from anyone and name any file: of one that only the store names nothing is shown, and no GPU is read
 * from one at all. */
static sn_status load_known(const sn_run *run, sn_device *device, sn_err *err) {
  if (!sn_device_is_file(run->gpu) && sn_device_load(run->gpu, device, err) != SN_BAD_USAGE) return err->code;
  *err = (sn_err)SN_ERR_INIT;
  return sn_fail(err, SN_BAD_INPUT,
                 "run %" PRId64 " was made for the GPU \"%.60s\", which snsim does not know by name; name the file of "
                 "its profile with --gpu FILE",
                 run->id, run->gpu);
}

static sn_status load_device(sn_replay *r, const char *gpu, sn_err *err) {
  const sn_run *run = r->run;
  if (r->calibration)
    r->device = r->calibration->profile;
  else if ((gpu ? sn_device_load(gpu, &r->device, err) : load_known(run, &r->device, err)) != SN_OK)
    return err->code;
  if (strcmp(r->device.name, run->gpu) != 0)
    return sn_fail(err, SN_BAD_INPUT, "%.300s is the profile of \"%.60s\"; run %" PRId64 " was made for \"%.60s\"", gpu,
                   r->device.name, run->id, run->gpu);
  r->device.memory_bytes = run->memory_bytes;
  r->device.memory_nominal = run->memory_nominal;
  r->device.host_memory_bytes = run->host_memory_bytes;
  return SN_OK;
}

/* A network's file is where it was, whatever folder this is; else as it was given. What stands behind its path stays.
 * The caller frees it; NULL: out of memory. */
static char *spec_of(const sn_run *run) {
  const char *behind = sn_net_file_end(run->net);
  for (uint32_t i = 0; i < run->n_origins && sn_net_is_file(run->net); i++) {
    const char *path = run->origins[i].path;
    if (strcmp(run->origins[i].what, "network") != 0 || access(path, R_OK) != 0) continue;
    size_t room = strlen(path) + strlen(behind) + 1;
    char *spec = malloc(room);
    if (spec) snprintf(spec, room, "%s%s", path, behind);
    return spec;
  }
  return strdup(run->net);
}

/* Where only the store names the file, what is wrong with it is not told: that would show what is in it. */
static sn_status fail_net(const sn_replay *r, const char *net, sn_err *err) {
  const sn_run *run = r->run;
  bool unlike = sn_net_is_file(r->spec) && err->code != SN_BAD_FILE && err->code != SN_NO_MEMORY;
  if (!net && unlike) {
    *err = (sn_err)SN_ERR_INIT;
    return sn_fail(err, SN_BAD_INPUT,
                   "run %" PRId64
                   " cannot be simulated again: %.200s is no longer a network; --net FILE names the file that is, and "
                   "tells what is wrong with one that is not",
                   run->id, r->spec);
  }
  sn_err_prefix(err, "run %" PRId64 " is simulated again for this%s", run->id,
                net ? "" : "; --net FILE names its network where that lies elsewhere by now");
  return err->code;
}

/* Images of another size than the network's own were asked for with --image, or sequences of another length. */
static sn_status load_net(sn_replay *r, const char *net, sn_err *err) {
  const sn_run *run = r->run;
  char *spec = r->spec = net ? sn_net_adapt_like(net, run->net) : spec_of(run);
  if (!spec) return sn_fail_memory(err);
  r->net = sn_net_load(spec, run->batch, 0, err);
  const sn_layer *data = r->net ? &r->net->layers[0] : NULL;
  if (data && (sn_layer_rows(data) != run->image_height || data->out.w != run->image_width)) {
    r->image = sn_net_image(r->net, run->image_height, run->image_width);
    sn_net_free(r->net);
    r->net = sn_net_load(spec, run->batch, r->image, err);
  }
  return r->net ? SN_OK : fail_net(r, net, err);
}

static sn_status check_net(const sn_replay *r, sn_err *err) {
  const sn_run *run = r->run;
  const sn_net *net = r->net;
  const sn_layer *data = &net->layers[0];
  if (net->n_layers == run->layers && net->parameters == run->parameters && net->macs == run->macs &&
      sn_layer_rows(data) == run->image_height && data->out.w == run->image_width)
    return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "run %" PRId64
                 " cannot be simulated again: the network %.200s has changed since (%u layers and %" PRIu64
                 " parameters then, %u and %" PRIu64 " now); simulate it anew",
                 run->id, run->net, run->layers, run->parameters, net->n_layers, net->parameters);
}

static sn_status read_options(sn_replay *r, sn_err *err) {
  const sn_run *run = r->run;
  r->options = (sn_options)SN_OPTIONS_INIT;
  r->options.calibration = r->calibration;
  sn_conditions_apply(&run->conditions, &r->options, err);
  if (err->code == SN_BAD_USAGE) err->code = SN_BAD_INPUT; /* words of the store, not of the command line */
  return err->code;
}

static bool is_measured(const sn_run *run) {
  return run->device[0] != '\0';
}

/* The calibration that the times of a simulated run came from. */
static sn_status check_costs(const sn_run *run, const sn_calibration *calibration, sn_err *err) {
  if (strcmp(run->costs, "measured") != 0 || calibration) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "run %" PRId64
                 " was simulated with measured costs of %.60s, which the database does not hold any more",
                 run->id, run->gpu);
}

static sn_status open_simulated(sn_replay *r, const char *net, const char *gpu, sn_err *err) {
  if (check_costs(r->run, r->calibration, err) == SN_OK && load_device(r, gpu, err) == SN_OK &&
      load_net(r, net, err) == SN_OK && check_net(r, err) == SN_OK)
    read_options(r, err);
  return err->code;
}

static sn_status open_measured(sn_replay *r, const char *net, sn_err *err) {
  if (load_net(r, net, err) == SN_OK && check_net(r, err) == SN_OK) read_options(r, err);
  return err->code;
}

sn_replay *sn_replay_open(const sn_run *run, const char *net, const char *gpu, const sn_calibration *calibration,
                          sn_err *err) {
  if (sn_run_check_one_plan(run, err) != SN_OK) return NULL;
  sn_replay *r = calloc(1, sizeof *r);
  if (!r) {
    sn_fail_memory(err);
    return NULL;
  }
  r->run = run;
  r->calibration = calibration;
  if ((is_measured(run) ? open_measured(r, net, err) : open_simulated(r, net, gpu, err)) == SN_OK) return r;
  sn_replay_free(r);
  return NULL;
}

void sn_replay_free(sn_replay *replay) {
  if (!replay) return;
  sn_net_free(replay->net);
  free(replay->spec);
  free(replay);
}

/* ---- whether it is the same ---- */

static uint64_t peak_of(const sn_timeline *t) {
  uint64_t peak = 0;
  for (uint32_t s = 0; s < t->n_steps; s++) peak = sn_max(peak, t->steps[s].tensor_bytes);
  return peak;
}

static sn_status check_same(const sn_replay *r, const sn_result *result, const sn_timeline *t, sn_err *err) {
  const struct {
    const char *what;
    uint64_t stored, now;
  } figures[] = {
      {"peak_tensor_bytes", result->peak_tensor_bytes, peak_of(t)},
      {"pool_bytes", result->pool_bytes, t->pool_bytes},
      {"external_bytes", result->external_bytes, t->external_bytes},
      {"instructions", result->instructions, t->n_instrs},
      {"iteration_ns", (uint64_t)result->iteration_ns,
       (uint64_t)(t->end_ns + (r->run->conditions.accumulate - INT64_C(1)) * t->batch_ns)},
  };
  for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
    if (figures[i].stored != figures[i].now)
      return sn_fail(
          err, SN_BAD_INPUT,
          "run %" PRId64 ", %s: simulated again it is another plan (%s %" PRIu64 " stored, %" PRIu64
          " now): its network, its GPU profile or snsim has changed since (made by %s, this is %s); name the "
          "profile with --gpu FILE if it came from a file, else simulate it anew",
          r->run->id, result->strategy, figures[i].what, figures[i].stored, figures[i].now, r->run->version,
          SNSIM_VERSION);
  if (result->peak_step < 1 || result->peak_step > t->n_steps)
    return sn_fail(err, SN_BAD_INPUT, "run %" PRId64 ", %s: the store says that its peak is at step %u of %u",
                   r->run->id, result->strategy, result->peak_step, t->n_steps);
  if (strcmp(t->steps[result->peak_step - 1].layer, result->peak_layer) == 0) return SN_OK;
  return sn_fail(err, SN_BAD_INPUT,
                 "run %" PRId64 ", %s: its peak was at layer \"%.100s\", which is \"%.100s\" now: the network's layers "
                 "have other names; simulate it anew",
                 r->run->id, result->strategy, result->peak_layer, t->steps[result->peak_step - 1].layer);
}

/* A strategy's name, of the store and not of the command line. */
static sn_status read_strategy(const char *name, sn_strategy *strategy, sn_err *err) {
  if (sn_strategy_parse(name, strategy, err) == SN_BAD_USAGE) err->code = SN_BAD_INPUT;
  return err->code;
}

static sn_status read_placement(const char *name, sn_placement *placement, sn_err *err) {
  if (sn_placement_parse(name, placement, err) == SN_BAD_USAGE) err->code = SN_BAD_INPUT;
  return err->code;
}

/* What a co-run plan was made with; its budget is what it has kept to. */
static sn_status read_corun(const sn_corun_row *row, sn_corun_options *corun, sn_err *err) {
  if (sn_corun_row_is_empty(row)) return SN_OK;
  corun->budget_bytes = row->budget_bytes ? row->budget_bytes : SN_BUDGET_ANY;
  if (sn_interval_parse(row->interval, &corun->interval, err) == SN_OK)
    sn_reuse_parse(row->sharing, &corun->reuse, err);
  if (err->code == SN_BAD_USAGE) err->code = SN_BAD_INPUT;
  return err->code;
}

/* The context that a result was made with: the profile's, or --context. With PyTorch's libraries it is another one. */
static void read_context(const sn_result *result, sn_strategy strategy, sn_device *device) {
  *(sn_dialect_of(strategy.dialect)->eager ? &device->library_context_bytes : &device->context_bytes) =
      result->context_bytes;
  device->conv_context_bytes = device->kernel_bytes = 0; /* they are in it */
}

sn_status sn_replay_remedy(const sn_replay *r, const sn_result *const *results, uint32_t count, sn_remedy *remedy,
                           sn_err *err) {
  sn_device device = r->device;
  sn_strategy *strategies = calloc(count, sizeof *strategies);
  if (!strategies) return sn_fail_memory(err);
  sn_options options = r->options;
  for (uint32_t i = 0; i < count && err->code == SN_OK; i++)
    if (read_strategy(results[i]->strategy, &strategies[i], err) == SN_OK &&
        read_corun(&results[i]->corun, &options.corun, err) == SN_OK)
      read_context(results[i], strategies[i], &device);
  for (uint32_t i = 0; i < count && err->code == SN_OK;
       i++) /* packed where one of them is: some always have first fit */
    if (i == 0 || options.placement == SN_PLACEMENT_FIRST_FIT)
      read_placement(results[i]->placement, &options.placement, err);
  const sn_asked asked = {.spec = r->spec,
                          .image = r->image,
                          .net = r->net,
                          .device = &device,
                          .options = &options,
                          .strategies = strategies,
                          .n_strategies = count};
  if (err->code == SN_OK) sn_remedy_find(&asked, remedy, err);
  free(strategies);
  return err->code;
}

static sn_timeline *simulate_placed(const sn_replay *r, const sn_result *result, const char *placement, sn_err *err) {
  sn_strategy strategy;
  sn_device device = r->device;
  sn_options options = r->options;
  if (read_strategy(result->strategy, &strategy, err) != SN_OK ||
      read_placement(placement, &options.placement, err) != SN_OK ||
      read_corun(&result->corun, &options.corun, err) != SN_OK)
    return NULL;
  read_context(result, strategy, &device);
  return sn_simulate_timeline(r->net, &device, strategy, &options, err);
}

static sn_timeline *simulate(const sn_replay *r, const sn_result *result, sn_err *err) {
  sn_timeline *timeline = simulate_placed(r, result, result->placement, err);
  if (!timeline || check_same(r, result, timeline, err) == SN_OK) return timeline;
  sn_timeline_free(timeline);
  return NULL;
}

/* A recording is of the graph of its strategy. */
static sn_timeline *play_back(const sn_replay *r, const sn_result *result, sn_err *err) {
  sn_strategy strategy;
  sn_route *route = NULL;
  sn_timeline *timeline = NULL;
  if (!result->recording.bytes)
    sn_fail(err, SN_BAD_INPUT, "what was executed was not kept; measure it again with this snsim");
  else if (read_strategy(result->strategy, &strategy, err) == SN_OK &&
           (route = sn_schedule_route(r->net, strategy, r->options.iteration, NULL, err)))
    timeline = sn_recording_timeline(route, result->recording, err);
  if (!timeline) sn_err_prefix(err, "run %" PRId64 ", %s", r->run->id, result->strategy);
  sn_route_free(route);
  return timeline;
}

sn_timeline *sn_replay_timeline(const sn_replay *r, const sn_result *result, sn_err *err) {
  return is_measured(r->run) ? play_back(r, result, err) : simulate(r, result, err);
}

sn_timeline *sn_replay_first_fit(const sn_replay *r, const sn_result *result, sn_err *err) {
  const char *first_fit = sn_placement_name(SN_PLACEMENT_FIRST_FIT);
  if (is_measured(r->run) || strcmp(result->placement, first_fit) == 0) return NULL;
  return simulate_placed(r, result, first_fit, err);
}
