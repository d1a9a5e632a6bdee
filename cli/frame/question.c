/* From the command line to something the simulator can be asked. */
#include "cli/frame/question.h"

#include "base/units.h"
#include "cli/frame/stored.h"
#include "cli/options/out.h"
#include "models/net/globs.h"
#include "models/record/record_net.h"
#include "models/zoo/resolve.h"
#include "models/zoo/zoo.h"
#include "sim/parallel/shard.h"
#include "sim/parallel/times.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What cannot be a network at all is said first. */
static sn_status fail_batch(const char *net, sn_err *err) {
  const char *foreign = sn_args_source_name(net) != net ? NULL : sn_net_foreign(net);
  if (foreign) return sn_fail(err, SN_BAD_USAGE, "\"%.80s\": %s", net, foreign);
  if (sn_args_source_name(net) != net)
    return sn_fail(err, SN_BAD_USAGE,
                   "--batch is missing: add for instance --batch 32, or look for the largest that fits with snsim fit "
                   "--max batch");
  return sn_fail(err, SN_BAD_USAGE,
                 "--batch is missing; for instance: snsim --net %s --batch 32; the largest that fits: snsim fit --max "
                 "batch --net %s",
                 net, net);
}

static sn_status check_complete(const sn_args *args, sn_err *err) {
  if (!args->net)
    return sn_fail(err, SN_BAD_USAGE,
                   "--net is missing; for instance: snsim --net alexnet --batch 200; snsim help tells more");
  if (!args->batch) return fail_batch(args->net, err);
  if (args->plan && args->n_strategies != 1)
    return sn_fail(err, SN_BAD_USAGE, "--plan needs exactly one --strategy: a plan is of one strategy");
  bool to_file = args->output && strcmp(args->output, "-") != 0;
  if (args->plan && strcmp(args->plan, "-") == 0 && (args->json || args->steps || args->explain || to_file))
    return sn_fail(
        err, SN_BAD_USAGE,
        "--plan - writes the plan in place of the table and cannot be combined with --json, --steps, --explain and "
        "--output; --plan FILE can");
  return SN_OK;
}

sn_status sn_question_adapt(const sn_args *args, sn_device *device, uint64_t *margin_bytes, sn_err *err) {
  if (args->memory.given) {
    device->memory_bytes = args->memory.bytes;
    device->memory_nominal = false;
  }
  if (args->eager_modules) sn_device_load_eagerly(device);
  if (args->context.given) {
    device->context_bytes = device->library_context_bytes = args->context.bytes;
    device->library_context_seen[0] = 0;
    device->conv_context_bytes = device->kernel_bytes = 0;
  }
  if (args->host_memory.given) device->host_memory_bytes = args->host_memory.bytes;
  return sn_margin_take(args->margin, device, margin_bytes, err);
}

/* What becomes of a store that cannot be read. Where the answer is stored as well, storing fails for the same reason:
 * at once where the file was named, else behind the answer. */
static sn_status tell_unread(const sn_args *args, const sn_err *unread, sn_err *err) {
  bool stores = args->command->bit == SN_CMD_SIMULATE && !args->no_db;
  if (args->costs == SN_COSTS_MEASURED || (stores && args->db)) *err = *unread;
  if (err->code == SN_OK && !stores) sn_stored_say_unread(unread);
  return err->code;
}

static sn_status tell_cluster(const char *name, sn_err *err) {
  sn_cluster cluster;
  sn_err none = SN_ERR_INIT;
  if (err->code != SN_BAD_USAGE || sn_cluster_load(name, &cluster, &none) != SN_OK) return err->code;
  err->code = SN_OK; /* another error takes its place */
  return sn_fail(err, SN_BAD_USAGE,
                 "%s is a cluster: --cluster %s --parallel fsdp=%" PRIu32
                 " asks about it, --gpu %s about one of its GPUs",
                 cluster.name, cluster.name, sn_cluster_gpus(&cluster), cluster.gpu);
}

/* A name that is no GPU's may be that of a measured device, or a cluster's. */
static sn_status load_profile(const sn_args *args, sn_question *q, const sn_err *unread, sn_err *err) {
  if (q->calibration)
    q->device = q->calibration->profile;
  else if (sn_device_load(args->gpu, &q->device, err) == SN_BAD_USAGE && unread->code != SN_OK)
    *err = *unread;
  return tell_cluster(args->gpu, err);
}

