"""Variants of the cost model: a constant of the sources with another value, built, and asked for the times of recordings
(bench/timing/bench_times.c)."""
from __future__ import annotations

import json
import pathlib
import shlex
import subprocess
from typing import Dict, List, NamedTuple, Optional

from .predicted import Refused, told_apart
from .recordings import Recordings
from .rows import Row


class Variant(NamedTuple):
    """A text of a source replaced; of one that stands there several times all of them."""

    constant: str
    instead: str
    file: str
    old: str
    new: str


class Builder:
    """Links bench_times with changed files ahead of the libraries."""

    def __init__(self, root: pathlib.Path, build: pathlib.Path, made: pathlib.Path) -> None:
        self.root, self.build, self.made = root, build, made
        self.compilers: Dict[str, str] = {c["file"]: c["command"] for c in json.loads((build / "compile_commands.json").read_text())}

    def program(self, number: int, variant: Variant) -> pathlib.Path:
        changed = self.made / f"{number}.o"
        self._compile(variant, changed)
        return self._link(changed)

    def _compile(self, variant: Variant, changed: pathlib.Path) -> None:
        path = self.root / variant.file
        text, source = path.read_text(), changed.with_suffix(".c")
        if variant.old not in text:
            raise SystemExit(f"{variant.file} has no \"{variant.old}\" today: {variant.constant}")
        source.write_text(text.replace(variant.old, variant.new))
        words = shlex.split(self.compilers[str(path)])
        words[words.index("-o") + 1] = str(changed)
        words[words.index("-c") + 1] = str(source)
        subprocess.run([word for word in words if word != "-Werror"], cwd=self.build, check=True)

    def _link(self, changed: pathlib.Path) -> pathlib.Path:
        program = changed.with_suffix("")
        lines = subprocess.run(["ninja", "-t", "commands", "bench_times"], cwd=self.build, check=True, capture_output=True, text=True).stdout.splitlines()
        words = shlex.split(lines[-1].removeprefix(": && ").removesuffix(" && :"))
        words[words.index("-o") + 1] = str(program)
        first = next(place for place, word in enumerate(words) if word.endswith(".a"))
        subprocess.run([*words[:first], str(changed), *words[first:]], cwd=self.build, check=True)
        return program


def times(program: pathlib.Path, recordings: Recordings, rows: List[Row]) -> List[Optional[float]]:
    """Milliseconds of each row, None where it is refused, as bench/times.py refuses it."""
    asked = "".join(f"{row.batch} {row.gpu} {recordings.path(row)}\n" for row in rows)
    answers = subprocess.run([str(program)], input=asked, capture_output=True, text=True, check=True).stdout.splitlines()
    return [said(row, answer) for row, answer in zip(rows, answers, strict=True)]


def said(row: Row, answer: str) -> Optional[float]:
    found, parameters = answer.split(" ", 1)
    if found == "refused":
        return None
    try:
        told_apart(row, int(parameters) / 1e6)
    except Refused:
        return None
    return int(found) / 1e6


def in_order(rows: List[Row]) -> List[Row]:
    """Those of a recording and a batch one behind the other."""
    return sorted(rows, key=lambda row: (row.key, row.batch, row.gpu))
