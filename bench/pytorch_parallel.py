"""Measures what a rank of several GPUs holds in PyTorch, component by component, with no GPU and no other rank: process groups talk
to nobody, tensors have sizes and no values, and FSDPMemTracker (of fully_shard) or MemTracker (of others) counts the storages that live.

    python3 bench/pytorch_parallel.py --net llm:4,512,8,8,1408,1024 --batch 2 --sequence 128 --parallel fsdp=8
    python3 bench/pytorch_parallel.py --net tv_resnet50 --batch 8 --optimizer momentum --parallel fsdp=8 --snsim build/snsim
    python3 bench/pytorch_parallel.py --table

The mesh is written as snsim's --parallel: fsdp=N with reshard=yes|no|N, keep-last=yes, prefetch=K, reduce=fp32|bf16, sync=each; dp=R,fsdp=S;
dp=N with view=yes, bucket=MiB; tp=N of llm networks and of transformers' (loss=split or whole; sequence=split or whole), alone and with fsdp. Networks: llm:LAYERS,D,HEADS,KV,FFN,WORDS, stack:LAYERS,D (FCs of
uneven sizes, which snsim has not), torchvision's resnet, vgg and vit, llama:KEYS, llama3:1b,KEYS (a head with the table's weights), mistral:KEYS, qwen2.5:KEYS, phi3:KEYS, gemma2:KEYS and gpt2:KEYS of transformers.

Steps of `zero_grad(); loss.backward(); step()`, and --accumulate N times loss and backward() a step; the peak is the last step's, which is
the second: with --device cuda, and of SGD with momentum, the third, as the second still counts the planning of momentum's first update. With
--precision bf16-master shards are float32 and computed in bfloat16; with bf16 all is bfloat16; with amp-bf16 forward and loss are under
autocast, with tp a GPU's lists of operations on a CPU (bench/pytorch_autocast.py). On a CPU dp and tp are on tensors with values, so take as
much memory as they say; all else is on fake ones.

With --device cuda the fakes are of a GPU, which need not be there (the recorder answers for it): with a GPU's kernels for norms, pooling and
attention, which snsim's llm networks have with gpu=1. Sums of gradients are apart there too, as under every mode; PyTorch adds in place where
it can. With --norms transformers norms of llm networks are as transformers writes them, which in bfloat16 keep half of what a CPU's
nn.RMSNorm does.

--snsim asks that program as well, of a cluster of one node of so many GPUs, and prints what it says beside it (bench/parallel/compare.py asks it
what was measured before), with --recorded about a recording of the same network and loop. Networks that snsim has not are told of. --table measures the questions of docs/measured/parallel.md as its rows.
Exit codes: 1 where a total differs by more than --tolerance, 2 for what was asked, 4 where PyTorch is missing.
"""
import argparse
import contextlib
import functools
import gc
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings

os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"  # the trackers count bytes of a GPU as they are asked for
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
try:
    import torch
    import torch.distributed as dist
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.parallel import loss_parallel
except ImportError as error:
    print(f"pytorch_parallel.py: error: PyTorch cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

from torch.nn import functional as F

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, *folder) for folder in (("python",), ("tests", "python"))]
import pytorch_autocast
import pytorch_memory
import sharded
import snsim
from parallel import meshes
from parallel.networks import LLAMAS, Trained

# What the trackers call each component, by snsim's name; what was made outside and never freed is the batch.
KINDS = {"parameters": ("Parameter",), "sharded_parameters": ("Sharded Param",), "unsharded_parameters": ("Unsharded Param",),
         "buffers": ("Buffer",), "gradients": ("Gradient",), "sharded_gradients": ("Sharded Grad",),
         "unsharded_gradients": ("Unsharded Grad",), "all_gather": ("All Gather",), "reduce_scatter": ("Reduce Scatter",),
         "buckets": (), "optimizer": ("OptState", "Optstate"), "activations": ("Activation", "Inputs", "Other"), "temporary": ("Temp",)}

