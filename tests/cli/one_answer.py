#!/usr/bin/env python3
"""One question, one answer: random questions, each asked of simulate, its JSON, fit, advise, sweep, report and plot, which
must give one verdict, one largest batch and one first change; its calls name modules that the model has.

    tests/cli/one_answer.py        SN_SEED: the first question's seed; SN_ANSWERS: how many; SNSIM_BINARY: the program

The modules are those of named_modules() of torchvision's and transformers' models, recorded in tests/data/modules/."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from cases import case_count  # noqa: E402

BINARY = os.path.realpath(os.environ.get("SNSIM_BINARY", "build/snsim"))
MODULES = pathlib.Path(__file__).resolve().parent.parent / "data" / "modules"
NETS = ["resnet18", "resnet50", "vgg16", "densenet121", "alexnet", "tv_mobilenet_v2", "tv_squeezenet1_1", "inception_v3",
        "resnext50_32x4d", "efficientnet_b0", "mobilenet_v3_small", "mobilenet_v3_large", "convnext_tiny", "swin_t",
        "vit_b_16", "bert_base", "gpt2", "paper:alexnet", "inception_v4", "lenet", "unet", "t5_base", "gpt2_large", "qwen2.5:1.5b", "llama3:1b", "phi3:mini", "gemma2:2b", "mixtral:layers=2"]
GPUS = ["4090", "rtx3090", "t4", "a100", "k40c", "v100-32gb", "gtx1060_6", "l4", "RTX 2080 Ti", "a10g"]
PRECISIONS = ["fp32", "tf32-conv", "amp-bf16", "amp-fp16", "bf16", "fp16"]
OPTIMIZERS = ["momentum", "sgd", "adam", "adamw", "adamw8bit", "rmsprop", "lion", "adamw,impl=fused"]
GIB = 2**30


class Wrong(Exception):
    """Two commands contradict each other."""


def run(*words):
    done = subprocess.run([BINARY, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2):
        raise Wrong(f"snsim {' '.join(words)}: exit status {done.returncode}: {done.stderr}")
    return done


def expect(true, words):
    if not true:
        raise Wrong(words)


def question(dice):
    batch = max(1, int(2 ** dice.uniform(0, 11)))
    return (["--net", dice.choice(NETS), "--gpu", dice.choice(GPUS), "--precision", dice.choice(PRECISIONS), "--optimizer",
             dice.choice(OPTIMIZERS)], batch)


def head(text):
    """Verdict, largest batch (None: not one) and first change of a screen."""
    verdict = re.search(r"^  (YES|NO|TIGHT): (.*)$", text, re.M)
    expect(verdict, f"no verdict in: {text[:200]}")
    largest = re.search(r"Largest batch: (\d+)[.,]", verdict[2])
    first = re.search(r"what to change .*\n((?:  .*\n)*?)  (.*?)  +[0-9.]+ GiB .*<- do this", text)  # several in rows of their own
    what = " ".join([*first[1].split(), first[2].strip()]) if first else None
    return verdict[1].lower(), int(largest[1]) if largest else 0, what


def check_screen(answer, text, who):
    verdict, largest, first = head(text)
    expect(verdict == answer["verdict"], f"{who}: {verdict}, JSON: {answer['verdict']}")
    expect(largest == answer["largest_batch"], f"{who}: largest batch {largest}, JSON: {answer['largest_batch']}")
    wanted = answer["changes"][0]["what"] if answer["changes"] and answer["verdict"] != "yes" else None
    expect(first == wanted, f"{who}: first change {first}, JSON: {wanted}")


def check_fit(words, answer):
    fit = json.loads(run("fit", "--max", "batch", *words, "--json").stdout)
    rows = {r["strategy"]: r["answer"] for r in fit["results"]}
    expect(rows["pytorch"] == answer["largest_batch"], f"fit: {rows['pytorch']}, simulate: {answer['largest_batch']}")
    expect(fit["answer"]["largest_batch"] == answer["largest_batch"], "fit's answer has another largest batch")


def check_sweep(words, batch, answer):
    at = dict(zip(words[::2], words[1::2], strict=True))
    optimizer = at["--optimizer"].replace(",impl", ":impl")
    done = run("sweep", "--nets", at["--net"], "--gpus", at["--gpu"], "--precisions", at["--precision"], "--optimizers", optimizer,
               "--batches", str(batch), "--jobs", "1", "--no-db", "--json")
    row = next(r for r in json.loads(done.stdout)["rows"] if r["strategy"] == "pytorch")
    expect(row["fits"] == (answer["verdict"] != "no"), f"sweep: fits is {row['fits']}, simulate: {answer['verdict']}")
    expect(row["least_device_bytes"] == answer["needed_bytes"], "sweep: another least memory")


def check_report(answer):
    page = run("report", "last", "-o", "-").stdout
    data = json.loads(re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.S)[1])
    expect(data["answer"] == answer, "report: another answer")
    shown = [r for r in data["results"] if r["strategy"] == answer["strategy"]]
    expect(len(shown) == 1 and shown[0]["fits"] == (answer["verdict"] != "no"), "report: its row does not agree")


def check_plot(answer):
    done = run("plot", "last", "--for", "pytorch", "--kind", "device", "-o", "device.png")
    expect(done.returncode == 0, f"plot: {done.stderr}")
    expect(answer["runtime"] == "pytorch", "the answer is of another runtime")


def parts(name):
    """"0..11" stands for twelve."""
    span = re.fullmatch(r"(\d+)\.\.(\d+)", name)
    return [str(i) for i in range(int(span[1]), int(span[2]) + 1)] if span else [name]


def known_modules(net):
    """The paths of all modules, of a line each that is indented by a blank a level; of a family's size, the family's."""
    net = net.split(":")[0]
    path = next((p for p in (MODULES / f"{net}.txt", MODULES / f"tv_{net}.txt") if p.exists()), None)
    if not path:
        return None
    known, above = set(), []
    for line in path.read_text().splitlines():
        level = len(line) - len(line.lstrip())
        before = above[level - 1] if level else [""]
        here = [f"{b}.{name}".lstrip(".") for b in before for name in parts(line.strip())]
        above[level:] = [here]
        known.update(here)
    return known


def check_calls(net, answer):
    modules = known_modules(net)
    for change in answer["changes"]:
        for line in change["calls"]:
            for path in re.findall(r"\bmodel\.([A-Za-z_][\w.]*(?:\[\d+\])?)", line):
                if path.startswith(("gradient_checkpointing_enable", "parameters", "to", "half", "bfloat16")) or modules is None:
                    continue
                plain = re.sub(r"\[(\d+)\]", r".\1", path).removesuffix(".children")
                expect(plain in modules, f"{net} has no module {path}: {line}")


def check_options(asked, answer):
    """What the first change's options ask for fits, and takes what the change says."""
    first = answer["changes"][0] if answer["changes"] else None
    if not first or not first["options"]:
        return
    options = first["options"].split()
    at = dict(zip(asked[::2], asked[1::2], strict=True)) | dict(zip(options[::2], options[1::2], strict=True))
    done = run(*(word for pair in at.items() for word in pair), "--no-db", "--json", "--for", "pytorch")
    expect(done.returncode == 0, f"{first['options']}: exit status {done.returncode}: {done.stderr}")
    strategy = at.get("--strategy", "pytorch")
    row = next(r for r in json.loads(done.stdout)["results"] if r["strategy"] == strategy)
    expect(row["peak_device_bytes"] == first["device_bytes"], f"{first['options']}: takes {row['peak_device_bytes']}, the change says {first['device_bytes']}")


