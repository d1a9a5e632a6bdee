"""What the recorder's tests share. Without PyTorch all of them are skipped."""
import contextlib
import importlib.util
import os
import pathlib
import tempfile
import unittest
import warnings

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = ROOT / "tests" / "record" / "data"
HAVE_TORCH = importlib.util.find_spec("torch") is not None
ALL = os.environ.get("SNSIM_PY_ALL") == "1"

if not HAVE_TORCH:
    raise unittest.SkipTest("PyTorch is not installed")

import oracle  # noqa: E402,F401  ahead of torch
import torch  # noqa: E402
import grammar  # noqa: E402
import replay  # noqa: E402
import snsim  # noqa: E402


def has(library):
    return importlib.util.find_spec(library) is not None


VERSION = tuple(map(int, torch.__version__.split(".")[:2]))
since_2_5 = unittest.skipIf(VERSION < (2, 5), "PyTorch 2.4 has not what is tested")


def needs(*libraries):
    missing = [library for library in libraries if not has(library)]
    return unittest.skipIf(missing, f"{', '.join(missing)} is not installed")


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as path:
        yield pathlib.Path(path)


class Case(unittest.TestCase):
    """Records into a folder of its own; every file that is recorded keeps the grammar."""

    if not hasattr(unittest.TestCase, "enterContext"):  # older than Python 3.11
        def enterContext(self, manager):
            entered = manager.__enter__()
            self.addCleanup(manager.__exit__, None, None, None)
            return entered

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(folder()))
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore")

    def recorded(self, *arguments, **options):
        """The file of snsim.record(...)."""
        options.setdefault("path", self.folder / "test.rec")
        snsim.record(*arguments, **options)
        return self.kept(options["path"])

    def kept(self, path):
        self.assertIsNone(grammar.wrong(path))
        return replay.File(path)

    def fails(self, text, *arguments, **options):
        """Recording must fail with that text."""
        with self.assertRaises(snsim.RecordingError) as caught:
            snsim.record(*arguments, **options)
        self.assertIn(text, str(caught.exception))
        return str(caught.exception)

    def assert_tracked(self, make, batch=4):
        """The peak of the file is MemTracker's."""
        file = self.recorded(make, batch=batch)
        self.assertEqual(replay.peak(file, batch), oracle.memtracker(make, batch))
        return file

    @staticmethod
    def kernels(file, phase=None):
        """Names of the kernels of all operations, in order."""
        return [file.kernels[op.kernel][0] for op in file.operations if phase is None or op.phase == phase]
