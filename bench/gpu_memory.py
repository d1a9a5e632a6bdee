"""What of a GPU's memory the driver counts as in use, and what a context, cuDNN and cuBLAS take of it, by NVML (libnvidia-ml, part of
the driver).

    python3 bench/gpu_memory.py [--json]            the runtime's context, then a handle of cuDNN, then one of cuBLAS
    python3 bench/gpu_memory.py --pytorch [--json]  PyTorch's: its context, a product, a convolution forward and backward, without what its
                                                    allocator holds
    python3 bench/gpu_memory.py --modules eager ..  with all kernels loaded at once (CUDA_MODULE_LOADING), not as they are used

Nothing else should use the GPU meanwhile. Which GPU: the first that CUDA_VISIBLE_DEVICES leaves. Exit code 4 where the driver, a library or
a GPU is missing.
"""
import argparse
import ctypes
import json
import os
import sys


class Missing(Exception):
    """What is missing, in words."""


def load(*names):
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            reason = error
    raise Missing(f"{names[0]} cannot be loaded: {reason}")


class NvmlMemory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("unused", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml:
    """The first visible GPU, as the driver sees it; makes no context."""

    def __init__(self):
        self.library = load("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self.call("nvmlInit_v2")
        word = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
        if word and not word.isdigit():
            self.call("nvmlDeviceGetHandleByUUID", word.encode(), ctypes.byref(self.device))
        else:
            self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(int(word or 0)), ctypes.byref(self.device))

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise Missing(f"{name} failed with code {code}")

    def used(self):
        memory = NvmlMemory()
        self.call("nvmlDeviceGetMemoryInfo", self.device, ctypes.byref(memory))
        return memory.used

    def text(self, name, *arguments):
        buffer = ctypes.create_string_buffer(96)
        self.call(name, *arguments, buffer, ctypes.c_uint(len(buffer)))
        return buffer.value.decode()


_nvml = None


def nvml():
    global _nvml
    _nvml = _nvml or Nvml()
    return _nvml


def used_bytes():
    """In use on the device; None where there is no NVML."""
    try:
        return nvml().used()
    except Missing:
        return None


def used_before(torch):
    """In use ahead of PyTorch's context, which what is asked of it behind this may make. Missing where it finds no GPU."""
    used = used_bytes()
    if not torch.cuda.is_available():
        raise Missing("PyTorch finds no GPU")
    if used is None:
        raise Missing("NVML (libnvidia-ml.so.1), which tells what is in use, cannot be loaded")
    return used


def is_short(error):
    """Whether PyTorch's error is want of memory: its allocator says so, or of all engines of a convolution none had room for its workspace."""
    return type(error).__name__ == "OutOfMemoryError" or "unable to find an engine" in str(error)


def must(library, name, *arguments):
    code = getattr(library, name)(*arguments)
    if code:
        raise Missing(f"{name} failed with code {code}")


def runtime_stages(note):
    runtime = load("libcudart.so.13", "libcudart.so.12")
    must(runtime, "cudaSetDevice", 0)
    must(runtime, "cudaFree", None)
    note("context")
    handle = ctypes.c_void_p()
    must(load("libcudnn.so.9"), "cudnnCreate", ctypes.byref(handle))
    note("cuDNN's handle")
    blas = ctypes.c_void_p()
    must(load("libcublas.so.13", "libcublas.so.12"), "cublasCreate_v2", ctypes.byref(blas))
    note("cuBLAS's handle")


def pytorch_stages(note):
    try:
        import torch
    except ImportError as error:
        raise Missing(f"PyTorch cannot be imported by this Python: {error}") from error
    if not torch.cuda.is_available():
        raise Missing("PyTorch finds no GPU")
    held = torch.cuda.memory_reserved
    x = torch.randn(64, 64, device="cuda")
    note("context", held())
    (x @ x).sum().item()
    note("a product", held())
    images = torch.randn(8, 64, 56, 56, device="cuda")
    torch.nn.Conv2d(64, 64, 3, padding=1).cuda()(images).sum().backward()
    torch.cuda.synchronize()
    note("a convolution forward and backward", held())


def measure(of_pytorch):
    base, stages = nvml().used(), []

    def note(name, apart=0):
        stages.append({"stage": name, "bytes": nvml().used() - base - apart})

    (pytorch_stages if of_pytorch else runtime_stages)(note)
    return {"device": nvml().text("nvmlDeviceGetName", nvml().device), "driver": nvml().text("nvmlSystemGetDriverVersion"),
            "of": "PyTorch" if of_pytorch else "the runtime", "modules": os.environ.get("CUDA_MODULE_LOADING", ""), "before_bytes": base, "stages": stages}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pytorch", action="store_true")
    parser.add_argument("--modules", choices=("lazy", "eager"), help="(default: what CUDA_MODULE_LOADING says, else the driver's)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.modules:  # ahead of any library of CUDA
        os.environ["CUDA_MODULE_LOADING"] = options.modules.upper()
    try:
        row = measure(options.pytorch)
    except Missing as error:
        print(f"gpu_memory.py: error: {error}", file=sys.stderr)
        return 4
    if options.json:
        print(json.dumps(row))
        return 0
    print(f"{row['device']}, driver {row['driver']}: {row['before_bytes'] / 2**20:.1f} MiB in use before")
    for stage in row["stages"]:
        print(f"  {stage['stage']:<36}{stage['bytes'] / 2**20:>10.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
