"""The lines in PyTorch of answers about several GPUs, and of weights in four bytes, are executed as the screen has them: on a CPU, with process
groups that talk to nobody, and with four processes that do. Skipped without PyTorch."""
import collections
import contextlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("SNSIM_BINARY") or os.path.join(SOURCES, "build", "snsim")
sys.path.insert(0, os.path.join(SOURCES, "bench"))
os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
warnings.simplefilter("ignore")

if importlib.util.find_spec("torch") is None:
    print("skipped: no PyTorch")
    sys.exit(77)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

try:
    from parallel import networks, pipelines  # noqa: E402
except SystemExit as older:
    raise unittest.SkipTest("this PyTorch has no tracker of shards") from older

SMALL = "llm:4,256,4,4,704,512"
LIVE = ("parameters", "buffers", "gradients", "optimizer", "activations", "temporary")


class Activations(TorchDispatchMode):
    """How often a SiLU is computed."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.count += operation is torch.ops.aten.silu.default
        return operation(*args, **(kwargs or {}))


def ask(net, *more, strategy="pytorch"):
    """The lines of the first change, and the bytes that live at the peak of the one strategy."""
    asked = [PROGRAM, "--net", net, "--gpu", "h100", "--strategy", strategy, "--no-db", "--json", *more]
    said = json.loads(subprocess.run(asked, stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout)
    live = said["results"][0]["live_at_peak"]
    return said["answer"]["changes"][0]["calls"], sum(live[part] for part in LIVE)


@contextlib.contextmanager
def ranks(world, rank=0):
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    try:
        yield
    finally:
        dist.destroy_process_group()


def of_a_cpu(lines):
    """An optimizer is foreach by itself on a GPU only."""
    return "\n".join(lines).replace('"cuda"', '"cpu"').replace("AdamW(masters)", "AdamW(masters, foreach=True)")


class Masters(unittest.TestCase):
    """Weights and gradients in four bytes beside weights of two."""

    def measure(self, lines, batches, tokens):
        behind = next(i for i, line in enumerate(lines) if line.startswith("# behind"))
        model = networks.Titan(4, 256, 4, 4, 704, 512, networks.NORMS["transformers"])
        names = {"torch": torch, "model": model}
        exec(of_a_cpu(lines[:behind]), names)  # pylint: disable=exec-used
        given = torch.zeros(batches, 2, tokens, dtype=torch.int64)
        labels, masters = given.clone(), names["masters"]
        tracker = pipelines.tracker_of([model], names["optimizer"], [given, labels, *masters, *(m.grad for m in masters)])
        with tracker:
            for i in range(2):
                if i:
                    tracker._peak_mem = {device: now["Total"] for device, now in tracker.get_tracker_snapshot().items()}
                    tracker._peak_mem_snap = tracker.get_tracker_snapshot()
                for x, y in zip(given, labels):
                    (F.cross_entropy(model(x).flatten(0, 1), y.flatten()) / batches).backward()
                exec(of_a_cpu(lines[behind:]), names)  # pylint: disable=exec-used
        (peak,) = tracker.get_tracker_snapshot("peak").values()
        self.assertTrue(all(p.dtype == torch.bfloat16 and p.grad is None for p in model.parameters()))
        self.assertTrue(all(m.dtype == torch.float32 and m.grad.dtype == torch.float32 for m in masters))
        return peak["Total"]

    def compare(self, more, batches, tokens, error):
        lines, said = ask(SMALL, "--sequence", str(tokens), "--batch", "2", "--accumulate", str(batches), "--precision", "bf16-master", *more)
        self.assertEqual(said - self.measure(lines, batches, tokens), error, more)

    def test_one_gpu(self):
        self.compare(["--optimizer", "adamw"], 1, 64, 4)  # the loss, which is held here until the update
        self.compare(["--optimizer", "adamw"], 3, 64, 4 - 4096)  # tokens and labels of two more batches
        self.compare(["--optimizer", "adamw:impl=fused"], 1, 256, 2560)  # in backward

    def test_ddp(self):
        for batches, error in ((1, 4), (3, 4 - 4096)):
            with ranks(4):
                self.compare(["--parallel", "dp=4", "--optimizer", "adamw"], batches, 64, error)

    def test_gradients_are_sums(self):
        """Updates of three batches are those of float32 with the mean of their gradients."""
        lines, _ = ask(SMALL, "--sequence", "64", "--batch", "2", "--accumulate", "3", "--precision", "bf16-master", "--optimizer", "sgd")
        behind = next(i for i, line in enumerate(lines) if line.startswith("# behind"))
        torch.manual_seed(1)
        model = torch.nn.Linear(8, 8, bias=False)
        names = {"torch": torch, "model": model, "lr": 0.5}
        exec(of_a_cpu(lines[:behind]), names)  # pylint: disable=exec-used
        before, inputs = names["masters"][0].clone(), torch.randn(3, 4, 8).bfloat16()
        for x in inputs:
            (model(x).sum() / 3).backward()
        exec(of_a_cpu(lines[behind:]), names)  # pylint: disable=exec-used
        means = torch.stack([x.float().sum(0) for x in inputs]).mean(0)
        torch.testing.assert_close(names["masters"][0], before - 0.5 * means.expand(8, 8), rtol=0.01, atol=0.01)
        self.assertTrue(torch.equal(model.weight, names["masters"][0].bfloat16()))
        self.assertFalse(names["masters"][0].grad.any())


@unittest.skipIf(importlib.util.find_spec("transformers") is None, "no transformers")
class Stages(unittest.TestCase):
    """Pipelines of transformers' Llama: two steps of the schedule, and updates."""

    NET, BATCHES, TOKENS = "llama:layers=4,hidden=64,heads=4,ffn=128,vocabulary=128", 4, 16

    def run_stage(self, mesh, precision, rank, world, stage, strategy="pytorch"):
        import transformers  # pylint: disable=import-outside-toplevel
        config = transformers.LlamaConfig(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=4,
                                          num_attention_heads=4, num_key_value_heads=4, use_cache=False)
        lines, _ = ask(self.NET, "--sequence", str(self.TOKENS), "--batch", "2", "--accumulate", str(self.BATCHES), "--parallel", mesh,
                       "--precision", precision, "--optimizer", "adamw", strategy=strategy)
        behind = next((i for i, line in enumerate(lines) if line.startswith("# behind")), len(lines))
        given = torch.zeros(self.BATCHES * 2, self.TOKENS, dtype=torch.int64)
        names = {"torch": torch, "model": transformers.LlamaForCausalLM(config), "x": given[:2], "device": torch.device("cpu"), "rank": rank,
                 "loss": lambda y, target: F.cross_entropy((y if torch.is_tensor(y) else y[0]).flatten(0, 1).float(), target.flatten())}
        with ranks(world, rank):
            exec(of_a_cpu(lines[:behind]), names)  # pylint: disable=exec-used
            optimizer = names.get("optimizer") or torch.optim.AdamW(names["model"].parameters())
            for _ in range(2):
                with Activations() as activations:
                    names["schedule"].step(*[given] * (stage == 0), **{"target": given} if stage == 1 else {}, return_outputs=False)
                if behind < len(lines):
                    exec(of_a_cpu(lines[behind:]), names)  # pylint: disable=exec-used
                else:
                    optimizer.step()
                    optimizer.zero_grad()
        names["computed"] = activations.count
        return names

    def parts(self, mesh, precision="fp32", strategy="pytorch"):
        """What the lines make on the first rank of both stages."""
        each = 1
        for word in mesh.split(","):
            key, _, size = word.partition("=")
            each *= int(size) if key in ("fsdp", "dp") else 1
        for stage in range(2):
            yield self.run_stage(mesh, precision, stage * each, 2 * each, stage, strategy)

    def test_alone(self):
        for names in self.parts("pp=2,schedule=zb-h1"):
            self.assertTrue(all(p.grad is None for p in names["model"].parameters()))

    def test_some_blocks_run_again(self):
        """A trace of the model would have lost its checkpoints."""
        computed = [names["computed"] for names in self.parts("pp=2", strategy="pytorch+recompute=units:3")]
        self.assertEqual(computed, [2 * self.BATCHES + 2 * self.BATCHES, 2 * self.BATCHES + self.BATCHES])

    def test_shards(self):
        for mesh, precision in (("pp=2,fsdp=2", "fp32"), ("pp=2,fsdp=2,reshard=no", "bf16-master")):
            for names in self.parts(mesh, precision):
                part = names["part"]
                kinds = [type(m).__name__ for _, m in part.named_modules() if type(m).__name__.startswith("FSDP")]
                self.assertEqual(len(kinds), 3, kinds)  # two blocks and the part
                self.assertTrue(all(p.dtype == torch.float32 and type(p).__name__ == "DTensor" for p in part.parameters()))

    def test_masters(self):
        for names in self.parts("pp=2,dp=2", "bf16-master"):
            self.assertTrue(all(p.dtype == torch.bfloat16 and p.grad is None for p in names["params"]))
            self.assertTrue(all(m.dtype == torch.float32 and not m.grad.any() for m in names["masters"]))


