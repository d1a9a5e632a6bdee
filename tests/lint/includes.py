"""Lint: the include table. A layer includes itself and the layers below it, by the path of layer and room; inside a layer
that has rooms, a room includes itself and the rooms below it; each third-party library is known to the layers that are
there to hide it. Tests and benchmarks may include anything."""
import re

import lint

ALLOWED = {
    "base": {"base"},
    "models": {"base", "models"},
    "sim": {"base", "models", "sim"},
    "exec": {"base", "models", "sim", "exec"},
    "db": {"base", "models", "sim", "db"},
    "plots": {"base", "models", "sim", "db", "plots"},
    "cli": set(lint.LAYERS),
}
ROOMS = {  # the lowest room first
    "models": ("net", "op", "build", "zoo", "json", "onnx", "record"),
    "sim": ("memory", "dtr", "graph", "device", "cluster", "parallel", "share", "policy", "schedule", "plan", "make", "corun", "play", "ask", "stages", "capacity", "scale", "sweep"),
    "exec": ("data", "kernel", "machine", "cpu", "cuda", "session"),
    "cli": ("options", "frame", "sweep", "capacity", "train", "commands", "reproduce"),
}
THIRD_PARTY = (
    (re.compile(r"sqlite"), {"db"}),
    (re.compile(r"cjson/"), {"base", "models", "sim", "cli"}),
    (re.compile(r"^zlib"), {"models"}),
    (re.compile(r"cuda|cudnn|cublas|dnnl"), {"exec"}),
    (re.compile(r"^mpi"), {"cli"}),
    (re.compile(r"gnuplot"), {"plots"}),
    (re.compile(r"cmocka"), set()),
)
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of(parts):
    """The room in which a path lies, given as its parts, the layer first; None where the layer has no rooms, or the file
    lies beside them."""
    return parts[1] if parts[0] in ROOMS and len(parts) > 2 else None


def misplaced(parts):
    """What is wrong with where a file of a layer lies, or None."""
    rooms = ROOMS.get(parts[0])
    if rooms is None or parts[1:] == ("main.c",) or room_of(parts) in rooms:
        return None
    return f"{parts[0]}/ has rooms: move it into one of {', '.join(rooms)}"


def wrong_way(parts, target):
    """What is wrong with an include of `target` in `parts`, both in the same layer, or None."""
    rooms = ROOMS.get(parts[0], ())
    here, there = room_of(parts), room_of(target)
    if here in rooms and there in rooms and rooms.index(there) > rooms.index(here):
        return f'{parts[0]}/{here}/ must not include "{"/".join(target)}": {there} stands above {here}'
    return None


def fault(root, parts, quote, name):
    """What is wrong with the include of name in the file whose path is `parts`, or None."""
    layer = parts[0]
    for pattern, layers in THIRD_PARTY:
        if quote == "<" and pattern.search(name) and layer not in layers:
            return f"{layer}/ must not include <{name}>"
    target = name.split("/")[0]
    if quote == "<":
        return f'<{name}>: write "{name}" for our own headers' if target in lint.LAYERS else None
    if target not in lint.LAYERS:
        return f'"{name}": give the path from the root, layer first'
    if target not in ALLOWED[layer]:
        return f'{layer}/ must not include "{name}"'
    wrong = wrong_way(parts, tuple(name.split("/"))) if target == layer else None
    if wrong:
        return wrong
    return None if (root / name).is_file() else f'"{name}" does not exist'


def check(root):
    found = []
    for path in lint.c_files(root):
        parts = path.relative_to(root).parts
        wrong = misplaced(parts)
        if wrong:
            found.append(lint.finding(root, path, 1, wrong))
        for number, line in enumerate(lint.lines(path), 1):
            match = INCLUDE.match(line)
            text = fault(root, parts, *match.groups()) if match else None
            if text:
                found.append(lint.finding(root, path, number, text))
    return found


CASES = [
    ("clean", {"base/a.h": "", "sim/plan/b.c": '#include "base/a.h"\n#include <stdio.h>\n'}, None),
    ("sqlite in db", {"db/c.c": "#include <sqlite3.h>\n"}, None),
    ("tests are free", {"tests/base/a.c": "#include <sqlite3.h>\n"}, None),
    ("upward", {"sim/plan/b.c": '#include "db/c.h"\n', "db/c.h": ""}, 'sim/plan/b.c:1: sim/ must not include "db/c.h"'),
    ("sideways", {"plots/b.c": '#include "exec/c.h"\n', "exec/c.h": ""}, 'must not include "exec/c.h"'),
    ("header too", {"base/b.h": '\n#  include "models/c.h"\n', "models/c.h": ""}, "base/b.h:2:"),
    ("sqlite in sim", {"sim/plan/b.c": "#include <sqlite3.h>\n"}, "must not include <sqlite3.h>"),
    ("cuda in sim", {"sim/plan/b.c": "#include <cuda_runtime.h>\n"}, "must not include <cuda_runtime.h>"),
    ("no layer", {"sim/plan/a.h": "", "sim/plan/b.c": '#include "a.h"\n'}, "layer first"),
    ("angle brackets", {"sim/plan/a.h": "", "sim/plan/b.c": "#include <sim/plan/a.h>\n"}, "for our own headers"),
    ("down a room", {"sim/plan/a.c": '#include "sim/graph/b.h"\n', "sim/graph/b.h": ""}, None),
    ("up a room", {"sim/graph/a.c": '#include "sim/plan/b.h"\n', "sim/plan/b.h": ""}, "plan stands above graph"),
    ("no room", {"sim/a.c": ""}, "sim/a.c:1: sim/ has rooms"),
    ("unknown room", {"cli/odds/a.c": ""}, "cli/odds/a.c:1: cli/ has rooms"),
    ("main", {"cli/main.c": '#include "cli/commands/a.h"\n', "cli/commands/a.h": ""}, None),
    ("missing", {"sim/plan/b.c": '#include "sim/plan/a.h"\n'}, "does not exist"),
]

lint.run(check, CASES)
