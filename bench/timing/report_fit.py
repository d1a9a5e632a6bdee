"""`bench/times.py --fit`: factors by table, errors on families held out, and on other cards."""
from __future__ import annotations

from typing import Dict, List, Sequence, Tuple

from . import fitting, tables
from .predicted import Predicted
from .rows import Row


def ranks(rows: Sequence[Row], errors: Sequence[float]) -> str:
    """How well speeds are ordered: of all rows, and of each third of the families among themselves."""
    pairs = [(fitting.third(row.model), row.speed, row.speed / (1 + error)) for row, error in zip(rows, errors)]
    thirds = [[pair[1:] for pair in pairs if pair[0] == third] for third in range(fitting.THIRDS)]
    return ", ".join(f"{tables.rank_correlation(*zip(*group)):.3f}" for group in ([pair[1:] for pair in pairs], *thirds) if group)


def print_fit(name: str, t: fitting.Table, made: fitting.Fit) -> None:
    shares = (t.shares * made.constants).mean(axis=0)
    print(f"\n## {name}, {len(t.rows)} rows\n\n| group | all rows | without a third of the families | part of the time |\n|---|---:|---:|---:|")
    for place in (-shares).argsort():
        turns = ", ".join(f"{turn[place]:.2f}" for turn in made.by_turn)
        print(f"| {t.names[place]} | {made.constants[place]:.2f} | {turns} | {100 * shares[place]:.1f} % |")
    for said, errors in (("as they are", t.shares.sum(axis=1) - 1), ("own rows", made.errors), ("families held out", made.held_out)):
        print(f"\n{said}: {tables.spread(errors)}; rank correlation of all, and of each third of the families: {ranks(t.rows, errors)}")
    print()
    worst = sorted(zip(made.held_out, t.rows), key=lambda pair: -abs(pair[0]))[:15]
    print("worst held out: " + ", ".join(f"{row.model} {100 * error:+.0f} %" for error, row in worst))


def made_of(rows: List[Predicted]) -> Tuple[fitting.Table, fitting.Fit]:
    t = fitting.table([r.row for r in rows], [fitting.features(r) for r in rows])
    return t, fitting.fit(t)


def report(done: List[Predicted]) -> None:
    made: Dict[str, Tuple[fitting.Table, fitting.Fit]] = {}
    for name, rows in tables.grouped(done, lambda r: r.row.table).items():
        made[name] = made_of(rows)
        print_fit(name, *made[name])
    print("\n## Carried over\n")
    for name, (_, fit) in made.items():
        for other, (t, _) in made.items():
            if other != name:
                print(f"{name} judges {other}: {tables.spread(fitting.judged(made[name][0], t, fit.constants))}")
