"""check=True: the forward pass and the loss once on fakes and once on the CPU with real tensors. Modules, products,
convolutions, recurrent kernels and attention with its mask that are called must be the same, in the same order."""
from __future__ import annotations

import contextlib
import copy
from typing import Any, Iterator, List, Tuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from . import _costs
from ._batches import BATCHES
from ._errors import RecordingError
from ._inputs import Given
from ._patches import random_states_kept, replaced
from ._session import Session
from ._standins import brought, training

_WHOLE_CALLS = {torch._C._nn.scaled_dot_product_attention: "attention", torch.lstm: "lstm", torch.gru: "gru", torch.rnn_tanh: "rnn_tanh",
                torch.rnn_relu: "rnn_relu", torch.nn.functional.multi_head_attention_forward: "multi_head_attention"}  # compared as a call: what is inside differs between CPU and GPU
_PRODUCTS = _costs.CONVOLUTION | _costs.PRODUCT

Called = Tuple[Any, ...]


class Log:
    """What was called, in order."""

    def __init__(self) -> None:
        self.called: List[Called] = []
        self.muted = 0

    def before(self, func: Any, args: Any, kwargs: Any, inputs: List[torch.Tensor]) -> None:
        """As an observer of a FakeGpu."""
        if not self.muted and _costs.flags_of(func) & _PRODUCTS:
            self.called.append((func._schema.name, *(tuple(x.shape) for x in inputs)))

    def after(self, *_: Any) -> None:
        """Nothing is to be known behind an operation."""

    @contextlib.contextmanager
    def modules(self, model: torch.nn.Module) -> Iterator[None]:
        paths = {id(module): path for path, module in model.named_modules()}
        real = torch.nn.Module._call_impl

        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            self.called.append(("module", paths.get(id(module), "?"), type(module).__name__))
            return real(module, *args, **kwargs)
        with replaced(torch.nn.Module, _call_impl=call):
            yield


class WholeCalls(TorchFunctionMode):
    """Logs attention and recurrent networks as calls."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        try:
            name = _WHOLE_CALLS.get(func)
        except TypeError:
            name = None
        if name is None:
            return func(*args, **kwargs)
        tensors = _costs.tensors_in((args, kwargs))
        self.log.called.append((name, *(tuple(x.shape) for x in tensors[:4 if name == "attention" else 1])))
        self.log.muted += 1
        try:
            return func(*args, **kwargs)
        finally:
            self.log.muted -= 1


class Products(TorchDispatchMode):
    """The same log on the CPU."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.log.before(func, args, kwargs or {}, _costs.tensors_in((args, kwargs or {})))
        return func(*args, **(kwargs or {}))


def _on_fakes(run: Any, batch: int) -> List[Called]:
    data, log = run.data(batch), Log()
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(Session(run.sm, run.share))
        model = run.built(stack, session)
        session.watch([model])
        given = Given(session)
        session.gpu.observer = log
        with log.modules(model), WholeCalls(log):
            _forward(run, model, given(data[:2]), data[2], given)
        session.gpu.observer = None
    return log.called


def _on_cpu(run: Any, batch: int) -> List[Called]:
    data, log = run.data(batch), Log()
    with random_states_kept(), contextlib.ExitStack() as stack:
        model = copy.deepcopy(run.model) if isinstance(run.model, torch.nn.Module) else run.model()
        stack.enter_context(training(model, run.train))
        data = tree_map(_real, data)
        with log.modules(model), WholeCalls(log), Products(log):
            _forward(run, model, data[:2], data[2], _Same())
    return log.called


def _real(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor) or leaf.device.type == "cpu":
        return leaf
    random = leaf.dtype.is_floating_point or leaf.dtype.is_complex
    return (torch.randn if random else torch.zeros)(tuple(leaf.shape), dtype=leaf.dtype)


class _Same:
    """Gives tensors as they are."""

    @staticmethod
    def tensors(leaves: List[Any]) -> List[Any]:
        return leaves


def _forward(run: Any, model: torch.nn.Module, data: Any, around: List[Any], given: Any) -> None:
    (arguments, named), targets = data
    with brought(run.loss, around, given), torch.set_grad_enabled(run.train):
        output = model(*arguments, **named)
        if run.train:
            run.loss_of(output, arguments, named, targets)


def _told(called: Called) -> str:
    name, *rest = called
    if not rest:
        return name
    return f"module {rest[0] or 'itself'} ({rest[1]})" if name == "module" else f"{name} of {', '.join(str(shape) for shape in rest)}"


def compare(run: Any) -> None:
    """Raises where the fakes took another path than the CPU."""
    batch = BATCHES[0] if run.batch is None or callable(run.batch) else run.batch
    fake, real = _on_fakes(run, batch), _on_cpu(run, batch)
    for position in range(max(len(fake), len(real))):
        ours, theirs = (calls[position] if position < len(calls) else ("nothing",) for calls in (fake, real))
        if ours != theirs:
            last = next((call for call in reversed(fake[:position]) if call[0] == "module"), ("module", "", type(run.model).__name__))
            raise RecordingError(f"check: in {_told(last)} the recording called {_told(ours)}, a step on the CPU {_told(theirs)}: "
                                 "the model asks for values or for what kind of tensor it has")


