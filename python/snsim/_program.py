"""The program: where it is, how it is run, and what it says when it fails."""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence

_HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "snsim"
VARIABLE = "SNSIM_PROGRAM"
DONE, NO_FIT, USAGE = 0, 1, 2  # exit statuses; above them files, devices and faults of the program


class Error(RuntimeError):
    """What the program said. `status` is its exit status: 2 a wrong question, 3 a file, 4 a device; None: it did not run."""

    def __init__(self, text: str, status: Optional[int] = None) -> None:
        super().__init__(text)
        self.status = status


class Answer(NamedTuple):
    """A run of the program that came to an end."""

    status: int
    out: str
    said: str


def _folders() -> Iterator[str]:
    """Where the package's own program may lie: beside its scripts, and in a build folder of the sources."""
    above = os.path.dirname(os.path.dirname(_HERE))
    yield os.path.join(above, "build")  # of python/snsim in the sources
    yield sysconfig.get_path("scripts")
    for scheme in sysconfig.get_scheme_names():  # also of pip install --user
        if scheme.endswith("user"):
            yield sysconfig.get_path("scripts", scheme)
    yield os.path.join(os.path.dirname(above), "bin")  # of share/snsim/python/snsim
    up = _HERE
    for _ in range(4):  # of lib/python3.x/site-packages/snsim, where pip install --prefix put it
        up = os.path.dirname(up)
    yield os.path.join(up, "bin")


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def find() -> str:
    """The program's path: $SNSIM_PROGRAM, the one that came with this package, or the one on PATH."""
    named = os.environ.get(VARIABLE)
    if named:
        if _is_program(named):
            return named
        raise Error(f"{VARIABLE} names {named}, which is no program: unset it, or name the program snsim")
    for folder in _folders():
        if _is_program(os.path.join(folder, NAME)):
            return os.path.join(folder, NAME)
    found = shutil.which(NAME)
    if found:
        return found
    raise Error("the program snsim is not installed: `pip install .` in snsim's sources brings it, or build it there with "
                f"cmake and put it on PATH, or name it in {VARIABLE}. Recording needs no program, estimates do")


def environment() -> Dict[str, str]:
    """What the program is started with: where it runs this package, it is this one in this Python."""
    own = dict(os.environ)
    own.setdefault("SNSIM_PYTHON", sys.executable or "python3")
    return own


def run(arguments: Sequence[str], wanted: Sequence[int] = (DONE,)) -> Answer:
    """Runs the program. Error where its exit status is none of those that are wanted."""
    program = find()
    try:
        done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8", errors="replace", env=environment(), check=False)
    except OSError as error:
        raise Error(f"{program} cannot be run: {error.strerror}") from error
    if done.returncode not in wanted:
        raise Error(_reason(done.stderr, done.returncode), done.returncode)
    return Answer(done.returncode, done.stdout, done.stderr)


def _reason(said: str, status: int) -> str:
    lines: List[str] = said.strip().splitlines()
    text = "\n".join(lines[-40:])
    for front in ("snsim: error: ", "snsim: "):
        if text.startswith(front):
            return text[len(front):]
    return text or f"the program ended with status {status} and said nothing"


def words(options: Dict[str, object]) -> List[str]:
    """Keywords as the command line has them: host_memory="64GiB" is --host-memory 64GiB; True is a switch, None and False are
    left out, a list is parted by commas, several inputs are each told. A number of bytes needs no unit."""
    out: List[str] = []
    for key, value in options.items():
        name = "--" + key.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(name)
            continue
        if isinstance(value, (list, tuple)) and key == "input":
            for part in value:
                out += [name, str(part)]
            continue
        if isinstance(value, (list, tuple)):
            value = ",".join(str(part) for part in value)
        if name in _BYTES and isinstance(value, int):
            value = f"{value}B"
        out += [name, str(value)]
    return out


_BYTES = ("--memory", "--host-memory", "--context", "--pool", "--margin")
