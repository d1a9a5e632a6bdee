/* The table of options: what each is called, which commands take it, what help says of it, how its value is read. The
 * parser of the command line (cli/frame/options.c), help, completions and the manual page all come from it. */
#include "cli/frame/options.h"

#include "base/units.h"
#include "models/net.h"
#include "sim/ask/fit.h"
#include "sim/ask/workers.h"
#include "sim/plan/pack.h"
#include "sim/share/colour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_STRATEGY = 200 };

static sn_status parse_switch(const char *what, const char *text, void *place, sn_err *err) {
  (void)what, (void)text, (void)err;
  *(bool *)place = true;
  return SN_OK;
}

static sn_status parse_text(const char *what, const char *text, void *place, sn_err *err) {
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "%s: the value is empty", what);
  *(const char **)place = text;
  return SN_OK;
}

static sn_status parse_gpu(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  sn_status status = parse_text(what, text, &args->gpu, err);
  if (status == SN_OK) args->profile = args->gpu;
  return status;
}

static sn_status take_count(const char *what, const char *text, uint64_t low, uint64_t high, uint32_t *place,
                            sn_err *err) {
  uint64_t value = 0;
  sn_status status = sn_parse_count(text, what, low, high, &value, err);
  *place = (uint32_t)value;
  return status;
}

static sn_status parse_size(const char *what, const char *text, void *place, sn_err *err) {
  return take_count(what, text, 1, SN_MAX_DIM, place, err);
}

static sn_status parse_threads(const char *what, const char *text, void *place, sn_err *err) {
  return take_count(what, text, 1, SN_MACHINE_THREADS, place, err);
}

static sn_status parse_jobs(const char *what, const char *text, void *place, sn_err *err) {
  return take_count(what, text, 1, SN_WORKERS_MOST, place, err);
}

static sn_status parse_moves(const char *what, const char *text, void *place, sn_err *err) {
  return take_count(what, text, 0, SN_PACK_MOST_MOVES, place, err);
}

static sn_status parse_match_range(const char *what, const char *text, void *place, sn_err *err) {
  return take_count(what, text, 0, SN_MAX_DIM, place, err);
}

static sn_status parse_colours(const char *what, const char *text, void *place, sn_err *err) {
  uint64_t value = SN_COLOURS_ANCESTORS;
  if (strcmp(text, "ancestors") != 0 && (!*text || text[strspn(text, "0123456789")]))
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is neither a number of colours nor ancestors", what, text);
  if (strcmp(text, "ancestors") != 0) sn_parse_count(text, what, 1, SN_COLOURS_MOST, &value, err);
  *(uint32_t *)place = (uint32_t)value;
  return err->code;
}

static sn_status parse_warmup(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  uint64_t value = 0;
  sn_status status = sn_parse_count(text, what, 0, SN_MAX_DIM, &value, err);
  args->warmup = (uint32_t)value;
  args->warmup_given = true;
  return status;
}

static sn_status parse_seed(const char *what, const char *text, void *place, sn_err *err) {
  return sn_parse_count(text, what, 0, UINT64_MAX, place, err);
}

/* From 0 to below `limit`; an exponent is allowed, hexadecimal and "nan" are not. */
static sn_status take_real(const char *what, const char *text, float limit, float *value, sn_err *err) {
  char *end;
  float number = strtof(text, &end);
  if (!*text || *end || text[strspn(text, "0123456789.eE+-")])
    return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is not a number", what, text);
  if (number < 0 || number >= limit)
    return sn_fail(err, SN_BAD_USAGE, "%s: %.80s is out of range (from 0 to below %g)", what, text, (double)limit);
  *value = number;
  return SN_OK;
}

static sn_status parse_rate(const char *what, const char *text, void *place, sn_err *err) {
  return take_real(what, text, 1000, place, err);
}

static sn_status parse_share(const char *what, const char *text, void *place, sn_err *err) {
  return take_real(what, text, 1, place, err);
}

static sn_status take_bytes(const char *what, const char *text, uint64_t low, sn_args_bytes *bytes, sn_err *err) {
  bytes->given = true;
  return sn_parse_bytes(text, what, low, &bytes->bytes, err);
}

static sn_status parse_bytes(const char *what, const char *text, void *place, sn_err *err) {
  return take_bytes(what, text, 1, place, err);
}

