"""Meshes of bench/pytorch_parallel.py: what `--parallel` names, as snsim's option of that name, and PyTorch's calls for it on process
groups that talk to nobody. One rank is here; the others are numbers."""
import functools

import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

WHOLE = {"dp", "fsdp", "tp", "prefetch"}  # numbers from 1
WORDS = {"view": ("yes", "no"), "keep-last": ("yes", "no"), "sync": ("last", "each"), "reduce": ("fp32", "bf16"),
         "loss": ("split", "whole"), "gathered": ("kept",), "sequence": ("split", "whole")}


class Mesh:
    """What a text of keys asks for. ValueError says what is wrong with it."""

    def __init__(self, text):
        self.text, self.keys = text, {}
        for word in text.split(","):
            key, _, value = word.partition("=")
            if key in self.keys:
                raise ValueError(f"--parallel {text}: {key} is given twice")
            if key == "reshard":
                good = value in ("yes", "no") or (value.isdigit() and int(value) > 1)
            else:
                good = value in WORDS.get(key, ()) or (key in WHOLE and value.isdigit() and int(value) > 0) or key == "bucket"
            if not good:
                raise ValueError(f"--parallel {text}: \"{word}\" is nothing that is measured here")
            self.keys[key] = value
        self.dp, self.shards, self.tp, self.prefetch = (int(self.keys.get(key, 1)) for key in ("dp", "fsdp", "tp", "prefetch"))
        if self.tp > 1 and self.dp > 1:
            raise ValueError(f"--parallel {text}: tp is measured alone and with fsdp")

    @property
    def world(self):
        return self.dp * self.shards * self.tp

    @property
    def sharded(self):
        return "fsdp" in self.keys

    @property
    def replicated(self):
        """DistributedDataParallel."""
        return self.dp > 1 and not self.sharded

    @property
    def splits_sequence(self):
        return self.keys.get("sequence") != "whole"

    @property
    def splits_loss(self):
        return self.tp > 1 and self.keys.get("loss") != "whole"

    @property
    def real(self):
        """On real tensors: trackers count fake ones of tensor parallel modules wrongly, and DDP's reducer takes none."""
        return self.tp > 1 or self.replicated


def open_groups(mesh, on_gpu=False):
    """Returns the ranks as PyTorch has them, made of tensors with values. DDP's memory does not depend on the world's size, and its reducer
    not work with a group that answers nothing: where tensors have values it has a group of one rank that does."""
    if mesh.replicated and not on_gpu:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        return None
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=mesh.world)
    if not mesh.sharded and mesh.tp == 1:
        return None
    sizes = {"dp": mesh.dp, "fsdp": mesh.shards, "tp": mesh.tp}
    names = [name for name, size in sizes.items() if size > 1 or name == "fsdp"]
    return init_device_mesh("cpu", tuple(sizes[name] for name in names), mesh_dim_names=tuple(names))


def let_groups_be_made():
    """fully_shard makes groups of a reshard to fewer ranks, by tensors that must have values."""
    from torch.distributed.fsdp._fully_shard import _fully_shard as module
    made = module._get_post_forward_mesh_info

    def with_values(*args, **kwargs):
        with unset_fake_temporarily():
            return made(*args, **kwargs)
    module._get_post_forward_mesh_info = with_values


def shard(net, mesh, of_ranks, low):
    """fully_shard of each block, then of the rest. `low`: computed in bfloat16."""
    policy = MixedPrecisionPolicy()
    if low:
        reduced = torch.bfloat16 if mesh.keys.get("reduce") == "bf16" else torch.float32
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduced)
    word = mesh.keys.get("reshard")
    after = {None: True, "yes": True, "no": False}.get(word)
    after = int(word) if after is None else after
    let_groups_be_made()
    for block in net.blocks:
        kept = mesh.keys.get("keep-last") == "yes" and block is net.blocks[-1]
        fully_shard(block, mesh=of_ranks, mp_policy=policy, reshard_after_forward=after and not kept)
    root = {} if word in (None, "yes") else {"reshard_after_forward": after}
    fully_shard(net.module, mesh=of_ranks, mp_policy=policy, **root)
    if mesh.prefetch > 1:
        for i, block in enumerate(net.blocks):
            block.set_modules_to_forward_prefetch(net.blocks[i + 1:i + 1 + mesh.prefetch])
            block.set_modules_to_backward_prefetch(net.blocks[max(0, i - mesh.prefetch):i][::-1])


def split(net, of_ranks, splits_loss):
    """Column and row parallel with sequence parallel, as torchtitan has it."""
    gather = {"input_layouts": (Shard(1),), "desired_input_layouts": (Replicate(),)}
    columns = {name: ColwiseParallel() for name in
               ("attention.wq", "attention.wk", "attention.wv", "feed_forward.w1", "feed_forward.w3")}
    rows = {name: RowwiseParallel(output_layouts=Shard(1)) for name in ("attention.wo", "feed_forward.w2")}
    between = {"attention_norm": SequenceParallel(), "ffn_norm": SequenceParallel(),
               "attention": PrepareModuleInput(**gather), "feed_forward": PrepareModuleInput(**gather)}
    for block in net.blocks:
        parallelize_module(block, of_ranks, columns | rows | between)
    around = {"tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(),
              "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1) if splits_loss else Replicate(),
                                        use_local_output=not splits_loss)}
    parallelize_module(net.module, of_ranks, {name: how for name, how in around.items() if hasattr(net.module, name)})


