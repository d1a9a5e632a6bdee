#!/usr/bin/env python3
"""What is said about several GPUs does not contradict itself: random networks on random meshes, each asked of simulate, its
JSON, fit, advise, sweep, report and check.

    tests/cli/several_gpus.py        SN_SEED: the first question's seed; SN_ANSWERS: how many; SNSIM_BINARY: the program"""
import json
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

import one_answer  # noqa: E402
from one_answer import check_options, check_screen, expect, try_questions  # noqa: E402

DECODERS = ["llm:4,256,8,8,704,512", "llm:6,512,8,4,1408,2048", "llama:7b", "qwen2.5:0.5b", "megatron:layers=4,hidden=512,heads=8"]
NETS = [*DECODERS, "gpt2", "vit_b_16", "resnet50", "bert_base", "vgg16", "lenet"]
CLUSTERS = ["h100x8", "dgx_a100", "rtx4090x8", "h200x8"]
PRECISIONS = ["fp32", "bf16", "bf16", "bf16-master", "amp-bf16"]
OPTIMIZERS = ["momentum", "adam", "adamw", "adamw,impl=fused", "sgd"]
KEYS = {"fsdp": ["", "", "", "reshard=no", "keep-last=yes", "prefetch=2", "reduce=fp32", "sync=each"],
        "dp": ["", "", "view=yes", "bucket=1MiB", "zero=1", "zero=2"], "tp": ["", "", "loss=whole", "gathered=again", "sequence=whole"],
        "pp": ["", "", "schedule=gpipe", "schedule=zb-h1", "schedule=interleaved:2"]}
STRATEGIES = ["pytorch", "pytorch", "pytorch", "pytorch+recompute=units", "pytorch+offload"]


def run(*words):
    done = subprocess.run([one_answer.BINARY, *words], capture_output=True, text=True, check=False)
    expect(0 <= done.returncode <= 3, f"snsim {' '.join(words)}: exit status {done.returncode}: {done.stderr}")
    return done


def mesh(dice, net):
    """As `fsdp=4,dp=2`, of at most 64 GPUs. Decoders alone are divided by tp; most others have few blocks for pp."""
    axes, world = [], 1
    known = ["tp", "fsdp", "dp", "pp"] if net in DECODERS else ["fsdp", "dp", "fsdp", "dp", "pp"]
    for axis in dice.sample(known, dice.choice([1, 1, 1, 2, 2, 3])):
        size = dice.choice([2, 2, 4, 8] if axis in ("dp", "fsdp") else [2, 2, 4])
        if world * size > 64 or f"{axis}=" in ",".join(axes):
            continue
        world *= size
        axes.append(f"{axis}={size}")
        axes += [key for key in [dice.choice(KEYS[axis])] if key]
    return ",".join(axes)


def question(dice):
    net = dice.choice(NETS)
    words = {"--net": net, "--cluster": dice.choice(CLUSTERS), "--parallel": mesh(dice, net), "--precision": dice.choice(PRECISIONS),
             "--optimizer": dice.choice(OPTIMIZERS), "--batch": str(dice.choice([1, 1, 2, 3, 4, 8, 16, 32])), "--strategy": dice.choice(STRATEGIES)}
    if dice.random() < 0.4 or "pp=" in words["--parallel"]:
        words["--accumulate"] = str(dice.choice([2, 4, 8, 16]))
    return words


def typed(words, *without):
    return [word for key, value in words.items() if key not in without for word in (key, value)]


def ask(words, *more):
    done = run(*typed(words), *more, "--json", "--no-db")
    return json.loads(done.stdout) if done.returncode <= 1 else None


def only_row(made, strategy):
    return next(r for r in made["results"] if r["strategy"] == strategy)


def near(one, other, what):
    expect(abs(one - other) <= 1e-6 * max(abs(one), abs(other)), f"{what}: {one} and {other}")


