"""Lint: words that mark unfinished work, and paths of somebody's machine, anywhere in the repository. The words are put
together here so that this file does not find itself. /home/someone is nobody's and may stand in a test."""
import re

import lint

MARKERS = ("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")
PHRASES = ("not " + "implemented", "place" + "holder")
HOMES = ("ro" + "ot", "wo" + "rk", "ho" + r"me/(?!someone\b)\w+", "Us" + r"ers/\w+")
FORBIDDEN = (
    (re.compile(r"\b(" + "|".join(MARKERS) + r")\b"), "marks unfinished work"),
    (re.compile(r"\b(" + "|".join(PHRASES) + r")", re.IGNORECASE), "marks unfinished work"),
    (re.compile(r"(?<![\w.~$}>)*-])/(" + "|".join(HOMES) + r")(/|\b)"), "is a path of one machine"),
)


def check(root):
    found = []
    for path in lint.all_files(root):
        if b"\0" in path.read_bytes()[:8192]:
            continue  # pictures and fuzz inputs
        for number, line in enumerate(lint.lines(path), 1):
            for pattern, why in FORBIDDEN:
                match = pattern.search(line)
                if match:
                    found.append(lint.finding(root, path, number, f"'{match.group(0)}' {why}"))
    return found


CASES = [
    ("clean", {"sim/a.c": 'mkstemp("aXXXXXX"); /* hacker, net/wo' 'rk/x */\n', "a.md": "~/wo" "rk/x, $HOME/ro" "ot/x, /ho" "me/someone\n"}, None),
    ("marker", {"sim/a.c": "int a; // " + MARKERS[0] + ": finish\n"}, "sim/a.c:1: '" + MARKERS[0]),
    ("marker in docs", {"docs/a.md": "\n" + MARKERS[1] + "\n"}, "docs/a.md:2:"),
    ("three letters", {"scripts/a": "# " + MARKERS[2] + "\n"}, "unfinished"),
    ("fourth", {"cmake/a.cmake": "# a " + MARKERS[3] + "\n"}, "unfinished"),
    ("phrase", {"cli/a.c": 'puts("' + PHRASES[0].capitalize() + '");\n'}, "unfinished"),
    ("other phrase", {"README.md": "a " + PHRASES[1] + "\n"}, "README.md:1:"),
    ("path", {"tests/base/a.c": 'open("/' + HOMES[1] + '/main/a");\n'}, "path of one machine"),
    ("home", {"docs/a.md": "in /ho" + "me/anna/src\n"}, "path of one machine"),
    ("hidden folder", {".ci/run": "cd /" + HOMES[0] + "\n"}, ".ci/run:1:"),
]

lint.run(check, CASES)
