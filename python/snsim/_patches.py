"""Everything of PyTorch and of libraries that is replaced while recording, and put back afterwards whatever happens."""
from __future__ import annotations

import contextlib
import gc
import logging
import random
import sys
import types
import warnings
from typing import Any, Callable, Iterator, Optional

import torch
import torch.autograd.graph
import torch.utils.checkpoint
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim.optimizer import _foreach_supported_types as _of_optimizers
from torch.utils._foreach_utils import _foreach_supported_types as _of_tensors

from ._costs import operands
from ._device import QUESTION, guarded_without_driver
from ._fakes import deep_copy, make_subclass
from ._gpu import CUDA, FakeGpu
from ._kernels import Kernels, convolution_form, flatten_weights

_GONE = object()
Phase = Callable[[bool], None]


@contextlib.contextmanager
def replaced(owner: Any, **values: Any) -> Iterator[None]:
    """Attributes of owner, replaced for a while."""
    before = {name: vars(owner).get(name, _GONE) for name in values}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            if value is _GONE:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


@contextlib.contextmanager
def _with_element(items: list, item: Any) -> Iterator[None]:
    items.append(item)
    try:
        yield
    finally:
        items.remove(item)


@contextlib.contextmanager
def random_states_kept() -> Iterator[None]:
    """Python's, NumPy's and PyTorch's generators are afterwards as before."""
    numpy = sys.modules.get("numpy")
    python, cpu = random.getstate(), torch.get_rng_state()
    state = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        random.setstate(python)
        torch.set_rng_state(cpu)
        if numpy is not None and state is not None:
            numpy.random.set_state(state)


@contextlib.contextmanager
def no_tracebacks_logged() -> Iterator[None]:
    """FakeTensorMode logs what it also raises; and PyTorch's own modules ask fakes for their pointers."""
    quiet = lambda record: False  # noqa: E731
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    logger.addFilter(quiet)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
            warnings.filterwarnings("ignore", "A saved_tensors_hooks context .* is active around a selective")
            yield
    finally:
        logger.removeFilter(quiet)


@contextlib.contextmanager
def no_collector() -> Iterator[None]:
    """Objects die when the last reference goes, not when the collector happens to run. What was made since it was turned off, as a session
    does, is young, so that only that is looked through: libraries have a million objects."""
    was = gc.isenabled()
    gc.disable()
    gc.collect(0)
    try:
        yield
    finally:
        if was:
            gc.enable()


# the engine --------------------------------------------------------------------------------------------------------------


def _engine(real: Callable[..., Any], gpu: FakeGpu, sm: int, phase: Optional[Phase]) -> Callable[..., Any]:
    """backward(), which the device question and the function mode have to know of."""
    def run(*args: Any, **kwargs: Any) -> Any:
        creates = bool(args[3] if len(args) > 3 else kwargs.get("create_graph", False))
        gpu.devices.engine += 1
        gpu.devices.creating += creates
        if phase is not None:
            phase(True)
        try:
            with Kernels(sm, gpu.devices, gpu.values):
                return real(*args, **kwargs)
        finally:
            gpu.devices.engine -= 1
            gpu.devices.creating -= creates
            if phase is not None:
                phase(False)
    return run


def _custom_apply(gpu: FakeGpu) -> Any:
    real = torch.autograd.Function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        gpu.devices.custom += 1
        try:
            return real.__get__(None, cls)(*args, **kwargs)
        finally:
            gpu.devices.custom -= 1
    return classmethod(apply)


def _selective(real: Callable[..., Any], gpu: FakeGpu) -> Callable[..., Any]:
    """__torch_dispatch__ of a mode of selective checkpoints, which stands above ours: it detaches what it keeps behind the operation, and
    hands out without one what it has kept."""
    def dispatch(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is QUESTION:
            return real(mode, func, types, args, kwargs)
        inputs = operands((args, tuple((kwargs or {}).values())))
        traced = gpu.devices.is_traced(inputs)
        result = real(mode, func, types, args, kwargs)
        gpu.devices.made(traced, inputs, result)
        return result
    return dispatch


def _moved(parameter: torch.nn.Parameter, fake: FakeTensor) -> torch.nn.Parameter:
    """The fake that takes a real parameter's place, once for all that tie it (legacy constructors make real ones)."""
    known = getattr(parameter, "_snsim_moved", None)
    if known is None:
        known = parameter._snsim_moved = torch.nn.Parameter(fake, parameter.requires_grad)
    return known


def _module_apply(module: torch.nn.Module, fn: Callable[[Any], Any], recurse: bool = True) -> torch.nn.Module:
    """Module._apply for fakes, which PyTorch would swap and cannot: a parameter stays the object that it is."""
    if recurse:
        for child in module.children():
            child._apply(fn)
    for name, parameter in list(module._parameters.items()):
        if parameter is None:
            continue
        with torch.no_grad():
            changed = fn(parameter)
        if isinstance(changed, FakeTensor) and not isinstance(parameter, FakeTensor):
            module._parameters[name] = _moved(parameter, changed)
        elif not torch._has_compatible_shallow_copy_type(parameter, changed):
            module._parameters[name] = torch.nn.Parameter(changed, parameter.requires_grad)  # on another device
        elif changed is not parameter:
            parameter.data = changed
            if isinstance(changed, FakeTensor):
                parameter.fake_device = changed.fake_device
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)
    return module


# the GPU -----------------------------------------------------------------------------------------------------------------


