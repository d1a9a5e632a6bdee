"""Lint: the tree of files. No file is empty but the inputs of fuzz targets, no folder of sources, tests or documents holds
more files than a reader takes in at once, and the files that documents link to and comments name are there."""
import collections
import re

import lint

MOST_FILES = 30
DATA = ("tests/data/", "tests/fuzz/corpus/", "sim/device/profiles/")  # lists of things, one file each
MAY_BE_EMPTY = "tests/fuzz/corpus/"
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
NAMED = re.compile(r"(?<![\w/.<-])((?:" + "|".join(lint.LAYERS + ("tests", "bench", "docs")) + r")/[\w/.-]+\.(?:c|h|py|md))\b")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def wrong_links(root, path):
    text = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code.group()), path.read_text(encoding="utf-8", errors="replace"))
    for link in LINK.finditer(text):
        target = link.group(1)
        if not re.match(r"https?:|mailto:", target) and not (path.parent / target).exists():
            yield lint.finding(root, path, text.count("\n", 0, link.start()) + 1, f"links to {target}, which is not there")


def wrong_names(root, path):
    text = path.read_text(encoding="utf-8", errors="replace")
    for name in NAMED.finditer(text):
        if not (root / name.group(1)).exists():
            yield lint.finding(root, path, text.count("\n", 0, name.start()) + 1, f"names {name.group(1)}, which is not there")


def check(root):
    found, counts = [], collections.Counter()
    for path in lint.all_files(root):
        name = str(path.relative_to(root))
        counts[path.parent] += not name.startswith(DATA)
        if path.stat().st_size == 0 and not name.startswith(MAY_BE_EMPTY):
            found.append(lint.finding(root, path, 1, "is empty"))
        if path.suffix == ".md":
            found.extend(wrong_links(root, path))
        if path.suffix in (".c", ".h", ".md"):
            found.extend(wrong_names(root, path))
    found.extend(lint.finding(root, folder, 1, f"holds {count} files, more than {MOST_FILES}: give those that belong together a folder")
                 for folder, count in counts.items() if count > MOST_FILES)
    return found


CASES = [
    ("clean", {"docs/a.md": "[b](b.md#part), [c](https://c), `[d](x)`\n", "docs/b.md": "#\n", "tests/fuzz/corpus/a/empty": ""}, None),
    ("empty", {"fit.test": ""}, "fit.test:1: is empty"),
    ("link", {"docs/a.md": "\n[b](../sim/b.c)\n"}, "docs/a.md:2: links to ../sim/b.c"),
    ("name", {"sim/b.c": "/* see sim/c.h */\n"}, "sim/b.c:1: names sim/c.h"),
    ("full folder", {f"sim/plan/{i}.c": "//\n" for i in range(31)}, "sim/plan:1: holds 31 files"),
    ("much data", {f"tests/data/{i}.json": "{}\n" for i in range(31)}, None),
]

lint.run(check, CASES)
