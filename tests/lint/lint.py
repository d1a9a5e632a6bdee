"""Shared by the lints: which files there are, how a finding is reported, how a lint proves that it catches something.

A lint is a function check(root) that returns findings ("file:line: text") for the tree at root, and a list of cases
(name, {path: content}, text that a finding must hold, or None for a tree that is clean). `lint.run(check, cases)` is
its main program: without arguments it checks this repository, with --self-test it checks the cases.
"""
import pathlib
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ("base", "models", "sim", "exec", "db", "plots", "cli")
SKIPPED = 77  # the exit code by which ctest knows a skipped test


class Skip(Exception):
    """Raised by a check that cannot run here; the text says why."""


def files(root, folders, endings):
    """Files below root's folders whose name ends in one of endings, sorted."""
    found = [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    return sorted(path for path in found if path.name.endswith(endings))


def c_files(root, folders=LAYERS, endings=(".c", ".h")):
    return files(root, folders, endings)


def all_files(root):
    """Every file of the repository; without git, which a plain copy of the tree does not have."""
    for path in sorted(root.iterdir()):
        if path.name == ".git":  # a folder, in a worktree a file
            continue
        if path.is_file():
            yield path
        elif not path.name.startswith("build"):
            yield from (p for p in sorted(path.rglob("*")) if p.is_file() and "__pycache__" not in p.parts)


def lines(path):
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def finding(root, path, line, text):
    return f"{path.relative_to(root)}:{line}: {text}"


def case_error(check, name, tree, expected):
    """Runs one case; what is wrong with its outcome, or None."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, content in tree.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content, encoding="utf-8")
        found = check(root)
    if expected is None:
        return f"{name}: clean, but found: {found}" if found else None
    hit = any(expected in text for text in found)
    return None if hit else f"{name}: wanted a finding with '{expected}', got {found}"


def run(check, cases):
    try:
        if sys.argv[1:] == ["--self-test"]:
            results = [case_error(check, *case) for case in cases]
            problems = [text for text in results if text]
            print(f"{len(cases)} cases, {len(problems)} wrong")
        else:
            problems = check(REPOSITORY)
    except Skip as reason:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    print("\n".join(problems) if problems else "clean")
    sys.exit(1 if problems else 0)
