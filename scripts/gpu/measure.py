"""What scripts/validate-gpu measures: it runs snsim and PyTorch, each measurement a process of its own, and keeps a line of JSON
for each, under a key of part, network, batch and what else tells it from others."""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import network_times

PARTS = ("tests", "memory", "predict", "same", "fastest", "pytorch", "largest", "dialect", "kernels", "rates", "times")
KEYS = ("part", "net", "batch", "tf32", "benchmark", "precision", "side", "strategy", "modules")
TOLD = tuple(key for key in KEYS if key not in ("tf32", "benchmark"))  # of a measurement, by its name
UNCALIBRATED = ("baseline", "liveness", "liveness+offload", "superneurons")
LARGEST = ("superneurons", "liveness+offload+recompute=cost")
KERNELS = ("attention", "workspaces", "shortage")  # of bench/gpu/pytorch_kernels.py
DIALECT = [(net, batch, "fp32") for net, batch in (
    ("tv_alexnet", 256), ("tv_vgg16", 64), ("tv_resnet50", 64), ("tv_resnet152", 32), ("tv_inception_v3", 64), ("tv_densenet121", 64),
    ("tv_mobilenet_v2", 128), ("efficientnet_b0", 128))] + [(net, batch, "amp-bf16") for net, batch in (
        ("tv_resnet50", 256), ("vit_b_16", 128), ("convnext_tiny", 128), ("swin_t", 64))]


RECORDED = (("resnet50", 64), ("swin_t", 32), ("gpt2", 4), ("resnet50_amp_bf16", 64), ("gpt2_amp_bf16", 8), ("llama_lora_bf16", 8))


class Refused(Exception):
    """Nothing can be measured here; the text says why."""

    def __init__(self, text, code):
        super().__init__(text)
        self.code = code


class Failed(Exception):
    """A measurement that could not be made, in the words of what was run."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def key_of(row):
    return tuple(str(row.get(key, "")) for key in KEYS)


def read_rows(folder):
    path = folder / "measured.jsonl"
    if not path.is_file():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {key_of(row): row for row in rows}


def write_rows(folder, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows.values())
    (folder / "measured.jsonl").write_text(text, encoding="utf-8")


def last_words(text):
    """What a program that failed said: its own error, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if re.match(r"snsim: |\w+\.py: error: ", line)]
    return " ".join(own or lines[-1:]) or "it said nothing"


def host_bytes():
    """What may be pinned: seven eighths of the memory that is left, since the system and the batches need some."""
    with open("/proc/meminfo", encoding="ascii") as file:
        free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    return free // 8 * 7


