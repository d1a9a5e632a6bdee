"""Which constants would make the sums of kernels (kinds.py) the measured times: non-negative least squares on relative
error, fitted on two thirds of the families and judged on the third, in turn.

    time = sum over kernels of constant x bytes / bandwidth, or of constant x flops / peak where these take longer; + launches

Constants are tied by physics: all that is bound by bytes has one, the share of the bandwidth, times the passes that each kernel
makes. What has one of its own is in OWN."""
from __future__ import annotations

import zlib
from collections import defaultdict
from typing import Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from .kinds import Kernel
from .rows import Row, family

THIRDS = 3
LIKELY = (0.7, 0.9)  # shares of peak and bandwidth by which a kernel is taken to be bound by flops or by bytes
LAUNCH_SECONDS = 1e-6
OWN = {"layout": "layout", "copy": "copy", "pool": "pool"}
FLOPS = {"dense": "convolution", "stem": "convolution", "grouped": "convolution", "product": "product", "bmm": "product", "attention": "product"}


class Card(NamedTuple):
    """Of a profile: flops of two bytes and of four a second, and bytes."""

    half: float
    single: float
    bandwidth: float


def card_of(profile: Dict[str, float]) -> Card:
    single = profile["fp32_tflops"] * 1e12
    return Card(profile.get("fp16_tflops", 0) * 1e12 or single, single, profile["memory_gb_per_s"] * 1e9)


def seconds(kernel: Kernel, card: Card) -> List[Tuple[str, float]]:
    """The constant that a kernel's time goes by, and the time if that were 1; of depthwise convolutions both limits."""
    base = kernel.kind.split("_")[0]
    by_bytes = kernel.bytes / card.bandwidth
    if base == "dw":
        own = "depthwise filter" if kernel.kind == "dw_dw" else "depthwise"
        return [("bandwidth", by_bytes), (own, kernel.flops / card.single)]
    by_flops = kernel.flops / (card.half if kernel.width == 2 else card.single)
    if base in FLOPS and by_flops / LIKELY[0] > by_bytes / LIKELY[1]:
        return [(FLOPS[base], by_flops)]
    return [(OWN.get(kernel.kind, "bandwidth"), by_bytes)]


def features(kernels: Sequence[Kernel], card: Card) -> Dict[str, float]:
    """Seconds by constant."""
    sums: Dict[str, float] = defaultdict(float)
    for kernel in kernels:
        for constant, time in seconds(kernel, card):
            sums[constant] += time
    sums["launch us"] = len(kernels) * LAUNCH_SECONDS
    return dict(sums)


class Table(NamedTuple):
    """Rows, and per row the seconds by constant as shares of what was measured."""

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
    return non_negative(t.shares[chosen], np.ones(int(chosen.sum())))


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
