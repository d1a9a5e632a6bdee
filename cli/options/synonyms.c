/* Words of PyTorch, its trainers and its users for what is an option or a command here; see the header. One pass over
 * a table. */
#include "cli/options/synonyms.h"

#include "base/text.h"
#include "models/zoo/resolve.h"
#include "sim/device/device.h"

#include <stdio.h>
#include <string.h>

/* Options first, of which the first that the command takes is meant; else what another command does. */
static const struct {
  const char *typed; /* parted by blanks */
  const char *options[3];
  const char *command;
  const char *reason; /* why neither helps */
} options[] = {
    {"net nets m model models network arch architecture model-name model-name-or-path", {"net", "nets"}, NULL, NULL},
    {"batch batches bs b batch-size batchsize train-batch-size per-device-train-batch-size micro-batch mbs "
     "micro-batch-size per-gpu-batch-size images-per-gpu",
     {"batch", "batches"},
     NULL,
     NULL},
    {"sequence sequences seq seqlen seq-len seq-length sequence-length max-seq-len max-seq-length max-length "
     "context-length ctx n-ctx block-size cutoff-len tokens",
     {"sequence", "sequences"},
     NULL,
     NULL},
    {"img imgsz img-size image-size input-size crop-size resolution height width size",
     {"image", "images"},
     NULL,
     NULL},
    {"images", {"images", "image", "batch"}, NULL, NULL},
    {"gpu gpus card cards graphics-card accelerator", {"gpu", "gpus"}, NULL, NULL},
    {"device", {"gpu", "gpus", "backend"}, NULL, NULL},
    {"memory memories vram mem gpu-memory gpu-mem device-memory max-memory", {"memory", "memories"}, NULL, NULL},
    {"dataset-size num-samples train-samples epoch-size samples-per-epoch epoch", {"samples"}, NULL, NULL},
    {"prices pricing hourly", {"price"}, NULL, NULL},
    {"ram cpu-memory host-mem host-ram", {"host-memory"}, NULL, NULL},
    {"precision precisions dtype torch-dtype data-type", {"precision", "precisions"}, NULL, NULL},
    {"amp autocast mixed mixed-precision use-amp bf16 bfloat16",
     {"precision amp-bf16", "precisions amp-bf16"},
     NULL,
     NULL},
    {"fp16 float16 half", {"precision amp-fp16", "precisions amp-fp16"}, NULL, NULL},
    {"fp32 float32 full", {"precision fp32", "precisions fp32"}, NULL, NULL},
    {"tf32", {"precision tf32", "precisions tf32"}, NULL, NULL},
    {"optimizer optimizers optim opt optimiser", {"optimizer", "optimizers"}, NULL, NULL},
    {"accumulate accumulates accum grad-accum gradient-accumulation gradient-accumulation-steps accumulation-steps "
     "accumulate-grad-batches grad-accum-steps",
     {"accumulate", "accumulates"},
     NULL,
     NULL},
    {"checkpoint checkpoints checkpointing gradient-checkpointing activation-checkpointing grad-checkpointing "
     "use-checkpoint ckpt recompute remat rematerialization",
     {"strategy pytorch+recompute=units"},
     NULL,
     NULL},
    {"offload cpu-offload offloading save-on-cpu", {"strategy pytorch+offload"}, NULL, NULL},
    {"strategies method technique", {"strategy"}, NULL, NULL},
    {"framework runtime", {"for", "dialect"}, NULL, NULL},
    {"rank lora-rank lora-r adapters peft", {"lora"}, NULL, NULL},
    {"qlora load-in-4bit 4bit int4 nf4 bnb-4bit-quant-type", {"lora 16 --quantize nf4"}, NULL, NULL},
    {"freeze-layers frozen freezing", {"freeze"}, NULL, NULL},
    {"loss-fp32 fp32-loss", {"loss cross_entropy_fp32"}, NULL, NULL},
    {"criterion loss-fn loss-function", {"loss"}, NULL, NULL},
    {"eval no-grad infer predict", {"inference"}, NULL, NULL},
    {"pool pools pool-size", {"pool", "pools"}, NULL, NULL},
    {"workspace workspaces cudnn-workspace workspace-limit", {"workspace", "workspaces"}, NULL, NULL},
    {"allocator allocators alloc", {"allocator", "allocators"}, NULL, NULL},
    {"external externals", {"external", "externals"}, NULL, NULL},
    {"cuda-context overhead", {"context"}, NULL, NULL},
    {"out output-file save o", {"output"}, NULL, NULL},
    {"database sqlite", {"db"}, NULL, NULL},
    {"verbose v details why", {"explain"}, NULL, NULL},
    {"format as-json", {"json"}, NULL, NULL},
    {"workers num-workers processes", {"jobs"}, NULL, "how data are loaded takes none of the GPU's memory"},
    {"max-batch max-batch-size maximum-batch maximum-batch-size largest-batch find-batch auto-batch auto-batch-size",
     {"max batch"},
     "fit --max batch",
     NULL},
    {"max-image max-resolution largest-image", {"max image"}, "fit --max image", NULL},
    {"max-sequence max-seq max-tokens longest-sequence", {"max sequence"}, "fit --max sequence", NULL},
    {"max-depth depth max-layers", {"max depth"}, "fit --max depth", NULL},
    {"min-memory least-memory minimum-memory", {"min memory"}, "fit --min memory", NULL},
    {"which-gpu best-gpu what-gpu", {"which gpu"}, "fit --which gpu", NULL},
    {"epochs steps-per-epoch max-steps num-epochs n-epochs",
     {"iterations"},
     NULL,
     "every iteration takes the same memory and time"},
    {"lr learning-rate", {"learning-rate"}, NULL, "it changes neither memory nor time"},
    {"wd weight-decay decay", {"weight-decay"}, NULL, "it changes neither memory nor time"},
    {"momentum mom beta1 betas", {"momentum"}, NULL, "it changes neither memory nor time"},
    {"seed manual-seed", {"seed"}, NULL, "it changes neither memory nor time"},
    {"layers num-layers n-layers n-layer hidden hidden-size n-embd d-model heads num-heads ffn vocab-size",
     {NULL},
     NULL,
     "sizes stand in the network's name: --net gpt2:layers=12,hidden=768"},
    {"hf config", {NULL}, NULL, "snsim record --config FILE -o mine.rec makes what --net takes"},
    {"compile torch-compile", {NULL}, NULL, "the loop runs as it is written, which torch.compile changes"},
    {"attn attention attn-implementation flash-attention flash-attn sdpa use-flash-attn",
     {NULL},
     NULL,
     "attention is one kernel, but where docs/networks.md says otherwise"},
    {"num-gpus n-gpus ngpu ngpus world-size nproc nproc-per-node fsdp fully-shard",
     {"parallel fsdp=8"},
     NULL,
     "one GPU is asked about"},
    {"ddp dp data-parallel distributed", {"parallel dp=8"}, NULL, "one GPU is asked about"},
    {"num-nodes nnodes n-nodes", {"nodes"}, NULL, "one GPU is asked about"},
    {"min-gpus least-gpus fewest-gpus how-many-gpus", {"min gpus"}, "fit --min gpus", NULL},
    {"hsdp", {"parallel dp=2,fsdp=4"}, NULL, "one GPU is asked about"},
    {"zero zero-stage deepspeed", {"parallel dp=8,zero=2"}, NULL, "one GPU is asked about"},
    {"tp tensor-parallel tensor-parallel-size tensor-model-parallel-size",
     {"parallel tp=8"},
     NULL,
     "one GPU is asked about"},
    {"pp pipeline-parallel pipeline-parallel-size pipeline-model-parallel-size",
     {"parallel pp=8"},
     NULL,
     "one GPU is asked about"},
};