/* As PyTorch starts, where it is asked about and nobody says otherwise; what was measured was so in float32. */
void sn_question_settle_precision(sn_question *q, const sn_net *net) {
  const sn_args *args = q->args;
  if (sn_args_gave(args, "precision") || sn_args_origin(args) != SN_NETS_OF_TORCHVISION || q->calibration) return;
  q->options.iteration.precision = sn_device_starts_in(&q->device, net);
}

static sn_status load_device(const sn_args *args, sn_question *q, sn_err *err) {
  sn_err unread = SN_ERR_INIT;
  q->calibration = sn_stored_costs(args, args->gpu, NULL, NULL, &unread);
  q->options.calibration = q->calibration;
  if (!q->calibration && unread.code == SN_OK && args->costs == SN_COSTS_MEASURED)
    return sn_fail(err, SN_BAD_USAGE,
                   "--costs measured: nothing was measured of %.60s yet; snsim calibrate does it on that machine",
                   args->gpu);
  if (load_profile(args, q, &unread, err) != SN_OK) {
    if (!args->profile) sn_err_prefix(err, "the GPU %s", args->gpu_why);
    return err->code;
  }
  if (unread.code != SN_OK && tell_unread(args, &unread, err) != SN_OK) return err->code;
  if (!args->which && sn_device_check_precision(&q->device, args->options.iteration.precision, err) != SN_OK)
    return err->code;
  if (!args->which && sn_device_emulates(&q->device, args->options.iteration.precision))
    sn_out_say("%s: %s has no tensor cores for it: the bytes are right, the times, at fp32's rate, are a guess",
               sn_iteration_precision_name(args->options.iteration), q->device.name);
  sn_question_settle_precision(q, NULL);
  return sn_question_adapt(args, &q->device, &q->margin_bytes, err);
}

bool sn_question_seeks_mesh(const sn_args *args) {
  return args->gpus > 0 || (args->min && strcmp(args->min, "gpus") == 0);
}

static sn_status settle_nodes(const sn_args *args, sn_cluster *asked, sn_err *err) {
  if (!args->nodes) return SN_OK;
  if (*asked->name) return sn_cluster_set_nodes(asked, args->nodes, err);
  return sn_fail(err, SN_BAD_USAGE,
                 "--nodes %" PRIu64 ": of which cluster? Add --cluster, with a name of snsim list clusters or a file",
                 args->nodes);
}

static sn_status settle_sought(const sn_args *args, sn_question *q, sn_err *err) {
  q->options.iteration.mesh = (sn_mesh){0};
  return settle_nodes(args, &q->options.cluster, err);
}

/* Where the GPUs of --parallel are. */
static sn_status settle_cluster(const sn_args *args, sn_question *q, sn_err *err) {
  sn_cluster *asked = &q->options.cluster;
  const sn_mesh *mesh = &args->options.iteration.mesh;
  if (sn_question_seeks_mesh(args)) return settle_sought(args, q, err);
  if (mesh->sought) return sn_mesh_parse(mesh->text, &q->options.iteration.mesh, err); /* which says what to say */
  const char *refused = sn_shard_refuses(q->options.iteration);
  if (refused) return sn_fail(err, SN_BAD_USAGE, "%s", refused);
  if (args->plan && strcmp(args->plan, "-") == 0 && sn_mesh_size(mesh, SN_MESH_PP) > 1)
    return sn_fail(err, SN_BAD_USAGE,
                   "--plan -: each stage of a pipeline has a plan of its own; say a file, of whose "
                   "name --plan plan.json makes plan.0.json, plan.1.json, ..");
  const char *command = args->command->name;
  bool staged =
      strcmp(command, "simulate") == 0 || strcmp(command, "advise") == 0 || args->max || args->min || args->which;
  if (sn_mesh_size(mesh, SN_MESH_PP) > 1 && !staged)
    return sn_fail(err, SN_BAD_USAGE,
                   "--parallel %s: %s does not look at pipelines; ask for one with snsim --net %s --parallel %s, or "
                   "leave pp out",
                   mesh->text, command, args->net ? args->net : "NAME", mesh->text);
  uint32_t world = sn_mesh_world(mesh);
  if (sn_mesh_is_one(mesh)) {
    if (!*asked->name && !args->nodes) return SN_OK;
    return sn_fail(err, SN_BAD_USAGE, "--%s says where several GPUs are, and one was asked for; add --parallel fsdp=8",
                   *asked->name ? "cluster" : "nodes");
  }
  if (settle_nodes(args, asked, err) != SN_OK) return err->code;
  if (args->nodes && sn_cluster_gpus(asked) != world)
    return sn_fail(err, SN_BAD_USAGE, "--parallel %s takes %u GPUs, and %" PRIu64 " node%s of %s %s %u; say --nodes %u",
                   mesh->text, world, args->nodes, args->nodes == 1 ? "" : "s", asked->name,
                   args->nodes == 1 ? "has" : "have", sn_cluster_gpus(asked),
                   (world + asked->gpus_per_node - 1) / asked->gpus_per_node);
  if (sn_mesh_cluster(mesh, asked, &q->device, &q->cluster, &q->assumed, err) == SN_OK)
    q->device.host_shares = sn_mesh_node_gpus(mesh, &q->cluster);
  return err->code;
}

