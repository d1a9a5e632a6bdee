"""Sequences of several lengths: packed ones, and the loss of connectionist temporal classification. PyTorch reads lengths
through pointers, which fakes have not; here they come from values, and where these are not known all are the longest."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ._values import GUESSES, Values

Tensor = torch.Tensor


class _Made(torch.autograd.Function):
    """A tensor of another shape, and backward a gradient of the first one's."""

    @staticmethod
    def forward(ctx: Any, source: Tensor, shape: Tuple[int, ...]) -> Tensor:
        ctx.shape = source.shape
        return source.new_empty(shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tuple[Tensor, None]:
        return gradient.new_zeros(ctx.shape), None


def _numbers(tensor: Tensor, values: Values, otherwise: List[int]) -> List[int]:
    value = Values.of(tensor)
    if value is None:
        values.assume("all sequences of a batch are as long as the longest")
        return otherwise
    with _disable_current_modes():
        return value.tolist()


def _on_cpu(numbers: List[int]) -> Tensor:
    """A fake of whole numbers, whose values are known."""
    fake = torch.empty(len(numbers), dtype=torch.long, device="cpu")
    with _disable_current_modes():
        Values.give(fake, torch.tensor(numbers, dtype=torch.long))
    return fake


def pack(values: Values, source: Tensor, lengths: Tensor, batch_first: bool) -> Tuple[Tensor, Tensor]:
    """torch._VF._pack_padded_sequence."""
    rows, steps = (source.shape[0], source.shape[1]) if batch_first else (source.shape[1], source.shape[0])
    found = _numbers(lengths, values, [steps] * rows)
    sizes = [sum(length > step for length in found) for step in range(max(found))]
    return _Made.apply(source, (sum(sizes), *source.shape[2:])), _on_cpu(sizes)


def unpack(values: Values, data: Tensor, batch_sizes: Tensor, batch_first: bool, padding: float,
           total: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    """torch._VF._pad_packed_sequence."""
    sizes = _numbers(batch_sizes, values, [max(1, data.shape[0] // max(1, batch_sizes.numel()))] * batch_sizes.numel())
    steps = len(sizes) if total is None or total <= 0 else total
    output = _Made.apply(data, (steps, sizes[0], *data.shape[1:]))
    lengths = [sum(row < size for size in sizes) for row in range(sizes[0])]
    return output.transpose(0, 1) if batch_first else output, _on_cpu(lengths)


def ctc_loss(values: Values, scores: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: int = 1, zero_infinity: bool = False) -> Tensor:
    """torch.ctc_loss by PyTorch's own kernel; cuDNN's, for targets on the CPU, is not modelled."""
    rows = scores.shape[1] if scores.dim() == 3 else 1
    longest = targets.shape[1] if targets.dim() == 2 else max(1, targets.numel() // rows)
    steps, lengths = (length if isinstance(length, (list, tuple)) else _numbers(length, values, [most] * rows)
                      for length, most in ((input_lengths, scores.shape[0]), (target_lengths, longest)))
    loss = aten._ctc_loss.default(scores, targets, list(steps), list(lengths), blank, zero_infinity)[0]
    if zero_infinity:
        loss = torch.where(loss == float("inf"), torch.zeros((), dtype=loss.dtype, device=loss.device), loss)
    if reduction == 1:
        return (loss / torch.empty(rows, dtype=loss.dtype, device=loss.device).clamp_min(1)).mean()
    return loss.sum() if reduction == 2 else loss


def ctc_kernel(values: Values, func: Any, args: Any, kwargs: Any) -> Tuple[Tensor, Tensor]:
    """The losses, and the table of backward."""
    scores, lengths = args[0], args[3]
    return scores.new_empty(scores.shape[1]), scores.new_empty((scores.shape[1], scores.shape[0], 2 * max(lengths) + 1))


def ctc_backward(values: Values, func: Any, args: Any, kwargs: Any) -> Tensor:
    return torch.empty_like(args[1])


aten = torch.ops.aten
GUESSES.update({aten._ctc_loss.default: ctc_kernel, aten._ctc_loss_backward.default: ctc_backward})
FUNCTIONS = {torch._VF._pack_padded_sequence: pack, torch._VF._pad_packed_sequence: unpack, torch.ctc_loss: ctc_loss}
