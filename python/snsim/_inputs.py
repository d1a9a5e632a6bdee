"""A batch: what the user gave, made a fake of any number of rows on the GPU, anew in each iteration."""
from __future__ import annotations

from typing import Any, Dict, Callable, List, Mapping, Optional, Tuple, Union

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_unflatten

from ._errors import RecordingError
from ._events import GIVEN
from ._recorder import Geometry, fake_storage, fake_tensor, is_dense
from ._session import Session
from ._values import is_small

Inputs = Any  # a tensor, a shape, or tuples, lists and dictionaries of them
Batch = Union[None, int, Callable[[int], Inputs]]


def _is_shape(value: Any) -> bool:
    return isinstance(value, (tuple, torch.Size)) and len(value) > 0 and all(type(size) is int for size in value)


def normalized(inputs: Inputs) -> Tuple[Tuple[Any, ...], Mapping[str, Any]]:
    """Positional arguments and named ones."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, torch.Tensor) or _is_shape(inputs):
        return (inputs,), {}
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    raise RecordingError(f"inputs are a tensor, a tuple or a dictionary, not {type(inputs).__name__}: inputs=(images,)")


def with_tensors(tree: Any) -> Any:
    """The same where shapes are tensors without values."""
    leaves, spec = tree_flatten(tree, is_leaf=_is_shape)
    for leaf in leaves:
        if type(leaf).__module__ == "numpy" and getattr(leaf, "shape", ()):
            raise RecordingError(f"inputs hold an {type(leaf).__name__}: give tensors, torch.from_numpy(x)")
    return tree_unflatten([torch.empty(leaf, device="meta") if _is_shape(leaf) else leaf for leaf in leaves], spec)


def rows_of(tree: Any) -> Optional[int]:
    """The batch: rows of the first tensor that has any."""
    for leaf in tree_flatten(tree)[0]:
        if isinstance(leaf, torch.Tensor) and leaf.dim():
            return leaf.shape[0]
    return None


def resized(tree: Any, rows: int, batch: int) -> Any:
    """Every tensor of as many rows as the batch with as many as asked for: the given ones, over and over. What is one tensor, as
    labels that are the tokens themselves, stays one."""
    met: Dict[int, Any] = {}

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.dim() or leaf.shape[0] != rows or rows == batch:
            return leaf
        if leaf.device.type == "cpu" and type(leaf) is torch.Tensor and is_small(leaf):
            return leaf[torch.arange(batch) % rows] if rows else leaf.new_zeros((batch, *leaf.shape[1:]))
        return torch.empty((batch, *leaf.shape[1:]), dtype=leaf.dtype, device="meta")
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if id(leaf) not in met:
            met[id(leaf)] = one(leaf)
    return tree_unflatten([met[id(leaf)] for leaf in leaves], spec)


class Given:
    """Turns tensors into fakes on the GPU, one that was met before into the same within an iteration."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __call__(self, tree: Any) -> Any:
        leaves, spec = tree_flatten(tree)
        return tree_unflatten(self.tensors(leaves), spec)

    def tensors(self, leaves: List[Any]) -> List[Any]:
        met: dict = {}
        for leaf in leaves:
            if isinstance(leaf, torch.Tensor) and id(leaf) not in met:
                met[id(leaf)] = self.one(leaf)
        return [met.get(id(leaf), leaf) for leaf in leaves]

    def one(self, tensor: torch.Tensor) -> torch.Tensor:
        geometry = _contiguous(tensor)
        size = tensor.numel() * tensor.element_size()
        fake = fake_tensor(self._session.mode, fake_storage(size), geometry)
        if tensor.device.type == "cpu" and type(tensor) is torch.Tensor and is_small(tensor):
            with _disable_current_modes():
                self._session.gpu.values.give(fake, tensor.detach().clone())
        self._session.recorder.storage(fake, GIVEN)
        return fake.requires_grad_() if tensor.requires_grad and tensor.is_leaf else fake


def _contiguous(tensor: torch.Tensor) -> Geometry:
    """As a copy to the GPU is laid out: dense tensors keep their strides."""
    stride = tensor.stride()
    if not is_dense(tensor):
        with _disable_current_modes():
            stride = torch.empty(tensor.shape, device="meta").stride()
    return Geometry(tuple(tensor.shape), tuple(stride), 0, tensor.dtype, torch.device("cuda", 0), False, False)
