"""A trace of torch.profiler, as export_chrome_trace() writes it: of which kind each kernel is (kinds.py), and how long kernels ran.

A kernel belongs to the operation that a recording would have had: of the calls around its launch the outermost operator that
PyTorch does not compose of others, so that a convolution has its transposes and a product what fills its result. What the
optimizer's step calls is the optimizer's."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from . import kinds
from .operations import Operation

ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
ON_HOST = ("cpu_op", "user_annotation")
LAUNCHES = ("cuda_runtime", "cuda_driver")
OF_NO_OPERATION = {"gpu_memcpy": "memcpy", "gpu_memset": "memset"}
UNTOLD = "untold"
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot")
CONVOLUTIONS = ("convolution", "convolution_backward")


class Call:
    """Of an operator, or a range with a name."""

    def __init__(self, event: Dict[str, Any], parent: "Optional[Call]") -> None:
        self.name, self.parent = event["name"], parent
        self.begin, self.end = event["ts"], event["ts"] + event["dur"]
        self.sizes = [tuple(sizes) for sizes in event.get("args", {}).get("Input Dims", ()) if sizes and isinstance(sizes[0], int)]
        self.inner = 0.0  # microseconds of the calls in it

    def outward(self) -> "Iterable[Call]":
        call: Optional[Call] = self
        while call:
            yield call
            call = call.parent


class Kernel(NamedTuple):
    name: str
    begin: float  # microseconds
    length: float
    category: str
    call: Optional[Call]  # the innermost around its launch


class Sum(NamedTuple):
    kernels: int
    us: float


Composed = Callable[[str], bool]  # of an operator's name without its namespace


class Calls:
    """Of a trace, each with what it was called in, on its thread; and in which the device's kernels were launched."""

    def __init__(self, events: List[Dict[str, Any]]) -> None:
        self.all: List[Call] = []
        self.by_number: Dict[int, Call] = {}
        self.by_launch: Dict[int, Call] = {}
        stacks: Dict[Any, List[Call]] = {}
        whole = [e for e in events if e.get("cat") in ON_HOST + LAUNCHES and e.get("ph") == "X"]
        for event in sorted(whole, key=lambda e: (e["ts"], -e["dur"])):
            stack = stacks.setdefault(event["tid"], [])
            while stack and stack[-1].end <= event["ts"]:
                stack.pop()
            self._add(event, stack)

    def _add(self, event: Dict[str, Any], stack: List[Call]) -> None:
        args = event.get("args", {})
        if event["cat"] in LAUNCHES:
            if stack and "correlation" in args:
                self.by_launch[args["correlation"]] = stack[-1]
            return
        call = Call(event, stack[-1] if stack else None)
        if call.parent:
            call.parent.inner += event["dur"]
        stack.append(call)
        self.all.append(call)
        self.by_number[args.get("External id", 0)] = call


def kernels_of(events: List[Dict[str, Any]], calls: Calls) -> List[Kernel]:
    """In order of time. Profilers give a kernel the number of the call that launched it; older ones its launch's alone, which is then
    looked for by its time."""
    ran = [(e, e.get("args", {})) for e in events if e.get("cat") in ON_DEVICE and e.get("ph") == "X"]
    numbered = any(args.get("External id") != args.get("correlation") for _, args in ran)

    def call_of(args: Dict[str, Any]) -> Optional[Call]:
        named = calls.by_number.get(args.get("External id", -1)) if numbered else None
        return named or calls.by_launch.get(args.get("correlation", -1))
    found = [Kernel(e["name"], e["ts"], e["dur"], e["cat"], call_of(args)) for e, args in ran]
    return sorted(found, key=lambda kernel: kernel.begin)


def own_times(calls: Calls, composed: Composed) -> List[Kernel]:
    """Without a device: what an operator took beyond those that it called stands for its kernel. One that is composed has none."""
    found = []
    for call in calls.all:
        made = operator_of(call, composed)
        if made and not composed(made.name[6:]):
            found.append(Kernel(call.name, call.begin, call.end - call.begin - call.inner, "kernel", call))
    return found


def operator_of(call: Call, composed: Composed) -> Optional[Call]:
    """The outermost that is not composed of others; of none the innermost. What an operator in place clones, autograd keeps for backward:
    that is an operation of its own."""
    around = [c for c in call.outward() if c.name.startswith("aten::")]
    for place in reversed(range(len(around))):
        if not composed(around[place].name[6:]):
            kept = place > 0 and around[place].name.endswith("_") and around[place - 1].name == "aten::clone"
            return around[place - 1 if kept else place]
    return around[0] if around else None


def operation_of(call: Optional[Call], composed: Composed) -> Optional[Operation]:
    """As a recording has it, but for its costs. None: of no operator, or a convolution or a product without sizes."""
    made = operator_of(call, composed) if call else None
    if made is None:
        return None
    name = made.name[6:]
    names = [c.name for c in made.outward()]
    phase = 2 if any(n.startswith("Optimizer.") for n in names) else 0
    node = -2 if any("AccumulateGrad" in n for n in names) else 0
    if name in PRODUCTS + CONVOLUTIONS and len(made.sizes) < 2:
        return None
    return Operation(f"aten.{name}.", phase, node, 0.0, 0.0, 0.0, "", shapes_of(name, made.sizes), False)


def shapes_of(name: str, sizes: List[Tuple[int, ...]]) -> Optional[List[Any]]:
    """What kinds.py asks of a recording's shapes: groups of a convolution are told by its input and its weights."""
    if name in PRODUCTS:
        return [sizes]
    if name not in CONVOLUTIONS:
        return None
    backward = name == "convolution_backward"
    x, weight = sizes[1:3] if backward else sizes[:2]
    return [sizes, [], [], [], max(1, x[1] // weight[1]), 0, 7 if backward else 0]


def kind_of(kernel: Kernel, composed: Composed) -> str:
    operation = operation_of(kernel.call, composed)
    if operation is not None:
        return kinds.kind_of(operation)
    return UNTOLD if kernel.call else OF_NO_OPERATION.get(kernel.category, UNTOLD)


def by_kind(kernels: List[Kernel], composed: Composed) -> Dict[str, Sum]:
    return _summed((kind_of(kernel, composed), kernel) for kernel in kernels)


def by_operator(kernels: List[Kernel], composed: Composed) -> Dict[Tuple[str, str, str], Sum]:
    """By kind, operator and its operands' sizes: what a kind's sum is made of."""
    def key(kernel: Kernel) -> Tuple[str, str, str]:
        made = operator_of(kernel.call, composed) if kernel.call else None
        sizes = " ".join("x".join(map(str, size)) for size in made.sizes) if made else ""
        return kind_of(kernel, composed), made.name[6:] if made else kernel.name, sizes
    return _summed((key(kernel), kernel) for kernel in kernels)


def _summed(pairs: Iterable[Tuple[Any, Kernel]]) -> Dict[Any, Sum]:
    sums: Dict[Any, Sum] = {}
    for key, kernel in pairs:
        count, us = sums.get(key, Sum(0, 0.0))
        sums[key] = Sum(count + 1, us + kernel.length)
    return sums


def busy_us(kernels: List[Kernel]) -> float:
    """How long at least one of them ran: they are in order of time."""
    busy, until = 0.0, float("-inf")
    for kernel in kernels:
        end = kernel.begin + kernel.length
        busy += max(0.0, end - max(until, kernel.begin))
        until = max(until, end)
    return busy
