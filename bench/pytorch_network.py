"""A network of snsim as a module of PyTorch, for the comparisons of this folder. Import it where torch is known to be there."""
import math

import torch
from torch import nn


def pair(value):
    return value if isinstance(value, list) else [value, value]


def of_axes(axes, value, otherwise=1):
    """A number for each axis; in a network of volumes two are of each plane by itself (docs/networks.md)."""
    if not isinstance(value, list):
        return [value] * axes
    return [otherwise] * (axes - len(value)) + value


class LayerNorm(nn.LayerNorm):
    """Over the channels of each position; the permuted tensors are views."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Positions(nn.Linear):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Scale(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels, 1, 1))

    def forward(self, x):
        return self.weight * x


class Times(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return x * self.slope


class RmsNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        return (self.weight * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5))).permute(0, 3, 1, 2)


class Embedding(nn.Embedding):
    def forward(self, x):
        return super().forward(x[:, 0].long()).permute(0, 3, 1, 2)


class Tied(nn.Module):
    """Multiplies each position by another module's table."""

    def __init__(self, owner):
        super().__init__()
        self.owner = [owner]  # not a module of this one

    def forward(self, x):
        return nn.functional.linear(x.permute(0, 2, 3, 1), self.owner[0].weight).permute(0, 3, 1, 2)


class TiedEmbedding(Tied):
    """Looks tokens up in another module's table."""

    def forward(self, x):
        return nn.functional.embedding(x[:, 0].long(), self.owner[0].weight).permute(0, 3, 1, 2)


class Position(nn.Module):
    """A row for each position; of fewer rows the sequence's parts have one each."""

    def __init__(self, rows, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, channels))

    def forward(self, x):
        positions, rows = x.shape[2] * x.shape[3], len(self.weight)
        taken = torch.arange(positions)
        taken = taken if rows >= positions else taken * rows // positions
        return x + self.weight[taken].T.reshape(1, -1, *x.shape[2:])


class Token(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, channels))

    def forward(self, x):
        first = self.weight[:, :, None].expand(len(x), -1, -1)
        return torch.cat([first, x.flatten(2)], 2)[..., None]