/* Behind the device, which may have a name of the user's own. */
static sn_status load_prices(const sn_args *args, sn_question *q, sn_err *err) {
  q->epoch.samples = args->samples;
  if (!args->price) return SN_OK;
  if (!args->samples)
    return sn_fail(err, SN_BAD_USAGE,
                   "--price: what an epoch costs needs --samples N, how many samples it has; of ImageNet --samples "
                   "1281167");
  q->epoch.file = args->price;
  q->epoch.prices = sn_prices_load(args->price, q->device.name, err);
  return err->code;
}

void sn_question_add(sn_question *q, sn_strategy strategy) {
  if (!sn_strategy_refuses(strategy, q->options.iteration)) q->strategies[q->n_strategies++] = strategy;
}

bool sn_question_asks_pytorch(const sn_question *q) {
  for (uint32_t i = 0; i < q->n_strategies; i++)
    if (sn_dialect_of(q->strategies[i].dialect)->eager) return true;
  return false;
}

bool sn_question_is_of_pytorch(const sn_args *args) {
  return sn_precision_is_amp(args->options.iteration.precision) || *args->freeze ||
         !sn_mesh_is_one(&args->options.iteration.mesh) || sn_question_seeks_mesh(args) ||
         (args->net && sn_net_lora(args->net));
}

/* Those that are named, else the runtime's. */
static void choose_strategies(const sn_args *args, sn_question *q) {
  q->n_strategies = 0;
  for (uint32_t i = 0; i < args->n_strategies; i++) sn_question_add(q, args->strategies[i]);
  if (args->n_strategies > 0) return;
  sn_iteration iteration = q->options.iteration;
  if (args->net && sn_net_lora(args->net)) iteration.freeze = "*"; /* adapters: all others train all */
  bool both = args->runtime == SN_RUNTIME_DEFAULT && args->command->bit == SN_CMD_SIMULATE; /* one runtime elsewhere */
  sn_runtime runtime = args->runtime == SN_RUNTIME_DEFAULT && !both ? SN_RUNTIME_PYTORCH : args->runtime;
  q->n_strategies = sn_runtime_strategies(runtime, iteration, q->strategies);
}

void sn_question_drop_alike(sn_question *q, const sn_net *net) {
  uint32_t kept = 0;
  if (!net->recorded || net->recorded->backwards < 2 || q->args->n_strategies > 0) return;
  for (uint32_t i = 0; i < q->n_strategies; i++) {
    const sn_strategy s = q->strategies[i];
    bool stays = s.offload == SN_OFFLOAD_NONE || s.offload == SN_OFFLOAD_CACHE;
    if (s.recompute == SN_RECOMPUTE_NONE && stays) q->strategies[kept++] = s;
  }
  if (kept > 0) q->n_strategies = kept;
}

sn_status sn_question_check_corun(const sn_args *args, sn_err *err) {
  const sn_corun_options plain = SN_CORUN_INIT, *asked = &args->options.corun;
  const char *option = asked->budget_bytes != plain.budget_bytes ? "--budget"
                       : asked->reuse != plain.reuse             ? "--sharing"
                       : asked->interval != plain.interval       ? "--interval"
                                                                 : NULL;
  for (uint32_t i = 0; i < args->n_strategies; i++)
    if (sn_strategy_is_corun(args->strategies[i])) return SN_OK;
  if (!option || args->command->bit == SN_CMD_THREADS) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "%s is of strategies that run operations side by side, and none is asked for; add --strategy "
                 "liveness+corun=path, or leave it out",
                 option);
}

