"""estimate(): what the program answers to `snsim --net NET --batch N`, as Python has it."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

from ._program import DONE, NO_FIT, Error, run, words


class Fields:
    """An object of the program's JSON: its members are attributes, under the names of docs/json.md."""

    def __init__(self, data: Dict[str, Any]) -> None:
        self.data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "data":
            raise AttributeError(name)
        try:
            return self.data[name]
        except KeyError:
            known = ", ".join(sorted(self.data))
            raise AttributeError(f"there is no '{name}' here: {known}") from None

    def __dir__(self) -> List[str]:
        return sorted([*super().__dir__(), *self.data])


class Row(Fields):
    """A strategy: whether it fits, what it takes, how long it needs. Beside these all of docs/json.md's fields of a result."""

    strategy: str
    fits: bool
    peak_device_bytes: int
    iteration_ns: int
    images_per_second: float
    host_bytes: int

    @property
    def needed_bytes(self) -> Optional[int]:
        """The least memory of a GPU with which it runs; None: no memory is enough, or nobody knows."""
        return self.data["least_device_bytes"]

    @property
    def live_bytes(self) -> int:
        """What tensors take at the peak, exact: torch.cuda.max_memory_allocated() but for the blocks' rounding."""
        return self.data.get("live_peak_bytes", self.data["peak_tensor_bytes"])

    @property
    def allocated_bytes(self) -> Optional[int]:
        """torch.cuda.max_memory_allocated(), of rows that are PyTorch's."""
        return self.data.get("allocated_bytes")

    @property
    def reserved_bytes(self) -> Optional[int]:
        """torch.cuda.max_memory_reserved(), of rows that are PyTorch's."""
        return self.data.get("reserved_bytes")

    @property
    def iteration_ms(self) -> float:
        return self.data["iteration_ns"] / 1e6

    def __repr__(self) -> str:
        fits = "fits" if self.fits else "does not fit"
        return f"<{self.strategy}: {fits}, {self.peak_device_bytes / 2**30:.2f} GiB, {self.iteration_ms:.2f} ms>"


class Change(Fields):
    """What makes it fit, or what else there is to gain. `calls` are the lines of Python that do it."""

    what: str
    options: str
    strategy: str
    batch: int
    accumulate: int
    device_bytes: int
    images_per_s: float
    calls: List[str]

    def __repr__(self) -> str:
        return f"<{self.what}: {self.device_bytes / 2**30:.2f} GiB>"


