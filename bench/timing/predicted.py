"""What snsim says of a row: the iteration's time, and each operation's."""
from __future__ import annotations

import json
import pathlib
import subprocess
from collections import defaultdict
from typing import Any, Dict, List, NamedTuple, Tuple

from . import kinds, operations
from .rows import Row


OTHER = 0.01  # of the parameters


class Sum(NamedTuple):
    """Of an iteration's operations of one kind, as the program has their times."""

    operations: int
    ms: float


class Predicted(NamedTuple):
    row: Row
    ms: float
    sums: Dict[str, Sum]  # by kind

    @property
    def error(self) -> float:
        """Of the time: above 0 it is said to be slower than it is."""
        return self.ms / self.row.ms - 1


class Refused(Exception):
    """What the program said."""


def asked(binary: str, path: pathlib.Path, row: Row) -> Dict[str, Any]:
    done = subprocess.run([binary, "--net", str(path), "--batch", str(row.batch), "--gpu", row.gpu, "--strategy", "pytorch", "--costs", "model",
                           "--memory", "1TiB", "--no-db", "--json", "--steps"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise Refused((done.stderr.strip() or f"status {done.returncode}").splitlines()[-1])
    return json.loads(done.stdout)


def of_row(binary: str, path: pathlib.Path, row: Row) -> Predicted:
    answer = asked(binary, path, row)
    told_apart(row, answer["parameters"] / 1e6)
    said = answer["results"][0]
    made = operations.of_file(path, row.batch)
    steps = said["steps_table"]
    if len(steps) != len(made):
        raise Refused(f"{len(steps)} steps of {len(made)} operations")
    times = [(step["end_ns"] - step["begin_ns"]) / 1e6 for step in steps]
    return Predicted(row, said["iteration_ns"] / 1e6, summed(made, times))


def told_apart(row: Row, parameters: float) -> None:
    """A name may be another network's today."""
    if abs(parameters - row.parameters) > 0.006 + OTHER * row.parameters:
        raise Refused(f"another network today: {parameters:.2f} million parameters, the table has {row.parameters:.2f}")


def summed(made: List[operations.Operation], times: List[float]) -> Dict[str, Sum]:
    sums: Dict[str, Tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for operation, ms in zip(made, times):
        count, so_far = sums[kinds.kind_of(operation)]
        sums[kinds.kind_of(operation)] = count + 1, so_far + ms
    return {kind: Sum(*s) for kind, s in sums.items()}
