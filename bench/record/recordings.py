"""Records models and loops, replays the files, and puts beside them PyTorch's MemTracker and the figures that were measured
before.

    PYTHONPATH=python python3 bench/record/recordings.py                            # all of bench/record/recording_models.py
    PYTHONPATH=python python3 bench/record/recordings.py resnet50 gpt2 --expected recordings.csv
    PYTHONPATH=python python3 bench/record/recordings.py --make train.py:make --batch 8
    PYTHONPATH=python python3 bench/record/recordings.py timm:resnet26d torchvision:alexnet --any-batch
    PYTHONPATH=python python3 bench/record/recordings.py --foreign                  # tables of docs/measured/record.md
    PYTHONPATH=python python3 bench/record/recordings.py --checkpoints

A row each: model, operations, CPU seconds and milliseconds an operation to record, most memory so far, peaks with sums apart
and in place, with units under checkpoints, MemTracker's, and whether all is as it should be. --any-batch also records at 2 and
3 and compares the file's answer for --ask with a recording at that batch. --foreign records the models of
bench/record/recording_foreign.py at 2 and 3 where they allow it, and sets the program's peak at their batch, sums apart, beside
MemTracker's. --checkpoints has models with globs of blocks, and sets the program's peak with these under checkpoints beside
MemTracker's of torch.utils.checkpoint around them. Exit code 1 where anything differs.
"""
import argparse
import csv
import importlib.util
import json
import logging
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]
warnings.simplefilter("ignore")
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)  # it misses triton, which nothing here needs

import oracle  # noqa: E402  ahead of torch
import recording_foreign as foreign  # noqa: E402
import recording_further as further  # noqa: E402
import recording_models as models  # noqa: E402
import recording_more as more  # noqa: E402
import recording_others as others  # noqa: E402
import replay  # noqa: E402
import snsim  # noqa: E402


def found(name):
    """make, batch and globs of a name."""
    library, _, network = name.partition(":")
    if not network:
        return models.ALL[name]
    return models.vision(getattr(models, library)(network), optimizer="adamw"), 4, ""


