"""Failing allocations while training: of every command that trains, and of reading data and weights, allocation after allocation
fails, once or from there on, in our code and in the libraries'. Each time the program ends by itself with an exit code
of its own and one sentence of its own, and what was finished is right, printed and stored.

    SNSIM_BINARY=build/snsim SNSIM_BUILD_DIR=build python3 tests/limits/allocations.py

SN_FAULTS is how many allocations of each command fail, evenly spread over all (default 24; 0: every one of them).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BINARY = os.path.realpath(os.environ["SNSIM_BINARY"])
SHIM = os.path.realpath(os.path.join(os.environ["SNSIM_BUILD_DIR"], "tests/libfail_alloc.so"))
SOURCE = pathlib.Path(os.environ["SNSIM_SOURCE_DIR"])
MOST = int(os.environ.get("SN_FAULTS", "24"))
ITERATIONS = 2
LENET = ["--net", "lenet", "--batch", "4", "--iterations", str(ITERATIONS), "--threads", "2", "--json"]
STRATEGIES = ["--strategy", "baseline,liveness+offload"]
PLAN = "plan.json"  # what it gives is not stored
COMMANDS = (
    ["run", *LENET, *STRATEGIES],
    ["validate", *LENET, *STRATEGIES],
    ["calibrate", *LENET],
    ["run", *LENET, *STRATEGIES, "--data", "digits-images.idx"],
    ["run", *LENET, *STRATEGIES, "--load-weights", "w", "--save-weights", "v",
     "--save-gradients", "g"],
    ["validate", "--iterations", str(ITERATIONS), "--threads", "2", "--strategy", "baseline", "--check", "--json", PLAN],
)


def start(folder, arguments, **extra):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SNSIM_", "SN_", "XDG_"))}
    return subprocess.run([BINARY, *arguments], cwd=folder, capture_output=True, text=True, errors="replace", timeout=120,
                          check=False, env={**environment, "HOME": folder, **extra})


def fresh_store(folder):
    """Made beforehand, or most allocations would be those that make its tables. It holds one run."""
    for left in pathlib.Path(folder).glob("f.db*"):
        left.unlink()
    shutil.copy(pathlib.Path(folder, "base.db"), pathlib.Path(folder, "f.db"))


def count(folder, arguments):
    """Which allocations the processes of a command ask for, and what it prints."""
    counts = pathlib.Path(folder, "counts")
    counts.write_text("")
    fresh_store(folder)
    done = start(folder, [*arguments, "--db", "f.db"], LD_PRELOAD=SHIM, SN_FAIL_COUNTS=str(counts))
    if done.returncode != 0:
        sys.exit(f"{arguments}: {done.returncode}: {done.stderr}")
    return [tuple(map(int, line.split())) for line in counts.read_text().splitlines()], done.stdout


def spread(processes):
    """Allocations of the process that trains, and of its parent."""
    for begin, end in sorted(processes):
        step = max(1, (end - begin) * len(processes) // MOST) if MOST else 1
        yield from range(begin + 1, end + 1, step)


def results(text):
    """By strategy, iterations and kind, what training came to; it depends on nothing but the seed. The one during which an
    allocation failed was stopped before its end, and says so."""
    found = json.loads(text).get("results", [])
    return {(r["strategy"], r["iterations"], r.get("source")): r.get("loss") for r in found if r["iterations"] == ITERATIONS}


def fault(done, folder, arguments, expected):
    lines = [line for line in done.stderr.splitlines() if line]
    errors = sum(line.startswith("snsim: error: ") for line in lines)
    if done.returncode not in (0, 1, 3, 4):
        return f"status {done.returncode}"
    if any(not line.startswith("snsim: ") for line in lines):
        return "somebody else has the last word"
    if errors != (done.returncode in (3, 4)):
        return f"{errors} sentences, status {done.returncode}"
    if not done.stdout or arguments[0] == "calibrate":
        return None
    try:
        found = results(done.stdout)
    except ValueError:
        return None if done.returncode else "what is printed is no JSON"  # printing was cut short, which is said
    if not found.items() <= results(expected).items() or (done.returncode == 0 and len(found) < len(results(expected))):
        return f"another result: {found}"
    if PLAN in arguments:
        return None
    shown = start(folder, ["show", "2", "--db", "f.db", "--json"])
    if shown.returncode == 0 and results(shown.stdout) != found:
        return "what is stored is not what is printed"
    return None if shown.returncode == 0 or done.returncode else "what is printed is not stored"


def main():
    tried, refused, problems = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        if start(folder, ["run", *LENET, "--no-db", "--strategy", "baseline"]).returncode != 0:
            print("nothing can be trained here")
            return 77
        start(folder, ["run", *LENET, "--no-db", "--strategy", "baseline", "--save-weights", "w"])
        start(folder, ["simulate", "--net", "lenet", "--batch", "1", "--strategy", "baseline", "--db", "base.db"])
        start(folder, ["--net", "lenet", "--batch", "4", "--strategy", "liveness+offload", "--plan", PLAN, "--no-db"])
        subprocess.run([SOURCE / "scripts/draw-digits", "--count", "40"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for arguments in COMMANDS:
            processes, expected = count(folder, arguments)
            for at in spread(processes):
                for mode in ({}, {"SN_FAIL_ON": "1"}):
                    fresh_store(folder)
                    done = start(folder, [*arguments, "--db", "f.db"], LD_PRELOAD=SHIM, SN_FAIL_AT=str(at), **mode)
                    problem = fault(done, folder, arguments, expected)
                    tried, refused = tried + 1, refused + (done.returncode != 0)
                    if problem:
                        problems.append(f"{' '.join(arguments)}: allocation {at} of {processes}{' and all behind it' * len(mode)}:"
                                        f" {problem}\n{done.stderr.strip()[:600]}")
            print(f"{' '.join(arguments[:1] + arguments[9:])}: allocations {processes}")
    print(f"{tried} tries, {refused} refused, {len(problems)} wrong", *problems, sep="\n")
    return 1 if problems or refused == 0 else 0


sys.exit(main())
