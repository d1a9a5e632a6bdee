"""What an operation costs: flags of its kernel, flops, bytes, and the shapes that tell how long it takes."""
from __future__ import annotations

import logging
from typing import Any, Iterable, List, Optional

import torch
from torch.utils._pytree import tree_iter

logging.getLogger("torch.utils.flop_counter").addFilter(lambda record: "triton" not in record.getMessage())
from torch.utils.flop_counter import flop_registry  # noqa: E402

RANDOM, CHANGES_MODEL, ATTENTION, CONVOLUTION, PRODUCT, CHANNELS_LAST = 1, 2, 4, 8, 16, 32

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "linear", "_scaled_mm", "_grouped_mm",
             "_cudnn_rnn", "_cudnn_rnn_backward", "_int_mm")
_CONVOLUTIONS = ("convolution", "convolution_backward", "cudnn_convolution", "cudnn_convolution_transpose")


def flags_of(func: Any) -> int:
    """Of a kernel: which of the bits above its name alone tells."""
    name = func._schema.name.split("::")[-1]
    flags = RANDOM if torch.Tag.nondeterministic_seeded in func.tags else 0
    if "attention" in name or "flex_" in name:
        flags |= ATTENTION
    elif name in _CONVOLUTIONS:
        flags |= CONVOLUTION
    elif name in _PRODUCTS:
        flags |= PRODUCT
    return flags


def layout_of(func: Any, flags: int, inputs: List[torch.Tensor]) -> int:
    """CHANNELS_LAST of a convolution or a batch norm for which PyTorch asks cuDNN for that: one of its operands lies so."""
    asks = flags & CONVOLUTION or "batch_norm" in func._schema.name
    return CHANNELS_LAST if asks and any(map(_lies_last, inputs)) else 0


def _lies_last(x: torch.Tensor) -> bool:
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.dim())
    return last is not None and x.is_contiguous(memory_format=last) and not x.is_contiguous()


def flops_of(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """By PyTorch's own counter: a multiply-add is two. 0 where it knows none."""
    if func.namespace == "aten" and func._schema.name.startswith("aten::_cudnn_rnn"):
        return _rnn_flops(func, args)
    count = flop_registry.get(func._overloadpacket)
    if count is None:
        return 0
    try:
        return int(count(*args, **kwargs, out_val=result))
    except (RuntimeError, TypeError, ValueError, IndexError, AssertionError):
        return 0


def _rnn_flops(func: Any, args: Any) -> int:
    x, weights = args[0], args[1]
    tokens = x.numel() // max(1, x.shape[-1])
    products = 2 * tokens * sum(w.numel() for w in weights if w.dim() == 2)
    return products if func._schema.name == "aten::_cudnn_rnn" else 2 * products


def bytes_of(tensors: List[torch.Tensor]) -> int:
    """Bytes that are read or written: of a view its own, of an expanded tensor its storage's."""
    return sum(min(x.numel() * x.element_size(), x.untyped_storage().nbytes()) for x in tensors)


def _sizes(tensors: List[torch.Tensor]) -> List[List[int]]:
    return [list(x.shape) for x in tensors]


def shapes_of(func: Any, flags: int, args: Any, kwargs: Any, inputs: List[torch.Tensor]) -> Optional[List[Any]]:
    """What a cost model asks of attention, convolutions and products, as docs/record.md has it."""
    if flags & CONVOLUTION:
        return _convolution(func, args, kwargs, inputs)
    if flags & ATTENTION:
        named = _named(func, args, kwargs)
        return [_sizes(inputs), int(bool(named.get("is_causal", False)))]
    return [_sizes(inputs)] if flags & PRODUCT else None


def _named(func: Any, args: Any, kwargs: Any) -> dict:
    named = {argument.name: value for argument, value in zip(func._schema.arguments, args)}
    named.update(kwargs)
    return named


def _convolution(func: Any, args: Any, kwargs: Any, inputs: List[torch.Tensor]) -> List[Any]:
    named = _named(func, args, kwargs)
    mask = sum(1 << bit for bit, wanted in enumerate(named.get("output_mask") or ()) if wanted)
    return [_sizes(inputs), *([int(x) for x in named.get(key) or ()] for key in ("stride", "padding", "dilation")),
            int(named.get("groups", 1)), int(bool(named.get("transposed", False))), mask]


def operands(values: Iterable[Any]) -> List[torch.Tensor]:
    """Tensors among an operator's arguments or results, which lie in lists and tuples alone."""
    found: List[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += operands(value)
    return found


def tensors_in(value: Any) -> List[torch.Tensor]:
    """Those in any container that PyTorch knows."""
    return [x for x in tree_iter(value) if isinstance(x, torch.Tensor)]
