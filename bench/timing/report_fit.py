"""`bench/times.py --fit`: constants by table, errors on families held out, and on other cards."""
from __future__ import annotations

import json
import pathlib
from typing import Dict, List

from . import fitting, kinds, operations, tables
from .recordings import Recordings
from .rows import Row

PROFILES = pathlib.Path(__file__).resolve().parent.parent.parent / "sim" / "device" / "profiles"


def card(gpu: str) -> fitting.Card:
    return fitting.card_of(json.loads((PROFILES / f"{gpu}.json").read_text()))


def table_of(recordings: Recordings, rows: List[Row]) -> fitting.Table:
    found = [[kernel for operation in operations.of_file(recordings.path(row), row.batch) for kernel in kinds.kernels(operation)] for row in rows]
    return fitting.table(rows, [fitting.features(kernels, card(row.gpu)) for row, kernels in zip(rows, found)])


def print_fit(name: str, t: fitting.Table, made: fitting.Fit) -> None:
    shares = (t.shares * made.constants).mean(axis=0)
    print(f"\n## {name}, {len(t.rows)} rows\n\n| constant | all rows | without a third of the families | part of the time |\n|---|---:|---:|---:|")
    for place in (-shares).argsort():
        turns = ", ".join(f"{turn[place]:.2f}" for turn in made.by_turn)
        print(f"| {t.names[place]} | {made.constants[place]:.2f} | {turns} | {100 * shares[place]:.1f} % |")
    print(f"\nown rows: {tables.spread(made.errors)}\nfamilies held out: {tables.spread(made.held_out)}\n")
    worst = sorted(zip(made.held_out, t.rows), key=lambda pair: -abs(pair[0]))[:15]
    print("worst held out: " + ", ".join(f"{row.model} {100 * error:+.0f} %" for error, row in worst))


def report(recordings: Recordings, wanted: List[Row]) -> None:
    by_table: Dict[str, List[Row]] = {}
    for row in wanted:
        if recordings.has(row):
            by_table.setdefault(row.table, []).append(row)
    made = {}
    for name, rows in by_table.items():
        t = table_of(recordings, rows)
        made[name] = t, fitting.fit(t)
        print_fit(name, *made[name])
    print("\n## Carried over\n")
    for name, (t, fit) in made.items():
        for other, (u, _) in made.items():
            if other != name:
                print(f"{name} judges {other}: {tables.spread(fitting.judged(t, u, fit.constants))}")