def check_sums(words, made):
    """The parts of a number are the number."""
    answer, row = made["answer"], only_row(made, words["--strategy"])
    parts = ["parameters", "buffers", "gradients", "optimizer", "activations", "temporary"]
    live = row["live_at_peak"]
    expect(sum(live[p] for p in parts) == row["live_peak_bytes"], "live_at_peak is not live_peak_bytes")
    lives = [s["live_peak_bytes"] for s in made.get("stages", [row]) if s["strategy"] == words["--strategy"]]  # of the stage that needs the most
    expect(sum(w["bytes"] for w in answer["where"]) in lives, "where memory is is not live_peak_bytes")
    expect(answer["needed_bytes"] == row["least_device_bytes"], "needed_bytes is not least_device_bytes")
    expect(answer["margin_bytes"] == answer["usable_bytes"] - answer["needed_bytes"], "margin_bytes is no difference")
    expect(row["fits"] == (answer["needed_bytes"] <= answer["usable_bytes"]), "fits, needed_bytes and usable_bytes differ")
    expect(row["live_peak_bytes"] <= row["allocated_bytes"] <= row["reserved_bytes"], "more lives than is allocated, or reserved")
    expect(row["live_peak_bytes"] + row["context_bytes"] <= row["least_device_bytes"], "more lives than is needed")
    expect(row["exposed_ns"] <= row["iteration_ns"] and row["bubble_ns"] <= row["iteration_ns"], "more is exposed than an iteration takes")
    if "stages" not in made:  # there others' transfers are waited for, too
        expect(row["exposed_ns"] <= row["transfer_ns"], f"exposed {row['exposed_ns']} of {row['transfer_ns']}")
    expect(0 < row["mfu"] < 1.2, f"MFU {row['mfu']}")  # attention that is masked counts whole


def check_times(words, made):
    """Images a second, tokens a second, an iteration's time and an epoch's say one speed."""
    row = only_row(made, words["--strategy"])
    axes = dict(re.findall(r"\b(dp|fsdp)=(\d+)", made["parallel"]))
    ranks = int(axes.get("dp", 1)) * int(axes.get("fsdp", 1))
    images = made["batch"] * made["accumulate"] * ranks
    near(row["images_per_second"] * row["iteration_ns"] / 1e9, images, "images of an update")
    if "tokens_per_s" in row:
        near(row["tokens_per_s"], row["images_per_second"] * made["sequence"], "tokens/s")
    if row["fits"]:
        near(made["epoch"]["epoch_s"] * row["images_per_second"], 1e6, "samples of an epoch")


def check_stages(words, made):
    rows = [s for s in made.get("stages", []) if s["strategy"] == words["--strategy"]]
    if not rows:
        return
    row = only_row(made, words["--strategy"])
    expect(max(s["peak_device_bytes"] for s in rows) == row["peak_device_bytes"], "the fullest stage is not the result")
    expect(all(s["fits"] for s in rows) == row["fits"], "stages fit where the result does not")
    slowest = max(s["forward_ns"] + s["backward_ns"] + s["update_ns"] for s in rows)
    expect(slowest <= row["iteration_ns"] + 1000, f"a stage takes {slowest} ns, the iteration {row['iteration_ns']}")


def check_largest(words, answer):
    """The largest batch fits, one more does not."""
    largest = answer["largest_batch"]
    if largest is None:
        return
    for batch, fits in ((largest, True), (largest + 1, False)):
        if batch and batch < 2000:
            other = ask(words | {"--batch": str(batch)})
            expect(other, f"batch {batch} is refused, {largest} is the largest")
            row = only_row(other, words["--strategy"])
            expect(row["fits"] == fits, f"largest batch {largest}, and batch {batch} {'fits' if row['fits'] else 'does not fit'}")
    fit = json.loads(run("fit", "--max", "batch", *typed(words, "--batch"), "--json", "--no-db").stdout)
    expect(fit["results"][0]["answer"] == largest, f"fit --max batch: {fit['results'][0]['answer']}, simulate: {largest}")


def check_memory(words, answer):
    fit = json.loads(run("fit", "--min", "memory", *typed(words), "--json", "--no-db").stdout)
    expect(fit["results"][0]["answer"] == answer["needed_bytes"], f"fit --min memory: {fit['results'][0]['answer']}, simulate: {answer['needed_bytes']}")
    for less, fits in ((0, True), (2**21, False)):
        row = only_row(ask(words, "--memory", f"{answer['needed_bytes'] - less}B"), words["--strategy"])
        expect(row["fits"] == fits or less, f"with {less} bytes less than needed_bytes fits is {row['fits']}")


def check_sweep(words, made):
    lists = {"--net": "--nets", "--parallel": "--parallels", "--precision": "--precisions", "--optimizer": "--optimizers", "--batch": "--batches", "--accumulate": "--accumulates"}
    asked = typed({lists.get(key, key): value.replace(",impl", ":impl") if key == "--optimizer" else value for key, value in words.items()})
    done = run("sweep", *asked, "--jobs", "1", "--no-db", "--json")
    expect(done.returncode in (0, 1) and done.stdout, f"sweep: {done.stderr}")
    row, own = json.loads(done.stdout)["rows"][0], only_row(made, words["--strategy"])
    for field in ("fits", "least_device_bytes", "iteration_ns", "peak_device_bytes", "images_per_second", "exposed_ns"):
        if field in row:
            expect(row[field] == own[field], f"sweep: {field} is {row[field]}, simulate: {own[field]}")


