"""Writes the recordings of tests/record/data anew, and what they take: from the files by the replay of the tests, and by
PyTorch's MemTracker, which must agree, also where blocks are under checkpoints. Needs PyTorch and torchvision:

    PYTHONPATH=python python3 tests/record/golden.py             # all
    PYTHONPATH=python python3 tests/record/golden.py dense       # these alone; rows of others stay
"""
import csv
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "python"), str(HERE.parent / "python")]

import oracle  # noqa: E402  ahead of torch
import models  # noqa: E402
import replay  # noqa: E402
import sharded  # noqa: E402
import snsim  # noqa: E402

RECORDINGS = {  # name: make, batches to ask about, globs of units
    "small_cnn": (models.small_cnn, (2, 3, 64), ""),
    "residual_cnn": (models.residual_cnn, (2, 3, 64), "1,2"),
    "plain_cnn": (models.plain_cnn, (2, 3, 64), "1.*"),
    "transformer": (models.transformer, (2, 3, 16), "blocks.*"),
    "decoder": (models.decoder, (2, 3, 16), "blocks.?"),
    "gan": (models.gan, (2, 3, 128), ""),
    "lstm": (models.lstm, (2, 3, 64), ""),
    "accumulated": (models.accumulated, (2, 3, 256), ""),
    "resnet18": (models.torchvision_net("resnet18"), (2, 3, 32), "layer?.*"),
    "dense": (models.dense, (2, 3, 16), "blocks.*"),
    "dense_wide": (models.dense_wide, (2, 3, 16), "blocks.*"),
    "scaled_cnn": (models.scaled_cnn, (2, 3, 16), "1,2"),
}
# name: batch, mesh, globs of what is gathered by itself; whether snsim is told them, or finds them
SHARDED = [("resnet18", 8, "fsdp=4", "layer?.*", False), ("resnet18", 3, "fsdp=5", "layer?.*", False), ("transformer", 8, "fsdp=4", "blocks.*", False),
           ("transformer", 3, "fsdp=7", "blocks.*", False), ("residual_cnn", 8, "fsdp=4", "1,2", True), ("dense", 8, "fsdp=4", "blocks.*", False),
           ("small_cnn", 8, "fsdp=4", "0,1,4,5,10", False), ("scaled_cnn", 8, "fsdp=3", "1,2", True),
           ("resnet18", 8, "dp=2,fsdp=4", "layer?.*", False), ("transformer", 8, "dp=4,fsdp=2", "blocks.*", False), ("scaled_cnn", 8, "dp=2,fsdp=3", "1,2", True),
           *((name, 8, mesh, globs, told) for mesh in ("dp=4", "dp=4,view=yes") for name, globs, told in (
               ("resnet18", "layer?.*", False), ("transformer", "blocks.*", False), ("small_cnn", "0,1,4,5,10", False), ("scaled_cnn", "1,2", True)))]
SHARDED_COLUMNS = ["file", "batch", "mesh", "units_glob", "peak_apart", "peak_units"]
COLUMNS = ["file", "batch", "peak_apart", "peak_in_place", "units_glob", "unit_calls", "peak_units", "peak_selective"]


def agree(name, batch, ours, tracked):
    if tracked != ours:
        sys.exit(f"{name}, batch {batch}: {ours} from the file, {tracked} by MemTracker")


def rows_of(name, folder):
    """Records it anew."""
    make, batches, globs = RECORDINGS[name]
    path = folder / f"{name}.rec.gz"
    snsim.record(make, path=path, name=name)
    file = replay.File(path)
    print(name, path.stat().st_size, "bytes", len(file.operations), "operations")
    for batch in batches:
        apart = replay.peak(file, batch)
        agree(name, batch, apart, oracle.memtracker(make, batch))
        held, units = replay.checkpointed_peak(file, batch, globs) if globs else ("", "")
        some = selective(make, batch, globs) if globs else ""
        if globs:
            agree(f"{name} with {globs}", batch, held, oracle.memtracker(make, batch, wrap=oracle.under_checkpoints(globs)))
        yield [path.name, str(batch), apart, replay.peak(file, batch, True), globs, units, held, some]


def selective(make, batch, globs):
    """MemTracker's alone, where checkpoints keep some results."""
    return oracle.memtracker(make, batch, wrap=oracle.under_checkpoints(globs, context_fn=oracle.products_and_attention))


def write_sharded(folder):
    """What PyTorch's trackers say of a rank."""
    with open(folder / "expected_sharded.csv", "w", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(SHARDED_COLUMNS)
        for name, batch, mesh, globs, told in SHARDED:
            peaks = [sharded.memtracker(RECORDINGS[name][0], batch, mesh, globs, again) for again in (False, True)]
            whole = name == "small_cnn"  # what is gathered there is no block that runs again
            rows.writerow([f"{name}.rec.gz", batch, mesh, globs if told else "", peaks[0], "" if whole else peaks[1]])


def main():
    folder = HERE / "data"
    folder.mkdir(exist_ok=True)
    asked, known = sys.argv[1:] or list(RECORDINGS), {}
    if len(asked) < len(RECORDINGS):
        with open(folder / "expected.csv", newline="") as table:
            for row in list(csv.reader(table))[1:]:
                known.setdefault(row[0].removesuffix(".rec.gz"), []).append(row)
    for name in asked:
        known[name] = list(rows_of(name, folder))
    with open(folder / "expected.csv", "w", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(COLUMNS)
        for name in RECORDINGS:
            rows.writerows(known.get(name, []))
    write_sharded(folder)


if __name__ == "__main__":
    main()
