"""Whether the program's constants are those of the networks that they were looked at with: a factor for the times of each group
of kinds, 1 where the program is right, fitted to what was measured by non-negative least squares on relative error, on two
thirds of the families, and judged on the third, in turn; and fitted on one table and judged on another."""
from __future__ import annotations

import zlib
from typing import Dict, List, NamedTuple

import numpy as np

from .predicted import Predicted
from .rows import Row, family

THIRDS = 3
PULL = 1.0
GROUPS = {"dw": "direct kernels", "dense": "convolutions", "grouped": "convolutions", "stem": "convolutions", "product": "products",
          "bmm": "products", "attention": "products", "bn": "norms", "ln": "norms", "gn": "norms", "softmax": "norms"}
OTHER = "other memory"


def features(said: Predicted) -> Dict[str, float]:
    """Seconds by group, and what the iteration takes beyond its operations, where the device waits for the host."""
    sums: Dict[str, float] = {"host": (said.ms - sum(s.ms for s in said.sums.values())) / 1e3}
    for kind, s in said.sums.items():
        group = GROUPS.get(kind.split("_")[0], OTHER)
        sums[group] = sums.get(group, 0) + s.ms / 1e3
    return sums


class Table(NamedTuple):
    """Rows, and per row the seconds by group as shares of what was measured."""

    rows: List[Row]
    names: List[str]
    shares: np.ndarray


def table(rows: List[Row], found: List[Dict[str, float]]) -> Table:
    names = sorted({name for sums in found for name in sums})
    shares = np.array([[sums.get(name, 0) / (row.ms / 1e3) for name in names] for row, sums in zip(rows, found)])
    return Table(rows, names, shares)


def non_negative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x >= 0 of the least |a x - b|, by Lawson and Hanson."""
    x, free = np.zeros(a.shape[1]), np.zeros(a.shape[1], bool)
    for _ in range(3 * a.shape[1]):
        slope = np.where(free, -np.inf, a.T @ (b - a @ x))
        if slope.max() < 1e-9:
            break
        free[slope.argmax()] = True
        x = _feasible(a, b, x, free)
    return x


def _feasible(a: np.ndarray, b: np.ndarray, x: np.ndarray, free: np.ndarray) -> np.ndarray:
    while True:
        best = np.zeros(len(x))
        best[free] = np.linalg.lstsq(a[:, free], b, rcond=None)[0]
        low = free & (best <= 0)
        if not low.any():
            return best
        x = x + (x[low] / (x[low] - best[low] + 1e-300)).min() * (best - x)
        free &= x > 1e-12


def fitted(t: Table, chosen: np.ndarray) -> np.ndarray:
    """A factor off by its whole counts as PULL rows that are: groups that always come together are not told apart."""
    pull = np.sqrt(PULL) * np.eye(len(t.names))
    return non_negative(np.vstack([t.shares[chosen], pull]), np.concatenate([np.ones(int(chosen.sum())), pull.sum(axis=1)]))


def third(model: str) -> int:
    return zlib.crc32(family(model).encode()) % THIRDS


class Fit(NamedTuple):
    constants: np.ndarray          # of all rows
    by_turn: List[np.ndarray]      # of two thirds
    errors: np.ndarray             # of all rows by their own fit
    held_out: np.ndarray           # of each row by the fit without its third


def fit(t: Table) -> Fit:
    thirds = np.array([third(row.model) for row in t.rows])
    turns = [fitted(t, thirds != turn) for turn in range(THIRDS)]
    constants = fitted(t, np.ones(len(t.rows), bool))
    held_out = np.array([share @ turns[turn] - 1 for share, turn in zip(t.shares, thirds)])
    return Fit(constants, turns, t.shares @ constants - 1, held_out)


def judged(t: Table, other: Table, constants: np.ndarray) -> np.ndarray:
    """Errors of another table by these constants; what they have none for counts 1."""
    known = dict(zip(t.names, constants))
    return other.shares @ np.array([known.get(name, 1.0) for name in other.names]) - 1
