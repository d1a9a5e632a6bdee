"""Trains networks of timm on a GPU as PyTorch starts today, and says how long an iteration takes and what of it each kind of kernel
takes (bench/timing/kinds.py), by torch.profiler: SGD with momentum, channels first, PyTorch's fused attention.

    python3 bench/timing/pytorch_kinds.py resnet50:256:224:bf16 vit_base_patch16_224:128:224:fp32 [--json]

NET:BATCH:SIZE:FORM; FORM is bf16 (autocast) or fp32 (whose convolutions PyTorch gives TF32 where the GPU has it, and whose products not).
An iteration is the median of 10 behind 5 that warm up, by events on the device between iterations for which the host does not
wait; then 3 are profiled. What no kernel ran in is the iteration less the time in which one did: where that is more than a tenth,
the host is what counts. A kernel of no operator is told apart (memcpy, memset, untold). A network that fails is a line with its
message, and the next one follows. --device cpu is for trying this program: there an operator's own time stands for its kernel.
Exit codes: 2 for what was asked, 4 where PyTorch, timm or a GPU is missing.
"""
import argparse
import functools
import gc
import json
import pathlib
import statistics
import sys
import tempfile
import time

try:
    import timm
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
except ImportError as error:
    print(f"pytorch_kinds.py: error: PyTorch and timm cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from timing import profiled, training  # noqa: E402

WARM_UP, MEASURED, PROFILED = 5, 10, 3
HOST_BOUND = 0.1
SELDOM = ("out", "names", "Dimname", "deprecated")  # overloads that no training calls


def job_of(text):
    words = text.split(":")
    if len(words) != 4 or not all(word.isdigit() and int(word) for word in words[1:3]) or words[3] not in training.FORMS:
        raise argparse.ArgumentTypeError(f"{text!r} is not NET:BATCH:SIZE:FORM, as resnet50:256:224:bf16")
    return words[0], int(words[1]), int(words[2]), words[3]


@functools.lru_cache(maxsize=None)
def composed(name):
    """Whether PyTorch has the operator only as others that it calls, so that no dispatch mode sees it."""
    packet = getattr(torch.ops.aten, name, None)
    usual = [overload for overload in (packet.overloads() if packet else ()) if not any(word in overload for word in SELDOM)]
    names = [f"aten::{name}" + ("" if overload == "default" else f".{overload}") for overload in usual]
    found = [torch._C._dispatch_has_kernel_for_dispatch_key(n, "CompositeImplicitAutograd") for n in names if torch._C._dispatch_has_kernel(n)]
    return bool(found) and all(found)


class Training:
    """A network, and iterations of it."""

    def __init__(self, name, batch, size, form, device):
        torch.manual_seed(1)
        self.device = device
        model = training.built(training.known_name(name), size).to(device).train()
        self.images = torch.randn(batch, 3, size, size, device=device)
        self.labels = torch.zeros(batch, dtype=torch.int64, device=device)
        self.parameters = sum(p.numel() for p in model.parameters())
        _, self.step = training.as_today(model, form, device)

    def iterate(self):
        self.step(self.images, self.labels)

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def mark(self):
        if self.device != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def times(self, count):
        """Milliseconds of each iteration, one behind the other."""
        marks = [self.mark()]
        for _ in range(count):
            self.iterate()
            marks.append(self.mark())
        self.wait()
        return [a.elapsed_time(b) if self.device == "cuda" else 1e3 * (b - a) for a, b in zip(marks, marks[1:])]

    def trace(self, count):
        """Events of so many iterations, behind one that warms the profiler up."""
        activities = [ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * (self.device == "cuda")]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            with profile(activities=activities, record_shapes=True, schedule=schedule(wait=0, warmup=1, active=count),
                         on_trace_ready=lambda made: made.export_chrome_trace(str(path))) as made:
                for _ in range(1 + count):
                    self.iterate()
                    self.wait()
                    made.step()
            return json.loads(path.read_text(encoding="utf-8"))["traceEvents"]


def kernels_in(events, device):
    calls = profiled.Calls(events)
    return profiled.kernels_of(events, calls) if device == "cuda" else profiled.own_times(calls, composed)


def sums_of(kernels, count):
    """Of an iteration, in milliseconds, the longest first; what an operator takes apart, and how the untold ones are called."""
    def rows(sums):
        return sorted(sums.items(), key=lambda item: -item[1].us)
    kinds = {kind: {"ms": s.us / 1e3 / count, "kernels": s.kernels / count} for kind, s in rows(profiled.by_kind(kernels, composed))}
    operators = [[*key, s.kernels / count, round(s.us / 1e3 / count, 6)] for key, s in rows(profiled.by_operator(kernels, composed))]
    return {"kernels_ms": sum(k.length for k in kernels) / 1e3 / count, "kinds": kinds, "operators": operators,
            "untold": sorted({row[1] for row in operators if row[0] == profiled.UNTOLD})}


def measured(job, device):
    net, batch, size, form = job
    run = Training(net, batch, size, form, device)
    run.times(WARM_UP)
    times = run.times(MEASURED)
    kernels = kernels_in(run.trace(PROFILED), device)
    median, sums = statistics.median(times), sums_of(kernels, PROFILED)
    busy = profiled.busy_us(kernels) / 1e3 / PROFILED if device == "cuda" else sums["kernels_ms"]
    idle = max(0.0, median - busy)
    return {"parameters": run.parameters, "iteration_ms": median, "fastest_ms": min(times), "slowest_ms": max(times),
            "images_per_second": 1e3 * batch / median, "busy_ms": busy, "idle_ms": idle, "host_bound": idle > HOST_BOUND * median, **sums}


def machine(device):
    row = {"framework": f"PyTorch {torch.__version__}", "timm": timm.__version__}
    if device == "cuda":
        row |= {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    return row


def answer(job, device):
    row = dict(zip(("net", "batch", "size", "precision"), job)) | machine(device)
    try:
        return row | measured(job, device)
    except Exception as failed:  # a network's fault, which is told; the next one is measured
        return row | {"failed": f"{type(failed).__name__}: {str(failed).strip()}".splitlines()[0]}


def say(row):
    head = f"{row['net']}, batch {row['batch']}, {row['size']}, {row['precision']}: "
    if "failed" in row:
        print(head + row["failed"])
        return
    print(f"{head}{row['iteration_ms']:.2f} ms, {row['idle_ms']:.2f} without a kernel{', which is the host' if row['host_bound'] else ''}")
    for kind, of in row["kinds"].items():
        print(f"  {kind:14} {of['ms']:9.3f} ms  {of['kernels']:7.1f} kernels")
    for name in row["untold"]:
        print(f"  untold: {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", metavar="NET:BATCH:SIZE:FORM", nargs="+", type=job_of)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", action="store_true", help="a line for each, as it comes")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("pytorch_kinds.py: error: PyTorch finds no GPU", file=sys.stderr)
        sys.exit(4)
    for job in options.jobs:
        row = answer(job, options.device)
        print(json.dumps(row), flush=True) if options.json else say(row)
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