TINY, BATCHES, TOKENS = "llm:4,32,4,4,64,64", 4, 8


def transformer():
    return networks.Titan(4, 32, 4, 4, 64, 64, networks.NORMS["transformers"]), lambda batch: torch.randint(64, (batch, TOKENS))


def lenet():
    """By the names of the network of that name, with a layer more, which has no parameters."""
    layers = {"conv1": nn.Conv2d(1, 20, 5), "pool1": nn.MaxPool2d(2), "conv2": nn.Conv2d(20, 50, 5), "pool2": nn.MaxPool2d(2), "flat": nn.Flatten(),
              "fc1": nn.Linear(800, 500), "relu1": nn.ReLU(), "fc2": nn.Linear(500, 10)}
    return nn.Sequential(collections.OrderedDict(layers)), lambda batch: torch.randn(batch, 1, 28, 28)


def sum_of_squares(y, target):
    return ((y if torch.is_tensor(y) else y[0]) - target).square().sum()


def gradients(model, given, targets):
    """Of the mean of all micro-batches."""
    total = sum(sum_of_squares(model(x), y) for x, y in zip(given.chunk(BATCHES), targets.chunk(BATCHES)))
    (total / BATCHES).backward()
    return {name: p.grad for name, p in model.named_parameters()}


def whole(parameter):
    return parameter.grad.full_tensor() if hasattr(parameter.grad, "full_tensor") else parameter.grad


