"""Compares snsim's live bytes of the dialect `pytorch` with PyTorch itself, component by component, with no GPU: PyTorch runs
on fake tensors, which have sizes and no values, and its MemTracker counts the storages that live.

    python3 bench/pytorch_memory.py --net tv_resnet50,tv_vgg16 --batch 32,64 --optimizer momentum,adam
    python3 bench/pytorch_memory.py --net models/examples/small_resnet.json --batch 128 --json

A tv_ network is torchvision's own, and so is one that has no other form (torchvision_name()); any other is built from the layers that `snsim graph --json`
says it has. Two iterations
of `zero_grad(); loss = cross_entropy(net(batch), labels); loss.backward(); step()`; the peak is that of both. With
--accumulate N the loss and its backward() come N times before each step(). With --inference it is `softmax(net(batch))` in
eval mode and without gradients; torchvision's modules hold the input of a Sequential until it returns, which --flat, a
network built from its layers, does not. Where two
gradients meet, PyTorch adds in place if it alone holds the first; under a dispatch mode, as MemTracker is one, it never
does. --sums in-place (default) undoes that by the reference counts it would look at; --sums out-of-place leaves it.

With --freeze the modules whose names match are not trained (requires_grad_(False)).

With --precision bf16 or fp16 network, batch and all that is made of them have two bytes an element. With amp-bf16 or amp-fp16
network and loss run under autocast, whose lists of operations are a GPU's (GpuAutocast), and backward outside of it.

Two things are as on a GPU, not as on a CPU: a dropout mask has 1 byte an element (one kernel makes it), and optimizers
work on all parameters at once (foreach). What the caching allocator makes of it cannot be recorded here: it exists on
CUDA devices only. Exit codes: 1 where a total differs by more than --tolerance, 2 and 3 for what was asked, 4 where PyTorch
is missing. `pip install --no-deps torch torchvision` and a few small packages are enough (docs/development.md).
"""
import argparse
import fnmatch
import json
import logging
import os
import subprocess
import sys
import types
import warnings

COMPONENTS = ("parameters", "buffers", "gradients", "optimizer", "activations", "temporary")

