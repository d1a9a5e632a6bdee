"""What a GPU's profile says of it (docs/devices.md), measured by PyTorch: memory, products of matrices, copies, launches, allocations.

    python3 bench/gpu/gpu_rates.py [--json]
    python3 bench/gpu/gpu_rates.py --small --json    of small sizes, for trying this program; its figures mean nothing

Products are of 8192 x 8192 random elements. A copy within the device counts what it reads and writes, 2 x 1 GiB; copies over the link
are of 256 MiB pinned memory, each way alone and both at once. A launch is what a kernel of one element takes of the device, queued
behind one that runs long; an allocation is cudaMalloc of 64 MiB and its cudaFree on an idle device. All are medians. Nothing else
should use the GPU meanwhile. Exit code 4 where PyTorch or a GPU is missing.
"""
import argparse
import ctypes
import json
import pathlib
import statistics
import sys
import time

try:
    import torch
except ImportError as error:
    print(f"gpu_rates.py: error: PyTorch cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from gpu_memory import Missing, load, must, nvml  # noqa: E402

SLEEP_CYCLES = 50_000_000  # some 30 ms, in which the host queues what is measured
PRODUCTS = {"fp32": (torch.float32, "highest"), "tf32": (torch.float32, "high"), "bf16": (torch.bfloat16, "highest"), "fp16": (torch.float16, "highest")}


def device_seconds(work, times=1):
    """Of one of `times` calls of work(), by the device's clock."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(SLEEP_CYCLES)
    first.record()
    for _ in range(times):
        work()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / 1e3 / times


def median_seconds(work, times=1, samples=7):
    device_seconds(work, times)
    return statistics.median(device_seconds(work, times) for _ in range(samples))


def product_rate(word, side):
    """FLOP/s."""
    dtype, precision = PRODUCTS[word]
    torch.set_float32_matmul_precision(precision)
    a, b = (torch.randn(side, side, device="cuda", dtype=dtype) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * side**3 / median_seconds(lambda: torch.mm(a, b, out=out), 3)


def device_copy_rate(size):
    """Bytes/s, read and written."""
    a, b = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    return 2 * size / median_seconds(lambda: b.copy_(a), 3)


def link_rates(size):
    """Bytes/s out, in, and of both at once their sum; and seconds of a copy of four bytes."""
    host, other = (torch.empty(size, dtype=torch.uint8, pin_memory=True) for _ in range(2))
    device, back = (torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    side = torch.cuda.Stream()

    def both():
        side.wait_stream(torch.cuda.current_stream())
        host.copy_(device, non_blocking=True)
        with torch.cuda.stream(side):
            back.copy_(other, non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)

    out, into = (lambda: host.copy_(device, non_blocking=True)), (lambda: back.copy_(other, non_blocking=True))
    short = median_seconds(lambda: host[:4].copy_(device[:4], non_blocking=True), 100)
    return {"out_bytes_per_s": size / median_seconds(out, 3), "in_bytes_per_s": size / median_seconds(into, 3),
            "together_bytes_per_s": 2 * size / median_seconds(both, 3), "copy_latency_ns": round(1e9 * short)}


def launch_seconds():
    x = torch.zeros(1, device="cuda")
    return median_seconds(lambda: x.add_(1), 500)


def allocation_seconds(size, times=20):
    """Of cudaMalloc and of cudaFree."""
    runtime = load("libcudart.so.13", "libcudart.so.12")
    taken, given = [], []
    for _ in range(times):
        pointer = ctypes.c_void_p()
        begin = time.perf_counter()
        must(runtime, "cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(size))
        middle = time.perf_counter()
        must(runtime, "cudaFree", pointer)
        taken.append(middle - begin)
        given.append(time.perf_counter() - middle)
    return statistics.median(taken), statistics.median(given)


def measure(small):
    scale = 64 if small else 1
    properties = torch.cuda.get_device_properties(0)
    row = {"device": properties.name, "driver": nvml().text("nvmlSystemGetDriverVersion"), "framework": f"PyTorch {torch.__version__}",
           "cuda": torch.version.cuda, "memory_bytes": properties.total_memory, "multiprocessors": properties.multi_processor_count}
    row["flops"] = {word: product_rate(word, 8192 // scale) for word in PRODUCTS if word != "bf16" or torch.cuda.is_bf16_supported()}
    row["copy_bytes_per_s"] = device_copy_rate(2**30 // scale)
    row |= link_rates(2**28 // scale)
    malloc, free = allocation_seconds(2**26 // scale)
    return row | {"launch_ns": round(1e9 * launch_seconds()), "malloc_ns": round(1e9 * malloc), "free_ns": round(1e9 * free)}


def say(row):
    print(f"{row['device']}, driver {row['driver']}, {row['framework']}: {row['memory_bytes'] / 2**20:.0f} MiB, {row['multiprocessors']} multiprocessors")
    for word, rate in row["flops"].items():
        print(f"  {word + ' product':<28}{rate / 1e12:>10.1f} TFLOP/s")
    for word, key in (("copy within the device", "copy"), ("copies out", "out"), ("copies in", "in"), ("both at once", "together")):
        print(f"  {word:<28}{row[key + '_bytes_per_s'] / 1e9:>10.1f} GB/s")
    for word, key in (("copy of four bytes", "copy_latency"), ("launch", "launch"), ("cudaMalloc", "malloc"), ("cudaFree", "free")):
        print(f"  {word:<28}{row[key + '_ns'] / 1e3:>10.1f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("gpu_rates.py: error: PyTorch finds no GPU", file=sys.stderr)
        return 4
    try:
        row = measure(options.small)
    except Missing as error:
        print(f"gpu_rates.py: error: {error}", file=sys.stderr)
        return 4
    print(json.dumps(row)) if options.json else say(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
