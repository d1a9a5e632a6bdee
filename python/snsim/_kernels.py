"""Functions whose form on a GPU PyTorch chooses by asking the driver: attention and recurrent networks. Here they are
chosen by rule (docs/pytorch.md, "Attention")."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from . import _lengths
from ._device import DeviceAnswers
from ._values import Values

aten = torch.ops.aten
Tensor = torch.Tensor

_ATTENTION = torch._C._nn.scaled_dot_product_attention
_RNN_MODES = {torch.rnn_relu: 0, torch.rnn_tanh: 1, torch.lstm: 2, torch.gru: 3}  # cuDNN's numbers
_REQUIRES_GRAD, _DATA = torch.Tensor.requires_grad, torch.Tensor.data
_FLASH_SM, _FLASH_MOST, _FLASH_ALIGN = 80, 256, 8
_MASK_ALIGN = 16
_HALVES = (torch.float16, torch.bfloat16)
# Whether the efficient kernel reads fewer heads of keys, as newer versions say of themselves (2.15 does); in older ones it does not.
_GROUPED = "memory-efficient attention also supports" in (torch.nn.functional.scaled_dot_product_attention.__doc__ or "").lower()


def _flash_trains(sm: int, size: int, dropout: float) -> bool:
    """Small processors have no room for the backward of large heads."""
    large = 192 < size <= 224 or size > 224 and dropout > 0
    return not (large and (86 <= sm <= 89 or sm >= 120))


def _flash_takes(sm: int, query: Tensor, key: Tensor, value: Tensor, dropout: float, causal: bool) -> bool:
    size, trained = query.shape[-1], any(x.requires_grad for x in (query, key, value))
    if query.dtype not in _HALVES or sm < _FLASH_SM or size > _FLASH_MOST or value.shape[-1] != size:
        return False
    square = query.shape[-2] == key.shape[-2]  # else its mask is of the lower right corner
    return (square or not causal) and (not trained or _flash_trains(sm, size, dropout))


def attention_kernel(sm: int, query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], grouped: bool, dropout: float = 0.0,
                     causal: bool = False) -> str:
    """Which kernel a GPU of architecture sm takes: flash, efficient or math, that is in parts."""
    size, half = query.shape[-1], query.dtype in _HALVES
    if query.dim() != 4:
        return "math"
    if mask is None and _flash_takes(sm, query, key, value, dropout, causal):
        return "flash"
    if query.dtype is torch.bfloat16 and sm < _FLASH_SM:
        return "math"
    if grouped and query.shape[-3] != key.shape[-3] and not _GROUPED:
        return "math"
    align = 8 if half else 4
    return "efficient" if size % align == 0 and value.shape[-1] % align == 0 else "math"


def _padded(tensor: Tensor, align: int) -> Tensor:
    return torch.nn.functional.pad(tensor, (0, -tensor.shape[-1] % align))


def _flash(query: Tensor, key: Tensor, value: Tensor, dropout: float, causal: bool, scale: Optional[float]) -> Tensor:
    size = query.shape[-1]
    scale = size ** -0.5 if scale is None else scale
    if size % _FLASH_ALIGN:
        query, key, value = (_padded(x, _FLASH_ALIGN) for x in (query, key, value))
    result = aten._scaled_dot_product_flash_attention(query, key, value, dropout, causal, False, scale=scale)[0]
    return result[..., :size] if size % _FLASH_ALIGN else result


def _bias(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """The mask as the efficient kernel takes it: numbers, of every head, rows of a multiple of 16."""
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), float("-inf"))
    mask = mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    size = mask.shape[-1]
    return _padded(mask, _MASK_ALIGN)[..., :size] if size % _MASK_ALIGN else mask


def _efficient(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], dropout: float, causal: bool,
               scale: Optional[float]) -> Tensor:
    bias = None if mask is None else _bias(mask, query, key)
    trained = [x for x in (query, key, value, bias) if x is not None and x.requires_grad]
    return aten._scaled_dot_product_efficient_attention(query, key, value, bias, torch.is_grad_enabled() and bool(trained),
                                                        dropout, causal, scale=scale)[0]


def convolution_form(real: Callable[..., Any]) -> Callable[..., Any]:
    """torch._C._select_conv_backend, by which a fake convolution knows in what order its result lies. Of numbers of two bytes and of
    one channel a group it asks the driver whether cuDNN has them, and is refused or takes a no. The order is that of four bytes
    in one group."""
    def select(input: Tensor, weight: Tensor, *, groups: int, transposed: bool, **named: Any) -> Any:
        shape = list(weight.shape)
        if input.device.type == "cuda":
            if not transposed:
                shape[1], groups = shape[1] * groups, 1
            input, weight = (torch.empty(sizes, dtype=torch.float32, device=input.device) for sizes in (input.shape, shape))
        return real(input, weight, groups=groups, transposed=transposed, **named)
    return select


class Kernels(TorchFunctionMode):
    """Entered with the recording, and again in the engine: PyTorch leaves function modes inside backward(), where a
    checkpoint's forward runs again."""

    def __init__(self, sm: int, devices: DeviceAnswers, values: Values) -> None:
        super().__init__()
        self.sm, self._devices, self._values = sm, devices, values

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self._devices.forget()
        if func is _ATTENTION:
            return self.attention(*args, **kwargs)
        if func.__class__ is _BUILTIN:
            if func in _RNN_MODES and args[0].device.type == "cuda":
                return _rnn(_RNN_MODES[func], *args)
            if func in _lengths.FUNCTIONS:
                return _lengths.FUNCTIONS[func](self._values, *args, **kwargs)
        result = func(*args, **kwargs)
        owner = getattr(func, "__self__", None)
        if func is torch.Tensor.requires_grad_ or owner is _REQUIRES_GRAD and func.__name__ == "__set__":
            self._devices.made_leaf(args[0])
        elif owner is _DATA and func.__name__ == "__set__":
            self._devices.adopt_again(args[0])
        return result

    def inner(self) -> Dict[str, Any]:
        """Replacements in torch.nn.functional: a function mode is left within a function of Python, so it does not see what
        multi_head_attention_forward and ctc_loss call."""
        def attention(*args: Any, **kwargs: Any) -> Tensor:
            seen = any(isinstance(mode, Kernels) for mode in _get_current_function_mode_stack())
            return (_ATTENTION if seen else self.attention)(*args, **kwargs)

        def ctc_loss(scores: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
                     zero_infinity: bool = False) -> Tensor:
            number = torch.nn._reduction.get_enum(reduction)
            return _lengths.ctc_loss(self._values, scores, targets, input_lengths, target_lengths, blank, number, zero_infinity)
        return {"scaled_dot_product_attention": attention, "ctc_loss": ctc_loss}

    def attention(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
                  is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False) -> Tensor:
        """scaled_dot_product_attention, by the kernel that the GPU takes."""
        grouped = {"enable_gqa": True} if enable_gqa else {}  # an argument that older versions have not
        if query.device.type != "cuda":
            return _ATTENTION(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **grouped)
        if torch.is_autocast_enabled("cuda"):
            dtype = torch.get_autocast_dtype("cuda")
            query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
            if attn_mask is not None and attn_mask.is_floating_point():
                attn_mask = attn_mask.to(dtype)
        kernel = attention_kernel(self.sm, query, key, value, attn_mask, enable_gqa, dropout_p, is_causal)
        with torch.autocast("cuda", enabled=False):
            if kernel == "flash":
                return _flash(query, key, value, dropout_p, is_causal, scale)
            if kernel == "efficient":
                return _efficient(query, key, value, attn_mask, dropout_p, is_causal, scale)
            return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **grouped)[0]


