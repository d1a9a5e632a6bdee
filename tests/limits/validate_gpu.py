"""scripts/validate-gpu on the GPU in software (tests/fake_cuda): its parts leave lines, tables and a page that says what was met,
what was not measured and what failed; folders join; and where there is no GPU nothing is written."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ["SNSIM_SOURCE_DIR"])
SNSIM, FAKE = os.environ["SNSIM_BINARY"], sys.argv[1]
sys.path.insert(0, str(ROOT / "scripts" / "gpu"))

import device_profile  # noqa: E402
import measure  # noqa: E402
import network_times  # noqa: E402
import report  # noqa: E402
import report_times  # noqa: E402
from timing import rows as rows_of_timm  # noqa: E402

NETS = ("tests/nets/tiny.json:2", "tests/nets/small_inception.json:2")


def validate(*words, module=FAKE, code=0):
    environment = os.environ | {"SNSIM_CUDA_MODULE": module, "PYTHON": "/bin/false"}
    done = subprocess.run([sys.executable, ROOT / "scripts" / "validate-gpu", *map(str, words)], env=environment, cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == code, f"{words}: exit code {done.returncode}, not {code}: {done.stderr}"
    return done.stderr


def lines_of(folder):
    return [json.loads(line) for line in (folder / "measured.jsonl").read_text(encoding="utf-8").splitlines()]


def only(place):
    (folder,) = place.iterdir()
    return folder


def check_lines(folder):
    by_part = {}
    for line in lines_of(folder):
        by_part.setdefault(line["part"], []).append(line)
    assert set(by_part) == {"machine", "memory", "calibrate", "carried", "same", "fastest", "pytorch", "dialect", "kernels", "rates", "times"}, set(by_part)
    assert all("failed" in line for part in ("memory", "pytorch", "dialect", "kernels", "rates", "times") for line in by_part[part])  # there is no PyTorch
    assert len(by_part["carried"]) == 2 and len(by_part["calibrate"]) == 4  # the second network, without TF32 and with it
    for line in by_part["same"] + by_part["fastest"]:
        assert len(line["results"]) == 13 and "failed" not in line, line
    for result in (result for line in by_part["same"] for result in line["results"]):
        assert result["bit_equal_to_baseline"] and result["planned_pool_bytes"] == result["touched_pool_bytes"], result
        assert result["predicted_device_bytes"] == result["measured_device_bytes"], result


def check_page(folder):
    page = (folder / "README.md").read_text(encoding="utf-8")
    for text in ("# Predicted and measured on Fake GPU", "in part: the tests were not run; 26 trainings of 2 networks",
                 "met: pool exact in 78 of 78; device at worst 0.00 % off", "of networks not calibrated", "| not measured |",
                 "## The same deterministic algorithms for all strategies", "## Copies beside kernels",
                 "## What failed", "- dialect: no known GPU is called like this one"):
        assert text in page, f"{text!r} is not in\n{page}"
    return page


# ---- what the GPU in software cannot give: lines by hand, and tries that are pretended ----

def pytorch_row(**more):
    return {"framework": "PyTorch 2.11", "cuda": "13.0", "cudnn": 91900, "images_per_second": 100.0} | more


def memory_row(modules, product, convolution):
    stages = [{"stage": "a product", "bytes": product}, {"stage": "a convolution forward and backward", "bytes": convolution}]
    return {"part": "memory", "side": "pytorch", "modules": modules, "of": "PyTorch", "device": "G", "driver": "1", "before_bytes": 0, "stages": stages}


def rates_row():
    rates = {"copy": 3.6e12, "out": 50e9, "in": 52e9, "together": 90e9}
    return {"part": "rates", "driver": "1", "memory_bytes": 140_000 * 2**20, "multiprocessors": 130, "flops": {"fp32": 50e12}, "launch_ns": 2500,
            "malloc_ns": 90_000, "free_ns": 60_000, "copy_latency_ns": 8000, "host_ns": 20_000} | {f"{key}_bytes_per_s": rate for key, rate in rates.items()}
def attended(case, kernel, kept):
    return {"case": case, "kernel": kernel, "kept_bytes": kept, "forward_peak_bytes": 2 * kept, "backward_peak_bytes": 3 * kept}


def convolved(layer, ours, failed=None, **theirs):
    of = {"layer": layer, "numbers": "fp32", "tensor_bytes": 8 * 2**20} | {f"{kernel}_bytes": count for kernel, count in theirs.items()}
    return {"pytorch": of | ({"failed": failed} if failed else {}), "snsim": {"forward_bytes": ours, "backward_bytes": ours}}


def shortened(numbers, found, least):
    figures = {"peak_bytes": 30 * 2**20, "held_bytes": 32 * 2**20, "ms": 5.0}
    of = {"numbers": numbers, "batch": 167, "enough": figures | {"workspace_bytes": 9 * 2**20}, "least": figures | {"ms": 7.0}, "least_bytes": least * 2**20}
    return {"pytorch": of | {"found": found}, "snsim": {"device_bytes": 40 * 2**20, "least_bytes": 10 * 2**20, "workspace_bytes": 2**20}}


def kernels_by_hand():
    """Attention that differs once in the kernel and once in bytes; workspaces of which two of four are near; memory that is short."""
    pairs = [(attended("plain", "flash", 2**20), attended("plain", "flash", 2**20 + 24)), (attended("other", "cudnn", 2**20), attended("other", "flash", 2**20)),
             (attended("more", "efficient", 3 * 2**20), attended("more", "efficient", 2**20))]
    attention = [{"pytorch": theirs, "snsim": ours} for theirs, ours in pairs]
    attention.append({"pytorch": {"case": "broken", "failed": "no kernel"}, "snsim": attended("broken", "math", 1)})
    layers = [convolved("near", 100 * 2**20, forward=95 * 2**20, data=2**20, filter=105 * 2**20, forward_first=200 * 2**20),
              convolved("far", 0, forward=4 * 2**20, data=50 * 2**20, filter=0), convolved("ill", 0, failed="an engine broke", forward=1)]
    shortage = [shortened("fp32", "fell back", 12), shortened("tf32", "needs all that it takes", 32)]
    row = pytorch_row(part="kernels")
    return [row | {"side": "attention", "cublas": {"forward_bytes": 32 * 2**20, "backward_bytes": 2**20}, "attention": attention},
            row | {"side": "workspaces", "workspaces": layers}, row | {"side": "shortage", "shortage": shortage}]


def lines_by_hand(folder):
    """Those of the folder, with PyTorch's: half as fast, a third of the batch, and a dialect that is 0.5 and 6 % off."""
    rows = measure.read_rows(folder)
    (net, batch) = next((row["net"], row["batch"]) for row in rows.values() if row["part"] == "fastest")
    theirs = {"allocated_bytes": 2000, "reserved_bytes": 1000, "driver_bytes": 3000, "context_bytes": 500}
    ours = {"allocated_bytes": 2010, "reserved_bytes": 1060, "peak_device_bytes": 3000, "context_bytes": 500}
    tries = {"300": {"trained": True, "images_per_second": 7.0}, "306": {"trained": False, "why": "out of device memory"}}
    more = [pytorch_row(part="pytorch", net=net, batch=batch, tf32=False, benchmark=benchmark) for benchmark in (False, True)]
    more += [{"part": "tests", "side": "gpu_conform", "passed": 3, "tests_failed": 0, "skipped": 0},
             memory_row("LAZY", 2**20, 2**21), memory_row("EAGER", 2**30, 3 * 2**29), rates_row(),
             {"part": "largest", "net": net, "side": "pytorch", "largest": 100},
             {"part": "largest", "net": net, "side": "snsim", "strategy": "superneurons", "predicted": 300, "largest": 300, "tries": tries},
             {"part": "dialect", "net": "gpt2", "batch": 4, "precision": "recorded", "snsim": theirs | ours, "pytorch": pytorch_row(**theirs)},
             {"part": "dialect", "net": net, "batch": batch, "precision": "fp32", "snsim": ours, "pytorch": pytorch_row(**theirs)}]
    for row in more + kernels_by_hand():
        rows[measure.key_of(row)] = row
    return {key: row for key, row in rows.items() if "failed" not in row}


