"""The mode under which a step runs: it answers for a GPU that is not there, keeps values beside the fakes, and tells an
observer of every operation."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Protocol

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from ._costs import operands
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

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """PyTorch would ask at every operation whether it is being compiled, which it is not (_patches)."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is QUESTION:
            return self.devices.answer(args[0])
        kwargs = kwargs or {}
        if func is ITEM and isinstance(args[0], FakeTensor):
            return self.values.item(args[0])
        inputs = operands((args, tuple(kwargs.values())))
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
        results = _RESULTS.get(str(func))
        return results(*args, **kwargs) if results is not None else func(*args, **kwargs)


def _rnn_backward(x: Any, weights: Any, stride: Any, buffer: Any, hidden: Any, cell: Any, *rest: Any) -> Any:
    """What cuDNN's backward makes: the weights' gradients are views of one tensor."""
    with torch.no_grad():
        flat = torch.empty(sum(w.numel() for w in weights), dtype=x.dtype, device=x.device)
        gradients, offset = [], 0
        for weight in weights:
            gradients.append(flat.as_strided(tuple(weight.shape), weight.stride(), offset))
            offset += weight.numel()
        return torch.empty_like(x), torch.empty_like(hidden), None if cell is None else torch.empty_like(cell), gradients


def _nothing(*_: Any, **__: Any) -> None:
    """Of what only changes its operands."""


def _like(*positions: int) -> Callable[..., Any]:
    """A result like each of these operands."""
    def results(*args: Any, **_: Any) -> Any:
        made = tuple(torch.empty_like(args[i]) for i in positions)
        return made if len(made) > 1 else made[0]
    return results


def _masked(x: Any, *_: Any, **__: Any) -> Any:
    """A result like x, and which of its elements count in backward."""
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)


def _sampled(x: Any, grid: Any) -> Any:
    return x.new_empty((*x.shape[:2], *grid.shape[1:-1]))


# Results of CUDA's kernels for which PyTorch, or 2.4, has no fakes: it would run them.
_RESULTS: Dict[str, Callable[..., Any]] = {
    "aten._cudnn_rnn_backward.default": _rnn_backward,
    **{f"aten._fused_{name}_.{form}": _nothing for name in ("sgd", "adagrad", "adam", "adamw") for form in ("default", "tensor_lr")},
    "aten.cudnn_grid_sampler.default": _sampled,
    "aten.cudnn_grid_sampler_backward.default": _like(0, 1),
    "aten._standard_gamma.default": _like(0),
    "aten._standard_gamma_grad.default": _like(0),
    "aten._weight_norm_interface_backward.default": _like(1, 2),
    "aten._sample_dirichlet.default": _like(0),
    "aten._dirichlet_grad.default": _like(0),
    "aten.binomial.default": _like(0),
    "aten.multi_margin_loss_backward.default": _like(1),
    "aten.multilabel_margin_loss_backward.default": _like(1),
    "aten.fractional_max_pool3d_backward.default": _like(1),
    **{f"aten.fake_quantize_per_{each}": _masked for each in ("tensor_affine_cachemask.default", "channel_affine_cachemask.default")},
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default": _masked,
    **{f"aten._fake_quantize_learnable_per_{each}_affine.default": _like(0) for each in ("tensor", "channel")},
    **{f"aten._fake_quantize_learnable_per_{each}_affine_backward.default": _like(1, 2, 3) for each in ("tensor", "channel")},
}
