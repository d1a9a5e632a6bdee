/* The CPU as a machine: kernels of oneDNN for the net, the CPU back end, and what the system says of processor and
 * memory. */
#include "exec/machine/cpu.h"

#include "exec/machine/host.h"
#include "exec/machine/machine.h"
#include "exec/machine/processors.h"
#include "sim/ask/result.h"
#include "sim/device/device.h"
#include "sim/graph/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct cpu_machine {
  sn_cpu cpu;
  sn_cpu_kernels *kernels;
  sn_cpu_teams *teams;
  sn_resident base; /* before it was opened */
  bool turned;      /* parameters, and what goes with them, lie as the kernels want them */
} cpu_machine;

/* There is one algorithm per convolution: the planner is offered nothing else. */
static sn_status offer(void *self, sn_costs *costs, sn_err *err) {
  const cpu_machine *m = self;
  (void)err;
  sn_costs_set_layouts(costs, sn_cpu_kernels_layouts(m->kernels));
  for (uint32_t layer = 1; layer < m->cpu.route->n_layers; layer++) {
    sn_costs_keep_smallest(costs, layer);
    for (sn_pass pass = 0; pass < SN_PASSES; pass++)
      sn_costs_set_scratch(costs, layer, pass, sn_cpu_kernels_scratch(m->kernels, layer, pass, SN_STEP_WHOLE));
  }
  return SN_OK;
}

static sn_status team_scratch(void *self, uint32_t step, sn_step_part part, uint32_t threads, uint64_t *bytes,
                              sn_err *err) {
  cpu_machine *m = self;
  return sn_cpu_teams_scratch(m->teams, &m->cpu.route->steps[step], part, threads, bytes, err);
}

/* All that lies like weights; of frozen ones there is nothing else. */
static sn_status turn(cpu_machine *m, bool back, sn_err *err) {
  const sn_net *net = m->cpu.route->net;
  const sn_state *s = m->cpu.state;
  float *const all[] = {s->parameters, s->gradients, s->states[0], s->states[1]};
  if (m->turned != back) return SN_OK;
  for (uint32_t layer = 1; layer < net->n_layers; layer++) {
    const size_t count = net->layers[layer].parameters == 0    ? 0
                         : sn_call_trains(m->cpu.route, layer) ? sizeof all / sizeof all[0]
                                                               : 1;
    for (size_t i = 0; i < count; i++)
      if (all[i] && sn_cpu_kernels_turn(m->kernels, layer, all[i] + s->parameter_offset[layer], back, err) != SN_OK)
        return err->code;
  }
  m->turned = !back;
  return SN_OK;
}

static sn_status start(void *self, sn_state *state, sn_err *err) {
  cpu_machine *m = self;
  m->cpu.state = state;
  m->turned = false;
  return turn(m, false, err);
}

static sn_status feed(void *self, const sn_batch *batch, sn_err *err) {
  (void)err;
  ((cpu_machine *)self)->cpu.batch = batch;
  return SN_OK;
}

static sn_backend backend(void *self) {
  return sn_cpu_backend(&((cpu_machine *)self)->cpu);
}

static void outcome(const void *self, sn_outcome *result) {
  *result = ((const cpu_machine *)self)->cpu.outcome;
}

static sn_status fetch(void *self, sn_err *err) {
  return turn(self, true, err); /* it was trained in place */
}

static sn_status used_bytes(void *self, uint64_t *bytes, sn_err *err) {
  const cpu_machine *m = self;
  sn_resident now = {0};
  sn_status status = sn_resident_now(&now, err);
  *bytes = now.bytes > m->base.bytes ? now.bytes - m->base.bytes : 0;
  return status;
}

static void close_machine(void *self) {
  cpu_machine *m = self;
  sn_cpu_teams_free(m->teams);
  sn_cpu_kernels_free(m->kernels);
  free(m);
}

static const sn_machine_ops cpu_ops = {
    .offer = offer,
    .team_scratch = team_scratch,
    .start = start,
    .feed = feed,
    .backend = backend,
    .outcome = outcome,
    .fetch = fetch,
    .used_bytes = used_bytes,
    .close = close_machine,
};

/* "AMD EPYC 7B13"; "CPU" where the system does not say. */
static void read_processor(char *name, size_t room) {
  char line[256];
  snprintf(name, room, "CPU");
  FILE *f = fopen("/proc/cpuinfo", "re");
  while (f && fgets(line, sizeof line, f)) {
    char *colon = strstr(line, ": ");
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    colon[strcspn(colon, "\n")] = '\0';
    snprintf(name, room, "%s", colon + 2);
    break;
  }
  if (f) fclose(f);
}

static void describe(const cpu_machine *m, sn_machine_info *info) {
  char processor[SN_MACHINE_TEXT - 40];
  read_processor(processor, sizeof processor);
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  info->backend = "cpu";
  info->persistent =
      sn_persistent_of(m->cpu.route->net, SN_DIALECT_SUPERNEURONS, (sn_iteration){.optimizer = m->cpu.hyper.optimizer});
  info->kernel_bytes = sn_cpu_kernels_made_bytes(m->kernels);
  info->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
  unsigned threads = sn_cpu_kernels_threads(m->kernels);
  snprintf(info->device, sizeof info->device, "%s, %u thread%s", processor, threads, threads == 1 ? "" : "s");
  snprintf(info->libraries, sizeof info->libraries, "%s", sn_cpu_kernels_version(m->kernels));
}

/* Estimates for so many of the machine's processors, which nothing here measures. One alone has nothing beside it. */
static sn_cores find_cores(const cpu_machine *m, const sn_machine_options *options) {
  uint32_t threads = sn_cpu_kernels_threads(m->kernels), processors = sn_processors_count();
  uint32_t count = threads < processors ? threads : processors;
  sn_cores cores = {0};
  if (options->cores)
    cores = *options->cores;
  else if (count >= SN_MIN_CORES)
    cores = sn_cores_estimate(count < SN_MAX_CORES ? count : SN_MAX_CORES, 1, 1);
  cores.pinned = cores.count > 0;
  return cores;
}

sn_status sn_machine_open_cpu(const sn_route *route, const sn_machine_options *options, sn_machine *machine,
                              sn_err *err) {
  cpu_machine *m = calloc(1, sizeof *m);
  if (!m) return sn_fail_memory(err);
  *machine = (sn_machine){.self = m, .ops = &cpu_ops};
  if (sn_resident_now(&m->base, err) == SN_OK) m->kernels = sn_cpu_kernels_new(route->net, options->threads, true, err);
  if (m->kernels) m->teams = sn_cpu_teams_new(route->net, err);
  if (!m->teams) {
    close_machine(m);
    *machine = (sn_machine){0};
    return err->code;
  }
  m->cpu = (sn_cpu){.route = route,
                    .kernels = m->kernels,
                    .teams = m->teams,
                    .hyper = options->hyper,
                    .accumulate = options->accumulate,
                    .check = options->check,
                    .jitter_us = options->jitter_us,
                    .folder = options->folder};
  machine->info.cores = find_cores(m, options);
  describe(m, &machine->info);
  return SN_OK;
}
