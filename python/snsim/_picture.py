"""Pictures and pages of an estimate for notebooks: SVG and HTML of its own, which need no other program."""
from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING, Any, List, Sequence, Tuple, Union

if TYPE_CHECKING:
    from ._estimate import Estimate, Row

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 330, 62, 14, 26, 40
COLORS = ("#2a6fb0", "#d1662b", "#3a9150", "#8a4fb0")
MOST_POINTS = 900  # of a line; between them the fullest counts
GIB = float(2**30)

Point = Tuple[float, float]  # ms, GiB


class Picture:
    """An SVG. A notebook shows it; save() writes it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg


def _thinned(steps: Sequence[Any]) -> List[Any]:
    """As many as can be seen, of each run of steps the fullest."""
    run = -(-len(steps) // MOST_POINTS)
    return [max(steps[at:at + run], key=lambda step: step["device_bytes"]) for at in range(0, len(steps), run or 1)]


def _nice(most: float) -> float:
    """A distance of lines of which about five are below most."""
    unit = 10.0 ** len(str(int(most)))
    while unit * 2.5 > most:
        for part in (2.0, 2.5, 2.0):
            if unit * 2.5 <= most:
                break
            unit /= part
    return unit


def _stairs(points: Sequence[Point], x: Any, y: Any) -> str:
    return " ".join(f"{x(at):.1f},{y(height):.1f}" for at, height in points)


def picture_of(estimate: "Estimate", rows: Sequence["Row"]) -> Picture:
    """All that is on the GPU over an iteration: context, parameters, tensors; the GPU's memory as a line."""
    lines: List[Tuple["Row", List[Point], Any]] = []
    for row in rows:
        steps = _thinned(estimate.steps(row.strategy))
        if not steps:
            continue
        points: List[Point] = []
        for step in steps:
            begin, height = step["begin_ns"] / 1e6, step["device_bytes"] / GIB
            points += [(begin, points[-1][1] if points else height), (begin, height), (step["end_ns"] / 1e6, height)]
        lines.append((row, points, max(steps, key=lambda step: step["device_bytes"])))
    if not lines:
        return Picture(_svg(['<text x="20" y="40">no strategy has steps to draw</text>']))
    last = max(points[-1][0] for _, points, _ in lines) or 1.0
    top = max(height for _, points, _ in lines for _, height in points)
    limit = estimate.usable_bytes / GIB
    shown = limit <= top * 4  # a line far above would leave the curves flat
    top = (max(top, limit) if shown else top) * 1.1

    def x(at: float) -> float:
        return LEFT + at / last * (WIDTH - LEFT - RIGHT)

    def y(height: float) -> float:
        return HEIGHT - BOTTOM - height / top * (HEIGHT - TOP - BOTTOM)

    parts = _axes(top, last, x, y)
    if shown:
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(limit):.1f}" y2="{y(limit):.1f}" stroke="#b00020" '
                     f'stroke-dasharray="6 4"/><text x="{WIDTH - RIGHT}" y="{y(limit) - 4:.1f}" text-anchor="end" fill="#b00020">'
                     f'{escape(estimate.gpu)}: {limit:.2f} GiB</text>')
    for number, (row, points, peak) in enumerate(lines):
        color = COLORS[number % len(COLORS)]
        if number == 0:
            area = _stairs([(points[0][0], 0.0), *points, (points[-1][0], 0.0)], x, y)
            parts.append(f'<polygon points="{area}" fill="{color}" fill-opacity="0.15"/>')
        parts.append(f'<polyline points="{_stairs(points, x, y)}" fill="none" stroke="{color}" stroke-width="1.6">'
                     f'<title>{escape(row.strategy)}</title></polyline>')
        parts.append(_peak(peak, color, x, y))
        parts.append(f'<text x="{LEFT + 8 + 200 * number}" y="15" fill="{color}">{escape(row.strategy)}</text>')
    return Picture(_svg(parts))


def _peak(step: Any, color: str, x: Any, y: Any) -> str:
    at, height = step["begin_ns"] / 1e6, step["device_bytes"] / GIB
    text = f"{height:.2f} GiB, {step['layer']} {step['pass']}"
    return (f'<circle cx="{x(at):.1f}" cy="{y(height):.1f}" r="3" fill="{color}"><title>{escape(text)}</title></circle>')


