"""Writes the tables of docs/frameworks.md: one network in five systems, tensors, what is saved for backward, and the peak.

    python3 bench/frameworks.py                                  the six networks
    python3 bench/frameworks.py --net tv_resnet50 --batch 16     another one

Asks `snsim --explain --json` for the tensors of the peak and `snsim graph --json` for what is saved. Gradients of parameters
are left out everywhere: only PyTorch has them among its tensors. Exit codes: 2 where snsim cannot be asked.
"""
import argparse
import collections
import json
import os
import subprocess
import sys

MIB = 1 << 20
# The strategy, whose graph it plans, and in which order that is listed.
SYSTEMS = (("SuperNeurons, liveness", "liveness", "superneurons", "route"),
           ("SuperNeurons, all of it", "superneurons", "superneurons", "route"),
           ("Torch7", "torch7", "superneurons", "route"),
           ("MXNet 1.2.1", "explicit", "explicit", "post"),
           ("PyTorch 2", "pytorch", "pytorch", "route"))
NETWORKS = (("alexnet", 200), ("vgg16", 32), ("resnet50", 32), ("inception_bn", 32), ("inception_v4", 32),
            ("densenet121", 32))


def fail(text):
    print(f"frameworks.py: error: {text}", file=sys.stderr)
    sys.exit(2)


def ask(program, *arguments):
    try:
        done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    except OSError as error:
        fail(f"{program}: {error.strerror}; build snsim, or name it with --snsim")
    if done.returncode > 1:
        fail(done.stderr.strip())
    return json.loads(done.stdout)


def look(program, net, batch):
    """Of each system: tensors, saved bytes, the tensors of its peak; and what operator each layer is."""
    question = ("--net", net, "--batch", str(batch))
    run = ask(program, *question, "--gpu", "v100_32", "--strategy", ",".join(s[1] for s in SYSTEMS), "--costs", "model",
              "--no-db", "--explain")
    found = []
    for (_, _, dialect, order), result in zip(SYSTEMS, run["results"], strict=True):
        graph = ask(program, "graph", *question, "--dialect", dialect, "--order", order)
        parameters = {t["name"] for t in graph["tensors"] if t["role"] == "parameter gradient"}
        found.append((result["tensor_count"] - len(parameters),
                      sum(t["bytes"] for t in graph["tensors"] if t["role"] == "saved"),
                      [t for t in result["peak"] if t["tensor"] not in parameters]))
    ops = {layer["name"]: " ".join((layer["mode"], "POOL") if layer["op"] == "POOL" else (layer["op"],))
           for layer in graph["network"]["layers"]}
    return found, ops


def row(first, second, words):
    print(f"| {first} | {second} | " + " | ".join(words) + " |")


def mib(count):
    return f"{count / MIB:,.1f}"


def print_peaks(net, batch, found):
    row(f"{net}, {batch}", "tensors", [f"{tensors:,}" for tensors, _, _ in found])
    row("", "saved, MiB", [mib(saved) for _, saved, _ in found])
    row("", "peak, MiB", [f"**{mib(sum(t['bytes'] for t in peak))}**" for _, _, peak in found])


def print_ledger(found, ops):
    """The peak by operator: outputs, what is saved, and all gradients together."""
    sums = [collections.Counter() for _ in found]
    for counter, (_, _, peak) in zip(sums, found):
        for tensor in peak:
            layer, _, kind = tensor["tensor"].rpartition(".")
            op = ops.get(layer, "FORK")
            what = "gradients" if kind[0] == "d" else f"saved by {op}" if kind.startswith("saved") else op
            counter[what] += tensor["bytes"]
    for what in sorted(set().union(*sums), key=lambda w: (-max(counter[w] for counter in sums), w)):
        print(f"| {what} | " + " | ".join(mib(counter[what]) for counter in sums) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", help="instead of the six")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--ledger", action="store_true", help="what the peak consists of, by operator")
    parser.add_argument("--snsim", default=os.path.join(os.path.dirname(__file__), "..", "build", "snsim"))
    options = parser.parse_args()
    names = " | ".join(system[0] for system in SYSTEMS)
    print(f"| | {names} |" if options.ledger else f"| network, batch | | {names} |")
    print("|---|" + ("" if options.ledger else "---|") + "---:|" * len(SYSTEMS))
    for net, batch in [(options.net, options.batch)] if options.net else NETWORKS:
        found, ops = look(options.snsim, net, batch)
        print_ledger(found, ops) if options.ledger else print_peaks(net, batch, found)


if __name__ == "__main__":
    main()
