#!/usr/bin/env python3
"""Hard packing problems with a known answer: makes them, and tells how many `snsim pack --exact` solves.

    python3 bench/pack_hard.py [--count 100] [--seed 1] [--seconds 10] [--keep FOLDER]     SNSIM_BINARY: the program

Each problem is a rectangle, times across and a capacity of 1,048,576 upwards, that is cut into 300 to 500 blocks: a cut
goes through one piece, over its whole life or its whole height, at a place drawn at random. Then a share of the blocks
(5 to 15 %) is taken away, and lives and sizes of others are shortened, as real programs leave holes. What is left fits
the capacity, since the cuts say where each lies; nobody says that less would not do."""
import argparse
import os
import pathlib
import random
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CAPACITY = 1 << 20
UNIT = 1024


def cut(piece, dice):
    """Two pieces of one, along the side that is longer for its kind; None: it is too small."""
    begin, end, low, high = piece
    lives, sizes = end - begin, (high - low) // UNIT
    along_time = dice.random() < lives / (lives + sizes / 4)
    if along_time and lives >= 2:
        at = dice.randint(begin + 1, end - 1)
        return (begin, at, low, high), (at, end, low, high)
    if sizes >= 2:
        at = low + UNIT * dice.randint(1, sizes - 1)
        return (begin, end, low, at), (begin, end, at, high)
    return None


def problem(seed):
    """Blocks (begin, end, size)."""
    dice = random.Random(seed)
    wanted = dice.randint(340, 560)
    pieces = [(0, dice.randint(60, 250), 0, CAPACITY)]
    while len(pieces) < wanted:
        piece = max(dice.sample(range(len(pieces)), min(4, len(pieces))),
                    key=lambda i: (pieces[i][1] - pieces[i][0]) * (pieces[i][3] - pieces[i][2]))
        parts = cut(pieces[piece], dice)
        if parts:
            pieces[piece] = parts[0]
            pieces.append(parts[1])
    share = dice.uniform(0.05, 0.15)
    blocks = []
    for begin, end, low, high in pieces:
        if dice.random() < share:
            continue
        if end - begin > 2 and dice.random() < 0.2:
            end -= dice.randint(1, (end - begin) // 2)
        blocks.append((begin, end, high - low))
    dice.shuffle(blocks)
    return blocks[:500]


def write(blocks, path):
    rows = "".join(f"{i},{begin},{end},{size}\n" for i, (begin, end, size) in enumerate(blocks))
    path.write_text("id,lower,upper,size\n" + rows)


def load_ratio(blocks):
    """The largest load over the capacity."""
    loads = {}
    for begin, end, size in blocks:
        for now in range(begin, end):
            loads[now] = loads.get(now, 0) + size
    return max(loads.values()) / CAPACITY


def solve(binary, path, seconds):
    begin = time.monotonic()
    try:
        done = subprocess.run([binary, "pack", str(path), "--exact", "--capacity", str(CAPACITY)], capture_output=True,
                              text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "time", seconds
    return {0: "solved", 1: "not found"}.get(done.returncode, f"exit {done.returncode}"), time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--keep", type=pathlib.Path, help="the problems as CSV files")
    options = parser.parse_args()
    binary = os.environ.get("SNSIM_BINARY", str(ROOT / "build" / "snsim"))
    solved, times = 0, []
    with tempfile.TemporaryDirectory() as folder:
        keep = options.keep or pathlib.Path(folder)
        keep.mkdir(parents=True, exist_ok=True)
        for seed in range(options.seed, options.seed + options.count):
            path = keep / f"hard-{seed}.csv"
            blocks = problem(seed)
            write(blocks, path)
            how, seconds = solve(binary, path, options.seconds)
            print(f"{seed:6d} {len(blocks):4d} blocks, load {load_ratio(blocks):.3f} of the capacity: {how} in {seconds:.2f} s", flush=True)
            solved += how == "solved"
            times.append(seconds)
    times.sort()
    print(f"{solved} of {options.count} solved in {options.seconds:g} s each; median {times[len(times) // 2]:.2f} s")


if __name__ == "__main__":
    main()
