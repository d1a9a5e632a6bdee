"""Lint: every header of the product compiles alone, and twice in a row (its guard works), with our warnings as errors;
every source file, script and build file opens with a comment that says what it is."""
import os
import re
import subprocess

import lint

FLAGS = "-std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wvla -Werror"
FAKE_CUDA = "tests/fake_cuda/include"  # exec/cuda/ includes CUDA's headers, which need not be installed
OPENING = re.compile(r"(?:#!.*\n)?\s*(?:/\*|//|#|\"\"\")(.*?)(?:\*/|\"\"\"|\n\n|\Z)", re.DOTALL)
FEWEST_WORDS = 4


def compile_error(root, header):
    """The compiler's first complaint about a file that includes only the header, or None."""
    line = f'#include "{header.relative_to(root)}"\n'
    command = [os.environ.get("CC", "cc"), *FLAGS.split(), f"-I{root}", f"-isystem{root}/{FAKE_CUDA}", "-x", "c", "-fsyntax-only", "-"]
    done = subprocess.run(command, input=line + line, capture_output=True, text=True, check=False)
    errors = [text for text in done.stderr.splitlines() if "error:" in text]
    return None if done.returncode == 0 else (errors or [done.stderr.strip() or "the compiler failed"])[0]


def is_script(path):
    return path.suffix == "" and path.read_bytes()[:2] == b"#!"


def commented_files(root):
    for path in lint.all_files(root):
        if path.name.endswith((".c", ".h", ".py", ".sh", ".cmake", "CMakeLists.txt")) or is_script(path):
            yield path


def check(root):
    found = []
    for header in lint.c_files(root, endings=(".h",)):
        error = compile_error(root, header)
        if error:
            found.append(lint.finding(root, header, 1, f"does not compile alone: {error}"))
    for path in commented_files(root):
        opening = OPENING.match(path.read_text(encoding="utf-8", errors="replace"))
        if not opening or len(opening.group(1).split()) < FEWEST_WORDS:
            found.append(lint.finding(root, path, 1, "opens without a comment that says what it is"))
    return found


TOP = "/* What this file is for. */\n"
GUARD = TOP + "#ifndef A\n#define A\n{}\n#endif\n"
CASES = [
    ("clean", {"sim/a.h": GUARD.format("#include <stdint.h>\nstruct a { uint64_t b; };"), "sim/b.c": TOP}, None),
    ("clean script", {"scripts/a": "#!/bin/sh\n# What it does and why.\n", "b.py": '"""What it is for."""\n'}, None),
    ("needs another header", {"sim/a.h": GUARD.format("uint64_t b(void);")}, "does not compile alone"),
    ("no guard", {"sim/a.h": TOP + "struct a { int b; };\n"}, "does not compile alone"),
    ("warning", {"sim/a.h": GUARD.format("static inline int f(long a) { return a; }")}, "does not compile alone"),
    ("no comment", {"sim/a.c": "int a;\n"}, "sim/a.c:1: opens without a comment"),
    ("blank line, then no comment", {"sim/a.c": "\n#include <stdio.h>\n"}, "opens without"),
    ("too short", {"tests/base/a.c": "/* tests */\nint a;\n"}, "opens without"),
    ("script", {"scripts/a": "#!/bin/sh\nset -e\n"}, "scripts/a:1: opens without"),
    ("build file", {"CMakeLists.txt": "project(a)\n"}, "opens without"),
]

lint.run(check, CASES)