def _axes(top: float, last: float, x: Any, y: Any, what: str = "ms of an iteration") -> List[str]:
    parts = []
    distance = _nice(top)
    number = 0
    while number * distance <= top:
        height = y(number * distance)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}" stroke="#8884" />'
                     f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{number * distance:.4g}</text>')
        number += 1
    distance, number = _nice(last), 0
    while number * distance <= last:
        parts.append(f'<text x="{x(number * distance):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
                     f'{number * distance:.4g}</text>')
        number += 1
    middle = (HEIGHT - BOTTOM + TOP) / 2
    parts.append(f'<text x="{(WIDTH + LEFT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{what}</text>'
                 f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">GiB on the GPU</text>')
    return parts


def curves(lines: Sequence[Tuple[str, Sequence[Tuple[int, int]]]], what: str, mark: Any = None) -> Picture:
    """Bytes over what is counted, a line for each name; `mark` is where they part."""
    thin = []
    for name, points in lines:
        run = -(-len(points) // MOST_POINTS) or 1
        thin.append((name, [max(points[at:at + run], key=lambda point: point[1]) for at in range(0, len(points), run)]))
    every = [point for _, points in thin for point in points]
    last = max((at for at, _ in every), default=1) or 1
    top = max((height for _, height in every), default=1) / GIB * 1.1

    def x(at: float) -> float:
        return LEFT + at / last * (WIDTH - LEFT - RIGHT)

    def y(height: float) -> float:
        return HEIGHT - BOTTOM - height / top * (HEIGHT - TOP - BOTTOM)

    parts = _axes(top, last, x, y, what)
    if mark is not None:
        parts.append(f'<line x1="{x(mark):.1f}" x2="{x(mark):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#b00020" '
                     f'stroke-dasharray="6 4"/><text x="{x(mark) + 4:.1f}" y="{TOP + 10}" fill="#b00020">they part</text>')
    for number, (name, points) in enumerate(thin):
        color = COLORS[number % len(COLORS)]
        parts.append(f'<polyline points="{_stairs([(at, height / GIB) for at, height in points], x, y)}" fill="none" '
                     f'stroke="{color}" stroke-width="1.6"/><text x="{LEFT + 8 + 200 * number}" y="15" fill="{color}">{escape(name)}</text>')
    return Picture(_svg(parts))


def _svg(parts: Sequence[str]) -> str:
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" font-family="sans-serif" '
            f'font-size="12" fill="#666">\n' + "\n".join(parts) + "\n</svg>\n")


# a notebook's cell -----------------------------------------------------------------------------------------------------


def _gib(value: Any) -> str:
    return "-" if value is None else f"{value / GIB:.2f}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th style='text-align:left'>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def page_of(estimate: "Estimate") -> str:
    """Verdict, what to change with its lines of Python, strategies, picture."""
    name = estimate.data.get("net_name", estimate.data["net"])
    largest = "" if estimate.largest_batch is None else f" Largest batch: {estimate.largest_batch}."
    needed = "no memory is enough" if estimate.needed_bytes is None else f"it needs {_gib(estimate.needed_bytes)} GiB"
    parts = [f"<p><b>{escape(name)}</b>, batch {estimate.batch}, on {escape(estimate.gpu)} ({_gib(estimate.usable_bytes)} GiB): "
             f"<b>{estimate.verdict.upper()}</b>, {needed}.{largest}</p>"]
    if estimate.changes:
        parts.append(_table(("what to change", "GiB", "/s", "in PyTorch"), [
            (escape(change.what), _gib(change.device_bytes), f"{change.images_per_s:,.{0 if change.images_per_s >= 100 else 1}f}",
             f"<pre style='margin:0'>{escape(chr(10).join(change.calls))}</pre>") for change in estimate.changes]))
    parts.append(estimate.plot().svg)
    parts.append(_table(("strategy", "fits", "needs GiB", "takes GiB", "ms"), [
        (escape(row.strategy), "yes" if row.fits else "no", _gib(row.needed_bytes), _gib(row.peak_device_bytes),
         f"{row.iteration_ms:.2f}") for row in estimate.rows]))
    return "\n".join(parts)
