"""Snapshots in the form of torch.cuda.memory: written of the golden recordings, read again, set beside runs that are written here
in that form, as no GPU is at hand. No PyTorch, but for its own viewer's functions where it is installed."""
import collections
import copy
import csv
import importlib.util
import inspect
import os
import pickle
import sys
import tempfile
import unittest
import xml.dom.minidom

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCES, "python"))
import snsim  # noqa: E402
from snsim import _snapshot  # noqa: E402
from snsim._allocator import Allocator, rounded, segment_size  # noqa: E402
from snsim._lives import Lives, WORKSPACE  # noqa: E402

DATA = os.path.join(SOURCES, "tests", "record", "data")
os.environ["SNSIM_PROGRAM"] = os.environ.get("SNSIM_BINARY") or os.path.join(SOURCES, "build", "snsim")


def golden(name):
    return os.path.join(DATA, f"{name}.rec.gz")


def events(data):
    return data["device_traces"][0]


def begins(data, iteration):
    """The first event of an iteration."""
    return next(i for i, event in enumerate(events(data)) if event["frames"][-1]["filename"] == f"iteration {iteration}"
                and event["frames"][-1]["name"] != "before")


class Blocks(unittest.TestCase):
    def test_live_bytes_are_the_peaks_beside_the_recordings(self):
        with open(os.path.join(DATA, "expected.csv"), newline="") as file:
            for row in csv.DictReader(file):
                live = peak = 0
                for ask in Lives(os.path.join(DATA, row["file"]), int(row["batch"])).asks(workspaces=False):
                    live += ask.bytes if ask.born else -ask.bytes
                    peak = max(peak, live)
                self.assertEqual(peak, int(row["peak_in_place"]), row)

    def test_what_the_program_reserves(self):
        for name, batch in (("small_cnn", 64), ("residual_cnn", 64), ("transformer", 16), ("gan", 128), ("lstm", 64), ("accumulated", 256),
                            ("resnet18", 32)):
            with self.subTest(name):
                row = snsim.estimate(golden(name), batch=batch, gpu="a100_40", workspace="none").row()
                allocator, blocks = Allocator(), {}
                for ask in Lives(golden(name), batch).asks():
                    if ask.born:
                        blocks[ask.block] = allocator.take(ask.bytes)[0]
                    else:
                        allocator.give(blocks.pop(ask.block))
                self.assertEqual(row.reserved_bytes, allocator.reserved_peak)
                self.assertLess(abs(row.allocated_bytes / allocator.allocated_peak - 1), 0.001)

    def test_segments(self):
        self.assertEqual([rounded(n) for n in (1, 512, 513)], [512, 512, 1024])
        self.assertEqual([segment_size(n) >> 20 for n in (512, 1 << 20, (1 << 20) + 512, 10 << 20, 11 << 20, (12 << 20) + 512)],
                         [2, 2, 20, 10, 12, 14])
        a = Allocator()
        x, new = a.take(3 << 20)
        y, none = a.take(4 << 20)
        self.assertEqual((new.size >> 20, none, y.address - x.address, a.reserved >> 20), (20, None, 3 << 20, 20))
        a.give(x)
        z, none = a.take((2 << 20) + (1 << 19))  # half a MiB is left, which a large block keeps
        self.assertEqual((none, z.address, z.size), (None, x.address, 3 << 20))
        for block in (y, z):
            a.give(block)
        self.assertEqual((a.allocated, [block.size >> 20 for block in new.blocks]), (0, [20]))
        small, _ = a.take(100)
        self.assertEqual((small.segment.small, a.reserved >> 20), (True, 22))


