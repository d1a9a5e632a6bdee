"""Trains a network with PyTorch eager on a GPU, as plainly as most people do, and says how fast and in how much memory:
random images that are on the GPU already, SGD with momentum, `zero_grad(); loss(net(images)).backward(); step()`.

    python3 bench/pytorch_eager.py --net tv_resnet50 --batch 64 [--tf32] [--benchmark] [--largest] [--json]
    python3 bench/pytorch_eager.py --net tv_vgg16 --batch 64 --precision amp-bf16 --weight-decay 0

A tv_ network is torchvision's own, any other is made of the layers that `snsim graph --json` says it has. Without --tf32
float32 is computed as float32; with it convolutions and products may use TF32. --benchmark is torch.backends.cudnn.benchmark:
cuDNN's algorithms are tried, not guessed, for the price of their workspaces meanwhile.

It prints images/s (the median iteration behind 3 that warm up; events on the device), the most that PyTorch's allocator handed out
(torch.cuda.max_memory_allocated) and held (max_memory_reserved), what the driver says is in use beyond what was before, and
what of that is neither: the context with its libraries. --largest also tries how large a batch trains, to 1 %; what was found
by then goes to the standard error. --device cpu is for trying this program: times alone, and no memory. Exit codes: 2 for what was asked, 4
where PyTorch or a GPU is missing.
"""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time

try:
    import torch
    from torch.nn import functional as F
except ImportError as error:
    print(f"pytorch_eager.py: error: PyTorch cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

import gpu_memory
import pytorch_zoo

PRECISIONS = {"fp32": None, "amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}
WARM_UP = 3


def fail(code, text):
    print(f"pytorch_eager.py: error: {text}", file=sys.stderr)
    sys.exit(code)


def optimizer_of(options, parameters):
    if options.optimizer in ("adam", "adamw"):
        maker = torch.optim.Adam if options.optimizer == "adam" else torch.optim.AdamW
        return maker(parameters, lr=0.001, weight_decay=options.weight_decay)
    return torch.optim.SGD(parameters, lr=0.001, momentum=0.9 if options.optimizer == "momentum" else 0,
                           weight_decay=options.weight_decay)


class Clock:
    """Milliseconds between begin() and end(), on the device where there is one."""

    def __init__(self, device):
        self.on_gpu = device == "cuda"

    def begin(self):
        if self.on_gpu:
            self.first, self.last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.first.record()
        else:
            self.first = time.perf_counter()

    def end(self):
        if not self.on_gpu:
            return 1e3 * (time.perf_counter() - self.first)
        self.last.record()
        torch.cuda.synchronize()
        return self.first.elapsed_time(self.last)


def iteration(net, update, images, labels, options, scaler):
    dtype = PRECISIONS[options.precision]
    update.zero_grad()
    with torch.autocast(options.device, dtype=dtype) if dtype else contextlib.nullcontext():
        loss = F.cross_entropy(net(images), labels)
    if scaler is None:
        loss.backward()
        update.step()
        return
    scaler.scale(loss).backward()
    scaler.step(update)
    scaler.update()


def train(options, batch, iterations, warm_up=WARM_UP):
    """Milliseconds of each iteration, and how many parameters there are."""
    torch.manual_seed(1)
    net, shape = pytorch_zoo.image_network(options.snsim, options.net)
    net = net.to(options.device).train()
    update = optimizer_of(options, net.parameters())
    images = torch.randn(batch, *shape, device=options.device)
    labels = torch.zeros(batch, dtype=torch.int64, device=options.device)  # whatever classes there are
    scaler = torch.amp.GradScaler(options.device) if options.precision == "amp-fp16" else None
    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    clock, times = Clock(options.device), []
    for _ in range(warm_up + iterations):
        clock.begin()
        iteration(net, update, images, labels, options, scaler)
        times.append(clock.end())
    return times[warm_up:], sum(p.numel() for p in net.parameters())


def fits(options, batch):
    """Whether two iterations run; what a failed one held is given back."""
    done = False
    try:
        train(options, batch, 1, warm_up=1)
        done = True
    except RuntimeError as error:
        if not gpu_memory.is_short(error):
            raise
    torch.cuda.empty_cache()  # here nothing refers to the network any more
    print(f"{options.net}, batch {batch}: {'trains' if done else 'does not fit'}", file=sys.stderr, flush=True)
    return done


def largest_batch(options):
    low, high = 0, options.batch
    while fits(options, high):
        low, high = high, 2 * high
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(options, middle) else (low, middle)
    return low


def memory(base):
    """What the allocator and the driver say. cuDNN's and cuBLAS's handles and kernels are in the context."""
    used = gpu_memory.used_bytes() - base
    held_now = torch.cuda.memory_reserved()
    return {"allocated_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved(),
            "driver_bytes": used, "context_bytes": used - held_now}


def measure(options, base):
    times, parameters = train(options, options.batch, options.iterations)
    median = statistics.median(times)
    row = {"net": options.net, "batch": options.batch, "precision": options.precision, "tf32": options.tf32,
           "benchmark": options.benchmark, "optimizer": options.optimizer, "framework": f"PyTorch {torch.__version__}",
           "parameters": parameters, "iterations": options.iterations, "iteration_ns": round(median * 1e6), "fastest_ns": round(min(times) * 1e6),
           "slowest_ns": round(max(times) * 1e6), "images_per_second": options.batch / (median / 1e3)}
    if options.device == "cpu":
        return row | {"device": "CPU"}
    row |= {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    row |= memory(base)
    if options.largest:
        torch.cuda.empty_cache()
        row["largest_batch"] = largest_batch(options)
    return row


def say(row):
    text = (f"{row['net']}, batch {row['batch']}, {row['precision']}{', TF32' if row['tf32'] else ''}, {row['framework']} on "
            f"{row['device']}: {row['images_per_second']:.1f} images/s")
    if "allocated_bytes" in row:
        text += "".join(f", {row[key + '_bytes'] / 2**20:.0f} MiB {word}" for key, word in
                        (("allocated", "allocated"), ("reserved", "reserved"), ("driver", "in use"), ("context", "context")))
    print(text + (f", largest batch {row['largest_batch']}" if "largest_batch" in row else ""))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--optimizer", choices=("sgd", "momentum", "adam", "adamw"), default="momentum")
    parser.add_argument("--weight-decay", type=float, default=0.0005)
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--benchmark", action="store_true")
    parser.add_argument("--largest", action="store_true", help="also try how large a batch trains")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--snsim", default=os.path.join(os.path.dirname(__file__), "..", "build", "snsim"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.batch < 1 or options.iterations < 1:
        parser.error("--batch and --iterations must be at least 1")
    if options.largest and options.device == "cpu":
        parser.error("--largest fills a GPU; leave out --device cpu")
    return options


def main():
    options = read_options()
    base = 0
    if options.device == "cuda":
        try:
            base = gpu_memory.used_before(torch)
        except gpu_memory.Missing as missing:
            fail(4, str(missing))
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
        torch.backends.cudnn.benchmark = options.benchmark
    try:
        row = measure(options, base)
    except (RuntimeError, ImportError) as error:
        fail(4 if isinstance(error, ImportError) else 2, str(error).strip().splitlines()[0])
    print(json.dumps(row)) if options.json else say(row)


if __name__ == "__main__":
    main()