def check(dice):
    words, batch = question(dice)
    asked = [*words, "--batch", str(batch)]
    first = run(*asked, "--no-db", "--json", "--for", "pytorch")
    if first.returncode == 2:  # what no GPU, network or precision has is refused by all
        expect(run("advise", *asked).returncode == 2, f"refused by simulate alone: {first.stderr}")
        return asked, "refused"
    answer = json.loads(first.stdout)["answer"]
    screen = run(*asked)
    check_screen(answer, screen.stdout, "simulate")
    expect(screen.returncode == (1 if answer["verdict"] == "no" else 0), f"exit status {screen.returncode} of {answer['verdict']}")
    advise = run("advise", *asked)
    check_screen(answer, advise.stdout, "advise")
    expect(json.loads(run("advise", *asked, "--json").stdout)["answer"] == answer, "advise --json has another answer")
    check_report(answer)
    check_plot(answer)
    check_fit(words, answer)
    check_sweep(words, batch, answer)
    check_calls(words[1], answer)
    check_options(asked, answer)
    return asked, answer["verdict"]


def try_questions(own, check, said):
    """`check` takes dice and returns what it asked and the verdict; `said` is what was typed for the question of some dice."""
    first, count = int(os.environ.get("SN_SEED", "1")), int(os.environ.get("SN_ANSWERS", case_count(own)))
    print(f"SN_SEED={first}")
    wrong, verdicts = 0, {}
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, LC_ALL="C.UTF-8", NO_COLOR="1")
        os.environ.pop("XDG_DATA_HOME", None)
        os.chdir(home)
        for seed in range(first, first + count):
            try:
                _, verdict = check(random.Random(seed))
                verdicts[verdict] = verdicts.get(verdict, 0) + 1
            except Wrong as error:
                wrong += 1
                print(f"seed {seed}: snsim {' '.join(said(random.Random(seed)))}\n    {error}", flush=True)
    told = ", ".join(f"{n} {v}" for v, n in sorted(verdicts.items()))
    print(f"{count} questions ({told}), {'no contradictions' if not wrong else f'{wrong} contradict themselves'}")
    sys.exit(wrong > 0)


def typed_of(dice):
    words, batch = question(dice)
    return [*words, "--batch", str(batch)]


if __name__ == "__main__":
    try_questions(12, check, typed_of)