os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
warnings.simplefilter("ignore")
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)  # it misses triton, which nothing here needs
try:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.nn import functional as F
except ImportError as error:
    print(f"pytorch_memory.py: error: PyTorch cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

import pytorch_zoo
from pytorch_autocast import DTYPES, autocast, made_in
from pytorch_network import Network
from pytorch_zoo import torchvision_name

ADD, ADD_IN_PLACE = torch.ops.aten.add.Tensor, torch.ops.aten.add_.Tensor


def fail(code, text):
    print(f"pytorch_memory.py: error: {text}", file=sys.stderr)
    sys.exit(code)


# ---- PyTorch's side: the network ----

def dropout(x, p=0.5, training=True, inplace=False):
    """The one kernel that a GPU has; a CPU's dropout makes a mask of floats."""
    return torch.native_dropout(x, p, training)[0] if training and p > 0 else x


def torchvision_network(name):
    torch.nn.init.trunc_normal_ = lambda tensor, **_: tensor  # it looks at values, which fake tensors have none of
    try:
        return pytorch_zoo.torchvision_network(name)
    except ImportError as error:
        fail(4, f"torchvision cannot be imported by this Python: {error}")


def optimizer_of(name, parameters):
    makers = {"sgd": lambda: torch.optim.SGD(parameters, 0.01, foreach=True),
              "momentum": lambda: torch.optim.SGD(parameters, 0.01, momentum=0.9, foreach=True),
              "adam": lambda: torch.optim.Adam(parameters, foreach=True),
              "adamw": lambda: torch.optim.AdamW(parameters, foreach=True),
              "adam8bit": lambda: of_8bit("Adam8bit", parameters),
              "adamw8bit": lambda: of_8bit("AdamW8bit", parameters)}
    return makers[name]()


def of_8bit(name, parameters):
    try:
        import bitsandbytes
    except ImportError as error:
        fail(4, f"bitsandbytes cannot be imported by this Python: {error}")
    bitsandbytes.functional.create_dynamic_map = lambda *_, **__: torch.empty(256)  # made of values
    return getattr(bitsandbytes.optim, name)(parameters)


def freeze(net, globs):
    """The modules whose names match: as snsim's, but that [ has a meaning here."""
    flat = isinstance(net, Network)
    for name, module in zip((layer["name"] for layer in net.layers), net.members) if flat else net.named_modules():
        if any(fnmatch.fnmatchcase(name, glob) for glob in globs):
            for parameter in module.parameters(recurse=False):
                parameter.requires_grad_(False)


# ---- PyTorch's side: what lives ----

def is_dense(tensor):
    step = 1
    for stride, size in sorted((stride, size) for size, stride in zip(tensor.shape, tensor.stride()) if size > 1):
        if stride != step:
            return False
        step *= size
    return True


def held_alone(tensor):
    """Whether the engine's buffer alone holds a gradient: 4 references to the tensor and 2 to its storage are those of
    the buffer, of Python's wrappers and of this call."""
    storage = tensor.untyped_storage()
    return tensor._use_count() <= 4 and torch._C._storage_Use_Count(storage._cdata) <= 2


class Tracker(MemTracker):
    sums_in_place = True

    def leave_alone(self, frozen):
        """MemTracker hooks into the gradients of all parameters, which only those have that are trained."""
        nothing = types.SimpleNamespace(remove=lambda: None)
        for parameter in frozen:
            self._param_to_grad_hook_handles[parameter] = (nothing, nothing)

    def _update_peak_stats(self, state):
        """MemTracker's, without what it keeps for each module, which takes most of its time."""
        for device, now in self._curr_mem_snap.items():
            if self._peak_mem.get(device, 0) < now["Total"]:
                self._peak_mem[device] = now["Total"]
                self._peak_mem_snap[device] = dict(now)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        is_sum = func is ADD and self._mod_tracker.is_bw and len(args) == 2 and not kwargs
        if is_sum and self.sums_in_place and is_dense(args[0]) and held_alone(args[0]):
            super().__torch_dispatch__(ADD_IN_PLACE, types, args, kwargs)
            return args[0]
        return super().__torch_dispatch__(func, types, args, kwargs)


def loss_of(net, batch, labels):
    ends = net(batch)
    if torch.is_tensor(ends):
        return F.cross_entropy(ends, labels)
    losses = [F.cross_entropy(ends.pop(0), labels) for _ in range(len(ends))]
    return losses[0] if len(losses) == 1 else sum(losses)


def run(net, images, tracker, precision):
    """The network alone."""
    with torch.no_grad(), autocast(precision):
        ends = net.eval()(images)
        for end in [ends] if torch.is_tensor(ends) else ends:
            F.softmax(end, 1)
    tracker.reset_mod_stats()


def train(net, update, images, tracker, accumulate, precision):
    labels = torch.zeros(len(images), *getattr(net, "positions", ()), dtype=torch.int64)
    for _ in range(2):
        update.zero_grad()
        for _ in range(accumulate):
            with autocast(precision):
                loss = loss_of(net, images, labels)
            loss.backward()
            del loss
            tracker.reset_mod_stats()
        update.step()


def measure(network, name, batch, optimizer, options):
    """Live bytes at the peak by component, as MemTracker has them."""
    twin = torchvision_name(name) if not options.flat else None
    F.dropout = dropout
    with FakeTensorMode():
        with made_in(options.precision):
            net = torchvision_network(twin) if twin else Network(network, lambda x, layer, training: dropout(x, layer["ratio"], training))
        freeze(net, options.freeze)
        update = optimizer_of(optimizer, [each for each in net.parameters() if each.requires_grad])
        tracker = Tracker()
        tracker.sums_in_place = options.sums == "in-place"
        tracker.leave_alone(each for each in net.parameters() if not each.requires_grad)
        tracker.track_external(net, update)
        with tracker:
            sides = [int(side) for side in options.image.split("x")] * 2 if options.image else network["input"][-2:]
            images = torch.randn(batch, *network["input"][:-2], *sides[:2], dtype=DTYPES.get(options.precision, torch.float32))
            if options.inference:
                run(net, images, tracker, options.precision)
            else:
                train(net, update, images, tracker, options.accumulate, options.precision)
        (peak,) = tracker.get_tracker_snapshot("peak").values()
    words = {getattr(kind, "value", kind): count for kind, count in peak.items()}
    kinds = ("Parameter", "Buffer", "Gradient", "Optstate", "Activation", "Temp")
    found = dict(zip(COMPONENTS, (words.get(kind, 0) for kind in kinds)))
    return found | {"total": words["Total"]}


# ---- snsim's side ----

def ask(program, *arguments):
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
    except OSError as error:
        fail(2, f"{program}: {error.strerror}; build snsim, or name it with --snsim")
    if done.returncode > 1:
        fail(done.returncode, f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def simulate(name, batch, optimizer, options):
    chosen = [] if optimizer == "momentum" else ["--optimizer", optimizer]
    what = ["--inference"] if options.inference else ["--accumulate", str(options.accumulate)]
    if options.image:
        what += ["--image", options.image]
    if options.freeze:
        what += ["--freeze", ",".join(options.freeze)]
    if options.precision != "fp32":
        what += ["--precision", options.precision, "--gpu", "a100_40"]  # one that has it: bytes do not depend on it
    answer = ask(options.snsim, "--net", name, "--batch", str(batch), "--strategy", options.strategy, *chosen, *what,
                 "--costs", "model", "--no-db", "--json")
    result = answer["results"][0]
    if "live_at_peak" not in result:
        fail(2, f"strategy {options.strategy} has no \"live_at_peak\" in its results; take one of the dialect pytorch")
    return {key: result["live_at_peak"][key] for key in COMPONENTS} | {"total": result["live_peak_bytes"]}


# ---- both ----

def print_row(row):
    times = f", {row['accumulate']} batches an update" if row["accumulate"] > 1 else ""
    print(f"{row['net']}, batch {row['batch']}, {row['precision']}, {'run' if row['inference'] else row['optimizer'] + times}")
    print(f"  {'':<12}{'snsim':>18}{'PyTorch':>18}{'difference':>16}")
    for key in (*COMPONENTS, "total"):
        ours, theirs = row["snsim"][key], row["pytorch"][key]
        print(f"  {key:<12}{ours:>18,}{theirs:>18,}{ours - theirs:>+16,}", flush=True)


def words_of(text):
    return [word for word in text.split(",") if word]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", type=words_of, default=["tv_resnet50"], help="names and files, parted by commas")
    parser.add_argument("--batch", type=words_of, default=["32"], help="batches, parted by commas")
    parser.add_argument("--optimizer", type=words_of, default=["momentum"], help="of sgd, momentum, adam, adamw, adam8bit, adamw8bit")
    parser.add_argument("--image", metavar="N|HxW", help="the size of images, instead of the network's own; torchvision's networks")
    parser.add_argument("--accumulate", type=int, default=1, metavar="N", help="batches an update (default: 1)")
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16", "amp-bf16", "amp-fp16"), default="fp32")
    parser.add_argument("--freeze", type=words_of, default=[], metavar="GLOB,..", help="modules that are not trained")
    parser.add_argument("--inference", action="store_true", help="the network is run, not trained")
    parser.add_argument("--flat", action="store_true", help="build torchvision's networks from their layers too")
    parser.add_argument("--sums", choices=("in-place", "out-of-place"), default="in-place")
    parser.add_argument("--strategy", default="pytorch", help="snsim's; with sums out of place it is pytorch-1.7")
    parser.add_argument("--snsim", default=os.path.join(os.path.dirname(__file__), "..", "build", "snsim"))
    parser.add_argument("--tolerance", type=int, metavar="BYTES", help="exit with 1 where a total differs by more")
    parser.add_argument("--pytorch-only", action="store_true", help="do not ask snsim to simulate")
    parser.add_argument("--json", action="store_true", help="a line for each comparison")
    options = parser.parse_args()
    unknown = set(options.optimizer) - {"sgd", "momentum", "adam", "adamw", "adam8bit", "adamw8bit"}
    if options.accumulate < 1:
        fail(2, "--accumulate counts from 1")
    if unknown or not all(batch.isdigit() and int(batch) > 0 for batch in options.batch):
        fail(2, f"unknown optimizer {unknown.pop()}" if unknown else "a batch is a whole number from 1")
    if options.inference and (options.accumulate > 1 or len(options.optimizer) > 1):
        fail(2, "--inference updates nothing: leave out --accumulate and --optimizer")
    worst = (-1, None)
    for name in options.net:
        network = ask(options.snsim, "graph", "--net", name, "--json")["network"]
        for batch, optimizer in ((int(b), o) for b in options.batch for o in options.optimizer):
            row = {"net": name, "batch": batch, "optimizer": optimizer, "sums": options.sums,
                   "accumulate": options.accumulate, "inference": options.inference, "precision": options.precision,
                   "freeze": options.freeze,
                   "pytorch": measure(network, name, batch, optimizer, options)}
            if options.pytorch_only:
                print(json.dumps(row), flush=True)
                continue
            row["snsim"] = simulate(name, batch, optimizer, options)
            print(json.dumps(row), flush=True) if options.json else print_row(row)
            off = abs(row["snsim"]["total"] - row["pytorch"]["total"])
            worst = max(worst, (off, row), key=lambda pair: pair[0])
    if worst[1] and not options.json:
        share = 100 * worst[0] / worst[1]["pytorch"]["total"]
        print(f"worst total: {worst[0]:,} bytes off, {share:.4f} % ({worst[1]['net']}, batch {worst[1]['batch']}, "
              f"{worst[1]['optimizer']})")
    sys.exit(1 if options.tolerance is not None and worst[0] > options.tolerance else 0)


if __name__ == "__main__":
    main()
