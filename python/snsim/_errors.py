"""What goes wrong while recording, told with the user's line and a way out."""
from __future__ import annotations

import os
import re
import sys
import sysconfig
import traceback
from types import FrameType
from typing import Iterable, Iterator, Optional, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARY = ("site-packages", "dist-packages")

Place = Tuple[str, int]  # file, line


class RecordingError(RuntimeError):
    """A recording that could not be made; the text says where and what to do."""


class RecordingWarning(UserWarning):
    """Something had to be assumed."""


def _is_ours(file: str) -> bool:
    torch = sys.modules.get("torch")
    folder = os.path.dirname(torch.__file__) + os.sep if torch is not None and torch.__file__ else None
    return file.startswith(_HERE + os.sep) or file.startswith("<") or bool(folder and file.startswith(folder))


def _is_library(file: str) -> bool:
    return any(part in file for part in _LIBRARY) or file.startswith(sysconfig.get_path("stdlib"))


def _tell(places: Iterable[Place]) -> str:
    """The user's innermost line of places (innermost first), and the library's if the line is in one. Without folders:
    a recording is handed on."""
    inner: Optional[Place] = None
    for file, line in places:
        if _is_ours(file):
            continue
        if not _is_library(file):
            own = f"{os.path.basename(file)}:{line}"
            return own if inner is None else f"{own} (in {os.path.basename(inner[0])}:{inner[1]})"
        if inner is None and not file.startswith(sysconfig.get_path("stdlib")):
            inner = (file, line)
    return "" if inner is None else f"{os.path.basename(inner[0])}:{inner[1]}"


def _frames(frame: Optional[FrameType]) -> Iterator[Place]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back


def users_line() -> str:
    """The line of the user's code that is being executed."""
    return _tell(_frames(sys._getframe(1))) or "an unknown line"


def line_of(error: BaseException) -> str:
    """The line of the user's code that raised error, or that called what did; empty where there is none."""
    raised = [(frame.filename, frame.lineno or 0) for frame in reversed(traceback.extract_tb(error.__traceback__))]
    return _tell([*raised, *_frames(sys._getframe(1))])


_OPERATOR = re.compile(r"\b([A-Za-z_]\w*(?:::|\.)\w+(?:\.\w+)?)\b")


_NO_FAKE = "has no fake kernel, which says what its results look like: write one with torch.library.register_fake"


def _without_fake(error: BaseException) -> str:
    """The operator that PyTorch tried to run on zeros as it has no fake kernel; empty where none was."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == "run_fallback_kernel":
            return str(frame.f_locals.get("func", ""))
    return ""


def _way_out(error: BaseException) -> str:
    """What may be done about an error of PyTorch's or the user's."""
    kind, text = type(error).__name__, str(error)
    if kind == "UnsupportedOperatorException" or "fake impl" in text or "register_fake" in text:
        found = _OPERATOR.search(text)
        operator = found.group(1) if found else "an operator"
        return f"{operator} {_NO_FAKE}"
    if kind in ("DynamicOutputShapeException", "DataDependentOutputException"):
        return f"{text}: the result depends on values, which a recording has not: replace it by something of a fixed size"
    if "data pointer" in text or ".numpy()" in text or "numpy" in text and kind in ("RuntimeError", "TypeError"):
        return f"{text.splitlines()[0]}: .numpy() and pointers need values, which a recording has not: keep them out of the step"
    if "device" in text and ("found at least two" in text or "Expected all tensors" in text or "found two different devices" in text):
        return (f"{text.splitlines()[0]}: a tensor was left on the CPU: give it as an input or a target, register it as a buffer, "
                "or move it with .cuda(); a model that the file makes as it is imported is made within the function that is recorded")
    if "SparseTensorImpl" in text or "sparse" in text.lower() and kind in ("NotImplementedError", "RuntimeError"):
        return f"{text.splitlines()[0]}: sparse tensors are not recorded: take dense gradients, nn.Embedding(sparse=False)"
    if kind == "TypeError" and re.search(r"forward\(\) (missing|takes|got)", text):
        return f"{text}: inputs are what forward() takes, in order or by name: inputs=(x, y), in the shell an --input for each"
    if "HigherOrderOperator flex_attention" in text or "HOP flex_attention" in text:
        return ("flex_attention is not recorded, as only torch.compile makes one kernel of it: take "
                "torch.nn.functional.scaled_dot_product_attention")
    if "HigherOrderOperator" in text:
        return f"{text.splitlines()[0].split(' and mode')[0]}: what torch.compile would make of it is not recorded: write it as a loop or a branch"
    if "shape_env must not be None" in text or "NestedTensor" in text:
        return f"{text.splitlines()[0]}: nested tensors have sizes that depend on values: pad them, or write one batch with offsets"
    if "saved tensor hooks" in text:
        return f"{text.splitlines()[0]}: what backward keeps is recorded by them: take torch.autograd.grad instead of torch.func.grad"
    operator = _without_fake(error)
    if operator:
        return f"{operator} {_NO_FAKE}"
    if "CUDA driver" in text or "NVIDIA driver" in text:
        return (f"{text.splitlines()[0]}: this PyTorch asks the driver where newer ones ask the fakes: record with PyTorch 2.15 or newer, "
                "or on a machine with a GPU")
    if "scalar types: Long, Int" in text or "used as indices must be long" in text:
        return f"{text}: it looks numbers up, give whole ones: torch.zeros(2, 128, dtype=torch.long), in the shell --input 128:int64"
    if "no padding token is defined" in text:
        return f"{text.strip().rstrip('.')}: a classifier of several rows looks for it: give the config a pad_token_id, such as 0"
    if "SymInt" in text or "symbolic" in text:
        return f"{text.splitlines()[0]}: record without torch.compile(dynamic=True)"
    return text.strip() or _failed_line(error)


def _failed_line(error: BaseException) -> str:
    """What is known of an error that says nothing, as a bare assert."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"this fails: {frames[-1].line}" if frames and frames[-1].line else type(error).__name__


def explained(error: Exception) -> RecordingError:
    """The error that the user sees instead of error."""
    name = "" if type(error) in (RuntimeError, RecordingError) else f" ({type(error).__name__})"
    text = str(error) if isinstance(error, RecordingError) else _way_out(error)
    if text == str(error).strip() or not str(error):
        text += getattr(error, "_snsim_given", "")
    assumed = getattr(error, "_snsim_assumed", None)
    if assumed:
        text += f" (assumed ahead of it: {assumed[-1][0]}, {assumed[-1][1]})"
    line = line_of(error)
    return RecordingError(f"{line}: {text}{name}" if line else f"{text}{name}")
