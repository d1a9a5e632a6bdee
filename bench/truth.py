#!/usr/bin/env python3
"""Predicted against measured, source by source: the tables of docs/truth.md and the bands that the screen tells
(sim/capacity/bands.c).

    python3 bench/truth.py [--times FOLDER]     SNSIM_BINARY: the program, build/snsim unless set

Live bytes are PyTorch's as the tables of docs/pytorch.md have them, which its commands make anew with PyTorch. Images per
second and batches are those that timm publishes: FOLDER has its tables train-rtx3090-amp-nchw.csv,
infer-rtx3090-amp-nchw.csv and infer-rtx4090-amp-nchw.csv; networks that snsim does not know by name are passed over. What is said
of a card left out, whose rows no constant was fitted to, needs numpy: a factor for each group of operators is fitted to one card's
rows of inference and judges the other's."""
import argparse
import csv
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("SNSIM_BINARY", str(ROOT / "build" / "snsim"))
SAME = {  # timm's name: ours
    "mobilenetv2_100": "tv_mobilenet_v2", "mobilenetv3_small_100": "mobilenet_v3_small",
    "mobilenetv3_large_100": "mobilenet_v3_large", "vit_base_patch16_224": "vit_b_16",
    "vit_large_patch16_224": "vit_l_16", "deit_base_patch16_224": "vit_b_16", "deit3_base_patch16_224": None,
    "swin_tiny_patch4_window7_224": "swin_t", "swin_small_patch4_window7_224": "swin_s",
    "swin_base_patch4_window7_224": "swin_b", "inception_v4": "inception_v4",
    "densenet169": "densenet169", "densenet201": "densenet201", "resnet34": "resnet34",
}
for NAME in ("resnet18", "resnet50", "resnet101", "resnet152", "vgg16", "vgg19", "densenet121", "inception_v3"):
    SAME[NAME] = f"tv_{NAME}"
for NAME in ("resnext50_32x4d", "resnext101_32x8d", "wide_resnet50_2", "wide_resnet101_2", "convnext_tiny",
             "convnext_small", "convnext_base", "convnext_large", *(f"efficientnet_b{i}" for i in range(8))):
    SAME[NAME] = NAME


