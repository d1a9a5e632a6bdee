#!/usr/bin/env python3
"""200 random questions, each asked of every command that can answer it: the table, its JSON, fit --min memory, sweep,
the message where nothing fits and the page of report must not contradict each other.

    tests/cli/agree.py            SN_SEED: the first question's seed; SN_AGREE: how many; SNSIM_BINARY: the program
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from cases import case_count  # noqa: E402

BINARY = os.path.realpath(os.environ.get("SNSIM_BINARY", "build/snsim"))
NETS = ["lenet", "alexnet", "vgg16", "resnet:n1=1,n2=1,n3=2,n4=1", "zfnet", "squeezenet"]
STRATEGIES = ["baseline", "liveness", "liveness+offload", "liveness+cache", "liveness+recompute=speed",
              "liveness+offload+recompute=memory", "superneurons", "vdnn-all", "tensorflow", "caffe"]
UNITS = {"bytes": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def ask(*words):
    done = subprocess.run([BINARY, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise AssertionError(f"{' '.join(words)}: {done.stderr}")
    return done


def shown(text, what):
    """The bytes of "1.83 GiB", and by how much they may be rounded."""
    found = re.search(r"([0-9.]+) (\w+)", text)
    assert found, f"no amount in {what}: {text}"
    digits = len(found[1].split(".")[1]) if "." in found[1] else 0
    unit = UNITS[found[2]]
    return float(found[1]) * unit, 0.5 * 10**-digits * unit + 1


def near(text, value, what):
    amount, rounding = shown(text, what)
    assert abs(amount - value) <= rounding, f"{what} says {text}, not {value} bytes"


def question(dice, known):
    """The words of a question, and those that a sweep takes for its point; memory around what is needed."""
    net, batch = dice.choice(known), dice.choice([1, 2, 5, 8, 16, 33, 64, 100])
    strategies = dice.sample(STRATEGIES, dice.choice([1, 2, 2, 4]))
    words = ["--net", net, "--batch", str(batch), "--workspace", dice.choice(["none", "dynamic", "dynamic", "max"])]
    for strategy in strategies:
        words += ["--strategy", strategy]
    return words, batch


def check_advice(words, stderr, page):
    said = re.search(r"does not fit: (.*)", stderr)[1]
    assert json.loads(re.search(r'"remedy":("(?:[^"\\]|\\.)*")', page)[1]) == said, "report and message differ"
    plain = [w for i, w in enumerate(words) if "--strategy" not in (w, words[i - 1])]
    other = re.search(r"--strategy (\S+)", said)
    batch = re.search(r"--batch (\d+)$", said)
    leanest = re.search(r"needed with (\S+),", said)[1]
    if other:
        assert ask(*plain, "--strategy", other[1], "--no-db").returncode == 0, f"{other[1]} does not fit"
    if batch:
        at = plain.index("--batch") + 1
        for more, fits in ((0, 0), (1, 1)):
            plain[at] = str(int(batch[1]) + more)
            code = ask(*plain, "--strategy", leanest, "--no-db").returncode
            assert code == fits, f"batch {plain[at]} with {leanest}: exit status {code}"
    return said


def check(dice, known):
    words, _ = question(dice, known)
    fit = json.loads(ask("fit", "--min", "memory", *words, "--json").stdout)
    least = {r["strategy"]: r["answer"] for r in fit["results"]}
    edge = dice.choice(list(least.values()))
    memory = max(edge + dice.choice([0, -1024, 1024, dice.randrange(-edge // 3, edge)]), 400 * 2**20)
    words += ["--memory", f"{memory}B"]
    table = ask(*words)
    run = json.loads(ask(*words, "--json", "--no-db").stdout)
    page = ask("report", "last", "-o", "-").stdout
    data = {r["strategy"]: r for r in json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.S)[1])
            ["results"]}
    for r in run["results"]:
        name = r["strategy"]
        assert r["least_device_bytes"] == least[name] == data[name]["least"], f"{name}: least memory"
        assert r["fits"] == (memory >= least[name]) == data[name]["fits"], f"{name}: fits"
        assert re.search(rf"^{re.escape(name)} +{'yes' if r['fits'] else 'no'} ", table.stdout, re.M), f"{name}: table"
    if len(least) > 1:
        line = re.search(r"^needs the least: (\S+).*, (.*)$", table.stdout, re.M)
        near(line[2], min(least.values()), "the table")
        assert least[line[1]] == min(least.values()), f"{line[1]} does not need the least"
    if not any(r["fits"] for r in run["results"]):
        near(check_advice(words, table.stderr, page), min(least.values()), "the message")
    else:
        assert '"remedy"' not in page and "does not fit:" not in table.stderr
    return words, least


def check_sweep(words, least):
    """A sweep has no --memory: least memory of the same point on the GPU as it is."""
    at = {words[i]: words[i + 1] for i in range(0, len(words), 2)}
    more = [w for i in range(0, len(words), 2) if words[i] == "--strategy" for w in words[i:i + 2]]
    rows = json.loads(ask("sweep", "--nets", at["--net"], "--batches", at["--batch"], "--workspaces",
                          at["--workspace"], "--jobs", "1", "--no-db", "--json", *more).stdout)["rows"]
    for row in rows:
        assert row["least_device_bytes"] == least[row["strategy"]], f"sweep, {row['strategy']}: least memory"
        assert row["fits"] == (row["memory_bytes"] >= row["least_device_bytes"]), f"sweep, {row['strategy']}: fits"


def main():
    first, count = int(os.environ.get("SN_SEED", "1")), int(os.environ.get("SN_AGREE", case_count(200)))
    print(f"SN_SEED={first}")
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, LC_ALL="C.UTF-8", NO_COLOR="1")
        os.environ.pop("XDG_DATA_HOME", None)
        names = ask("list", "nets").stdout
        known = [n for n in NETS if ":" in n or re.search(rf"^{n}\b", names, re.M)]
        for seed in range(first, first + count):
            try:
                check_sweep(*check(random.Random(seed), known))
            except AssertionError as wrong:
                print(f"SN_SEED={seed} SN_AGREE=1: {wrong}")
                return 1
    print(f"{count} questions, no contradiction")
    return 0


if __name__ == "__main__":
    sys.exit(main())
