"""PyTorch's own MemTracker over the same step: an oracle for the recorder's books. It shares the answers about the device,
so it says nothing about these; the byte-exact figures of the dialect `pytorch` do."""
import fnmatch
import functools
import os
import types
import unittest

os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"  # MemTracker then counts bytes as they are asked for
import torch  # noqa: E402
try:
    from torch.distributed._tools.mem_tracker import MemTracker  # noqa: E402
except ImportError:  # older than 2.5
    MemTracker = None
from snsim._patches import no_collector  # noqa: E402
from snsim._session import Session, takes_an_argument  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402


class Tracker(MemTracker or object):
    """Without statistics by module, whose hooks hold gradients."""

    def __init__(self):
        super().__init__()
        self._mod_tracker = types.SimpleNamespace(__enter__=lambda: None, __exit__=lambda *args: None,
                                                  clear_user_hooks=lambda: None, register_user_hooks=lambda *args: None,
                                                  is_bw=False, parents=set())

    def _update_peak_stats(self, state):
        for device, now in self._curr_mem_snap.items():
            if self._peak_mem.get(device, 0) < now["Total"]:
                self._peak_mem[device] = now["Total"]
                self._peak_mem_snap[device] = dict(now)


def again(forward, *arguments, **named):
    """Under a checkpoint, with lists as they are now: who calls may add to them before it runs again."""
    return checkpoint(forward, *[list(x) if isinstance(x, list) else x for x in arguments], use_reentrant=False, **named)


def under_checkpoints(globs):
    """memtracker's `wrap`: the outermost modules whose paths match."""
    def wrap(models):
        inside = []
        for path, module in (row for model in models for row in model.named_modules()):
            matches = any(fnmatch.fnmatchcase(path, glob) for glob in globs.split(","))
            if matches and not any(path.startswith(outer + ".") for outer in inside):
                inside.append(path)
                module.forward = functools.partial(again, module.forward)
    return wrap


def memtracker(make, batch=None, iterations=2, wrap=None):
    """The peak of make()'s step in bytes, by MemTracker. wrap(models) may put modules under checkpoints."""
    if MemTracker is None:
        raise unittest.SkipTest("this PyTorch has no MemTracker")
    with Session() as session:
        with torch.device("cuda"):
            models, optimizers, step = make() if batch is None else make(batch)
        for model in models:
            session.gpu.devices.adopt(model.parameters())
        session._patches.late()
        if wrap is not None:
            wrap(models)
        tracker = Tracker()
        none = types.SimpleNamespace(remove=lambda: None)
        for model in models:
            for parameter in model.parameters():
                if not parameter.requires_grad:
                    tracker._param_to_grad_hook_handles[parameter] = (none, none)
        tracker.track_external(*models, *optimizers)
        with no_collector(), tracker, session.gpu, session.kernels():
            for iteration in range(iterations):
                step(iteration) if takes_an_argument(step) else step()
                tracker.reset_mod_stats()
    snapshot = tracker.get_tracker_snapshot("peak")
    return next(int(total) for device, kinds in snapshot.items() if device.type == "cuda"
                for kind, total in kinds.items() if getattr(kind, "value", kind) == "Total")
