"""Ctrl-C ends every command at once, whatever it waits for or computes, and the status says so.

    SNSIM_BINARY=build/snsim python3 tests/limits/interrupt.py
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

BINARY = os.path.realpath(os.environ["SNSIM_BINARY"])
DEEP = "resnet:n3=100000"
PIPE = ["./pipe", "--batch", "4", "--db", "a.db"]  # nobody ever writes to it
COMMANDS = [[name, "--net", *PIPE] for name in ("simulate", "run", "validate", "calibrate")]
COMMANDS += [
    ["advise", "--net", "./pipe", "--batch", "4", "--no-db"],
    ["simulate", "--net", "lenet", "--batch", "4", "--no-db", "--gpu", "./pipe"],
    ["fit", "--max", "batch", "--net", "./pipe", "--no-db"],
    ["sweep", "--nets", "./pipe", "--batches", "4", "--gpus", "k40c", "--no-db"],
    ["simulate", "--net", DEEP, "--batch", "1", "--no-db"],
    ["fit", "--max", "depth", "--net", "resnet", "--batch", "1", "--memory", "4096TiB", "--no-db"],
    ["fit", "--min", "memory", "--net", DEEP, "--batch", "1", "--no-db"],
    ["advise", "--net", DEEP, "--batch", "1", "--no-db"],
]
# These train on until they are interrupted, also as a shell's background jobs, which begin with the signal ignored.
ENDLESS = ["--net", "lenet", "--batch", "4", "--iterations", "16777216", "--db", "a.db"]
TRAINING = [[name, *ENDLESS] for name in ("run", "validate", "calibrate")]
# A model in Python is recorded by another program, which Ctrl-C ends as well.
RECORDING = ["simulate", "--net", "./net.py:Net", "--input", "8", "--batch", "4", "--no-db"]
SOON = 20  # seconds: it takes milliseconds, on a machine that has nothing else to do


def has_begun(child):
    """Training has a process of its own."""
    try:
        return pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text() != ""
    except OSError:
        return True


def fault(folder, arguments, trains=False):
    start = signal.SIG_IGN if trains else signal.SIG_DFL
    child = subprocess.Popen([BINARY, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "HOME": folder, "SNSIM_PYTHON": "./python"}, start_new_session=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, start))
    time.sleep(0.5)
    for _ in range(10 * SOON):
        if child.poll() is not None or not trains or has_begun(child):
            break
        time.sleep(0.1)
    if child.poll() is not None:
        return f"ended before it was interrupted: {child.stderr.read()}"
    os.killpg(child.pid, signal.SIGINT)
    try:
        child.communicate(timeout=SOON)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return f"still there {SOON} s later"
    return None if child.returncode in (-signal.SIGINT, 128 + signal.SIGINT) else f"status {child.returncode}"


def can_train(folder):
    command = [BINARY, "run", "--net", "lenet", "--batch", "4", "--strategy", "liveness", "--no-db"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.mkfifo(os.path.join(folder, "pipe"))
        pathlib.Path(folder, "net.py").write_text("")
        python = pathlib.Path(folder, "python")
        python.write_text("#!/bin/sh\ntrap 'echo undone >&2; exit 130' INT\nwhile :; do sleep 0.1; done\n")
        python.chmod(0o755)
        training = TRAINING if can_train(folder) else []
        tried = [(arguments, fault(folder, arguments)) for arguments in [*COMMANDS, RECORDING]]
        tried += [(arguments, fault(folder, arguments, trains=True)) for arguments in training]
        problems = [f"{' '.join(arguments)}: {text}" for arguments, text in tried if text]
    print(f"{len(tried)} commands, {len(problems)} wrong", *problems, sep="\n")
    return 1 if problems else 0


sys.exit(main())
