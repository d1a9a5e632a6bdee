"""PyTorch's own trackers on a rank of several GPUs, with neither GPUs nor other ranks: FSDPMemTracker of fully_shard, MemTracker of
DistributedDataParallel. Process groups talk to nobody, and tensors are fakes of a GPU, about whose device the recorder's session answers.
So kernels are those of a GPU, where fakes of a CPU have others for norms, pooling and attention. Sums of gradients are apart, as under
every mode."""
import contextlib
import copy
import fnmatch
import functools
import importlib
import math

import oracle  # ahead of torch
import torch
import torch.distributed as dist
from snsim._gpu import FakeGpu
from snsim._patches import no_collector, replaced
from snsim._session import Session, takes_an_argument
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

_FULLY_SHARD = "torch.distributed.fsdp._fully_shard."


class _Stream(torch.cpu.Stream):
    def record_event(self):
        return torch.cpu.Event()


class _Gpu:
    """torch.cuda's streams and events, which do nothing: those of torch.cpu."""

    Stream = _Stream

    def __getattr__(self, name):
        return getattr(torch.cpu, name)

    def current_stream(self, *_):
        return _Stream()

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


def _adopted_when_gathered(real, devices):
    """Whole parameters are leaves, which autocast casts (DeviceAnswers.adopt)."""
    def init(parameter):
        real(parameter)
        devices.adopt([parameter._unsharded_param])
    return init


class _WithValues(TorchDispatchMode):
    """In which what DDP's reducer makes to tell ranks its order, and reads again, has values: whole numbers on the CPU."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten.empty.memory_format and kwargs.get("dtype") is torch.int32 and str(kwargs.get("device", "cpu")) == "cpu":
            with unset_fake_temporarily():
                return func(*args, **kwargs)
        return func(*args, **kwargs)


def _without_modes(real):
    """Of a mesh's ranks, which are numbers."""
    def call(*args):
        with _disable_current_modes():
            return real(*args)
    return call


def _with_values(real):
    def call(self):
        with _WithValues():
            return real(self)
    return call


@contextlib.contextmanager
def session():
    """A Session in which fully_shard and DistributedDataParallel work."""
    with contextlib.ExitStack() as stack:
        names = ("_fsdp_collectives", "_fsdp_init", "_fsdp_param", "_fsdp_param_group", "_fsdp_state")
        parts = {name: importlib.import_module(_FULLY_SHARD + name) for name in names}
        for part in parts.values():
            if hasattr(part, "_get_device_handle"):
                stack.enter_context(replaced(part, _get_device_handle=lambda *_: _Gpu()))
        stack.enter_context(replaced(FakeGpu, __torch_dispatch__=_without_tensors_of_ranks(FakeGpu.__torch_dispatch__)))
        stack.enter_context(replaced(parts["_fsdp_collectives"], record_grad_output_stream=lambda *_: None))
        # the reducer's clock asks the driver
        stack.enter_context(replaced(dist.Reducer, prepare_for_forward=lambda _: None, _rebuild_buckets=_with_values(dist.Reducer._rebuild_buckets)))
        opened = stack.enter_context(Session())
        devices, group, parameter = opened.gpu.devices, parts["_fsdp_param_group"], parts["_fsdp_param"].FSDPParam
        stack.enter_context(replaced(group, foreach_reduce=_outside_the_engine(group.foreach_reduce, devices)))
        stack.enter_context(replaced(DeviceMesh, __getitem__=_without_modes(DeviceMesh.__getitem__)))
        stack.enter_context(replaced(parameter, init_unsharded_param=_adopted_when_gathered(parameter.init_unsharded_param, devices)))
        yield opened


class Tracker(FSDPMemTracker):
    """PyTorch's, whose wrapper has a name for the last gradient of a group, so that it would stay while that is reduced."""

    def _fsdp_param_group_post_backward(self, module, real):
        tell = super()._fsdp_param_group_post_backward(module, lambda *_: None)

        def post_backward(*args):
            tell()
            real(*args)
            tell()
        return post_backward


def _is_reduced(_, bucket):
    """In the place of an all-reduce, which is in place."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def replicated(opened, module, **how):
    """The module under DistributedDataParallel, within a session."""
    opened.gpu.devices.adopt(module.parameters())
    made = DistributedDataParallel(module, init_sync=False, **how)
    made.register_comm_hook(None, _is_reduced)
    return made


@contextlib.contextmanager
def tracking(opened, module, optimizer, inputs=()):
    """The tracker of what a rank holds: FSDPMemTracker of fully_shard's `module`, MemTracker of others."""
    opened._patches.late()
    opened.gpu.devices.adopt(module.parameters())
    if isinstance(module, FSDPModule):
        tracker = Tracker(module, optimizer)
        tracker.track_inputs(tuple(inputs))
    else:
        tracker = oracle.Tracker()
        tracker.track_external(module, optimizer, *tree_leaves(inputs))
        tracker._track_module_params_and_buffers(module)
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


def _lay_out(opened, ranks, view, module, blocks, optimizer):
    """Shards the module over a mesh of ranks, or without one replicates it; it is called as before."""
    if ranks is None:
        module.forward = replicated(opened, copy.copy(module), gradient_as_bucket_view=view).forward
        return
    names = [name for name, _ in module.named_parameters()]
    for block in (*blocks, module):
        fully_shard(block, mesh=ranks)
    shards = dict(module.named_parameters())
    optimizer.param_groups[0]["params"] = [shards[name] for name in names]


def memtracker(make, batch, mesh, globs, again=False):
    """The peak of make()'s step in bytes on one of the ranks of a mesh, "fsdp=4", "dp=2,fsdp=2" or "dp=4,view=yes", with each block
    gathered by itself; `again`: under checkpoints."""
    keys = dict(word.split("=") for word in mesh.split(","))
    sizes = {key: int(keys[key]) for key in ("dp", "fsdp") if key in keys}
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=math.prod(sizes.values()))
    ranks = as_of_a_gpu(init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))) if "fsdp" in sizes else None
    try:
        with session() as opened:
            with torch.device("cuda"):
                (module,), (optimizer,), step = make(batch)
            blocks = blocks_of(module, globs) if globs else []
            if again:
                put_under_checkpoints(blocks)
            _lay_out(opened, ranks, keys.get("view") == "yes", module, blocks, optimizer)
            with tracking(opened, module, optimizer) as tracker:
                for iteration in range(3):
                    if iteration:
                        tracker.reset_mod_stats()
                        start_peak(tracker)
                    step(iteration) if takes_an_argument(step) else step()
            return peak_of(tracker)["Total"]
    finally:
        dist.destroy_process_group()
