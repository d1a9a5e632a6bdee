"""bench/gpu: what measures PyTorch's kernels and a GPU's rates, as far as it goes without one: snsim's side, the kernels that a CPU calls, and the
logic around an allocator that is pretended. Skipped without PyTorch."""
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import unittest
import warnings
from unittest import mock

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("SNSIM_BINARY") or os.path.join(SOURCES, "build", "snsim")
SCRIPT = os.path.join(SOURCES, "bench", "gpu", "pytorch_kernels.py")
sys.path[:0] = [os.path.join(SOURCES, "bench", "gpu"), os.path.join(SOURCES, "bench"), os.path.join(SOURCES, "python")]

if importlib.util.find_spec("torch") is None:
    print("skipped: no PyTorch")
    sys.exit(77)

import torch  # noqa: E402

import attention  # noqa: E402
import gpu_rates  # noqa: E402
import pytorch_eager  # noqa: E402
import pytorch_kernels  # noqa: E402
import shortage  # noqa: E402
import workspaces  # noqa: E402
from attention import Case  # noqa: E402
from snsim._lives import Ask  # noqa: E402

MIB = 2**20
OUT_OF_MEMORY = torch.cuda.OutOfMemoryError("CUDA out of memory")
NO_ENGINE = RuntimeError("GET was unable to find an engine to execute this computation")


class Attention(unittest.TestCase):
    def test_kernels_by_operations(self):
        for names, kernel in ((["aten.view.default", "aten._scaled_dot_product_cudnn_attention.default"], "cudnn"),
                              (["aten._scaled_dot_product_flash_attention_for_cpu.default"], "flash"),
                              (["aten._scaled_dot_product_fused_attention_overrideable.default"], "fused"),
                              (["aten._scaled_dot_product_flash_attention_backward.default"], "unknown"),
                              (["aten.bmm.default", "aten._safe_softmax.default"], "math"), ([], "unknown")):
            self.assertEqual(attention.kernel_of(names), kernel, names)

    def test_recorder(self):
        """An output of 2 x 8 x 512 x 64, and a float for each of its rows; 24 or 16 bytes are of seeds, 8 fewer in PyTorch 2.4."""
        numbers, rows = 2 * 8 * 512 * 64, 2 * 8 * 512
        cases = ((Case("bf16"), "flash", 2 * numbers + 4 * rows + 24), (Case("fp32"), "efficient", 4 * numbers + 4 * rows + 16),
                 (Case("bf16", mask="bool"), "efficient", 2 * numbers + 4 * rows + 16 + 2 * 512 * 512),
                 (Case("bf16", 63), "flash", 4 * 2 * numbers + 4 * rows + 24), (Case("bf16", mask="bool", size=63), "math", None),
                 (Case("amp-bf16"), "flash", 4 * 2 * numbers + 4 * rows + 24))
        for case, kernel, kept in cases:
            with mock.patch.object(attention, "CASES", [case]), self.subTest(case.name):
                (row,) = attention.recorded(90)
                self.assertEqual((row["case"], row["kernel"]), (case.name, kernel))
                self.assertIn((kept or row["kept_bytes"]) - row["kept_bytes"], (0, 8) if torch.__version__ < "2.5" else (0,))
                self.assertLessEqual(row["kept_bytes"], row["forward_peak_bytes"])
        with mock.patch.object(attention, "CASES", [Case("fp16"), Case("bf16")]):
            self.assertEqual([row["kernel"] for row in attention.recorded(75)], ["efficient", "math"])

    def test_figures(self):
        """10 were there; forward makes 5 and 3 and lets 3 go; backward makes 4; what is let go behind it is not forward's."""
        asks = [Ask(True, 0, 10, "value", 0, 0, 0), Ask(True, 1, 5, "aten.a", 0, 0, 0), Ask(True, 2, 3, "aten.b", 0, 0, 0), Ask(False, 2, 3, "aten.b", 0, 0, 0),
                Ask(True, 3, 4, "aten.c", 0, 1, 0), Ask(False, 1, 5, "aten.a", 0, 1, 0), Ask(True, 4, 90, "aten.d", 0, 0, 0)]
        lives = mock.Mock(asks=lambda workspaces: iter(asks))
        self.assertEqual(attention.figures_of(lives), {"kept_bytes": 5, "forward_peak_bytes": 8, "backward_peak_bytes": 9})
        lives = mock.Mock(asks=lambda workspaces: iter([asks[1], asks[5]]))  # backward makes nothing
        self.assertEqual(attention.figures_of(lives), {"kept_bytes": 5, "forward_peak_bytes": 5, "backward_peak_bytes": 5})

    def test_on_a_cpu(self):
        self.assertEqual(attention.measured(Case("fp32", queries=8), "cpu", None)["kernel"], "flash")
        self.assertEqual(attention.measured(Case("fp32", queries=8, dropout=0.1), "cpu", None)["kernel"], "math")
        with mock.patch.object(attention, "forward", side_effect=OUT_OF_MEMORY):
            self.assertEqual(attention.measured(Case("fp32", queries=8), "cpu", None)["failed"], "CUDA out of memory")

    def test_bytes(self):
        """By an allocator that is pretended: 100 are there, forward takes 30 and keeps 20, backward takes 60."""
        memory = mock.Mock(now=mock.Mock(side_effect=[100, 120]), peak=mock.Mock(side_effect=[130, 160]))
        row = attention.measured(Case("fp32", queries=8), "cpu", memory)
        self.assertEqual(memory.restart.call_count, 2)
        self.assertEqual([row[key] for key in attention.FIGURES], [20, 30, 60])

    def test_every_case_is_another(self):
        self.assertEqual(len({case.name for case in attention.CASES}), len(attention.CASES))


