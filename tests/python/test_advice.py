"""What an estimate says to change is done: its lines of Python are executed on the model, that is recorded, and must take what was
predicted. Skipped without PyTorch."""
import functools
import importlib.util
import os
import sys
import unittest

SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCES, "python"))
os.environ["SNSIM_PROGRAM"] = os.environ.get("SNSIM_BINARY") or os.path.join(SOURCES, "build", "snsim")

if importlib.util.find_spec("torch") is None:
    if __name__ != "__main__":
        raise unittest.SkipTest("no PyTorch")
    print("skipped: no PyTorch")
    sys.exit(77)

import torch  # noqa: E402
from torch import nn  # noqa: E402

import snsim  # noqa: E402


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                                  nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu(x + self.body(x))


class Net(nn.Module):
    """Blocks among other modules of a Sequential, as Swin has them."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 7, stride=2, padding=3)
        self.stages = nn.Sequential(nn.Sequential(*[Block(32) for _ in range(4)]), nn.Conv2d(32, 64, 3, 2, 1),
                                    nn.Sequential(*[Block(64) for _ in range(4)]), nn.Conv2d(64, 64, 1))
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


def recorded(model):
    return snsim.record(model, (torch.empty(2, 3, 224, 224),), optimizer=torch.optim.AdamW)


def accumulating(batch):
    """A loop of two passes an update, whose loss is in no module."""
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        for _ in range(2):
            nn.functional.cross_entropy(model(torch.randn(batch, 3, 64, 64, device="cuda")), torch.zeros(batch, dtype=torch.long, device="cuda")).backward()
        optimizer.step()
        optimizer.zero_grad()
    return [model], [optimizer], step


def losing(batch):
    """The fullest moment is in the loss of the second pass."""
    model = nn.Sequential(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)), nn.Linear(64, 4000)).cuda()

    def step():
        for _ in range(2):
            loss = nn.functional.cross_entropy(model(torch.randn(batch, 64, device="cuda")), torch.zeros(batch, dtype=torch.long, device="cuda"))
            loss.backward()
        model.zero_grad()
    return [model], [], step


def holding(batch, to_none=True):
    """Batches that the loop holds, of which the second one is seen for the first time behind a backward pass."""
    model = nn.Linear(64, 64).cuda()
    parts = [torch.randn(batch, 64, device="cuda") for _ in range(2)]

    def step():
        for part in parts:
            model(part).mean().backward()
        model.zero_grad(set_to_none=to_none)
    return [model], [], step


class Where(unittest.TestCase):
    """Of loops of several passes."""

    def test_blocks_of_a_later_pass_are_blocks(self):
        answer = snsim.estimate(snsim.record(accumulating), batch=64, gpu="rtx4090").data["answer"]
        names = {group["group"] for group in answer["where"]}
        self.assertTrue({"kept by stages.0, 4 blocks", "kept by stages.2, 4 blocks"} <= names, names)

    def test_a_moment_outside_of_modules_has_a_name(self):
        answer = snsim.estimate(snsim.record(losing), batch=4096, gpu="rtx4090").data["answer"]
        self.assertEqual(answer["where_moment"], "in forward of _log_softmax#2")


    def test_a_batch_that_stays_is_no_gradient(self):
        for to_none, gradients in ((True, 0), (False, 4 * (64 * 64 + 64))):
            rec = snsim.record(lambda batch, to_none=to_none: holding(batch, to_none))
            stays = snsim.estimate(rec, batch=32, gpu="rtx4090").row().data["persistent"]
            self.assertEqual((stays["parameter_gradients"], stays["auxiliary"]), (gradients, 2 * 32 * 64 * 4))


    def test_checkpoints_of_the_loop_are_no_passes(self):
        from torch.utils.checkpoint import checkpoint
        for again, text in ((True, "its loop runs blocks again itself: nothing else is planned"), (False, None)):
            model = Net()
            for block in model.stages[0]:
                if again:
                    block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
            rec = snsim.record(model, ((2, 3, 64, 64),))
            answer = snsim.estimate(rec, batch=64, gpu="rtx4090").data["answer"]
            if again:
                self.assertRaisesRegex(snsim.Error, "runs blocks again itself", snsim.estimate, rec, batch=64, gpu="rtx4090", parallel="fsdp=8")
            said = answer.get("note", "")
            self.assertTrue(text in said if text else "its loop" not in said, said)
        answer = snsim.estimate(snsim.record(accumulating), batch=4, gpu="rtx4090").data["answer"]
        self.assertIn("its loop has 2 backward passes", answer["note"])


class Advice(unittest.TestCase):
    def test_checkpoints_take_what_was_predicted(self):
        batch, tried = 512, 0
        rec = recorded(Net())
        for memory in ("12GiB", "8GiB"):
            e = snsim.estimate(rec, batch=batch, gpu="rtx4090", memory=memory)
            for change in e.changes:
                if not change.strategy.startswith("pytorch+recompute") or change.batch != batch or change.accumulate != 1:
                    continue
                model = Net()
                exec("\n".join(change.calls), {"model": model})
                row = snsim.estimate(recorded(model), batch=batch, gpu="rtx4090", memory=memory, strategy="pytorch").row()
                with self.subTest(change.what):
                    self.assertEqual((row.fits, row.peak_device_bytes), (True, change.device_bytes))
                tried += 1
        self.assertGreaterEqual(tried, 2)


if __name__ == "__main__":
    unittest.main()
