"""One run under the recorder: modes, patches and hooks are entered, iterations recorded, all left again."""
from __future__ import annotations

import contextlib
import inspect
from typing import Any, Callable, Iterable, Iterator, List, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ._errors import RecordingError
from ._events import Tape
from ._gpu import FakeGpu
from ._kernels import Kernels
from ._patches import Patches, no_collector, random_states_kept, replaced
from ._recorder import Recorder

Step = Callable[..., Any]

_REFUSED = {
    "DistributedDataParallel": "record the model that it wraps (model.module)",
    "DataParallel": "record the model that it wraps (model.module)",
    "FullyShardedDataParallel": "record the model before it is sharded, and ask for a sharded run of the file",
    "FSDPModule": "record the model before fully_shard(), and ask for a sharded run of the file",
    "DeepSpeedEngine": "record the model that it wraps (engine.module)",
}
_REFUSED_TENSORS = {"DTensor": "record the model before it is distributed (parallelize_module, fully_shard)"}


def refuse_distributed(models: Iterable[torch.nn.Module]) -> None:
    """A recording is of one GPU."""
    for model in models:
        for module in model.modules():
            for base in type(module).__mro__:
                if base.__name__ in _REFUSED:
                    raise RecordingError(f"{base.__name__} cannot be recorded, which needs its process group: {_REFUSED[base.__name__]}")
        for tensor in (*model.parameters(), *model.buffers()):
            if type(tensor).__name__ in _REFUSED_TENSORS:
                kind = type(tensor).__name__
                raise RecordingError(f"a {kind} cannot be recorded: {_REFUSED_TENSORS[kind]}")


def is_compiled(module: torch.nn.Module) -> bool:
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


def takes_an_argument(function: Callable[..., Any]) -> bool:
    """Is the function called with a number, or without?"""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL) for p in parameters)


_open = False  # is there a session? Patches do not nest


class Session:
    """A context: within it tensors are fakes of a GPU. `watch` what trains, `run` what is to be recorded."""

    def __init__(self, sm: int = 80, share: float = 0.5) -> None:
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.gpu = FakeGpu(share)
        self.recorder = Recorder(self.mode, self.gpu)
        self.sm = sm
        self._stack = contextlib.ExitStack()
        self._patches = Patches(self.gpu, sm, self.recorder.mark_phase)
        self._models: List[torch.nn.Module] = []
        self._optimizers: List[torch.optim.Optimizer] = []
        self._iterations = 0

    def __enter__(self) -> "Session":
        global _open
        if _open:
            raise RecordingError("a recording is being made: one at a time")
        with contextlib.ExitStack() as stack:
            for context in (no_collector(), random_states_kept(), self.mode, self._patches, self.gpu, self.kernels()):
                stack.enter_context(context)
            self._stack = stack.pop_all()
        _open = True
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        global _open
        if error is not None:
            error._snsim_assumed = self.gpu.values.assumed()
        self.recorder.on = _open = False
        self._stack.close()

    def kernels(self) -> Kernels:
        return Kernels(self.sm, self.gpu.devices, self.gpu.values)

    @property
    def tape(self) -> Tape:
        tape = self.recorder.tape
        tape.assumed = self.gpu.values.assumed()
        return tape

    def watch(self, models: Iterable[torch.nn.Module], optimizers: Iterable[torch.optim.Optimizer] = ()) -> None:
        """Names what trains, ahead of the first iteration."""
        models = list(models)
        refuse_distributed(models)
        self._patches.late()
        self._models += models
        self._optimizers += list(optimizers)
        for model in models:
            for module in model.modules():
                self.recorder.tape.compiled |= is_compiled(module)
            self.gpu.devices.adopt(model.parameters())
        self.recorder.own(models)

    def run(self, step: Step, iterations: int) -> None:
        """Records iterations of step."""
        self._patches.late()
        takes = takes_an_argument(step)
        with self._watching():
            for _ in range(iterations):
                self.recorder.tape.events.append(("i", self._iterations))
                step(self._iterations) if takes else step()
                self.recorder.gradients()
                self._iterations += 1
            self.recorder.states(self._optimizers)

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        recorder = self.recorder
        with contextlib.ExitStack() as stack:
            stack.enter_context(no_collector())
            stack.enter_context(replaced(torch.nn.Module, _call_impl=_module_call(recorder)))
            for hook in (register_optimizer_step_pre_hook(self._update_begins), register_optimizer_step_post_hook(self._update_ends)):
                stack.callback(hook.remove)
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(recorder.pack, recorder.unpack))
            if self._iterations == 0:
                recorder.start()
            recorder.on, self.gpu.observer = True, recorder
            try:
                yield
            finally:
                recorder.on, self.gpu.observer, recorder.updating = False, None, False

    def _update_begins(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if all(optimizer is not known for known in self._optimizers):
            self._optimizers.append(optimizer)
        self.recorder.gradients()
        self.recorder.updating = True
        self.recorder.mark_phase()

    def _update_ends(self, *_: Any) -> None:
        self.recorder.updating = False
        self.recorder.mark_phase()


def _module_call(recorder: Recorder) -> Callable[..., Any]:
    real = torch.nn.Module._call_impl

    def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not recorder.on:
            return real(module, *args, **kwargs)
        recorder.enter(module, (args, kwargs))
        try:
            return real(module, *args, **kwargs)
        finally:
            recorder.leave()
    return call


def record_made(make: Callable[..., Any], batch: Optional[int], iterations: int, sm: int, share: float) -> Tape:
    """Builds with make() on the fake GPU and records the step that it returns."""
    with Session(sm, share) as session:
        with torch.device("cuda"):
            made = make() if batch is None else make(batch)
        try:
            models, optimizers, step = made
        except (TypeError, ValueError):
            raise RecordingError("make() must return models, optimizers and a step: return [model], [optimizer], step. What returns a model "
                                 "is recorded with inputs: --input 3,224,224, in Python record(make, (images,))") from None
        session.watch(models, optimizers)
        session.run(step, iterations)
        return session.tape
