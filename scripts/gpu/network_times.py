"""The part `times` of scripts/validate-gpu: networks of timm as PyTorch trains them today (bench/timing/pytorch_kinds.py), beside what is
predicted from their recordings, in all and by kind of kernel. Recordings are made ahead of measuring, by all processors, and kept
where bench/times.py keeps them; the tables that are left are read by it as timm's are."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "bench"))

from timing import predicted  # noqa: E402
from timing.recordings import Recordings, default_folder  # noqa: E402
from timing.rows import Row  # noqa: E402

NETWORKS = [(net, batch, size, "bf16") for net, batch, size in (
    ("resnet50", 256, 224), ("vgg16_bn", 128, 224), ("densenet121", 256, 224), ("inception_v3", 256, 299), ("resnext50_32x4d", 256, 224),
    ("dm_nfnet_f0", 128, 192), ("efficientnet_b0", 256, 224), ("mobilenetv3_large_100", 512, 224), ("regnety_032", 256, 224),
    ("convnext_tiny", 256, 224), ("vit_base_patch16_224", 256, 224), ("deit3_small_patch16_224", 256, 224),
    ("swin_tiny_patch4_window7_224", 256, 224), ("volo_d1_224", 128, 224), ("mixer_b16_224", 256, 224), ("resmlp_12_224", 256, 224))]
NETWORKS += [("resnet50", 256, 224, "fp32"), ("vit_base_patch16_224", 128, 224, "fp32")]
RECORDING_SECONDS, NETWORK_SECONDS = 150, 90
IS_THERE = ("import importlib.util, sys; missing = [n for n in ('torch', 'timm') if not importlib.util.find_spec(n)]; "
            "sys.exit('this Python has no ' + ' and no '.join(missing) if missing else 0)")
COLUMNS = ("model", "train_samples_per_sec", "train_step_time", "train_batch_size", "train_img_size", "param_count")


def row_of(job, profile, answer=None):
    """As a table of timm has it; of what was measured nothing yet without an answer."""
    net, batch, size, form = job
    speed, parameters = (answer["images_per_second"], answer["parameters"] / 1e6) if answer else (0.0, 0.0)
    return Row("", net, True, profile or "", batch, size, speed, parameters, form)


def recorded(bench, jobs):
    recordings = Recordings(default_folder())
    recordings.make([row_of(job, bench.profile) for job in jobs], os.cpu_count() or 1, bench.options.python, RECORDING_SECONDS)
    return recordings


def answers(bench, jobs, device="cuda"):
    """Of each job what was measured, as it comes. Where the process ends, the job that it was at has failed, and another goes on."""
    script = bench.options.root / "bench" / "timing" / "pytorch_kinds.py"
    while jobs:
        since = time.monotonic()
        words = [bench.options.python, script, "--json", "--device", device, *(":".join(map(str, job)) for job in jobs)]
        with tempfile.TemporaryFile("w+") as said, subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said, text=True) as process:
            try:
                for line in lines_of(process):
                    jobs, since = jobs[1:], time.monotonic()
                    yield json.loads(line)
            finally:
                process.kill()
            process.wait()
            said.seek(0)
            last = said.read().strip().splitlines()[-1:] or ["its process ended"]
        if jobs:
            jobs = jobs[1:]
            yield {"failed": f"given up after {NETWORK_SECONDS} s" if time.monotonic() - since >= NETWORK_SECONDS else last[0]}


def lines_of(process):
    """What it prints, each line in its time."""
    while True:
        timer = threading.Timer(NETWORK_SECONDS, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if not line:
            return
        yield line


def beside(bench, recordings, job, answer):
    """What was measured with what is predicted, or why nothing is."""
    row = row_of(job, bench.profile, answer)
    if not bench.profile:
        return answer | {"refused": "no known GPU is called like this one"}
    if not recordings.has(row):
        return answer | {"refused": recordings.failed(row) or "it was not recorded"}
    try:
        found = predicted.of_row(bench.program, recordings.path(row), row)
    except predicted.Refused as refused:
        return answer | {"refused": str(refused)}
    kinds = {kind: s._asdict() for kind, s in sorted(found.sums.items(), key=lambda item: -item[1].ms)}
    return answer | {"predicted": {"iteration_ms": found.ms, "kinds": kinds}}


def write_operators(folder, job, operators):
    """What the sums of kinds are made of, the longest first."""
    (folder / "operators").mkdir(exist_ok=True)
    with open(folder / "operators" / f"{job[0]}.{job[3]}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("kind", "operator", "sizes", "kernels", "ms"), *operators])


def write_tables(folder, rows):
    """One for each form, train-h200-bf16-nchw.csv."""
    gpu = pathlib.Path(next((row["profile"] for row in rows.values() if row["part"] == "machine"), None) or "unknown").stem
    done = [row for row in rows.values() if row["part"] == "times" and "failed" not in row]
    for form in sorted({row["precision"] for row in done}):
        (folder / "times").mkdir(exist_ok=True)
        with open(folder / "times" / f"train-{gpu}-{form}-nchw.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(COLUMNS)
            table.writerows((row["net"], f"{row['images_per_second']:.2f}", f"{row['iteration_ms']:.3f}", row["batch"], row["size"],
                             f"{row['parameters'] / 1e6:.2f}") for row in done if row["precision"] == form)


def measure(bench, failed, jobs=NETWORKS, device="cuda"):
    """`failed` is the exception of a measurement that could not be made."""
    bench.run([bench.options.python, "-c", IS_THERE])
    recordings = recorded(bench, jobs)
    found = answers(bench, jobs, device)

    def one(job):
        if bench.left() is not None and bench.left() <= 0:
            raise failed("not begun: the time that was given is over")
        answer = next(found)
        if "failed" in answer:
            raise failed(answer["failed"])
        write_operators(bench.folder, job, answer.pop("operators"))
        return beside(bench, recordings, job, answer)
    for job in jobs:
        bench.note({"part": "times", "net": job[0], "batch": job[1], "precision": job[3]}, lambda job=job: one(job))
