/* `snsim fit`: how much fits. Checks what goes together and hands over to the question that was asked. */
#include "cli/capacity/fit.h"

#include "cli/frame/question.h"
#include "sim/capacity/fit.h"

#include <string.h>

/* What a question finds itself cannot be given. */
static sn_status refuse(bool given, const char *option, const char *question, const char *why, sn_err *err) {
  return given ? sn_fail(err, SN_BAD_USAGE, "%s cannot be combined with %s: %s", option, question, why) : SN_OK;
}

/* An epoch is of a batch that is known. */
static sn_status check_epoch(const sn_args *args, sn_err *err) {
  const char *question = args->max ? "--max" : "--min memory", *why = "ask it of --which gpu, or of snsim --net";
  if (sn_question_seeks_mesh(args)) question = "--min gpus";
  if (args->which) return SN_OK;
  if (refuse(args->samples > 0, "--samples", question, why, err) != SN_OK) return err->code;
  return refuse(args->price != NULL, "--price", question, why, err);
}

static sn_status check_max(const sn_args *args, sn_err *err) {
  bool batch = strcmp(args->max, "batch") == 0, image = strcmp(args->max, "image") == 0;
  bool sequence = strcmp(args->max, "sequence") == 0;
  const char *size = args->sequence ? "--sequence" : "--image";
  if (refuse(batch && args->batch, "--batch", "--max batch", "the batch is what is looked for", err) != SN_OK ||
      refuse(image && args->image, size, "--max image", "the image is what is looked for", err) != SN_OK ||
      refuse(sequence && args->image, size, "--max sequence", "the sequence is what is looked for", err) != SN_OK)
    return err->code;
  if (!batch && sn_args_is_source(args))
    return sn_fail(err, SN_BAD_USAGE,
                   "--max %s: a model in Python is recorded at one size; look for the largest batch with --max batch, "
                   "and record the model at another size",
                   args->max);
  if (!batch && !args->batch)
    return sn_fail(err, SN_BAD_USAGE, "--batch is missing; for instance: snsim fit --max %s --net %s --batch 16",
                   args->max, args->net);
  return SN_OK;
}

static sn_status check_gpus(const sn_args *args, sn_err *err) {
  if (refuse(args->explain, "--explain", "--min gpus", "ask it of one number, with snsim --net", err) != SN_OK)
    return err->code;
  if (args->options.iteration.inference)
    return sn_fail(err, SN_BAD_USAGE, "--min gpus is of training; leave --inference out");
  if (!args->batch)
    return sn_fail(err, SN_BAD_USAGE, "--batch is missing; for instance: snsim fit --min gpus --net %s --batch 1",
                   args->net);
  return SN_OK;
}

static sn_status check_min(const sn_args *args, sn_err *err) {
  if (sn_question_seeks_mesh(args)) return check_gpus(args, err);
  static const char question[] = "--min memory", why[] = "the memory is what is looked for";
  if (refuse(args->memory.given, "--memory", question, why, err) != SN_OK ||
      refuse(args->options.pool_bytes > 0, "--pool", question, why, err) != SN_OK ||
      refuse(args->margin_text != NULL, "--margin", question, "add it to the answer", err) != SN_OK)
    return err->code;
  if (!args->batch)
    return sn_fail(err, SN_BAD_USAGE, "--batch is missing; for instance: snsim fit --min memory --net %s --batch 16",
                   args->net);
  return SN_OK;
}

static sn_status check_which(const sn_args *args, sn_err *err) {
  if (refuse(args->memory.given, "--memory", "--which gpu", "every GPU has its own", err) != SN_OK ||
      refuse(args->costs == SN_COSTS_MEASURED, "--costs measured", "--which gpu", "most GPUs were not measured", err) !=
          SN_OK ||
      refuse(args->explain, "--explain", "--which gpu", "ask it of one GPU, with --max or --min", err) != SN_OK)
    return err->code;
  if (!args->batch)
    return sn_fail(err, SN_BAD_USAGE, "--batch is missing; for instance: snsim fit --which gpu --net %s --batch 16",
                   args->net);
  return SN_OK;
}

static sn_status check(const sn_args *args, sn_err *err) {
  int questions = !!args->max + !!args->min + !!args->which;
  if (questions != 1)
    return sn_fail(
        err, SN_BAD_USAGE,
        "%s of --max batch|depth|image|sequence, --min memory|gpus and --which gpu; snsim help fit tells more",
        questions ? "fit answers only one" : "fit needs one");
  if (!args->net)
    return sn_fail(err, SN_BAD_USAGE, "--net is missing; for instance: snsim fit --max batch --net resnet50");
  if (check_epoch(args, err) != SN_OK) return err->code;
  return args->max ? check_max(args, err) : args->min ? check_min(args, err) : check_which(args, err);
}

sn_status sn_cli_fit_check(const sn_args *args, sn_err *err) {
  sn_knob_kind kind;
  if (check(args, err) != SN_OK || (args->max && sn_knob_parse("--max", args->max, &kind, err) != SN_OK))
    return err->code;
  if (args->max && kind != SN_KNOB_BATCH)
    return sn_fail(err, SN_BAD_USAGE,
                   "--max %s: a recording has the depth and the sizes it was recorded with; look for the largest batch "
                   "with --max batch, and record the model at another size",
                   args->max);
  return sn_question_check(args, err);
}

sn_status sn_cli_fit(const sn_args *args, sn_err *err) {
  if (check(args, err) != SN_OK) return err->code;
  if (args->max) return sn_cli_fit_largest(args, err);
  if (!args->min) return sn_cli_fit_gpu(args, err);
  return sn_question_seeks_mesh(args) ? sn_cli_fit_gpus(args, err) : sn_cli_fit_memory(args, err);
}
