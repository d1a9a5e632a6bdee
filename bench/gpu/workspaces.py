"""What a convolution takes of PyTorch's allocator beyond its result: cuDNN's workspace, and what PyTorch copies around it. Beside it the
workspaces that snsim's row `pytorch` says for the same layer."""
import json
import os
import subprocess
import tempfile
from typing import NamedTuple

import torch
from torch.nn import functional as F

KINDS = {  # dtype, whether TF32 may be used, what snsim calls it
    "fp32": (torch.float32, False, "fp32"), "tf32": (torch.float32, True, "tf32-conv"),
    "fp16": (torch.float16, False, "fp16"), "bf16": (torch.bfloat16, False, "bf16")}
KERNELS = ("forward", "data", "filter")
AHEAD = {"name": "ahead", "op": "CONV", "kernel": 1, "bias": False}  # so that the layer's input has a gradient
BEHIND = [{"name": "pool", "op": "POOL", "mode": "average", "global": True}, {"name": "fc", "op": "FC", "channels": 10},
          {"name": "softmax", "op": "SOFTMAX"}]


class Layer(NamedTuple):
    batch: int
    inputs: int
    extent: int
    outputs: int
    window: int
    stride: int = 1
    groups: int = 1
    last: bool = False  # channels lie last

    @property
    def name(self):
        words = [f"{self.batch} x {self.inputs} x {self.extent}^2 to {self.outputs}", f"{self.window}x{self.window}"]
        words += [f"stride {self.stride}"] * (self.stride > 1) + [f"{self.groups} groups"] * (self.groups > 1)
        return ", ".join(words + ["channels last"] * self.last)

    @property
    def pad(self):
        return self.window // 2


PLAIN = [Layer(64, 3, 224, 64, 7, 2), Layer(128, 3, 227, 64, 11, 4), Layer(32, 64, 224, 64, 3), Layer(167, 64, 224, 64, 3),
         Layer(64, 64, 56, 64, 3), Layer(64, 128, 28, 128, 3), Layer(64, 512, 7, 512, 3), Layer(1, 256, 14, 256, 3), Layer(64, 128, 56, 128, 3, 2),
         Layer(64, 256, 56, 64, 1), Layer(64, 2048, 7, 512, 1), Layer(64, 256, 56, 512, 1, 2), Layer(64, 48, 27, 128, 5),
         Layer(64, 144, 56, 144, 3, 1, 144), Layer(64, 240, 28, 240, 5, 2, 240), Layer(64, 128, 56, 128, 3, 1, 32)]
TURNED = [Layer(64, 64, 56, 64, 3, last=True), Layer(64, 256, 56, 64, 1, last=True), Layer(64, 144, 56, 144, 3, 1, 144, last=True)]
CASES = [(layer, kind) for kind in ("fp32", "tf32", "fp16") for layer in PLAIN]
CASES += [(layer, "bf16") for layer in PLAIN[2:5]] + [(layer, kind) for kind in ("tf32", "fp16") for layer in TURNED]


def works_of(layer, kind, device):
    """The three kernels as functions without arguments."""
    order = torch.channels_last if layer.last else torch.contiguous_format
    pairs = [[layer.stride] * 2, [layer.pad] * 2, [1, 1]]

    def made(*shape):
        return torch.randn(shape, dtype=KINDS[kind][0], device=device).contiguous(memory_format=order)
    x, w = made(layer.batch, layer.inputs, layer.extent, layer.extent), made(layer.outputs, layer.inputs // layer.groups, layer.window, layer.window)
    rows = (layer.extent + 2 * layer.pad - layer.window) // layer.stride + 1
    gradient = made(layer.batch, layer.outputs, rows, rows)

    def backward(*mask):
        results = torch.ops.aten.convolution_backward(gradient, x, w, None, *pairs, False, [0, 0], layer.groups, [*mask, False])
        return next(result for result in results if result is not None)
    return {"forward": lambda: F.conv2d(x, w, None, *pairs, layer.groups), "data": lambda: backward(True, False),
            "filter": lambda: backward(False, True)}


def beyond(work, memory):
    """The most that is taken meanwhile but for the result."""
    before = memory.now()
    memory.restart()
    result = work()
    return memory.peak() - before - result.untyped_storage().nbytes()


def measured(layer, kind, device, memory):
    """Bytes of each kernel when it is called again, and of its first call where that takes more, as engines that fail are tried then."""
    row = {"layer": layer.name, "numbers": kind, "tensor_bytes": 0}
    torch.backends.cudnn.allow_tf32 = KINDS[kind][1]
    try:
        before = memory.now()
        works = works_of(layer, kind, device)
        row["tensor_bytes"] = memory.now() - before
        for kernel in KERNELS:
            first, again = (beyond(works[kernel], memory) for _ in range(2))
            row[f"{kernel}_bytes"] = again
            if first > again:
                row[f"{kernel}_first_bytes"] = first
    except RuntimeError as error:  # out of memory is one
        row["failed"] = str(error).strip().splitlines()[0]
    return row


def network_of(layer):
    conv = {"name": "conv", "op": "CONV", "channels": layer.outputs, "kernel": layer.window, "stride": layer.stride, "pad": layer.pad,
            "groups": layer.groups, "bias": False}
    return {"snsim_net": 1, "name": "layer", "input": [layer.inputs, layer.extent, layer.extent],
            "layers": [AHEAD | {"channels": layer.inputs}, conv, *BEHIND]}


def ask(snsim, gpu, network, batch, precision, *more):
    """The row `pytorch` of a network. RuntimeError with what snsim says."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "network.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(network, file)
        done = subprocess.run([snsim, "--net", path, "--batch", str(batch), "--gpu", gpu, "--strategy", "pytorch", "--precision", precision, *more,
                               "--json", "--no-db"], capture_output=True, text=True)
    if done.returncode not in (0, 1):  # 1: does not fit
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)["results"][0]


def predicted(snsim, gpu, layer, kind):
    """What the steps of the layer have as workspace. Backward has one for the gradients of data and filter, the larger."""
    steps = ask(snsim, gpu, network_of(layer), layer.batch, KINDS[kind][2], "--steps")["steps_table"]
    return {f"{step['pass']}_bytes": step["workspace_bytes"] for step in steps if step["layer"] == "conv" and step["pass"] != "update"}