/* All that are named go with what is asked of the iteration by an option; `other`: what to try. */
static sn_status check_strategies(const sn_args *args, sn_iteration asked, const char *option, const char *other,
                                  sn_err *err) {
  char name[SN_STRATEGY_TEXT];
  for (uint32_t i = 0; i < args->n_strategies; i++) {
    const char *why = sn_strategy_refuses(args->strategies[i], asked);
    if (why)
      return sn_fail(err, SN_BAD_USAGE, "--strategy %s cannot be combined with %s: %s; try %s",
                     sn_strategy_name(args->strategies[i], name), option, why, other);
  }
  return SN_OK;
}

sn_status sn_question_check_freeze(const sn_args *args, sn_err *err) {
  bool lora = args->net && sn_net_lora(args->net);
  const sn_iteration asked = {.freeze = lora ? "*" : args->freeze};
  if (*args->freeze && args->options.iteration.inference)
    return sn_fail(err, SN_BAD_USAGE,
                   "--freeze cannot be combined with --inference, which trains nothing; leave one out");
  return check_strategies(args, asked, lora ? "--lora" : "--freeze", "--strategy pytorch", err);
}

static sn_status check_precision(const sn_args *args, sn_err *err) {
  char option[40];
  const sn_iteration *given = &args->options.iteration,
                     asked = {.precision = given->precision, .master = given->master};
  snprintf(option, sizeof option, "--precision %s", sn_iteration_precision_name(asked));
  return check_strategies(args, asked, option, "--strategy pytorch", err);
}

static sn_status check_mesh(const sn_args *args, sn_err *err) {
  const sn_iteration asked = {.mesh = args->options.iteration.mesh};
  bool again = asked.mesh.schedule != SN_SCHEDULE_ZB_H1;
  const char *other = again ? "--strategy pytorch or pytorch+recompute=units" : "--strategy pytorch";
  return check_strategies(args, asked, "--parallel", other, err);
}

/* What of the loop a recording has already; of a model in Python what does not go into its recording. */
static sn_status check_recording(const sn_args *args, sn_err *err) {
  bool source = sn_args_is_source(args);
  const char *given = source                              ? NULL
                      : sn_args_gave(args, "optimizer")   ? "optimizer"
                      : sn_args_gave(args, "precision")   ? "precision"
                      : args->options.iteration.inference ? "inference"
                                                          : NULL;
  if (args->options.iteration.accumulate > 1) given = "accumulate";
  if (*args->freeze) given = "freeze";
  if (source && args->image)
    return sn_fail(err, SN_BAD_USAGE, "--%s: a model in Python is recorded with the sizes that --input names",
                   args->sequence ? "sequence" : "image");
  if (source && args->lora)
    return sn_fail(err, SN_BAD_USAGE, "--lora: a model in Python has its own adapters; build it with them");
  if (!given || !args->net || (!source && !sn_net_is_recording(args->net))) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "--%s: a recording has the loop it was recorded with; leave it out, or record it so", given);
}

/* What cannot be asked for together. */
static sn_status check_iteration(const sn_args *args, sn_err *err) {
  const sn_iteration asked = {.accumulate = args->options.iteration.accumulate,
                              .inference = args->options.iteration.inference};
  const char *option = args->options.iteration.inference ? "--inference" : "--accumulate";
  if (args->options.iteration.inference && args->options.iteration.accumulate > 1)
    return sn_fail(err, SN_BAD_USAGE,
                   "--accumulate cannot be combined with --inference, which updates nothing; leave one out");
  if (check_recording(args, err) != SN_OK || check_precision(args, err) != SN_OK ||
      sn_question_check_freeze(args, err) != SN_OK || check_mesh(args, err) != SN_OK)
    return err->code;
  return check_strategies(args, asked, option, "baseline, liveness, pytorch or explicit", err);
}

