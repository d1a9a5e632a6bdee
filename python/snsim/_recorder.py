"""The recorder: watches every operation, every birth and end of a storage, and what backward keeps."""
from __future__ import annotations

import weakref
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes

from . import _costs
from ._events import (ACCUMULATION, APART, BACKWARD, BUFFER, FORWARD, GIVEN, GRADIENTS, IN_PLACE, OUTSIDE, PARAMETER, STATE, STATES, UPDATE,
                      VALUE, Operation, Storage, Tape)
from ._gpu import FakeGpu
from ._values import written

ADD = torch.ops.aten.add.Tensor
_ALONE_TENSOR, _ALONE_STORAGE = 4, 2  # C++ references to a summand that nobody but the engine holds, seen from a mode
_ACCUMULATE = 1 << 62  # AccumulateGrad's sequence number is larger
_PASSED = (PARAMETER, BUFFER, GIVEN)  # what backward keeps of these lives anyway


def is_dense(tensor: torch.Tensor) -> bool:
    """Without holes and overlaps, in whatever order."""
    step = 1
    for stride, size in sorted((stride, size) for size, stride in zip(tensor.shape, tensor.stride()) if size > 1):
        if stride != step:
            return False
        step *= size
    return True


def rows_of(parameter: torch.Tensor) -> int:
    """Its first dimension, in which it is shared by several GPUs."""
    return max(1, parameter.shape[0]) if parameter.dim() else 1


def _add_new(numbers: List[int], number: int) -> None:
    if number not in numbers:
        numbers.append(number)


class Geometry(NamedTuple):
    """All of a tensor but its storage."""
    shape: Tuple[int, ...]
    stride: Tuple[int, ...]
    offset: int
    dtype: torch.dtype
    device: torch.device
    conjugate: bool
    negative: bool

    @classmethod
    def of(cls, tensor: torch.Tensor) -> "Geometry":
        return cls(tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype,
                   getattr(tensor, "fake_device", tensor.device), tensor.is_conj(), tensor.is_neg())


def fake_storage(size: int) -> torch.UntypedStorage:
    with _disable_current_modes():
        return torch.empty(size, dtype=torch.uint8, device="meta").untyped_storage()


def fake_tensor(mode: FakeTensorMode, storage: torch.UntypedStorage, geometry: Geometry) -> FakeTensor:
    """A tensor on a fake storage that is no view of another."""
    with _disable_current_modes():
        tensor = torch.empty(0, dtype=geometry.dtype, device="meta")
        tensor.set_(storage, geometry.offset, geometry.shape, geometry.stride)
        if geometry.conjugate:
            tensor = torch._conj(tensor)
        if geometry.negative:
            tensor = torch._neg_view(tensor)
        return FakeTensor(mode, tensor, geometry.device)


class Handle:
    """What backward holds instead of a tensor."""
    __slots__ = ("number", "storage", "bytes", "geometry", "recorder", "__weakref__")

    def __init__(self, number: int, storage: int, size: int, geometry: Geometry, recorder: "Recorder") -> None:
        self.number, self.storage, self.bytes, self.geometry, self.recorder = number, storage, size, geometry, recorder

    def __del__(self) -> None:
        if self.recorder.on:
            self.recorder.tape.events.append(("u", self.number))


