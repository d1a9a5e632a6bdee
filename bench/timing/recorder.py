"""Records networks of timm as their tables were made. Lines of JSON come in, {"kind", "form", "model", "size", "path", "seconds"}, and for each
goes one out: {"path", "failed": null or why}. A network is recorded in a process of its own, forked from this one.

Training is timm's benchmark of its day: PyTorch 1.12 under autocast to fp16, where attention is in parts, an optimizer's
step is a loop over parameters, and gradients are zeroed, not let go; SGD with Nesterov's momentum 0.9, no dropout. Tables whose
names say another form than `amp` are of today's PyTorch (training.py).
Inference is PyTorch 2.4's: evaluation mode under no_grad, attention fused."""
from __future__ import annotations

import json
import logging
import os
import pathlib
import signal
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

import timm  # noqa: E402
import torch  # noqa: E402
import snsim  # noqa: E402
from timing.training import built, known_name, maker  # noqa: E402


def built_before(name, size):
    """What builds it from networks made on the CPU ahead of the recording: where building asks for values, which fakes have not."""
    real = [built(name, size) for _ in range(3)]
    return lambda *_: real.pop().to("cuda")


def inference(name, size, build=built):
    def make(batch):
        model = build(name, size).eval()
        images = torch.randn(batch, 3, size, size, device="cuda")

        def step():
            with torch.no_grad(), torch.autocast("cuda", torch.float16):
                model(images)
        return [model], [], step
    return make


def record(job):
    """Into a file that has its name only once it is whole."""
    of_its_day = job["form"] == "amp"
    timm.layers.set_fused_attn(not (of_its_day and job["kind"] == "train"))
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(of_its_day)  # PyTorch 2.4 did not make float32 of attention in parts
    name, path = known_name(job["model"]), job["path"]
    part = f"{path.removesuffix('.rec.gz')}.{os.getpid()}.part.rec.gz"
    try:
        made = written(job, name, part, built)
    except snsim.RecordingError:
        made = written(job, name, part, built_before(name, job["size"]))
    if len(made.batches) < 2:
        os.unlink(part)
        raise ValueError(f"of one batch alone: {made.assumed}")
    os.replace(part, path)


def written(job, name, path, build):
    train = job["kind"] == "train"
    if not train and job["form"] != "amp":
        raise ValueError("inference is recorded as in tables of amp alone")
    make = maker(name, job["size"], job["form"], build) if train else inference(name, job["size"], build)
    return snsim.record(make, path=path, iterations=2 if train else 1, name=job["model"])


def reason_of(error):
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]


def in_a_child(job):
    """None, or why not."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(job["seconds"])
        try:
            record(job)
        except BaseException as error:  # a fault of a network's, which is told
            os.write(writable, reason_of(error).encode()[:2000])
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as said:
        text = said.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return text or (f"ended by signal {status}" if status else None)


def main():
    torch.set_num_threads(1)
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps({"path": job["path"], "failed": in_a_child(job)}), flush=True)


if __name__ == "__main__":
    main()
