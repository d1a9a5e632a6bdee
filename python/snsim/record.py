"""python -m snsim.record: records a training step from the shell.

    python -m snsim.record train.py:make -o mine.rec
    python -m snsim.record mymodel.py:Net --input 3,224,224 --optimizer adamw -o mine.rec.gz
    python -m snsim.record --hf GPT2LMHeadModel --config config.json --sequence 1024 --optimizer adamw

make() or make(batch) returns models, optimizers and a step. With --input the name is that of a module's class, or of a
function that builds a model, and a step is made of inputs (sizes of a row; ids 128:int64 for whole numbers), loss and
optimizer. With --config it is a model of transformers, of the class that --hf or the config names, which reads tokens. Exit codes: 0 recorded, 2 wrong command line, 3 a file or a model that cannot be recorded, 4 no PyTorch, 130
interrupted.
"""
from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import warnings
from types import ModuleType
from typing import Any, List, NoReturn, Optional

OPTIMIZERS = ("sgd", "momentum", "adam", "adamw", "adagrad", "rmsprop")
AUTOCAST = {"bf16": "bfloat16", "fp16": "float16"}
_LONG = 10  # seconds that are worth telling
_ROWS = 2  # of an input's tensor; recorded at other numbers of rows as well


def fail(code: int, text: str) -> NoReturn:
    print(f"snsim.record: error: {text}", file=sys.stderr)
    sys.exit(code)


