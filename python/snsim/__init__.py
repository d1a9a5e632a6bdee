"""snsim: how much memory a training step in PyTorch takes, on a GPU that need not be there.

    rec = snsim.record(model, (images,), loss=lambda y, x: F.cross_entropy(y, labels), optimizer=AdamW)
    print(snsim.estimate(rec, batch=64, gpu="rtx4090"))

Importing this imports no PyTorch; recording does. Estimates are the program's, which this package brings.
"""
import importlib

__version__ = "0.2.0"  # the program's as well: CMakeLists.txt and pyproject.toml read this line

_WHERE = {"record": "_api", "recording": "_api", "Recording": "_file", "RecordingError": "_errors", "RecordingWarning": "_errors",
          "estimate": "_estimate", "Estimate": "_estimate", "Error": "_program", "compare": "_compare", "Comparison": "_compare",
          "snapshot": "_snapshot"}
__all__ = sorted(_WHERE)


def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(f"module 'snsim' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value
