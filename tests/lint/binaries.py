"""Lint over the binaries of the build folder and of an installation made from it: where the loader looks for their
libraries. An empty or relative element of a RUNPATH is the folder that the user happens to be in, and a library there
would be run. And the program itself needs no library of a back end: those are its modules'. Reads `readelf -d`."""
import os
import pathlib
import re
import subprocess
import tempfile

import lint

ENTRY = re.compile(r"\((NEEDED|RPATH|RUNPATH)\).*\[(.*)\]$")
OF_MODULES = re.compile(r"lib(mpi|open-pal|open-rte|dnnl|gomp|cud|cublas)")


def is_binary(path):
    if path.is_symlink() or not path.is_file() or "CMakeFiles" in path.parts:
        return False
    with path.open("rb") as file:
        head = file.read(18)
    return head[:4] == b"\x7fELF" and head[16:18] in (b"\x02\0", b"\x03\0")  # programs and shared objects


def entries(path):
    done = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True)
    return [match.groups() for match in map(ENTRY.search, done.stdout.splitlines()) if match]


def faults(path):
    for kind, value in entries(path):
        if kind == "NEEDED":
            if value.startswith((".", "..")) or ("/" in value and not value.startswith("/")):
                yield f"needs {value}, by a relative path"
            if path.name == "snsim" and OF_MODULES.match(value):
                yield f"needs {value}, which only a module may need"
            continue
        for element in value.split(":"):
            if not element.startswith(("/", "$ORIGIN", "${ORIGIN}")):
                yield f'{kind} "{value}": the element "{element}" is the current folder'


def check_tree(root):
    return [f"{path.relative_to(root)}: {text}" for path in sorted(root.rglob("*")) if is_binary(path)
            for text in faults(path)]


def check_build(build):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cmake", "--install", build, "--prefix", folder], capture_output=True, check=True)
        return check_tree(build) + ["installed " + text for text in check_tree(pathlib.Path(folder))]


def check(root):
    """Checks the build folder and what it installs; of a case's tree links first: <name>.c with the options in <name>.ld."""
    if root == lint.REPOSITORY:
        if "SNSIM_BUILD_DIR" not in os.environ:
            raise lint.Skip("SNSIM_BUILD_DIR, the folder that was built in, is not set")
        return check_build(pathlib.Path(os.environ["SNSIM_BUILD_DIR"]))
    for source in root.glob("*.c"):
        options = source.with_suffix(".ld").read_text(encoding="utf-8").split()
        subprocess.run([os.environ.get("CC", "cc"), source.name, "-o", source.stem, *options], cwd=root, check=True)
    return check_tree(root)


def case(options, name="a"):
    return {f"{name}.c": "int main(void) { return 0; }\n", f"{name}.ld": options}


CASES = [
    ("clean", case("-Wl,-rpath,/usr/lib/x:$ORIGIN/../lib"), None),
    ("no RUNPATH", case(""), None),
    ("empty at the end", case("-Wl,-rpath,/usr/lib/x:"), 'RUNPATH "/usr/lib/x:": the element ""'),
    ("empty within", case("-Wl,-rpath,/usr/lib/x::/usr/lib/y"), 'the element ""'),
    ("relative", case("-Wl,-rpath,lib"), 'the element "lib"'),
    ("old tag", case("-Wl,--disable-new-dtags,-rpath,:/usr/lib/x"), 'RPATH ":/usr/lib/x"'),
    ("a module's library", case("-fopenmp -Wl,--no-as-needed", "snsim"), "snsim: needs libgomp.so.1"),
]

lint.run(check, CASES)
