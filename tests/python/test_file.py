"""The file: its grammar, the golden files, two batches in one, errors of files."""
import csv
import gzip
import os
import unittest

from support import ALL, DATA, Case

import torch
from torch import nn

import grammar
import models
import oracle
import replay
import snsim


class Golden(Case):
    def rows(self):
        with open(DATA / "expected.csv", newline="") as rows:
            return list(csv.DictReader(rows))

    def test_files_say_what_is_expected(self):
        for row in self.rows():
            file, batch = self.kept(DATA / row["file"]), int(row["batch"])
            self.assertEqual(replay.peak(file, batch), int(row["peak_apart"]), row)
            self.assertEqual(replay.peak(file, batch, True), int(row["peak_in_place"]), row)
            if row["units_glob"]:
                found = replay.checkpointed_peak(file, batch, row["units_glob"])
                self.assertEqual(found, (int(row["peak_units"]), int(row["unit_calls"])), row)

    def test_small_together(self):
        self.assertLess(sum(path.stat().st_size for path in DATA.glob("*.rec.gz")), 200000)

    def test_recorded_anew_they_are_the_same(self):
        for name in ("small_cnn", "transformer", "gan", "accumulated"):
            recorded = self.recorded(getattr(models, name), path=self.folder / "again.rec.gz", name=name)
            golden = replay.File(DATA / f"{name}.rec.gz")
            self.assertEqual([op.makes for op in recorded.operations], [op.makes for op in golden.operations], name)
            self.assertEqual(recorded.storages, golden.storages, name)


class Written(Case):
    def test_the_same_recording_is_the_same_file(self):
        for ending in ("rec", "rec.gz"):
            paths = [self.folder / f"{number}.{ending}" for number in (1, 2)]
            for path in paths:
                snsim.record(models.transformer, path=path)
            self.assertEqual(paths[0].read_bytes(), paths[1].read_bytes())

    def test_packed_is_the_same(self):
        snsim.record(models.small_cnn, path=self.folder / "a.rec")
        snsim.record(models.small_cnn, path=self.folder / "a.rec.gz")
        self.assertEqual(gzip.decompress((self.folder / "a.rec.gz").read_bytes()), (self.folder / "a.rec").read_bytes())

    def test_summary(self):
        recorded = snsim.record(models.small_cnn, path=self.folder / "a.rec", name="mine")
        self.assertEqual((recorded.name, recorded.batches, recorded.assumed), ("mine", [2, 3], []))
        self.assertIn("any batch", recorded.summary())
        self.assertEqual(recorded.operations, len(replay.File(recorded.path).operations))

    def test_without_a_path_it_lasts_as_long_as_the_result(self):
        recorded = snsim.record(models.small_cnn)
        path = recorded.path
        self.assertIsNone(grammar.wrong(path))
        del recorded
        self.assertFalse(os.path.exists(path))

    def test_no_folder(self):
        self.fails("cannot be written", models.small_cnn, path=self.folder / "no" / "a.rec")

    def test_nothing_is_left_of_a_failure(self):
        def broken(batch):
            return [], [], lambda: 1 / 0
        self.fails("division by zero", broken, path=self.folder / "a.rec")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_no_recording(self):
        path = self.folder / "a.rec"
        snsim.record(models.small_cnn, path=path)
        whole = path.read_bytes()
        for content in (b"", b"{}\n", b"no\n", whole[:-6], whole[:len(whole) // 2], whole.replace(b'"snsim_recording":1', b'"snsim_recording":2')):
            path.write_bytes(content)
            with self.assertRaises(snsim.RecordingError):
                snsim.Recording(path)
        with self.assertRaises(snsim.RecordingError):
            snsim.Recording(self.folder / "none.rec")
        (self.folder / "b.rec.gz").write_bytes(b"\x1f\x8bno")
        with self.assertRaises(snsim.RecordingError):
            snsim.Recording(self.folder / "b.rec.gz")


class Contrastive(nn.Module):
    """All rows with all: grows faster than the batch."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, x):
        y = self.linear(x)
        return (y @ y.t()).softmax(1)


class Batches(Case):
    def same(self, make, batch):
        """A file of two batches says of a third what one that was recorded at it says."""
        any_batch = self.recorded(make, path=self.folder / "any.rec")
        self.assertEqual(any_batch.header["batches"], [2, 3])
        alone = self.recorded(make, batch=batch, path=self.folder / "alone.rec")
        self.assertEqual(alone.header["batches"], [batch])
        self.assertEqual(any_batch.sizes(batch), alone.sizes(batch))
        self.assertEqual(replay.peak(any_batch, batch), oracle.memtracker(make, batch))
        for ours, theirs in zip(any_batch.operations, alone.operations):
            self.assertEqual(replay.at(ours.flops, batch), theirs.flops, any_batch.kernels[ours.kernel])
            self.assertEqual(replay.at(ours.read, batch), theirs.read, any_batch.kernels[ours.kernel])
            self.assertEqual(replay.at(ours.written, batch), theirs.written, any_batch.kernels[ours.kernel])

    def test_any_batch(self):
        for make in (models.small_cnn, models.residual_cnn, models.transformer, models.gan, models.lstm, models.accumulated):
            self.same(make, 16)

    @unittest.skipUnless(ALL, "SNSIM_PY_ALL=1")
    def test_any_batch_of_resnet(self):
        self.same(models.torchvision_net("resnet50", autocast=torch.bfloat16), 64)

    def test_a_size_that_is_no_line(self):
        file = self.recorded(Contrastive(), ((8, 16),))
        self.assertEqual(file.header["batches"], [8])
        self.assertIn("no batch but 8", file.header["assumed"][0][0])

    def test_another_path_at_another_batch(self):
        class Odd(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 16)

            def forward(self, x):
                return self.linear(x) if len(x) % 2 else self.linear(x).relu()
        self.assertEqual(self.recorded(Odd(), ((8, 16),)).header["batches"], [8])

    def test_a_function_of_the_batch(self):
        model = nn.Linear(16, 4)
        file = self.recorded(model, batch=lambda rows: (torch.empty(rows, 16, device="meta"),))
        self.assertEqual(file.header["batches"], [2, 3])


if __name__ == "__main__":
    unittest.main()
