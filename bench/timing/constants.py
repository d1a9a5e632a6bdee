"""What each constant of the cost model does: errors on timm's tables with it and without, the table of docs/cost-model.md
(`bench/times.py FOLDER --constants`).

Of each variant of a constant the file of the sources that has it is compiled with the other value and linked with the rest of a
build (target bench_times), and that program is asked for all rows."""
from __future__ import annotations

import math
import pathlib
import statistics
import tempfile
from typing import Dict, List, Optional

from . import variants
from .recordings import Recordings
from .rows import Row
from .variants import Variant

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONV, DEVICE, PRODUCT, WORK = (f"sim/device/{name}.c" for name in ("conv", "device", "product", "work"))
TRAFFIC = "models/record/traffic.c"
MOVES = 0.01  # what a variant has to change of a time for the row to stand behind the constant

ALL = [
    Variant("R of convolutions, of products", "both 6.5", DEVICE, ", 6.5, 20, ", ", 6.5, 6.5, "),
    Variant("", "both 20", DEVICE, ", 6.5, 20, ", ", 20, 20, "),
    Variant("", "none: the whole peak", DEVICE, ", 6.5, 20, ", ", 1e6, 1e6, "),
    Variant("R of convolutions, 6.5", "5", DEVICE, ", 6.5, 20, ", ", 5, 20, "),
    Variant("", "8", DEVICE, ", 6.5, 20, ", ", 8, 20, "),
    Variant("R of products, 20", "10", DEVICE, ", 6.5, 20, ", ", 6.5, 10, "),
    Variant("", "40", DEVICE, ", 6.5, 20, ", ", 6.5, 40, "),
    Variant("memory efficiency, 0.85", "1", DEVICE, "0.85, 6.5", "1, 6.5"),
    Variant("", "0.75", DEVICE, "0.85, 6.5", "0.75, 6.5"),
    Variant("tile of a convolution, 64", "none", CONV, "gemm_tile = 64", "gemm_tile = 1"),
    Variant("tiles lost in the last wave, 2 a multiprocessor", "none", CONV, "last_wave_tiles = 2", "last_wave_tiles = 0"),
    Variant("", "4.25", CONV, "last_wave_tiles = 2", "last_wave_tiles = 4.25"),
    Variant("tile and step of a product, 64 and 32", "none", PRODUCT, "tile = 64, step = 32", "tile = 1, step = 1"),
    Variant("lengths that are no multiple of 8, twice", "no slower", PRODUCT, "unaligned = 2", "unaligned = 1"),
    Variant("", "1.5 times", PRODUCT, "unaligned = 2", "unaligned = 1.5"),
    Variant("", "3 times", PRODUCT, "unaligned = 2", "unaligned = 3"),
    Variant("", "where no multiple of 4", PRODUCT, "aligned = 8", "aligned = 4"),
    Variant("", "the batch's side as well", WORK, ".b != 0", ".b != 0 && false"),
    Variant("transposes of channels first", "none", CONV, "seconds += 2 * turned_bytes(", "seconds += 0 * turned_bytes("),
    Variant("", "of odd maps forward none", CONV, "> 1 ? odd_bytes(x) : 0", "> 1 ? 0 * odd_bytes(x) : 0"),
    Variant("", "of odd maps forward of 1x1, too", CONV, "> 1 ? odd_bytes(x) : 0", "> 0 ? odd_bytes(x) : 0"),
    Variant("batch norms, 0.7 of the bandwidth, on Ada 0.86", "all of it", WORK,
            "return d->norm_efficiency > 0 ? d->norm_efficiency : 1;", "return (void)d, 1;"),
    Variant("", "0.7 on Ada, too", DEVICE, "20, 0.86,", "20, 0.7,"),
    Variant("direct kernels, 0.2, 0.1 and 0.05 of the lanes", "all 0.2", CONV, "direct_rate_wide = 0.1, direct_rate_rolled = 0.05", "direct_rate_wide = 0.2, direct_rate_rolled = 0.2"),
    Variant("", "all wide ones 0.1", CONV, "direct_rate_rolled = 0.05", "direct_rate_rolled = 0.1"),
    Variant("", "all wide ones 0.05", CONV, "direct_rate_wide = 0.1", "direct_rate_wide = 0.05"),
    Variant("", "all the whole peak", CONV, "direct_rate = 0.2, direct_rate_wide = 0.1, direct_rate_rolled = 0.05",
            "direct_rate = 1, direct_rate_wide = 1, direct_rate_rolled = 1"),
    Variant("filter's gradient by cuDNN, 0.5 r s passes", "one pass", CONV, "direct_filter_passes = 0.5", "direct_filter_passes = 0"),
    Variant("filter's gradient by PyTorch, a third of a us a turn", "each byte once", CONV, "filter_answer_seconds = 1.0 / 3e6", "filter_answer_seconds = 0"),
    Variant("", "half a us", CONV, "filter_answer_seconds = 1.0 / 3e6", "filter_answer_seconds = 1.0 / 2e6"),
    Variant("", "as by cuDNN", CONV, "&& is_pytorchs(x, how))", "&& is_pytorchs(x, how) && false)"),
    Variant("a block for each channel of batch norms", "all of the bandwidth", WORK, "if (channels > 0 &&", "if (false && channels > 0 &&"),
    Variant("a block of norms' sums, 25 GB/s", "all of the bandwidth", PRODUCT, "bytes_of_block = 25e9", "bytes_of_block = 25e12"),
    Variant("", "15", PRODUCT, "bytes_of_block = 25e9", "bytes_of_block = 15e9"),
    Variant("", "40", PRODUCT, "bytes_of_block = 25e9", "bytes_of_block = 40e9"),
    Variant("passes of norms (traffic.c)", "operands and results once", TRAFFIC, "5.0 / 3, 5.0 / 3", "1, 1"),
    Variant("a launch, 5 us, on Ada 4", "none", DEVICE, "launch_us\", a->launch_us", "launch_us\", 0 * a->launch_us"),
    Variant("host, 10 us", "none", DEVICE, "host_us = 10", "host_us = 0"),
    Variant("", "20", DEVICE, "host_us = 10", "host_us = 20"),
]


