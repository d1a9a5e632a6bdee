"""Where a fake would not behave as the tensor that it stands for: copy.deepcopy, and parameters of a class of their own."""
from __future__ import annotations

from typing import Any, Callable, Dict

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from ._recorder import Geometry, fake_tensor
from ._values import Values

_classes: Dict[type, type] = {}  # of fakes, by the class that they are of besides


def make_subclass(real: Callable[..., torch.Tensor]) -> Any:
    """Tensor._make_subclass, by which libraries make parameters that carry more than numbers (bitsandbytes' Params4bit). A fake
    is an object of Python already, so that it cannot become one of another class; but it may become one of both."""
    def make(cls: type, data: torch.Tensor, require_grad: bool = False, **options: Any) -> torch.Tensor:
        if not isinstance(data, FakeTensor):
            return real(cls, data, require_grad, **options)
        if cls not in _classes:
            _classes[cls] = type(cls)(cls.__name__, (cls, FakeTensor), {"__module__": cls.__module__})
        made = data.detach()
        made.__class__ = _classes[cls]
        if issubclass(cls, torch.nn.Parameter):
            made._is_param = True
        return made.requires_grad_(require_grad)
    return staticmethod(make)


def deep_copy(fake: FakeTensor, memo: Dict[Any, Any]) -> torch.Tensor:
    """What Tensor.__deepcopy__ makes on a GPU: a parameter by itself, anything else with its whole storage, once for all that
    share it. FakeTensor has PyTorch's own for subclasses, which copies the fake's mode as well, or the bytes of a storage
    that has none."""
    if id(fake) in memo:
        return memo[id(fake)]
    if not fake.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment")
    with torch.no_grad():
        if isinstance(fake, torch.nn.Parameter):
            made: torch.Tensor = torch.nn.Parameter(fake.detach().clone(memory_format=torch.preserve_format), fake.requires_grad)
        else:
            made = _with_its_storage(fake, memo)
    memo[id(fake)] = made
    return made


def _with_its_storage(fake: FakeTensor, memo: Dict[Any, Any]) -> torch.Tensor:
    storage = fake.untyped_storage()
    key = "snsim storage", storage._cdata
    if key not in memo:
        memo[key] = torch.empty(storage.nbytes(), dtype=torch.uint8, device=fake.device).untyped_storage()
    made: torch.Tensor = fake_tensor(fake.fake_mode, memo[key], Geometry.of(fake))
    value = Values.of(fake)
    if value is not None:
        with _disable_current_modes():
            Values.give(made, value.clone())
    made.requires_grad_(fake.requires_grad)
    if fake.grad is not None:
        made.grad = deep_copy(fake.grad, memo)
    return made
