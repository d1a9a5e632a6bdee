"""The rows of timm's published tables, and which networks they are of."""
from __future__ import annotations

import csv
import fnmatch
import pathlib
import re
from typing import Dict, Iterable, List, NamedTuple, Optional


class Row(NamedTuple):
    """A network of a table: how many images a second it trained with, or inferred."""

    table: str   # the file's name, train-rtx3090-amp-nchw
    model: str
    train: bool
    gpu: str
    batch: int
    size: int    # of an image's side
    speed: float  # images a second
    parameters: float  # millions, to two digits
    form: str = "amp"  # as timm trained and inferred; bf16, fp32: as PyTorch starts today (training.py)

    @property
    def key(self) -> str:
        """Of a recording: rows of two cards share it."""
        return f"{'train' if self.train else 'infer'}-{self.model}-{self.size}{'' if self.form == 'amp' else '-' + self.form}"

    @property
    def ms(self) -> float:
        return 1e3 * self.batch / self.speed


def family(model: str) -> str:
    """The name up to its first digit or underline."""
    return re.split(r"[0-9_]", model)[0] or model


def table(path: pathlib.Path) -> List[Row]:
    """The file's name says the rest: train-rtx3090-amp-nchw.csv."""
    kind, gpu, form = path.stem.split("-")[:3]
    with open(path, newline="") as file:
        return [Row(path.stem, r["model"], kind == "train", gpu, int(float(r[f"{kind}_batch_size"])),
                    int(float(r[f"{kind}_img_size"])), float(r[f"{kind}_samples_per_sec"]), float(r["param_count"]), form)
                for r in csv.DictReader(file)]


def tables(paths: Iterable[pathlib.Path]) -> List[Row]:
    """Of files, and of all files in a folder; training ahead of inference."""
    files = [f for p in paths for f in (sorted(p.glob("*.csv")) if p.is_dir() else [p])]
    return sorted((row for file in files for row in table(file)), key=lambda row: not row.train)


def chosen(rows: List[Row], names: Optional[str], count: Optional[int]) -> List[Row]:
    """Those whose names match, and the first of them, where one of each family comes ahead of the second of any."""
    rows = [row for row in rows if not names or any(fnmatch.fnmatch(row.model, glob) for glob in names.split(","))]
    return by_turns(rows)[:count]


def by_turns(rows: List[Row]) -> List[Row]:
    """Of each table the first of every family, then the second: training ahead of inference."""
    seen: Dict[tuple, int] = {}
    turns = []
    for row in rows:
        place = seen[row.table, family(row.model)] = seen.get((row.table, family(row.model)), -1) + 1
        turns.append((place, not row.train, row))
    return [row for _, _, row in sorted(turns, key=lambda turn: turn[:2])]