def times_row(net, ms, predicted_ms, kinds):
    """`kinds`: measured and predicted ms; half a millisecond of it without a kernel."""
    return {"part": "times", "net": net, "batch": 8, "size": 64, "precision": "bf16", "iteration_ms": ms, "busy_ms": ms - 0.5, "idle_ms": 0.5,
            "host_bound": False, "images_per_second": 8e3 / ms, "parameters": 1_230_000, "framework": "PyTorch 2.11", "cuda": "13.0", "cudnn": 91900,
            "kinds": {kind: {"ms": theirs, "kernels": 1} for kind, (theirs, _) in kinds.items()},
            "predicted": {"iteration_ms": predicted_ms, "kinds": {kind: {"ms": ours, "operations": 1} for kind, (_, ours) in kinds.items()}}}


def check_times():
    """Two networks 10 % below and 30 above, one with what it was not predicted for; kinds by their sums, and those too short to count."""
    rows = [times_row("a", 10.0, 9.0, {"dense_fwd": (8.0, 6.0), "untold": (0.05, 0.0)}),
            times_row("b", 10.0, 13.0, {"dense_fwd": (4.0, 9.0), "bn_fwd": (5.0, 4.0)}), times_row("c", 20.0, 1.0, {}) | {"refused": "another network"}]
    del rows[2]["predicted"]
    found = report.Rows({str(number): row for number, row in enumerate(rows)})
    text, met = report_times.found(found)
    assert not met and text == ("2 trainings: median 20.0 %, nine of ten within 30.0 %, mean +10.0 %, worst +30.0 % (b, bf16); times of 2 kinds: "
                                "median 22.5 %, nine of ten within 25.0 %, mean +2.5 %, worst +25.0 % (dense_fwd)"), text
    page = "".join(report_times.tables(found))
    for line in ("| a, 8, bf16 | 10.00 | 9.00 | -10.0 % | 9.50 | 0.50 | 0.05 |", "| c, 8, bf16 | 20.00 | another network | - | 19.50 | 0.50 | 0.00 |",
                 "| dense_fwd | 2 | 12.00 | 15.00 | 1.25 | 1.50 |", "| bn_fwd | 1 | 5.00 | 4.00 | 0.80 | 0.80 |",
                 "| no kernel | 2 | 1.00 | 3.00 | 3.00 | 3.00 |"):
        assert line in page, f"{line!r} is not in\n{page}"
    assert report_times.found(report.Rows({})) is None and report_times.tables(report.Rows({})) == [""]