_BUILTIN = type(torch.lstm)


def _rnn(mode: int, x: Tensor, *rest: Any) -> Tuple[Tensor, ...]:
    """torch.lstm, gru, rnn_* in their two forms: x, states, weights..., batch_first; or packed: x, sizes, states, ..."""
    packed = isinstance(rest[0], Tensor) and not isinstance(rest[2], bool)
    if packed:
        sizes, states, weights, biases, layers, dropout, train, both = rest
        first = False
    else:
        states, weights, biases, layers, dropout, train, both, first = rest
        sizes = None
    hidden, cell = (states[0], states[1]) if mode == 2 else (states, None)
    per_layer = 4 if biases else 2
    projected = hidden.shape[-1] if mode == 2 and cell.shape[-1] != hidden.shape[-1] else 0
    per_layer += bool(projected)
    size = cell.shape[-1] if cell is not None else hidden.shape[-1]
    if torch.is_autocast_enabled("cuda"):  # autocast casts states and input, and flattens the weights anew
        x, hidden, cell, weights = _cast_rnn(torch.get_autocast_dtype("cuda"), x, hidden, cell, weights)
    if first:  # cuDNN works on steps ahead of rows, and its output stays so, seen transposed
        x = x.transpose(0, 1)
    output, hidden, cell, *_ = aten._cudnn_rnn(
        x, list(weights), per_layer, _weight_buffer(x, weights), hidden.contiguous(), None if cell is None else cell.contiguous(),
        mode, size, projected, layers, False, dropout, train, both, [] if sizes is None else _batch_sizes(sizes), None)
    output = output.transpose(0, 1) if first else output
    return (output, hidden, cell) if mode == 2 else (output, hidden)


def _cast_rnn(dtype: torch.dtype, x: Tensor, hidden: Tensor, cell: Optional[Tensor], weights: Any) -> Tuple[Any, ...]:
    with torch.autocast("cuda", enabled=False):
        return (x.to(dtype), hidden.to(dtype), None if cell is None else cell.to(dtype), [w.to(dtype) for w in weights])


def _batch_sizes(sizes: Tensor) -> Any:
    """Of a packed sequence; where they have no values one row is taken for a step."""
    value = Values.of(sizes)
    return [1] * sizes.numel() if value is None else value.tolist()


def _weight_buffer(x: Tensor, weights: Any) -> Tensor:
    """The one tensor of which cuDNN's weights are views; made anew where they are none."""
    with torch.no_grad():
        storages = {w.untyped_storage()._cdata for w in weights}
        if len(storages) > 1:
            return torch.empty(sum(w.numel() for w in weights), dtype=x.dtype, device=x.device)
        whole = weights[0].untyped_storage().nbytes() // weights[0].element_size()
        return weights[0].detach().as_strided((whole,), (1,), 0)


def flatten_weights(module: torch.nn.RNNBase) -> None:
    """RNNBase.flatten_parameters on a GPU: the weights become views of one tensor."""
    weights = module._flat_weights
    if len(weights) < 2 or not all(isinstance(w, Tensor) and w.device.type == "cuda" for w in weights):
        return
    if len({w.dtype for w in weights}) != 1 or len({id(w) for w in weights}) != len(weights):
        return
    if len({w.untyped_storage()._cdata for w in weights}) == 1:
        return
    with torch.no_grad():
        flat = torch.empty(sum(w.numel() for w in weights), dtype=weights[0].dtype, device=weights[0].device)
        offset = 0
        for weight in weights:
            weight.data = flat.as_strided(tuple(weight.shape), weight.stride(), offset)
            offset += weight.numel()