def arguments(given: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m snsim.record", description="Records a training step of a PyTorch model, without a GPU.")
    parser.add_argument("what", nargs="?", metavar="FILE.py:NAME", help="make() or make(batch), or with --input what builds a model")
    parser.add_argument("-o", "--output", metavar="FILE", help="the recording, packed if it ends in .gz (default: NAME.rec)")
    parser.add_argument("--input", action="append", default=[], metavar="SIZES[:DTYPE]", help="an input of one row: 3,224,224 or 128:int64")
    parser.add_argument("--hf", metavar="CLASS", help="with --config: a class of transformers (default: the one that the config names)")
    parser.add_argument("--config", metavar="FILE", help="a config.json of transformers, or its folder: its model, without weights")
    parser.add_argument("--sequence", type=int, metavar="N", help="with --config: tokens of a row")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd", help="with --input or --config (default: %(default)s)")
    parser.add_argument("--autocast", choices=sorted(AUTOCAST), help="with --input: mixed precision")
    parser.add_argument("--inference", action="store_true", help="with --input: the forward pass alone")
    parser.add_argument("--batch", type=int, metavar="N", help="record at this batch alone, not for any")
    parser.add_argument("--iterations", type=int, default=2, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--name", help="what it is called (default: NAME)")
    parser.add_argument("--sm", type=int, default=80, metavar="N", help="the GPU's architecture, 75 for a T4 (default: %(default)s)")
    parser.add_argument("--assume", type=float, default=0.5, metavar="PART", help="of elements that are true where only values would tell")
    parser.add_argument("--check", action="store_true", help="with --input: compare with a step on the CPU")
    asked = parser.parse_args(given)
    of_config = bool(asked.hf or asked.config)
    if not asked.what and not of_config:
        parser.error("what to record is missing: FILE.py:NAME, or --config of a model of transformers")
    if of_config and (asked.what or asked.input):
        parser.error("--hf and --config record a model of transformers, whose inputs are tokens; leave FILE.py:NAME and --input out")
    if asked.sequence and not of_config:
        parser.error("--sequence is of --config; inputs of FILE.py:NAME have --input 128:int64")
    return asked


def loaded(path: str) -> ModuleType:
    """The user's file as a module; what lies beside it can be imported."""
    if not os.path.isfile(path):
        fail(3, f"{path}: no such file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # of a .py file
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SystemExit:
        fail(3, f"{path} ended while it was read: put what starts a training under if __name__ == \"__main__\":")
    except Exception as error:
        from ._errors import line_of
        fail(3, f"{line_of(error) or path}: {error} ({type(error).__name__}): {path} cannot be imported")
    return module


def no_file(what: str) -> str:
    """What to type instead of what is no FILE.py:NAME."""
    path = what if what.endswith(".py") else what.rpartition(":")[0] or what
    if path.endswith((".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".gguf")):
        return "weights do not say what a model does: name the code that builds it, FILE.py:NAME, or its config.json by --config"
    if path.endswith(".py"):
        return f"FILE.py:NAME, such as {path}:make, or {path}:Net with --input of a class"
    if "/" in path and not os.path.exists(path):
        return "a model of the Hugging Face hub is recorded from its config.json: download that and take --config config.json --sequence 2048"
    return "FILE.py:NAME, such as train.py:make"


def named(what: str) -> Any:
    """What FILE.py:NAME is."""
    path, colon, name = what.rpartition(":")
    if not colon or not name.isidentifier() or not path.endswith(".py"):
        fail(2, f"{what}: {no_file(what)}")
    module = loaded(path)
    if not hasattr(module, name):
        fail(2, f"{path} has no {name}: it has {', '.join(sorted(n for n, v in vars(module).items() if callable(v) and n[0] != '_')) or 'nothing to call'}")
    return getattr(module, name)


def input_of(text: str) -> Any:
    """A tensor of some rows."""
    import torch
    sizes, _, kind = text.partition(":")
    dtype = getattr(torch, kind or "float32", None)
    try:
        shape = [_ROWS, *(int(size) for size in sizes.split(",") if size)]
    except ValueError:
        shape = []
    if not isinstance(dtype, torch.dtype) or not shape or min(shape) < 1:
        fail(2, f"--input {text}: sizes of a row with commas between, and a dtype, such as 3,224,224 or 128:int64")
    whole = not dtype.is_floating_point
    return torch.zeros(shape, dtype=dtype) if whole else torch.empty(shape, dtype=dtype, device="meta")


def optimizer_of(word: str) -> Any:
    import torch
    if word == "momentum":
        return lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    names = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "adagrad": "Adagrad", "rmsprop": "RMSprop"}
    return getattr(torch.optim, names[word])


def say(text: str) -> None:
    print(f"snsim.record: {text}", file=sys.stderr, flush=True)


def needs_inputs(what: Any) -> bool:
    """A model's class, or a model: nothing that makes a loop."""
    import torch
    return isinstance(what, torch.nn.Module) or (isinstance(what, type) and issubclass(what, torch.nn.Module))


def recorded(asked: argparse.Namespace) -> Any:
    """What the command line asks for."""
    try:
        import torch
    except ImportError as error:
        fail(4, f"PyTorch cannot be imported by {sys.executable}: {error}")
    from snsim import record
    inputs = None
    if asked.what:
        what, name = named(asked.what), asked.what.rpartition(":")[2]
        if asked.input:
            inputs = tuple(input_of(text) for text in asked.input)
        elif needs_inputs(what):
            fail(2, f"{asked.what} is a model, and --input is missing: add the sizes of a row of each of its inputs, "
                    "such as --input 3,224,224 of an image or --input 128:int64 of tokens")
    else:
        from ._hf import model_of
        name, what, inputs = model_of(asked.hf, asked.config, asked.sequence)
    name = asked.name or name
    options = dict(path=asked.output or f"{name}.rec", name=name, batch=asked.batch, iterations=asked.iterations, sm=asked.sm,
                   assume=asked.assume)
    if inputs is None:
        return record(what, **options)
    dtype = getattr(torch, AUTOCAST[asked.autocast]) if asked.autocast else None
    return record(what, inputs, optimizer=optimizer_of(asked.optimizer), train=not asked.inference, autocast=dtype, check=asked.check,
                  **options)


def main(given: Optional[List[str]] = None) -> None:
    from snsim._errors import RecordingError, RecordingWarning  # needs no PyTorch
    asked = arguments(given)
    warnings.simplefilter("ignore", RecordingWarning)  # the summary tells what was assumed
    began = time.monotonic()
    try:
        say(f"recording {asked.what or asked.hf or asked.config} on fake tensors: seconds, of a large model minutes")
        summary = recorded(asked).summary()
        took = time.monotonic() - began
        if took > _LONG:
            say(f"it took {took:.0f} s")
    except KeyboardInterrupt:
        fail(130, "interrupted: nothing was kept")
    except RecordingError as error:
        fail(3, str(error))
    print(summary)


class _Called(ModuleType):
    """Who imports this module has it where the function snsim.record was: it can be called like that."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from ._api import record
        return record(*args, **kwargs)


if __name__ == "__main__":
    main()
else:
    sys.modules[__name__].__class__ = _Called