def check_tables(place):
    """What bench/times.py reads."""
    rows = {"machine": {"part": "machine", "profile": "profiles/h200.json"}, "a": times_row("a", 10.0, 9.0, {}), "b": {"part": "times", "failed": "x"}}
    network_times.write_tables(place, rows)
    (path,) = (place / "times").iterdir()
    assert path.name == "train-h200-bf16-nchw.csv", path
    (row,) = rows_of_timm.table(path)
    assert (row.gpu, row.form, row.key, row.ms, row.parameters) == ("h200", "bf16", "train-a-64-bf16", 10.0, 1.23), row


class Measuring:
    """A Python that says of a network that it took so long, and ends at the network `dies`."""

    def __init__(self, place):
        self.program, self.profile, self.folder, self.rows = SNSIM, None, place, {}
        script = place / "python"
        script.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 0\nfor job; do case $job in dies*) echo "last words" >&2; exit 1;; *:*) '
                          'echo "{\\"net\\": \\"$job\\", \\"images_per_second\\": 1, \\"parameters\\": 2, \\"operators\\": []}";; esac; done\n')
        script.chmod(0o755)
        self.options = type("Options", (), {"python": str(script), "root": ROOT})


def check_answers(place):
    """Where the process ends one job has failed, and the next is asked for."""
    jobs = [(net, 1, 64, "bf16") for net in ("a", "dies", "b", "dies", "dies", "c")]
    found = list(network_times.answers(Measuring(place), jobs))
    assert [answer.get("net") or answer["failed"] for answer in found] == ["a:1:64:bf16", "last words", "b:1:64:bf16", "last words", "last words",
                                                                          "c:1:64:bf16"], found


