"""Kernels of a trace of torch.profiler by kind (bench/timing/profiled.py): of traces by hand, without PyTorch; and of networks that
PyTorch and timm train on the CPU, beside their recordings."""
import importlib.util
import os
import pathlib
import sys
import tempfile
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCES / "bench"), str(SOURCES / "python")]

from timing import kinds, operations, profiled  # noqa: E402

COMPOSED = {"conv2d", "linear", "to", "batch_norm"}


class Trace:
    """Calls of a thread, and kernels that they launch, as export_chrome_trace() writes them."""

    def __init__(self):
        self.events = []

    def call(self, name, ts, dur, number, sizes=(), category="cpu_op"):
        self.events.append({"ph": "X", "cat": category, "name": name, "tid": 1, "ts": ts, "dur": dur,
                            "args": {"External id": number, "Input Dims": list(sizes)}})

    def launch(self, ts, correlation):
        self.events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "ts": ts, "dur": 1,
                            "args": {"correlation": correlation}})

    def kernel(self, ts, dur, category="kernel", **args):
        self.events.append({"ph": "X", "cat": category, "name": f"k{ts}", "tid": 7, "ts": ts, "dur": dur,
                            "args": {name.replace("_", " "): value for name, value in args.items()}})

    def kernels(self):
        return profiled.kernels_of(self.events, profiled.Calls(self.events))

    def kinds(self):
        sums = profiled.by_kind(self.kernels(), COMPOSED.__contains__)
        return {kind: (s.kernels, s.us) for kind, s in sums.items()}


def convolution(x, weight, backward=False):
    made = Trace()
    sizes = [x, x, weight, []] if backward else [x, weight, [], []]
    made.call("aten::convolution" + "_backward" * backward, 0, 10, 1, sizes)
    made.kernel(100, 5, External_id=1)
    return made.kinds()