def made(place):
    """make of train.py:make."""
    file, _, name = place.rpartition(":")
    spec = importlib.util.spec_from_file_location("made", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def at(make, batch, path):
    """Records at one batch alone; the file and CPU seconds."""
    begun = time.process_time()
    snsim.record(make, batch=batch, path=path)
    return replay.File(path), time.process_time() - begun


class Rows:
    def __init__(self, arguments):
        self.arguments, self.expected, self.wrong = arguments, {}, 0
        if arguments.expected:
            with open(arguments.expected, newline="") as rows:
                self.expected = {row["model"]: row for row in csv.DictReader(rows)}

    def compare(self, name, what, ours, column):
        """A word where a figure is not that of the table."""
        there = self.expected.get(name, {}).get(column)
        return [] if not there or int(there) == ours else [f"{what} {ours - int(there):+d}"]

    def row(self, name, make, batch, globs, folder):
        path = folder / "one.rec"
        file, seconds = at(make, batch, path)
        operations = len(file.operations)
        apart, in_place = replay.peak(file, batch), replay.peak(file, batch, True)
        units = replay.checkpointed_peak(file, batch, globs)[0] if globs else None
        differs = self.compare(name, "apart", apart, "replay_sums_apart")
        differs += self.compare(name, "in place", in_place, "replay_sums_in_place")
        differs += self.compare(name, "units", units, "checkpoint_ours") if units else []
        tracked = None
        if not self.arguments.no_tracker:
            tracked = oracle.memtracker(make, batch)
            differs += [f"MemTracker {tracked - apart:+d}"] if tracked != apart else []
        differs += self.any_batch(make, folder) if self.arguments.any_batch else []
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        size = path.stat().st_size / operations
        print(f"{name:28} {operations:6} {seconds:6.2f} s {1e3 * seconds / operations:5.2f} ms {memory:5} MB {size:4.0f} B/op {apart:13,} "
              f"{in_place:13,} {units or '-':>13} {tracked or '-':>13}  {', '.join(differs) or 'same'}"
              f"{'  assumed ' + str(len(file.header['assumed'])) if file.header['assumed'] else ''}", flush=True)
        self.wrong += bool(differs)

    def any_batch(self, make, folder):
        ask = self.arguments.ask
        snsim.record(make, path=folder / "any.rec")
        file = replay.File(folder / "any.rec")
        if len(file.header["batches"]) == 1:
            return ["one batch: " + file.header["assumed"][-1][0]]
        alone, _ = at(make, ask, folder / "alone.rec")
        wrong = sum(x != y for x, y in zip(file.sizes(ask), alone.sizes(ask)))
        peaks = replay.peak(alone, ask) - replay.peak(file, ask)
        return [f"{wrong} storages and {peaks:+d} at batch {ask}"] if wrong or peaks else []


def live(program, path, batch, strategy):
    """The program's peak in bytes; RuntimeError with its words."""
    done = subprocess.run([program, "--net", str(path), "--batch", str(batch), "--strategy", strategy, "--gpu", "a100_80", "--costs", "model",
                           "--no-db", "--json"], capture_output=True, text=True)
    if done.returncode > 1:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["results"][0]["live_peak_bytes"]


class Checkpoints:
    """A row each of the table of checkpoints in docs/measured/record.md."""

    def __init__(self, arguments):
        self.program, self.tracker, self.wrong = arguments.snsim, not arguments.no_tracker, 0
        print("| model | batch | blocks | how many | without | program | MemTracker | bytes off |\n|---|---:|---|---:|---:|---:|---:|---:|")

    def row(self, name, make, batch, globs, folder):
        path = folder / "one.rec"
        snsim.record(make, batch=batch, path=path)
        file = replay.File(path)
        replayed, units = replay.checkpointed_peak(file, batch, globs)
        under = live(self.program, f"{path}:units={globs}", batch, "pytorch-1.7+recompute=units")
        tracked = oracle.memtracker(make, batch, wrap=oracle.under_checkpoints(globs)) if self.tracker else replayed
        print(f"| {name} | {batch} | `{globs}` | {units // file.header['iterations']} | {replay.peak(file, batch):,} | {under:,} | "
              f"{tracked:,} | {under - tracked:+,} |", flush=True)
        self.wrong += under != tracked


class Foreign:
    """A row each of the table of docs/measured/record.md."""

    def __init__(self, arguments):
        self.program, self.tracker, self.wrong = arguments.snsim, not arguments.no_tracker, 0
        print("| model | batch | operations | one file | assumed | program | MemTracker | bytes off | in place |\n"
              "|---|---:|---:|---|---:|---:|---:|---:|---:|")

    def row(self, name, make, batch, folder):
        path = folder / "any.rec"
        snsim.record(make, path=path)
        file, alone = replay.File(path), ""
        if len(file.header["batches"]) == 1:
            alone = file.header["assumed"].pop()[0]
            snsim.record(make, batch=batch, path=path)
            file = replay.File(path)
        apart, in_place = live(self.program, path, batch, "pytorch-1.7"), live(self.program, path, batch, "pytorch")
        tracked = oracle.memtracker(make, batch) if self.tracker else None
        off = "-" if tracked is None else f"{apart - tracked:+,}"
        print(f"| {name} | {batch} | {len(file.operations):,} | {'any' if not alone else 'alone'} | {len(file.header['assumed'])} | {apart:,} | "
              f"{format(tracked, ',') if tracked else '-'} | {off} | {in_place:,} |", flush=True)
        if alone:
            print(f"{name}: {alone}", file=sys.stderr, flush=True)
        if replay.peak(file, batch) != apart:
            print(f"{name}: the replay of both iterations has {replay.peak(file, batch):,}", file=sys.stderr, flush=True)
        self.wrong += tracked not in (None, apart)


def run_table(rows, models, names, folder):
    """Rows of the models named, or of all; how many were wrong."""
    for name in names or models:
        try:
            rows.row(name, *models[name], folder)
        except Exception as error:  # one that fails must not stop the others
            traceback.print_exc()
            print(f"| {name} | | | {type(error).__name__}: {error} | | | | | |", flush=True)
            rows.wrong += 1
    return rows.wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="of bench/record/recording_models.py, or timm:NAME, torchvision:NAME")
    parser.add_argument("--foreign", action="store_true", help="the names are of bench/record/recording_foreign.py, and the program is asked")
    parser.add_argument("--checkpoints", action="store_true", help="models with blocks, these under checkpoints; the program is asked")
    parser.add_argument("--snsim", default=str(ROOT / "build" / "snsim"))
    parser.add_argument("--make", help="file.py:make instead")
    parser.add_argument("--batch", type=int, help="instead of the model's own")
    parser.add_argument("--expected", help="a table of figures measured before")
    parser.add_argument("--any-batch", action="store_true")
    parser.add_argument("--ask", type=int, default=16)
    parser.add_argument("--no-tracker", action="store_true")
    arguments = parser.parse_args()
    if arguments.foreign or arguments.checkpoints:
        rows, table = (Foreign, foreign.ALL | further.ALL | more.ALL | others.ALL) if arguments.foreign else (Checkpoints, models.with_blocks())
        with tempfile.TemporaryDirectory() as folder:
            sys.exit(bool(run_table(rows(arguments), table, arguments.names, pathlib.Path(folder))))
    rows = Rows(arguments)
    asked = [(name, *found(name)) for name in arguments.names or ([] if arguments.make else models.ALL)]
    if arguments.make:
        asked.append((arguments.make, made(arguments.make), 2, ""))
    with tempfile.TemporaryDirectory() as folder:
        for name, make, batch, globs in asked:
            try:
                rows.row(name, make, arguments.batch or batch, globs, pathlib.Path(folder))
            except Exception as error:  # one that fails must not stop the others
                traceback.print_exc()
                print(f"{name:28} {type(error).__name__}: {error}", flush=True)
                rows.wrong += 1
    sys.exit(bool(rows.wrong))


if __name__ == "__main__":
    main()