def errors_of(lines, make, axis):
    """The largest error of a rank's gradients behind a step of the schedule, beside those of the mean over what all replicas see (`all`),
    and of what this one sees (`own`)."""
    torch.manual_seed(1)
    (model, inputs), names = make(), {}
    given = [inputs(2 * BATCHES) for _ in range(2)]
    targets = [torch.randn_like(model(x)) for x in given]
    means = [gradients(model, x, y) for x, y in zip(given, targets) if not model.zero_grad()]
    model.zero_grad()
    names |= {"torch": torch, "model": model, "x": given[0][:2], "device": torch.device("cpu"), "loss": sum_of_squares}
    exec(of_a_cpu(lines), names)  # pylint: disable=exec-used
    mine = names["mesh"].get_local_rank(axis)
    begins, ends = ([what[mine]] * (names["rank"] == of) for what, of in ((given, 0), (targets, 1)))
    names["schedule"].step(*begins, **({"target": ends[0]} if ends else {}), return_outputs=False)
    worst = {"all": 0.0, "own": 0.0}
    for name, p in names["model"].named_parameters():
        name = name.partition(".")[2].removeprefix("module.")  # of the list, and of what replicates
        own = means[mine][name]
        for key, wanted in (("own", own), ("all", (means[0][name] + means[1][name]) / 2)):
            worst[key] = max(worst[key], ((whole(p) - wanted).abs().max() / wanted.abs().max()).item())
    return worst


def run_rank(rank, folder, cases):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=4)
    found = [errors_of(lines, globals()[make], axis) for lines, make, axis in cases]
    dist.barrier()
    dist.destroy_process_group()
    with open(f"{folder}/{rank}", "w", encoding="utf-8") as file:
        json.dump(found, file)


