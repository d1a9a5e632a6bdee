/* Calls: the lines of Python that make a strategy, a number of parts, a precision or an optimizer of a training loop in
 * PyTorch, with the modules of the user's model by name (models/net/modules.h).
 *
 *   for block in model.encoder.layers[:6]:                          pytorch+recompute=units:12 of vit_b_16
 *       block.forward = partial(checkpoint, block.forward, use_reentrant=False)
 *   model.gradient_checkpointing_enable()                           of transformers' models
 *   with torch.autograd.graph.save_on_cpu(pin_memory=True):         pytorch+offload
 *   for x, y in parts: (loss(model(x), y) / 2).backward()           two parts
 *   model = peft.get_peft_model(model, config, ..)                  adapters of transformers' models
 *   for block in model.layers:                                      --parallel fsdp=8, behind checkpoints and ahead of
 *       fully_shard(block, mp_policy=policy)                        the optimizer, whose parameters are the shards
 *   model = DistributedDataParallel(model)                          --parallel dp=8
 *   parallelize_module(model, mesh["tp"], {..})                     --parallel tp=8, ahead of both
 *   pipe = pipeline(model, mb_args=(x,), split_spec=split)          --parallel pp=4
 *
 * Which blocks are checkpointed is read off the plan: those of which more than half is run again. A unit
 * (sim/schedule/units.h) that is half a block is told as the block. What is run again outside of all blocks, and networks
 * that are nobody's modules, are told by the names of layers, in comments; units whose layers are named alike but for
 * numbers are one line.
 */
#ifndef SN_SIM_CAPACITY_CALLS_H
#define SN_SIM_CAPACITY_CALLS_H

#include "base/arena.h"
#include "base/err.h"
#include "sim/capacity/remedy.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_calls_wish {
  sn_strategy strategy;
  uint64_t memory_bytes; /* that recompute=optimal is planned for */
  uint32_t parts;        /* batches of an update; 0 and 1: one */
  bool precision;        /* lines for asked->options->iteration.precision, */
  bool optimizer;        /* and its optimizer, too */
  bool mesh;             /* and for how several GPUs share it */
  uint32_t rank;         /* of adapters to be put in (models/build/lora.h); 0: none */
  bool nf4;              /* and lines for weights of 4 bits behind them */
} sn_calls_wish;

typedef struct sn_calls {
  uint32_t count;
  const char *const *lines; /* none where there is nothing to change; code is at most 80 columns wide */
  uint32_t chosen, units;   /* blocks that are checkpointed, of so many; of a network without blocks, units */
  sn_arena *arena;
} sn_calls;

/* asked->net, device and options are looked at. */
sn_calls *sn_calls_of(const sn_asked *asked, const sn_calls_wish *wish, sn_err *err);
void sn_calls_free(sn_calls *calls);

#endif