class ByHand(unittest.TestCase):
    def test_convolutions_are_told_apart_by_their_sizes(self):
        for x, weight, kind in (([8, 64, 7, 7], [32, 64, 3, 3], "dense"), ([8, 3, 7, 7], [32, 3, 3, 3], "stem"),
                                ([8, 32, 7, 7], [32, 1, 3, 3], "dw"), ([8, 64, 7, 7], [64, 16, 3, 3], "grouped")):
            self.assertEqual(convolution(x, weight), {f"{kind}_fwd": (1, 5)})
            self.assertEqual(convolution(x, weight, True), {f"{kind}_bwd": (1, 5)})

    def test_what_an_operator_calls_is_its_own(self):
        made = Trace()
        made.call("aten::conv2d", 0, 90, 1)
        made.call("aten::convolution", 1, 80, 2, [[8, 64, 7, 7], [32, 64, 3, 3], []])
        made.call("aten::cudnn_convolution", 2, 30, 3)
        made.call("aten::add_", 40, 10, 4)
        made.call("aten::to", 100, 50, 5)
        made.call("aten::_to_copy", 101, 40, 6)
        made.call("aten::copy_", 102, 30, 7)
        for number, ts in ((3, 200), (4, 210), (7, 220)):
            made.kernel(ts, 4, External_id=number)
        self.assertEqual(made.kinds(), {"dense_fwd": (2, 8), "cast": (1, 4)})

    def test_what_is_cloned_for_backward_is_a_copy(self):
        made = Trace()
        made.call("aten::silu_", 0, 50, 1)
        made.call("aten::clone", 1, 20, 2)
        made.call("aten::copy_", 2, 10, 3)
        made.kernel(100, 3, External_id=3)
        made.kernel(110, 5, External_id=1)
        self.assertEqual(made.kinds(), {"copy": (1, 3), "elementwise": (1, 5)})

    def test_an_indexs_backward(self):
        made = Trace()
        made.call("IndexBackward0", 0, 50, 1)
        made.call("aten::_index_put_impl_", 1, 20, 2)  # of fakes it is index_put
        made.kernel(100, 3, External_id=2)
        self.assertEqual(made.kinds(), {"index": (1, 3)})

    def test_products(self):
        made = Trace()
        made.call("aten::linear", 0, 50, 1)
        made.call("aten::addmm", 1, 40, 2, [[64], [8, 32], [32, 64], [], []])
        made.call("aten::bmm", 60, 10, 3, [[8, 4, 4], [8, 4, 4]])
        made.kernel(100, 3, External_id=2)
        made.kernel(110, 5, External_id=3)
        self.assertEqual(made.kinds(), {"product": (1, 3), "bmm": (1, 5)})

    def test_the_optimizers(self):
        made = Trace()
        made.call("Optimizer.step#SGD.step", 0, 50, 1, category="user_annotation")
        made.call("aten::_foreach_add_", 1, 40, 2)
        made.call("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 60, 20, 3)
        made.call("aten::add_", 61, 10, 4)
        made.kernel(100, 3, External_id=2)
        made.kernel(110, 5, External_id=4)
        self.assertEqual(made.kinds(), {"optimizer": (2, 8)})

    def test_a_launch_tells_where_no_number_does(self):
        made = Trace()
        made.call("aten::relu", 0, 10, 1)
        made.launch(5, 77)
        made.launch(20, 78)
        made.kernel(100, 3, correlation=77)
        made.kernel(110, 5, correlation=78)
        self.assertEqual(made.kinds(), {"elementwise": (1, 3), "untold": (1, 5)})

    def test_a_number_that_is_the_launchs_is_no_calls(self):
        made = Trace()
        made.call("aten::relu", 0, 10, 1)
        made.call("aten::bmm", 20, 10, 2, [[8, 4, 4], [8, 4, 4]])
        made.launch(5, 2)
        made.launch(25, 1)
        made.kernel(100, 3, External_id=2, correlation=2)
        made.kernel(110, 5, External_id=1, correlation=1)
        self.assertEqual(made.kinds(), {"elementwise": (1, 3), "bmm": (1, 5)})

    def test_what_no_operator_launched_is_told_apart(self):
        made = Trace()
        made.call("mylib::conv", 0, 10, 1)
        made.call("aten::convolution", 20, 10, 2)  # without sizes
        made.kernel(100, 1, External_id=1)
        made.kernel(110, 2, External_id=2)
        made.kernel(120, 4, "gpu_memcpy")
        made.kernel(130, 8, "gpu_memset")
        made.kernel(140, 16)
        self.assertEqual(made.kinds(), {"untold": (3, 19), "memcpy": (1, 4), "memset": (1, 8)})

    def test_kernels_side_by_side_count_once(self):
        made = Trace()
        for ts, dur in ((0, 10), (5, 2), (8, 6), (20, 5)):
            made.kernel(ts, dur)
        self.assertEqual(profiled.busy_us(made.kernels()), 19)

    def test_sums_of_operators_are_those_of_kinds(self):
        made = Trace()
        made.call("aten::relu", 0, 10, 1, [[8, 4]])
        made.call("aten::relu", 20, 10, 2, [[8, 2]])
        for number in (1, 2, 2):
            made.kernel(100 * number, 3, External_id=number)
        found = profiled.by_operator(made.kernels(), COMPOSED.__contains__)
        self.assertEqual(found, {("elementwise", "relu", "8x4"): (1, 3), ("elementwise", "relu", "8x2"): (2, 6)})


@unittest.skipUnless(all(map(importlib.util.find_spec, ("torch", "timm"))), "PyTorch and timm are not installed")
class OnTheCpu(unittest.TestCase):
    def check(self, name):
        """Operators of a kind are as many as the recording has, and all that operators took is in the sums."""
        import snsim
        from timing import pytorch_kinds, training
        run = pytorch_kinds.Training(name, 2, 160, "fp32", "cpu")
        run.iterate()
        kernels = pytorch_kinds.kernels_in(run.trace(1), "cpu")
        sums = profiled.by_kind(kernels, pytorch_kinds.composed)
        self.assertAlmostEqual(sum(s.us for s in sums.values()), sum(k.length for k in kernels), places=3)
        self.assertNotIn(profiled.UNTOLD, sums)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.rec.gz")
            snsim.record(training.maker(name, 160, "fp32"), path=path, iterations=2)
            recorded = [kinds.kind_of(operation) for operation in operations.of_file(pathlib.Path(path), 2)]
        callers = {(id(made), profiled.kind_of(k, pytorch_kinds.composed)) for k in kernels
                   for made in [profiled.operator_of(k.call, pytorch_kinds.composed)]}
        found = [kind for _, kind in callers]
        for kind in sorted(set(recorded)):
            if kind.split("_")[0] in ("dense", "dw", "grouped", "stem", "bn", "ln", "product", "bmm", "softmax", "pool", "copy", "cast", "reduce"):
                self.assertEqual(found.count(kind), recorded.count(kind), kind)
        return set(found)

    def test_convolutions_of_each_kind(self):
        found = self.check("test_efficientnet")
        self.assertLessEqual({"stem_fwd", "dw_fwd", "dense_fwd", "stem_bwd", "dw_bwd", "dense_bwd", "bn_fwd", "bn_bwd", "product", "optimizer"}, found)

    def test_attention(self):
        found = self.check("test_vit")
        self.assertLessEqual({"attention_fwd", "attention_bwd", "ln_fwd", "ln_bwd", "product"}, found)


if __name__ == "__main__":
    unittest.main()