def check_hand(folder):
    page = report.text(lines_by_hand(folder))
    for text in ("3 tests passed; 26 trainings of 2 networks, all equal to the bit", "PyTorch 2.11 (CUDA 13.0, cuDNN 91900)", "| a product | 1.0 |", "modules eager",
                 "fp32: 1 of 1 networks at least as fast", "TF32: 0 of 0 networks", "| 100.0 | 100.0 |", " 3.00 times |",
                 "| 300 | 300 | 3.00 | 7.0 | 306: out of device memory |", "allocated within 1 % in 2 of 2, worst +0.5 %",
                 "reserved within 5 % in 0 of 2, worst +6.0 %", "| gpt2, 4, recorded |", "| copies in | 52.0 GB/s |",
                 "**not met**: 2 of 3 cases have the kernel, 2 keep the bytes |",
                 "cuBLAS's workspaces: 32.0 MiB in forward, 1.0 MiB more in backward. Of 3 cases 2 differ", "| other | cudnn | flash | 1.00 | 1.00 | 2.00 |", "| more | efficient | efficient | 3.00 |",
                 "**not met**: 2 of 4 kernels' within 10 % or 1 MiB; at worst 0.0 MiB for 50.0 (far, fp32 backward)",
                 "| near | fp32 | 8.0 | 95.0 | 100.0 | 1.0 | 105.0 | 100.0 | forward 200.0 |",
                 "**not met**: fp32 runs with 12.0 of 32.0 MiB (fell back); tf32 runs with 32.0 of 32.0 MiB (needs all that it takes)",
                 "| fp32, 167 | 32.0 | 40.0 | 30.0 | 9.0 | 1.0 | 12.0 | 10.0 | 30.0 | 5.0 | 7.0 | fell back |",
                 "- kernels attention, broken, pytorch: no kernel\n", "- kernels workspaces, ill, fp32, pytorch: an engine broke\n"):
        assert text in page, f"{text!r} is not in\n{page}"
    assert "| plain |" not in page and page.count("\n- ") == 2


