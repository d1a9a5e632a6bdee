"""Measures what each stage of a pipeline holds in PyTorch, with no GPU and no other rank: torch.distributed.pipelining on process groups
that talk to nobody, tensors with values, or with --device cuda fakes of a GPU, and MemTracker counts the storages that live.

    python3 bench/parallel/pipelines.py --net llm:8,128,4,4,352,256 --batch 2 --sequence 64 --parallel pp=4 --accumulate 8
    python3 bench/parallel/pipelines.py --table

Networks are llm:LAYERS,D,HEADS,KV,FFN,WORDS, of whose layers each part has as many. The mesh is written as snsim's --parallel: pp=N with
schedule=1f1b, gpipe, zb-h1 or interleaved:V (V parts a stage), and fsdp=N as in bench/pytorch_parallel.py, with reshard=yes|no|N, dp=R, prefetch=K, reduce=fp32|bf16; with
tp=N beside, and loss=split or whole.

The optimizer is AdamW. The peak is that of the second schedule.step() with its update, of --accumulate micro-batches; with --device cuda of
the third, and there is neither fsdp, tp nor dp. Outputs of the last stage are not merged (return_outputs=False). --checkpoint N runs the
first N layers again, as snsim's pytorch+recompute=units:N; amp-bf16, of --device cuda alone, is autocast around the schedule. The tracker's
own tracker of modules is left out, whose hooks hold what a stage has received, and its gradient, to the end of the step.

--table measures the questions of docs/measured/parallel.md as its rows; bench/parallel/compare.py asks snsim the same.
Exit codes: 2 for what was asked, 4 where PyTorch is missing.
"""
import argparse
import contextlib
import functools
import gc
import logging
import multiprocessing
import os
import sys
import warnings

os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("..", "../../python", "../../tests/python"):
    sys.path.insert(0, os.path.normpath(os.path.join(HERE, folder)))
