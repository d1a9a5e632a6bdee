"""An operation as the kernels that PyTorch launches for it: of which kind, with which flops and with which bytes. Bytes are
what a kernel really reads and writes: batch norm reads its input twice, a pool's backward does not read the pool's input."""
from __future__ import annotations

from math import prod
from typing import List, NamedTuple

from .operations import Operation

NARROW = 8  # channels of a group, below which tensor cores have nothing to multiply


class Kernel(NamedTuple):
    kind: str
    flops: float
    bytes: float
    width: int        # bytes of an element
    m: float = 0      # of a product: rows, columns, terms of each sum, and how many products
    n: float = 0
    k: float = 0
    count: float = 1


NOTHING = ("empty", "new_empty", "new_empty_strided", "empty_like", "as_strided_", "scalar_tensor")
ONLY_WRITE = ("zero_", "fill_", "bernoulli_", "zeros", "ones_like", "new_zeros", "zeros_like", "full", "arange", "uniform_")
COPIES = ("clone", "cat", "stack", "copy_", "constant_pad_nd", "roll", "slice_backward", "select_backward", "unfold_backward",
          "split_with_sizes_copy", "flip", "repeat", "im2col", "col2im", "reflection_pad2d", "reflection_pad2d_backward")
REDUCTIONS = ("mean", "sum", "linalg_vector_norm", "var_mean", "var", "std", "amax", "max", "nll_loss_forward", "nll_loss_backward")
INDEXED = ("index", "index_put", "index_select", "gather", "scatter_add_", "embedding", "topk", "sort", "index_put_")
POOLS = ("max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d")
BN = ("cudnn_batch_norm", "native_batch_norm", "_native_batch_norm_legit")
WIDTHS = {"float16": 2, "bfloat16": 2, "bool": 1, "uint8": 1, "int64": 8}


def kernels(op: Operation) -> List[Kernel]:
    called, width = op.called, WIDTHS.get(op.dtype, 4)
    if called in NOTHING:
        return []
    if called in ("convolution", "convolution_backward"):
        return convolutions(op, width)
    if op.shapes and "attention" not in called and "rnn" not in called:
        return [product(op, width)]
    return [Kernel(kind_of(op), op.flops, traffic(op), width)]


def kind_of(op: Operation) -> str:
    """Of what is neither a convolution nor a product."""
    called, back = op.called, "_bwd" if "backward" in op.called else "_fwd"
    plain = called.replace("_backward_data", "").replace("_backward", "")
    if op.phase == 2 or op.node == -2 or called == "zero_" and op.dtype == "float32" and op.node == -1:
        return "optimizer"
    if "attention" in called:
        return "attention" + back
    if "rnn" in called:
        return "product"
    if plain in BN:
        return "bn" + back
    if "layer_norm" in called:
        return "ln" + back
    if "group_norm" in called:
        return "gn" + back
    if "softmax" in called:
        return "softmax"
    for kind, names in (("pool", POOLS), ("copy", COPIES), ("reduce", REDUCTIONS), ("index", INDEXED)):
        if called in names or kind == "pool" and plain in names:
            return kind
    if called == "_to_copy":
        return "cast"
    return "random" if called in ("bernoulli_", "native_dropout", "native_dropout_backward") else "elementwise"


def traffic(op: Operation) -> float:
    """Bytes that its kernels move, as models/record/traffic.c has it. Of a batch norm in training mode forward has three passes, backward five."""
    called, both = op.called, op.read + op.written
    if called in ONLY_WRITE:
        return op.written
    if called in BN and op.keeps:  # statistics
        return both * 1.5
    if called in ("cudnn_batch_norm_backward", "native_batch_norm_backward", "native_layer_norm_backward", "native_group_norm_backward"):
        return both * 5 / 3
    if called == "native_group_norm":
        return both * 1.5
    if called in ("max_pool2d_with_indices_backward", "avg_pool2d_backward", "copy_"):
        return both - op.written
    if called in ("slice_backward", "select_backward"):
        return both + op.read
    return both


def product(op: Operation, width: int) -> Kernel:
    a, b = op.shapes[0][-2], op.shapes[0][-1]
    kind = "bmm" if len(a) == 3 else "product"
    count = a[0] if len(a) == 3 else 1
    return Kernel(kind, op.flops, op.read + op.written, width, a[-2], b[-1], a[-1], count)


def convolutions(op: Operation, width: int) -> List[Kernel]:
    operands, groups, transposed, mask = op.shapes[0], op.shapes[4], op.shapes[5], op.shapes[6]
    x, w = (operands[1], operands[2]) if mask else operands[:2]
    y = operands[0] if mask else None
    xs, ws = prod(x) * width, prod(w) * width
    ys = prod(y) * width if mask else op.written
    flops = 2 * (prod(x) if transposed else ys / width) * prod(w[1:])  # PyTorch's counter forgets groups in backward
    kind = kind_of_convolution(x, w, groups)
    c, k = x[1] / groups, (w[1] * groups if transposed else w[0]) / groups
    window, pixels = prod(w[2:]), flops / 2 / prod(w)
    made = []
    if not mask:
        made.append(Kernel(f"{kind}_fwd", flops, xs + ws + ys, width, pixels, k, c * window, groups))
        if len(operands) > 2:
            made.append(Kernel("elementwise", 0, 2 * ys, width))
    if mask & 1:
        made.append(Kernel(f"{kind}_dx", flops, xs + ws + ys, width, x[0] * prod(x[2:]), c, k * window, groups))
    if mask & 2:
        made.append(Kernel(f"{kind}_dw", flops, xs + ws + ys, width, k, c * window, pixels, groups))
    if mask & 4:
        made.append(Kernel("reduce", 0, ys, width))
    return made + layouts(kind, width, [part for part in made if part.flops])


def layouts(kind: str, width: int, convolutions_: List[Kernel]) -> List[Kernel]:
    """Tensor cores want channels last: of channels first cuDNN may turn what a kernel reads and makes, each read and written."""
    if kind == "dw" or width != 2:
        return []
    return [Kernel("layout", 0, 2 * part.bytes, width) for part in convolutions_]


def kind_of_convolution(x: List[int], w: List[int], groups: int) -> str:
    """dw: depthwise; grouped: in several; stem: of so few channels that tensor cores are fed with air; dense."""
    if groups > 1:
        return "dw" if x[1] == groups else "grouped"
    return "stem" if x[1] < NARROW else "dense"