@unittest.skipUnless("return_outputs" in inspect.signature(pipelines.Schedule1F1B.step).parameters, "this PyTorch's schedules merge what comes out")
class FourRanks(unittest.TestCase):
    """Two stages, each of which two ranks share, that speak to each other by gloo."""

    def ask(self, net, mesh):
        more = ["--sequence", str(TOKENS)] if net == TINY else []
        return ask(net, *more, "--batch", "2", "--accumulate", str(BATCHES), "--parallel", mesh, "--optimizer", "sgd")[0]

    def test_gradients(self):
        """Those of replicas and of shards of stages are the mean of what all ranks see; by zb-h1 replicas of the last stage keep their own."""
        meshes = (("pp=2,dp=2", TINY, "dp"), ("pp=2,dp=2,view=yes,schedule=interleaved:2", TINY, "dp"), ("pp=2,fsdp=2", "lenet", "fsdp"))
        cases = [(self.ask(net, mesh), "lenet" if net == "lenet" else "transformer", axis) for mesh, net, axis in meshes]
        halves = [line.replace("Schedule1F1B", "ScheduleInterleavedZeroBubble").replace("stages[0]", "stages") for line in cases[0][0]]
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(run_rank, (folder, [*cases, (halves, "transformer", "dp")]), 4)
            for rank in range(4):
                with open(f"{folder}/{rank}", encoding="utf-8") as file:
                    *each, split = json.load(file)
                for (_, make, axis), found in zip(cases, each):
                    self.assertLess(found["all"], 1e-4, (make, axis, rank))
                    self.assertGreater(found["own"], 1e-2, (make, axis, rank))
                self.assertLess(split["own" if rank > 1 else "all"], 1e-4, rank)
        self.assertIn("alone", " ".join(line for line in self.ask(TINY, "pp=2,dp=2,schedule=zb-h1") if line.startswith("#")))

    def measure(self, lines, stage):
        """The most bytes that the third step and its update take, by MemTracker; what is reduced stays as it is."""
        def as_it_is(_, bucket):
            done = torch.futures.Future()
            done.set_result(bucket.buffer())
            return done

        given = torch.zeros(2 * BATCHES, TOKENS, dtype=torch.int64)
        names = {"torch": torch, "model": transformer()[0], "x": given[:2].clone(), "device": torch.device("cpu"),
                 "loss": lambda y, target: F.cross_entropy((y if torch.is_tensor(y) else y[0]).flatten(0, 1), target.flatten())}
        with ranks(4, 2 * stage):
            exec(of_a_cpu(lines), names)  # pylint: disable=exec-used
            parts, optimizer = [s.submod for s in names["stages"]], torch.optim.AdamW(names["model"].parameters(), foreach=True)
            for part in parts:
                part.register_comm_hook(None, as_it_is)
            del names["pipe"], names["x"]
            tracker = pipelines.tracker_of(parts, optimizer, [given])
            with tracker:
                for _ in range(3):
                    tracker._peak_mem = {device: now["Total"] for device, now in tracker.get_tracker_snapshot().items()}
                    tracker._peak_mem_snap = tracker.get_tracker_snapshot()
                    names["schedule"].step(*[given] * (stage == 0), **{"target": given} if stage == 1 else {}, return_outputs=False)
                    optimizer.step()
                    optimizer.zero_grad()
            (peak,) = tracker.get_tracker_snapshot("peak").values()
        return peak["Total"]

    def test_memory_of_replicas(self):
        """To the byte, but for the losses of all micro-batches but one, of four bytes each, which are held here to the end of backward."""
        asked = [PROGRAM, "--net", TINY, "--gpu", "h100", "--strategy", "pytorch", "--no-db", "--json", "--sequence", str(TOKENS), "--batch", "2",
                 "--accumulate", str(BATCHES), "--parallel", "pp=2,dp=2", "--optimizer", "adamw"]
        said = json.loads(subprocess.run(asked, stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout)
        lines = said["answer"]["changes"][0]["calls"]
        self.assertEqual([said["stages"][stage]["live_peak_bytes"] - self.measure(lines, stage) for stage in range(2)], [0, 4 * (BATCHES - 1)])

    def test_shards_are_of_layers(self):
        """Where no block has a name, fully_shard is told of each layer that has parameters, and of the stage."""
        from torch.distributed.fsdp import FSDPModule  # pylint: disable=import-outside-toplevel
        model, inputs = lenet()
        names = {"torch": torch, "model": model, "x": inputs(2), "device": torch.device("cpu"), "loss": sum_of_squares}
        with ranks(4):
            exec(of_a_cpu(self.ask("lenet", "pp=2,fsdp=2")), names)  # pylint: disable=exec-used
            self.assertEqual([name for name, m in names["part"].named_modules() if isinstance(m, FSDPModule)], ["", "conv1", "conv2"])

    def test_tensor_parallel(self):
        """What the comment says: a trace's modules are none that parallelize_module divides, and what it has divided is not traced."""
        from torch.distributed.pipelining import pipeline  # pylint: disable=import-outside-toplevel
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module  # pylint: disable=import-outside-toplevel
        styles = {"w1": ColwiseParallel(), "w2": RowwiseParallel(), "w3": ColwiseParallel()}
        plan, given = {f"layers.*.feed_forward.{name}": style for name, style in styles.items()}, transformer()[1](2)
        with ranks(2):
            mesh = dist.device_mesh.init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
            part = pipeline(transformer()[0], mb_args=(given,)).get_stage_module(0)
            with self.assertRaises(NotImplementedError):
                parallelize_module(part, mesh["tp"], plan)
            divided = parallelize_module(transformer()[0], mesh["tp"], plan)
            self.assertEqual(divided(given).shape, (2, TOKENS, 64))
            with self.assertRaises(RuntimeError):
                pipeline(divided, mb_args=(given,))
        self.assertTrue(any(line.startswith("# tp: parallelize_module") for line in self.ask(TINY, "pp=2,tp=2")))


if __name__ == "__main__":
    unittest.main()
