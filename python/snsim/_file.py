"""The file: JSON lines, packed where its name ends in .gz. docs/record.md has the grammar."""
from __future__ import annotations

import gzip
import io
import json
import os
from typing import IO, Any, Dict, Iterator, List, Optional

from ._errors import RecordingError
from ._events import Event, Operation, Tape, canonical

VERSION = 1


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def _operation(event: Operation) -> List[Any]:
    row = ["o", event.kernel, event.phase, event.node, event.call, event.reads, event.makes, event.changes, event.flops,
           event.read_bytes, event.written_bytes, event.dtype]
    if event.sum:
        return [*row, event.shapes, event.sum, event.summand]
    return row if event.shapes is None else [*row, event.shapes]


def lines_of(events: List[Event]) -> Iterator[str]:
    """An event a line, but of ends of one kind behind each other a run."""
    events, at = canonical(events), 0
    while at < len(events):
        event = events[at]
        at += 1
        if isinstance(event, Operation):
            yield _line(_operation(event))
        elif event[0] in ("f", "u"):
            row = list(event)
            while at < len(events) and not isinstance(events[at], Operation) and events[at][0] == event[0]:
                row.append(events[at][1])
                at += 1
            yield _line(row)
        else:
            yield _line(event)


def _write(out: IO[str], header: Dict[str, Any], tape: Tape) -> None:
    out.write(_line(header))
    for name, rows in (("kernels", tape.kernels), ("modules", tape.modules), ("calls", tape.calls),
                       ("storages", [storage.row() for storage in tape.storages]), ("parameters", tape.parameters)):
        out.write(_line({name: rows}))
    for line in lines_of(tape.events):
        out.write(line)
    out.write(_line(["e"]))


def write(path: str, header: Dict[str, Any], tape: Tape) -> None:
    """Writes it beside path first: an error leaves no half a file."""
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as raw:
            # without a name and a time the same recording is the same file
            packed = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=9) if path.endswith(".gz") else raw
            with io.TextIOWrapper(packed, encoding="utf-8", newline="\n", write_through=False) as out:
                _write(out, header, tape)
                out.flush()
        os.replace(beside, path)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def open_text(path: str) -> IO[str]:
    return gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")


class Recording:
    """A file that was recorded."""

    def __init__(self, path: str, keep: Optional[Any] = None) -> None:
        self.path = os.fspath(path)
        self._keep = keep  # the folder of a recording that has no other place
        try:
            with open_text(self.path) as lines:
                self.header = json.loads(lines.readline())
                self._count(lines)
        except (OSError, EOFError, ValueError) as error:
            raise RecordingError(f"{path}: is no recording: {error}") from error

    def _count(self, lines: IO[str]) -> None:
        if not isinstance(self.header, dict) or self.header.get("snsim_recording") != VERSION:
            raise ValueError(f"its first line is not that of version {VERSION}")
        tables = {}
        for _ in range(5):
            tables.update(json.loads(lines.readline()))
        self.parameters = sum(row[3] for row in tables["parameters"])
        self.storages = len(tables["storages"])
        self.operations, last = 0, ""
        for line in lines:
            self.operations += line.startswith('["o"')
            last = line
        if last != '["e"]\n':
            raise ValueError("it is cut off")

    @property
    def name(self) -> str:
        return self.header["name"]

    @property
    def batches(self) -> List[int]:
        return self.header["batches"]

    @property
    def assumed(self) -> List[List[str]]:
        """What had to be assumed: rows of what and at which line."""
        return self.header["assumed"]

    def summary(self) -> str:
        """A few lines for people."""
        at = "any batch" if len(self.batches) > 1 else f"batch {self.batches[0]} alone"
        lines = [f"{self.name}: {self.operations} operations in {self.header['iterations']} iterations, "
                 f"{self.parameters:,} parameters, PyTorch {self.header['torch']}; for {at}", f"in {self.path}"]
        lines += [f"assumed at {line}: {what}" for what, line in self.assumed]
        if self.header["compiled"]:
            lines.append("recorded as eager: torch.compile is not simulated")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<snsim.Recording {self.name}, {self.operations} operations, {self.path}>"
