"""What a recording takes, computed from the file alone: live bytes, and live bytes with modules under
torch.utils.checkpoint. Small and slow: it is there to prove that the format is complete, and to compare others with."""
import fnmatch
import gzip
import json
from collections import namedtuple

FORWARD, BACKWARD, UPDATE, AGAIN = 0, 1, 2, 3
TABLES = ("kernels", "modules", "calls", "storages", "parameters")
GIVEN = ("parameter", "buffer", "given", "state")  # storages that a checkpoint need not hold
Op = namedtuple("Op", "kernel phase node call reads makes changes flops read written dtype shapes sum summand")


def at(number, batch):
    """A number of the file at a batch."""
    return number[0] + number[1] * batch if isinstance(number, list) else number


class File:
    def __init__(self, path):
        with (gzip.open(path, "rt") if str(path).endswith(".gz") else open(path)) as lines:
            self.header = json.loads(next(lines))
            for table in TABLES:
                row = json.loads(next(lines))
                setattr(self, table, row[table])
            self.events = [event for line in lines for event in self._events(json.loads(line))]
        if self.events.pop()[0] != "e":
            raise ValueError(f"{path} is cut off")

    @staticmethod
    def _events(row):
        if row[0] == "o":
            yield ("o", Op(*row[1:], *(None, 0, -1)[len(row) - 12:]))
            yield from (("b", storage) for storage in row[6])
        elif row[0] in "fu":
            yield from ((row[0], number) for number in row[1:])
        else:
            yield tuple(row)

    @property
    def operations(self):
        return [event[1] for event in self.events if event[0] == "o"]

    def sizes(self, batch, device="cuda"):
        """Bytes by storage; 0 for those elsewhere."""
        return [row[0] + row[1] * batch if row[3] == device else 0 for row in self.storages]


class Live:
    """Storages that somebody has: Python, a handle, a ghost."""

    def __init__(self, sizes):
        self.sizes, self.holders, self.kept, self.same = sizes, {}, {}, {}
        self.bytes = self.peak = 0

    def root(self, storage):
        while storage in self.same:
            storage = self.same[storage]
        return storage

    def take(self, storage):
        storage = self.root(storage)
        self.holders[storage] = self.holders.get(storage, 0) + 1
        if self.holders[storage] == 1:
            self.bytes += self.sizes[storage]
            self.peak = max(self.peak, self.bytes)

    def leave(self, storage):
        storage = self.root(storage)
        self.holders[storage] -= 1
        assert self.holders[storage] >= 0, storage
        if not self.holders[storage]:
            self.bytes -= self.sizes[storage]


def play(events, sizes, in_place=False):
    """The peak of events over storages of these sizes."""
    live = Live(sizes)
    for event in events:
        kind = event[0]
        if kind == "o" and event[1].sum == 2 and in_place:
            live.same[event[1].makes[0]] = live.root(event[1].summand)
        elif kind in "bg":
            live.take(event[1])
        elif kind in "fh":
            live.leave(event[1])
        elif kind == "s":
            live.kept[event[1]] = event[2]
            live.take(event[2])
        elif kind == "u":
            live.leave(live.kept.pop(event[1]))
    return live.peak


def peak(file, batch, in_place=False):
    return play(file.events, file.sizes(batch), in_place)


# checkpoints -------------------------------------------------------------------------------------------------------------


class Unit:
    """A call of a module that is checkpointed: events from `<` to `>`."""

    def __init__(self, file, first, last):
        self.first, self.last = first, last
        span = file.events[first:last]
        self.handles = [event[1] for event in span if event[0] == "s"]
        self.stop = max((i for i in range(first, last) if file.events[i][0] == "s"), default=None)
        self.left, self.again = len(self.handles), False
        born = {event[1] for event in span if event[0] == "b"}
        read = [storage for event in span if event[0] == "o" for storage in event[1].reads if storage not in born]
        given = ("parameter", "buffer", "state")
        arguments = [storage for storage in file.events[first][2] if file.storages[storage][4] not in given]
        others = [storage for storage in read if file.storages[storage][4] not in GIVEN]
        self.holds = list(dict.fromkeys(arguments + others))


