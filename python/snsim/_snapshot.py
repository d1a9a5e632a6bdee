"""Snapshots of memory in the form of torch.cuda.memory._dump_snapshot(): written of recordings, so that pytorch.org/memory_viz draws
what will be; read of real runs, by a reader that makes nothing but plain values. The program runs this module for
`snsim export --snapshot`."""
from __future__ import annotations

import argparse
import io
import os
import pickle
import sys
from typing import Any, Dict, List, Optional

from ._allocator import Allocator, Block
from ._errors import RecordingError
from ._lives import PHASES, Ask, Lives, PathLike
from ._program import Error

_OF_MEMORY = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap")
PROTOCOL = 4  # what memory_viz reads


# writing ---------------------------------------------------------------------------------------------------------------


def _frames(lives: Lives, ask: Ask) -> List[Dict[str, Any]]:
    """The innermost first: the kernel, the modules around it, the phase. A frame is shown as file:line:name."""
    frames = [{"filename": lives.module(ask.call) or lives.header["name"], "line": 0, "name": ask.what}]
    frames += [{"filename": path or lives.header["name"], "line": 0, "name": kind} for path, kind in lives.parents(ask.call)]
    phase = PHASES[ask.phase] if ask.iteration >= 0 else "before"
    return [*frames, {"filename": f"iteration {max(ask.iteration, 0)}", "line": 0, "name": phase}]


def _event(action: str, block_at: int, size: int, time: int, frames: List[Dict[str, Any]]) -> Dict[str, Any]:
    return {"action": action, "addr": block_at, "size": size, "stream": 0, "time_us": time, "compile_context": "N/A",
            "user_metadata": "", "pool_id": (0, 0), "frames": frames}


def made(recording: Any, batch: Optional[int] = None) -> Dict[str, Any]:
    """The snapshot behind the recorded iterations, with all that the allocator was asked for since the beginning."""
    lives, allocator, trace = Lives(recording, batch), Allocator(), []
    blocks: Dict[int, Block] = {}
    shared: Dict[Any, List[Dict[str, Any]]] = {}  # a pickle holds equal frames once
    for time, ask in enumerate(lives.asks()):
        key = (ask.what, ask.call, ask.phase, ask.iteration)
        frames = shared.setdefault(key, []) or shared[key]
        if not frames:
            frames.extend(_frames(lives, ask))
        if ask.born:
            block, segment = allocator.take(ask.bytes)
            if segment is not None:
                trace.append(_event("segment_alloc", segment.address, segment.size, time, frames))
            blocks[ask.block], block.user = block, frames
            trace.append(_event("alloc", block.address, ask.bytes, time, frames))
            continue
        block = blocks.pop(ask.block)
        for action in ("free_requested", "free_completed"):
            trace.append(_event(action, block.address, ask.bytes, time, frames))
        allocator.give(block)
    return {"segments": [_segment(segment) for segment in allocator.segments], "device_traces": [trace],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                                   "expandable_segments": False, "release_lock_on_cudamalloc": False,
                                   "pinned_use_cuda_host_register": False, "pinned_num_register_threads": 1,
                                   "roundup_power2_divisions": {}},
            "external_annotations": []}


def _segment(segment: Any) -> Dict[str, Any]:
    blocks = [{"address": block.address, "size": block.size, "requested_size": block.requested or 0,
               "state": "inactive" if block.requested is None else "active_allocated", "frames": block.user or []}
              for block in segment.blocks]
    used = [block for block in segment.blocks if block.requested is not None]
    return {"device": 0, "address": segment.address, "total_size": segment.size, "stream": 0,
            "segment_type": "small" if segment.small else "large", "segment_pool_id": (0, 0), "is_expandable": False,
            "allocated_size": sum(block.size for block in used), "active_size": sum(block.size for block in used),
            "requested_size": sum(block.requested for block in used), "frames": [], "blocks": blocks}


def snapshot(recording: Any, path: PathLike, batch: Optional[int] = None) -> None:
    """Writes a recording, or the path of one, at a batch, as torch.cuda.memory._dump_snapshot() writes a run: open it at
    pytorch.org/memory_viz, or with `python -m torch.cuda._memory_viz trace_plot FILE`. Frames are paths of modules."""
    data = pickle.dumps(made(recording, batch), protocol=PROTOCOL)
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise Error(f"{os.fspath(path)}: cannot be written: {error.strerror}") from error


# reading ---------------------------------------------------------------------------------------------------------------


class _Plain(pickle.Unpickler):
    """Makes no objects: whatever names a class or a function is refused, and nothing of it is imported."""

    def find_class(self, module: str, name: str) -> Any:
        raise Error(f"it holds {module}.{name}; a snapshot of torch.cuda.memory holds only plain values, so this is none, and is "
                    "not read")

    def persistent_load(self, pid: Any) -> Any:
        raise Error("it refers to values outside of itself; a snapshot of torch.cuda.memory does not, so this is none")


def _check(value: Any, what: str, kind: type) -> Any:
    if not isinstance(value, kind):
        raise Error(f"{what} is a {type(value).__name__}, where a snapshot has a {kind.__name__}")
    return value


def _check_event(event: Dict[str, Any]) -> None:
    if _check(event.get("action"), "an action", str) in _OF_MEMORY:
        _check(event.get("size"), "an event's size", int)
    for frame in _check(event.get("frames") or [], "frames", list):
        _check(frame, "a frame", dict)


def load(path: PathLike) -> Dict[str, Any]:
    """A snapshot of a run: torch.cuda.memory._dump_snapshot(path). Error where it is none; nothing in it is executed."""
    try:
        with open(path, "rb") as file:
            data = _Plain(io.BytesIO(file.read())).load()
        _check(data, "it", dict)
        for name in ("segments", "device_traces"):
            _check(data.get(name), name, list)
        for segment in data["segments"]:
            _check(_check(segment, "a segment", dict).get("total_size"), "total_size", int)
            for block in _check(segment.get("blocks"), "blocks", list):
                _check(_check(block, "a block", dict).get("size"), "a block's size", int)
        for trace in data["device_traces"]:
            for event in _check(trace, "a trace", list):
                _check_event(_check(event, "an event", dict))
        return data
    except Error as error:
        raise Error(f"{os.fspath(path)}: {error}") from None
    except OSError as error:
        raise Error(f"{os.fspath(path)}: {error.strerror}") from error
    except Exception as error:  # whatever damaged bytes make of the machine that reads them
        raise Error(f"{os.fspath(path)}: is no snapshot of torch.cuda.memory, or damaged: {error}") from error


# the program's -----------------------------------------------------------------------------------------------------------


def main(given: Optional[List[str]] = None) -> None:
    """Exit codes: 0 written, 2 wrong command line, 3 a file is wrong or cannot be written."""
    parser = argparse.ArgumentParser(prog="python -m snsim._snapshot")
    parser.add_argument("recording", metavar="FILE.rec")
    parser.add_argument("--batch", type=int, metavar="N")
    parser.add_argument("--output", metavar="FILE.pickle", required=True)
    asked = parser.parse_args(given)
    try:
        snapshot(asked.recording, asked.output, batch=asked.batch)
    except (Error, RecordingError) as error:
        print(f"snsim: error: {error}", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