class Written(unittest.TestCase):
    def test_a_snapshot_adds_up(self):
        for name, batch in (("resnet18", 8), ("lstm", 3), ("gan", 4)):
            data = _snapshot.made(golden(name), batch)
            live, used = 0, {}
            for event in events(data):
                if event["action"] == "alloc":
                    self.assertNotIn(event["addr"], used)
                    used[event["addr"]] = event["size"]
                elif event["action"] == "free_completed":
                    self.assertEqual(used.pop(event["addr"]), event["size"])
            ends = {block["address"]: block["requested_size"] for segment in data["segments"] for block in segment["blocks"]
                    if block["state"] == "active_allocated"}
            self.assertEqual(used, ends)
            for segment in data["segments"]:
                at = segment["address"]
                for block in segment["blocks"]:
                    self.assertEqual(block["address"], at)
                    at += block["size"]
                self.assertEqual(at, segment["address"] + segment["total_size"])
                live += segment["allocated_size"]
            self.assertGreaterEqual(live, sum(ends.values()))

    def test_frames_are_paths_of_modules(self):
        names = {(event["frames"][0]["filename"], event["frames"][0]["name"]) for event in events(_snapshot.made(golden("resnet18"), 8))}
        self.assertIn(("layer1.0.conv1", "aten.convolution.default"), names)
        self.assertIn(("layer1.0.conv1", "aten.convolution_backward.default"), names)
        self.assertIn(("resnet18", "parameter layer1.0.conv1.weight"), names)
        frames = next(event["frames"] for event in events(_snapshot.made(golden("resnet18"), 8)) if event["frames"][0]["filename"] == "layer1.0.conv1")
        self.assertEqual([frame["name"] for frame in frames[1:4]], ["Conv2d", "BasicBlock", "Sequential"])

    def test_estimates_and_recordings_write_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            a, b = os.path.join(folder, "a.pickle"), os.path.join(folder, "b.pickle")
            snsim.snapshot(golden("small_cnn"), a, batch=4)
            snsim.estimate(golden("small_cnn"), batch=4, gpu="rtx4090").snapshot(b)
            with open(a, "rb") as one, open(b, "rb") as other:
                self.assertEqual(one.read(), other.read())
            self.assertRaisesRegex(snsim.Error, "made of a recording", snsim.estimate("lenet", batch=4, gpu="k40c").snapshot, b)
            self.assertRaisesRegex(snsim.Error, "cannot be written", snsim.snapshot, golden("small_cnn"), os.path.join(folder, "no", "a"), 4)
            self.assertRaisesRegex(snsim.Error, "small_cnn.rec.gz: recorded for any batch: give one, as batch=64", snsim.snapshot, golden("small_cnn"), a)
            self.assertRaisesRegex(snsim.Error, "^missing.rec: No such file or directory$", snsim.snapshot, "missing.rec", b, 4)
            self.assertRaisesRegex(snsim.Error, "no recording", snsim.snapshot, a, b, 4)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch")
    def test_pytorchs_own_viewer_reads_it(self):
        from torch.cuda import _memory_viz
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.pickle")
            snsim.snapshot(golden("transformer"), path, batch=4)
            with open(path, "rb") as file:
                data = pickle.load(file)
        self.assertIn("total_reserved", _memory_viz.segsum(data))
        self.assertIn("cudaMalloc", _memory_viz.trace(data))
        self.assertIn("blocks.0", _memory_viz.memory(data, format_flamegraph=lambda text: text))
        for draw in (_memory_viz.segment_plot, _memory_viz.trace_plot):
            self.assertIn("MemoryViz.js", draw(copy.deepcopy(data)))
        if "filter_freed" in inspect.signature(_memory_viz.trace_plot).parameters:  # newer than 2.8
            self.assertIn("MemoryViz.js", _memory_viz.trace_plot(data, filter_freed=True))


