"""The device question. Without a GPU autograd fails where it notes a gradient's device, because it then asks for CUDA's
context. C++ asks a fake tensor through an operator that our mode sees, so the answer can be the device of fakes, `meta`,
where autograd notes it, and `cuda` where anybody else asks. And C++'s guard of devices, which makes a tensor's GPU the current
one around copy_, an index and the like and says which one is current: CUDA's asks the driver."""
from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set

import torch

from ._costs import operands

QUESTION = torch.ops.prim.device.default
META = torch.device("meta")

_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"  # a pointer to a guard for each type of device
_AHEAD, _FUNCTIONS = 2, 32  # words ahead of a guard's table of functions; more than it has
_TYPE, _CURRENT = 0, 2  # functions of it: the type of its devices, the current one
_FIRST = 0  # the index of the current GPU
_NONE = 255  # and of a device that has none

_Pointer = ctypes.c_void_p
_Function = ctypes.CFUNCTYPE(ctypes.c_uint16, _Pointer)  # a device is a byte for its type and one for its index

_UNTIL_HISTORY = 0  # of a tensor an operation made: answered `meta` until autograd has given it a history
_ONCE = 1  # of a tensor an operation changed: the first question is autograd's


def _is_leaf(tensor: torch.Tensor) -> bool:
    """Is it a leaf that is trained? A view is not asked: where its base was changed it would make its node anew, here
    without our answers, or it is just being asked and holds the lock that the answer would wait for."""
    if tensor._is_view():
        return getattr(tensor, "_snsim_leaf", False)
    return tensor.requires_grad and tensor.is_leaf


class DeviceAnswers:
    """Whose question is it? Told by what PyTorch is doing.

    A parameter answered `meta` is not cast by autocast, silently; so the nodes that accumulate its gradient, which note
    its device, are made before the recording (`adopt`), and it is `cuda` from then on.
    """

    def __init__(self) -> None:
        self.engine = 0  # depth of backward()
        self.creating = 0  # of them with create_graph
        self.custom = 0  # depth of autograd.Function.apply
        self._fresh: Dict[int, int] = {}  # by id: outputs of the last operation
        self._adopted: Set[int] = set()
        self._kept: List[Any] = []

    @property
    def in_backward(self) -> bool:
        """In the engine and not in a forward that runs again there."""
        return bool(self.engine) and (bool(self.creating) or not torch.is_grad_enabled())

    def adopt(self, parameters: Iterable[torch.Tensor]) -> None:
        """Makes each parameter's AccumulateGrad now, while it is answered `meta`, and keeps it."""
        with torch.enable_grad():
            for parameter in parameters:
                if parameter.requires_grad and id(parameter) not in self._adopted:
                    self._kept.append((parameter, parameter.expand_as(parameter).grad_fn.next_functions[0][0]))
                    self._adopted.add(id(parameter))

    def adopt_again(self, parameter: torch.Tensor) -> None:
        """Its data was replaced, by which PyTorch drops an AccumulateGrad that noted another device than the data's."""
        if id(parameter) in self._adopted:
            self._adopted.remove(id(parameter))
            self.adopt([parameter])

    def answer(self, tensor: torch.Tensor) -> torch.device:
        device = getattr(tensor, "fake_device", None)
        if device is None:
            return tensor.device
        return META if device.type == "cuda" and self._asked_by_autograd(tensor) else device

    def _asked_by_autograd(self, tensor: torch.Tensor) -> bool:
        if self.engine and (self.in_backward or torch._C._current_graph_task_id() == -1):
            return True  # a node's own metadata; the second: the engine's roots
        if not torch.is_grad_enabled():
            return False
        if self.custom:
            return True
        kind = self._fresh.get(id(tensor))
        if kind == _ONCE:  # asked for requires_grad now, a changed view would make its node anew, of its base's old history
            del self._fresh[id(tensor)]
            return True
        if kind == _UNTIL_HISTORY:
            return tensor.is_leaf
        return _is_leaf(tensor) and id(tensor) not in self._adopted

    @staticmethod
    def made_leaf(tensor: torch.Tensor) -> None:
        """The user's code said that it requires gradients; of a view this must be known without asking it."""
        if tensor._is_view():
            tensor._snsim_leaf = tensor.requires_grad and tensor.is_leaf

    def forget(self) -> None:
        """The user's code calls a function: autograd is done with what the last one made."""
        self._fresh = {}

    def is_traced(self, inputs: List[torch.Tensor]) -> bool:
        """Is an operation, or the function that consists of it and of those ahead of it, in the graph? To be asked ahead of
        it. Within a function what an operation made has no history: a conjugate's copy, for one."""
        return torch.is_grad_enabled() and any(x.requires_grad or id(x) in self._fresh for x in inputs)

    def made(self, traced: bool, inputs: List[torch.Tensor], result: Any) -> None:
        """An operation ended: of its results autograd will ask next."""
        self._fresh = {}
        if not traced:
            return
        changed = {id(tensor) for tensor in inputs}
        for tensor in operands((result,)):
            if id(tensor) not in changed:
                self._fresh[id(tensor)] = _UNTIL_HISTORY
                continue
            self._fresh[id(tensor)] = _ONCE
            if tensor._base is not None:
                self._fresh[id(tensor._base)] = _ONCE


# the guard ------------------------------------------------------------------------------------------------------------


def guards_of_devices() -> Any:
    """The table of guards, or None where its name is another one, as on Windows."""
    types = torch._C._autograd.DeviceType.__members__.values()
    try:
        return (_Pointer * (max(map(int, types)) + 1)).in_dll(ctypes.CDLL(torch._C.__file__), _REGISTRY)
    except (OSError, ValueError):
        return None


@functools.lru_cache(None)
def _idle_guard(cuda: int, meta: int, guard: int) -> Optional[Any]:
    """A guard that does nothing, as that of `meta`, but for saying that the first GPU is current. None where the functions of
    the latter are not where they should be. C++ does not own guards: it is kept for good."""
    table = _Pointer.from_address(guard).value or 0
    functions = (_Pointer * (_AHEAD + _FUNCTIONS)).from_address(table - _AHEAD * ctypes.sizeof(_Pointer))
    if _Function(functions[_AHEAD + _TYPE])(guard) & 255 != meta or _Function(functions[_AHEAD + _CURRENT])(guard) != meta | _NONE << 8:
        return None
    own, current = type(functions)(*functions), _Function(lambda _: cuda | _FIRST << 8)
    own[_AHEAD + _CURRENT] = ctypes.cast(current, _Pointer)
    made = _Pointer(ctypes.addressof(own) + _AHEAD * ctypes.sizeof(_Pointer))
    made.parts = own, current  # type: ignore[attr-defined]  # which live as long
    return made


@contextlib.contextmanager
def guarded_without_driver() -> Iterator[None]:
    """Newer versions put a guard that does nothing in the place of CUDA's where a FakeTensorMode finds no GPU. In older ones such
    a one stands there meanwhile; where it cannot, what needs it is refused."""
    asked = not hasattr(torch._C, "_ensureCUDADeviceGuardSet") and not torch.cuda.device_count()
    guards = guards_of_devices() if asked else None
    cuda, meta = (int(kind) for kind in (torch._C._autograd.DeviceType.CUDA, torch._C._autograd.DeviceType.Meta))
    idle = _idle_guard(cuda, meta, guards[meta]) if guards is not None and guards[meta] else None
    if guards is None or idle is None:
        yield
        return
    before = guards[cuda]
    guards[cuda] = ctypes.addressof(idle)
    try:
        yield
    finally:
        guards[cuda] = before