/* Blocks have no unit but bytes, and neither has what they go into. */
static sn_status parse_capacity(const char *what, const char *text, void *place, sn_err *err) {
  sn_args_bytes *bytes = place;
  if (!*text || text[strspn(text, "0123456789")]) return take_bytes(what, text, 0, bytes, err);
  bytes->given = true;
  return sn_parse_count(text, what, 0, UINT64_MAX, &bytes->bytes, err);
}

/* A context of nothing is a question one may ask; a device or pool of nothing is not. */
static sn_status parse_bytes_or_0(const char *what, const char *text, void *place, sn_err *err) {
  return take_bytes(what, text, 0, place, err);
}

static sn_status take_strategy(const char *what, const char *text, sn_args *args, sn_err *err) {
  sn_strategy s;
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "%s: the value is empty; snsim list strategies shows them", what);
  if (sn_strategy_parse(text, &s, err) != SN_OK) return err->code;
  for (uint32_t i = 0; i < args->n_strategies; i++)
    if (sn_strategy_same(args->strategies[i], s)) return SN_OK;
  if (args->n_strategies == SN_ARGS_STRATEGIES) return sn_fail(err, SN_BUG, "%s: more strategies than there are", what);
  args->strategies[args->n_strategies++] = s;
  return SN_OK;
}

/* One, or several parted by commas. */
static sn_status parse_strategy(const char *what, const char *text, void *place, sn_err *err) {
  for (const char *at = text; err->code == SN_OK && at;) {
    char one[LONGEST_STRATEGY];
    size_t length = strcspn(at, ",");
    snprintf(one, sizeof one, "%.*s", (int)length, at); /* what is longer is none, and cut none either */
    take_strategy(what, one, place, err);
    at = at[length] ? at + length + 1 : NULL;
  }
  return err->code;
}

/* Read when the grid is made of it. */
static sn_status parse_list(const char *what, const char *text, void *place, sn_err *err) {
  sn_args_lists *lists = place;
  if (!*text) return sn_fail(err, SN_BAD_USAGE, "%s: the value is empty", what);
  if (lists->count == SN_ARGS_LISTS)
    return sn_fail(err, SN_BAD_USAGE, "%s is given more than %d times; part values by commas, or use --grid FILE", what,
                   SN_ARGS_LISTS);
  lists->texts[lists->count++] = text;
  return SN_OK;
}

static sn_status parse_workspace(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  (void)what; /* the parsers of sim/ name the option themselves */
  args->workspace_given = true;
  return sn_workspace_parse(text, &args->workspace, err);
}

static sn_status parse_external(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_external_parse(text, place, err);
}

static sn_status parse_allocator(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_allocator_parse(text, place, err);
}

static sn_status parse_placement(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  (void)what;
  args->placement_given = true;
  return sn_placement_parse(text, &args->placement, err);
}

static sn_status parse_optimizer(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_optimizer_parse(text, place, err);
}

static sn_status parse_dialect(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_dialect_parse(text, place, err);
}

static sn_status parse_order(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_order_parse(text, place, err);
}

static sn_status parse_for(const char *what, const char *text, void *place, sn_err *err) {
  *(bool *)place = strcmp(text, "pytorch") == 0;
  if (*(bool *)place || strcmp(text, "superneurons") == 0) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is none of: superneurons, pytorch", what, text);
}

static sn_status parse_kind(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_plot_kind_parse(text, place, err);
}

static sn_status parse_x(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_plot_x_parse(text, place, err);
}

static sn_status parse_backend(const char *what, const char *text, void *place, sn_err *err) {
  (void)what;
  return sn_exec_backend_parse(text, place, err);
}

static sn_status parse_costs(const char *what, const char *text, void *place, sn_err *err) {
  static const char *const names[SN_COSTS_COUNT] = {"auto", "model", "measured"};
  for (int i = 0; i < SN_COSTS_COUNT; i++)
    if (strcmp(text, names[i]) == 0) {
      *(sn_cost_source *)place = (sn_cost_source)i;
      return SN_OK;
    }
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is none of auto, model, measured", what, text);
}

static sn_status parse_color(const char *what, const char *text, void *place, sn_err *err) {
  static const char *const names[] = {"auto", "always", "never"};
  for (int i = 0; i < 3; i++)
    if (strcmp(text, names[i]) == 0) {
      *(sn_color *)place = (sn_color)i;
      return SN_OK;
    }
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.80s\" is none of auto, always, never", what, text);
}