def ask(*words):
    done = subprocess.run([BINARY, *words, "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"snsim {' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


GROUPS = {"CONV": "convolutions", "DECONV": "convolutions", "FC": "products", "MATMUL": "products", "ATTENTION": "products",
          "BN": "norms", "LAYER_NORM": "norms", "GROUP_NORM": "norms", "RMS_NORM": "norms", "SOFTMAX": "norms"}


def by_group(run):
    """Seconds of an iteration by group of its operators; what the device waits for the host is a group, too."""
    sums = {"host": run["iteration_ns"] / 1e9}
    for step in run["steps_table"]:
        seconds, group = (step["end_ns"] - step["begin_ns"]) / 1e9, GROUPS.get(step["op"], "other memory")
        sums[group] = sums.get(group, 0) + seconds
        sums["host"] -= seconds
    return sums


def carried(one, other):
    """Errors of the other card's speeds, by factors fitted to one's; each is rows, and their seconds by group."""
    import numpy
    from timing import fitting, rows
    made = [fitting.table([rows.Row("", name, False, "", batch, 0, theirs, 0) for name, batch, theirs, _ in times], sums) for times, sums in (one, other)]
    factors = fitting.fitted(made[0], numpy.ones(len(one[0]), bool))
    return [1 / (1 + error) - 1 for error in fitting.judged(*made, factors)]


def spread(errors):
    """The median and what nine of ten are within, in percent; the latter by the nearest rank."""
    ordered = sorted(abs(e) for e in errors)
    return 100 * statistics.median(ordered), 100 * ordered[max(0, -(-9 * len(ordered) // 10) - 1)], 100 * ordered[-1]


def number(text):
    return int(text.replace(",", ""))


def cells(line):
    return [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def by_optimizer(row):
    """network | batch | sgd | momentum | adam | differences: ours are asked for, PyTorch's are the row's and its differences."""
    for name, bytes_, more in zip(("sgd", "momentum", "adam"), row[2:5], row[5].split(","), strict=True):
        run = ask("--net", row[0], "--batch", row[1], "--optimizer", name, "--strategy", "pytorch", "--gpu", "h200", "--no-db")
        yield run["results"][0]["live_peak_bytes"] / (number(bytes_) + int(more)) - 1


def memory():
    """Errors of live bytes by table of docs/pytorch.md."""
    kind, found = "", {}
    for line in (ROOT / "docs" / "pytorch.md").read_text().split("## Against PyTorch itself")[1].splitlines():
        if line.startswith("| network |"):
            kind = line
        if not line.startswith("|") or "---" in line or line == kind:
            continue
        row = cells(line)
        if "| sgd |" in kind:
            found.setdefault("fp32, three optimizers", []).extend(by_optimizer(row))
        elif "| snsim | PyTorch | |" in kind:
            table = "precisions" if "precision" in kind else "frozen layers" if "frozen" in kind else \
                "adapters" if "adapters" in kind else "transformers, U-Nets"
            found.setdefault(table, []).append(number(row[-3]) / number(row[-2]) - 1)
        elif "torchvision's modules" in kind:
            found.setdefault("inference, layers in one function", []).append(number(row[1]) / (number(row[1]) + int(row[2])) - 1)
    return found


def known(folder, name):
    with open(pathlib.Path(folder) / f"{name}.csv", newline="") as file:
        return [r for r in csv.DictReader(file) if SAME.get(r["model"])]


def image(row, key):
    """Of networks whose own size is another."""
    return ["--image", row[key]]


def in_parts(net, folder):
    """A network with its attention in parts, as PyTorch 1.12 did it, of which the rows of training are; others as they are."""
    text = subprocess.run([BINARY, "show-net", "--net", net, "--json"], capture_output=True, text=True, check=True).stdout
    if '"parts":false' not in text:
        return net
    path = pathlib.Path(folder) / f"{net}.json"
    path.write_text(text.replace('"parts":false', '"parts":true'))
    return str(path)


def next_batch(batch):
    """The step above in timm's search: 512, 384, 256, 192, 128, .."""
    power = 1 << (batch.bit_length() - 1)
    return power * 3 // 2 if batch == power else power * 2


def train(folder):
    rows, times, batches = known(folder, "train-rtx3090-amp-nchw"), [], []
    for r in rows:
        batch = int(float(r["train_batch_size"]))
        question = ["--net", SAME[r["model"]], *image(r, "train_img_size"), "--gpu", "rtx3090", "--precision", "amp-fp16"]
        with tempfile.TemporaryDirectory() as made:
            then = ["--net", in_parts(SAME[r["model"]], made), *question[2:]]
            run = ask(*then, "--batch", str(batch), "--strategy", "pytorch", "--memory", "1TiB", "--no-db")["results"][0]
        times.append((r["model"], batch, float(r["train_samples_per_sec"]), run["images_per_second"]))
        largest = [ask("fit", "--max", "batch", *question, "--modules", m, "--strategy", "pytorch")["results"][0]["answer"]
                   for m in ("lazy", "eager")]
        batches.append((r["model"], batch, next_batch(batch), *largest))
    return times, batches


def infer(folder, gpu):
    times, sums = [], []
    for r in known(folder, f"infer-{gpu}-amp-nchw"):
        batch = int(float(r["infer_batch_size"]))
        run = ask("--net", SAME[r["model"]], *image(r, "infer_img_size"), "--gpu", gpu, "--precision", "amp-fp16",
                  "--inference", "--batch", str(batch), "--strategy", "pytorch", "--memory", "1TiB", "--no-db", "--steps")["results"][0]
        times.append((r["model"], batch, float(r["infer_samples_per_sec"]), run["images_per_second"]))
        sums.append(by_group(run))
    return times, sums


def print_memory():
    print("## Live bytes\n\n| table of docs/pytorch.md | totals | equal | median | nine of ten | worst |\n|---|---:|---:|---:|---:|---:|")
    tables = memory()
    everything = [e for errors in tables.values() for e in errors]
    for name, errors in [*tables.items(), ("**all**", everything)]:
        middle, nine, worst = spread(errors)
        print(f"| {name} | {len(errors)} | {sum(e == 0 for e in errors)} | {middle:.5f} % | {nine:.5f} % | {worst:.5f} % |")


def print_times(title, times):
    errors = [ours / theirs - 1 for _, _, theirs, ours in times]
    middle, nine, worst = spread(errors)
    print(f"\n## {title}\n\n| network | batch | measured | predicted | error |\n|---|---:|---:|---:|---:|")
    for (name, batch, theirs, ours), error in zip(times, errors, strict=True):
        print(f"| {name} | {batch} | {theirs:.0f} | {ours:.0f} | {100 * error:+.0f} % |")
    print(f"\n{len(errors)} rows: median {middle:.1f} %, nine of ten within {nine:.1f} %, worst {worst:.1f} %")


def print_carried(cards):
    print("\n## A card left out\n\n| fitted to | judged | rows | median | nine of ten |\n|---|---|---:|---:|---:|")
    for one, other in (tuple(cards), tuple(cards)[::-1]):
        errors = carried(cards[one], cards[other])
        middle, nine, _ = spread(errors)
        print(f"| {one} | {other} | {len(errors)} | {middle:.1f} % | {nine:.1f} % |")


def print_batches(batches):
    print("\n## Largest batch, RTX 3090, autocast to fp16\n")
    print("| network | trained | did not | largest | `--modules eager` | between |\n|---|---:|---:|---:|---:|---|")
    right = [0, 0]
    for name, batch, above, *largest in batches:
        between = [batch <= value < above for value in largest]
        right = [n + b for n, b in zip(right, between, strict=True)]
        said = {(True, True): "yes", (False, True): "eager", (True, False): "lazy", (False, False): "no"}[tuple(between)]
        print(f"| {name} | {batch} | {above} | {largest[0]} | {largest[1]} | {said} |")
    print(f"\n{len(batches)} networks: between what trained and what did not {right[1]} with `--modules eager`, {right[0]} without")


def main():
    words = argparse.ArgumentParser(description="Predicted against measured, as docs/truth.md has it.")
    words.add_argument("--times", metavar="FOLDER", help="timm's tables of images per second")
    folder = words.parse_args().times
    print_memory()
    if folder:
        times, batches = train(folder)
        print_batches(batches)
        print_times("Training, RTX 3090, autocast to fp16, images/s", times)
        cards = {gpu: infer(folder, gpu) for gpu in ("rtx3090", "rtx4090")}
        for gpu, (times, _) in cards.items():
            print_times(f"Inference, {gpu[:3].upper()} {gpu[3:]}, autocast to fp16, images/s", times)
        print_carried(cards)


if __name__ == "__main__":
    main()
