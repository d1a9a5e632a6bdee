"""What an estimate says to change is done: its lines of Python are executed on the model, that is recorded, and must take what was
predicted. Skipped without PyTorch."""
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