def lay_out_by_rank(net, ranks):
    """Phi-3's products of several things: the rows of each so that a rank's part has its heads' queries, keys and values, and its features of
    gate and up; then its modules cut what they have by what they are told is theirs."""
    of = net.module.config
    head, heads, keys = of.hidden_size // of.num_attention_heads, of.num_attention_heads, of.num_key_value_heads
    for block in net.blocks:
        for product, sizes in ((block.self_attn.qkv_proj, (heads * head, keys * head, keys * head)),
                               (block.mlp.gate_up_proj, (of.intermediate_size, of.intermediate_size))):
            parts = [each.chunk(ranks) for each in product.weight.data.split(sizes)]
            product.weight.data = torch.cat([each for of_a_rank in zip(*parts) for each in of_a_rank])
        block.self_attn.num_key_value_heads = keys // ranks
    of.num_attention_heads, of.num_key_value_heads = heads // ranks, keys // ranks


def split_llama(net, of_ranks, mesh):
    """The same of transformers' Llama and its like, whose modules are called with names. A rank has no positions but its own to count; what
    norms make is added to a rank's tensors in Gemma 2."""
    if net.module.config.model_type == "phi3":
        lay_out_by_rank(net, of_ranks.size())
    lies = Shard(1) if mesh.splits_sequence else Replicate()
    whole = {"input_kwarg_layouts": {"hidden_states": lies}, "desired_input_kwarg_layouts": {"hidden_states": Replicate()}}
    between = {"self_attn": PrepareModuleInput(**whole), "mlp": PrepareModuleInput(input_layouts=(lies,), desired_input_layouts=(Replicate(),))}
    for block in net.blocks:
        products = {name: RowwiseParallel(output_layouts=lies) if name.endswith(("o_proj", "down_proj")) else ColwiseParallel()
                    for name, each in block.named_modules() if isinstance(each, nn.Linear)}
        norms = {name: SequenceParallel(use_local_output=True) for name, _ in block.named_children()
                 if name.endswith("layernorm") and mesh.splits_sequence}
        parallelize_module(block, of_ranks, products | norms | between)
    around = {"model.embed_tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=lies),
              "lm_head": ColwiseParallel(input_layouts=lies, output_layouts=Shard(-1) if mesh.splits_loss else Replicate(),
                                         use_local_output=not mesh.splits_loss)}
    parallelize_module(net.module, of_ranks, around | ({"model.norm": SequenceParallel()} if mesh.splits_sequence else {}))
    if net.module.config.tie_word_embeddings:
        net.module.lm_head.weight = net.module.model.embed_tokens.weight
    net.positions = mesh.splits_sequence


def split_products(net, of_ranks, splits_loss):
    """Column and row parallel alone: what lies between products is whole on every rank, and norms' parameters are plain tensors."""
    columns = {name: ColwiseParallel() for name in
               ("attention.wq", "attention.wk", "attention.wv", "feed_forward.w1", "feed_forward.w3")}
    rows = {name: RowwiseParallel() for name in ("attention.wo", "feed_forward.w2")}
    once = PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Replicate(),))
    for block in net.blocks:
        parallelize_module(block, of_ranks, columns | rows | {"attention": once, "feed_forward": once})
    parallelize_module(net.module, of_ranks, {
        "tok_embeddings": RowwiseParallel(input_layouts=Replicate()),
        "output": ColwiseParallel(output_layouts=Shard(-1) if splits_loss else Replicate(), use_local_output=not splits_loss)})


def products_and_attention():
    """torchtitan's policy of selective checkpoints: each second product of matrices is computed again, and all that is
    in no list. One a call of a block, as products are counted within it."""
    kept = {torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_efficient_attention.default,
            torch.ops.aten._scaled_dot_product_flash_attention.default,
            torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default,
            torch.ops.aten._scaled_dot_product_cudnn_attention.default}
    products = {False: 0, True: 0}

    def policy(context, function, *_, **__):
        if function == torch.ops.aten.mm.default:
            products[context.is_recompute] += 1
            if products[context.is_recompute] % 2 == 0:
                return CheckpointPolicy.PREFER_RECOMPUTE
        return CheckpointPolicy.MUST_SAVE if function in kept else CheckpointPolicy.PREFER_RECOMPUTE
    return create_selective_checkpoint_contexts(policy)


def checkpoint_blocks(net, recompute):
    """Blocks under torch.utils.checkpoint, whole (units) or but for some operations' results (selective)."""
    more = {"context_fn": products_and_attention} if recompute == "selective" else {}
    for block in net.blocks if recompute else []:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False, preserve_rng_state=False, **more)


def lay_out(net, mesh, ranks, low, recompute=None, replicate=nn.parallel.DistributedDataParallel):
    """Does to a network what the mesh says; returns the module to call."""
    checkpoint_blocks(net, recompute)
    if mesh.replicated:
        bucket = mesh.keys.get("bucket", "").removesuffix("MiB")
        return replicate(net.module, bucket_cap_mb=float(bucket) if bucket else None,
                         gradient_as_bucket_view=mesh.keys.get("view") == "yes")
    if mesh.tp > 1:
        if net.kind == "labelled":
            split_llama(net, ranks["tp"], mesh)
        else:
            (split if mesh.splits_sequence else split_products)(net, ranks["tp"], mesh.splits_loss)
    if mesh.sharded:
        shard(net, mesh, ranks["dp", "fsdp"] if mesh.dp > 1 else ranks["fsdp"], low)
    return net.module


def accumulates(module, mesh, last):
    """The context of one micro-batch: whether its gradients are summed over ranks."""
    sums = last or mesh.keys.get("sync") == "each"
    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(sums)
    if mesh.replicated and not sums:
        return module.no_sync()
    return torch.enable_grad()