try:
    import sharded  # ahead of torch
    import torch
    import torch.distributed as dist
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble
    from torch.distributed.tensor.parallel import loss_parallel
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torch.utils.checkpoint import checkpoint
except ImportError as error:
    print(f"pipelines.py: error: PyTorch cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

from torch import nn
from torch.nn import functional as F

from parallel import meshes, networks


def of_one_part(schedule):
    return lambda parts, **more: schedule(parts[0], **more)


SCHEDULES = {"1f1b": of_one_part(Schedule1F1B), "gpipe": of_one_part(ScheduleGPipe), "zb-h1": ScheduleInterleavedZeroBubble,
             "interleaved": ScheduleInterleaved1F1B}
SMALL = "llm:8,128,4,4,352,256"
TWELVE = "llm:12,128,4,4,352,256"
DEEP = "llm:16,128,4,4,352,256"
HEADS = "llm:4,256,8,8,704,512"
WIDE = "llm:8,256,8,4,704,2048"

# network, what else
TABLE = [
    (SMALL, "--parallel pp=4 --accumulate 8"),
    (SMALL, "--parallel pp=4,schedule=gpipe --accumulate 8"),
    (WIDE, "--parallel pp=4 --accumulate 6"),
    (SMALL, "--parallel pp=2 --accumulate 3"),
    (SMALL, "--parallel pp=4,schedule=zb-h1 --accumulate 8"),
    (WIDE, "--parallel pp=4,schedule=zb-h1 --accumulate 4"),
    (SMALL, "--parallel pp=2,schedule=zb-h1 --accumulate 4"),
    (SMALL, "--parallel pp=2,schedule=interleaved:2 --accumulate 4"),
    (DEEP, "--parallel pp=4,schedule=interleaved:2 --accumulate 8"),
    (TWELVE, "--parallel pp=2,schedule=interleaved:3 --accumulate 6"),
    (TWELVE, "--parallel pp=4,schedule=interleaved:3 --accumulate 4"),
    (WIDE, "--parallel pp=2,schedule=interleaved:2 --accumulate 8"),
    (SMALL, "--parallel pp=4,schedule=interleaved:2 --accumulate 12"),
    (SMALL, "--parallel pp=4 --accumulate 8 --checkpoint 3"),
    (SMALL, "--parallel pp=4,fsdp=4 --accumulate 8"),
    (SMALL, "--parallel pp=4,fsdp=4,reshard=no --accumulate 8"),
    (SMALL, "--parallel pp=4,fsdp=4,schedule=gpipe --accumulate 8"),
    (WIDE, "--parallel pp=4,fsdp=8 --accumulate 6"),
    (WIDE, "--parallel pp=4,fsdp=8,reshard=no --accumulate 6"),
    (WIDE, "--parallel pp=4,fsdp=3,schedule=gpipe --accumulate 2"),
    (WIDE, "--parallel pp=2,fsdp=7 --accumulate 3 --batch 1"),
    (WIDE, "--parallel pp=2,fsdp=4,prefetch=2 --accumulate 4 --sequence 16"),
    (WIDE, "--parallel pp=2,fsdp=4,dp=2 --accumulate 4 --sequence 16"),
    (WIDE, "--parallel pp=4,fsdp=4 --accumulate 6 --sequence 8"),
    (HEADS, "--parallel pp=2,tp=2,loss=whole --accumulate 4"),
    (HEADS, "--parallel pp=2,tp=2 --accumulate 4"),
    (HEADS, "--parallel pp=2,tp=2,schedule=interleaved:2 --accumulate 4"),
    (HEADS, "--parallel pp=2,tp=2,schedule=zb-h1 --accumulate 4"),
    ("llm:8,128,8,4,352,256", "--parallel pp=4,tp=2 --accumulate 6"),
    ("llm:8,128,8,4,352,256", "--parallel pp=4,tp=2,schedule=zb-h1 --accumulate 6"),
    (HEADS, "--parallel pp=2,fsdp=2,tp=2 --accumulate 4"),
    ("llm:4,256,8,4,704,2048", "--parallel pp=2,fsdp=2,tp=4,reshard=no --accumulate 4"),
    (SMALL, "--parallel pp=4,fsdp=4 --accumulate 8 --precision bf16-master --norms transformers"),
    (WIDE, "--parallel pp=4,fsdp=8,reshard=no --accumulate 6 --precision bf16-master --norms transformers"),
    (WIDE, "--parallel pp=2,fsdp=4,reduce=bf16 --accumulate 4 --precision bf16-master --norms transformers"),
    (WIDE, "--parallel pp=2,fsdp=8,dp=2 --accumulate 2 --precision bf16-master --norms transformers --sequence 16"),
    (SMALL, "--parallel pp=2,fsdp=4,schedule=interleaved:2 --accumulate 4"),
    (WIDE, "--parallel pp=2,fsdp=4,schedule=interleaved:2 --accumulate 4"),
    (WIDE, "--parallel pp=2,fsdp=4,schedule=interleaved:2,reshard=no --accumulate 4"),
    (DEEP, "--parallel pp=2,fsdp=4,schedule=interleaved:4 --accumulate 4"),
    (DEEP, "--parallel pp=4,fsdp=4,schedule=interleaved:2 --accumulate 8"),
    (TWELVE, "--parallel pp=2,fsdp=8,schedule=interleaved:3 --accumulate 6"),
    (WIDE, "--parallel pp=2,fsdp=4,schedule=interleaved:4 --accumulate 2 --sequence 8"),
    (WIDE, "--parallel pp=4,fsdp=8,schedule=interleaved:2 --accumulate 8 --sequence 8"),
    (WIDE, "--parallel pp=2,fsdp=4,schedule=interleaved:2 --accumulate 4 --precision bf16-master --norms transformers"),
    (WIDE, "--parallel pp=4,fsdp=8,schedule=interleaved:2,reshard=no --accumulate 4 --precision bf16-master --norms transformers"),
    (HEADS, "--parallel pp=2,fsdp=2,tp=2,schedule=interleaved:2 --accumulate 4"),
    (WIDE, "--parallel pp=2,fsdp=4,dp=2,schedule=interleaved:2,prefetch=2 --accumulate 4 --sequence 16"),
    (WIDE, "--parallel pp=2,fsdp=4,schedule=interleaved:2,reshard=no --accumulate 4 --precision bf16-master --norms transformers"),
    (WIDE, "--parallel pp=2,fsdp=4,schedule=interleaved:2 --accumulate 4 --precision bf16-master --norms transformers --sequence 16"),
    (WIDE, "--parallel pp=2,fsdp=4,schedule=interleaved:2,reduce=bf16 --accumulate 4 --precision bf16-master --norms transformers"),
    (SMALL, "--parallel pp=4,fsdp=4,schedule=interleaved:2 --accumulate 8 --precision bf16-master --norms transformers"),
    (WIDE, "--parallel pp=4,fsdp=8 --accumulate 6 --precision bf16-master"),
    (HEADS, "--parallel pp=2 --accumulate 4 --device cuda --norms transformers"),
    *[(HEADS, f"--parallel {mesh} --accumulate 4 --precision amp-bf16 --device cuda{norms}") for norms in ("", " --norms transformers")
      for mesh in ("pp=2", "pp=2,schedule=gpipe", "pp=4", "pp=4,schedule=gpipe")],
    *[(SMALL, f"--parallel {more} --precision amp-bf16 --device cuda --norms transformers") for more in (
        "pp=4 --accumulate 8", "pp=4,schedule=gpipe --accumulate 8", "pp=2 --accumulate 3", "pp=2,schedule=interleaved:2 --accumulate 4",
        "pp=4,schedule=interleaved:2 --accumulate 8", "pp=4 --accumulate 8 --checkpoint 3")],
]


def fail(code, text):
    print(f"pipelines.py: error: {text}", file=sys.stderr)
    sys.exit(code)


class Part(nn.Module):
    """Of a network the layers of one of several parts; the table of words is the first one's, the head the last one's."""

    def __init__(self, whole, part, parts):
        super().__init__()
        each = len(whole.layers) // parts
        self.first, self.last = part == 0, part == parts - 1
        if self.first:
            self.tok_embeddings = whole.tok_embeddings
        self.layers = nn.ModuleList(whole.layers[part * each:(part + 1) * each])
        if self.last:
            self.norm, self.output = whole.norm, whole.output

    def forward(self, x):
        if self.first:
            x = self.tok_embeddings(x)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x)) if self.last else x


