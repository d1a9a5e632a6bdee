"""copy.deepcopy of fakes, by which models are averaged, followed and stacked. FakeTensor has PyTorch's own for subclasses, which
copies the mode of the fake as well, or the bytes of a storage that has none."""
from __future__ import annotations

from typing import Any, Dict

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from ._recorder import Geometry, fake_tensor
from ._values import Values


def deep_copy(fake: FakeTensor, memo: Dict[Any, Any]) -> torch.Tensor:
    """What Tensor.__deepcopy__ makes on a GPU: a parameter by itself, anything else with its whole storage, once for all that share it."""
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
