"""compare(): a recording beside a snapshot of a real run. What was asked for in what order is compared, size by size, so that the
first place where they part can be named."""
from __future__ import annotations

import bisect
from html import escape
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ._allocator import Allocator
from ._lives import BATCH, WORKSPACE, Ask, Lives, PathLike
from ._program import Error
from ._snapshot import load

TRIED = 16   # places of the run where it may begin
BESIDE = 4   # blocks among these that are not recorded: a batch, a library's workspace
ALIKE = 6    # sizes in a row that say where a run has come to
AHEAD = 64   # blocks that the run may ask for beside those of the recording, before both count as parted
MIB = float(1 << 20)


class Seen(NamedTuple):
    """A block that the run asked for."""

    bytes: int
    frames: List[Dict[str, Any]]
    passing: bool  # given back before the next one was asked for: a workspace, as cuDNN takes them


class Run:
    """What a snapshot says of a device: blocks in order, the curve of live bytes, peaks."""

    def __init__(self, data: Dict[str, Any]) -> None:
        traces = data["device_traces"]
        device = max(range(len(traces)), key=lambda number: len(traces[number]), default=0)
        trace = traces[device] if traces else []
        if not any(event["action"] == "alloc" for event in trace):
            raise Error("nothing was traced: call torch.cuda.memory._record_memory_history(max_entries=...) before the step")
        segments = [segment for segment in data["segments"] if segment.get("device", 0) == device]
        active = [block for segment in segments for block in segment["blocks"] if block.get("state") == "active_allocated"]
        self.seen: List[Seen] = []
        self.curve: List[int] = []  # live bytes behind each block that was asked for
        self._follow(trace, sum(block.get("requested_size", block["size"]) for block in active))
        self.live_peak = max(self.curve)
        self.reserved_peak = self._reserved(trace, sum(segment["total_size"] for segment in segments))

    def _follow(self, trace: Sequence[Dict[str, Any]], at_end: int) -> None:
        change, live, last = 0, 0, None
        for event in trace:
            change += {"alloc": 1, "free_completed": -1}.get(event["action"], 0) * event.get("size", 0)
        live = at_end - change  # what was there before the trace begins
        for event in trace:
            if event["action"] == "alloc":
                live += event["size"]
                self.seen.append(Seen(event["size"], event.get("frames") or [], False))
                self.curve.append(live)
                last = event.get("addr")
            elif event["action"] == "free_completed":
                live -= event["size"]
            elif event["action"] == "free_requested" and event.get("addr") == last:
                self.seen[-1] = self.seen[-1]._replace(passing=True)
                last = None

    @staticmethod
    def _reserved(trace: Sequence[Dict[str, Any]], at_end: int) -> int:
        signs = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
        reserved = at_end - sum(signs.get(event["action"], 0) * event.get("size", 0) for event in trace)
        most = reserved
        for event in trace:
            reserved += signs.get(event["action"], 0) * event.get("size", 0)
            most = max(most, reserved)
        return most


class Parting(NamedTuple):
    """Where recording and run part. `module` is the path of the recording's module."""

    module: str
    predicted: Optional[Ask]
    predicted_text: str
    seen_text: str
    at: int  # of the run's blocks

    def __str__(self) -> str:
        return f"in {self.module or 'no module'}: predicted {self.predicted_text}; seen {self.seen_text}"


def _users_frame(frames: Sequence[Dict[str, Any]]) -> str:
    for frame in frames:
        name = str(frame.get("filename", ""))
        if "/torch/" not in name and (name.endswith(".py") or name.startswith("<ipython")):
            return f"{name.rpartition('/')[2]}:{frame.get('line', 0)} {frame.get('name', '')}"
    return str(frames[0].get("name", "")) if frames else "without frames"