# network, batch, tokens, what else. All but tp, which needs values, is on fakes of a GPU.
A = "llm:4,512,8,8,1408,1024"
B = "llm:3,1024,16,4,2816,32000"
C = "llm:8,1024,16,4,2816,32000"
D = "llm:6,512,8,8,1408,4096"
PHI = "phi3:layers=2,hidden=512,heads=8,kv_heads=4,ffn=1408,vocabulary=2048"
GEMMA = "gemma2:layers=2,hidden=512,heads=8,kv_heads=4,ffn=1408,vocabulary=2048,head=64"
T = " --norms transformers"
MASTER = " --precision bf16-master"
ON_GPU = [
    (A, 2, 128, "fsdp=8"),
    (A, 2, 128, "fsdp=8" + T),
    ("llm:4,1000,8,8,2730,1001", 1, 128, "fsdp=7" + T),
    ("tv_resnet50", 8, 0, "fsdp=8 --optimizer momentum"),
    (A, 2, 128, "fsdp=8,reduce=bf16" + MASTER),
    (C, 2, 512, "fsdp=16" + MASTER),
    (C, 2, 512, "fsdp=16" + MASTER + T),
    (B, 2, 64, "fsdp=8 --accumulate 3" + T),
    (B, 2, 64, "fsdp=8,prefetch=2" + T),
    ("tv_vgg16", 1, 0, "fsdp=16"),
    ("llama:layers=2,hidden=1024,heads=16,kv_heads=4,ffn=2816,vocabulary=32000", 1, 1024, "fsdp=8"),
    ("llama:layers=2,hidden=1024,heads=16,kv_heads=16,ffn=2816,vocabulary=32000", 1, 1024, "fsdp=8"),
    ("llm:2,256,4,4,704,256", 2, 64, "dp=8 --optimizer adamw:impl=fused" + T),
    (A, 2, 128, "fsdp=8" + MASTER),
    (A, 2, 128, "fsdp=8" + MASTER + T),
    (B, 2, 64, "fsdp=8,sync=each --accumulate 2" + T),
    (B, 2, 64, "fsdp=8 --accumulate 3" + MASTER),
    (B, 2, 64, "fsdp=8,prefetch=3" + MASTER),
    (B, 2, 64, "fsdp=8,prefetch=3" + MASTER + T),
    (B, 2, 64, "fsdp=16,reshard=2" + MASTER),
    (B, 2, 64, "dp=4,fsdp=4" + T),
    (B, 2, 64, "dp=2,fsdp=8" + MASTER),
    (B, 2, 64, "dp=2,fsdp=4,reduce=bf16" + MASTER),
    (B, 2, 64, "fsdp=8 --precision bf16"),
    (B, 2, 64, "fsdp=8 --precision bf16" + T),
    (B, 2, 32, "fsdp=8 --optimizer adamw:impl=loop"),
    (D, 4, 256, "fsdp=2" + MASTER),
    (D, 4, 256, "fsdp=2" + MASTER + T),
    ("llm:4,512,8,4,1408,1024", 2, 128, "fsdp=4 --optimizer momentum" + T),
    ("stack:6,250", 64, 0, "fsdp=8"),
    ("llm:2,128,4,4,352,256", 4, 128, "dp=8 --optimizer sgd" + T),
    (A, 2, 128, "fsdp=8,reshard=no"),
    (A, 2, 128, "fsdp=8,keep-last=yes"),
    ("llm:2,256,4,4,704,256", 2, 64, "dp=8,view=yes"),
    ("vit_b_16", 4, 0, "fsdp=8"),
    ("gpt2:layers=4", 2, 512, "fsdp=8"),
    ("llm:2,256,4,4,704,256", 2, 64, "dp=4 --optimizer momentum"),
    (A, 2, 128, "fsdp=3"),
    (B, 2, 64, "dp=2,fsdp=4,prefetch=2"),
    ("tv_resnet18", 16, 0, "fsdp=4 --optimizer momentum"),
    ("vit_b_16", 2, 0, "fsdp=4,reshard=no --optimizer momentum"),
    ("gpt2:layers=2", 1, 256, "dp=4"),
    ("tv_resnet50", 8, 0, "dp=4 --optimizer momentum"),
    ("tv_resnet50", 8, 0, "dp=4,view=yes --optimizer momentum --precision amp-bf16"),
    ("tv_resnet50", 8, 0, "dp=2,fsdp=4 --optimizer momentum --precision amp-bf16"),
    ("tv_vgg16", 1, 0, "dp=4 --optimizer momentum"),
    (A, 2, 128, "fsdp=8 --precision amp-bf16"),
    ("gpt2:layers=4", 2, 512, "dp=4 --precision amp-bf16"),
    ("vit_b_16", 4, 0, "fsdp=8 --precision amp-bf16"),
]
ON_CPU = [
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=2"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=4"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=8"),
    ("llm:3,256,8,8,704,512", 2, 128, "fsdp=2,tp=4"),
    ("llm:3,512,8,8,1408,2048", 2, 512, "tp=4"),
    ("llm:4,512,8,8,1408,2048", 2, 256, "tp=2"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=2 --recompute units"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=4 --recompute units"),
    ("llm:4,256,8,4,704,256", 2, 256, "tp=4 --recompute units"),
    ("llm:4,256,8,4,704,256", 2, 64, "fsdp=2,tp=2 --recompute units"),
    ("llm:4,256,8,8,704,256", 4, 128, "fsdp=2,tp=4 --recompute units"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=2,sequence=whole"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=4,sequence=whole"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=8,sequence=whole"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=2,sequence=whole,loss=whole"),
    ("llm:2,512,8,4,1408,2048", 2, 510, "tp=4,sequence=whole"),
    ("llm:3,256,8,8,704,512", 2, 128, "fsdp=2,tp=4,sequence=whole"),
    ("llm:3,256,8,4,704,512", 2, 64, "fsdp=3,tp=2,sequence=whole --optimizer momentum"),
    ("llm:2,256,8,8,704,512", 2, 64, "tp=2,sequence=whole --optimizer momentum"),
    ("llm:2,256,8,8,704,512", 4, 256, "tp=8,sequence=whole --optimizer sgd"),
    ("llm:2,256,8,8,704,8192", 1, 16, "tp=2,sequence=whole"),
    ("llm:2,256,8,8,704,8192", 1, 16, "fsdp=2,tp=2,sequence=whole"),
    ("llm:2,256,8,8,704,512", 2, 128, "tp=2,sequence=whole --accumulate 2"),
    ("llama:layers=2,hidden=512,heads=8,ffn=1408,vocabulary=2048", 2, 512, "tp=2"),
    ("llama:layers=2,hidden=512,heads=8,ffn=1408,vocabulary=2048", 2, 512, "tp=4"),
    ("llama:layers=2,hidden=512,heads=8,ffn=1408,vocabulary=2048", 2, 512, "tp=2,loss=whole"),
    ("llama:layers=3,hidden=256,heads=8,kv_heads=4,ffn=704,vocabulary=512", 2, 128, "fsdp=2,tp=2"),
    ("mistral:layers=2,hidden=512,heads=8,kv_heads=4,ffn=1408,vocabulary=2048", 2, 512, "tp=2"),
    ("qwen2.5:layers=2,hidden=512,heads=8,kv_heads=4,ffn=1408,vocabulary=2048", 2, 512, "tp=2"),
    ("llama3:1b,layers=2,hidden=256,heads=8,ffn=704,vocabulary=8192", 1, 16, "tp=2"),
    ("llama3:1b,layers=2,hidden=256,heads=8,ffn=704,vocabulary=8192", 1, 16, "tp=2 --optimizer momentum"),
    ("llama3:1b,layers=2,hidden=256,heads=8,ffn=704,vocabulary=8192", 1, 16, "fsdp=2,tp=2"),
    ("llama:layers=2,hidden=512,heads=8,ffn=1408,vocabulary=2048", 2, 512, "tp=2 --recompute units"),
    ("llama:layers=2,hidden=512,heads=8,ffn=1408,vocabulary=2048", 2, 512, "tp=2,sequence=whole"),
    (PHI, 2, 512, "tp=2"),
    (PHI, 2, 512, "tp=4"),
    (PHI, 2, 512, "tp=2 --recompute units"),
    (PHI, 2, 512, "tp=4 --recompute selective"),
    (PHI, 2, 512, "tp=4,sequence=whole"),
    (GEMMA, 2, 512, "tp=2,sequence=whole"),
    (GEMMA, 2, 512, "tp=4,sequence=whole"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=2 --precision amp-bf16"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=4 --precision amp-bf16"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=2,sequence=whole --precision amp-bf16"),
    ("llm:2,512,8,8,1408,2048", 2, 512, "tp=2,loss=whole --precision amp-bf16"),
    ("llm:3,256,8,4,704,512", 2, 128, "fsdp=2,tp=2 --precision amp-bf16"),
    ("llama:layers=2,hidden=512,heads=8,ffn=1408,vocabulary=2048", 2, 512, "tp=2 --precision amp-bf16"),
    (PHI, 2, 512, "tp=4 --precision amp-bf16"),
    (GEMMA, 2, 512, "tp=2,sequence=whole --precision amp-bf16"),
    ("llm:2,512,8,8,1408,2048", 8, 512, "tp=4 --precision amp-bf16 --recompute units"),
    ("llm:2,512,8,8,1408,2048", 8, 512, "tp=4,sequence=whole --precision amp-bf16 --recompute units"),
    ("llm:3,256,8,4,704,512", 8, 512, "fsdp=2,tp=2 --precision amp-bf16 --recompute units"),
]
TABLE = [(*what, f"--device {device} --parallel {more}") for device, rows in (("cuda", ON_GPU), ("cpu", ON_CPU)) for *what, more in rows]


def fail(code, text):
    print(f"pytorch_parallel.py: error: {text}", file=sys.stderr)
    sys.exit(code)


# ---- PyTorch's side ----

def in_groups(parameters):
    """One for each mesh that they lie on: foreach takes no plain tensors beside DTensors, which norms are under tp with sequence=whole."""
    groups = {}
    for each in parameters:
        groups.setdefault(each.device_mesh if isinstance(each, DTensor) else None, []).append(each)
    return [{"params": group} for group in groups.values()]


def optimizer_of(text, parameters):
    name, _, how = text.partition(":")
    choice = {"": {"foreach": True}, "impl=foreach": {"foreach": True}, "impl=loop": {"foreach": False}, "impl=fused": {"fused": True}}.get(how)
    makers = {"sgd": lambda: torch.optim.SGD(parameters, 0.1, **choice),
              "momentum": lambda: torch.optim.SGD(parameters, 0.1, momentum=0.9, **choice),
              "adam": lambda: torch.optim.Adam(parameters, **choice), "adamw": lambda: torch.optim.AdamW(parameters, **choice)}
    if name not in makers or choice is None:
        fail(2, f"--optimizer {text} is none of {', '.join(makers)}, each with :impl=foreach, loop or fused")
    return makers[name]()


def start_peak(tracker):
    tracker._peak_mem_snap = tracker.get_tracker_snapshot()
    tracker._peak_mem = {device: now["Total"] for device, now in tracker._peak_mem_snap.items()}


def computing(options):
    """The context of forward and loss."""
    if options.device == "cpu":
        return pytorch_autocast.autocast(options.precision)
    return torch.autocast("cuda", torch.bfloat16) if options.precision == "amp-bf16" else contextlib.nullcontext()


def compute(net, module, batch, options):
    """Forward, loss and backward of a micro-batch."""
    with computing(options):
        loss = net.loss(module, *batch, torch.bfloat16 if options.precision == "bf16" else torch.float32)
    loss.backward()


def step(net, module, update, batches, mesh, tracker, options):
    update.zero_grad()
    for i, batch in enumerate(batches):
        if i:
            tracker.reset_mod_stats()
        with meshes.accumulates(module, mesh, i == len(batches) - 1), loss_parallel() if mesh.splits_loss else contextlib.nullcontext():
            compute(net, module, batch, options)
    update.step()


def tracker_of(net, module, update, batches, mesh):
    if mesh.sharded:
        tracker = sharded.Tracker(module, update)
        tracker.track_inputs(tuple(batches))
    else:
        tracker = MemTracker()
        tracker.track_external(module, update, *[each for batch in batches for each in batch])
    return tracker


@contextlib.contextmanager
def in_width(options):
    """In which networks are made."""
    torch.set_default_dtype(torch.bfloat16 if options.precision == "bf16" else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def run(mesh, ranks, options):
    torch.manual_seed(0)
    try:
        with in_width(options):
            net = Trained(options.net, options.dropout, options.norms)
    except (ValueError, ImportError) as error:
        fail(4 if isinstance(error, ImportError) else 2, error)
    parameters = sum(each.numel() * each.element_size() for each in net.module.parameters())
    module = meshes.lay_out(net, mesh, ranks, options.precision == "bf16-master", options.recompute)
    update = optimizer_of(options.optimizer, in_groups(module.parameters()))
    batches = [net.batch(options.batch, options.sequence, options.image) for _ in range(options.accumulate)]
    tracker = tracker_of(net, module, update, batches, mesh)
    steps = 3 if options.optimizer.startswith("momentum") else 2
    with tracker:
        for i in range(steps):
            if i:
                tracker.reset_mod_stats()
            if i == steps - 1:
                start_peak(tracker)
            step(net, module, update, batches, mesh, tracker, options)
    (peak,) = tracker.get_tracker_snapshot("peak").values()
    return {getattr(kind, "value", kind): count for kind, count in peak.items()}, parameters


def run_on_gpu(mesh, options):
    """The same on fakes of a GPU, as its kernels have them."""
    ranks = meshes.open_groups(mesh, on_gpu=True)
    ranks = ranks and sharded.as_of_a_gpu(ranks)
    with sharded.session() as opened:
        with torch.device("cuda"), in_width(options):
            net = Trained(options.net, options.dropout, options.norms)
        with torch.device("cuda"):
            batches = [net.batch(options.batch, options.sequence, options.image) for _ in range(options.accumulate)]
        parameters = sum(each.numel() * each.element_size() for each in net.module.parameters())
        module = meshes.lay_out(net, mesh, ranks, options.precision == "bf16-master", options.recompute,
                                functools.partial(sharded.replicated, opened))
        update = optimizer_of(options.optimizer, module.parameters())
        told = sharded.oracle.selective_checkpoints(opened.gpu.devices)
        with sharded.tracking(opened, module, update, batches) as tracker, told:
            for i in range(3):
                if i:
                    tracker.reset_mod_stats()
                    start_peak(tracker)
                step(net, module, update, batches, mesh, tracker, options)
        return sharded.peak_of(tracker), parameters


def run_on_cpu(mesh, options):
    F.dropout = pytorch_memory.dropout
    for name in ("normal_", "uniform_", "trunc_normal_", "kaiming_uniform_"):
        setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)
    ranks = meshes.open_groups(mesh)
    with contextlib.nullcontext() if mesh.real else FakeTensorMode(allow_non_fake_inputs=True):
        return run(mesh, ranks, options)


def measure(mesh, options):
    """Live bytes at the peak by component."""
    try:
        counts, parameters = (run_on_gpu if options.device == "cuda" else run_on_cpu)(mesh, options)
    finally:
        dist.destroy_process_group()
        gc.collect()
    found = {key: sum(counts.get(kind, 0) for kind in kinds) for key, kinds in KINDS.items()}
    if mesh.replicated:  # the tracker takes the reducer's buckets, which are as large as all gradients, for activations
        found["buckets"], found["activations"] = parameters, found["activations"] - parameters
    return found | {"total": counts["Total"]}


# ---- snsim's side ----

def cluster_file(world):
    return {"snsim_cluster": 1, "name": "measured", "gpu": "h200", "gpus_per_node": world, "nodes": 1, "communicator_mib": 0,
            "node": {"link": "nvlink", "line_gb_per_s": 450, "bus_gb_per_s": 370}, "net": {"nics": 8, "line_gb_per_s": 50, "bus_gb_per_s": 47}}


def name_of(options):
    if options.device != "cuda" or not options.net.startswith("llm:") or options.recorded:
        return options.net
    return options.net + (",gpu=1" if options.norms == "torch" else ",gpu=1,simple_norms=1")


def record(options, path):
    """The same network and loop on one GPU, by snsim's recorder."""
    def make(batch):
        with in_width(options):
            net = Trained(options.net, options.dropout, options.norms)
        update = optimizer_of(options.optimizer, net.module.parameters())
        given = net.batch(batch, options.sequence, options.image)

        def step():
            update.zero_grad()
            compute(net, net.module, given, options)
            update.step()
        return [net.module], [update], step
    snsim.record(make, path=path, name="recorded")


def about_network(options, folder):
    """The options that say which network, and how it is trained."""
    if options.recorded:
        path = os.path.join(folder, "recorded.rec.gz")
        record(options, path)
        return ["--net", path, *(["--units", options.units] if options.units else [])]
    optimizer = f"{options.optimizer}:impl=foreach" if options.optimizer in ("adam", "adamw") else options.optimizer
    words = ["--net", name_of(options), "--optimizer", optimizer]
    if options.sequence:
        words += ["--sequence", str(options.sequence)]
    if options.precision != "fp32":
        words += ["--precision", options.precision]
    if options.accumulate > 1:
        words += ["--accumulate", str(options.accumulate)]
    return words


def question(mesh, options, folder):
    words = [*about_network(options, folder), "--batch", str(options.batch)]
    words += ["--parallel", options.parallel] if mesh.world > 1 else ["--gpu", "h200"]
    strategy = "pytorch" if mesh.tp > 1 else "pytorch-1.7"
    if options.recompute:
        strategy += f"+recompute={options.recompute}"
    return words + ["--strategy", strategy, "--costs", "model", "--no-db", "--json"]


def predict(mesh, options):
    """What snsim says, or why it says nothing."""
    if options.net.startswith("stack:") and not options.recorded:
        return None, "snsim has no such network"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cluster.json")
        with open(path, "w") as file:
            json.dump(cluster_file(mesh.world), file)
        where = ["--cluster", path] if mesh.world > 1 else []
        try:
            done = subprocess.run([options.snsim, *question(mesh, options, folder), *where], capture_output=True, text=True)
        except OSError as error:
            fail(2, f"{options.snsim}: {error.strerror}; build snsim, or name it with --snsim")
    if done.returncode > 1:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return None, said[-1].removeprefix("snsim: error: ")
    (result,) = json.loads(done.stdout)["results"]
    return {key: result["live_at_peak"].get(key, 0) for key in KINDS} | {"total": result["live_peak_bytes"]}, None


# ---- both ----

def label(options):
    what = f"{options.batch} x {options.sequence}" if options.sequence else f"{options.batch}"
    more = "".join(f", {text}" for text in (options.precision if options.precision != "fp32" else "", options.optimizer,
                                            f"accumulate {options.accumulate}" if options.accumulate > 1 else "",
                                            f"recompute={options.recompute}" if options.recompute else "",
                                            "norms of transformers" if options.norms == "transformers" else "") if text)
    return f"{name_of(options)}, {what}, {options.parallel}{more}"


def print_row(row):
    print(row["question"] + ("" if row["snsim"] else f"\n  snsim: {row['reason']}" if row["reason"] else ""))
    ours, theirs = row["snsim"], row["pytorch"]
    for key, bytes_ in theirs.items():
        if bytes_ or (ours and ours[key]):
            beside = f"{ours[key]:>18,}{ours[key] - bytes_:>+16,}" if ours else ""
            print(f"  {key:<22}{bytes_:>18,}{beside}", flush=True)


def print_line(row):
    """Of the table: shards and their gradients, unsharded, gather, reduce, activations and input, temporary, states."""
    f = row["pytorch"]
    columns = (f["sharded_parameters"] + f["sharded_gradients"], f["unsharded_parameters"] + f["unsharded_gradients"], f["all_gather"],
               f["reduce_scatter"], f["activations"] + f["buffers"], f["temporary"], f["optimizer"],
               f["parameters"] + f["gradients"] + f["buckets"], f["total"])
    error = f" {row['snsim']['total'] - f['total']:+,} |" if row["snsim"] else ""
    print(f"| {row['question']} | " + " | ".join(f"{count:,}" for count in columns) + f" |{error}", flush=True)


def parser():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--net", default=A)
    made.add_argument("--parallel", default="fsdp=8", metavar="KEY=VALUE,..")
    made.add_argument("--batch", type=int, default=1, help="of one forward of a rank")
    made.add_argument("--sequence", type=int, default=0, help="tokens")
    made.add_argument("--image", type=int, default=224, help="height and width of images (default: 224)")
    made.add_argument("--optimizer", default="adamw", help="sgd, momentum, adam or adamw; adamw:impl=fused")
    made.add_argument("--precision", choices=("fp32", "bf16", "bf16-master", "amp-bf16"), default="fp32")
    made.add_argument("--accumulate", type=int, default=1, metavar="N", help="micro-batches a step (default: 1)")
    made.add_argument("--recompute", choices=("units", "selective"), help="blocks under torch.utils.checkpoint, whole or by torchtitan's policy")
    made.add_argument("--dropout", type=float, default=0.1, help="of gpt2 (default: 0.1)")
    made.add_argument("--norms", choices=("torch", "transformers"), default="torch", help="of llm networks: nn.RMSNorm, or transformers' operations")
    made.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="whose kernels; cuda: no tp, needs no GPU")
    made.add_argument("--recorded", action="store_true", help="ask snsim about a recording of the same, not about the network by name")
    made.add_argument("--units", metavar="GLOBS", help="of the recording: its blocks")
    made.add_argument("--table", action="store_true", help="measure the questions of docs/measured/parallel.md")
    made.add_argument("--snsim", metavar="PROGRAM", help="ask it too")
    made.add_argument("--tolerance", type=int, metavar="BYTES", help="exit with 1 where a total differs by more")
    made.add_argument("--json", action="store_true", help="a line for each question")
    return made