class _Event:
    """torch.cuda.Event, by which loops measure time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def record(self, *args: Any) -> None:
        pass

    synchronize = wait = record

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        return 1.0


class _Stream:
    """torch.cuda.Stream: what runs beside each other has the same bytes, of which the allocator has a pool for each."""
    cuda_stream = stream_id = device_index = 0
    device = CUDA

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def wait_stream(self, *args: Any) -> None:
        pass

    synchronize = wait_event = wait_stream

    def record_event(self, event: Optional[_Event] = None) -> _Event:
        return event or _Event()

    def query(self) -> bool:
        return True


def _cuda(sm: int) -> dict:
    """What torch.cuda says of a GPU of architecture sm."""
    total = 80 << 30
    properties = types.SimpleNamespace(major=sm // 10, minor=sm % 10, name="recorded", total_memory=total,
                                       multi_processor_count=108, max_threads_per_multi_processor=2048, warp_size=32)

    def always(value: Any, names: str) -> dict:
        """A function for each name: the compiler's rules go by the function, and differ by name."""
        return {name: lambda *args, **kwargs: value for name in names.split()}
    return dict(
        **always(None, "_lazy_init init set_device synchronize empty_cache reset_peak_memory_stats manual_seed manual_seed_all set_stream"),
        **always(0, "current_device memory_allocated max_memory_allocated memory_reserved max_memory_reserved"),
        is_available=lambda: True, is_initialized=lambda: True, _initialized=False, device_count=lambda: 1,
        get_device_capability=lambda *args: (sm // 10, sm % 10), get_device_properties=lambda *args: properties,
        get_device_name=lambda *args: properties.name, is_bf16_supported=lambda including_emulation=True: including_emulation or sm >= 80,
        mem_get_info=lambda *args: (total, total), memory_stats=lambda *args: {}, is_current_stream_capturing=lambda: False,
        Event=_Event, Stream=_Stream, stream=contextlib.nullcontext, current_stream=_Stream, default_stream=_Stream)


def _patch_libraries(stack: contextlib.ExitStack) -> None:
    """Libraries take another path for fake tensors, with masks that a real run leaves out."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("transformers.", "diffusers.")) and "is_fake_tensor" in getattr(module, "__dict__", {}):
            stack.enter_context(replaced(module, is_fake_tensor=lambda x: False))


def _eager(stack: contextlib.ExitStack) -> None:
    """What is compiled runs as it is written."""
    if "torch._dynamo" not in sys.modules:
        return
    if hasattr(torch.compiler, "set_stance"):
        stack.enter_context(torch.compiler.set_stance("force_eager"))
    else:  # what is compiled would hand its frames to the compiler by this
        stack.enter_context(replaced(torch._dynamo.eval_frame, set_eval_frame=lambda callback: None))


def _forget_rules() -> None:
    """What the compiler knows of torch's functions is read again: it may have read those that stood in for them."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is not None:
        rules.clear_lru_cache()


class Patches(contextlib.ExitStack):
    """All of it, as a context. `late()` is for libraries that a model's builder has imported meanwhile."""

    def __init__(self, gpu: FakeGpu, sm: int, phase: Optional[Phase] = None) -> None:
        super().__init__()
        self._arguments = (gpu, sm, phase)

    def __enter__(self) -> "Patches":
        super().__enter__()
        try:
            self._enter(*self._arguments)
        except BaseException:
            self.close()
            raise
        return self

    def _enter(self, gpu: FakeGpu, sm: int, phase: Optional[Phase]) -> None:
        engine = _engine(torch.autograd.graph._engine_run_backward, gpu, sm, phase)
        enter = self.enter_context
        self.callback(_forget_rules)
        enter(no_tracebacks_logged())
        enter(guarded_without_driver())
        enter(replaced(torch.autograd, _engine_run_backward=engine))
        enter(replaced(torch.autograd.graph, _engine_run_backward=engine))
        enter(replaced(torch.autograd.Function, apply=_custom_apply(gpu)))
        for mode in map(vars(torch.utils.checkpoint).get, ("_CachingTorchDispatchMode", "_CachedTorchDispatchMode")):
            if mode is not None:
                enter(replaced(mode, __torch_dispatch__=_selective(mode.__torch_dispatch__, gpu)))
        enter(replaced(torch.nn.Module, _apply=_module_apply))
        enter(replaced(torch.nn.functional, **Kernels(sm, gpu.devices, gpu.values).inner()))
        enter(replaced(torch._C, _select_conv_backend=convolution_form(torch._C._select_conv_backend)))
        enter(replaced(torch.nn.RNNBase, flatten_parameters=flatten_weights))
        enter(replaced(FakeTensor, __deepcopy__=deep_copy))
        enter(replaced(torch.Tensor, record_stream=lambda *args: None, _make_subclass=make_subclass(torch.Tensor._make_subclass)))
        enter(replaced(FakeTensorMode, avoid_device_init=property(lambda mode: True)))
        for name in {"init_gpu_context", "init_cuda_context"} & set(vars(fake_tensor)):
            enter(replaced(fake_tensor, **{name: lambda *args: None}))
        enter(replaced(torch.backends.cudnn, _init=lambda: True))
        enter(replaced(torch.cuda, **{name: value for name, value in _cuda(sm).items() if hasattr(torch.cuda, name)}))
        for types_ in (_of_optimizers, _of_tensors):
            enter(_with_element(types_, FakeTensor))  # optimizers take their form for GPUs
        self.late()

    def late(self) -> None:
        _patch_libraries(self)
        _eager(self)
