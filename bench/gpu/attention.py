"""Which kernel PyTorch takes for F.scaled_dot_product_attention, and what it keeps until backward: as it runs, and as snsim's recorder has
it. Both count the bytes that tensors ask for beyond queries, keys, values, mask and the output's gradient."""
import contextlib
import os
import re
import sys
import tempfile
from typing import NamedTuple

import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "amp-bf16": torch.float32}
BATCH, HEADS = 2, 8
FUSED = re.compile(r"aten\._scaled_dot_product_(\w+?)_attention(?:_for_cpu|_overrideable)?\.")
FIGURES = ("kept_bytes", "forward_peak_bytes", "backward_peak_bytes")


class Case(NamedTuple):
    numbers: str
    size: int = 64  # numbers of a head
    values: int = 0  # numbers of a head of values; 0: size
    queries: int = 512
    keys: int = 0  # 0: as many as queries
    sharing: int = 1  # heads of queries that share one of keys
    mask: str = ""  # bool, float: of queries and keys; rows: float, of every row of the batch
    causal: bool = False
    dropout: float = 0.0
    turned: bool = True  # positions lie ahead of heads, as behind a model's projections

    @property
    def name(self):
        words = [self.numbers, f"{self.size}{f':{self.values}' if self.values else ''}",
                 f"{self.queries}{f'x{self.keys}' if self.keys else ''}"]
        words += [f"{self.sharing} share keys"] * (self.sharing > 1) + [f"{self.mask} mask"] * bool(self.mask) + ["causal"] * self.causal
        words += [f"dropout {self.dropout:g}"] * bool(self.dropout) + ["heads first"] * (not self.turned)
        return " ".join(words)


def cases_of(numbers):
    cases = [Case(numbers, size) for size in (40, 64, 96, 128, 256, 20, 63)]
    cases += [Case(numbers, size, causal=True) for size in (63, 64, 128)]
    cases += [Case(numbers, size, mask=mask) for size in (64, 63) for mask in ("bool", "float")]
    cases += [Case(numbers, queries=length, **more) for length in (1, 77, 2048) for more in ({}, {"mask": "bool"})]
    return cases + [Case(numbers, queries=77, causal=True), Case(numbers, mask="rows"), Case(numbers, dropout=0.1),
                    Case(numbers, 256, dropout=0.1), Case(numbers, mask="bool", dropout=0.1), Case(numbers, sharing=4),
                    Case(numbers, sharing=4, causal=True), Case(numbers, sharing=4, mask="bool"), Case(numbers, 128, 64),
                    Case(numbers, queries=77, keys=512), Case(numbers, queries=77, keys=512, causal=True), Case(numbers, turned=False),
                    Case(numbers, turned=False, mask="bool")]


CASES = [case for numbers in ("fp32", "bf16") for case in cases_of(numbers)]
CASES += [Case("fp16"), Case("fp16", causal=True), Case("fp16", 63), Case("fp16", mask="bool"), Case("fp16", 128, dropout=0.1), Case("fp16", sharing=4)]
CASES += [Case("amp-bf16"), Case("amp-bf16", causal=True), Case("amp-bf16", mask="float"), Case("amp-bf16", 63), Case("amp-bf16", sharing=4)]


def mask_of(case, device):
    shape = (case.queries, case.keys or case.queries)
    if case.mask == "bool":
        return torch.ones(shape, dtype=torch.bool, device=device)
    if case.mask:
        return torch.zeros((BATCH, 1, *shape) if case.mask == "rows" else shape, dtype=TYPES[case.numbers], device=device)
    return None


