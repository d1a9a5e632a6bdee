"""Checks a recording against docs/record.md, rule by rule. `wrong(path)` is the first rule broken, or None."""
import gzip
import json
import re

HEADER = {"snsim_recording": int, "torch": str, "name": str, "batches": list, "sm": int, "iterations": int, "assumed": list, "compiled": bool}
TABLES = ("kernels", "modules", "calls", "storages", "parameters")
ROLES = ("parameter", "buffer", "given", "state", "value")
DTYPE = re.compile(r"[a-z]+[a-z0-9_]*")
MOST_BYTES = 1 << 52


class Broken(Exception):
    """A rule that does not hold."""


def need(holds, rule):
    if not holds:
        raise Broken(rule)


def whole(value, least=0):
    return type(value) is int and value >= least


class Checker:
    def __init__(self, lines):
        self.lines, self.at = lines, 0
        self.python, self.born, self.handles, self.gone, self.ghosts = set(), set(), {}, set(), {}
        self.open, self.calls_seen, self.iterations, self.next_ghost = [0], 1, 0, 0

    def next(self):
        need(self.at < len(self.lines), "cut off")
        line = self.lines[self.at]
        self.at += 1
        need(line.endswith("\n") and line.strip(), "a line")
        return json.loads(line, parse_float=lambda text: need(False, "no fractions"))

    def run(self):
        self.header(self.next())
        for name in TABLES:
            table = self.next()
            need(list(table) == [name], f"the table {name}")
            setattr(self, name, table[name])
        self.check_tables()
        last = None
        while True:
            event = self.next()
            if event[0] == "e":
                need(event == ["e"] and self.at == len(self.lines), "e is the last line")
                break
            need(last is None or last[0] != "g" or event[0] == "k", "k behind g")
            self.in_order(last, event)
            getattr(self, "event_" + {"<": "enter", ">": "leave"}.get(event[0], event[0]), self.unknown)(*event[1:])
            last = event
        need(self.open == [0], "calls are closed")
        need(self.iterations == self.head["iterations"] and self.calls_seen == len(self.calls), "iterations and calls")
        need(self.born == set(range(len(self.storages))), "all storages are born")

    def header(self, head):
        need(list(head) == list(HEADER) and all(type(head[key]) is kind for key, kind in HEADER.items()), "the header's keys")
        need(head["snsim_recording"] == 1 and head["iterations"] >= 1, "the header's values")
        need(len(head["batches"]) in (1, 2) and all(whole(batch, 1) for batch in head["batches"]), "batches")
        need(all(len(row) == 2 and all(type(x) is str for x in row) for row in head["assumed"]), "assumed")
        self.head, self.pairs = head, len(head["batches"]) == 2

    def check_tables(self):
        need(all(type(name) is str and whole(flags) and flags < 64 for name, flags in self.kernels), "kernels")
        need(self.modules[0] == ["", ""] and all(type(path) is type(kind) is str for path, kind in self.modules), "modules")
        need(self.calls[0] == [0, 0], "call 0")
        need(all(whole(parent) and parent < row and whole(module) and module < len(self.modules)
                 for row, (parent, module) in enumerate(self.calls) if row), "calls")
        for fixed, growing, dtype, device, role in self.storages:
            need(type(fixed) is int and type(growing) is int and (self.pairs or not growing), "a storage's bytes")
            need(all(0 <= fixed + growing * batch < MOST_BYTES for batch in self.head["batches"]), "bytes in range")
            need(DTYPE.fullmatch(dtype) and device in ("cuda", "cpu") and role in ROLES, "a storage's kind")
        for name, storage, offset, elements, trained, rows, gradients, states in self.parameters:
            need(type(name) is str and self.is_storage(storage) and whole(offset) and whole(elements) and trained in (0, 1), "a parameter")
            need(whole(rows) and rows > 0 and elements % rows == 0, "a parameter's rows")
            for storages in (gradients, states):
                need(all(map(self.is_storage, storages)) and len(set(storages)) == len(storages), "a parameter's gradients and states")

    def is_storage(self, storage):
        return whole(storage) and storage < len(self.storages)

    def is_number(self, number):
        return whole(number) or (self.pairs and type(number) is list and len(number) == 2 and all(type(x) is int for x in number))

    @staticmethod
    def in_order(last, event):
        """Within a run of ends: f, u, h, and ascending."""
        if last and last[0] in "fuh" and event[0] in "fuh":
            key = [("fuh".index(x[0]), x[-1]) for x in (last, event)]
            need(key[0] < key[1] and (last[0] != event[0] or event[0] == "h"), "a run of ends is in order")
        if event[0] in "fu":
            need(len(event) > 1 and event[1:] == sorted(set(event[1:])), "ends ascend")

    def unknown(self, *_):
        need(False, "a kind of event")

    def birth(self, storage):
        need(storage == len(self.born), "storages are born in order")
        need(self.is_storage(storage), "a storage of the table")
        self.born.add(storage)
        self.python.add(storage)

    def is_had(self, storage):
        return storage in self.python or storage in self.handles.values() or storage in self.ghosts.values()

    def event_b(self, storage):
        self.birth(storage)

    def event_f(self, *storages):
        for storage in storages:
            need(storage in self.python, "Python lets go once of what it has")
            self.python.remove(storage)

    def event_s(self, handle, storage, node):
        need(handle == len(self.handles) + len(self.gone), "handles in order")
        need(storage in self.born and self.is_had(storage), "what is kept lives")
        need(whole(node, -1), "a handle's node")
        self.handles[handle] = storage

    def event_u(self, *handles):
        for handle in handles:
            need(handle in self.handles, "a handle goes once")
            del self.handles[handle]
            self.gone.add(handle)

    def event_g(self, storage, ghost):
        need(ghost == self.next_ghost and storage in self.born, "ghosts in order")
        self.next_ghost += 1
        self.ghosts[ghost] = storage
        taken = json.loads(self.lines[self.at])
        need(taken[0] == "k" and self.handles.get(taken[1]) == storage, "k takes out this storage")

    def event_k(self, handle):
        need(handle in self.handles, "k of a handle that is there")

    def event_h(self, storage, ghost):
        need(self.ghosts.pop(ghost, None) == storage, "a ghost goes once")

    def event_enter(self, call, given):
        need(call == self.calls_seen and self.calls[call][0] == self.open[-1], "calls in order, in their parents")
        need(all(storage in self.born for storage in given), "arguments were born")
        self.calls_seen += 1
        self.open.append(call)

    def event_leave(self, call):
        need(len(self.open) > 1 and self.open.pop() == call, "calls nest")

    def event_i(self, number):
        need(number == self.iterations, "iterations in order")
        self.iterations += 1

    def event_p(self, phase):
        need(phase in (0, 1, 2), "a phase")

    def event_o(self, kernel, phase, node, call, reads, makes, changes, flops, read, written, dtype, *rest):
        need(whole(kernel) and kernel < len(self.kernels) and phase in (0, 1, 2) and whole(node, -2), "an operation's kernel, phase, node")
        need(call == self.open[-1], "an operation's call is open")
        need(all(storage in self.born and self.is_had(storage) for storage in reads + changes), "it reads and changes what lives")
        need(len(set(reads)) == len(reads) and len(set(changes)) == len(changes) and (makes or changes), "its storages")
        for storage in makes:
            self.birth(storage)
        need(all(self.is_number(number) for number in (flops, read, written)), "its costs")
        need(dtype == "" or DTYPE.fullmatch(dtype), "its dtype")
        need(len(rest) in (0, 1, 3), "its length")
        flags = self.kernels[kernel][1]
        shapes = rest[0] if rest else None
        need((shapes is not None) == bool(flags & 28), "shapes where flags tell")
        if shapes is not None:
            self.shapes(flags, shapes)
        if len(rest) == 3:
            need(rest[1] in (1, 2) and rest[2] in reads and len(makes) == 1, "a sum")

    def shapes(self, flags, shapes):
        need(all(self.is_number(size) for operand in shapes[0] for size in operand), "sizes")
        if flags & 4:
            need(len(shapes) == 2 and shapes[1] in (0, 1), "attention's shapes")
        elif flags & 8:
            need(len(shapes) == 7 and all(type(x) is list for x in shapes[1:4]) and whole(shapes[4], 1) and shapes[5] in (0, 1)
                 and whole(shapes[6]) and shapes[6] < 8, "a convolution's shapes")
        else:
            need(len(shapes) == 1, "a product's shapes")


def wrong(path):
    """The first rule that the file breaks, with its line, or None."""
    with (gzip.open(path, "rt") if str(path).endswith(".gz") else open(path)) as file:
        checker = Checker(file.readlines())
    try:
        checker.run()
    except (Broken, ValueError, KeyError, TypeError) as error:
        return f"line {checker.at}: {type(error).__name__}: {error}"
    return None