static const struct {
  const char *typed, *command;
} commands[] = {
    {"predict estimate sim mem memory vram check-memory will-it-fit", "simulate"},
    {"explain why where", "simulate --explain"},
    {"max max-batch largest largest-batch find-batch", "fit --max batch"},
    {"min min-memory", "fit --min memory"},
    {"which which-gpu", "fit --which gpu"},
    {"recommend optimize optimise suggest tune", "advise"},
    {"train execute", "run"},
    {"bench benchmark measure verify", "validate"},
    {"grid scan", "sweep"},
    {"draw picture chart", "plot"},
    {"html page dashboard", "report"},
    {"profile timeline chrome perfetto", "trace"},
    {"compare", "diff"},
    {"ls history runs stored", "show"},
    {"sweeps", "show sweeps"},
    {"models nets networks zoo model net", "list nets"},
    {"gpus gpu devices cards device", "list gpus"},
    {"clusters cluster nodes servers", "list clusters"},
    {"strategies strategy methods", "list strategies"},
    {"summary layers inspect describe", "show-net"},
    {"paper figures", "reproduce"},
    {"man manual", "help --man"},
    {"usage options commands", "help"},
    {"version about", "--version"},
    {"completion complete", "completions"},
};

/* Whether `words`, parted by blanks, hold `word`. */
static bool holds(const char *words, const char *word) {
  char one[40];
  for (size_t length; *words; words += length + strspn(words + length, " ")) {
    length = strcspn(words, " ");
    snprintf(one, sizeof one, "%.*s", (int)length, words);
    if (sn_text_same(word, one)) return true;
  }
  return false;
}

