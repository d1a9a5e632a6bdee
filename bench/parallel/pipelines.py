"""Measures what each stage of a pipeline holds in PyTorch, with no GPU and no other rank: torch.distributed.pipelining on process groups
that talk to nobody, tensors with values, and MemTracker counts the storages that live.

    python3 bench/parallel/pipelines.py --net llm:8,128,4,4,352,256 --batch 2 --sequence 64 --parallel pp=4 --accumulate 8
    python3 bench/parallel/pipelines.py --table

Networks are llm:LAYERS,D,HEADS,KV,FFN,WORDS, of whose layers each stage has as many. The mesh is written as snsim's --parallel: pp=N with
schedule=1f1b, gpipe or zb-h1, and fsdp=N as in bench/pytorch_parallel.py, with reshard=yes|no|N, dp=R, prefetch=K, reduce=fp32|bf16.

The optimizer is AdamW. The peak is that of the second schedule.step() with its update, of --accumulate micro-batches. Outputs of the last
stage are not merged (return_outputs=False). --checkpoint N runs the first N layers again, as snsim's pytorch+recompute=units:N; amp-bf16 is
autocast around the schedule. The tracker's own tracker of modules is left out, whose hooks hold what a stage has received, and
its gradient, to the end of the step.

--table measures the questions of docs/measured/parallel.md as its rows; bench/parallel/compare.py asks snsim the same.
Exit codes: 2 for what was asked, 4 where PyTorch is missing.
"""
import argparse
import functools
import gc
import logging
import os
import sys
import warnings

os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    import torch
    import torch.distributed as dist
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleavedZeroBubble
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torch.utils.checkpoint import checkpoint
except ImportError as error:
    print(f"pipelines.py: error: PyTorch cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

from torch import nn
from torch.nn import functional as F

from parallel import meshes, networks

def zero_bubble(stage, **more):
    return ScheduleInterleavedZeroBubble([stage], **more)


SCHEDULES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe, "zb-h1": zero_bubble}
SMALL = "llm:8,128,4,4,352,256"
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
    (SMALL, "--parallel pp=4,fsdp=4 --accumulate 8 --precision bf16-master --norms transformers"),
    (WIDE, "--parallel pp=4,fsdp=8,reshard=no --accumulate 6 --precision bf16-master --norms transformers"),
    (WIDE, "--parallel pp=2,fsdp=4,reduce=bf16 --accumulate 4 --precision bf16-master --norms transformers"),
    (WIDE, "--parallel pp=2,fsdp=8,dp=2 --accumulate 2 --precision bf16-master --norms transformers --sequence 16"),
    (WIDE, "--parallel pp=4,fsdp=8 --accumulate 6 --precision bf16-master"),
]


def fail(code, text):
    print(f"pipelines.py: error: {text}", file=sys.stderr)
    sys.exit(code)


class Part(nn.Module):
    """Of a network the layers of one stage; the table of words is the first one's, the head the last one's."""

    def __init__(self, whole, stage, stages):
        super().__init__()
        each = len(whole.layers) // stages
        self.first, self.last = stage == 0, stage == stages - 1
        if self.first:
            self.tok_embeddings = whole.tok_embeddings
        self.layers = nn.ModuleList(whole.layers[stage * each:(stage + 1) * each])
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
        self.stages, self.schedule = int(own.get("pp", 1)), own.get("schedule", "1f1b")
        if self.stages < 2 or self.schedule not in SCHEDULES:
            raise ValueError(f"--parallel {text}: pp=N from 2 on, with schedule={' or '.join(SCHEDULES)}")


def loss_of(out, labels):
    return F.cross_entropy(out.flatten(0, 1), labels.flatten())


def open_groups(mesh, stage):
    """Ranks of a stage are side by side; this is its first."""
    copies = mesh.dp * mesh.shards
    dist.init_process_group("fake", store=FakeStore(), rank=stage * copies, world_size=mesh.stages * copies)
    return init_device_mesh("cpu", (mesh.stages, mesh.dp, mesh.shards), mesh_dim_names=("pp", "dp", "fsdp"))