class Workspaces(unittest.TestCase):
    LAYER = workspaces.Layer(1, 4, 6, 4, 3)  # input, output and filter have 576 bytes

    def test_measured(self):
        """The first call of each kernel takes 100 bytes more than the second, which takes 50."""
        memory = mock.Mock(now=mock.Mock(side_effect=[1000, 1000 + 3 * 576] + [5000] * 6), peak=mock.Mock(side_effect=[5000 + 576 + n for n in (150, 50)] * 3))
        row = workspaces.measured(self.LAYER, "fp32", "cpu", memory)
        self.assertEqual(row, {"layer": "1 x 4 x 6^2 to 4, 3x3", "numbers": "fp32", "tensor_bytes": 3 * 576} | {
            f"{kernel}_{form}bytes": count for kernel in ("forward", "data", "filter") for form, count in (("", 50), ("first_", 150))})

    def test_kernels(self):
        for layer in (self.LAYER, workspaces.Layer(2, 8, 9, 8, 5, 2, 8), workspaces.Layer(2, 8, 9, 16, 1, 2, 1, True)):
            torch.manual_seed(3)
            works = workspaces.works_of(layer, "fp32", "cpu")
            with self.subTest(layer.name):
                rows = (layer.extent - 1) // layer.stride + 1
                self.assertEqual(works["forward"]().shape, (layer.batch, layer.outputs, rows, rows))
                self.assertEqual(works["data"]().shape, (layer.batch, layer.inputs, layer.extent, layer.extent))
                self.assertEqual(works["filter"]().shape, (layer.outputs, layer.inputs // layer.groups, layer.window, layer.window))

    def test_failure(self):
        memory = mock.Mock(now=mock.Mock(return_value=0), peak=mock.Mock(side_effect=NO_ENGINE))
        self.assertIn("unable to find", workspaces.measured(self.LAYER, "fp32", "cpu", memory)["failed"])

    def test_predicted(self):
        """144 (tiles (c + k) + k c) bytes, where four by four pixels are a tile; none in two bytes."""
        layer = workspaces.Layer(64, 64, 56, 64, 3)
        rule = 144 * (64 * 14 * 14 * 128 + 64 * 64)
        self.assertEqual(workspaces.predicted(PROGRAM, "h200", layer, "fp32"), {"forward_bytes": rule, "backward_bytes": rule})
        self.assertEqual(workspaces.predicted(PROGRAM, "h200", layer, "fp16"), {"forward_bytes": 0, "backward_bytes": 0})
        with self.assertRaisesRegex(RuntimeError, "no such"):
            workspaces.predicted(PROGRAM, "no such gpu", layer, "fp32")


class Pretended:
    """An allocator in whose memory a training runs that needs so much and would take more."""

    def __init__(self, needs, takes, total=10**12):
        self.needs, self.takes, self.total, self.tries = needs, takes, total, 0
        self.limit(None)

    def limit(self, count):
        self.room = self.total if count is None else count

    def empty(self):
        pass

    def train(self, kind, batch, device, memory):
        self.tries += 1
        if self.room < self.needs:
            raise NO_ENGINE if self.tries % 2 else OUT_OF_MEMORY
        taken = min(self.takes, self.room)
        return {"peak_bytes": taken, "held_bytes": taken, "ms": 1.0}


class Shortage(unittest.TestCase):
    def measured(self, memory, workspace, train=None):
        with mock.patch.object(shortage, "train", train or memory.train), mock.patch.object(shortage, "workspace_of", return_value=workspace):
            return shortage.measured("tf32", "cpu", memory)

    def test_falls_back(self):
        memory = Pretended(1000 * MIB, 9000 * MIB)
        row = self.measured(memory, 8000 * MIB)
        self.assertEqual((row["found"], row["enough"]["held_bytes"]), (shortage.FELL_BACK, 9000 * MIB))
        self.assertTrue(1000 * MIB <= row["least_bytes"] <= 1064 * MIB, row)
        self.assertEqual(row["least"]["held_bytes"], row["least_bytes"])
        self.assertLess(memory.tries, 12)
        self.assertEqual(memory.room, memory.total)

    def test_does_not(self):
        for workspace, found in ((500 * MIB, shortage.NEEDS_ALL), (MIB, shortage.NOTHING_TO_SPARE)):
            row = self.measured(Pretended(2000 * MIB, 2000 * MIB), workspace)
            self.assertEqual((row["found"], row["least_bytes"]), (found, 2000 * MIB))

    def test_failures(self):
        self.assertIn("too little memory", self.measured(Pretended(2000, 2000, total=100), 0)["failed"])
        self.assertEqual(self.measured(Pretended(1, 1), 0, mock.Mock(side_effect=RuntimeError("an illegal address")))["failed"], "an illegal address")

    def test_trains_on_a_cpu(self):
        memory = mock.Mock(peak=lambda: 7, held=lambda: 8)
        with mock.patch.object(shortage, "EXTENT", 8):
            row = shortage.train("fp32", 2, "cpu", memory)
        self.assertEqual((row["peak_bytes"], row["held_bytes"]), (7, 8))
        self.assertEqual(memory.wait.call_count, 2)

    def test_predicted(self):
        said = shortage.predicted(PROGRAM, "h200", "fp32")
        whole = workspaces.ask(PROGRAM, "h200", shortage.NETWORK, shortage.BATCH, "fp32", "--optimizer", "sgd", "--context", "0")
        self.assertEqual((said["least_bytes"], said["device_bytes"]), (whole["least_device_bytes"], whole["peak_device_bytes"]))
        self.assertEqual(said["workspace_bytes"], 144 * (167 * 56 * 56 * 128 + 64 * 64))
        self.assertLess(said["least_bytes"] + said["workspace_bytes"], said["device_bytes"])

    def test_largest_batch_falls_short(self):
        """bench/pytorch_eager.py --largest, where a convolution has no engine that fits."""
        options = mock.Mock(net="net")
        with contextlib.redirect_stderr(io.StringIO()):
            for error in (OUT_OF_MEMORY, NO_ENGINE):
                with mock.patch.object(pytorch_eager, "train", side_effect=error):
                    self.assertFalse(pytorch_eager.fits(options, 8))
            with mock.patch.object(pytorch_eager, "train", side_effect=RuntimeError("other")), self.assertRaisesRegex(RuntimeError, "other"):
                pytorch_eager.fits(options, 8)


class Script(unittest.TestCase):
    def run_script(self, *words, code=0):
        done = subprocess.run([sys.executable, "-B", SCRIPT, *words], capture_output=True, text=True, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_refusals(self):
        self.assertIn("pytorch_kernels.py: error: PyTorch finds no GPU", self.run_script(code=4))
        self.assertIn("--only attention", self.run_script("--device", "cpu", code=2))
        self.assertIn("there are attention, workspaces, shortage", self.run_script("--only", "attention,other", code=2))

    def test_attention_on_a_gpu_pretended(self):
        """The recorder's side comes from a process of its own, or its last words."""
        options, row = mock.Mock(device="cuda"), {"case": "c", "kernel": "flash"}
        with mock.patch.object(pytorch_kernels, "warmed_up", return_value={}), mock.patch.object(torch.cuda, "get_device_capability", return_value=(9, 0)), \
                mock.patch.object(attention, "measured", return_value=row):
            with mock.patch.object(pytorch_kernels.subprocess, "run") as run:
                run.return_value = mock.Mock(returncode=0, stdout=json.dumps({"recorded": [row] * len(attention.CASES)}))
                found = pytorch_kernels.attention_part(options, None)
                self.assertEqual(found["attention"], [{"pytorch": row, "snsim": row}] * len(attention.CASES))
                self.assertIn("90", run.call_args.args[0])
                run.return_value = mock.Mock(returncode=1, stderr="Traceback\nImportError: no snsim\n")
                found = pytorch_kernels.attention_part(options, None)
                self.assertEqual((found["recorder_failed"], found["attention"][0]), ("ImportError: no snsim", {"pytorch": row}))

    def test_allocator(self):
        """The figures have their names in this PyTorch, and limits are shares."""
        self.assertIn("requested_bytes.{all", torch.cuda.memory_stats.__doc__)
        memory = pytorch_kernels.Memory()
        with mock.patch.object(torch.cuda, "mem_get_info", return_value=(5, 1000)), mock.patch.object(torch.cuda, "set_per_process_memory_fraction") as share:
            for limit in (None, 250, 4000):
                memory.limit(limit)
        self.assertEqual([call.args for call in share.call_args_list], [(1.0,), (0.25,), (1.0,)])


class Event:
    """Two of them are always 6 ms apart."""

    def __init__(self, enable_timing):
        self.timed = enable_timing

    def record(self):
        self.timed = self.timed and "recorded"

    def elapsed_time(self, later):
        return 6.0 if self.timed == later.timed == "recorded" else 0.0


class Rates(unittest.TestCase):
    def setUp(self):
        """Tensors of a CPU in place of the GPU's and of pinned ones."""
        patches = {"Event": Event, "_sleep": lambda cycles: None, "synchronize": lambda: None, "Stream": mock.MagicMock(),
                   "current_stream": mock.MagicMock(), "stream": lambda stream: contextlib.nullcontext(), "is_bf16_supported": lambda: True,
                   "get_device_properties": lambda device: mock.Mock(total_memory=2**34, multi_processor_count=7)}
        for name, value in patches.items():
            self.enterPatch(mock.patch.object(torch.cuda, name, value))
        for name in ("randn", "empty", "zeros"):
            real = getattr(torch, name)
            self.enterPatch(mock.patch.object(torch, name, lambda *sizes, device=None, pin_memory=None, real=real, **more: real(*sizes, **more)))
        runtime = mock.Mock(cudaMalloc=mock.Mock(return_value=0), cudaFree=mock.Mock(return_value=0))
        self.enterPatch(mock.patch.object(gpu_rates, "load", lambda *names: runtime))
        self.enterPatch(mock.patch.object(gpu_rates, "nvml", mock.MagicMock()))
        self.runtime = runtime

    def enterPatch(self, patch):
        patch.start()
        self.addCleanup(patch.stop)

    def test_of_calls_that_take_two_milliseconds(self):
        row = gpu_rates.measure(small=True)
        self.assertEqual({word: round(rate) for word, rate in row["flops"].items()}, dict.fromkeys(("fp32", "tf32", "bf16", "fp16"), 128**3 * 1000))
        self.assertEqual([round(row[f"{key}_bytes_per_s"]) for key in ("copy", "out", "in", "together")],
                         [2**24 * 1000, 2**21 * 1000, 2**21 * 1000, 2**22 * 1000])
        self.assertEqual((row["copy_latency_ns"], row["launch_ns"], row["memory_bytes"], row["multiprocessors"]), (60_000, 12_000, 2**34, 7))
        sizes = {call.args[1].value for call in self.runtime.cudaMalloc.call_args_list}
        self.assertEqual((sizes, self.runtime.cudaFree.call_count), ({2**20}, self.runtime.cudaMalloc.call_count))
        self.assertGreater(row["malloc_ns"] * row["free_ns"], 0)

    def test_a_failing_allocation(self):
        self.runtime.cudaMalloc.return_value = 2
        with self.assertRaisesRegex(gpu_rates.Missing, "cudaMalloc failed with code 2"):
            gpu_rates.measure(small=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