class Bench:
    """One device, one folder."""

    def __init__(self, options):
        self.options, self.program, self.started = options, str(options.program), time.monotonic()
        device = self.probe()
        hardware = device.split(";")[0]
        self.name = options.name or re.sub(r"[^a-z0-9_]", "", hardware.lower().replace(" ", "_"))
        today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        self.folder = options.folder / f"{self.name}-{today}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rows, self.database = read_rows(self.folder), str(self.folder / "snsim.db")
        self.profile = options.gpu or self.profile_of(hardware)
        self.keep({"part": "machine", "device": device, "hardware": hardware, "date": today, "profile": self.profile,
                   "version": self.run([self.program, "--version"]).strip()})

    # ---- running ----

    def left(self):
        if not self.options.seconds:
            return None
        return self.options.seconds - (time.monotonic() - self.started)

    def run(self, command, limit=None, codes=(0,)):
        """What it prints. Failed where its exit code is none of `codes`, or time is up."""
        left = self.left()
        limits = [seconds for seconds in (limit, left) if seconds is not None]
        if left is not None and left <= 0:
            raise Failed("not begun: the time that was given is over")
        try:
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=min(limits) if limits else None)
        except subprocess.TimeoutExpired as slow:
            raise Failed(f"given up after {slow.timeout:.0f} s") from slow
        except OSError as error:
            raise Failed(f"{command[0]}: {error.strerror}") from error
        if done.returncode not in codes:
            raise Failed(last_words(done.stderr or done.stdout))
        return done.stdout

    def snsim(self, *words, codes=(0,), db=True, limit=None):
        return self.run([self.program, *words, *(["--db", self.database] if db else ["--no-db"])], limit, codes)

    def script(self, name, *words, limit=None):
        return json.loads(self.run([self.options.python, self.options.root / "bench" / name, *words, "--json"], limit))

    def probe(self):
        """One iteration shows whether there is a GPU, and what it is called."""
        done = subprocess.run([self.program, *"run --net lenet --batch 8 --iterations 1 --strategy baseline --backend cuda --no-db --json".split()],
                              capture_output=True, text=True)
        if done.returncode:
            raise Refused(last_words(done.stderr), done.returncode)
        return json.loads(done.stdout)["device"]

    def profile_of(self, hardware):
        """The known GPU whose name begins with a word of the device's, of several the one that has the device's memory form."""
        known = [gpu["name"] for gpu in json.loads(self.snsim("list", "gpus", "--json"))["gpus"]]
        words = re.findall(r"[a-z]*[0-9]+[a-z]*", hardware.lower())
        fitting = [name for name in known if name.split("_")[0] in words]
        form = "pcie" if "pcie" in hardware.lower() else "sxm"
        return next((name for name in fitting if name.endswith(form)), fitting[0] if fitting else None)

    # ---- keeping ----

    def keep(self, row):
        self.rows.pop(key_of(row), None)
        self.rows[key_of(row)] = row
        write_rows(self.folder, self.rows)

    def note(self, row, work):
        """Adds what work() returns to the row, or why it failed."""
        what = " ".join(str(row[key]) for key in TOLD if key in row)
        flags = "".join(f", {key}" for key in ("tf32", "benchmark") if row.get(key))
        begin = time.monotonic()
        try:
            row = row | work()
            say(f"{what}{flags}: {time.monotonic() - begin:.0f} s")
        except (Failed, ValueError, KeyError) as failed:
            row = row | {"failed": str(failed)}
            say(f"{what}{flags}: failed: {failed}")
        self.keep(row | {"seconds": round(time.monotonic() - begin, 1)})
        return row

    def measure_all(self):
        for part in PARTS:
            if part in self.options.parts:
                getattr(self, part)()

    # ---- parts ----

    def tests(self):
        for path in sorted((self.options.program.parent / "tests").glob("gpu_*")):
            if os.access(path, os.X_OK) and path.is_file():
                self.note({"part": "tests", "side": path.name}, lambda path=path: self.test(path))
        self.note({"part": "tests", "side": "recorder"}, self.records_alike)

    def test(self, path):
        done = subprocess.run([str(path)], capture_output=True, text=True)
        output = done.stdout + done.stderr
        (self.folder / f"{path.name}.log").write_text(output, encoding="utf-8")
        count = {word: len(re.findall(rf"\[ *{word} *\] \w+$", output, re.M)) for word in ("OK", "FAILED", "SKIPPED")}
        if done.returncode and not count["FAILED"]:
            raise Failed(f"exit status {done.returncode}: {last_words(output)}")
        return {"passed": count["OK"], "tests_failed": count["FAILED"], "skipped": count["SKIPPED"]}

    def records_alike(self):
        """With the GPU and without it a recording has the same bytes."""
        with tempfile.TemporaryDirectory() as name:
            files = [pathlib.Path(name) / f"{side}.rec" for side in ("with", "without")]
            self.record("gpt2", 4, files[0])
            self.record("gpt2", 4, files[1], "CUDA_VISIBLE_DEVICES=")
            same = files[0].read_bytes() == files[1].read_bytes()
        return {"passed": int(same), "tests_failed": int(not same), "skipped": 0}

    def record(self, net, batch, path, *environment):
        self.run(["env", *environment, self.options.python, self.options.root / "bench" / "gpu" / "pytorch_recorded.py", net, "--batch", batch, "--record", path])

    def memory(self):
        for modules in ("LAZY", "EAGER"):
            for side, words in (("runtime", ()), ("pytorch", ("--pytorch",))):
                self.note({"part": "memory", "side": side, "modules": modules},
                          lambda words=words, modules=modules: self.script("gpu_memory.py", *words, "--modules", modules.lower()))

    def predict(self):
        for tf32 in (False, True):
            for net, batch in self.options.nets:
                if self.is_calibrated(tf32):
                    self.note({"part": "carried", "net": net, "batch": batch, "tf32": tf32},
                              lambda net=net, batch=batch, tf32=tf32: self.validate(net, batch, "carried", tf32, "--strategy", ",".join(UNCALIBRATED)))
                self.note({"part": "calibrate", "net": net, "batch": batch, "tf32": tf32},
                          lambda net=net, batch=batch, tf32=tf32: self.calibrate(net, batch, tf32))

    def is_calibrated(self, tf32):
        return any(row["part"] == "calibrate" and row["tf32"] == tf32 and "failed" not in row for row in self.rows.values())

    def calibrate(self, net, batch, tf32):
        made = json.loads(self.snsim("calibrate", "--net", net, "--batch", batch, "--backend", "cuda", "--gpu", self.name, "--json",
                                     *["--tf32"][:tf32]))
        return {key: value for key, value in made.items() if key != "timings"} | {"timings": len(made["timings"])}

    def same(self):
        for net, batch in self.options.nets:
            self.note({"part": "same", "net": net, "batch": batch, "tf32": False},
                      lambda net=net, batch=batch: self.validate(net, batch, "same", False, "--deterministic"))

    def fastest(self):
        for tf32 in (False, True):
            for net, batch in self.options.nets:
                self.note({"part": "fastest", "net": net, "batch": batch, "tf32": tf32},
                          lambda net=net, batch=batch, tf32=tf32: self.validate(net, batch, "fastest", tf32))

    def validate(self, net, batch, kind, tf32, *more):
        """Its table is kept as text; strategies that do not fit are named in it, and the others count."""
        workspace = [] if kind == "same" else ["--workspace", "dynamic"]
        name = f"{re.sub('[^A-Za-z0-9_.-]+', '_', net)}.{batch}.{kind}{'.tf32' if tf32 else ''}"
        table = self.snsim("validate", "--net", net, "--batch", batch, "--backend", "cuda", "--gpu", self.name, "--iterations",
                           self.options.iterations, *workspace, *["--tf32"][:tf32], *more, codes=(0, 1))
        (self.folder / f"{name}.txt").write_text(table, encoding="utf-8")
        run = json.loads(self.snsim("show", "last", "--json"))
        return {"results": run["results"], "costs": run["costs"]}

    def pytorch(self):
        for net, batch in self.options.nets:
            for tf32, benchmark in ((False, False), (False, True), (True, False), (True, True)):
                words = ["--net", net, "--batch", batch, "--snsim", self.program, *["--tf32"][:tf32], *["--benchmark"][:benchmark]]
                self.note({"part": "pytorch", "net": net, "batch": batch, "tf32": tf32, "benchmark": benchmark},
                          lambda words=words: self.script("pytorch_eager.py", *words))

    def largest(self):
        for net, batch in self.options.nets:
            self.note({"part": "largest", "net": net, "side": "pytorch"}, lambda net=net, batch=batch: self.largest_of_pytorch(net, batch))
            for strategy in LARGEST:
                self.note({"part": "largest", "net": net, "side": "snsim", "strategy": strategy},
                          lambda net=net, strategy=strategy: self.largest_of_snsim(net, strategy))

    def largest_of_pytorch(self, net, batch):
        found = self.script("pytorch_eager.py", "--net", net, "--batch", batch, "--iterations", 1, "--largest", "--snsim", self.program)
        return {"largest": found["largest_batch"], "precision": "fp32"}

    def largest_of_snsim(self, net, strategy):
        """What is predicted is tried, then 2 % more, which should fail; where it fails itself, less and less."""
        asked = self.snsim("fit", "--max", "batch", "--net", net, "--strategy", strategy, "--gpu", self.name, "--workspace", "none",
                           "--host-memory", f"{host_bytes() >> 20}MiB", "--json", codes=(0, 1))
        predicted = goal = json.loads(asked)["results"][0]["answer"]
        tries = {goal: self.try_batch(net, goal, strategy)}
        counted = re.search(r"a batch of at most (\d+)", tries[goal].get("why", ""))
        if counted:  # by the library, whatever fits
            goal = int(counted.group(1))
            tries[goal] = self.try_batch(net, goal, strategy)
        for share in (1.02,) if tries[goal]["trained"] else (0.98, 0.95, 0.9, 0.8, 0.6):
            batch = max(1, int(goal * share))
            tries[batch] = tries.get(batch) or self.try_batch(net, batch, strategy)
            if tries[batch]["trained"]:
                break
        trained = [batch for batch, of in tries.items() if of["trained"]]
        return {"predicted": predicted, "largest": max(trained, default=0), "tries": tries}

    def try_batch(self, net, batch, strategy):
        try:
            run = json.loads(self.snsim("run", "--net", net, "--batch", batch, "--strategy", strategy, "--backend", "cuda", "--gpu", self.name,
                                        "--iterations", 2, "--json", db=False, limit=300))
        except Failed as failed:
            return {"trained": False, "why": str(failed)}
        return {"trained": True, "images_per_second": run["results"][0]["images_per_second"]}

    def times(self):
        self.rows.pop(key_of({"part": "times"}), None)
        try:
            network_times.measure(self, Failed)
        except Failed as failed:
            say(f"times: failed: {failed}")
            self.keep({"part": "times", "failed": str(failed)})

    def dialect(self):
        if not self.profile:
            say("dialect: failed: no known GPU is called like this one")
            self.keep({"part": "dialect", "failed": "no known GPU is called like this one; -g names the profile that stands for it"})
        for net, batch, precision in DIALECT if self.profile else ():
            self.note({"part": "dialect", "net": net, "batch": batch, "precision": precision},
                      lambda net=net, batch=batch, precision=precision: self.named(net, batch, precision))
        for net, batch in RECORDED if self.profile else ():
            self.note({"part": "dialect", "net": net, "batch": batch, "precision": "recorded"},
                      lambda net=net, batch=batch: self.recorded(net, batch))

    def named(self, net, batch, precision):
        theirs = self.script("pytorch_eager.py", "--net", net, "--batch", batch, "--precision", precision, "--iterations", 3,
                             "--weight-decay", 0, "--snsim", self.program)
        return {"pytorch": theirs, "snsim": self.row_pytorch(net, batch, "--precision", precision)}

    def recorded(self, net, batch):
        theirs = self.script("gpu/pytorch_recorded.py", net, "--batch", batch)
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / f"{net}.rec"
            self.record(net, batch, path)
            return {"pytorch": theirs, "snsim": self.row_pytorch(path, batch)}

    def row_pytorch(self, net, batch, *more):
        row = json.loads(self.snsim("--net", net, "--batch", batch, "--strategy", "pytorch", "--gpu", self.profile, "--json", *more,
                                    codes=(0, 1), db=False))["results"][0]
        wanted = ("allocated_bytes", "reserved_bytes", "peak_device_bytes", "context_bytes", "live_peak_bytes", "workspace_peak_bytes")
        return {key: row[key] for key in wanted}

    def kernels(self):
        profile = ["--gpu", self.profile] if self.profile else []
        for side in KERNELS:
            self.note({"part": "kernels", "side": side},
                      lambda side=side: self.script("gpu/pytorch_kernels.py", "--only", side, "--snsim", self.program, *profile, limit=300))

    def rates(self):
        self.note({"part": "rates"}, lambda: self.script("gpu/gpu_rates.py") | self.host_time())

    def host_time(self):
        """Of PyTorch's host for an operation: what an iteration takes in which the GPU waits for it, over the operations that snsim counts there,
        which two times tell that are all the host's."""
        if not self.profile:
            return {}
        net, batch = "tv_resnet50", 1
        seen = self.script("pytorch_eager.py", "--net", net, "--batch", batch, "--snsim", self.program)["iteration_ns"]
        said = [json.loads(self.snsim("--net", net, "--batch", batch, "--strategy", "pytorch", "--gpu", self.profile, "--host-us", us, "--json",
                                      db=False))["results"][0]["iteration_ns"] for us in (1000, 2000)]
        operations, beside = (said[1] - said[0]) / 1e6, 2 * said[0] - said[1]
        return {"host_ns": round((seen - beside) / operations)}
