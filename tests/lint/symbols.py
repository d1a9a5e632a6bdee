"""Lint over the built libraries: external names begin with sn_, nothing mutable is global or static, and libraries
other than cli's neither print to stdout or stderr nor end the program. Reads `nm` of $SNSIM_BUILD_DIR/libsn_*.a."""
import os
import pathlib
import re
import subprocess

import lint

DEFINED = re.compile(r"^[TDBRCVW]$")
MUTABLE = re.compile(r"^\.(data|bss|tdata|tbss)(?!\.rel\.ro)|^\*COM\*")
ENDS_OR_PRINTS = {"printf", "vprintf", "puts", "putchar", "perror", "stdout", "stderr", "exit", "_exit", "_Exit",
                  "abort", "quick_exit", "__printf_chk", "__vprintf_chk"}


def symbols(archive):
    """(object, name, class, section) of every symbol of an archive."""
    done = subprocess.run(["nm", "--format=sysv", archive], capture_output=True, text=True, check=True)
    member = archive.name
    for line in done.stdout.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 7 and fields[0] != "Name":
            yield member, fields[0], fields[2], fields[6]
        elif re.match(r"(Symbols from )?.*\[(.*)\]:$", line):
            member = re.match(r".*\[(.*)\]:$", line).group(1)


def fault(library, name, kind, section):
    if DEFINED.match(kind) and not name.startswith("sn_"):
        return f"{name}: an external name must begin with sn_ (or be static)"
    if MUTABLE.match(section):
        return f"{name}: mutable data that outlives a call ({section})"
    if kind == "U" and name in ENDS_OR_PRINTS and library != "libsn_cli.a":
        return f"{name}: a library must not print or end the program"
    return None


def check_archives(folder):
    found = []
    for archive in sorted(folder.glob("libsn_*.a")):
        for member, name, kind, section in symbols(archive):
            text = fault(archive.name, name, kind, section)
            if text:
                found.append(f"{archive.name}({member}): {text}")
    return found


def check(root):
    """Checks the build folder; for a case's tree, whose files are <library>.c, builds the libraries first."""
    if root == lint.REPOSITORY:
        if "SNSIM_BUILD_DIR" not in os.environ:
            raise lint.Skip("SNSIM_BUILD_DIR, the folder with the built libraries, is not set")
        return check_archives(pathlib.Path(os.environ["SNSIM_BUILD_DIR"]))
    for source in root.glob("*.c"):
        subprocess.run([os.environ.get("CC", "cc"), "-c", "-O1", "-fPIE", source.name], cwd=root, check=True)
        subprocess.run(["ar", "rcs", f"lib{source.stem}.a", f"{source.stem}.o"], cwd=root, check=True)
    return check_archives(root)


CLEAN = """#include <stdio.h>
extern const char *const sn_table[2];
const char *const sn_table[2] = {"a", "b"};
static int twice(int a) { return 2 * a; }
int sn_a_use(FILE *f, int a) { fprintf(f, "%d %s", twice(a), sn_table[a & 1]); return 0; }
"""
CASES = [
    ("clean", {"sn_sim.c": CLEAN}, None),
    ("cli may print", {"sn_cli.c": '#include <stdio.h>\nvoid sn_a(void) { fprintf(stdout, "%d", 1); }\n'}, None),
    ("name", {"sn_sim.c": "int helper(int a) { return a; }\n"}, "libsn_sim.a(sn_sim.o): helper: an external name"),
    ("global", {"sn_sim.c": "int sn_a_count = 3;\n"}, "sn_a_count: mutable data"),
    ("static", {"sn_sim.c": "int sn_a(void) { static int calls; return ++calls; }\n"}, "calls"),
    ("prints", {"sn_db.c": '#include <stdio.h>\nvoid sn_a(int i) { printf("%d", i); }\n'}, "must not print"),
    ("complains", {"sn_db.c": '#include <stdio.h>\nvoid sn_a(int i) { fprintf(stderr, "%d", i); }\n'}, "stderr"),
    ("exits", {"sn_db.c": "#include <stdlib.h>\nvoid sn_a(void) { exit(1); }\n"}, "exit: a library"),
    ("aborts", {"sn_base.c": "#include <stdlib.h>\nvoid sn_a(void) { abort(); }\n"}, "abort: a library"),
]

lint.run(check, CASES)