/* Whether the command takes the option that `text`, "precision amp-bf16", begins with. */
static bool takes(const sn_command *command, const char *text) {
  uint32_t count;
  const sn_option *all = sn_option_table(&count);
  size_t length = strcspn(text, " ");
  for (uint32_t i = 0; i < count; i++)
    if (strlen(all[i].name) == length && strncmp(all[i].name, text, length) == 0 && sn_option_belongs(&all[i], command))
      return true;
  return false;
}

char *sn_synonym_option(const char *name, const sn_command *command, char *out, size_t room) {
  size_t row = 0, count = sizeof options / sizeof options[0];
  while (row < count && !holds(options[row].typed, name)) row++;
  out[0] = '\0';
  if (row == count) return out;
  for (size_t i = 0; i < 3 && options[row].options[i]; i++)
    if (takes(command, options[row].options[i])) {
      snprintf(out, room, " (did you mean --%s?)", options[row].options[i]);
      return out;
    }
  if (options[row].command)
    snprintf(out, room, " (did you mean snsim %s?)", options[row].command);
  else if (options[row].reason)
    snprintf(out, room, ": %s; leave it out", options[row].reason);
  return out;
}

/* The name of a device stands on the list of them, or ends in ".json" as any file. */
static bool is_gpu(const char *name) {
  sn_err reason = SN_ERR_INIT;
  sn_device device;
  return !strchr(name, '.') && !strchr(name, '/') && sn_device_load(name, &device, &reason) == SN_OK;
}

char *sn_synonym_command(const char *name, char *out, size_t room) {
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    if (holds(commands[i].typed, name)) {
      snprintf(out, room, " (did you mean snsim %s?)", commands[i].command);
      return out;
    }
  const char *foreign = sn_net_foreign(name);
  char net[SN_NET_SPEC];
  sn_err reason = SN_ERR_INIT;
  if (foreign)
    snprintf(out, room, ": %s", foreign);
  else if (sn_net_is_known(name) && sn_net_resolve(name, SN_NETS_OF_PAPERS, net, &reason) != SN_OK)
    snprintf(out, room, ": %s", reason.text);
  else if (sn_net_is_known(name) && !strchr(name, ' '))
    snprintf(out, room, "; a network is given as --net %.80s", name);
  else if (is_gpu(name))
    snprintf(out, room, "; a GPU is given as --gpu %.80s", name);
  else
    out[0] = '\0';
  return out;
}
