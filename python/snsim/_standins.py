"""Models, optimizers and functions that exist: while recording fakes stand where their tensors are. Nothing is copied, and
afterwards every tensor is where it was."""
from __future__ import annotations

import contextlib
import types
from typing import Any, Callable, Dict, Iterable, Iterator, List, MutableMapping, Tuple

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ._inputs import Given
from ._recorder import Geometry, fake_storage, fake_tensor
from ._session import Session, is_compiled
from ._values import is_small

CUDA = torch.device("cuda", 0)


class StandIns:
    """Fakes by what they stand for: one of a tensor, one of a storage."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._storages: Dict[int, torch.UntypedStorage] = {}
        self._tensors: Dict[int, Tuple[torch.Tensor, torch.Tensor]] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        known = self._tensors.get(id(tensor))
        if known is None:
            known = self._tensors[id(tensor)] = tensor, self._make(tensor)
        return known[1]

    def _make(self, tensor: torch.Tensor) -> torch.Tensor:
        if isinstance(tensor, FakeTensor) and tensor.fake_mode is self._session.mode:
            return tensor
        real = tensor.untyped_storage()
        storage = self._storages.get(real._cdata)
        if storage is None:
            storage = self._storages[real._cdata] = fake_storage(real.nbytes())
        geometry = Geometry.of(tensor)._replace(device=CUDA)
        fake: torch.Tensor = fake_tensor(self._session.mode, storage, geometry)
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(fake, tensor.requires_grad)
        if tensor.device.type == "cpu" and type(tensor) is torch.Tensor and is_small(tensor):
            self._session.gpu.values.give(fake, tensor.detach().clone())
        return fake


class Swaps:
    """What was replaced, to be put back in the opposite order."""

    def __init__(self) -> None:
        self._undo: List[Callable[[], None]] = []

    def item(self, owner: MutableMapping[Any, Any], key: Any, value: Any) -> None:
        before = owner[key]
        self._undo.append(lambda: owner.__setitem__(key, before))
        owner[key] = value

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        before = getattr(owner, name)
        self._undo.append(lambda: setattr(owner, name, before))
        setattr(owner, name, value)

    def call(self, undo: Callable[[], None]) -> None:
        self._undo.append(undo)

    def back(self) -> None:
        while self._undo:
            self._undo.pop()()


def _module(module: torch.nn.Module, session: Session, standins: StandIns, swaps: Swaps) -> None:
    session.recorder.tape.compiled |= is_compiled(module)
    for tensors in (module._parameters, module._buffers):
        for name, tensor in list(tensors.items()):
            if tensor is not None:
                swaps.item(tensors, name, standins.of(tensor))
    if isinstance(module, torch.nn.RNNBase):  # holds its weights once more, in a list
        weights = [getattr(module, name, None) for name in module._flat_weights_names]
        swaps.call(lambda before=module.__dict__["_flat_weights"]: module.__dict__.__setitem__("_flat_weights", before))
        module.__dict__["_flat_weights"] = weights
        module.flatten_parameters()  # as .cuda() does
    if is_compiled(module) and "_compiled_call_impl" in module.__dict__:
        swaps.item(module.__dict__, "_compiled_call_impl", None)


def _optimizer(optimizer: torch.optim.Optimizer, standins: StandIns, swaps: Swaps) -> None:
    """Parameters of its groups, and its state by them."""
    for group in optimizer.param_groups:
        swaps.item(group, "params", [standins.of(parameter) for parameter in group["params"]])
    before = dict(optimizer.state)
    swaps.call(lambda: (optimizer.state.clear(), optimizer.state.update(before)))
    optimizer.state.clear()
    for parameter, state in before.items():
        optimizer.state[standins.of(parameter)] = {
            name: standins.of(value) if isinstance(value, torch.Tensor) and value.dim() else value.clone()
            if isinstance(value, torch.Tensor) else value for name, value in state.items()}


@contextlib.contextmanager
def standing_in(session: Session, models: Iterable[torch.nn.Module], optimizers: Iterable[torch.optim.Optimizer] = ()) -> Iterator[None]:
    """Within a session: fakes in the dictionaries of models, and in optimizers."""
    standins, swaps = StandIns(session), Swaps()
    try:
        for model in models:
            for module in model.modules():
                _module(module, session, standins, swaps)
        for optimizer in optimizers:
            _optimizer(optimizer, standins, swaps)
        yield
    finally:
        swaps.back()


@contextlib.contextmanager
def training(model: torch.nn.Module, train: bool) -> Iterator[None]:
    """The model trains or answers, as a loop would have it: set where its root is in the other mode."""
    before = [(module, module.training) for module in model.modules()]
    try:
        if model.training != train:
            model.train(train)
        yield
    finally:
        for module, mode in before:
            module.training = mode


# tensors that a function brings along ------------------------------------------------------------------------------------


def brought_along(function: Any) -> List[torch.Tensor]:
    """The tensors on the CPU that a function finds in what surrounds it: labels that a loss names."""
    return [value for _, _, value in _found(function)]


def _found(function: Any) -> Iterator[Tuple[Any, Any, torch.Tensor]]:
    if not isinstance(function, types.FunctionType):
        return
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            if isinstance(cell.cell_contents, torch.Tensor):
                yield cell, None, cell.cell_contents
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, torch.Tensor):
            yield function.__globals__, name, value


@contextlib.contextmanager
def brought(function: Any, tensors: List[Any], given: Given) -> Iterator[None]:
    """While this lasts the function finds fakes of the given tensors, of the batch that is recorded."""
    swaps = Swaps()
    try:
        for (owner, name, _), tensor in zip(list(_found(function)), given.tensors(tensors)):
            if name is None:
                swaps.attribute(owner, "cell_contents", tensor)
            else:
                swaps.item(owner, name, tensor)
        yield
    finally:
        swaps.back()
