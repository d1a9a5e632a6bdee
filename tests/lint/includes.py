"""Lint: the include table. A layer includes itself and the layers below it, by the layer's path; each third-party
library is known to the layers that are there to hide it. Tests and benchmarks may include anything."""
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
THIRD_PARTY = (
    (re.compile(r"sqlite"), {"db"}),
    (re.compile(r"cjson/"), {"base", "models", "sim", "cli"}),
    (re.compile(r"cuda|cudnn|cublas|dnnl"), {"exec"}),
    (re.compile(r"^mpi"), {"cli"}),
    (re.compile(r"gnuplot"), {"plots"}),
    (re.compile(r"cmocka"), set()),
)
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def fault(root, layer, quote, name):
    """What is wrong with layer's include of name, or None."""
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
    return None if (root / name).is_file() else f'"{name}" does not exist'


def check(root):
    found = []
    for path in lint.c_files(root):
        layer = path.relative_to(root).parts[0]
        for number, line in enumerate(lint.lines(path), 1):
            match = INCLUDE.match(line)
            text = fault(root, layer, *match.groups()) if match else None
            if text:
                found.append(lint.finding(root, path, number, text))
    return found


CASES = [
    ("clean", {"base/a.h": "", "sim/b.c": '#include "base/a.h"\n#include <stdio.h>\n'}, None),
    ("sqlite in db", {"db/c.c": "#include <sqlite3.h>\n"}, None),
    ("tests are free", {"tests/unit/a.c": "#include <sqlite3.h>\n"}, None),
    ("upward", {"sim/b.c": '#include "db/c.h"\n', "db/c.h": ""}, 'sim/b.c:1: sim/ must not include "db/c.h"'),
    ("sideways", {"plots/b.c": '#include "exec/c.h"\n', "exec/c.h": ""}, 'must not include "exec/c.h"'),
    ("header too", {"base/b.h": '\n#  include "models/c.h"\n', "models/c.h": ""}, "base/b.h:2:"),
    ("sqlite in sim", {"sim/b.c": "#include <sqlite3.h>\n"}, "must not include <sqlite3.h>"),
    ("cuda in sim", {"sim/b.c": "#include <cuda_runtime.h>\n"}, "must not include <cuda_runtime.h>"),
    ("no layer", {"sim/a.h": "", "sim/b.c": '#include "a.h"\n'}, "layer first"),
    ("angle brackets", {"sim/a.h": "", "sim/b.c": "#include <sim/a.h>\n"}, "for our own headers"),
    ("missing", {"sim/b.c": '#include "sim/a.h"\n'}, "does not exist"),
]

lint.run(check, CASES)
