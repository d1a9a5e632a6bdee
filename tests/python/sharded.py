"""PyTorch's own FSDPMemTracker on a rank of several GPUs, with neither GPUs nor other ranks: process groups talk to nobody, and tensors
are fakes of a GPU, about whose device the recorder's session answers. So kernels are those of a GPU, where fakes of a CPU have others
for norms, pooling and attention. Sums of gradients are apart, as under every mode."""
import contextlib
import fnmatch
import functools
import importlib

import oracle  # ahead of torch
import torch
import torch.distributed as dist
from snsim._gpu import FakeGpu
from snsim._patches import no_collector, replaced
from snsim._session import Session, takes_an_argument
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

_FULLY_SHARD = "torch.distributed.fsdp._fully_shard."


class _Gpu:
    """torch.cuda's streams and events, which do nothing: those of torch.cpu."""

    def __getattr__(self, name):
        return getattr(torch.cpu, name)

    def current_device(self):
        return 0


def _without_tensors_of_ranks(real):
    def dispatch(self, func, types, args=(), kwargs=None):
        """What DTensor makes of an operation comes here again."""
        return NotImplemented if any(kind is DTensor for kind in types) else real(self, func, types, args, kwargs)
    return dispatch


def _outside_the_engine(real, devices):
    """A hook of the engine that sets gradients, which asks for the device as the user's code does."""
    def call(*args, **kwargs):
        depth, devices.engine = devices.engine, 0
        try:
            return real(*args, **kwargs)
        finally:
            devices.engine = depth
    return call


@contextlib.contextmanager
def session():
    """A Session in which fully_shard works."""
    with contextlib.ExitStack() as stack:
        parts = [importlib.import_module(_FULLY_SHARD + name) for name in ("_fsdp_collectives", "_fsdp_init", "_fsdp_param_group", "_fsdp_state")]
        for part in parts:
            if hasattr(part, "_get_device_handle"):
                stack.enter_context(replaced(part, _get_device_handle=lambda *_: _Gpu()))
        stack.enter_context(replaced(FakeGpu, __torch_dispatch__=_without_tensors_of_ranks(FakeGpu.__torch_dispatch__)))
        stack.enter_context(replaced(parts[0], record_grad_output_stream=lambda *_: None))
        opened = stack.enter_context(Session())
        stack.enter_context(replaced(parts[2], foreach_reduce=_outside_the_engine(parts[2].foreach_reduce, opened.gpu.devices)))
        yield opened


@contextlib.contextmanager
def tracking(opened, module, optimizer, inputs=()):
    """The tracker of what a rank of fully_shard's `module` holds."""
    opened._patches.late()
    opened.gpu.devices.adopt(module.parameters())
    tracker = FSDPMemTracker(module, optimizer)
    tracker.track_inputs(tuple(inputs))
    with no_collector(), tracker, opened.gpu, opened.kernels():
        yield tracker


def start_peak(tracker):
    """What was before counts no longer."""
    tracker._peak_mem_snap = tracker.get_tracker_snapshot()
    tracker._peak_mem = {device: now["Total"] for device, now in tracker._peak_mem_snap.items()}


def peak_of(tracker):
    """By kind, of the GPU."""
    for device, kinds in tracker.get_tracker_snapshot("peak").items():
        if device.type == "cuda":
            return {getattr(kind, "value", kind): count for kind, count in kinds.items()}
    return {}


def as_of_a_gpu(mesh):
    """A mesh of process groups that talk to nobody, which take no tensors of a GPU where they are made for one."""
    mesh._device_type = "cuda"
    return mesh


def blocks_of(module, globs):
    """The outermost modules whose paths match."""
    inside = []
    for path, child in module.named_modules():
        if any(fnmatch.fnmatchcase(path, glob) for glob in globs.split(",")) and not any(path.startswith(p + ".") for p, _ in inside):
            inside.append((path, child))
    return [child for _, child in inside]


def put_under_checkpoints(blocks):
    for block in blocks:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)


def memtracker(make, batch, ranks, globs, again=False):
    """The peak of make()'s step in bytes on one of so many ranks, each block gathered by itself; `again`: under checkpoints."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
    try:
        mesh = as_of_a_gpu(init_device_mesh("cpu", (ranks,), mesh_dim_names=("fsdp",)))
        with session() as opened:
            with torch.device("cuda"):
                (module,), (optimizer,), step = make(batch)
            blocks = blocks_of(module, globs) if globs else []
            names = [name for name, _ in module.named_parameters()]
            if again:
                put_under_checkpoints(blocks)
            for block in (*blocks, module):
                fully_shard(block, mesh=mesh)
            shards = dict(module.named_parameters())
            optimizer.param_groups[0]["params"] = [shards[name] for name in names]
            with tracking(opened, module, optimizer) as tracker:
                for iteration in range(3):
                    if iteration:
                        tracker.reset_mod_stats()
                        start_peak(tracker)
                    step(iteration) if takes_an_argument(step) else step()
            return peak_of(tracker)["Total"]
    finally:
        dist.destroy_process_group()
