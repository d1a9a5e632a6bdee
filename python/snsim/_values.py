"""Values. Fake tensors have none, but masks, positions and lengths decide which path a model takes. So whole numbers and
booleans made of constants or of the user's inputs are computed on the CPU beside the fakes (their shadows). Where only a
value would tell and there is none, something is assumed, and the recording says what and at which of the user's lines."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

from ._costs import operands
from ._errors import users_line

ITEM = torch.ops.aten._local_scalar_dense.default
MOST_WHOLE, MOST_FLOATS = 1 << 22, 4096  # elements that are computed
CPU = torch.device("cpu")
_QUIET = ("grad_scaler.py", "clip_grad.py", "parametrizations.py")  # PyTorch's own questions whose answer changes no memory
_CAST = torch.ops.aten._to_copy.default
_RANDOM = torch.Tag.nondeterministic_seeded
_HOPED = (torch.ops.aten.all.default, torch.ops.aten._is_all_true.default)  # what is asked of all elements is an assertion: it holds


_DECIDED = {**dict.fromkeys((torch.ops.aten.bitwise_or.Tensor, torch.ops.aten.logical_or.default), True),
            **dict.fromkeys((torch.ops.aten.bitwise_and.Tensor, torch.ops.aten.logical_and.default), False)}


def is_small(tensor: torch.Tensor) -> bool:
    whole = not (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
    return tensor.numel() <= (MOST_WHOLE if whole else MOST_FLOATS)


def written(func: Any, args: Any, kwargs: Any) -> List[torch.Tensor]:
    """Arguments that an operation writes to, by its schema."""
    found: List[torch.Tensor] = []
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found += operands((args[position] if position < len(args) else kwargs.get(argument.name),))
    return found


class Values:
    """The shadows, and what had to be assumed."""

    def __init__(self, share: float) -> None:
        self.share = share
        self._assumed: Dict[Tuple[str, str], int] = {}

    # shadows ---------------------------------------------------------------------------------------------------------

    @staticmethod
    def of(tensor: torch.Tensor) -> Optional[torch.Tensor]:
        """The tensor's value, or None where it is not known."""
        if not isinstance(tensor, FakeTensor):
            return tensor if tensor.device == CPU else None
        value = getattr(tensor, "_snsim_value", None)
        if value is None:
            return tensor.constant if tensor.constant is not None and tensor.constant.device == CPU else None
        return None if getattr(value.untyped_storage(), "_snsim_lost", False) else value

    @staticmethod
    def give(tensor: torch.Tensor, value: torch.Tensor) -> None:
        if getattr(tensor, "constant", None) is None:
            tensor._snsim_value = value

    @staticmethod
    def forget(tensor: torch.Tensor) -> None:
        """The tensor got a value that is not known, and so has every view of it."""
        value = getattr(tensor, "_snsim_value", None)
        if value is not None:
            value.untyped_storage()._snsim_lost = True
            tensor._snsim_value = None

    def follow(self, func: Any, args: Any, kwargs: Any, inputs: List[torch.Tensor], result: Any) -> None:
        """Computes the shadow of an operation's result, and what it changes, if all it reads is known."""
        made = [x for x in operands((result,)) if isinstance(x, FakeTensor)]
        changed = written(func, args, kwargs) if func._schema.is_mutable else []
        if not made and not changed:
            return
        if any(getattr(x, "_snsim_value", None) is None and getattr(x, "constant", None) is not None for x in changed):
            return  # FakeTensorMode itself has computed it
        if self._computable(func, inputs, made, changed):
            try:
                values = self._compute(func, args, kwargs)
            except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
                values = []
            if len(values) == len(made):
                for tensor, value in zip(made, values):
                    self.give(tensor, value)
                return
        if func in _DECIDED:
            self._decide(_DECIDED[func], inputs, made[0])
        for tensor in changed:
            self.forget(tensor)
        if func in _HOPED:
            result._snsim_hoped = True

    def _decide(self, value: bool, inputs: List[torch.Tensor], made: torch.Tensor) -> None:
        """One operand that is known says all: nothing and anything is nothing. So sentences end that are as long as asked for."""
        if not is_small(made) or value and made.dtype != torch.bool:
            return
        known = (self.of(x) for x in inputs if x.shape == made.shape)
        with _disable_current_modes():
            if any(x is not None and bool((x == value).all()) for x in known):
                self.give(made, torch.full(made.shape, value, dtype=made.dtype, device=CPU))

    def _computable(self, func: Any, inputs: List[torch.Tensor], made: List[Any], changed: List[torch.Tensor]) -> bool:
        if _RANDOM in func.tags or "empty" in func.__name__:
            return False
        if not all(is_small(x) for x in (inputs if func is _CAST else made)):  # a mask as floats is as known as the mask
            return False
        if not all(isinstance(x, FakeTensor) for x in changed):
            return False  # the user's own tensors stay as they are
        return all(self.of(x) is not None for x in inputs)

    def _compute(self, func: Any, args: Any, kwargs: Any) -> List[torch.Tensor]:
        def real(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                return self.of(x)
            return CPU if isinstance(x, torch.device) else x

        args, kwargs = tree_map(real, (args, kwargs))
        with _disable_current_modes():
            return operands((func(*args, **kwargs),))

    # what is assumed -------------------------------------------------------------------------------------------------

    def assume(self, what: str) -> None:
        line = users_line()
        self._assumed[what, line] = self._assumed.get((what, line), 0) + 1

    def assumed(self) -> List[List[str]]:
        """Rows of what and where."""
        return [[what, line] for what, line in self._assumed]

    def item(self, tensor: torch.Tensor) -> Any:
        """The number a tensor holds: what `item()`, `if tensor` and the like ask for."""
        value = self.of(tensor)
        if value is not None:
            with _disable_current_modes():
                return value.item()
        number: Any = 0.0 if tensor.dtype.is_floating_point else 0
        if tensor.dtype == torch.bool:
            number = getattr(tensor, "_snsim_hoped", False)
        if not _asked_by_torch():
            self.assume(f"a number read from the GPU is {number}")
        return number

    def some(self, count: int) -> int:
        """How many of count elements are taken to be true."""
        return max(1, int(count * self.share))


def _asked_by_torch() -> bool:
    import sys
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.endswith(_QUIET):
            return True
        frame = frame.f_back
    return False


# operations whose result's size depends on values ----------------------------------------------------------------------

aten = torch.ops.aten
_MASKS = (torch.bool, torch.uint8)


def _is_mask(index: Optional[torch.Tensor]) -> bool:
    return index is not None and index.dtype in _MASKS


def _known(values: Values, tensors: List[torch.Tensor]) -> bool:
    return all(values.of(x) is not None for x in tensors)


def _positions(values: Values, tensor: torch.Tensor) -> int:
    """How many elements of tensor are true."""
    value = values.of(tensor)
    if value is not None:
        with _disable_current_modes():
            return int(torch.count_nonzero(value))
    values.assume(f"{values.share:g} of the elements are true (assume=)")
    return values.some(tensor.numel())


def _nonzero(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    tensor = args[0]
    return torch.empty(_positions(values, tensor), tensor.dim(), dtype=torch.long, device=tensor.device)


def _index(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    indices: List[Any] = []
    for index in args[1]:
        if not _is_mask(index):
            indices.append(index)
            continue
        count = _positions(values, index)
        indices += [torch.empty(count, dtype=torch.long, device=index.device) for _ in range(index.dim())]
    return func(args[0], indices)


def _index_put(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """In place: its result is its first operand whatever the mask holds."""
    return args[0] if any(_is_mask(index) for index in args[1]) else func(*args, **kwargs)


def _masked_select(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    tensor, mask = args[0], args[1]
    share = _positions(values, mask) / max(1, mask.numel())
    count = torch.broadcast_shapes(tensor.shape, mask.shape).numel()
    return torch.empty(max(1, int(count * share)), dtype=tensor.dtype, device=tensor.device)


def _nms(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    boxes = args[0]
    values.assume(f"{values.share:g} of the boxes are kept (assume=)")
    return torch.empty(values.some(boxes.shape[0]), dtype=torch.long, device=boxes.device)


def _unique(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    tensor = args[0]
    values.assume(f"{values.share:g} of the elements differ (assume=)")
    count = values.some(tensor.numel())
    whole = lambda size: torch.empty(size, dtype=torch.long, device=tensor.device)  # noqa: E731
    return torch.empty(count, dtype=tensor.dtype, device=tensor.device), whole(tensor.shape), whole(count)


def _repeat_interleave(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    repeats, size = args[0], kwargs.get("output_size")
    value = values.of(repeats)
    if size is None and value is not None:
        with _disable_current_modes():
            size = int(value.sum())
    if size is None:
        values.assume("each is repeated once")
        size = repeats.numel()
    return torch.empty(size, dtype=torch.long, device=repeats.device)


def _equal(values: Values, func: Any, args: Any, kwargs: Any) -> bool:
    left, right = values.of(args[0]), values.of(args[1])
    if left is not None and right is not None:
        with _disable_current_modes():
            return torch.equal(left, right)
    values.assume("two tensors are not equal")
    return False


def _allclose(values: Values, func: Any, args: Any, kwargs: Any) -> bool:
    """An assertion as a rule."""
    left, right = values.of(args[0]), values.of(args[1])
    if left is not None and right is not None:
        with _disable_current_modes():
            return torch.allclose(left, right, *args[2:], **kwargs)
    if not _asked_by_torch():
        values.assume("two tensors are close")
    return True


Guess = Callable[[Values, Any, Any, Any], Any]
GUESSES: Dict[Any, Guess] = {
    aten.nonzero.default: _nonzero, aten.masked_select.default: _masked_select, aten.index_put_.default: _index_put,
    aten._unique2.default: _unique, aten.unique_consecutive.default: _unique,
    aten.repeat_interleave.Tensor: _repeat_interleave, aten.equal.default: _equal, aten.allclose.default: _allclose,
}


def guess(func: Any, args: Any) -> Optional[Guess]:
    """What answers for an operation whose result's size depends on values, or None."""
    if func is aten.index.Tensor:
        return _index if any(_is_mask(index) for index in args[1]) else None
    found = GUESSES.get(func)
    return _nms if found is None and func.__name__.startswith("nms") and func.namespace == "torchvision" else found