class Comparison:
    """Predicted beside seen. str() is a table; plot() draws both curves."""

    def __init__(self, lives: Lives, run: Run) -> None:
        self.batch, self.name = lives.batch, lives.header["name"]
        self.predicted_peak, self.predicted_reserved = _played(lives)
        self.seen_peak, self.seen_reserved = run.live_peak, run.reserved_peak
        self.matched = 0
        self.workspaces: Dict[str, int] = {}  # by module: the largest block that the run asked for beside the recording's, bytes
        self.parting: Optional[Parting] = None
        self.predicted_curve: List[Tuple[int, int]] = []  # by the run's block: live bytes
        self.seen_curve = list(enumerate(run.curve))
        _Matching(self, lives, run).run()

    @property
    def agrees(self) -> bool:
        """Nothing parts: every block of the recording was seen in order, of its size."""
        return self.parting is None

    def __str__(self) -> str:
        rows = [("", "predicted MiB", "seen MiB", "difference"),
                ("live at the peak", *_pair(self.predicted_peak, self.seen_peak)),
                ("reserved", *_pair(self.predicted_reserved, self.seen_reserved))]
        lines = [f"{self.name}, batch {self.batch}: recording beside a run"]
        lines += [f"{head:18}{a:>15}{b:>12}{c:>12}" for head, a, b, c in rows]
        lines.append(f"{self.matched} blocks are the same in order and size" + ("" if self.parting else ", and none differs"))
        if self.workspaces:
            most = max(self.workspaces, key=lambda module: self.workspaces[module])
            lines.append(f"the run asks for workspaces beside them, at most {self.workspaces[most] / MIB:.2f} MiB, in {most or 'no module'}")
        if self.parting:
            lines.append(f"they part {self.parting}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<snsim.Comparison {self.name}, {self.matched} blocks the same, {'agrees' if self.agrees else 'parts ' + str(self.parting)}>"

    def plot(self, path: Optional[PathLike] = None) -> Any:
        """Both curves of live bytes over the blocks that were asked for, as SVG."""
        from ._picture import curves
        drawn = curves([("seen", self.seen_curve), ("predicted", self.predicted_curve)], "blocks asked for",
                       self.parting.at if self.parting else None)
        if path is not None:
            drawn.save(path)
        return drawn

    def _repr_svg_(self) -> str:
        return self.plot().svg

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>\n{self.plot().svg}"


def _pair(predicted: int, seen: int) -> Tuple[str, str, str]:
    return f"{predicted / MIB:.3f}", f"{seen / MIB:.3f}", f"{100.0 * (predicted - seen) / seen:+.3f} %" if seen else "-"


def _played(lives: Lives) -> Tuple[int, int]:
    """Peaks of the recording: live bytes, and what the allocator reserves."""
    allocator, blocks, live, peak = Allocator(), {}, 0, 0
    for ask in lives.asks():
        if ask.born:
            blocks[ask.block], live = allocator.take(ask.bytes)[0], live + ask.bytes
            peak = max(peak, live)
        else:
            allocator.give(blocks.pop(ask.block))
            live -= ask.bytes
    return peak, allocator.reserved_peak


def _are_in(wanted: Sequence[int], sizes: Sequence[int]) -> bool:
    """In this order, with others between."""
    left = iter(sizes)
    return all(size in left for size in wanted)


def _text(ask: Ask) -> str:
    return f"{ask.bytes:,} bytes for {ask.where}"


def is_given(ask: Ask) -> bool:
    """What the run may have from elsewhere, or at another time."""
    return ask.what in (BATCH, WORKSPACE)


class _Matching:
    """Goes along both, from where an iteration begins. The run may have more iterations: the recording's last one comes again."""

    def __init__(self, result: Comparison, lives: Lives, run: Run) -> None:
        self.result, self.lives, self.seen = result, lives, run.seen
        self.asks: List[Ask] = []
        self.live: List[int] = []
        passing: List[bool] = []
        live = 0
        for ask in lives.asks():
            live += ask.bytes if ask.born else -ask.bytes
            if ask.born:
                self.asks.append(ask)
                self.live.append(live)
                passing.append(False)
            elif ask.block == len(self.asks) - 1:
                passing[-1] = True
        iterations = [ask.iteration for ask in self.asks]
        self.last = bisect.bisect_left(iterations, iterations[-1]) if iterations else 0
        self.first = bisect.bisect_left(iterations, 0)
        self.stays = [not passes and not is_given(ask) for ask, passes in zip(self.asks, passing)]

    def _begins(self) -> List[Tuple[int, int]]:
        """Where both may begin: at the first or the last iteration of the recording, and where the run asks for the same sizes. What
        is given back at once tells nothing, nor does the batch, which may be there before."""
        here = [number for number, seen in enumerate(self.seen) if not seen.passing]
        sizes = [self.seen[number].bytes for number in here]
        found: List[Tuple[int, int]] = []
        for start in dict.fromkeys((self.first, self.last)):
            numbers = [number for number in range(start, len(self.asks)) if self.stays[number]][:ALIKE]
            wanted = [self.asks[number].bytes for number in numbers]
            places = [at for at in range(len(sizes)) if wanted and sizes[at] == wanted[0] and _are_in(wanted, sizes[at:at + ALIKE + BESIDE])]
            found += [(numbers[0], here[at]) for at in places[:TRIED]]
        return found

    def run(self) -> None:
        if self.first == len(self.asks):
            raise Error(f"{self.lives.path}: nothing that was recorded lies on a GPU")
        ways = [_Way(self, *begin) for begin in self._begins()]
        if ways:
            likely = [way for way in ways if way.matched >= 2 * ALIKE] or ways  # others begin there by chance
            earliest = min(way.begin for way in likely)
            best = max((way for way in likely if way.begin == earliest), key=lambda way: (way.parting is None, way.matched))
            for name in ("matched", "workspaces", "parting", "predicted_curve"):
                setattr(self.result, name, getattr(best, name))
            return
        ask = next((ask for ask, stays in zip(self.asks[self.first:], self.stays[self.first:]) if stays), self.asks[self.first])
        self.result.parting = Parting(self.lives.module(ask.call), ask, _text(ask),
                                      f"nothing like its iterations in {len(self.seen)} blocks; is it another batch?", 0)


class _Way:
    """Both from a beginning on, up to where they part or the run ends."""

    def __init__(self, both: _Matching, mine: int, at: int) -> None:
        self.lives, self.asks, self.seen = both.lives, both.asks, both.seen
        self.begin, self.matched = at, 0
        self.workspaces: Dict[str, int] = {}
        self.parting: Optional[Parting] = None
        self.predicted_curve: List[Tuple[int, int]] = []
        while at < len(self.seen):
            if mine == len(self.asks):
                mine = both.last
            ask = self.asks[mine]
            found = self._find(ask, at)
            if found is None and is_given(ask):  # the run has it already, or in another form
                mine += 1
                at = self._past_workspace(ask, mine, at)
                continue
            if found is None:
                self._part(ask, at)
                return
            if found < len(self.seen):
                self._note(ask, both.live[mine], at, found)
            mine, at = mine + 1, found + 1

    def _note(self, ask: Ask, live: int, at: int, found: int) -> None:
        module = self.lives.module(ask.call)
        for beside in self.seen[at:found]:
            self.workspaces[module] = max(self.workspaces.get(module, 0), beside.bytes)
        self.predicted_curve.append((found, live))
        self.matched += 1

    def _past_workspace(self, ask: Ask, mine: int, at: int) -> int:
        """cuBLAS's workspace has another size on some architectures."""
        if ask.what == WORKSPACE and mine < len(self.asks) and at + 1 < len(self.seen):
            if self._find(self.asks[mine], at) is None and self._find(self.asks[mine], at + 1) is not None:
                return at + 1
        return at

    def _find(self, ask: Ask, at: int) -> Optional[int]:
        """The run's next block of that size; between are only such as are given back at once. Its end: the trace is over."""
        for number in range(at, min(at + AHEAD, len(self.seen))):
            if self.seen[number].bytes == ask.bytes:
                return number
            if not self.seen[number].passing:
                return None
        return len(self.seen) if at + AHEAD >= len(self.seen) else None

    def _part(self, ask: Ask, at: int) -> None:
        seen = next((seen for seen in self.seen[at:at + AHEAD] if not seen.passing), self.seen[at])
        self.parting = Parting(self.lives.module(ask.call), ask, _text(ask), f"{seen.bytes:,} bytes at {_users_frame(seen.frames)}", at)


def compare(recording: Any, snapshot: PathLike, batch: Optional[int] = None) -> Comparison:
    """Sets a recording, or the path of one, beside what a run really did.

        torch.cuda.memory._record_memory_history(max_entries=1000000)     # before the model is built
        ...                                                               # two steps or more
        torch.cuda.memory._dump_snapshot("snapshot.pickle")
        print(snsim.compare(rec, "snapshot.pickle", batch=32))

    The file is read without executing anything in it.
    """
    lives = Lives(recording, batch)
    return Comparison(lives, Run(load(snapshot)))