/* Small questions are answered before anybody could read it. */
static void show_plans(void *watcher) {
  enum { SHOWN = 200000 }; /* layers planned */
  sn_question *q = watcher;
  char line[80];
  q->plans++;
  if (q->net && (uint64_t)q->plans * q->net->n_layers < SHOWN) return;
  snprintf(line, sizeof line, "planning ... %" PRIu32 " plans made and checked", q->plans);
  sn_out_progress(line);
  q->shown = true;
}

sn_status sn_question_open(const sn_args *args, sn_question *question, sn_err *err) {
  *question = (sn_question){.args = args, .options = args->options};
  if (check_iteration(args, err) != SN_OK || sn_question_check_corun(args, err) != SN_OK) return err->code;
  question->options.planned = show_plans;
  question->options.watcher = question;
  question->options.iteration.freeze = args->freeze;
  if (load_device(args, question, err) != SN_OK || settle_cluster(args, question, err) != SN_OK ||
      load_prices(args, question, err) != SN_OK) {
    sn_question_free(question);
    return err->code;
  }
  if (question->calibration && question->calibration->shared_link) question->options.shared_link = true;
  choose_strategies(args, question);
  return SN_OK;
}

/* The first layer whose parameters differ; NULL: none, or the networks are not of the same layers. */
static const sn_layer *find_other(const sn_net *net, const sn_net *own) {
  for (uint32_t i = 0; net->n_layers == own->n_layers && i < net->n_layers; i++)
    if (net->layers[i].parameters != own->layers[i].parameters) return &net->layers[i];
  return NULL;
}

static void tell_image(const sn_net *net, const sn_net *own) {
  char here[SN_UNIT_TEXT], there[SN_UNIT_TEXT], image[SN_IMAGE_TEXT];
  const sn_layer *other = find_other(net, own);
  if (other)
    sn_out_say("--image %s"
               " changes the network: %.80s sees the whole image; %s parameters in all, not the %s of "
               "%" PRIu32 "x%" PRIu32,
               sn_image_text(sn_net_image(net, sn_layer_rows(&net->layers[0]), net->layers[0].out.w), image),
               other->name, sn_print_count(net->parameters, here), sn_print_count(own->parameters, there),
               sn_layer_rows(&own->layers[0]), own->layers[0].out.w);
}

sn_net *sn_question_net(const sn_args *args, sn_err *err) {
  sn_err reason = SN_ERR_INIT; /* a family that can be built at one size and not at its own is not compared */
  sn_net *net = sn_net_load(args->net, args->batch, args->image, err);
  bool tokens = net && net->values[0].dtype == SN_I64;
  if (net && args->image && tokens != (args->sequence > 0)) {
    sn_fail(err, SN_BAD_USAGE,
            tokens ? "--image: %.80s reads sequences of tokens; give --sequence"
                   : "--sequence: %.80s reads images; give --image",
            args->net);
    sn_net_free(net);
    return NULL;
  }
  if (net && (sn_net_check_training(net, args->options.iteration.inference, err) != SN_OK ||
              sn_freeze_check(args->freeze, net, err) != SN_OK)) {
    sn_net_free(net);
    return NULL;
  }
  sn_net *own = net && args->image && !tokens ? sn_net_load(args->net, 1, 0, &reason) : NULL;
  if (own) tell_image(net, own);
  sn_net_free(own);
  return net;
}

sn_status sn_question_check(const sn_args *args, sn_err *err) {
  sn_question question;
  if (args->units && sn_globs_check_text("--units", args->units, err) != SN_OK) return err->code;
  if (sn_question_open(args, &question, err) == SN_OK) sn_question_free(&question);
  return err->code;
}

sn_status sn_question_check_complete(const sn_args *args, sn_err *err) {
  return check_complete(args, err) == SN_OK ? sn_question_check(args, err) : err->code;
}

sn_status sn_question_load(const sn_args *args, sn_question *question, sn_err *err) {
  if (check_complete(args, err) != SN_OK || sn_question_open(args, question, err) != SN_OK) return err->code;
  question->net = sn_question_net(args, err);
  if (question->net) {
    sn_question_settle_precision(question, question->net);
    sn_question_drop_alike(question, question->net);
  } else {
    sn_question_free(question);
  }
  return err->code;
}

void sn_question_free(sn_question *question) {
  sn_net_free(question->net);
  sn_calibration_free(question->calibration);
  sn_prices_free(question->epoch.prices);
  question->net = NULL;
  question->calibration = NULL;
  question->epoch.prices = NULL;
}