def check_profile(folder):
    """Each figure that was measured is in the profile, and the program takes it."""
    lines = {key: row for key, row in lines_by_hand(folder).items() if row["part"] != "calibrate"}
    known = json.loads((ROOT / "sim" / "device" / "profiles" / "h200.json").read_text(encoding="utf-8"))
    made = device_profile.made(report.Rows(lines), known)
    wanted = {"memory_mib": 140_000, "multiprocessors": 130, "memory_efficiency": 0.75, "host_gb_per_s": 50.0, "link_latency_us": 8.0, "launch_us": 2.5,
              "malloc_us": 90.0, "free_us": 60.0, "host_us": 20.0, "library_context_gib": 0.0, "eager_context_gib": 1.0, "eager_conv_gib": 0.5}
    assert {key: made[key] for key in wanted} == wanted and made["bf16_tflops"] == known["bf16_tflops"], made
    page = report.text(lines, known, made)
    assert "| `eager_conv_gib` | by architecture | 0.5 |" in page and "| `memory_mib` | 143155 | 140000 |" in page, page
    assert device_profile.made(report.Rows({}), known) is None
    path = folder / "made.json"
    path.write_text(device_profile.text(made), encoding="utf-8")
    done = subprocess.run([SNSIM, *f"--net tests/nets/tiny.json --batch 2 --strategy pytorch --modules eager --no-db --json --gpu {path}".split()],
                          capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"][0]["context_bytes"] == 3 * 2**29, done.stdout


class Pretended(measure.Bench):
    """Predicted to train a batch of 1,000; what trains really, and what the library counts up to."""

    def __init__(self, trains, counts=10**9):
        self.trains, self.counts, self.name = trains, counts, "g"

    def snsim(self, *_, **__):
        return json.dumps({"results": [{"answer": 1000}]})

    def try_batch(self, net, batch, strategy):
        why = "out of memory" if batch > self.trains else f"use a batch of at most {self.counts}, .." if batch > self.counts else None
        return {"trained": False, "why": why} if why else {"trained": True, "images_per_second": 1.0}


def check_tries():
    for bench, largest, tried in ((Pretended(1000), 1000, [1000, 1020]), (Pretended(2000), 1020, [1000, 1020]),
                                  (Pretended(960), 950, [1000, 980, 950]), (Pretended(10), 0, [1000, 980, 950, 900, 800, 600]),
                                  (Pretended(2000, 300), 300, [1000, 300, 306])):
        found = bench.largest_of_snsim("net", "superneurons")
        assert found["largest"] == largest and list(found["tries"]) == tried, found


class Recording(measure.Bench):
    """Whose recordings are alike or not, and on whose GPU an iteration takes what the program says with a host that takes 25 us."""

    def __init__(self, alike):
        self.alike, self.program, self.profile = alike, SNSIM, "h200"
        self.options = argparse.Namespace(seconds=None)

    def record(self, net, batch, path, *environment):
        path.write_bytes(b"" if self.alike else repr(environment).encode())

    def script(self, name, *words, limit=None):
        net, batch = words[words.index("--net") + 1], words[words.index("--batch") + 1]
        return json.loads(self.snsim("--net", net, "--batch", batch, "--strategy", "pytorch", "--gpu", "h200", "--host-us", 25, "--json",
                                     db=False))["results"][0]


def check_recordings():
    assert [Recording(alike).records_alike()["tests_failed"] for alike in (True, False)] == [0, 1]
    assert Recording(True).host_time() == {"host_ns": 25_000}


def main():
    check_tries()
    check_recordings()
    check_times()
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        check_tables(place)
        check_answers(place)
        parts = "memory,predict,same,fastest,pytorch,dialect,kernels,rates,times"
        validate("-b", SNSIM, "-o", place / "all", "-i", 2, "-p", parts, *NETS)
        folder = only(place / "all")
        check_lines(folder)
        page = check_page(folder)
        check_hand(folder)
        check_profile(folder)
        validate("--report", folder)
        assert (folder / "README.md").read_text(encoding="utf-8") == page, "another page of the same lines"

        validate("-b", SNSIM, "-o", place / "one", "-i", 2, "-p", "same", NETS[0])
        before = len(lines_of(only(place / "one")))
        validate("-b", SNSIM, "-o", place / "one", "-i", 2, "-p", "same", NETS[0])  # again: in place of the first time
        assert len(lines_of(only(place / "one"))) == before == 2
        validate("--report", only(place / "one"), folder)
        assert len(lines_of(only(place / "one"))) == len(lines_of(folder))

        said = validate("-b", SNSIM, "-o", place / "none", module=str(place / "no.so"), code=4)
        assert "nothing was measured and nothing written" in said and not (place / "none").exists(), said
        assert "is not NET:BATCH" in validate("-b", SNSIM, "resnet50", code=2)
        assert "no part nonesuch" in validate("-b", SNSIM, "-p", "nonesuch", code=2)
        assert "no measured.jsonl" in validate("--report", place, code=3)


main()