class Pipeline(meshes.Mesh):
    """A mesh with stages."""

    def __init__(self, text):
        words = [word.partition("=")[::2] for word in text.split(",")]
        own = {key: value for key, value in words if key in ("pp", "schedule")}
        super().__init__(",".join(f"{key}={value}" for key, value in words if key not in own) or "dp=1")
        self.text = text
        self.schedule, _, chunks = own.get("schedule", "1f1b").partition(":")
        self.stages, self.chunks = int(own.get("pp", 1)), int(chunks or 1)
        if self.stages < 2 or self.schedule not in SCHEDULES or (self.chunks > 1) != (self.schedule == "interleaved"):
            raise ValueError(f"--parallel {text}: pp=N from 2 on, with schedule={' or '.join(SCHEDULES)}:V, V from 2 on")


def loss_of(out, labels):
    return F.cross_entropy(out.flatten(0, 1), labels.flatten())


def open_groups(mesh, stage):
    """Ranks of a stage are side by side; this is its first."""
    copies = mesh.dp * mesh.shards * mesh.tp
    dist.init_process_group("fake", store=FakeStore(), rank=stage * copies, world_size=mesh.stages * copies)
    return init_device_mesh("cpu", (mesh.stages, mesh.dp, mesh.shards, mesh.tp), mesh_dim_names=("pp", "dp", "fsdp", "tp"))