class Asked:
    """The rows that are recorded, in columns by table, and what a variant says of them."""

    def __init__(self, recordings: Recordings, wanted: List[Row]) -> None:
        self.recordings = recordings
        self.rows = variants.in_order([row for row in wanted if recordings.has(row)])
        self.names = sorted({row.table for row in self.rows}, key=lambda name: (not name.startswith("train"), name))

    def times(self, program: pathlib.Path) -> List[Optional[float]]:
        return variants.times(program, self.recordings, self.rows)

    def errors(self, ms: List[Optional[float]]) -> Dict[str, List[float]]:
        return {name: [abs(time / row.ms - 1) for row, time in zip(self.rows, ms) if time and row.table == name] for name in self.names}

    def moved(self, ms: List[Optional[float]], before: List[Optional[float]]) -> Dict[str, int]:
        """Rows that a variant changes."""
        found = [row.table for row, now, then in zip(self.rows, ms, before) if now and then and abs(now / then - 1) >= MOVES]
        return {name: found.count(name) for name in self.names}


def cell(errors: List[float]) -> str:
    ordered = sorted(errors)
    return f"{100 * statistics.median(ordered):.1f}, {100 * ordered[math.ceil(0.9 * len(ordered)) - 1]:.1f}"


def line(constant: str, instead: str, cells: List[str], counts: List[int]) -> str:
    return f"| {constant} | {instead} | " + " | ".join(cells) + " | " + ", ".join(map(str, counts)) + " |"


def report(recordings: Recordings, wanted: List[Row], build: pathlib.Path, only: str) -> None:
    """Of constants that have `only` in their name."""
    asked = Asked(recordings, wanted)
    base = asked.times(build / "bench" / "bench_times")
    errors = asked.errors(base)
    print("\n| constant | instead | " + " | ".join(asked.names) + " | rows that it changes |\n|---|---|" + "---:|" * (len(asked.names) + 1))
    print(line("all as they are", "", [cell(errors[name]) for name in asked.names], [len(errors[name]) for name in asked.names]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        builder = variants.Builder(ROOT, build.resolve(), pathlib.Path(folder))
        constant = ""
        for number, variant in enumerate(ALL):
            constant = variant.constant or constant
            if only not in constant:
                continue
            ms = asked.times(builder.program(number, variant))
            errors, moved = asked.errors(ms), asked.moved(ms, base)
            cells = [cell(errors[name]) if moved[name] else "" for name in asked.names]
            print(line(variant.constant, variant.instead, cells, list(moved.values())), flush=True)
