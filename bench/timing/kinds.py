"""Of which kind an operation's kernels are. What they move and how long they take is the program's to say."""
from __future__ import annotations

from typing import List

from .operations import Operation

NARROW = 8  # channels of a group, below which tensor cores have nothing to multiply

NOTHING = ("empty", "new_empty", "new_empty_strided", "empty_like", "as_strided_", "scalar_tensor")
COPIES = ("clone", "cat", "stack", "copy_", "constant_pad_nd", "roll", "slice_backward", "select_backward", "unfold_backward",
          "split_with_sizes_copy", "flip", "repeat", "im2col", "col2im", "reflection_pad2d", "reflection_pad2d_backward")
REDUCTIONS = ("mean", "sum", "linalg_vector_norm", "var_mean", "var", "std", "amax", "max", "nll_loss_forward", "nll_loss_backward")
INDEXED = ("index", "index_put", "index_select", "gather", "scatter_add_", "embedding", "topk", "sort", "index_put_",
           "_index_put_impl_")
POOLS = ("max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d")
BN = ("cudnn_batch_norm", "native_batch_norm", "_native_batch_norm_legit")


def kind_of(op: Operation) -> str:
    called, back = op.called, "_bwd" if "backward" in op.called else "_fwd"
    if called in NOTHING:
        return "nothing"
    if called in ("convolution", "convolution_backward") and op.shapes:
        return kind_of_convolution(op.shapes) + back
    if op.shapes and "attention" not in called and "rnn" not in called:
        return "bmm" if len(op.shapes[0][-2]) == 3 else "product"
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
    return by_memory(called, plain)


def by_memory(called: str, plain: str) -> str:
    if "softmax" in called:
        return "softmax"
    for kind, names in (("pool", POOLS), ("copy", COPIES), ("reduce", REDUCTIONS), ("index", INDEXED)):
        if called in names or kind == "pool" and plain in names:
            return kind
    if called == "_to_copy":
        return "cast"
    return "random" if called in ("bernoulli_", "native_dropout", "native_dropout_backward") else "elementwise"


def kind_of_convolution(shapes: List) -> str:
    """dw: depthwise; grouped: in several; stem: of so few channels that tensor cores are fed with air; dense."""
    operands, groups, mask = shapes[0], shapes[4], shapes[6]
    x = operands[1] if mask else operands[0]
    if groups > 1:
        return "dw" if x[1] == groups else "grouped"
    return "stem" if x[1] < NARROW else "dense"