static sn_status parse_max(const char *what, const char *text, void *place, sn_err *err) {
  sn_knob_kind kind;
  *(const char **)place = text;
  return sn_knob_parse(what, text, &kind, err);
}

/* An option with one value so far. */
static sn_status take_only(const char *what, const char *text, const char *only, void *place, sn_err *err) {
  *(const char **)place = text;
  return strcmp(text, only) == 0 ? SN_OK : sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is not %s", what, text, only);
}

static sn_status parse_min(const char *what, const char *text, void *place, sn_err *err) {
  return take_only(what, text, "memory", place, err);
}

static sn_status parse_which(const char *what, const char *text, void *place, sn_err *err) {
  return take_only(what, text, "gpu", place, err);
}

/* "5%" of the memory, or a size; the later one counts. */
static sn_status parse_margin(const char *what, const char *text, void *place, sn_err *err) {
  sn_args *args = place;
  char *end;
  double percent = strtod(text, &end);
  args->margin_percent = 0;
  args->margin = (sn_args_bytes){.given = true};
  if (end == text || strcmp(end, "%") != 0) return take_bytes(what, text, 0, &args->margin, err);
  if (!(percent >= 0 && percent < 100))
    return sn_fail(err, SN_BAD_USAGE, "%s: a share is from 0%% to below 100%%, not %.40s", what, text);
  args->margin_percent = percent;
  return SN_OK;
}

