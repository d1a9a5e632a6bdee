"""Writes the recordings of tests/record/data anew, and what they take: from the files by the replay of the tests, and by
PyTorch's MemTracker, which must agree. Needs PyTorch and torchvision:

    PYTHONPATH=python python3 tests/record/golden.py
"""
import csv
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "python"), str(HERE.parent / "python")]

import oracle  # noqa: E402  ahead of torch
import models  # noqa: E402
import replay  # noqa: E402
import snsim  # noqa: E402

RECORDINGS = {  # name: make, batches to ask about, globs of units
    "small_cnn": (models.small_cnn, (2, 3, 64), ""),
    "residual_cnn": (models.residual_cnn, (2, 3, 64), "1,2"),
    "transformer": (models.transformer, (2, 3, 16), "blocks.*"),
    "gan": (models.gan, (2, 3, 128), ""),
    "lstm": (models.lstm, (2, 3, 64), ""),
    "accumulated": (models.accumulated, (2, 3, 256), ""),
    "resnet18": (models.torchvision_net("resnet18"), (2, 3, 32), "layer?.*"),
}


def main():
    folder = HERE / "data"
    folder.mkdir(exist_ok=True)
    with open(folder / "expected.csv", "w", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(["file", "batch", "peak_apart", "peak_in_place", "units_glob", "unit_calls", "peak_units"])
        for name, (make, batches, globs) in RECORDINGS.items():
            path = folder / f"{name}.rec.gz"
            snsim.record(make, path=path, name=name)
            file = replay.File(path)
            for batch in batches:
                apart = replay.peak(file, batch)
                tracked = oracle.memtracker(make, batch)
                if tracked != apart:
                    sys.exit(f"{name}, batch {batch}: {apart} from the file, {tracked} by MemTracker")
                held, units = replay.checkpointed_peak(file, batch, globs) if globs else ("", "")
                rows.writerow([path.name, batch, apart, replay.peak(file, batch, True), globs, units, held])
            print(name, path.stat().st_size, "bytes", len(file.operations), "operations")


if __name__ == "__main__":
    main()
