"""python -m snsim.record as the shell and the program call it."""
import contextlib
import importlib
import io
import os
import signal
import subprocess
import sys
import unittest
from unittest import mock

from support import ROOT, VERSION, Case

MODEL = """
import time
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)

class Slow(Net):
    def forward(self, x):
        print("begun", flush=True)
        time.sleep(60)
        return super().forward(x)

class Assuming(Net):
    def forward(self, x):
        x = super().forward(x)
        return x * x.sum().item()

def build():
    return Net()

class Numbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(8, 8)

    def forward(self, x):
        return self.words(x)

net = Net()
"""


class Command(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "model.py").write_text(MODEL)

    def started(self, *words):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        return subprocess.Popen([sys.executable, "-m", "snsim.record", *words], cwd=self.folder, env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ran(self, *words):
        child = self.started(*words)
        out, said = child.communicate(timeout=120)
        return child.returncode, out, said

    def test_says_that_it_begins(self):
        status, out, said = self.ran("model.py:Net", "--input", "8", "-o", "net.rec")
        self.assertEqual(status, 0)
        said = said.splitlines()
        self.assertEqual(said[0], "snsim.record: recording model.py:Net on fake tensors: seconds, of a large model minutes")
        self.assertTrue(all("it took" in line for line in said[1:]), said)  # on a busy machine
        self.assertIn("for any batch", out)

    def test_a_model_without_inputs(self):
        for name in ("Net", "net"):
            status, _, said = self.ran(f"model.py:{name}")
            self.assertEqual(status, 2)
            self.assertIn(f"model.py:{name} is a model, and --input is missing: add the sizes of a row", said)
        status, _, said = self.ran("model.py:build")
        self.assertEqual(status, 3)
        self.assertIn("--input 3,224,224", said)

    def test_what_was_assumed_is_told_once(self):
        status, out, said = self.ran("model.py:Assuming", "--input", "8", "-o", "a.rec")
        self.assertEqual((status, out.count("assumed at model.py:"), said.count("assumed")), (0, 1, 0), out + said)

    def test_what_is_no_model(self):
        """What was wrong, where, and what to type instead."""
        (self.folder / "wrong.py").write_text(MODEL + """
number = 3

def loop(batch):
    return [], [], lambda: None

class Sized(Net):
    def __init__(self, width, depth):
        super().__init__()

class Two(Net):
    def forward(self, x, y):
        return self.layer(x) + y

class Asserts(Net):
    def forward(self, x):
        assert x.dim() == 9
        return self.layer(x)

class Frozen(Net):
    def __init__(self):
        super().__init__()
        self.requires_grad_(False)
""")
        (self.folder / "broken.py").write_text("import torch\nimport nothing_there\n")
        (self.folder / "script.py").write_text("import sys\nsys.exit(1)\n")
        (self.folder / "weights.pt").write_bytes(b"")
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        for name in ("wrong", "broken", "script"):
            self.addCleanup(sys.modules.pop, name, None)
        for words, status, text in (
                (["weights.pt"], 2, "weights.pt: weights do not say what a model does: name the code that builds it, FILE.py:NAME"),
                (["weights.pt:Net"], 2, "weights do not say what a model does"), (["wrong.py"], 2, "wrong.py:make, or wrong.py:Net with --input"),
                (["meta-llama/x"], 2, "download that and take --config config.json"), (["none.py:make"], 3, "none.py: no such file"),
                (["wrong.py:Nothing"], 2, "wrong.py has no Nothing: it has Asserts, Assuming, Frozen, Net, Numbers"), (["wrong.py:number"], 3, "a int is no model"),
                (["broken.py:make"], 3, "broken.py:2: No module named 'nothing_there'"),
                (["script.py:make"], 3, "script.py ended while it was read: put what starts a training under if __name__"),
                (["wrong.py:Sized", "--input", "8"], 3, "Sized needs width and depth: give a function that builds it, def build(): return Sized(width=.., depth=..)"),
                (["wrong.py:loop", "--input", "8"], 3, "loop takes a batch, as what returns models, optimizers and a step: give it no inputs"),
                (["wrong.py:Two", "--input", "8"], 3, "an --input for each"),
                (["wrong.py:Net", "--input", "8,9"], 3, "wrong.py:11: "),
                (["wrong.py:Net", "--input", "8,9"], 3, "; in layer, Linear(in_features=8, out_features=8, bias=True); the model was given [2, 8, 9], batch first"),
                (["wrong.py:Asserts", "--input", "8"], 3, "this fails: assert x.dim() == 9; the model was given [2, 8], batch first"),
                (["wrong.py:Frozen", "--input", "8"], 3, "Frozen has no parameter that is trained: take train=False, in the shell --inference")):
            said = io.StringIO()
            with self.subTest(words), contextlib.redirect_stderr(said), mock.patch.object(sys, "path", sys.path[:]):
                with self.assertRaises(SystemExit) as left:
                    importlib.import_module("snsim.record").main(words)
                self.assertEqual(left.exception.code, status)
                self.assertIn(text, said.getvalue())

    @unittest.skipIf(VERSION == (2, 8), "fakes of PyTorch 2.8 are looked up by any number")
    def test_numbers_that_are_looked_up_are_whole(self):
        status, _, said = self.ran("model.py:Numbers", "--input", "8", "-o", "a.rec")
        self.assertEqual(status, 3)
        self.assertIn("give whole ones: torch.zeros(2, 128, dtype=torch.long), in the shell --input 128:int64", said)

    def test_interrupted(self):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts behind & has it ignored, and so would the child
        self.addCleanup(signal.signal, signal.SIGINT, before)
        child = self.started("model.py:Slow", "--input", "8", "-o", "slow.rec")
        self.assertEqual(child.stdout.readline(), "begun\n")
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130)
        self.assertEqual(said.splitlines()[-1], "snsim.record: error: interrupted: nothing was kept")
        self.assertFalse((self.folder / "slow.rec").exists())


if __name__ == "__main__":
    unittest.main()
