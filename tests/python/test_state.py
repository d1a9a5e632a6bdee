"""Afterwards everything is as before: after success, an error, Ctrl-C. And what is refused says where and what to do."""
import contextlib
import gc
import importlib
import io
import logging
import os
import random
import subprocess
import sys
import unittest
import unittest.mock
import warnings

from support import ROOT, Case

import torch
import torch.autograd.graph
from torch import nn
from torch._subclasses import fake_tensor
from torch.optim.optimizer import _foreach_supported_types
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

import models
import snsim
from snsim._device import guards_of_devices
from snsim._session import Session


class Stopping(nn.Module):
    """Ends its second call by something."""

    def __init__(self, error=None):
        super().__init__()
        self.linear, self.norm, self.error, self.calls = nn.Linear(16, 16), nn.BatchNorm1d(16), error, 0
        self.register_buffer("counter", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls += 1
        random.random()
        torch.rand(3)
        self.counter += 1
        if self.error is not None and self.calls == 2:
            raise self.error
        return self.norm(self.linear(x))


def patched():
    """Everything that recording replaces."""
    owners = (torch.autograd, torch.autograd.graph, torch.nn.Module, torch.nn.RNNBase, torch.backends.cudnn, torch.cuda, fake_tensor,
              fake_tensor.FakeTensorMode, torch.autograd.Function)
    found = [dict(vars(owner)) for owner in owners]
    for attributes in found:
        for volatile in ("cache_hits", "cache_misses", "cache_bypasses"):
            attributes.pop(volatile, None)  # FakeTensorMode counts
    return found


class State:
    """What must not change."""

    def __init__(self, model):
        self.model, self.tensors = model, {name: (value, value.clone(), value.data_ptr()) for name, value in model.state_dict(keep_vars=True).items()}
        self.modes = [module.training for module in model.modules()]
        self.patched, self.random, self.generator = patched(), random.getstate(), torch.get_rng_state()
        self.foreach, self.available, self.collects = list(_foreach_supported_types), torch.cuda.is_available(), gc.isenabled()
        self.filters = list(warnings.filters), list(logging.getLogger("torch._subclasses.fake_tensor").filters)

    def compare(self, case):
        for name, value in self.model.state_dict(keep_vars=True).items():
            kept, copy, pointer = self.tensors[name]
            case.assertIs(value, kept)
            case.assertTrue(torch.equal(value, copy))
            case.assertEqual(value.data_ptr(), pointer)
            case.assertIsNone(value.grad)
        case.assertEqual([module.training for module in self.model.modules()], self.modes)
        for before, after in zip(self.patched, patched()):
            case.assertEqual({key for key in before if before[key] is not after.get(key)} | (set(after) - set(before)), set())
        case.assertEqual(random.getstate(), self.random)
        case.assertTrue(torch.equal(torch.get_rng_state(), self.generator))
        case.assertEqual(_foreach_supported_types, self.foreach)
        case.assertEqual((torch.cuda.is_available(), gc.isenabled()), (self.available, self.collects))
        case.assertEqual((list(warnings.filters), list(logging.getLogger("torch._subclasses.fake_tensor").filters)), self.filters)
        case.assertEqual(_get_current_dispatch_mode_stack(), [])
        case.assertEqual(torch._C._len_torch_function_stack(), 0)


class AsBefore(Case):
    def setUp(self):
        super().setUp()
        self.recorded(models.small_cnn)  # what PyTorch imports and sets up when it is first asked

    def check(self, model, raised=None, **options):
        state = State(model)
        if raised is None:
            self.recorded(model, ((4, 16),), **options)
        else:
            with self.assertRaises(raised):
                self.recorded(model, ((4, 16),), **options)
        state.compare(self)

    def test_success(self):
        for model in (Stopping(), Stopping().eval()):
            self.check(model, optimizer=torch.optim.AdamW)
            self.check(model, train=False)
            self.check(model, check=True, autocast=torch.float16)

    def test_guard(self):
        """C++'s guards of devices are put back; within, the current GPU is the first, so that going there makes nothing."""
        before = list(guards_of_devices())
        with Session():
            x = torch.empty(2, device="cuda:0")
            self.assertIs(x.to("cuda"), x)
            self.assertEqual(x[0].device, torch.device("cuda", 0))
        self.assertEqual(list(guards_of_devices()), before)

    def test_error(self):
        self.check(Stopping(ValueError("mine")), snsim.RecordingError)

    def test_interrupted(self):
        for error in (KeyboardInterrupt(), SystemExit(3)):
            self.check(Stopping(error), type(error))

    def test_error_in_the_loss(self):
        self.check(Stopping(), snsim.RecordingError, loss=lambda y: y.no_such_thing)

    def test_error_in_backward(self):
        class Bad(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                raise KeyboardInterrupt
        self.check(Stopping(), KeyboardInterrupt, loss=lambda y: Bad.apply(y).sum())

    def test_error_in_the_optimizer(self):
        def optimizer(parameters):
            raise ZeroDivisionError
        self.check(Stopping(), snsim.RecordingError, optimizer=optimizer)

    def test_error_in_a_loop_of_ones_own(self):
        model = Stopping(KeyboardInterrupt())
        state = State(model)
        optimizer = torch.optim.AdamW(model.parameters())
        with self.assertRaises(KeyboardInterrupt), snsim.recording(self.folder / "a.rec", models=[model], optimizers=[optimizer]) as r:
            r.step(lambda: model(torch.zeros(2, 16).cuda()).sum().backward())
        state.compare(self)
        self.assertFalse((self.folder / "a.rec").exists())
        self.assertIs(optimizer.param_groups[0]["params"][0], model.linear.weight)

    def test_afterwards_it_trains(self):
        model = Stopping()
        self.recorded(model, ((4, 16),))
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.randn(4, 16)).sum().backward()
        optimizer.step()

    def test_the_collector_stays_off(self):
        gc.disable()
        try:
            self.check(Stopping())
        finally:
            gc.enable()

    def test_one_at_a_time(self):
        def nested(batch):
            snsim.record(models.small_cnn)
        self.fails("one at a time", nested)
        self.recorded(models.small_cnn)




class Refused(Case):
    """The text has the user's line and a way out."""

    def check(self, expected, forward, **options):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 16)

        Model.forward = forward
        text = self.fails(expected, Model(), ((4, 16),), **options)
        self.assertRegex(text, r"^(test_state|support)\.py:\d+: ")
        return text

    def test_numpy(self):
        self.check("keep them out of the step", lambda self, x: torch.tensor(self.linear(x).detach().cpu().numpy()))

    def test_no_fake_kernel(self):
        library = torch.library.Library("snsim_test", "FRAGMENT")
        library.define("nothing(Tensor x) -> Tensor")
        library.impl("nothing", lambda x: x.clone(), "CompositeExplicitAutograd")
        library.impl("nothing", lambda x: x.clone(), "CUDA")
        library.define("none(Tensor x) -> Tensor")
        library.impl("none", lambda x: x.clone(), "CPU")
        text = self.check("torch.library.register_fake", lambda self, x: torch.ops.snsim_test.none(x))
        self.assertIn("snsim_test", text)

    def test_left_on_the_cpu(self):
        constant = torch.ones(16)
        self.check("a tensor was left on the CPU", lambda self, x: self.linear(x) * constant)

    def test_sizes_by_values(self):
        self.check("depends on values", lambda self, x: torch.bincount(self.linear(x).argmax(1)).sum() * 1.0)

    def test_an_error_of_ones_own(self):
        self.check("'Model' object has no attribute 'nothing'", lambda self, x: self.nothing(x))

    def test_an_assertion_of_a_value(self):
        def forward(self, x):
            y = self.linear(x)
            assert (y > 0).any()
            return y
        self.check("assumed ahead of it: a number read from the GPU is False, test_state.py:", forward)

    def test_loss(self):
        self.check("not a tensor of one number", lambda self, x: self.linear(x), loss=lambda y: y)
        self.check("the loss depends on nothing that is trained", lambda self, x: self.linear(x).detach())
        self.check("no floating tensor", lambda self, x: None)

    def test_distributed_by_name(self):
        for name in ("DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule", "DataParallel"):
            model = nn.Sequential(type(name, (nn.Module,), {})())
            self.fails(f"{name} cannot be recorded", model, ((4, 16),))

    def test_dtensor(self):
        class DTensor(nn.Parameter):
            pass
        model = nn.Linear(4, 4)
        model.weight = DTensor(torch.zeros(4, 4))
        self.fails("a DTensor cannot be recorded", model, ((4, 4),))

    def test_what_it_is_called_with(self):
        self.fails("a model needs inputs", nn.Linear(4, 4))
        self.fails("a str is no model: give a module, or a function that returns", "mymodel.py:Net")
        self.fails("must return models, optimizers and a step", lambda batch: None)
        self.fails("at least 1", models.small_cnn, iterations=0)
        self.fails("is no model", 3, ((4, 4),))
        self.fails("returned a int, no module", lambda: 3, ((4, 4),))
        self.fails("inputs are a tensor", nn.Linear(4, 4), 3)
        with self.assertRaises(snsim.RecordingError), snsim.recording(self.folder / "a.rec"):
            pass

    def test_sparse(self):
        model = nn.Embedding(10, 4, sparse=True)
        self.fails("sparse=False", model, (torch.zeros(4, dtype=torch.long),))

    def test_warned(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            snsim.record(nn.Linear(4, 4), ((4, 4),), loss=lambda y: y.sum() * (2.0 if y.max() > 1 else 1.0))
        told = [str(one.message) for one in caught if one.category.__name__ == "RecordingWarning"]
        self.assertEqual(len(told), 1)
        self.assertRegex(told[0], r"^test_state\.py:\d+: assumed: ")


class Shell(Case):
    def setUp(self):
        super().setUp()
        self.enterContext(unittest.mock.patch.object(sys, "path", list(sys.path)))

    def run_it(self, *arguments):
        return subprocess.run([sys.executable, "-W", "ignore", "-m", "snsim.record", *map(str, arguments)], capture_output=True, text=True,
                              cwd=self.folder, env={"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"})

    def recorded_alone(self, done):
        """It says that it records, and on a busy machine how long that took."""
        self.assertEqual(done.returncode, 0)
        for line in done.stderr.splitlines():
            self.assertTrue(line.startswith(("snsim.record: recording ", "snsim.record: it took ")), done.stderr)

    def test_recorded(self):
        source = self.folder / "train.py"
        source.write_text("import torch\n\nNet = lambda: torch.nn.Linear(8, 8)\n\ndef make(batch):\n    m = Net()\n"
                          "    return [m], [], lambda: m(torch.randn(batch, 8, device='cuda')).sum().backward()\n")
        done = self.run_it(f"{source}:make", "-o", "a.rec")
        self.recorded_alone(done)
        self.assertIn("for any batch", done.stdout)
        self.kept(self.folder / "a.rec")
        done = self.run_it(f"{source}:Net", "--input", "8", "--optimizer", "adamw", "--batch", 4)
        self.recorded_alone(done)
        self.assertEqual(self.kept(self.folder / "Net.rec").header["batches"], [4])

    def test_refused(self):
        shell = importlib.import_module("snsim.record")
        (self.folder / "train.py").write_text("def make():\n    raise ValueError('mine')\n")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for code, text, arguments in ((3, "train.py:2: mine", ("train.py:make",)), (2, "it has make", ("train.py:none",)),
                                      (2, "FILE.py:NAME", ("train.py",)), (3, "no such file", ("no.py:make",)),
                                      (2, "--input", ("train.py:make", "--input", "a"))):
            told = io.StringIO()
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(told):
                shell.main(list(arguments))
            self.assertEqual(ended.exception.code, code, told.getvalue())
            self.assertIn(text, told.getvalue())
        self.recorded(models.small_cnn)  # the function and the module have one name

    def test_imported_without_pytorch(self):
        done = subprocess.run([sys.executable, "-c", "import sys, snsim; assert 'torch' not in sys.modules; print(snsim.__all__)"],
                              capture_output=True, text=True, env={"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
