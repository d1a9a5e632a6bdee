"""A model, inputs, a loss and an optimizer: the training step that they make, recorded at a batch."""
from __future__ import annotations

import contextlib
import inspect
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from ._errors import RecordingError
from ._events import Tape
from ._inputs import Given, normalized, resized, rows_of, with_tensors
from ._session import Session, refuse_distributed
from ._standins import brought, brought_along, standing_in, training

Tapes = Callable[[int], Tape]


def as_many_as_taken(function: Callable[..., Any], arguments: List[Any]) -> Any:
    """function(*arguments), without the last ones if it takes fewer."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function(*arguments)
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        taken = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
        arguments = arguments[:taken]
    return function(*arguments)


def refuse_arguments(build: Callable[..., Any]) -> None:
    """What builds a model is called without any."""
    try:
        parameters = inspect.signature(build).parameters.values()
    except (TypeError, ValueError):
        return
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if needed == ["batch"]:
        raise RecordingError(f"{getattr(build, '__name__', 'it')} takes a batch, as what returns models, optimizers and a step: "
                             "give it no inputs, in the shell no --input; what builds a model alone takes nothing")
    if needed:
        name, given = getattr(build, "__name__", "it"), ", ".join(f"{each}=.." for each in needed)
        raise RecordingError(f"{name} needs {' and '.join(needed)}: give a function that builds it, def build(): return {name}({given})")


def called(model: torch.nn.Module, arguments: Any, named: Any) -> Any:
    """The model's output. An error is told with the module it came from, and with what the model was given."""
    try:
        return model(*arguments, **named)
    except Exception as error:
        shapes = ", ".join(str(list(x.shape)) for x in _tensors([arguments, dict(named)]))
        error._snsim_given = f"{_within(model, error)}; the model was given {shapes}, batch first"  # type: ignore[attr-defined]
        raise


def _within(model: torch.nn.Module, error: Exception) -> str:
    """The innermost module of the model that raised an error."""
    paths = {id(module): path for path, module in model.named_modules() if path}
    inner = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module = frame.f_locals.get("self")
        if id(module) in paths:
            text = repr(module)
            inner = f"; in {paths[id(module)]}, {text if text.count(chr(10)) == 0 else type(module).__name__}"
    return inner


def loss_of_output(output: Any) -> torch.Tensor:
    """The output's own loss, or the mean of its first floating tensor."""
    own = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    for tensor in _tensors(output):
        if tensor.is_floating_point():
            return tensor if not tensor.dim() else tensor.mean()
    raise RecordingError("the output holds no floating tensor to make a loss of: give loss=lambda output, *inputs: ...")


def _tensors(output: Any) -> List[torch.Tensor]:
    from torch.utils._pytree import tree_leaves
    values = list(output.values()) if isinstance(output, dict) else output
    return [x for x in tree_leaves(values) if isinstance(x, torch.Tensor)]


def is_existing(optimizer: Any) -> bool:
    return isinstance(optimizer, torch.optim.Optimizer)


