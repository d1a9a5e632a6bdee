"""PyTorch's autocast as a GPU has it, for tensors that are on a CPU (bench/pytorch_memory.py). Both have the same list of
operations in 16 bits; the lists of those in 32 bits differ (aten/src/ATen/autocast_mode.h), and what matters of
that here is done by a mode in which every call of a function of PyTorch's comes by.
"""
import contextlib

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}

IN_32_BITS = {F.layer_norm, F.group_norm, F.rms_norm, F.softmax, F.log_softmax, F.nll_loss, F.softplus, F.interpolate,
              torch.softmax, torch.log_softmax, torch.pow, torch.rsqrt, torch.exp, torch.Tensor.softmax, torch.Tensor.pow,
              torch.Tensor.__pow__, torch.Tensor.sum, torch.sum, torch.layer_norm, torch.group_norm, torch.nn.functional.normalize}


# In a CPU's list of those in 32 bits and in none of a GPU's: they take what there is.
AS_THEY_ARE = {F.max_pool3d, F.max_pool3d_with_indices, torch.max_pool3d}


class GpuAutocast(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.cross_entropy:
            return cross_entropy(*args, **(kwargs or {}))
        if function in IN_32_BITS:
            args = [wide(value) for value in args]
        if function in AS_THEY_ARE:
            with torch.autocast("cpu", enabled=False):
                return function(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def cross_entropy(logits, labels, label_smoothing=0.0, **options):
    """PyTorch's own names the type of its log-softmax, that of the logits, so that a GPU's autocast leaves it alone, and
    casts for the likelihood alone. A CPU's list has the whole, which would cast the logits."""
    assert label_smoothing == 0
    return F.nll_loss(wide(torch.log_softmax(logits, 1, dtype=logits.dtype)), labels, **options)


def wide(value):
    narrow = torch.is_tensor(value) and value.is_floating_point() and value.element_size() < 4
    return value.float() if narrow else value


@contextlib.contextmanager
def autocast(precision):
    """Of "amp-bf16" and "amp-fp16"; of others nothing."""
    dtype = DTYPES.get(precision.removeprefix("amp-")) if precision.startswith("amp-") else None
    if dtype is None:
        yield
        return
    with torch.autocast("cpu", dtype=dtype), GpuAutocast():
        yield


@contextlib.contextmanager
def made_in(precision):
    """Modules made here have parameters and buffers of "bf16" or "fp16"; of others float32."""
    torch.set_default_dtype(DTYPES.get(precision, torch.float32))
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
