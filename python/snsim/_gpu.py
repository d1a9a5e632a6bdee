"""The mode under which a step runs: it answers for a GPU that is not there, keeps values beside the fakes, and tells an
observer of every operation."""
from __future__ import annotations

from typing import Any, List, Optional, Protocol

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from ._device import META, QUESTION, DeviceAnswers
from ._values import ITEM, Values, guess

CUDA = torch.device("cuda:0")
aten = torch.ops.aten


class Observer(Protocol):
    """Sees every operation but questions."""

    def before(self, func: Any, args: Any, kwargs: Any, inputs: List[torch.Tensor]) -> Any:
        """Ahead of an operation; what it returns is given to `after`."""

    def after(self, seen: Any, func: Any, args: Any, kwargs: Any, inputs: List[torch.Tensor], result: Any) -> None:
        """Behind it."""


class FakeGpu(TorchDispatchMode):
    """Entered last of the dispatch modes, above FakeTensorMode."""

    def __init__(self, share: float = 0.5) -> None:
        super().__init__()
        self.devices = DeviceAnswers()
        self.values = Values(share)
        self.observer: Optional[Observer] = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is QUESTION:
            return self.devices.answer(args[0])
        kwargs = kwargs or {}
        if func is ITEM and isinstance(args[0], FakeTensor):
            return self.values.item(args[0])
        inputs = [x for x in tree_iter((args, kwargs)) if isinstance(x, torch.Tensor)]
        observer = self.observer
        seen = observer.before(func, args, kwargs, inputs) if observer is not None else None
        traced = self.devices.is_traced(inputs)
        result = self._call(func, args, kwargs)
        if not self.devices.engine:
            self.values.follow(func, args, kwargs, inputs, result)
        if observer is not None:
            observer.after(seen, func, args, kwargs, inputs, result)
        self.devices.made(traced, inputs, result)
        return result

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        answer = guess(func, args)
        if answer is not None:
            return answer(self.values, func, args, kwargs)
        if self.devices.engine and kwargs.get("device") is not None and torch.device(kwargs["device"]) == META:
            kwargs = dict(kwargs, device=CUDA)  # a formula's own tensor, made by the options of a gradient that said `meta`
        if func is aten._cudnn_rnn_backward.default:
            return _rnn_backward(*args)
        return func(*args, **kwargs)


def _rnn_backward(x: Any, weights: Any, stride: Any, buffer: Any, hidden: Any, cell: Any, *rest: Any) -> Any:
    """What cuDNN's backward makes: the weights' gradients are views of one tensor."""
    with torch.no_grad():
        flat = torch.empty(sum(w.numel() for w in weights), dtype=x.dtype, device=x.device)
        gradients, offset = [], 0
        for weight in weights:
            gradients.append(flat.as_strided(tuple(weight.shape), weight.stride(), offset))
            offset += weight.numel()
        return torch.empty_like(x), torch.empty_like(hidden), None if cell is None else torch.empty_like(cell), gradients