static const sn_option options[] = {
    {"max", "batch|depth|image", 0, SN_CMD_FIT, "What to find",
     "The largest that fits: batch; depth (n3 of resnet, the repeat of a JSON network); image (height and width).",
     parse_max, offsetof(sn_args, max)},
    {"min", "memory", 0, SN_CMD_FIT, "What to find",
     "memory: the least usable memory of a device with which it runs, to the block of 1 KiB.", parse_min,
     offsetof(sn_args, min)},
    {"which", "gpu", 0, SN_CMD_FIT, "What to find",
     "gpu: every GPU of `snsim list gpus`, and a --gpu FILE, ranked: does it fit, with what to spare, how fast.",
     parse_which, offsetof(sn_args, which)},
    {"net", "NET|FILE.json", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE | SN_CMD_GRAPH |
         SN_CMD_MEMCOST,
     "What to train",
     "The network: a name of `snsim list nets`, a family with its parameters (resnet:n1=3,n2=4,n3=6,n4=3), or the path "
     "of a JSON file (one that holds a '/' or ends in .json).",
     parse_text, offsetof(sn_args, net)},
    {"net", "FILE.json", 0, SN_CMD_REPORT | SN_CMD_TRACE, "What to train",
     "The run's network, where its file lies elsewhere by now.", parse_text, offsetof(sn_args, net)},
    {"batch", "N", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE | SN_CMD_MEMCOST,
     "What to train", "Images per iteration.", parse_size, offsetof(sn_args, batch)},
    {"batch", "N", 0, SN_CMD_GRAPH, "What to train", "Images per iteration. Default: 1.", parse_size,
     offsetof(sn_args, batch)},
    {"dialect", "superneurons|explicit|pytorch|pytorch-1.7|singa", 0, SN_CMD_GRAPH, "How",
     "superneurons (default): forks copy, gradients of ACT, LRN, JOIN and SOFTMAX are in place. explicit: MXNet's "
     "graph, "
     "where values have many readers, gradients are summed, and operators may take over an operand's bytes. pytorch: "
     "eager PyTorch 2; pytorch-1.7 adds gradients that meet into a third tensor. singa: SINGA's graph, kernel by "
     "kernel, "
     "without the workspaces of convolutions, which are a GPU's; simulated only.",
     parse_dialect, offsetof(sn_args, dialect)},
    {"order", "route|post|serial|bfs", 0, SN_CMD_GRAPH, "How",
     "route (default): forward from the input on, backward the other way round. post: depth first from the loss and "
     "from each parameter's gradient, for explicit. serial, bfs: as SINGA buffers its operations, which is its route, "
     "and breadth first, for singa.",
     parse_order, offsetof(sn_args, order)},
    {"inference", NULL, 0, SN_CMD_GRAPH, "How", "The network is only run, not trained: forward operations alone.",
     parse_switch, offsetof(sn_args, inference)},
    {"nets", "NET|FILE.json,..", 0, SN_CMD_SWEEP, "Points",
     "Networks, parted by commas: alexnet,resnet:n1=3,n2=4,./mine.json. What reads KEY=VALUE belongs to the family "
     "before it. May be given several times, like all lists.",
     parse_list, offsetof(sn_args, axes[SN_AXIS_NETS])},
    {"batches", "N,..", 0, SN_CMD_SWEEP, "Points",
     "Images per iteration: 16,32,64, ranges LOW:HIGH:STEP (16:256:16) and LOW:HIGH:xFACTOR (16:256:x2).", parse_list,
     offsetof(sn_args, axes[SN_AXIS_BATCHES])},
    {"images", "N|own,..", 0, SN_CMD_SWEEP, "Points",
     "Height and width of the images, and own: the network's. Default: own.", parse_list,
     offsetof(sn_args, axes[SN_AXIS_IMAGES])},
    {"gpus", "GPU|FILE.json,..", 0, SN_CMD_SWEEP, "Points", "GPUs: names of `snsim list gpus` or files. Default: k40c.",
     parse_list, offsetof(sn_args, axes[SN_AXIS_GPUS])},
    {"memories", "SIZE|own,..", 0, SN_CMD_SWEEP, "Points",
     "Usable memory of the GPUs, such as 8GiB, and own: what they have. Default: own.", parse_list,
     offsetof(sn_args, axes[SN_AXIS_MEMORIES])},
    {"links", "own|shared,..", 0, SN_CMD_SWEEP, "Points",
     "own: copies out and in have a bandwidth each; shared: they share that of one direction. Default: own.",
     parse_list, offsetof(sn_args, axes[SN_AXIS_LINKS])},
    {"workspaces", "none|dynamic|max,..", 0, SN_CMD_SWEEP, "Points", "Of none, dynamic, max. Default: dynamic.",
     parse_list, offsetof(sn_args, axes[SN_AXIS_WORKSPACES])},
    {"externals", "host|peer|remote,..", 0, SN_CMD_SWEEP, "Points", "Of host, peer, remote. Default: host.", parse_list,
     offsetof(sn_args, axes[SN_AXIS_EXTERNALS])},
    {"allocators", "pool|cuda,..", 0, SN_CMD_SWEEP, "Points", "Of pool, cuda. Default: pool.", parse_list,
     offsetof(sn_args, axes[SN_AXIS_ALLOCATORS])},
    {"pools", "SIZE|all,..", 0, SN_CMD_SWEEP, "Points",
     "Sizes of the pool, such as 3GiB, and all: what the device has left. Default: all.", parse_list,
     offsetof(sn_args, axes[SN_AXIS_POOLS])},
    {"grid", "FILE.json", 0, SN_CMD_SWEEP, "Points", "All of that from a JSON file (docs/sweep.md).", parse_text,
     offsetof(sn_args, grid)},
    {"net", "NET|FILE.json", 0, SN_CMD_PLOT, "What to draw",
     "Of a sweep of several networks: which. Of a timeline or pool: the run's network, where its file lies elsewhere "
     "by now.",
     parse_text, offsetof(sn_args, net)},
    {"gpu", "GPU|FILE.json", 0, SN_CMD_PLOT, "What to draw",
     "Of a sweep of several GPUs: which. Default: k40c. Of a timeline or pool: the profile of the run's GPU, where "
     "that came from a file.",
     parse_gpu, 0},
    {"workspace", "none|dynamic|max", 0, SN_CMD_PLOT, "What to draw",
     "Of a sweep of several workspaces: which. Default: dynamic.", parse_workspace, 0},
    {"external", "host|peer|remote", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several: which. Default: host.",
     parse_external, offsetof(sn_args, external)},
    {"allocator", "pool|cuda", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several: which. Default: pool.",
     parse_allocator, offsetof(sn_args, allocator)},
    {"x", "batch|pool|memory|image|gpu", 0, SN_CMD_PLOT, "What to draw",
     "What a sweep is drawn over. Default: the first of these that has several values.", parse_x, offsetof(sn_args, x)},
    {"batch", "N", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several batches: which.", parse_size,
     offsetof(sn_args, batch)},
    {"image", "N", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several images: which. Default: the network's own.",
     parse_size, offsetof(sn_args, image)},
    {"memory", "SIZE", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several memories of a GPU: which.", parse_bytes,
     offsetof(sn_args, memory)},
    {"shared-link", NULL, 0, SN_CMD_PLOT, "What to draw", "Of a sweep of both kinds of link: the shared one.",
     parse_switch, offsetof(sn_args, shared_link)},
    {"pool", "SIZE", 0, SN_CMD_PLOT, "What to draw", "Of a sweep of several pools: which. Default: all.", parse_bytes,
     offsetof(sn_args, pool)},
    {"image", "N", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE |
         SN_CMD_MEMCOST,
     "What to train",
     "Height and width of the images, instead of the network's own. An FC that sees the whole image (AlexNet, VGG) "
     "then has other parameters, which is said; behind a global POOL it has not.",
     parse_size, offsetof(sn_args, image)},
    {"match-range", "N", 0, SN_CMD_MEMCOST, "How",
     "How many times larger or smaller the next use of a region of memory may be. 0: no region is used again. "
     "Default: 16, MXNet's.",
     parse_match_range, offsetof(sn_args, match_range)},
    {"colors", "N|ancestors", 0, SN_CMD_MEMCOST, "How",
     "Only operations of one colour share a region: the longest paths have a colour each, the rest the last. Default: "
     "1. ancestors: only an operation that runs behind the other in any case; networks of up to 20,000 operations.",
     parse_colours, offsetof(sn_args, colours)},
    {"gpu", "GPU|FILE.json", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_MEMCOST, "Where",
     "The GPU: a name of `snsim list gpus` or the path of a JSON file. Default: k40c.", parse_gpu, 0},
    {"gpu", "FILE.json", 0, SN_CMD_REPORT | SN_CMD_TRACE, "Where",
     "The profile of the run's GPU, where that came from a file: the database holds only its name.", parse_gpu, 0},
    {"gpu", "NAME", 0, SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "Where",
     "The name under which this machine's measurements are kept. Default: the name of the back end.", parse_gpu, 0},
    {"costs", "auto|model|measured", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_VALIDATE, "Where",
     "Where times come from: auto (default: what was measured of the device by `snsim calibrate`, formulas for the "
     "rest), model (formulas alone), measured (an error where nothing was measured).",
     parse_costs, offsetof(sn_args, costs)},
    {"memory", "SIZE", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE, "Where",
     "Usable memory of the device instead of its own: 8GiB, 11439MiB, 12GB; the i makes it a power of 1024.",
     parse_bytes, offsetof(sn_args, memory)},
    {"context", "SIZE", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE, "Where",
     "Memory that driver and libraries take; 0 is allowed.", parse_bytes_or_0, offsetof(sn_args, context)},
    {"host-memory", "SIZE", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP, "Where",
     "Memory that the host has for tensors sent out: a plan that needs more does not fit. Default: what the GPU's "
     "profile says; without that, it is shown and not limited.",
     parse_bytes, offsetof(sn_args, host_memory)},
    {"pool", "SIZE", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RUN | SN_CMD_VALIDATE, "Where",
     "Size of the pool for tensors and workspace, instead of all that context and parameters leave.", parse_bytes,
     offsetof(sn_args, pool)},
    {"for", "superneurons|pytorch", 0, SN_CMD_ADVISE, "How",
     "Whose techniques to try: SuperNeurons' (default), or what PyTorch offers, with the calls that do it.", parse_for,
     offsetof(sn_args, for_pytorch)},
    {"margin", "SIZE|P%", 0, SN_CMD_FIT | SN_CMD_ADVISE, "Where",
     "Usable memory to keep free, for a larger context, fragmentation by other allocations and what a framework adds: "
     "a size, or a share of the usable memory (5%). Default: none.",
     parse_margin, 0},
    {"external", "host|peer|remote", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE, "Where",
     "Where offloaded tensors go: host (default), peer (a GPU under the same switch), remote (over RDMA).",
     parse_external, offsetof(sn_args, external)},
    {"shared-link", NULL, 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP, "Where",
     "Copies out and in share the bandwidth of one direction.", parse_switch, offsetof(sn_args, shared_link)},
    {"strategy", "S,..", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "A strategy of `snsim list strategies`, or several parted by commas; may be given several times. Default: the "
     "13 of SuperNeurons; simulate and fit ask about pytorch as well.",
     parse_strategy, 0},
    {"strategy", "S,..", 0, SN_CMD_ADVISE, "How",
     "Strategies to choose among, parted by commas; may be given several times. Default: baseline, and liveness with "
     "every offload and recompute.",
     parse_strategy, 0},
    {"strategy", "S,..", 0, SN_CMD_PLOT, "How", "Strategies to draw, parted by commas; may be given several times.",
     parse_strategy, 0},
    {"strategy", "S,..", 0, SN_CMD_DIFF, "How", "Strategies to compare, parted by commas; may be given several times.",
     parse_strategy, 0},
    {"strategy", "S,..", 0, SN_CMD_REPORT, "How",
     "Strategies to report on, parted by commas; may be given several times. Default: all that the run has.",
     parse_strategy, 0},
    {"strategy", "S", 0, SN_CMD_TRACE, "How",
     "The strategy to trace. Default: the fastest that fits; where none fits, the one that needs the least.",
     parse_strategy, 0},
    {"workspace", "none|dynamic|max", 0, SN_CMD_SIMULATE | SN_CMD_FIT, "How",
     "Convolution workspace: none, dynamic (the fastest algorithm that fits in what is left at that step; default), "
     "max (the fastest, whether it fits or not).",
     parse_workspace, 0},
    {"workspace", "none|dynamic|max", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "GPU: convolution workspace none (default: every strategy then uses the same algorithms and gives the same bits), "
     "dynamic or max. A CPU has one algorithm.",
     parse_workspace, 0},
    {"allocator", "pool|cuda|pytorch", 0, SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE, "How",
     "Who hands out memory: pool (default; PyTorch's rows have PyTorch's), cuda (cudaMalloc and cudaFree for every "
     "tensor, with what they cost), or pytorch (its caching allocator).",
     parse_allocator, offsetof(sn_args, allocator)},
    {"placement", "packed|first-fit", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "How tensors and workspaces get their addresses: packed (default: together, once all is known), or first-fit (one "
     "after the other, as it comes; published systems always).",
     parse_placement, 0},
    {"backend", "cpu|cuda", 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "Where",
     "What trains: cpu (default), or cuda, which needs an NVIDIA GPU with cuDNN and cuBLAS.", parse_backend,
     offsetof(sn_args, backend)},
    {"data", "FILE", 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "What to train",
     "Trains on a labelled image set instead of random images: MNIST's IDX files or the form of docs/data.md.",
     parse_text, offsetof(sn_args, data)},
    {"iterations", "N", 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "How",
     "Training iterations, 1 to 16777216. Default: 3.", parse_size, offsetof(sn_args, iterations)},
    {"warmup", "N", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "How many of the iterations, the first, do not count for times: fewer than --iterations, 0 is allowed. Default: "
     "1.",
     parse_warmup, 0},
    {"optimizer", "momentum|sgd|adam|adamw", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "How",
     "What updates parameters: momentum (default), which keeps one value for each parameter; sgd, none; adam or adamw, "
     "two. A GPU trains by the first two.",
     parse_optimizer, offsetof(sn_args, optimizer)},
    {"learning-rate", "X", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How", "Step size of gradient descent. Default: 0.001.",
     parse_rate, offsetof(sn_args, hyper.learning_rate)},
    {"momentum", "X", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "Share of the last step that is taken again, below 1; of --optimizer momentum. Default: 0.9.", parse_share,
     offsetof(sn_args, hyper.momentum)},
    {"weight-decay", "X", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "Pull of all parameters towards 0, below 1. Default: 0.0005.", parse_share, offsetof(sn_args, hyper.weight_decay)},
    {"seed", "N", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "What weights, dropout, synthetic images and the order of real ones are drawn from. Default: 1.", parse_seed,
     offsetof(sn_args, hyper.seed)},
    {"threads", "N", 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "How",
     "Threads of the kernels, 1 to 4096. Default: as many as there are processors.", parse_threads,
     offsetof(sn_args, threads)},
    {"deterministic", NULL, 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "How",
     "GPU: only algorithms that give the same bits every time. The CPU's always do.", parse_switch,
     offsetof(sn_args, deterministic)},
    {"tf32", NULL, 0, SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE, "How",
     "GPU: allow TF32 tensor cores, which round to 10 bits.", parse_switch, offsetof(sn_args, tf32)},
    {"jobs", "N", 0, SN_CMD_SWEEP, "How",
     "Threads that compute. Default: as many as there are processors; under mpirun one for each rank.", parse_jobs,
     offsetof(sn_args, jobs)},
    {"check", NULL, 0, SN_CMD_RUN | SN_CMD_VALIDATE, "How",
     "Watch every byte of the pool: what is released or belongs to nobody must not be read or written.", parse_switch,
     offsetof(sn_args, check)},
    {"capacity", "SIZE", 0, SN_CMD_PACK, "How",
     "The memory there is, in bytes or with a unit (1MiB): the search is over as soon as the blocks fit. Default: as "
     "little as can be found.",
     parse_capacity, offsetof(sn_args, capacity)},
    {"moves", "N", 0, SN_CMD_PACK, "How",
     "Moves of the search behind the eight orders; 0 for none. Default: 5000. Where blocks are many each takes long, "
     "and the search ends sooner.",
     parse_moves, offsetof(sn_args, moves)},
    {"steps", NULL, 0, SN_CMD_SIMULATE | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_SHOW, "What to print",
     "Also a row for every step, strategy by strategy.", parse_switch, offsetof(sn_args, steps)},
    {"explain", NULL, 0, SN_CMD_SIMULATE | SN_CMD_SHOW, "What to print",
     "Also the tensors that make up each peak, largest first: who made them, how long they have been there, what would "
     "remove them; and what sets the pool and would lower it.",
     parse_switch, offsetof(sn_args, explain)},
    {"explain", NULL, 0, SN_CMD_DIFF, "What to print",
     "Also the tensors that came to each peak, went from it, grew or shrank, the largest change first.", parse_switch,
     offsetof(sn_args, explain)},
    {"kind", "steps|live|device|breakdown|timeline|pool|map", 0, SN_CMD_PLOT, "What to print",
     "What to draw. steps (default): memory of tensors over the steps. live: live tensors only. device: "
     "everything on the device over the steps, against its memory. breakdown: time and peak by type of layer, a bar "
     "per strategy. timeline: what the lanes do and the memory, over time. pool: where "
     "each tensor lies, over the steps. map: of a sweep, what fits and how fast by batch and strategy.",
     parse_kind, offsetof(sn_args, kind)},
    {"live", NULL, 0, SN_CMD_PLOT, "What to print",
     "With --kind steps: live tensors too, dashed, on an axis of their own.", parse_switch,
     offsetof(sn_args, with_live)},
    {"table", "results|steps|peaks|tensors", 0, SN_CMD_EXPORT, "What to print",
     "Which table: a row per strategy (results, the default), per step and strategy, per tensor of each strategy's "
     "peak, per tensor of the network.",
     parse_text, offsetof(sn_args, table)},
    {"explain", NULL, 0, SN_CMD_FIT, "What to print",
     "The tensors that stop the next value for every strategy, not only for the best.", parse_switch,
     offsetof(sn_args, explain)},
    {"json", NULL, 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_REPRODUCE | SN_CMD_RUN | SN_CMD_VALIDATE |
         SN_CMD_CALIBRATE | SN_CMD_LIST | SN_CMD_SHOW | SN_CMD_DIFF | SN_CMD_PACK | SN_CMD_GRAPH | SN_CMD_MEMCOST,
     "What to print", "One JSON object instead of tables.", parse_switch, offsetof(sn_args, json)},
    {"csv", NULL, 0, SN_CMD_SWEEP | SN_CMD_SHOW, "What to print", "Of a sweep: every point as a line of CSV.",
     parse_switch, offsetof(sn_args, csv)},
    {"trace", "FILE", 0, SN_CMD_RUN | SN_CMD_VALIDATE, "What to print",
     "Writes what really happened in the last iteration of the one strategy asked for as trace events (docs/trace.md); "
     "- is standard output.",
     parse_text, offsetof(sn_args, trace)},
    {"plan", "FILE", 0, SN_CMD_SIMULATE, "What to print",
     "Writes the plan of the one strategy asked for as JSON; - puts it on standard output in place of the table.",
     parse_text, offsetof(sn_args, plan)},
    {"output", "FILE", 'o',
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE | SN_CMD_LIST |
         SN_CMD_SHOW | SN_CMD_DIFF | SN_CMD_EXPORT | SN_CMD_COMPLETIONS | SN_CMD_HELP | SN_CMD_MEMCOST,
     "What to print", "Writes to FILE instead of standard output.", parse_text, offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_PACK, "What to print",
     "Writes the blocks with their offsets as CSV; - puts them on standard output in place of the summary.", parse_text,
     offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_GRAPH, "What to print",
     "Writes to FILE instead of standard output: a graph for Graphviz where it ends in .dot, JSON where it ends in "
     ".json, else the table.",
     parse_text, offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_PLOT, "What to print",
     "The picture: FILE ends in .png, .svg or .pdf. Without it the picture is text in the terminal.", parse_text,
     offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_REPRODUCE, "What to print", "Also draws it: FILE ends in .png, .svg or .pdf.",
     parse_text, offsetof(sn_args, output)},
    {"output", "FILE", 'o', SN_CMD_REPORT | SN_CMD_TRACE, "What to print",
     "Where the page or trace goes; - is standard output.", parse_text, offsetof(sn_args, output)},
    {"man", NULL, 0, SN_CMD_HELP, "What to print", "The manual page, as roff: snsim help --man | man -l -.",
     parse_switch, offsetof(sn_args, man)},
    {"output", "FILE", 'o', SN_CMD_ADVISE, "What to print",
     "Also draws memory against time: every combination, and the front; FILE ends in .png, .svg or .pdf.", parse_text,
     offsetof(sn_args, output)},
    {"color", "auto|always|never", 0, SN_CMD_ALL, "What to print",
     "auto (default: on a terminal, unless NO_COLOR is set), always, never.", parse_color, offsetof(sn_args, color)},
    {"db", "FILE", 0,
     SN_CMD_SIMULATE | SN_CMD_FIT | SN_CMD_ADVISE | SN_CMD_SWEEP | SN_CMD_RUN | SN_CMD_VALIDATE | SN_CMD_CALIBRATE |
         SN_CMD_LIST | SN_CMD_SHOW | SN_CMD_PLOT | SN_CMD_REPORT | SN_CMD_TRACE | SN_CMD_DIFF | SN_CMD_EXPORT,
     "Stored runs", "The database, instead of $XDG_DATA_HOME/snsim/snsim.db (~/.local/share/snsim/snsim.db).",
     parse_text, offsetof(sn_args, db)},
    {"name", "TEXT", 0, SN_CMD_SIMULATE | SN_CMD_RUN | SN_CMD_VALIDATE, "Stored runs",
     "A name for the run, by which it can be asked for: snsim show TEXT. Of several of one name the newest is meant.",
     parse_text, offsetof(sn_args, name)},
    {"name", "TEXT", 0, SN_CMD_SHOW, "Stored runs", "Lists only runs with this in their name.", parse_text,
     offsetof(sn_args, name)},
    {"net", "NET|FILE", 0, SN_CMD_SHOW, "Stored runs", "Lists only runs with this in the name of their network.",
     parse_text, offsetof(sn_args, net)},
    {"gpu", "GPU", 0, SN_CMD_SHOW, "Stored runs", "Lists only runs on this GPU, by its name.", parse_gpu, 0},
    {"strategy", "S", 0, SN_CMD_SHOW, "Stored runs", "Lists only runs with this strategy.", parse_strategy, 0},
    {"delete", NULL, 0, SN_CMD_SHOW, "Stored runs", "Deletes the run or sweep instead of printing it.", parse_switch,
     offsetof(sn_args, remove)},
    {"no-db", NULL, 0, SN_CMD_SIMULATE | SN_CMD_RUN | SN_CMD_VALIDATE, "Stored runs",
     "Stores nothing. What was measured (`snsim calibrate`) is read all the same; --costs model leaves it out.",
     parse_switch, offsetof(sn_args, no_db)},
    {"no-db", NULL, 0, SN_CMD_SWEEP, "Stored runs", "Stores nothing.", parse_switch, offsetof(sn_args, no_db)},
    {"new", NULL, 0, SN_CMD_SWEEP, "Stored runs",
     "Begins a sweep of its own, where one of the same points would be gone on with.", parse_switch,
     offsetof(sn_args, fresh)},
    {"no-db", NULL, 0, SN_CMD_FIT | SN_CMD_ADVISE, "Stored runs",
     "Changes nothing: this command reads measured times (not with --costs model) and stores nothing.", parse_switch,
     offsetof(sn_args, no_db)},
    {"help", NULL, 'h', SN_CMD_ALL, "About", "Help on the command.", parse_switch, offsetof(sn_args, help)},
    {"version", NULL, 0, SN_CMD_ALL, "About", "The version of snsim.", parse_switch, offsetof(sn_args, version)},
};

const sn_option *sn_option_table(uint32_t *count) {
  *count = sizeof options / sizeof options[0];
  return options;
}