class Recorder:
    """An observer of FakeGpu. `on` from the first iteration to the last."""

    def __init__(self, mode: FakeTensorMode, gpu: FakeGpu) -> None:
        self.mode, self.gpu = mode, gpu
        self.tape = Tape()
        self.on = False
        self.updating = False
        self.paths: Dict[int, str] = {}  # by id of a module
        self._parameters: List[Any] = []  # weak references, as the rows of tape.parameters
        self._numbers: Dict[int, int] = {}  # storages by their C++ address
        self._ends: Dict[int, Any] = {}
        self._open: List[int] = [0]  # calls of modules
        self._handles = self._ghosts = 0
        self._first_node = 0

    def start(self) -> None:
        self._first_node = torch._C._autograd._get_sequence_nr()
        self.on = True

    @property
    def phase(self) -> int:
        if self.gpu.devices.in_backward:
            return BACKWARD
        return UPDATE if self.updating else FORWARD

    def mark_phase(self, *_: Any) -> None:
        if self.on:
            self.tape.events.append(("p", UPDATE if self.updating else BACKWARD if self.gpu.devices.engine else FORWARD))

    # storages --------------------------------------------------------------------------------------------------------

    def storage(self, tensor: torch.Tensor, role: str = VALUE, born: Optional[List[int]] = None) -> int:
        """The number of the tensor's storage; if it is new, it is born: into the list, or outside any operation."""
        storage = tensor.untyped_storage()
        number = self._numbers.get(storage._cdata)
        if number is not None:
            return number
        number = len(self.tape.storages)
        self.tape.storages.append(Storage(storage.nbytes(), str(tensor.dtype)[6:], tensor.device.type, role))
        if born is None:
            self.tape.events.append(("b", number))
        else:
            born.append(number)
        self._watch(storage, number, ("f", number))
        return number

    def _watch(self, storage: torch.UntypedStorage, number: int, end: Tuple[Any, ...]) -> None:
        key, ends, numbers = storage._cdata, self._ends, self._numbers

        def ended(_: Any) -> None:
            if self.on:
                self.tape.events.append(end)
            numbers.pop(key, None)
            ends.pop(key, None)
        numbers[key] = number
        ends[key] = weakref.ref(storage, ended)

    def own(self, modules: Iterable[torch.nn.Module]) -> None:
        """Parameters and buffers, with their names."""
        modules, seen = list(modules), set()
        for order, module in enumerate(modules):
            prefix = "" if len(modules) == 1 else f"{order}"
            for path, child in module.named_modules(prefix=prefix):
                self.paths.setdefault(id(child), path)
            for name, parameter in module.named_parameters(prefix=prefix):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    self._parameters.append(weakref.ref(parameter))
                    self.tape.parameters.append([name, self.storage(parameter, PARAMETER), parameter.storage_offset(), parameter.numel(),
                                                 int(parameter.requires_grad), rows_of(parameter), [], []])
            for buffer in module.buffers():
                self.storage(buffer, BUFFER)

    def states(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """What optimizers keep from step to step, once they have it."""
        rows = {id(parameter()): row for parameter, row in zip(self._parameters, self.tape.parameters)}
        for optimizer in optimizers:
            for parameter, state in optimizer.state.items():
                for tensor in _costs.tensors_in(state):
                    number = self._numbers.get(tensor.untyped_storage()._cdata)
                    if number is None:
                        continue
                    if self.tape.storages[number].role == VALUE:
                        self.tape.storages[number].role = STATE
                    if id(parameter) in rows and tensor.shape == parameter.shape:
                        _add_new(rows[id(parameter)][STATES], number)

    def gradients(self) -> None:
        """Which storages have the gradients that the parameters have now."""
        for known, row in zip(self._parameters, self.tape.parameters):
            parameter = known()
            gradient = None if parameter is None else parameter.grad
            number = None if gradient is None else self._numbers.get(gradient.untyped_storage()._cdata)
            if number is not None:
                _add_new(row[GRADIENTS], number)

    # what backward keeps ---------------------------------------------------------------------------------------------

    def pack(self, tensor: torch.Tensor) -> Any:
        if not isinstance(tensor, FakeTensor) or not self.on:
            return tensor
        number = self.storage(tensor)
        if self.tape.storages[number].role in _PASSED:
            return tensor
        handle = Handle(self._handles, number, tensor.untyped_storage().nbytes(), Geometry.of(tensor), self)
        self._handles += 1
        self.tape.events.append(("s", handle.number, number, self._newest_node()))
        return handle

    def unpack(self, handle: Any) -> torch.Tensor:
        """A ghost: a tensor that stands for the storage, which the file says lives as long as the ghost does."""
        if not isinstance(handle, Handle):
            return handle
        storage = fake_storage(handle.bytes)
        ghost = fake_tensor(self.mode, storage, handle.geometry)
        if self.on:
            self.tape.events.append(("g", handle.storage, self._ghosts))
            self._watch(storage, handle.storage, ("h", handle.storage, self._ghosts))
            self._ghosts += 1
            self.tape.events.append(("k", handle.number))
        return ghost

    def _newest_node(self) -> int:
        return torch._C._autograd._get_sequence_nr() - 1 - self._first_node

    def _node(self, inputs: List[torch.Tensor]) -> int:
        """Whose operation it is: of the forward pass the newest node, which has just been made for it."""
        if not self.gpu.devices.in_backward:
            return self._newest_node() if self.gpu.devices.is_traced(inputs) or self.gpu.devices.custom else OUTSIDE
        node = torch._C._current_autograd_node()
        if node is None:
            return OUTSIDE
        number = node._sequence_nr()
        return ACCUMULATION if number > _ACCUMULATE else number - self._first_node

    # modules ---------------------------------------------------------------------------------------------------------

    def enter(self, module: torch.nn.Module, arguments: Any) -> None:
        given = [self.storage(x) for x in _costs.tensors_in(arguments) if isinstance(x, FakeTensor)]
        call = self.tape.call(self._open[-1], self.paths.get(id(module), "?"), type(module).__name__)
        self._open.append(call)
        self.tape.events.append(("<", call, list(dict.fromkeys(given))))

    def leave(self) -> None:
        self.tape.events.append((">", self._open.pop()))

    # operations ------------------------------------------------------------------------------------------------------

    def before(self, func: Any, args: Any, kwargs: Any, inputs: List[torch.Tensor]) -> Any:
        if not self.on:
            return None
        reads = [self.storage(x) for x in inputs]
        return reads, self._node(inputs), self._sum(func, args, kwargs)

    def _resized(self, func: Any, args: Any, kwargs: Any) -> None:
        """A storage that was given another size, as out= does, is another from now on."""
        for tensor in written(func, args, kwargs):
            storage = tensor.untyped_storage()
            number = self._numbers.get(storage._cdata)
            if number is not None and self.tape.storages[number].bytes != storage.nbytes():
                self.tape.events.append(("f", number))
                del self._numbers[storage._cdata], self._ends[storage._cdata]
                self.storage(tensor, self.tape.storages[number].role)

    def _sum(self, func: Any, args: Any, kwargs: Any) -> int:
        """Does the engine add two gradients here, and would it do so in place without a mode?"""
        if func is not ADD or kwargs or len(args) != 2 or not self.gpu.devices.engine or torch.is_grad_enabled():
            return 0
        if not all(isinstance(x, torch.Tensor) for x in args):
            return 0
        first = args[0]
        alone = is_dense(first) and first._use_count() <= _ALONE_TENSOR
        return IN_PLACE if alone and torch._C._storage_Use_Count(first.untyped_storage()._cdata) <= _ALONE_STORAGE else APART

    def after(self, seen: Any, func: Any, args: Any, kwargs: Any, inputs: List[torch.Tensor], result: Any) -> None:
        if seen is None:
            return
        reads, node, adds = seen
        outputs = _costs.operands((result,))
        makes: List[int] = []
        if func._schema.is_mutable:
            self._resized(func, args, kwargs)
        for tensor in outputs:
            self.storage(tensor, born=makes)
        changed = [self.storage(x) for x in written(func, args, kwargs)] if func._schema.is_mutable else []
        changes = [number for number in dict.fromkeys(changed) if number not in makes]
        if not makes and not changes:
            return  # a view
        flags = _costs.flags_of(func)
        flags |= _costs.layout_of(func, flags, inputs)
        kernel = self.tape.kernel((func, flags), str(func), flags)
        if changes and any(self.tape.storages[number].role in (PARAMETER, BUFFER) for number in changes):
            self.tape.kernels[kernel][1] |= _costs.CHANGES_MODEL
        self.tape.events.append(Operation(
            kernel, self.phase, node, self._open[-1], list(dict.fromkeys(reads)), makes, changes,
            _costs.flops_of(func, args, kwargs, result), _costs.bytes_of(inputs), _costs.bytes_of(outputs),
            str(outputs[0].dtype)[6:] if outputs else "", _costs.shapes_of(func, flags, args, kwargs, inputs),
            adds, reads[0] if adds else -1))