def make_part(whole, number, mesh, ranks, options):
    width, words = whole.output.in_features, whole.output.out_features
    parts = mesh.stages * mesh.chunks
    part = Part(whole, number, parts)
    low = options.precision == "bf16-master"
    net = argparse.Namespace(module=part, blocks=list(part.layers))
    if mesh.tp > 1:
        meshes.split(net, ranks["tp"], mesh.splits_loss)
    for layer in whole.layers[:options.checkpoint]:
        layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False)
    if mesh.sharded:
        meshes.shard(net, mesh, ranks["dp", "fsdp"] if mesh.dp > 1 else ranks["fsdp"], low)
    values = torch.empty(options.batch, options.sequence // mesh.tp, width, dtype=torch.bfloat16 if low else torch.float32)
    given = torch.zeros(options.batch, options.sequence, dtype=torch.int64) if part.first else values.clone().requires_grad_()
    made = torch.empty(options.batch, options.sequence, words, dtype=values.dtype) if part.last else values.clone()
    made.requires_grad_()
    group = ranks["pp"].get_group()
    return PipelineStage(part, number, parts, torch.device(options.device), input_args=(given,), output_args=(made,), group=group)


def make_parts(mesh, stage, ranks, options):
    """Of a stage, as PyTorch's stages, which are parts of the network."""
    name, _, rest = options.net.partition(":")
    whole = networks.Titan(*networks.numbers(name, rest, 6, "LAYERS,D,HEADS,KV,FFN,WORDS"), networks.NORMS[options.norms])
    return [make_part(whole, stage + chunk * mesh.stages, mesh, ranks, options) for chunk in range(mesh.chunks)]


class NoModules:
    """In place of the tracker's tracker of modules."""
    is_bw = False

    def register_user_hooks(self, *_):
        pass

    clear_user_hooks = __enter__ = __exit__ = register_user_hooks


def tracker_of(modules, update, tensors):
    tracker = MemTracker()
    tracker._mod_tracker = NoModules()
    tracker.track_external(*modules, update, *tensors)
    return tracker


class Loop:
    """What a stage trains, and its step."""

    def __init__(self, mesh, stage, ranks, options):
        self.options, parts = options, make_parts(mesh, stage, ranks, options)
        self.modules = [part.submod for part in parts]
        self.update = torch.optim.AdamW([each for module in self.modules for each in module.parameters()], foreach=True)
        self.schedule = SCHEDULES[mesh.schedule](parts, n_microbatches=options.accumulate, loss_fn=loss_of, scale_grads=False)
        tokens = torch.zeros(options.accumulate * options.batch, options.sequence, dtype=torch.int64)
        self.given = (tokens,) if self.modules[0].first else ()
        self.labels = {"target": tokens.clone()} if self.modules[-1].last else {}
        self.splits = mesh.splits_loss

    def step(self):
        with (loss_parallel() if self.splits else contextlib.nullcontext(),
              torch.autocast(self.options.device, dtype=torch.bfloat16, enabled=self.options.precision == "amp-bf16")):
            self.schedule.step(*self.given, **self.labels, return_outputs=False)
        self.update.step()


def run(mesh, stage, options):
    loop = Loop(mesh, stage, open_groups(mesh, stage), options)
    tracker = tracker_of(loop.modules, loop.update, [*loop.given, *loop.labels.values()])
    with tracker:
        for i in range(2):
            loop.update.zero_grad()
            if i:
                sharded.start_peak(tracker)
            loop.step()
    (peak,) = tracker.get_tracker_snapshot("peak").values()
    return peak["Total"]


def run_on_gpu(mesh, stage, options):
    """The same on fakes of a GPU. PyTorch lets an output go behind its sending where its type is torch.Tensor, which a fake's is not, and
    forks the generator of a GPU to look at a stage."""
    ranks = open_groups(mesh, stage)
    with (sharded.session() as opened,
          sharded.replaced(torch.random, fork_rng=lambda *_, **__: contextlib.nullcontext()),
          sharded.replaced(PipelineStage, _output_slot_is_releasable=lambda stage, _: (not stage.is_last, ""))):
        with torch.device("cuda"):
            loop = Loop(mesh, stage, ranks, options)
        whole = torch.nn.ModuleList(loop.modules)
        with sharded.tracking(opened, whole, loop.update, [*loop.given, *loop.labels.values()]) as tracker:
            for i in range(3):
                loop.update.zero_grad()
                if i:
                    sharded.start_peak(tracker)
                loop.step()
        return sharded.peak_of(tracker)["Total"]


def measure(mesh, stage, options):
    try:
        return (run_on_gpu if options.device == "cuda" else run)(mesh, stage, options)
    finally:
        dist.destroy_process_group()
        gc.collect()


def measure_all(mesh, options):
    """Stage by stage; with tp in processes of their own, as DTensor remembers the groups of those before."""
    stages = range(mesh.stages)
    if mesh.tp == 1:
        return [measure(mesh, stage, options) for stage in stages]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return pool.starmap(measure, [(mesh, stage, options) for stage in stages], chunksize=1)


def parser():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--net", default=SMALL)
    made.add_argument("--parallel", default="pp=4,fsdp=4", metavar="KEY=VALUE,..")
    made.add_argument("--batch", type=int, default=2, help="of a micro-batch of a rank")
    made.add_argument("--sequence", type=int, default=64, help="tokens")
    made.add_argument("--precision", choices=("fp32", "bf16-master", "amp-bf16"), default="fp32")
    made.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="whose kernels; cuda needs no GPU")
    made.add_argument("--accumulate", type=int, default=8, metavar="N", help="micro-batches a step (default: 8)")
    made.add_argument("--checkpoint", type=int, default=0, metavar="N", help="layers that run again, from the first (default: 0)")
    made.add_argument("--norms", choices=tuple(networks.NORMS), default="torch", help="nn.RMSNorm, or transformers' operations")
    made.add_argument("--table", action="store_true", help="measure the questions of docs/measured/parallel.md")
    return made


