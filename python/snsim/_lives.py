"""A recording played in Python: which blocks of memory a training step asks for, in order, and who asks. Needs no PyTorch."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from ._file import VERSION, open_text
from ._program import Error

TABLES = ("kernels", "modules", "calls", "storages", "parameters")
PHASES = ("forward", "backward", "update")
CUBLAS_WORKSPACE = {False: 8519680, True: 32 << 20}  # by whether the architecture is 90 or newer; taken with the first product
WORKSPACE, BATCH = "cuBLAS's workspace", "the batch"  # of Ask.what
_PRODUCT = 16


class Ask(NamedTuple):
    """A block that is asked for (born) or given back. `block` is its number from 0 on."""

    born: bool
    block: int
    bytes: int
    what: str  # the kernel, or what a tensor is that no kernel makes
    call: int  # of `Lives.calls`
    phase: int
    iteration: int  # -1: before the first

    @property
    def where(self) -> str:
        when = "before the first iteration" if self.iteration < 0 else f"{PHASES[self.phase]} of iteration {self.iteration}"
        return f"{self.what}, {when}"


class Lives:
    """A recording at a batch. asks() is its sequence of blocks, with sums of gradients in place as real PyTorch makes them."""

    def __init__(self, recording: Any, batch: Optional[int] = None) -> None:
        self.path = os.fspath(getattr(recording, "path", recording))
        try:
            with open_text(self.path) as lines:
                self._read_head(lines, batch)
        except FileNotFoundError as error:
            raise Error(f"{self.path}: {error.strerror}") from error
        except (OSError, EOFError, ValueError, KeyError, IndexError, TypeError) as error:
            raise Error(f"{self.path}: is no recording: {error}") from error

    def _read_head(self, lines: Any, batch: Optional[int]) -> None:
        self.header: Dict[str, Any] = json.loads(lines.readline())
        if not isinstance(self.header, dict) or self.header.get("snsim_recording") != VERSION:
            raise ValueError(f"its first line is not that of version {VERSION}")
        tables = {name: json.loads(lines.readline())[name] for name in TABLES}
        self.kernels, self.modules, self.calls = tables["kernels"], tables["modules"], tables["calls"]
        batches = self.header["batches"]
        if batch is None and len(batches) == 1:
            batch = batches[0]
        if batch is None:
            raise Error(f"{self.path}: recorded for any batch: give one, as batch=64")
        if len(batches) == 1 and batch != batches[0]:
            raise Error(f"{self.path}: recorded at batch {batches[0]} alone, and batch={batch} was asked for")
        self.batch = batch
        self.sizes = [a + b * batch if device == "cuda" else 0 for a, b, _, device, _ in tables["storages"]]
        if min(self.sizes, default=0) < 0:
            raise ValueError(f"it does not hold for batch {batch}")
        self.roles = [row[4] for row in tables["storages"]]
        self.names = {row[1]: row[0] for row in reversed(tables["parameters"])}
        self.workspace = CUBLAS_WORKSPACE[self.header["sm"] >= 90]

    def module(self, call: int) -> str:
        """The path of the module of a call; "" outside of all."""
        return self.modules[self.calls[call][1]][0]

    def parents(self, call: int) -> List[Tuple[str, str]]:
        """Paths and classes of the modules around, the innermost first."""
        rows = []
        while call:
            rows.append(tuple(self.modules[self.calls[call][1]]))
            call = self.calls[call][0]
        return rows

    def asks(self, workspaces: bool = True) -> Iterator[Ask]:
        """Blocks in order; with the workspace of cuBLAS, which comes with the first product and stays."""
        try:
            with open_text(self.path) as lines:
                for _ in range(1 + len(TABLES)):
                    lines.readline()
                yield from _Walk(self, workspaces).run(lines)
        except (OSError, EOFError, ValueError, KeyError, IndexError, TypeError) as error:
            raise Error(f"{self.path}: is damaged: {error}") from error


class _Walk:
    def __init__(self, lives: Lives, workspaces: bool) -> None:
        self.lives, self.workspaces = lives, workspaces
        self.had: Dict[int, int] = {}  # by storage: how many have it
        self.block: Dict[int, Ask] = {}
        self.kept: Dict[int, int] = {}  # by handle
        self.same: Dict[int, int] = {}  # sums that are their first summand's memory
        self.made_by: Dict[int, int] = {}  # by node: the call whose operation made it
        self.open: List[int] = [0]
        self.blocks, self.phase, self.iteration = 0, 0, -1
        self.what, self.call = "", 0

    def run(self, lines: Any) -> Iterator[Ask]:
        for line in lines:
            row = json.loads(line)
            kind = row[0]
            if kind == "e":
                return
            if kind == "o":
                yield from self._operation(row)
                continue
            self.what, self.call = "", self.open[-1]
            if kind == "b":
                yield from self._take(row[1])
            elif kind == "g":
                yield from self._take(row[1])
            elif kind == "f":
                for storage in row[1:]:
                    yield from self._leave(storage)
            elif kind == "h":
                yield from self._leave(row[1])
            elif kind == "s":
                self.kept[row[1]] = row[2]
                yield from self._take(row[2])
            elif kind == "u":
                for handle in row[1:]:
                    yield from self._leave(self.kept.pop(handle))
            else:
                self._note(kind, row)
        raise ValueError("it is cut off")

    def _note(self, kind: str, row: List[Any]) -> None:
        if kind == "<":
            self.open.append(row[1])
        elif kind == ">":
            self.open.pop()
        elif kind == "i":
            self.iteration = row[1]
        elif kind == "p":
            self.phase = row[1]

    def _operation(self, row: List[Any]) -> Iterator[Ask]:
        _, kernel, self.phase, node, call = row[:5]
        self.what, flags = self.lives.kernels[kernel]
        if self.phase == 0 and node >= 0:
            self.made_by[node] = call
        self.call = call if self.phase != 1 or call else self.made_by.get(node, 0)
        if self.workspaces and flags & _PRODUCT:
            self.workspaces = False
            yield self._ask(self.lives.workspace, WORKSPACE)
        if len(row) > 13 and row[13] == 2:
            self.same[row[6][0]] = self._root(row[14])
        for storage in row[6]:
            yield from self._take(storage)

    def _root(self, storage: int) -> int:
        while storage in self.same:
            storage = self.same[storage]
        return storage

    def _ask(self, size: int, what: str) -> Ask:
        self.blocks += 1
        return Ask(True, self.blocks - 1, size, what, self.call, self.phase, self.iteration)

    def _take(self, storage: int) -> Iterator[Ask]:
        storage = self._root(storage)
        self.had[storage] = self.had.get(storage, 0) + 1
        if self.had[storage] > 1 or not self.lives.sizes[storage]:
            return
        name = self.lives.names.get(storage)
        role = self.lives.roles[storage]
        what = f"parameter {name}" if name is not None else self.what or (role if role != "given" else BATCH)
        self.block[storage] = self._ask(self.lives.sizes[storage], what)
        yield self.block[storage]

    def _leave(self, storage: int) -> Iterator[Ask]:
        storage = self._root(storage)
        self.had[storage] -= 1
        if self.had[storage] < 0:
            raise ValueError(f"storage {storage} is let go twice")
        if not self.had[storage] and self.lives.sizes[storage]:
            yield self.block.pop(storage)._replace(born=False, phase=self.phase, iteration=self.iteration)


PathLike = Union[str, "os.PathLike[str]"]
