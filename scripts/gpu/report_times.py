"""What scripts/validate-gpu found of times of networks and of kinds of kernels: its aim's line, and its tables."""
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "bench"))

from page import error, percent, table  # noqa: E402
from timing.tables import spread  # noqa: E402

LIMIT = 0.12     # on a card of which no row was fitted
COUNTS = 0.01    # of all that was measured, below which a kind's error is not said
NO_KERNEL = "no kernel"


def compared(rows):
    return [row for row in rows.of("times") if "predicted" in row]


def sums(row):
    """By kind: measured and predicted ms. Behind them what no kernel ran in."""
    theirs = {kind: of["ms"] for kind, of in row["kinds"].items()}
    ours = {kind: of["ms"] for kind, of in row["predicted"]["kinds"].items()}
    found = {kind: (theirs.get(kind, 0.0), ours.get(kind, 0.0)) for kind in sorted(theirs | ours)}
    waits = max(0.0, row["predicted"]["iteration_ms"] - sum(ours.values()))
    return found | {NO_KERNEL: (row["idle_ms"], waits)}


def by_kind(group):
    """Kind -> pairs of networks that have it, the longest first."""
    pairs = {}
    for row in group:
        for kind, pair in sums(row).items():
            if max(pair) > 0:
                pairs.setdefault(kind, []).append(pair)
    return dict(sorted(pairs.items(), key=lambda item: -sum(measured for measured, _ in item[1])))


def kind_errors(group):
    """Of each kind that counts, of its sum over all networks."""
    whole = sum(row["iteration_ms"] for row in group)
    totals = {kind: [sum(side) for side in zip(*pairs)] for kind, pairs in by_kind(group).items() if kind != NO_KERNEL}
    return {kind: error(predicted, measured) for kind, (measured, predicted) in totals.items() if measured >= COUNTS * whole}


def found(rows):
    """Errors of networks and of kinds, and whether the networks' are within the limit; None: nothing was measured."""
    group = compared(rows)
    if not group:
        return None
    errors = [error(row["predicted"]["iteration_ms"], row["iteration_ms"]) for row in group]
    worst, row = max(zip(errors, group), key=lambda pair: abs(pair[0]))
    text = f"{len(group)} trainings: {spread(errors)}, worst {percent(worst)} ({row['net']}, {row['precision']})"
    kinds = kind_errors(group)
    if kinds:
        worst = max(kinds, key=lambda kind: abs(kinds[kind]))
        text += f"; times of {len(kinds)} kinds: {spread(kinds.values())}, worst {percent(kinds[worst])} ({worst})"
    return text, statistics.median(map(abs, errors)) <= LIMIT


def network_lines(rows):
    for row in rows.of("times"):
        ours = row.get("predicted")
        cells = [f"{ours['iteration_ms']:.2f}", percent(error(ours["iteration_ms"], row["iteration_ms"]))] if ours else [row["refused"], "-"]
        untold = row["kinds"].get("untold", {"ms": 0})["ms"]
        yield (f"{row['net']}, {row['batch']}, {row['precision']}", f"{row['iteration_ms']:.2f}", *cells, f"{row['busy_ms']:.2f}",
               f"{row['idle_ms']:.2f}{' (host)' if row['host_bound'] else ''}", f"{untold:.2f}")


def kind_lines(group):
    for kind, pairs in by_kind(group).items():
        measured, predicted = map(sum, zip(*pairs))
        ratios = [ours / theirs for theirs, ours in pairs if theirs > 0]
        yield (kind, len(pairs), f"{measured:.2f}", f"{predicted:.2f}", f"{predicted / measured:.2f}" if measured else "-",
               f"{statistics.median(ratios):.2f}" if ratios else "-")


def tables(rows):
    """Networks, then kinds by form."""
    made = [table(["network", "measured ms", "predicted ms", "error", "kernels ran ms", "no kernel ms", "untold ms"], list(network_lines(rows)))]
    for form in sorted({row["precision"] for row in compared(rows)}):
        group = [row for row in compared(rows) if row["precision"] == form]
        head = ["kind", "networks", "measured ms", "predicted ms", "ratio of sums", "median of ratios"]
        made.append(f"{form}, ms of an iteration, summed over networks:\n\n" + table(head, list(kind_lines(group))))
    if made[0]:
        made.append("A predicted time has its launches in it, a measured one the kernels alone: what passes between two kernels stands in \"no kernel\".\n")
    return made
