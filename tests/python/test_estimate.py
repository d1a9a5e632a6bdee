"""snsim.estimate on the golden recordings and on names of the zoo: what the program's JSON says, as Python has it. No PyTorch."""
import csv
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCES, "python"))
import snsim  # noqa: E402
from snsim import _program  # noqa: E402

DATA = os.path.join(SOURCES, "tests", "record", "data")
BINARY = os.environ.get("SNSIM_BINARY") or os.path.join(SOURCES, "build", "snsim")


def golden(name):
    return os.path.join(DATA, f"{name}.rec.gz")


class Asking(unittest.TestCase):
    def setUp(self):
        self.before = dict(os.environ)
        os.environ["SNSIM_PROGRAM"] = BINARY

    def tearDown(self):
        os.environ.clear()
        os.environ.update(self.before)


class Answers(Asking):
    def test_peaks_are_those_beside_the_recordings(self):
        with open(os.path.join(DATA, "expected.csv"), newline="") as file:
            for row in csv.DictReader(file):
                with self.subTest(file=row["file"], batch=row["batch"]):
                    e = snsim.estimate(os.path.join(DATA, row["file"]), batch=int(row["batch"]), gpu="rtx4090")
                    self.assertEqual(e.row().live_bytes, int(row["peak_in_place"]))

    def test_the_version_is_the_programs(self):
        said = subprocess.run([BINARY, "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertEqual(said.split()[:2], ["snsim", snsim.__version__])

    def test_the_result_is_the_programs_answer(self):
        e = snsim.estimate(golden("resnet18"), batch=512, gpu="rtx4090", memory="8GiB")
        words = ["--net", golden("resnet18"), "--batch", "512", "--gpu", "rtx4090", "--memory", "8GiB", "--for", "pytorch", "--no-db"]
        said = subprocess.run([BINARY, *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        self.assertEqual(e.data, json.loads(said.stdout))
        screen = subprocess.run([BINARY, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        self.assertEqual(str(e), screen.stdout.decode())
        self.assertEqual((e.fits, e.verdict, said.returncode), (False, "no", 1))
        self.assertEqual(e.needed_bytes, e.data["answer"]["needed_bytes"])
        self.assertEqual(e.usable_bytes, 8 << 30)
        self.assertEqual([row.strategy for row in e], [row["strategy"] for row in e.data["results"]])
        self.assertEqual(e.row("pytorch").reserved_bytes, e.data["results"][0]["reserved_bytes"])
        self.assertTrue(any("backward()" in line for change in e.changes for line in change.calls))
        self.assertTrue(e.changes[0].options)
        self.assertIn("no, needs", repr(e))

    def test_the_largest_batch_fits_and_the_next_does_not(self):
        largest = snsim.estimate(golden("resnet18"), batch=64, gpu="rtx4090", memory="8GiB").largest_batch
        fits = [snsim.estimate(golden("resnet18"), batch=largest + more, gpu="rtx4090", memory="8GiB").fits for more in (0, 1)]
        self.assertEqual(fits, [True, False])

    def test_strategies_options_and_bytes(self):
        e = snsim.estimate(golden("small_cnn"), batch=8, gpu="rtx4090", strategy=["pytorch", "pytorch+recompute=units"],
                           memory=4 << 30)
        self.assertEqual([row.strategy for row in e.rows], ["pytorch", "pytorch+recompute=units"])
        self.assertEqual(e.usable_bytes, 4 << 30)
        self.assertTrue(e.fits)
        zoo = snsim.estimate("tv_resnet50", batch=64, gpu="rtx4090", precision="amp-bf16", optimizer="adamw")
        self.assertEqual((zoo.data["precision"], zoo.verdict, zoo.row().data["dialect"]), ("amp-bf16", "yes", "pytorch"))
        every = snsim.estimate(golden("small_cnn"), batch=8, gpu="rtx4090", for_="superneurons")
        self.assertGreater(len(every.rows), 4)
        self.assertRaises(KeyError, e.row, "baseline")
        self.assertRaises(AttributeError, lambda: e.rows[0].no_such_field)
        self.assertIn("least_device_bytes", dir(e.rows[0]))

    def test_a_run_is_stored_only_where_that_was_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_DATA_HOME"] = folder
            snsim.estimate(golden("small_cnn"), batch=8, gpu="rtx4090")
            self.assertEqual(os.listdir(folder), [])
            snsim.estimate(golden("small_cnn"), batch=8, gpu="rtx4090", db=os.path.join(folder, "runs.db"))
            self.assertEqual(os.listdir(folder), ["runs.db"])


class Looks(Asking):
    def test_pictures_and_pages_are_well_formed(self):
        e = snsim.estimate(golden("transformer"), batch=16, gpu="rtx4090")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.svg")
            drawn = e.plot(path)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), drawn.svg)
            self.assertRaisesRegex(snsim.Error, r"estimate\(.., name=", e.plot, os.path.join(folder, "a.png"))
        xml.dom.minidom.parseString(drawn.svg)
        self.assertEqual(drawn.svg.count("<polyline"), len(e.rows[:4]))
        self.assertEqual(e._repr_svg_(), drawn._repr_svg_())
        page = e._repr_html_()
        xml.dom.minidom.parseString(f"<html>{page}</html>")
        self.assertIn("YES", page)
        self.assertIn("GiB", drawn.svg)

    def test_a_line_of_many_steps_keeps_its_peak(self):
        from snsim import _picture
        steps = [{"device_bytes": number % 977, "number": number} for number in range(100000)]
        thin = _picture._thinned(steps)
        self.assertLessEqual(len(thin), _picture.MOST_POINTS)
        self.assertEqual(max(step["device_bytes"] for step in thin), 976)
        for most in (0.003, 0.5, 1, 4, 9.99, 77, 3000):
            self.assertTrue(2 <= most / _picture._nice(most) <= 6, most)


class Errors(Asking):
    def said(self, *args, **keywords):
        with self.assertRaises(snsim.Error) as caught:
            snsim.estimate(*args, **keywords)
        return caught.exception

    def test_what_the_program_says(self):
        error = self.said(golden("small_cnn"), batch=8, gpu="rtx409")
        self.assertEqual((error.status, str(error).startswith('unknown GPU "rtx409"')), (2, True))
        self.assertIn("unknown option --nonsense", str(self.said("tv_resnet50", batch=8, nonsense=3)))
        self.assertIn("--batch is missing", str(self.said(golden("small_cnn"))))
        self.assertEqual(self.said("missing.rec", batch=8).status, 3)
        self.assertIn("a list is no network", str(self.said([], batch=8)))

    def test_no_program(self):
        os.environ["SNSIM_PROGRAM"] = "/nowhere/snsim"
        self.assertIn("unset it", str(self.said("tv_resnet50", batch=8)))
        del os.environ["SNSIM_PROGRAM"]
        os.environ["PATH"] = ""
        there, _program._folders = _program._folders, lambda: iter(())
        try:
            self.assertIn("pip install", str(self.said("tv_resnet50", batch=8)))
        finally:
            _program._folders = there

    def test_a_program_that_dies_and_one_that_says_nothing_of_use(self):
        for body, wanted in (("exit 5", "status 5"), ("kill -9 $$", "status -9"), ("echo nonsense", "no JSON")):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "snsim")
                with open(path, "w") as file:
                    file.write(f"#!/bin/sh\n{body}\n")
                os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
                os.environ["SNSIM_PROGRAM"] = path
                self.assertIn(wanted, str(self.said("tv_resnet50", batch=8)))


class Importing(unittest.TestCase):
    def test_neither_the_package_nor_an_estimate_imports_torch(self):
        code = (f"import sys; sys.path.insert(0, {os.path.join(SOURCES, 'python')!r}); import snsim; snsim.estimate; snsim.Error; "
                "sys.exit('torch' in sys.modules)")
        self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False).returncode, 0)


if __name__ == "__main__":
    unittest.main()