class Rotary(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        n, channels, positions = *x.shape[:2], x.shape[2] * x.shape[3]
        d = channels // self.heads
        turns = 10000.0 ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)
        angle = (turns[:, None] * torch.arange(positions)).repeat(2, 1)
        cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        heads = x.reshape(n, self.heads, d, positions)
        turned = torch.cat([-heads[:, :, d // 2:], heads[:, :, :d // 2]], 2)
        return (heads * cosine + turned * sine).reshape(x.shape)


def bucket(distance, rows, causal):
    """T5's, of a key so far behind its query; below 0: ahead of it (models/net/net.h)."""
    half = max(rows // 2, 1)
    first, n = (0, rows) if causal else (half if distance > 0 and rows > 1 else 0, half)
    far, exact = abs(distance), n // 2
    if n < 2:
        return first
    if far < exact:
        return first + far
    most = max(128, 2 * exact)
    return first + min(n - 1, exact + int(math.log(far / exact) / math.log(most / exact) * (n - exact)))


class Attention(nn.Module):
    """dropout(probabilities, layer, training) is what drops some of them.

    Windows are cut out of images that are rolled by the shift, as torchvision's Swin Transformers do it, and put together again
    behind; elsewhere all positions are one window."""

    def __init__(self, layer, dropout):
        super().__init__()
        self.layer, self.dropout = layer, dropout
        self.window, self.shift, rows = layer.get("window", 0), layer.get("shift", 0), layer.get("rows", 0)
        if rows:
            self.weight = nn.Parameter(torch.zeros(rows, layer["heads"]))

    def cut(self, x):
        """Images x channels x height x width as images x windows x channels x positions."""
        if not self.window:
            return x.flatten(2)[:, None]
        n, c, h, w = x.shape
        s = self.window
        x = x.roll((-self.shift, -self.shift), (2, 3)).reshape(n, c, h // s, s, w // s, s)
        return x.permute(0, 2, 4, 1, 3, 5).reshape(n, h // s * (w // s), c, s * s)

    def together(self, x, height, width):
        if not self.window:
            return x[:, 0].reshape(len(x), -1, height, width)
        s = self.window
        x = x.reshape(len(x), height // s, width // s, -1, s, s).permute(0, 3, 1, 4, 2, 5)
        return x.reshape(len(x), -1, height, width).roll((self.shift, self.shift), (2, 3))

    def hidden(self, height, width):
        """Windows x positions x positions: which keys a query does not see."""
        order = self.cut(torch.arange(height * width).reshape(1, 1, height, width))[0, :, 0]
        hidden = order[:, None, :] > order[:, :, None] if self.layer["causal"] else torch.zeros(1, 1, 1).bool()
        if self.shift:
            regions = torch.zeros(1, 1, height, width)
            ends = [slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None)]
            for number, (rows, columns) in enumerate((a, b) for a in ends for b in ends):
                regions[:, :, rows, columns] = number
            shift, self.shift = self.shift, 0  # regions are of images that have been rolled
            regions = self.cut(regions)[0, :, 0]
            self.shift = shift
            hidden = hidden | (regions[:, None, :] != regions[:, :, None])
        return hidden

    def bias(self, positions):
        """Heads x positions x positions."""
        if self.window:
            rows, columns = (torch.arange(positions) // self.window, torch.arange(positions) % self.window)
            down, across = (x[:, None] - x[None, :] + self.window - 1 for x in (rows, columns))
            chosen = down * (2 * self.window - 1) + across
        else:
            chosen = torch.tensor([[bucket(j - i, len(self.weight), self.layer["causal"]) for j in range(positions)]
                                   for i in range(positions)])
        return self.weight[chosen].permute(2, 0, 1)

    def forward(self, *given):
        heads, kv = self.layer["heads"], self.layer["kv_heads"]
        shape = given[0].shape
        q, k, v = (self.cut(x) for x in (given if len(given) == 3 else self.parts(given[0])))
        n, windows, d, positions = *q.shape[:2], q.shape[2] // heads, q.shape[3]
        q, k, v = (x.reshape(n, windows, -1, d, positions) for x in (q, k, v))
        k, v = (x.repeat_interleave(heads // kv, 2) for x in (k, v))
        scores = q.transpose(3, 4) @ k / d**0.5
        if self.layer.get("rows"):
            scores = scores + self.bias(positions)
        if self.layer["causal"] or self.shift:
            scores = scores.masked_fill(self.hidden(*shape[2:])[None, :, None], float("-inf"))
        p = scores.softmax(-1)
        if self.dropout and self.layer["ratio"]:  # a mask counts heads before windows
            p = self.dropout(p.transpose(1, 2), self.layer, self.training).transpose(1, 2)
        return self.together((v @ p.transpose(3, 4)).reshape(n, windows, heads * d, positions), *shape[2:])

    def parts(self, x):
        heads, kv = self.layer["heads"], self.layer["kv_heads"]
        d = x.shape[1] // (heads + 2 * kv)
        return x.split([heads * d, kv * d, kv * d], 1)


def drop_images(x, ratio, training):
    if not training or ratio == 0:
        return x
    return x * x.new_empty(len(x), 1, 1, 1).bernoulli_(1 - ratio).div_(1 - ratio)


ACTIVATIONS = {"tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "gelu": nn.GELU, "softplus": nn.Softplus, "silu": nn.SiLU,
               "hardswish": nn.Hardswish, "hardsigmoid": nn.Hardsigmoid, "mish": nn.Mish,
               "gelu_new": lambda: nn.GELU(approximate="tanh")}
AXES = {"channels": 1, "height": 2, "width": -1}  # volumes have a depth between


def reshape(x, layer):
    return x.reshape(len(x), *(side or -1 for side in layer["shape"]))


def pad(x, layer):
    (high, wide), (below, behind) = pair(layer["pad"]), pair(layer["output_pad"])
    return nn.functional.pad(x, (wide, wide + behind, high, high + below))


def resize(x, layer):
    size = {"scale_factor": layer["scale"]} if "scale" in layer else {"size": pair(layer["size"])}
    return nn.functional.interpolate(x, mode=layer["mode"], **size)


def cut(x, layer):
    first, step = layer["first"], layer.get("step", 1)
    taken = [slice(None)] * x.ndim
    taken[AXES[layer["axis"]]] = slice(first, first + (layer["count"] - 1) * step + 1, step)
    x = x[tuple(taken)]
    return x.flip(AXES[layer["axis"]]) if layer.get("turned") else x


ARRANGEMENTS = {
    "PROBABILITIES": lambda x, layer: x.softmax(AXES[layer["axis"]]),
    "RESHAPE": reshape,
    "TRANSPOSE": lambda x, layer: x.permute(0, *(AXES[axis] for axis in layer["axes"])),
    "SLICE": cut,
    "PAD": pad,
    "RESIZE": resize,
}


class Network(nn.Module):
    """A network from the layers of docs/networks.md. An output is let go of behind its last reader, as in a hand-written
    forward(), and in-place operators are used where the file says so, or by default where torchvision has them.

    dropout(x, layer, training) is what a DROPOUT layer does; None: nothing. A forward gives what goes into each SOFTMAX."""

    def __init__(self, network, dropout=None):
        super().__init__()
        self.dropout = dropout
        self.layers = [layer for layer in network["layers"] if layer["op"] != "SOFTMAX"]
        self.ends = [layer["input"] for layer in network["layers"] if layer["op"] == "SOFTMAX"]
        self.squares = any(layer.get("loss") == "mse" for layer in network["layers"])
        self.op = {layer["name"]: layer["op"] for layer in self.layers} | {"data": "DATA"}
        self.readers = {name: 0 for name in self.op}
        for layer in network["layers"]:
            for name in self.inputs(layer):
                self.readers[name] += 1
        shapes, modules = {"data": network.get("input") or [1, network["tokens"], 1]}, []
        self.made = {}
        for layer in self.layers:
            module = self.module(layer, shapes[self.inputs(layer)[0]])
            modules.append(module)
            self.made[layer["name"]] = module
            with torch.no_grad():
                given = [torch.zeros(2, *shapes[name]) for name in self.inputs(layer)]
                shapes[layer["name"]] = list(self.run(layer, module, given).shape[1:])
        del self.made
        self.members = nn.ModuleList(modules)
        self.end_shapes = [shapes[name] for name in self.ends]
        self.each = any(layer.get("positions") for layer in network["layers"] if layer["op"] == "SOFTMAX")
        self.positions = shapes[self.ends[0]][1:] if self.each else ()

    @staticmethod
    def inputs(layer):
        return layer["inputs"] if "inputs" in layer else [layer["input"]]

    def in_place(self, layer):
        """Legal where nobody else reads the old value, nor its maker keeps it for backward."""
        first = self.inputs(layer)[0]
        asked = layer.get("inplace", layer["op"] == "JOIN" or self.op[first] in ("BN", "CONV", "DECONV", "JOIN"))
        return asked and layer["op"] != "DROPOUT" and self.readers[first] == 1 and self.op[first] not in ("ACT", "DATA")

    def module(self, layer, shape):
        op = layer["op"]
        if op in ("CONV", "DECONV"):
            return self.convolution(layer, shape)
        if op == "GROUP_NORM":
            return nn.GroupNorm(layer["groups"], shape[0])
        if layer.get("weights_of"):
            return (TiedEmbedding if op == "EMBEDDING" else Tied)(self.made[layer["weights_of"]])
        if op == "FC" and layer.get("positions"):
            return Positions(shape[0], layer["channels"], bias=layer["bias"])
        if op in ("LAYER_NORM", "RMS_NORM", "SCALE", "TOKEN"):
            return {"LAYER_NORM": LayerNorm, "RMS_NORM": RmsNorm, "SCALE": Scale, "TOKEN": Token}[op](shape[0])
        if op == "EMBEDDING":
            return Embedding(layer["vocabulary"], layer["channels"])
        if op == "POSITION":
            return Position(layer["rows"], shape[0])
        if op == "ROTARY":
            return Rotary(layer.get("heads", 1))
        if op == "ATTENTION":
            return Attention(layer, self.dropout)
        if op == "FC":
            return nn.Linear(torch.Size(shape).numel(), layer["channels"], bias=layer["bias"])
        if op == "BN":
            return (nn.BatchNorm3d if len(shape) == 4 else nn.BatchNorm2d)(shape[0])
        if op == "LRN":
            return nn.LocalResponseNorm(layer["size"], layer["alpha"], layer["beta"], layer["k"])
        if op == "ACT":
            return self.activation(layer)
        if op == "POOL":
            return self.pool(layer, len(shape) - 1)
        return nn.Identity()

    @staticmethod
    def convolution(layer, shape):
        axes = len(shape) - 1
        window = dict(stride=of_axes(axes, layer["stride"]), padding=of_axes(axes, layer["pad"], 0), groups=layer["groups"],
                      bias=layer["bias"], dilation=of_axes(axes, layer.get("dilation", 1)))
        if layer["op"] == "CONV":
            maker = nn.Conv3d if axes == 3 else nn.Conv2d
        else:
            maker = nn.ConvTranspose3d if axes == 3 else nn.ConvTranspose2d
            window["output_padding"] = of_axes(axes, layer["output_pad"], 0)
        return maker(shape[0], layer["channels"], of_axes(axes, layer["kernel"]), **window)

    def activation(self, layer):
        mode, in_place = layer["mode"], self.in_place(layer)
        if mode == "times":
            return Times(layer["slope"])
        if mode == "prelu":
            return nn.PReLU(layer["slopes"])
        if mode == "leaky":
            return nn.LeakyReLU(layer["slope"], inplace=in_place)
        if mode in ACTIVATIONS:
            return ACTIVATIONS[mode]()
        if mode == "elu":
            return nn.ELU(inplace=in_place)
        return (nn.ReLU6 if mode == "relu6" else nn.ReLU)(inplace=in_place)

    @staticmethod
    def pool(layer, axes):
        average, deep = layer["mode"] == "average", axes == 3
        size = 1 if layer.get("global") else layer.get("adaptive")
        if size:
            adaptive = ((nn.AdaptiveMaxPool2d, nn.AdaptiveAvgPool2d), (nn.AdaptiveMaxPool3d, nn.AdaptiveAvgPool3d))
            return adaptive[deep][average](of_axes(axes, size, None))
        window = dict(kernel_size=of_axes(axes, layer["kernel"]), stride=of_axes(axes, layer["stride"]),
                      padding=of_axes(axes, layer["pad"], 0), ceil_mode=layer["ceil"])
        if average:
            return (nn.AvgPool3d if deep else nn.AvgPool2d)(**window, count_include_pad=False)
        return (nn.MaxPool3d if deep else nn.MaxPool2d)(**window, dilation=of_axes(axes, layer.get("dilation", 1)))

    def run(self, layer, module, given):
        op = layer["op"]
        if op == "JOIN":
            result = given[0].add_(given[1]) if self.in_place(layer) else given[0] + given[1]
            for other in given[2:]:
                result = result.add_(other)
            return result
        if op == "CONCAT":
            return torch.cat(given, 1)
        if op == "MUL":
            return given[0] * given[1]
        if op == "TAKE":
            return given[0][:, :, :1, :1]
        if op == "ATTENTION":
            return module(*given)
        if op == "MATMUL":
            return torch.matmul(given[0].mT if layer["turn_first"] else given[0],
                                given[1].mT if layer["turn_second"] else given[1])
        if op in ARRANGEMENTS:
            return ARRANGEMENTS[op](given[0], layer)
        if op == "DROPOUT" and layer.get("images") and not self.dropout:
            return drop_images(given[0], layer["ratio"], self.training)
        if op == "DROPOUT":
            return self.dropout(given[0], layer, self.training) if self.dropout else given[0]
        whole = op == "FC" and not layer.get("positions")
        if whole:
            given = [given[0].flatten(1)]
        result = module(given[0])
        return result[:, :, None, None] if whole else result

    def forward(self, batch):
        values, left = {"data": batch}, dict(self.readers)
        for layer, module in zip(self.layers, self.members):
            given = [values[name] for name in self.inputs(layer)]
            for name in self.inputs(layer):
                left[name] -= 1
                if left[name] == 0:
                    del values[name]
            values[layer["name"]] = self.run(layer, module, given)
        return [values[name] if self.each or self.squares else values[name].flatten(1) for name in self.ends]