def answer(options):
    try:
        mesh = meshes.Mesh(options.parallel)
    except ValueError as error:
        fail(2, error)
    if mesh.tp > 1 and not options.net.startswith(("llm:", *LLAMAS)):
        fail(2, f"tp is measured of llm networks, {', '.join(LLAMAS)}, and {options.net} is none")
    if options.device == "cuda" and mesh.tp > 1:
        fail(2, "--device cuda measures no tp, which needs tensors with values")
    if options.device == "cpu" and options.precision == "amp-bf16" and mesh.tp == 1:
        fail(2, "autocast is a GPU's: --device cuda")
    if options.recorded and options.accumulate > 1:
        fail(2, "a recording of several micro-batches is refused of several GPUs")
    if options.norms != "torch" and not options.net.startswith("llm:"):
        fail(2, f"--norms is of llm networks, and {options.net} is none")
    if not options.sequence and options.net.startswith(("llm:", "gpt2", *LLAMAS)):
        fail(2, f"{options.net} reads tokens: give --sequence")
    if min(options.batch, options.accumulate) < 1:
        fail(2, "--batch and --accumulate count from 1")
    ours, reason = predict(mesh, options) if options.snsim else (None, None)
    return {"question": label(options), "pytorch": measure(mesh, options), "snsim": ours, "reason": reason}


def main():
    made = parser()
    options = made.parse_args()
    asked = [options]
    if options.table:
        asked = [made.parse_args(["--net", net, "--batch", str(batch), "--sequence", str(tokens), *more.split()], argparse.Namespace(
            snsim=options.snsim)) for net, batch, tokens, more in TABLE]
    worst = -1
    for each in asked:
        row = answer(each)
        print(json.dumps(row), flush=True) if options.json else print_line(row) if options.table else print_row(row)
        worst = max(worst, abs(row["snsim"]["total"] - row["pytorch"]["total"]) if row["snsim"] else -1)
    sys.exit(1 if options.tolerance is not None and worst > options.tolerance else 0)


if __name__ == "__main__":
    main()