class Training:
    """What record() was asked for."""

    def __init__(self, model: Any, inputs: Any, loss: Any, targets: Any, optimizer: Any, train: bool, autocast: Any, batch: Any,
                 iterations: int, sm: int, share: float) -> None:
        self.model, self.loss, self.optimizer, self.train, self.autocast = model, loss, optimizer, train, autocast
        self.batch, self.iterations, self.sm, self.share = batch, iterations, sm, share
        self.inputs, self.targets = inputs, targets
        self.name = type(model).__name__ if isinstance(model, torch.nn.Module) else getattr(model, "__name__", "model")
        self._refuse()

    def _refuse(self) -> None:
        """What is of another kind than was asked for."""
        model, loss, optimizer, autocast, batch = self.model, self.loss, self.optimizer, self.autocast, self.batch
        if not isinstance(model, torch.nn.Module) and not callable(model):
            raise RecordingError(f"a {type(model).__name__} is no model: give a module, or a function that builds one")
        if isinstance(model, torch.jit.ScriptModule):
            raise RecordingError("a ScriptModule runs where nothing is seen: record the module that it was made of")
        if loss is not None and not callable(loss):
            raise RecordingError(f"loss={loss!r} is no function: loss=lambda output, *inputs: ...")
        if not (optimizer is None or is_existing(optimizer) or callable(optimizer)):
            raise RecordingError(f"optimizer={optimizer!r} is no function of parameters: optimizer=torch.optim.AdamW")
        if not (autocast is None or isinstance(autocast, torch.dtype)):
            raise RecordingError(f"autocast={autocast!r} is no dtype: autocast=torch.bfloat16")
        if not (batch is None or callable(batch) or isinstance(batch, int) and batch > 0):
            raise RecordingError(f"batch={batch!r}: a number of at least 1, or a function of a number")

    def recorded(self, of_any_batch: Callable[..., Any]) -> Any:
        """Tape and batches."""
        rows = None if callable(self.batch) else rows_of(with_tensors(normalized(self.inputs)))
        if self.batch is None or callable(self.batch):
            if rows is None and self.batch is None:
                return self.tape(None), (1,)
            return of_any_batch(self.tape, rows)
        return self.tape(self.batch), (self.batch,)

    # a batch ---------------------------------------------------------------------------------------------------------

    def data(self, batch: Optional[int]) -> Tuple[Any, List[Any], List[torch.Tensor]]:
        """Inputs, targets and what the loss finds around it, of that many rows."""
        inputs, targets = self.inputs, self.targets
        if callable(self.batch):
            made = self.batch(batch)
            inputs, targets = made if _are_both(made, targets) else (made, targets)
        if isinstance(targets, torch.Tensor):
            targets = (targets,)
        data = with_tensors(normalized(inputs)), with_tensors(list(targets)), brought_along(self.loss)
        rows = rows_of(data)
        return data if batch is None or rows is None or callable(self.batch) else resized(data, rows, batch)

    # a run -----------------------------------------------------------------------------------------------------------

    def tape(self, batch: Optional[int]) -> Tape:
        data = self.data(batch)
        with contextlib.ExitStack() as stack:
            session = stack.enter_context(Session(self.sm, self.share))
            model = self.built(stack, session)
            optimizers = self._optimizers(stack, model)
            session.watch([model], optimizers)
            session.run(lambda _: self._iteration(session, model, optimizers, data), self.iterations)
            return session.tape

    def built(self, stack: contextlib.ExitStack, session: Session) -> torch.nn.Module:
        """The model on the fake GPU."""
        existing = [x for x in (self.model, self.loss) if isinstance(x, torch.nn.Module)]
        refuse_distributed(existing)
        optimizers = [self.optimizer] if is_existing(self.optimizer) else []
        stack.enter_context(standing_in(session, existing, optimizers))
        model = self.model
        if not isinstance(model, torch.nn.Module):
            refuse_arguments(self.model)
            with torch.device("cuda"):
                model = self.model()
            if not isinstance(model, torch.nn.Module):
                raise RecordingError(f"the function that builds the model returned a {type(model).__name__}, no module")
            model = model.to("cuda")  # what did not look at the default device
            self.name = type(model).__name__
        stack.enter_context(training(model, self.train))
        return model

    def _optimizers(self, stack: contextlib.ExitStack, model: torch.nn.Module) -> List[torch.optim.Optimizer]:
        if not self.train:
            return []
        if is_existing(self.optimizer):
            self._refuse_another(model)
            return [self.optimizer]
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if self.optimizer is None:
            return [torch.optim.SGD(trained, lr=0.01)] if trained else []
        if not trained:
            raise RecordingError(f"{type(model).__name__} has no parameter that is trained: take train=False, in the shell --inference")
        made = self.optimizer(trained)
        return list(made) if isinstance(made, (tuple, list)) else [made]

    def _refuse_another(self, model: torch.nn.Module) -> None:
        """An optimizer that updates nothing of the model."""
        modules = [x for x in (model, self.loss) if isinstance(x, torch.nn.Module)]
        own = {id(parameter) for module in modules for parameter in module.parameters()}
        if not any(id(parameter) in own for group in self.optimizer.param_groups for parameter in group["params"]):
            raise RecordingError("the optimizer has no parameter of the model: make it of model.parameters(), or give a function of them, "
                                 "optimizer=torch.optim.AdamW")

    def _iteration(self, session: Session, model: torch.nn.Module, optimizers: List[torch.optim.Optimizer], data: Any) -> None:
        given = Given(session)
        (arguments, named), targets, around = data
        arguments, named, targets = given((arguments, named, targets))
        with brought(self.loss, around, given):
            if not self.train:
                with torch.no_grad(), self._autocast():
                    called(model, arguments, named)
                return
            for optimizer in optimizers:
                optimizer.zero_grad()
            with self._autocast():
                loss = self.loss_of(called(model, arguments, named), arguments, named, targets)
            self._update(session, loss, optimizers)

    def _autocast(self) -> Any:
        return torch.autocast("cuda", self.autocast) if self.autocast is not None else contextlib.nullcontext()

    def loss_of(self, output: Any, arguments: Any, named: Dict[str, Any], targets: List[Any]) -> torch.Tensor:
        if self.loss is None:
            return loss_of_output(output)
        behind = list(targets) or list(arguments) + ([named] if named else [])
        try:
            loss = as_many_as_taken(self.loss, [output, *behind])
        except Exception as error:
            if not targets:
                error._snsim_given = "; the loss was given the output and the inputs: what else it takes is targets=.."  # type: ignore[attr-defined]
            raise
        if not isinstance(loss, torch.Tensor) or loss.dim():
            raise RecordingError(f"the loss is {_what(loss)}, not a tensor of one number: reduce it, for example with .mean()")
        return loss

    def _update(self, session: Session, loss: torch.Tensor, optimizers: List[torch.optim.Optimizer]) -> None:
        if not loss.requires_grad:
            raise RecordingError("the loss depends on nothing that is trained: is everything frozen, or detached?")
        if self.autocast is not torch.float16:
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            return
        scaler = session.__dict__.setdefault("scaler", None) or torch.amp.GradScaler("cuda")
        session.scaler = scaler
        scaler.scale(loss).backward()
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()


def _are_both(made: Any, targets: Any) -> bool:
    """Does a batch function return inputs and targets?"""
    return bool(targets) and isinstance(made, tuple) and len(made) == 2


def _what(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
