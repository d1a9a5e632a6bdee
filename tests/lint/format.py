"""Lint: every C file is laid out as clang-format 14 lays it out with the repository's .clang-format. Skipped, with a
message, only where clang-format 14 is not installed: other versions lay some things out differently."""
import re
import shutil
import subprocess

import lint

STYLE = (lint.REPOSITORY / ".clang-format").read_text(encoding="utf-8")


def run(command, folder=None):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def find_program():
    for name in ("clang-format-14", "clang-format"):
        if shutil.which(name) and "version 14." in run([name, "--version"]).stdout:
            return name
    raise lint.Skip("no clang-format 14 here; install the package clang-format-14")


def check(root):
    program = find_program()
    paths = lint.c_files(root, lint.LAYERS + ("tests", "bench"))
    if not paths:
        return []
    names = [str(path.relative_to(root)) for path in paths]
    done = run([program, "--dry-run", "-Werror", *names], root)
    found = dict.fromkeys(re.findall(r"^(\S+:\d+):\d+: error:", done.stderr, re.MULTILINE))
    if done.returncode and not found:
        return [f"clang-format failed: {done.stderr.strip()}"]
    return [f"{place}: not in clang-format's layout; run: {program} -i {place.split(':')[0]}" for place in found]


CASES = [
    ("clean", {".clang-format": STYLE, "sim/a.c": "int a(void) {\n  return 0;\n}\n"}, None),
    ("brace", {".clang-format": STYLE, "sim/a.c": "int a;\nint b(void)\n{\n  return 0;\n}\n"}, "sim/a.c:2: not in"),
    ("indent", {".clang-format": STYLE, "sim/a.h": "struct a {\n    int b;\n};\n"}, "sim/a.h:1: not in"),
    ("test file", {".clang-format": STYLE, "tests/base/a.c": "int  a;\n"}, "tests/base/a.c:1: not in"),
]

lint.run(check, CASES)
