"""What a recording says of its last iteration at a batch: an operation is a kernel's name with flops, bytes and shapes."""
from __future__ import annotations

import gzip
import json
import pathlib
from typing import Any, List, NamedTuple, Optional


class Operation(NamedTuple):
    name: str     # aten.convolution_backward.default
    phase: int    # 0 forward, 1 backward, 2 update
    node: int     # of autograd; -2 of AccumulateGrad
    flops: float
    read: float
    written: float
    dtype: str    # of the first result
    shapes: Optional[List[Any]]
    keeps: bool   # it makes more than its result, as a batch norm in training keeps statistics

    @property
    def called(self) -> str:
        return self.name.split(".")[1]


def value(number: Any, batch: int) -> float:
    return number[0] + number[1] * batch if isinstance(number, list) else number


def sizes_at(shape: List[Any], batch: int) -> List[int]:
    return [value(side, batch) for side in shape]


def shapes_at(shapes: Optional[List[Any]], batch: int) -> Optional[List[Any]]:
    """Its operands' sizes at a batch; what stands behind them has none."""
    return shapes and [[sizes_at(operand, batch) for operand in shapes[0]], *shapes[1:]]


def of_file(path: pathlib.Path, batch: int) -> List[Operation]:
    kernels, sizes, found = [], [], []
    with gzip.open(path, "rt") as file:
        for line in file:
            if line.startswith('["o"'):
                found.append(_operation(json.loads(line), kernels, sizes, batch))
            elif line.startswith('["i"'):
                found.clear()
            elif line.startswith('{"kernels"'):
                kernels = [name for name, _ in json.loads(line)["kernels"]]
            elif line.startswith('{"storages"'):
                sizes = [a + b * batch for a, b, *_ in json.loads(line)["storages"]]
    return found


def _operation(event: List[Any], kernels: List[str], sizes: List[int], batch: int) -> Operation:
    _, kernel, phase, node, _, _, makes, _, flops, read, written, dtype, *more = event
    return Operation(kernels[kernel], phase, node, value(flops, batch), value(read, batch), value(written, batch), dtype,
                     shapes_at(more[0] if more else None, batch), any(sizes[made] for made in makes[1:]))