class Beside(unittest.TestCase):
    def compared(self, data, name="resnet18", batch=8):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.pickle")
            with open(path, "wb") as file:
                pickle.dump(data, file)
            return snsim.compare(golden(name), path, batch=batch)

    def test_a_run_that_does_as_recorded(self):
        for name, batch in (("resnet18", 8), ("transformer", 4), ("lstm", 3), ("accumulated", 4), ("gan", 4)):
            with self.subTest(name):
                c = self.compared(_snapshot.made(golden(name), batch), name, batch)
                self.assertTrue(c.agrees, str(c))
                self.assertEqual((c.predicted_peak, c.predicted_reserved), (c.seen_peak, c.seen_reserved))
                self.assertGreater(c.matched, 40)
                self.assertIn("none differs", str(c))

    def test_a_trace_that_begins_late_and_goes_on(self):
        data = _snapshot.made(golden("resnet18"), 8)
        second = begins(data, 1)
        again = copy.deepcopy(events(data)[second:])
        data["device_traces"][0] = [*events(data)[second:], *again]
        whole, c = self.compared(_snapshot.made(golden("resnet18"), 8)), self.compared(data)
        self.assertTrue(c.agrees, str(c))
        self.assertEqual(c.seen_peak, whole.seen_peak)
        self.assertEqual(c.matched, 2 * len([event for event in again if event["action"] == "alloc"]))

    def test_workspaces_are_not_a_difference(self):
        data, out, most = _snapshot.made(golden("resnet18"), 8), [], 0
        for event in events(data):
            out.append(event)
            if event["action"] == "alloc" and "convolution" in event["frames"][0]["name"]:
                most = 50 << 20
                passing = dict(event, addr=1, size=most, frames=[])
                out += [passing, dict(passing, action="free_requested"), dict(passing, action="free_completed")]
        data["device_traces"][0] = out
        c = self.compared(data)
        self.assertTrue(c.agrees, str(c))
        self.assertEqual(max(c.workspaces.values()), most)
        self.assertGreater(c.seen_peak, c.predicted_peak)
        self.assertIn("at most 50.00 MiB", str(c))

    def test_the_first_difference_is_named(self):
        data = _snapshot.made(golden("resnet18"), 8)
        wrong = next(event for event in events(data) if event["action"] == "alloc" and event["frames"][0]["filename"] == "layer3.1.conv2")
        frames = [{"filename": "/usr/lib/torch/nn/modules/conv.py", "line": 5, "name": "forward"},
                  {"filename": "/home/someone/model.py", "line": 77, "name": "forward"}]
        size = wrong["size"]
        for event in events(data):
            if event["addr"] == wrong["addr"] and event["frames"] is wrong["frames"]:
                event["size"] = 2 * size
        wrong["frames"] = frames
        c = self.compared(data)
        self.assertFalse(c.agrees)
        self.assertEqual(c.parting.module, "layer3.1.conv2")
        self.assertIn(f"predicted {size:,} bytes for aten.convolution.default, forward of iteration 0", str(c))
        self.assertIn(f"seen {2 * size:,} bytes at model.py:77 forward", str(c))
        xml.dom.minidom.parseString(c.plot().svg)
        self.assertIn("they part", c._repr_svg_())

    def test_another_batch(self):
        c = self.compared(_snapshot.made(golden("resnet18"), 8), batch=9)
        self.assertFalse(c.agrees)
        self.assertIn("is it another batch?", str(c))

    def test_a_batch_and_a_workspace_from_elsewhere(self):
        data = _snapshot.made(golden("transformer"), 4)
        for event in events(data):  # another architecture's
            if event["frames"][0]["name"] == WORKSPACE:
                event["size"] = 4 << 20
        self.assertTrue(self.compared(data, "transformer", 4).agrees)
        data["device_traces"][0] = [event for event in events(data) if event["frames"][0]["name"] != WORKSPACE]
        self.assertTrue(self.compared(data, "transformer", 4).agrees)

    def test_nothing_traced(self):
        data = _snapshot.made(golden("small_cnn"), 4)
        data["device_traces"] = [[]]
        self.assertRaisesRegex(snsim.Error, "_record_memory_history", self.compared, data, "small_cnn", 4)


class Evil:
    def __reduce__(self):
        return os.system, ("touch " + os.path.join(tempfile.gettempdir(), "snsim-evil"),)


class Reading(unittest.TestCase):
    def refused(self, data, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.pickle")
            with open(path, "wb") as file:
                file.write(data)
            with self.assertRaisesRegex(snsim.Error, text):
                _snapshot.load(path)

    def test_what_is_no_plain_value_is_refused_by_name(self):
        good = _snapshot.made(golden("small_cnn"), 4)
        for value, name in ((Evil(), "posix.system"), (collections.OrderedDict(), "collections.OrderedDict"), (Evil, "Evil"), (print, "print"),
                            (complex(1, 2), "complex")):
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                self.refused(pickle.dumps(dict(good, segments=[value]), protocol), f"it holds .*{name}")
        self.assertFalse(os.path.exists(os.path.join(tempfile.gettempdir(), "snsim-evil")))

    def test_other_forms_are_refused(self):
        for value, text in (([], "a list"), ({}, "segments is a NoneType"), ({"segments": [], "device_traces": {}}, "device_traces is a dict"),
                            ({"segments": [1], "device_traces": []}, "a segment is a int"),
                            ({"segments": [], "device_traces": [[{}]]}, "an action is a NoneType")):
            self.refused(pickle.dumps(value), text)
        self.refused(b"", "no snapshot")
        self.refused(b"{}", "no snapshot")
        self.assertRaisesRegex(snsim.Error, "No such file", _snapshot.load, "missing.pickle")

    def test_damaged_bytes_are_errors(self):
        whole = pickle.dumps(_snapshot.made(golden("small_cnn"), 4))
        for at in range(0, len(whole) - 1, 997):
            self.refused(whole[:at], ".")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.pickle")
            for at in range(0, min(len(whole), 60000), 101):
                with open(path, "wb") as file:
                    file.write(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:])
                try:
                    snsim.compare(golden("small_cnn"), path, batch=4)
                except snsim.Error:
                    pass


if __name__ == "__main__":
    unittest.main()
