"""PyTorch's caching allocator for one stream, with its defaults: where blocks lie, and what is reserved. The same rules as the
program's (sim/memory/caching.h), written once more to have addresses and segments in Python."""
from __future__ import annotations

import bisect
from typing import Dict, List, Optional, Tuple

UNIT, SMALL, MEDIUM = 512, 1 << 20, 10 << 20
SMALL_SEGMENT, LARGE_SEGMENT, SEGMENT_UNIT = 2 << 20, 20 << 20, 2 << 20
BASE = 0x7F0000000000  # where the driver's addresses begin


def rounded(size: int) -> int:
    """What a block for so many bytes takes at least."""
    return max(UNIT, -(-size // UNIT) * UNIT)


def segment_size(size: int) -> int:
    """What the driver is asked for, for a block of a rounded size."""
    if size <= SMALL:
        return SMALL_SEGMENT
    return LARGE_SEGMENT if size < MEDIUM else -(-size // SEGMENT_UNIT) * SEGMENT_UNIT


class Block:
    __slots__ = ("address", "size", "requested", "segment", "user")

    def __init__(self, address: int, size: int, segment: "Segment") -> None:
        self.address, self.size, self.segment = address, size, segment
        self.requested: Optional[int] = None  # None: free
        self.user: object = None


class Segment:
    def __init__(self, address: int, size: int, small: bool) -> None:
        self.address, self.size, self.small = address, size, small
        self.blocks: List[Block] = [Block(address, size, self)]  # by address

    def index(self, block: Block) -> int:
        low, high = 0, len(self.blocks)
        while low < high:
            middle = (low + high) // 2
            if self.blocks[middle].address < block.address:
                low = middle + 1
            else:
                high = middle
        return low


class Allocator:
    """take() and give(). `allocated` and `reserved` are torch.cuda.memory_allocated() and memory_reserved()."""

    def __init__(self) -> None:
        self.segments: List[Segment] = []
        self.free: Dict[bool, List[Tuple[int, int]]] = {True: [], False: []}  # by pool: size and address, ascending
        self.at: Dict[int, Block] = {}
        self.allocated = self.reserved = self.allocated_peak = self.reserved_peak = 0

    def take(self, requested: int) -> Tuple[Block, Optional[Segment]]:
        """A block, and the segment that the driver gave for it, if it had to."""
        size, new = rounded(requested), None
        small = size <= SMALL
        free = self.free[small]
        found = bisect.bisect_left(free, (size, 0))
        if found == len(free):
            new = self._new_segment(segment_size(size), small)
            found = bisect.bisect_left(free, (size, 0))
        block = self.at[free.pop(found)[1]]
        left = block.size - size
        if left >= UNIT if small else left > SMALL:
            self._cut(block, size)
        block.requested = requested
        self.allocated += block.size
        self.allocated_peak = max(self.allocated_peak, self.allocated)
        return block, new

    def _new_segment(self, size: int, small: bool) -> Segment:
        segment = Segment(BASE + self.reserved, size, small)  # segments stay, so addresses only grow
        self.segments.append(segment)
        self.reserved += size
        self.reserved_peak = max(self.reserved_peak, self.reserved)
        self._be_free(segment.blocks[0])
        return segment

    def _be_free(self, block: Block) -> None:
        self.at[block.address] = block
        bisect.insort(self.free[block.segment.small], (block.size, block.address))

    def _cut(self, block: Block, size: int) -> None:
        segment = block.segment
        rest = Block(block.address + size, block.size - size, segment)
        segment.blocks.insert(segment.index(block) + 1, rest)
        block.size = size
        self._be_free(rest)

    def give(self, block: Block) -> None:
        """Gives it back; it joins its free neighbours."""
        segment = block.segment
        self.allocated -= block.size
        block.requested, block.user = None, None
        index = segment.index(block)
        for near in (index + 1, index - 1):
            if not 0 <= near < len(segment.blocks) or segment.blocks[near].requested is not None:
                continue
            other = segment.blocks[near]
            free = self.free[segment.small]
            free.pop(bisect.bisect_left(free, (other.size, other.address)))
            del segment.blocks[near]
            self.at.pop(other.address)
            block.size += other.size
            if other.address < block.address:
                self.at.pop(block.address, None)
                block.address = other.address
        self._be_free(block)