def given_of(case, device):
    """Queries, keys, values, the mask, and the output's gradient."""
    keys, values = case.keys or case.queries, case.values or case.size

    def made(heads, length, size, dtype=TYPES[case.numbers]):
        if not case.turned:
            return torch.randn(BATCH, heads, length, size, dtype=dtype, device=device)
        return torch.randn(BATCH, length, heads, size, dtype=dtype, device=device).transpose(1, 2)
    trained = [made(*shape).requires_grad_() for shape in (
        (HEADS, case.queries, case.size), (HEADS // case.sharing, keys, case.size), (HEADS // case.sharing, keys, values))]
    of_output = torch.bfloat16 if case.numbers == "amp-bf16" else TYPES[case.numbers]
    return (*trained, mask_of(case, device), made(HEADS, case.queries, values, of_output))


def forward(case, given):
    query, key, value, mask, _ = given
    amp = torch.autocast(query.device.type, torch.bfloat16) if case.numbers == "amp-bf16" else contextlib.nullcontext()
    with amp:
        return F.scaled_dot_product_attention(query, key, value, mask, case.dropout, case.causal,
                                              **({"enable_gqa": True} if case.sharing > 1 else {}))


def backward(output, given):
    return torch.autograd.grad(output, given[:3], given[4])


def kernel_of(operations):
    """Of the names of operations, as aten._scaled_dot_product_flash_attention.default: flash, efficient, cudnn, or math, that is in parts."""
    fused = [found.group(1) for found in map(FUSED.match, operations) if found]
    if fused:
        return fused[0]
    return "math" if any("softmax" in name for name in operations) else "unknown"


class Operations(TorchDispatchMode):
    """The names of all operations called within."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def called(case, given):
    """Forward and backward under a mode, which sees the operations and may hold tensors longer than they live without one."""
    with Operations() as seen:
        output = forward(case, given)
        forward_names = list(seen.names)
        backward(output, given)
    return kernel_of(forward_names)


def bytes_of(case, given, memory):
    before = memory.now()
    memory.restart()
    output = forward(case, given)
    kept, forward_peak = memory.now() - before, memory.peak() - before
    memory.restart()
    gradients = backward(output, given)
    figures = dict(zip(FIGURES, (kept, forward_peak, memory.peak() - before)))
    del output, gradients
    return figures


def measured(case, device, memory):
    """A row; without `memory`, as on a CPU, the kernel alone."""
    row = {"case": case.name}
    try:
        given = given_of(case, device)
        row["kernel"] = called(case, given)
        return row | (bytes_of(case, given, memory) if memory else {})
    except RuntimeError as error:  # out of memory is one
        return row | {"failed": str(error).strip().splitlines()[0]}


def figures_of(lives):
    """Of a recording of one forward and one backward: what its operations make, less what they let go."""
    live, peaks, kept = 0, [0, 0], None
    for ask in lives.asks(workspaces=False):
        if not ask.what.startswith("aten."):
            continue  # what was there before
        if ask.phase == 0 and kept is not None:
            break  # behind backward
        if ask.phase == 1 and kept is None:
            kept = peaks[1] = live
        live += ask.bytes if ask.born else -ask.bytes
        peaks[ask.phase] = max(peaks[ask.phase], live)
    return dict(zip(FIGURES, (kept, *peaks)))


def recorded(sm):
    """The rows of a GPU of architecture `sm` by snsim's recorder, on fakes; it wants no GPU, and replaces torch.cuda meanwhile."""
    root = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir))
    sys.path.insert(0, os.path.join(root, "python"))
    with tempfile.TemporaryDirectory() as folder:
        return [recorded_case(case, sm, os.path.join(folder, "case.rec")) for case in CASES]


def recorded_case(case, sm, path):
    import snsim
    from snsim._lives import Lives
    row = {"case": case.name}
    try:
        with snsim.recording(path, sm=sm) as recording:
            given = given_of(case, "cuda")
            recording.step(lambda: backward(forward(case, given), given), iterations=1)
            del given
        lives = Lives(path)
        return row | {"kernel": kernel_of([name for name, _ in lives.kernels])} | figures_of(lives)
    except (RuntimeError, snsim.Error) as error:
        return row | {"failed": str(error).strip().splitlines()[0]}