def make_stage(mesh, stage, ranks, options):
    name, _, rest = options.net.partition(":")
    whole = networks.Titan(*networks.numbers(name, rest, 6, "LAYERS,D,HEADS,KV,FFN,WORDS"), networks.NORMS[options.norms])
    width, words = whole.output.in_features, whole.output.out_features
    part = Part(whole, stage, mesh.stages)
    low = options.precision == "bf16-master"
    for layer in whole.layers[:options.checkpoint]:
        layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False)
    if mesh.sharded:
        meshes.shard(argparse.Namespace(module=part, blocks=list(part.layers)), mesh, ranks["dp", "fsdp"] if mesh.dp > 1 else ranks["fsdp"], low)
    values = torch.empty(options.batch, options.sequence, width, dtype=torch.bfloat16 if low else torch.float32)
    given = torch.zeros(options.batch, options.sequence, dtype=torch.int64) if part.first else values.clone().requires_grad_()
    made = torch.empty(options.batch, options.sequence, words, dtype=values.dtype) if part.last else values.clone()
    made.requires_grad_()
    group = ranks["pp"].get_group()
    return part, PipelineStage(part, stage, mesh.stages, torch.device("cpu"), input_args=(given,), output_args=(made,), group=group)


class NoModules:
    """In place of the tracker's tracker of modules."""
    is_bw = False

    def register_user_hooks(self, *_):
        pass

    clear_user_hooks = __enter__ = __exit__ = register_user_hooks


def tracker_of(part, update, tensors):
    tracker = MemTracker()
    tracker._mod_tracker = NoModules()
    tracker.track_external(part, update, *tensors)
    return tracker


def run(mesh, stage, options):
    ranks = open_groups(mesh, stage)
    part, staged = make_stage(mesh, stage, ranks, options)
    update = torch.optim.AdamW(part.parameters(), foreach=True)
    schedule = SCHEDULES[mesh.schedule](staged, n_microbatches=options.accumulate, loss_fn=loss_of, scale_grads=False)
    tokens = torch.zeros(options.accumulate * options.batch, options.sequence, dtype=torch.int64)
    given, labels = (tokens,) if part.first else (), {"target": tokens.clone()} if part.last else {}
    tracker = tracker_of(part, update, [*given, *labels.values()])
    with tracker:
        for i in range(2):
            update.zero_grad()
            if i:
                tracker._peak_mem_snap = tracker.get_tracker_snapshot()
                tracker._peak_mem = {device: now["Total"] for device, now in tracker._peak_mem_snap.items()}
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "amp-bf16"):
                schedule.step(*given, **labels, return_outputs=False)
            update.step()
    (peak,) = tracker.get_tracker_snapshot("peak").values()
    return peak["Total"]


def measure(mesh, stage, options):
    try:
        return run(mesh, stage, options)
    finally:
        dist.destroy_process_group()
        gc.collect()


def parser():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--net", default=SMALL)
    made.add_argument("--parallel", default="pp=4,fsdp=4", metavar="KEY=VALUE,..")
    made.add_argument("--batch", type=int, default=2, help="of a micro-batch of a rank")
    made.add_argument("--sequence", type=int, default=64, help="tokens")
    made.add_argument("--precision", choices=("fp32", "bf16-master", "amp-bf16"), default="fp32")
    made.add_argument("--accumulate", type=int, default=8, metavar="N", help="micro-batches a step (default: 8)")
    made.add_argument("--checkpoint", type=int, default=0, metavar="N", help="layers that run again, from the first (default: 0)")
    made.add_argument("--norms", choices=tuple(networks.NORMS), default="torch", help="nn.RMSNorm, or transformers' operations")
    made.add_argument("--table", action="store_true", help="measure the questions of docs/measured/parallel.md")
    return made


def label(options):
    more = "".join(f", {text}" for text in (options.precision if options.precision != "fp32" else "", "adamw", f"accumulate {options.accumulate}",
                                            f"checkpoint {options.checkpoint}" if options.checkpoint else "",
                                            "norms of transformers" if options.norms == "transformers" else "") if text)
    return f"{options.net}, {options.batch} x {options.sequence}, {options.parallel}{more}"


def main():
    made = parser()
    options = made.parse_args()
    asked = [made.parse_args(["--net", net, *more.split()]) for net, more in TABLE] if options.table else [options]
    for each in asked:
        try:
            mesh = Pipeline(each.parallel)
        except ValueError as error:
            fail(2, error)
        if each.accumulate < mesh.stages and mesh.schedule == "1f1b":
            fail(2, f"--accumulate {each.accumulate}: PyTorch's 1f1b has no fewer micro-batches than stages")
        print(f"| {label(each)} | " + " | ".join(f"{measure(mesh, stage, each):,}" for stage in range(mesh.stages)) + " | -" * (4 - mesh.stages) + " |", flush=True)


if __name__ == "__main__":
    main()
