"""Tables of what was said beside what was measured, as they are printed."""
from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import Callable, Dict, Iterable, List, Sequence

from .predicted import Predicted
from .rows import family


def spread(errors: Iterable[float]) -> str:
    """The median, what nine of ten are within (nearest rank), and the mean with its sign, in percent."""
    errors = list(errors)
    sizes = sorted(abs(error) for error in errors)
    nine = sizes[math.ceil(0.9 * len(sizes)) - 1]
    return f"median {100 * statistics.median(sizes):.1f} %, nine of ten within {100 * nine:.1f} %, mean {100 * statistics.mean(errors):+.1f} %"


def ranks(values: Sequence[float]) -> List[float]:
    """Equal ones have the mean of their places."""
    places = defaultdict(list)
    for place, value in enumerate(sorted(values)):
        places[value].append(place)
    return [statistics.mean(places[value]) for value in values]


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's."""
    x, y = ranks(a), ranks(b)
    mx, my = statistics.mean(x), statistics.mean(y)
    over = sum((p - mx) * (q - my) for p, q in zip(x, y))
    under = math.sqrt(sum((p - mx) ** 2 for p in x) * sum((q - my) ** 2 for q in y))
    return over / under if under else 1.0


def summary(rows: List[Predicted]) -> str:
    rank = rank_correlation([r.row.batch / r.ms for r in rows], [r.row.speed / 1e3 for r in rows])
    return f"{len(rows)} rows: {spread(r.error for r in rows)}, rank correlation {rank:.3f}"


def grouped(rows: List[Predicted], key: Callable[[Predicted], str]) -> Dict[str, List[Predicted]]:
    groups: Dict[str, List[Predicted]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def print_rows(rows: List[Predicted]) -> None:
    print("| network | image | batch | measured ms | predicted ms | predicted / measured |\n|---|---:|---:|---:|---:|---:|")
    for r in rows:
        print(f"| {r.row.model} | {r.row.size} | {r.row.batch} | {r.row.ms:.1f} | {r.ms:.1f} | {r.ms / r.row.ms:.2f} |")


def print_families(rows: List[Predicted]) -> None:
    """Largest error of the median first."""
    groups = grouped(rows, lambda r: family(r.row.model))
    print("| family | rows | predicted / measured, median | least | most |\n|---|---:|---:|---:|---:|")
    for name, group in sorted(groups.items(), key=lambda g: -abs(statistics.median(r.error for r in g[1]))):
        ratios = [1 + r.error for r in group]
        print(f"| {name} | {len(group)} | {statistics.median(ratios):.2f} | {min(ratios):.2f} | {max(ratios):.2f} |")


def print_kinds(rows: List[Predicted]) -> None:
    """How much of a measured iteration each kind is said to take, on the average, and of rows where it is much, their error."""
    kinds = sorted({kind for r in rows for kind in r.sums})
    shares = {kind: [r.sums[kind].ms / r.row.ms if kind in r.sums else 0.0 for r in rows] for kind in kinds}
    print("| kind | said time / measured time, mean | rows with 20 % or more | their mean error |\n|---|---:|---:|---:|")
    for kind in sorted(kinds, key=lambda k: -sum(shares[k])):
        much = [r.error for r, share in zip(rows, shares[kind]) if share >= 0.2]
        print(f"| {kind} | {100 * statistics.mean(shares[kind]):.1f} % | {len(much)} | " + (f"{100 * statistics.mean(much):+.0f} % |" if much else "- |"))
