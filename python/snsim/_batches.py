"""Two recorded batches, one file for any: where the events are the same but for bytes, each size is a + b x batch."""
from __future__ import annotations

from typing import Any, List, Optional, Sequence

from ._events import Number, Operation, Storage, Tape, canonical

BATCHES = (2, 3)  # never 1, at which PyTorch takes other strides and paths
PROOF = 5  # one more, where a size is not surely linear: half of 5 rows are 2, half of 2 or 3 are 1


class NotLinear(Exception):
    """The runs differ by more than sizes, or a size is no a + b x batch; the text says where."""


def _line(small: int, large: int, batches: Sequence[int]) -> Number:
    """a, b of the line through both; one number where it does not grow."""
    if small == large:
        return small
    growing, rest = divmod(large - small, batches[1] - batches[0])
    if rest:
        raise NotLinear(f"{small} at batch {batches[0]} and {large} at {batches[1]}")
    return small - growing * batches[0], growing


def value_at(number: Number, batch: int) -> int:
    return number[0] + number[1] * batch if isinstance(number, tuple) else number


def _nested(small: Any, large: Any, batches: Sequence[int]) -> Any:
    """The same of shapes: lists of numbers."""
    if not isinstance(small, list):
        return _line(small, large, batches)
    if len(small) != len(large):
        raise NotLinear("an operand has other dimensions")
    return [_nested(x, y, batches) for x, y in zip(small, large)]


def _operation(small: Operation, large: Operation, batches: Sequence[int]) -> Operation:
    sized = ("flops", "read_bytes", "written_bytes", "shapes")
    if any(getattr(small, name) != getattr(large, name) for name in Operation._fields if name not in sized):
        raise NotLinear("an operation differs")
    if (small.shapes is None) != (large.shapes is None):
        raise NotLinear("an operation differs")
    return small._replace(
        shapes=None if small.shapes is None else _nested(small.shapes, large.shapes, batches),
        **{name: _flat_line(getattr(small, name), getattr(large, name), batches) for name in sized[:3]})


def _flat_line(small: int, large: int, batches: Sequence[int]) -> Number:
    """Costs, not memory: rounded where they are no line."""
    try:
        return _line(small, large, batches)
    except NotLinear:
        growing = (large - small) // (batches[1] - batches[0])
        return small - growing * batches[0], growing


def merge(small: Tape, large: Tape, batches: Sequence[int] = BATCHES) -> Tape:
    """One tape for any batch."""
    if small.modules != large.modules or small.calls != large.calls or small.kernels != large.kernels:
        raise NotLinear("other modules or kernels were called")
    if small.parameters != large.parameters or len(small.storages) != len(large.storages):
        raise NotLinear("there are other tensors")
    merged = Tape()
    merged.__dict__.update({name: getattr(small, name) for name in ("kernels", "modules", "calls", "parameters", "compiled")})
    merged.assumed = small.assumed
    merged.storages = [_storage(x, y, batches) for x, y in zip(small.storages, large.storages)]
    left, right = canonical(small.events), canonical(large.events)
    if len(left) != len(right):
        raise NotLinear(f"{len(left)} events at batch {batches[0]}, {len(right)} at {batches[1]}")
    for x, y in zip(left, right):
        if isinstance(x, Operation) and isinstance(y, Operation):
            merged.events.append(_operation(x, y, batches))
        elif isinstance(x, Operation) or isinstance(y, Operation) or x != y:
            raise NotLinear("the events differ")
        else:
            merged.events.append(x)
    return merged


def _storage(small: Storage, large: Storage, batches: Sequence[int]) -> Storage:
    if (small.dtype, small.device, small.role) != (large.dtype, large.device, large.role):
        raise NotLinear("a tensor has another type")
    return Storage(_line(small.bytes, large.bytes, batches), small.dtype, small.device, small.role)


def is_doubtful(merged: Tape) -> bool:
    """Has a size that falls below 0 at batch 0? So have those that grow faster than the batch, a contrastive loss's."""
    return any(isinstance(storage.bytes, tuple) and storage.bytes[0] < 0 for storage in merged.storages)


def differs(merged: Tape, proof: Tape, batch: int) -> Optional[str]:
    """Where the line is wrong at a further batch, or None."""
    if len(merged.storages) != len(proof.storages):
        return "there are other tensors"
    wrong: List[str] = [f"a tensor of {recorded.bytes} bytes would have {value_at(line.bytes, batch)}"
                        for line, recorded in zip(merged.storages, proof.storages) if value_at(line.bytes, batch) != recorded.bytes]
    return wrong[0] + f" at batch {batch}" if wrong else None
