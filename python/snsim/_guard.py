"""C++'s guard of devices, which makes a tensor's GPU the current one around copy_, an index and the like, and says which one is
current. CUDA's asks the driver."""
from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any, Iterator, Optional

import torch

_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"  # a pointer to a guard for each type of device
_AHEAD, _FUNCTIONS = 2, 32  # words ahead of a guard's table of functions; more than it has
_TYPE, _CURRENT = 0, 2  # functions of it: the type of its devices, the current one
_FIRST = 0  # the index of the current GPU
_NONE = 255  # and of a device that has none

_Pointer = ctypes.c_void_p
_Function = ctypes.CFUNCTYPE(ctypes.c_uint16, _Pointer)  # a device is a byte for its type and one for its index


def _registry() -> Any:
    """The table of guards, or None where its name is another one, as on Windows."""
    types = torch._C._autograd.DeviceType.__members__.values()
    try:
        return (_Pointer * (max(map(int, types)) + 1)).in_dll(ctypes.CDLL(torch._C.__file__), _REGISTRY)
    except (OSError, ValueError):
        return None


@functools.lru_cache(None)
def _idle(cuda: int, meta: int, guard: int) -> Optional[Any]:
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
def without_driver() -> Iterator[None]:
    """Newer versions put a guard that does nothing in the place of CUDA's where a FakeTensorMode finds no GPU. In older ones such
    a one stands there meanwhile; where it cannot, what needs it is refused."""
    asked = not hasattr(torch._C, "_ensureCUDADeviceGuardSet") and not torch.cuda.device_count()
    guards = _registry() if asked else None
    cuda, meta = (int(kind) for kind in (torch._C._autograd.DeviceType.CUDA, torch._C._autograd.DeviceType.Meta))
    idle = _idle(cuda, meta, guards[meta]) if guards is not None and guards[meta] else None
    if guards is None or idle is None:
        yield
        return
    before = guards[cuda]
    guards[cuda] = ctypes.addressof(idle)
    try:
        yield
    finally:
        guards[cuda] = before