def units_of(file, wanted):
    """The outermost calls whose module's path is wanted."""
    units, inside, first = [], None, 0
    for i, event in enumerate(file.events):
        if event[0] == "<" and inside is None and wanted(file.modules[file.calls[event[1]][1]][0]):
            inside, first = event[1], i
        elif event[0] == ">" and event[1] == inside:
            units.append(Unit(file, first, i))
            inside = None
    return [unit for unit in units if unit.handles]


class Checkpoints:
    """Events and sizes of the same run with units under torch.utils.checkpoint(use_reentrant=False)."""

    def __init__(self, file, batch, units):
        self.file, self.sizes = file, file.sizes(batch)
        self.of_handle = {handle: unit for unit in units for handle in unit.handles}
        self.enters = {unit.first: unit for unit in units}
        self.leaves = {unit.last for unit in units}
        self.out, self.kept, self.ghosts, self.holds = [], {}, {}, {}
        self.next_handle = 1 + max((event[1] for event in file.events if event[0] == "s"), default=0)
        self.again = 0  # operations that run once more

    def events(self):
        inside = False
        for i, event in enumerate(self.file.events):
            if i in self.enters:
                self._hold(self.enters[i])
                inside = True
            inside = inside and i not in self.leaves
            if not (event[0] == "s" and inside):
                self._event(i, event)
        return self.out

    def _hold(self, unit):
        self.holds[unit.first] = range(self.next_handle, self.next_handle + len(unit.holds))
        self.out += [("s", handle, storage, -1) for handle, storage in zip(self.holds[unit.first], unit.holds)]
        self.next_handle += len(unit.holds)

    def _event(self, i, event):
        kind = event[0]
        unit = self.of_handle.get(event[1]) if kind in "ku" else None
        if kind == "g":  # behind it stands which handle is taken out
            handle = self.file.events[i + 1][1]
            unit = self.of_handle.get(handle)
            if unit is not None:
                if not unit.again:
                    self._replay(unit)
                self.ghosts[event[2]] = self.kept[handle]
                event = ("g", self.kept[handle], event[2])
        elif kind == "h" and event[2] in self.ghosts:
            event = ("h", self.ghosts[event[2]], event[2])
        elif unit is not None and kind == "k":
            self.out += [event, ("u", event[1])]  # a checkpoint gives it away once
            return
        elif unit is not None and kind == "u":
            unit.left -= 1
            self.out.append(event)
            if not unit.left:
                self.out += [("u", handle) for handle in self.holds[unit.first]]
            return
        self.out.append(event)

    def _replay(self, unit):
        unit.again, new = True, {}
        alive = {}
        for event in self.file.events[unit.first:unit.stop + 1]:
            kind = event[0]
            if kind == "b":
                new[event[1]] = len(self.sizes)
                self.sizes.append(self.sizes[event[1]])
                alive[event[1]] = True
                self.out.append(("b", new[event[1]]))
            elif kind == "f" and event[1] in new:
                alive.pop(event[1])
                self.out.append(("f", new[event[1]]))
            elif kind == "s":
                self.kept[event[1]] = new.get(event[2], event[2])
                self.out.append(("s", event[1], self.kept[event[1]], event[3]))
            elif kind == "o":
                self.again += 1
        self.out += [("f", new[storage]) for storage in alive]


def safe_play(events, sizes):
    """play(), where a handle may go twice: taken out of a checkpoint, and let go by its node."""
    gone, kept = [], set()
    for event in events:
        if event[0] == "s":
            kept.add(event[1])
        elif event[0] == "u":
            if event[1] not in kept:
                continue
            kept.remove(event[1])
        gone.append(event)
    return play(gone, sizes)


def checkpointed_peak(file, batch, globs):
    """The peak with the units whose paths match, and how many units they are."""
    units = units_of(file, lambda path: any(fnmatch.fnmatchcase(path, glob) for glob in globs.split(",")))
    checkpoints = Checkpoints(file, batch, units)
    return safe_play(checkpoints.events(), checkpoints.sizes), len(units)