def label(options):
    more = "".join(f", {text}" for text in (options.precision if options.precision != "fp32" else "", "adamw", f"accumulate {options.accumulate}",
                                            f"checkpoint {options.checkpoint}" if options.checkpoint else "",
                                            "norms of transformers" if options.norms == "transformers" else "") if text)
    one_kernel = ",gpu=1" if options.device == "cuda" and options.norms == "torch" else ""
    return f"{options.net}{one_kernel}, {options.batch} x {options.sequence}, {options.parallel}{more}"


def main():
    made = parser()
    options = made.parse_args()
    asked = [made.parse_args(["--net", net, *more.split()]) for net, more in TABLE] if options.table else [options]
    for each in asked:
        try:
            mesh = Pipeline(each.parallel)
        except ValueError as error:
            fail(2, error)
        if each.device == "cuda" and (mesh.sharded or mesh.tp > 1 or mesh.dp > 1):
            fail(2, f"--parallel {each.parallel}: --device cuda measures stages without fsdp, tp and dp")
        if each.device == "cpu" and each.precision == "amp-bf16":
            fail(2, "autocast is a GPU's: --device cuda")
        if each.accumulate < mesh.stages and mesh.schedule == "1f1b":
            fail(2, f"--accumulate {each.accumulate}: PyTorch's 1f1b has no fewer micro-batches than stages")
        print(f"| {label(each)} | " + " | ".join(f"{count:,}" for count in measure_all(mesh, each)) + " | -" * (4 - mesh.stages) + " |", flush=True)


if __name__ == "__main__":
    main()
