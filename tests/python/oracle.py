"""PyTorch's own MemTracker over the same step: an oracle for the recorder's books. It shares the answers about the device,
so it says nothing about these; the byte-exact figures of the dialect `pytorch` do."""
import contextlib
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
from snsim._device import QUESTION  # noqa: E402
from snsim._patches import no_collector, replaced  # noqa: E402
from snsim._session import Session, takes_an_argument  # noqa: E402
from torch.utils._pytree import tree_iter  # noqa: E402
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


def products_and_attention():
    """torchtitan's policy of selective checkpoints, for one call of a block: products of matrices are kept, but each second
    one, and attention by one kernel."""
    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts  # from 2.5 on
    kept = {torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_flash_attention.default,
            torch.ops.aten._scaled_dot_product_efficient_attention.default, torch.ops.aten._scaled_dot_product_cudnn_attention.default}
    seen = [0, 0]

    def policy(context, operation, *_, **__):
        seen[context.is_recompute] += operation == torch.ops.aten.mm.default
        second = operation == torch.ops.aten.mm.default and seen[context.is_recompute] % 2 == 0
        return CheckpointPolicy.MUST_SAVE if operation in kept and not second else CheckpointPolicy.PREFER_RECOMPUTE
    return create_selective_checkpoint_contexts(policy)


def under_checkpoints(globs, **how):
    """memtracker's `wrap`: the outermost modules whose paths match; `how`: arguments of checkpoint()."""
    def wrap(models):
        inside = []
        for path, module in (row for model in models for row in model.named_modules()):
            matches = any(fnmatch.fnmatchcase(path, glob) for glob in globs.split(","))
            if matches and not any(path.startswith(outer + ".") for outer in inside):
                inside.append(path)
                module.forward = functools.partial(again, module.forward, **how)
    return wrap


def _told(real, devices):
    """A mode of selective checkpoints, whose results are as new to autograd as an operation's."""
    def dispatch(self, function, types, args=(), kwargs=None):
        if function is QUESTION:
            return real(self, function, types, args, kwargs)
        inputs = [x for x in tree_iter((args, kwargs)) if isinstance(x, torch.Tensor)]
        traced = devices.is_traced(inputs)
        result = real(self, function, types, args, kwargs)
        devices.made(traced, inputs, result)
        return result
    return dispatch


@contextlib.contextmanager
def selective_checkpoints(devices):
    """In which autograd is answered about what they keep and give back."""
    with contextlib.ExitStack() as stack:
        for mode in (torch.utils.checkpoint._CachingTorchDispatchMode, torch.utils.checkpoint._CachedTorchDispatchMode):
            stack.enter_context(replaced(mode, __torch_dispatch__=_told(mode.__torch_dispatch__, devices)))
        yield


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
        with no_collector(), tracker, session.gpu, session.kernels(), selective_checkpoints(session.gpu.devices):
            for iteration in range(iterations):
                step(iteration) if takes_an_argument(step) else step()
                tracker.reset_mod_stats()
    snapshot = tracker.get_tracker_snapshot("peak")
    return next(int(total) for device, kinds in snapshot.items() if device.type == "cuda"
                for kind, total in kinds.items() if getattr(kind, "value", kind) == "Total")
