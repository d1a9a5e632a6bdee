"""What a recording consists of: tables and events. docs/record.md tells what each means."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

FORWARD, BACKWARD, UPDATE = 0, 1, 2
VALUE, PARAMETER, BUFFER, GIVEN, STATE = "value", "parameter", "buffer", "given", "state"
OUTSIDE, ACCUMULATION = -1, -2  # nodes: of no node, of AccumulateGrad
GRADIENTS, STATES = 6, 7  # of a row of a tape's parameters
APART, IN_PLACE = 1, 2  # sums of gradients: as PyTorch makes them under a mode, as it makes them without
ENDS = ("f", "u", "h")  # events that only end something

Number = Union[int, Tuple[int, int]]  # of one batch; of any: a, b for a + b x batch


class Operation(NamedTuple):
    """A line "o"."""
    kernel: int
    phase: int
    node: int
    call: int
    reads: List[int]
    makes: List[int]
    changes: List[int]
    flops: Number
    read_bytes: Number
    written_bytes: Number
    dtype: str
    shapes: Optional[List[Any]]
    sum: int
    summand: int


class Storage:
    """A row of the table `storages`."""
    __slots__ = ("bytes", "dtype", "device", "role")

    def __init__(self, size: Number, dtype: str, device: str, role: str) -> None:
        self.bytes, self.dtype, self.device, self.role = size, dtype, device, role

    def row(self) -> List[Any]:
        fixed, growing = self.bytes if isinstance(self.bytes, tuple) else (self.bytes, 0)
        return [fixed, growing, self.dtype, self.device, self.role]


Event = Union[Operation, Tuple[Any, ...]]


class Tape:
    """Tables and events of one recorded run."""

    def __init__(self) -> None:
        self.events: List[Event] = []
        self.storages: List[Storage] = []
        self.kernels: List[List[Any]] = []  # name, flags
        self.modules: List[Tuple[str, str]] = [("", "")]  # path, class; the first is outside all
        self.calls: List[Tuple[int, int]] = [(0, 0)]  # parent call, module
        self.parameters: List[List[Any]] = []  # name, storage, offset, elements, trained, rows, gradients, states
        self.assumed: List[List[str]] = []
        self.compiled = False
        self._kernel_of: Dict[Any, int] = {}
        self._module_of: Dict[Tuple[str, str], int] = {("", ""): 0}

    def kernel(self, key: Any, name: str, flags: int) -> int:
        number = self._kernel_of.get(key)
        if number is None:
            number = self._kernel_of[key] = len(self.kernels)
            self.kernels.append([name, flags])
        return number

    def call(self, parent: int, path: str, name: str) -> int:
        module = self._module_of.setdefault((path, name), len(self.modules))
        if module == len(self.modules):
            self.modules.append((path, name))
        self.calls.append((parent, module))
        return len(self.calls) - 1

    @property
    def operations(self) -> int:
        return sum(isinstance(event, Operation) for event in self.events)


def canonical(events: List[Event]) -> List[Event]:
    """Events in which every run of ends is in one order: autocast's cache, for one, lets go in the order of a hash."""
    ordered: List[Event] = []
    run: List[Event] = []
    for event in events:
        if not isinstance(event, Operation) and event[0] in ENDS:
            run.append(event)
            continue
        if run:
            ordered += sorted(run, key=_end_order)
            run = []
        ordered.append(event)
    return ordered + sorted(run, key=_end_order)


def _end_order(event: Event) -> Tuple[int, int]:
    return ENDS.index(event[0]), event[-1]
