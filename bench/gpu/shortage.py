"""Does PyTorch run with less memory than it takes when there is enough? Two wide convolutions are trained, whose workspaces may be as large as
their tensors, in memory that becomes less and less."""
import contextlib
import gc
import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import workspaces

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import gpu_memory  # noqa: E402

CHANNELS, EXTENT, BATCH = 64, 224, 167
KINDS = {"fp32": (False, None, "fp32"), "tf32": (True, None, "tf32-conv"), "amp-fp16": (False, torch.float16, "amp-fp16")}
NETWORK = {"snsim_net": 1, "name": "conv1", "input": [CHANNELS, EXTENT, EXTENT], "layers": [
    *({"name": name, "op": "CONV", "channels": CHANNELS, "kernel": 3, "pad": 1, "bias": False} for name in ("c1", "c2")), *workspaces.BEHIND]}
STEP = 64 << 20  # how finely memory is divided
NOTHING = 0.01  # of what is taken: less than that is no workspace that counts
FELL_BACK, NOTHING_TO_SPARE, NEEDS_ALL = "fell back", "takes no more than it needs", "needs all that it takes"


def least(runs, low, high, step=STEP):
    """The least limit between low, with which nothing runs, and high, with which it does, that runs(limit) has a result for, and that result."""
    found = None
    while high - low > step:
        middle = (low + high) // 2
        result = runs(middle)
        low, high, found = (low, middle, result) if result else (middle, high, found)
    return high, found


def net_of(device):
    torch.manual_seed(1)
    convolutions = [nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False) for _ in range(2)]
    return nn.Sequential(*convolutions, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(CHANNELS, 10)).to(device)


def train(kind, batch, device, memory):
    """Two iterations forward and backward: what was asked for and held at most, and the second one's milliseconds."""
    _, dtype, _ = KINDS[kind]
    net = net_of(device)
    images = torch.randn(batch, CHANNELS, EXTENT, EXTENT, device=device)
    labels = torch.zeros(batch, dtype=torch.int64, device=device)
    memory.restart()
    for _ in range(2):
        net.zero_grad()
        begin = time.perf_counter()
        with torch.autocast(device, dtype) if dtype else contextlib.nullcontext():
            loss = F.cross_entropy(net(images), labels)
        loss.backward()
        memory.wait()
    return {"peak_bytes": memory.peak(), "held_bytes": memory.held(), "ms": round(1e3 * (time.perf_counter() - begin), 2)}


def tried(kind, batch, device, memory, limit=None):
    """What train() has, None where memory is short; nothing is left behind."""
    memory.limit(limit)
    result = None
    try:
        result = train(kind, batch, device, memory)
    except RuntimeError as error:
        if not gpu_memory.is_short(error):
            raise
    gc.collect()
    memory.empty()
    return result


def judged(enough, short):
    """With less held at most: what was asked for shows whether another algorithm was taken, or only room between tensors was left out."""
    spared = (enough["peak_bytes"] - short["peak_bytes"]) / enough["peak_bytes"]
    if spared > NOTHING:
        return FELL_BACK
    return NOTHING_TO_SPARE if not enough.get("workspace_bytes") or enough["workspace_bytes"] < NOTHING * enough["peak_bytes"] else NEEDS_ALL


def workspace_of(kind, batch, device, memory):
    """The largest that the middle convolution takes, alone."""
    numbers = "fp16" if kind == "amp-fp16" else kind
    row = workspaces.measured(workspaces.Layer(batch, CHANNELS, EXTENT, CHANNELS, 3), numbers, device, memory)
    memory.empty()
    if "failed" in row:
        raise RuntimeError(row["failed"])
    return max(row[f"{kernel}_bytes"] for kernel in workspaces.KERNELS)


def measured(kind, device, memory, batch=BATCH):
    row = {"numbers": kind, "batch": batch}
    torch.backends.cudnn.allow_tf32 = KINDS[kind][0]
    try:
        row["enough"] = tried(kind, batch, device, memory)
        if row["enough"] is None:
            return row | {"failed": "this GPU has too little memory for it, whatever it is held to"}
        row["enough"]["workspace_bytes"] = workspace_of(kind, batch, device, memory)
        high = row["enough"]["held_bytes"]
        row["least_bytes"], found = least(lambda limit: tried(kind, batch, device, memory, limit), 0, high)
        row["least"] = found or row["enough"]
        row["found"] = judged(row["enough"], row["least"])
    except RuntimeError as error:
        row["failed"] = str(error).strip().splitlines()[0]
    finally:
        memory.limit(None)
    return row


def predicted(snsim, gpu, kind, batch=BATCH):
    """What snsim says that it needs and takes, without the context."""
    said = workspaces.ask(snsim, gpu, NETWORK, batch, KINDS[kind][2], "--optimizer", "sgd")
    return {"least_bytes": said["least_device_bytes"] - said["context_bytes"], "device_bytes": said["peak_device_bytes"] - said["context_bytes"],
            "workspace_bytes": said["workspace_peak_bytes"]}