class Estimate:
    """The answer to one question. str() is the program's own screen; `data` is its JSON (docs/json.md)."""

    def __init__(self, arguments: Sequence[str], net: Any, storing: Sequence[str] = ("--no-db",)) -> None:
        self.arguments = list(arguments)  # what else the program can be asked with: ["--net", "mine.rec", ...]
        self.recording = net  # as long as this is looked at, a recording without a name of its own stays
        self._table: Optional[str] = None
        self._steps: Optional[Dict[str, List[Dict[str, Any]]]] = None
        answer = run([*self.arguments, *storing, "--json"], (DONE, NO_FIT))
        try:
            self.data: Dict[str, Any] = json.loads(answer.out)
        except ValueError as error:
            raise Error(answer.said.strip() or f"the program's answer is no JSON: {error}", answer.status) from error
        self._fits = answer.status == DONE
        self._answer: Dict[str, Any] = self.data.get("answer") or {}
        self.rows = [Row(row) for row in self.data["results"]]
        self.changes = [Change(change) for change in self._answer.get("changes", [])]

    # the verdict -------------------------------------------------------------------------------------------------------

    @property
    def fits(self) -> bool:
        """As it stands, without any of `changes`; of strategies that were named: one of them does."""
        return self._fits

    @property
    def verdict(self) -> str:
        """"yes", "tight" (less than 3 % of the memory is left) or "no"."""
        return self._answer.get("verdict") or ("yes" if self._fits else "no")

    @property
    def needed_bytes(self) -> Optional[int]:
        """The least memory of a GPU that it runs with, context included; None: no memory is enough."""
        if self._answer:
            return self._answer["needed_bytes"] or None
        return min((row.needed_bytes for row in self.rows if row.needed_bytes is not None), default=None)

    @property
    def usable_bytes(self) -> int:
        """What the GPU has for a program."""
        return self._answer.get("usable_bytes", self.data["memory_bytes"])

    @property
    def largest_batch(self) -> Optional[int]:
        """The largest that fits as it stands; 0: not even one; None: not looked for, or recorded at one batch alone."""
        return self._answer.get("largest_batch")

    @property
    def where(self) -> List[Dict[str, Any]]:
        """What memory holds at the fullest moment: group, bytes, advice."""
        return self._answer.get("where", [])

    @property
    def batch(self) -> int:
        return self.data["batch"]

    @property
    def gpu(self) -> str:
        return self.data["gpu"]

    def row(self, strategy: str = "pytorch") -> Row:
        """A strategy's row."""
        for row in self.rows:
            if row.strategy == strategy:
                return row
        raise KeyError(f"{strategy} was not asked for: {', '.join(row.strategy for row in self.rows)}")

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    # what can be looked at ---------------------------------------------------------------------------------------------

    def table(self) -> str:
        """The program's screen."""
        if self._table is None:
            self._table = run([*self.arguments, "--no-db", "--color", "never"], (DONE, NO_FIT)).out
        return self._table

    def steps(self, strategy: Optional[str] = None) -> List[Dict[str, Any]]:
        """The steps of an iteration, of the first strategy or the named one: layer, pass, tensor_bytes, device_bytes, begin_ns."""
        if self._steps is None:
            data = json.loads(run([*self.arguments, "--no-db", "--json", "--steps"], (DONE, NO_FIT)).out)
            self._steps = {row["strategy"]: row.get("steps_table", []) for row in data["results"]}
        return self._steps[self.row(strategy).strategy if strategy else self.rows[0].strategy]

    def plot(self, path: Union[str, "os.PathLike[str]", None] = None, strategies: Optional[Sequence[str]] = None) -> Any:
        """All that is on the GPU over an iteration, of the first four strategies or the named ones, as SVG; also into path."""
        from ._picture import picture_of
        if path is not None and not str(path).endswith(".svg"):
            raise Error(f"{path}: pictures are SVG; give a name that ends in .svg, or keep the run, estimate(.., name=\"mine\"), for snsim plot mine -o FILE.png")
        drawn = picture_of(self, [self.row(name) for name in strategies] if strategies else self.rows[:4])
        if path is not None:
            drawn.save(path)
        return drawn

    def snapshot(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes what pytorch.org/memory_viz opens: the recording's blocks and segments, as PyTorch's allocator would place them."""
        from ._snapshot import snapshot
        net = str(self.data["net"]).partition(":units=")[0]  # of "mymodel.py:Net" the recording that was made
        if not is_recording(net):
            raise Error("a snapshot is made of a recording: snsim.estimate(rec, ...).snapshot(path)")
        snapshot(net, path, batch=self.batch)

    def _repr_html_(self) -> str:
        from ._picture import page_of
        return page_of(self)

    def _repr_svg_(self) -> str:
        return self.plot().svg

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        needed = "no memory is enough" if self.needed_bytes is None else f"needs {self.needed_bytes / 2**30:.2f} GiB"
        name = self.data.get("net_name", self.data["net"])
        return f"<snsim.Estimate {name}, batch {self.batch} on {self.gpu}: {self.verdict}, {needed}>"


def is_recording(path: str) -> bool:
    return path.endswith((".rec", ".rec.gz"))


def _only_batch(path: str) -> Optional[int]:
    """The batch of a recording that is of one alone."""
    from ._file import open_text
    try:
        with open_text(path) as lines:
            batches = json.loads(lines.readline())["batches"]
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        return None  # the program says what is wrong with it
    return batches[0] if len(batches) == 1 else None


def question(net: Any, batch: Optional[int], options: Dict[str, Any]) -> List[str]:
    """The words of the command line that ask about a network."""
    path = os.fspath(getattr(net, "path", net)) if isinstance(getattr(net, "path", net), (str, os.PathLike)) else None
    if path is None:
        raise Error(f"a {type(net).__name__} is no network: give a recording (snsim.record(model, ..)), its path, or a name of "
                    "`snsim list nets`")
    if os.path.isfile(path) and os.sep not in path:
        path = os.path.join(os.curdir, path)  # a file, not a name
    if batch is None and is_recording(path):
        batch = _only_batch(path)
    return ["--net", path, *words({"batch": batch, **options})]


def estimate(net: Any, batch: Optional[int] = None, gpu: Optional[str] = None, strategy: Any = None, memory: Any = None,
             host_memory: Any = None, **options: Any) -> Estimate:
    """Does it train on this GPU, what does it take, what makes it fit?

    net          a recording, the path of one or of an ONNX or network file, a name: "tv_resnet50", "llama:7b"; or
                 "mymodel.py:Net" with input="3,224,224", which is recorded first, and kept.
    batch        of one iteration. A recording of one batch alone needs none.
    gpu          what people call it: "rtx4090", "a100"; None: this machine's, else an RTX 4090.
    strategy     a name or several: "pytorch+recompute=units". None: all of PyTorch's.
    memory       of the GPU, instead of its own: "8GiB", or a number of bytes; host_memory likewise.
    options      what else `snsim help simulate` lists, with _ for -: precision="bf16", optimizer="adamw", margin="5%",
                 for_="superneurons" for another runtime's strategies, name="mine" or db="runs.db" to store the run.

    Error says what the program says.
    """
    storing = words({"db": options.pop("db", None), "name": options.pop("name", None)})
    if strategy is None and "for_" not in options:
        options["for_"] = "pytorch"
    options = {"gpu": gpu, "strategy": strategy, "memory": memory, "host_memory": host_memory, **options}
    return Estimate(question(net, batch, options), net, storing or ("--no-db",))
