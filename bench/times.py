#!/usr/bin/env python3
"""Predicted against measured times of networks that timm publishes, from recordings of all of them.

    python3 bench/times.py FOLDER                      its tables train-rtx3090-amp-nchw.csv, infer-rtx4090-amp-nchw.csv, ..
    python3 bench/times.py FOLDER --names 'resnet*,vit_*' --rows 20
    python3 bench/times.py FOLDER --fit                and with a factor for each group of kinds, families held out (needs numpy)
    python3 bench/times.py FOLDER --constants ''         instead: errors with each constant and without (needs build/bench/bench_times)

A network is recorded once, as its table was made (bench/timing/recorder.py; `amp` in a table's name is timm's training of its day, `bf16` and `fp32`
are PyTorch's as it starts today, as scripts/validate-gpu leaves them; in a Python that has torch and timm: --python),
and kept in --cache; what is interrupted goes on where it was. Then `snsim` is asked for each row. What could not be recorded
is listed with its reason, which stands in a file beside the recordings: deleted, it is tried again.

SNSIM_BINARY: the program, build/snsim unless set."""
from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
from typing import Dict, List, Tuple

from timing import predicted, rows, tables
from timing.recordings import Recordings, default_folder
from timing.rows import Row

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("SNSIM_BINARY", str(ROOT / "build" / "snsim"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", metavar="TABLE.csv|FOLDER", nargs="+", type=pathlib.Path, help="tables of timm, or folders of them")
    parser.add_argument("--cache", metavar="FOLDER", type=pathlib.Path, default=default_folder(), help="of recordings (default: %(default)s)")
    parser.add_argument("--python", metavar="FILE", default=sys.executable, help="a Python with torch and timm (default: this one)")
    parser.add_argument("--names", metavar="GLOB,..", help="these networks alone")
    parser.add_argument("--rows", metavar="N", type=int, help="the first N, where one of each family comes ahead of its second")
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="so many at once (default: %(default)s)")
    parser.add_argument("--no-record", action="store_true", help="only what is recorded")
    parser.add_argument("--fit", action="store_true", help="also: factors of kinds fitted to what was measured, and judged by families held out")
    parser.add_argument("--constants", metavar="TEXT", help="instead: errors with constants of the cost model changed that have TEXT in their name")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="rows with their sums by kind of kernel")
    return parser.parse_args()


def predict(recordings: Recordings, wanted: List[Row], jobs: int) -> Tuple[List[predicted.Predicted], Dict[str, str]]:
    """And what was refused, by recording."""
    done, refused = [], {row.key: recordings.failed(row) for row in wanted if recordings.failed(row)}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        asked = [(row, pool.submit(predicted.of_row, BINARY, recordings.path(row), row)) for row in wanted if recordings.has(row)]
        for row, answer in asked:
            try:
                done.append(answer.result())
            except predicted.Refused as error:
                refused[row.key] = str(error)
    return done, refused


def print_all(done: List[predicted.Predicted], refused: Dict[str, str]) -> None:
    for name, group in tables.grouped(done, lambda r: r.row.table).items():
        print(f"\n## {name}\n")
        tables.print_rows(group)
        print()
        tables.print_families(group)
        print()
        tables.print_kinds(group)
        print(f"\n{tables.summary(group)}")
    for what, key in (("card", lambda r: r.row.gpu), ("kind", lambda r: "training" if r.row.train else "inference")):
        print(f"\n## By {what}\n")
        for name, group in tables.grouped(done, key).items():
            print(f"{name}: {tables.summary(group)}")
    if refused:
        print("\n## Not there\n")
        for key, why in sorted(refused.items()):
            print(f"{key}: {why}")


def write_json(path: pathlib.Path, done: List[predicted.Predicted]) -> None:
    found = [{**r.row._asdict(), "measured_ms": r.row.ms, "predicted_ms": r.ms, "kinds": {k: s._asdict() for k, s in r.sums.items()}} for r in done]
    path.write_text(json.dumps(found, indent=0) + "\n")


def main() -> None:
    words = arguments()
    recordings = Recordings(words.cache)
    wanted = rows.chosen(rows.tables(words.tables), words.names, words.rows)
    if not words.no_record:
        recordings.make(wanted, words.jobs, words.python)
    if words.constants is not None:
        from timing import constants
        constants.report(recordings, wanted, ROOT / "build", words.constants)
        return
    done, refused = predict(recordings, wanted, words.jobs)
    print_all(done, refused)
    if words.fit:
        from timing import report_fit
        report_fit.report(done)
    if words.json:
        write_json(words.json, done)


if __name__ == "__main__":
    main()
