"""What is public: record() and recording()."""
from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
import weakref
from typing import Any, Callable, Iterator, List, Optional, Sequence

import torch

from ._batches import BATCHES, PROOF, NotLinear, differs, is_doubtful, merge
from ._errors import RecordingError, RecordingWarning, explained
from ._events import Tape
from ._file import VERSION, Recording, write
from ._session import Session, Step, record_made
from ._standins import standing_in
from ._training import Training, Tapes


def _folder() -> Any:
    """A folder that lasts as long as the recording in it."""
    class Folder:
        def __init__(self) -> None:
            self.path = tempfile.mkdtemp(prefix="snsim-")
            weakref.finalize(self, shutil.rmtree, self.path, True)
    return Folder()


def _keep(tape: Tape, batches: Sequence[int], iterations: int, sm: int, path: Optional[Any], name: str) -> Recording:
    header = {"snsim_recording": VERSION, "torch": torch.__version__.split("+")[0], "name": name, "batches": list(batches), "sm": sm,
              "iterations": iterations, "assumed": tape.assumed, "compiled": tape.compiled}
    folder = None
    if path is None:
        folder = _folder()
        path = os.path.join(folder.path, "recording.rec")
    write(os.fspath(path), header, tape)
    return Recording(path, folder)


def of_any_batch(tape_of: Tapes, given: Optional[int]) -> Any:
    """Records at two batches, at a third where that is doubtful; at the given one alone if they cannot be one file."""
    tapes = [tape_of(batch) for batch in BATCHES]
    try:
        merged = merge(tapes[0], tapes[1])
        wrong = differs(merged, tape_of(PROOF), PROOF) if is_doubtful(merged) or merged.assumed else None
        if wrong is not None:
            raise NotLinear(wrong)
        return merged, BATCHES
    except NotLinear as why:
        batch = BATCHES[1] if given is None else given
        tape = tape_of(batch)
        tape.assumed = tape.assumed + [[f"no batch but {batch}: {why}", "the recording"]]
        return tape, (batch,)


def record(model: Any, inputs: Any = None, *, loss: Optional[Callable[..., Any]] = None, targets: Any = (),
           optimizer: Any = None, train: bool = True, autocast: Optional[torch.dtype] = None, batch: Any = None,
           iterations: int = 2, path: Optional[Any] = None, name: Optional[str] = None, sm: int = 80, assume: float = 0.5,
           check: bool = False) -> Recording:
    """Records training steps of a model on a GPU that need not be there.

    model       a module, which is neither copied nor changed; or a function that builds one, on the fake GPU, so that it
                takes no memory; or, without inputs, make() or make(batch), which returns models, optimizers and a step.
    inputs      what the model is called with: a tuple, or a dictionary of named ones. Tensors on the CPU, whose whole
                numbers may decide paths; on the device meta; or shapes of float32: (8, 3, 224, 224).
    loss        loss(output, *inputs), or loss(output, *targets) if there are targets, with as many as it takes. Without:
                the output's own loss, or the mean of its first floating tensor.
    targets     what only the loss takes. Tensors on the CPU that a loss finds around it are taken for targets as well.
    optimizer   a function of the list of trained parameters (torch.optim.AdamW is one), or an optimizer of the model.
                Without: plain SGD, which keeps nothing.
    train       False: the forward pass in evaluation mode, without gradients. A model that is in the other mode is put
                into the right one for as long as this takes.
    autocast    a dtype: forward and loss run under autocast; with float16 the loss is scaled (torch.amp.GradScaler).
    batch       None: recorded at 2 and 3 rows, so that the file answers for any; a number: at that alone; a function of a
                number: the inputs of that batch, or, if there are targets, inputs and targets.
    iterations  the first makes gradients and states, the second is what a run is like from then on.
    path        where the file goes, packed if it ends in .gz; without one it lasts as long as the result.
    sm          the GPU's architecture, by which attention's kernel is chosen: 80 for A100, 75 for T4.
    assume      which part of elements is taken to be true where only values would tell.
    check       also run one step on the CPU with real tensors, and compare what was called.
    """
    if iterations < 1:
        raise RecordingError(f"iterations={iterations}: at least 1")
    try:
        if inputs is None and not callable(batch):
            tape, batches = _made(model, batch, iterations, sm, assume)
            name = name or getattr(model, "__name__", "step")
        else:
            run = Training(model, inputs, loss, targets, optimizer, train, autocast, batch, iterations, sm, assume)
            tape, batches = run.recorded(of_any_batch)
            name = name or run.name
            if check:
                from ._check import compare
                compare(run)
    except Exception as error:
        raise explained(error) from error
    recorded = _keep(tape, batches, iterations, sm, path, name)
    _warn(recorded)
    return recorded


def _warn(recorded: Recording) -> None:
    for what, line in recorded.assumed:
        warnings.warn(f"{line}: assumed: {what}", RecordingWarning, stacklevel=3)


def _made(make: Any, batch: Optional[int], iterations: int, sm: int, share: float) -> Any:
    from ._session import takes_an_argument
    if isinstance(make, torch.nn.Module):
        raise RecordingError("a model needs inputs: record(model, (images,))")
    if not callable(make):
        raise RecordingError(f"a {type(make).__name__} is no model: give a module, or a function that returns models, optimizers and a step; "
                             "what FILE.py:NAME names takes snsim.estimate(\"mymodel.py:Net\", input=..)")
    if takes_an_argument(make) and batch is None:
        return of_any_batch(lambda rows: record_made(make, rows, iterations, sm, share), None)
    return record_made(make, batch if takes_an_argument(make) else None, iterations, sm, share), (batch or 1,)


class Steps:
    """Records the iterations that `step` is given."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.iterations = 0
        self.recording: Optional[Recording] = None

    def watch(self, *models: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer] = ()) -> None:
        """Names models that were built within the recording."""
        self._session.watch(models, optimizers)

    def step(self, function: Step, iterations: int = 2) -> None:
        """Records iterations of function(), or function(i)."""
        self._session.run(function, iterations)
        self.iterations += iterations


@contextlib.contextmanager
def recording(path: Any, models: Sequence[torch.nn.Module] = (), optimizers: Sequence[torch.optim.Optimizer] = (), *,
              batch: int = 1, name: Optional[str] = None, sm: int = 80, assume: float = 0.5) -> Iterator[Steps]:
    """One's own loop:

        with snsim.recording("mine.rec", models=[model], optimizers=[optimizer]) as r:
            r.step(train_step)

    Within, the models' tensors are fakes on a GPU; afterwards they are as before. Models and optimizers may also be
    built within and named by r.watch(). The file is written at the end, and is then r.recording.
    """
    try:
        with Session(sm, assume) as session, standing_in(session, models, optimizers):
            session.watch(models, optimizers)
            steps = Steps(session)
            yield steps
            tape = session.tape
    except Exception as error:
        raise explained(error) from error
    if not steps.iterations:
        raise RecordingError("nothing was recorded: call r.step(train_step) within recording()")
    steps.recording = _keep(tape, (batch,), steps.iterations, sm, path, name or _name(models))
    _warn(steps.recording)


def _name(models: Sequence[torch.nn.Module]) -> str:
    names: List[str] = [type(model).__name__ for model in models]
    return "+".join(names) or "step"