def check_plans(words):
    done = run(*typed(words), "--plan", "plan.json", "--no-db")
    if done.returncode > 1:
        return
    files = sorted(f for f in os.listdir(".") if f.startswith("plan"))
    expect(files, "no plan is written")
    proved = run("check", *files)
    expect(proved.returncode == 0, f"check: {proved.stdout} {proved.stderr}")
    for f in files:
        os.remove(f)


def check_same(made, way, who):
    """`made`, asked as `way` says, is what `way` says."""
    row = only_row(made, way["strategy"])
    expect(row["fits"] == way["fits"], f"{who} {way['parallel']}: fits is {way['fits']}, asked directly {row['fits']}")
    if way["fits"]:
        for field in ("iteration_ns", "exposed_ns", "images_per_second", "tokens_per_s", "mfu"):
            if way.get(field) is not None and field in row:
                expect(row[field] == way[field], f"{who} {way['parallel']}: {field} {way[field]}, asked directly {row[field]}")
        expect(row["peak_device_bytes"] == way["device_bytes"], f"{who} {way['parallel']}: device_bytes {way['device_bytes']}, asked directly {row['peak_device_bytes']}")
    elif way.get("planned", True) and way.get("least_device_bytes"):
        expect(row["least_device_bytes"] == way["least_device_bytes"], f"{who} {way['parallel']}: another least memory")
    elif not way.get("planned", True):
        expect(way["needed_bytes"] <= row["least_device_bytes"], f"{who} {way['parallel']}: {way['needed_bytes']} is no bound of {row['least_device_bytes']}")


def check_ways(dice, words):
    """Two ways of `advise --gpus`, asked directly."""
    world = dice.choice([1, 2, 4, 8, 16])
    done = run("advise", "--gpus", str(world), *typed(words, "--parallel", "--strategy"), "--json")
    if done.returncode > 1:
        return
    ways = json.loads(done.stdout)["ways"]
    for way in [ways[0], *dice.sample(ways, min(2, len(ways)))]:
        direct = words | {"--parallel": way["parallel"], "--batch": str(way["batch"]), "--strategy": way["strategy"], "--accumulate": str(way["accumulate"])}
        made = ask({k: v for k, v in direct.items() if v}, "--samples", "1000000")
        expect(made, f"advise names what simulate refuses: {direct}")
        check_same(made, way, "advise")


def check_fewest(dice, words):
    """The fewest GPUs do, and what `fit --min gpus` says of each number is what is said of it."""
    scheme = dice.choice(["fsdp", "dp", "pp", "tp=2,fsdp"])
    done = run("fit", "--min", "gpus", *typed(words | {"--parallel": scheme}), "--nodes", "2", "--json")
    if done.returncode > 1:
        return
    fit = json.loads(done.stdout)
    fitting = [r["world"] for r in fit["results"] if r["fits"]]
    expect(fit["answer"] is None or fit["answer"] == min(fitting), f"fit --min gpus: {fit['answer']} of {fitting}")
    for row in dice.sample(fit["results"], min(3, len(fit["results"]))):
        if row.get("refused"):
            continue
        direct = words | {"--parallel": row["parallel"], "--strategy": row["strategy"]}
        if not row["parallel"]:
            continue
        made = ask(direct)
        expect(made, f"fit --min gpus names what simulate refuses: {direct}")
        check_same(made, row, "fit --min gpus")


def check(dice):
    words = question(dice)
    made = ask(words, "--samples", "1000000")
    if not made:
        return words, "refused"
    answer = made["answer"]
    screen = run(*typed(words), "--samples", "1000000")
    check_screen(answer, screen.stdout, "simulate") if answer["largest_batch"] is not None else None
    expect(screen.returncode == (1 if answer["verdict"] == "no" else 0), f"exit status {screen.returncode} of {answer['verdict']}")
    if "pp=" not in words["--parallel"]:
        one_answer.check_report(answer)
    check_sums(words, made)
    check_times(words, made)
    check_stages(words, made)
    check_largest(words, answer)
    check_memory(words, answer)
    check_sweep(words, made)
    check_plans(words)
    check_options(typed(words), answer)
    check_ways(dice, words)
    check_fewest(dice, words)
    return words, answer["verdict"]


if __name__ == "__main__":
    try_questions(20, check, lambda dice: typed(question(dice)))
