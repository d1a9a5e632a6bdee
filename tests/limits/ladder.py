"""Every command where memory or threads end: under ever larger limits of address space (ulimit -v), and of processes and
threads (prlimit --nproc). Whatever the limit, the program ends by itself with one of its own exit codes, says in one
sentence of its own what was missing, and keeps what was finished: no signal, no library's last words.

    SNSIM_BINARY=build/snsim SNSIM_BUILD_DIR=build python3 tests/limits/ladder.py

Limits of processes do not bind root: as root this runs those commands as nobody, and skips them where it cannot.
"""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

BINARY = os.path.realpath(os.environ["SNSIM_BINARY"])
NOBODY = 65534
# Times the least in which the program starts at all; from 3 to 8 the kernels' library does not fit in.
KIB_STEPS = (1, 1.3, 1.6, 2, 3, 5, 8, 9.2, 10.2, 11, 12, 14, 30, 60)
PROCESSES = (1, 2, 3, 4, 5, 6, 8, 12)
TRAINING = ("run", "validate", "calibrate")
SMALL = ["--net", "lenet", "--batch", "4", "--db", "l.db"]
COMMANDS = (
    ["simulate", *SMALL],
    ["fit", "--max", "batch", "--net", "lenet", "--memory", "400MiB", "--no-db"],
    ["advise", "--net", "lenet", "--batch", "64", "--no-db"],
    ["sweep", "--nets", "lenet", "--batches", "4,8", "--gpus", "k40c", "--db", "l.db", "--jobs", "4"],
    ["run", *SMALL, "--threads", "4"],
    ["validate", *SMALL, "--threads", "4"],
    ["calibrate", *SMALL, "--threads", "4"],
    ["run", "--net", "alexnet", "--batch", "2", "--strategy", "baseline", "--no-db", "--threads", "1"],
    ["list", "nets"],
    ["show", "--db", "l.db"],
    ["show", "1", "--db", "l.db"],
    ["diff", "1", "2", "--db", "l.db"],
    ["plot", "1", "--db", "l.db", "-o", "l.svg"],
    ["report", "1", "--db", "l.db", "-o", "l.html"],
    ["trace", "1", "--db", "l.db", "-o", "l.json"],
    ["export", "1", "--db", "l.db"],
    ["reproduce", "table1", "--no-db"],
)


def start(folder, arguments, kib=None, processes=None, module=None):
    def limit():
        if kib:
            resource.setrlimit(resource.RLIMIT_AS, (1024 * kib,) * 2)
        if processes:
            resource.setrlimit(resource.RLIMIT_NPROC, (processes,) * 2)
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)

    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SNSIM_", "XDG_"))}
    if module:
        environment["SNSIM_CPU_MODULE"] = str(module)
    return subprocess.run([BINARY, *arguments], cwd=folder, env={**environment, "HOME": folder}, capture_output=True,
                          text=True, errors="replace", timeout=120, preexec_fn=limit, check=False)


def least_memory(folder):
    """In KiB, to 256 of them, what the loader needs to get as far as our code."""
    low, high = 0, 1 << 20
    while high - low > 256:
        middle = (low + high) // 2
        if start(folder, ["--version"], kib=middle).returncode == 0:
            high = middle
        else:
            low = middle
    return high


def fault(done):
    lines = [line for line in done.stderr.splitlines() if line]
    if done.returncode not in (0, 1, 2, 3, 4):
        return f"ended by {done.returncode}"
    if any(not line.startswith("snsim: ") for line in lines):
        return "somebody else has the last word"
    if done.returncode in (3, 4) and sum(line.startswith("snsim: error: ") for line in lines) != 1:
        return "not one sentence"
    if "module cannot be loaded" in done.stderr:
        return "a library is blamed that is there"
    return None


class Ladder:
    def __init__(self):
        self.problems, self.tried, self.refused, self.partly = [], 0, 0, 0

    def climb(self, folder, arguments, **limits):
        done = start(folder, arguments, **limits)
        self.tried += 1
        self.refused += done.returncode in (3, 4)
        problem = fault(done)
        if problem:
            self.problems.append(f"{' '.join(arguments)} with {limits}: {problem}\n{done.stderr.strip()}")


# How the kernels of tests/modules/dies.c die, and what must be said of it.
DEATHS = (
    ("segv", "training died in a library (Segmentation fault), as happens where memory or threads end"),
    ("abort", "(Aborted: terminate called after throwing an instance of 'std::bad_alloc'   what():  std::bad_alloc)"),
    ("exit", "(exit status 1: libgomp: Thread creation failed: Resource temporarily unavailable)"),
)


def death(folder, how, command, said):
    """What was trained before a death is printed and stored. A strategy runs some 70 kernels of lenet."""
    module = pathlib.Path(os.environ["SNSIM_BUILD_DIR"]) / "tests/libdies.so"
    os.environ.update(SN_DIES=how, SN_DIES_AT="300")
    done = start(folder, [command, *SMALL[:4], "--db", f"{how}.db", "--json"], module=module)
    stored = start(folder, ["show", "1", "--db", f"{how}.db", "--json"])
    where = f"{command} {how}: "
    if fault(done) or done.returncode != 4 or said not in done.stderr:
        return [where + f"status {done.returncode}, {fault(done)}: {done.stderr}"]
    if stored.returncode != 0 or json.loads(stored.stdout)["results"] != json.loads(done.stdout)["results"]:
        return [where + f"what is stored is not what is printed: {stored.stderr}"]
    finished = len(json.loads(done.stdout)["results"])
    return [] if 2 <= finished <= 5 else [where + f"{finished} strategies were kept"]


def deaths():
    with tempfile.TemporaryDirectory() as folder:
        return [text for how, said in DEATHS for text in death(folder, how, "run", said)]


def can_train(folder):
    return start(folder, ["run", *SMALL[:4], "--strategy", "baseline", "--no-db"]).returncode == 0


def main():
    ladder = Ladder()
    ladder.problems += deaths()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        trains = can_train(folder)
        for batch in ("4", "8"):
            start(folder, ["simulate", "--net", "lenet", "--batch", batch, "--db", "l.db"])
        for path in pathlib.Path(folder).iterdir():
            path.chmod(0o666 if path.is_file() else 0o777)
        least = least_memory(folder)
        for arguments in COMMANDS:
            if arguments[0] in TRAINING and not trains:
                continue
            for step in KIB_STEPS:
                ladder.climb(folder, arguments, kib=int(least * step))
            for processes in PROCESSES:
                try:
                    ladder.climb(folder, arguments, processes=processes)
                except (PermissionError, subprocess.SubprocessError) as reason:
                    print(f"limits of processes were not tried: {reason}")
                    break
    print(f"from {least} KiB on: {ladder.tried} tries, {ladder.refused} refused, {len(ladder.problems)} wrong")
    print("\n".join(ladder.problems))
    return 1 if ladder.problems or ladder.refused == 0 else 0


sys.exit(main())
