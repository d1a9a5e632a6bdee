"""Records networks of timm as their tables were made. Lines of JSON come in, {"kind", "model", "size", "path"}, and for each
goes one out: {"path", "failed": null or why}. A network is recorded in a process of its own, forked from this one.

Training is timm's benchmark of its day: PyTorch 1.12 under autocast to fp16, where attention is in parts, an optimizer's
step is a loop over parameters, and gradients are zeroed, not let go; SGD with Nesterov's momentum 0.9, no dropout.
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
sys.path.insert(0, str(ROOT / "python"))
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402
import timm  # noqa: E402
from timm.models import _registry  # noqa: E402
import snsim  # noqa: E402

MOST_SECONDS = 900


def known_name(name):
    """timm's name of today; what it calls deprecated has another."""
    if timm.is_model(name):
        return name
    today = _registry._deprecated_models.get(name)
    if today:
        return today.split(".")[0]
    raise LookupError(f"timm {timm.__version__} has no such network")


def default_size(name):
    config = timm.get_pretrained_cfg(name)
    return config.input_size[-1] if config else None


def built(name, size):
    """For images of that size, which transformers must be told if it is not their own."""
    wanted = [] if default_size(name) == size else [{"img_size": size, "drop_rate": 0.0}]
    for options in (*wanted, {"drop_rate": 0.0}, {}):
        try:
            return timm.create_model(name, **options)
        except TypeError as error:  # knows no such option
            reason = error
    raise reason


def built_before(name, size):
    """What builds it from networks made on the CPU ahead of the recording: where building asks for values, which fakes have not."""
    real = [built(name, size) for _ in range(3)]
    return lambda *_: real.pop().to("cuda")


def training(name, size, build=built):
    def make(batch):
        model = build(name, size).train()
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(trained, 1e-4, momentum=0.9, nesterov=True, foreach=False)
        images = torch.randn(batch, 3, size, size, device="cuda")
        labels = torch.zeros(batch, dtype=torch.long, device="cuda")

        def step():
            optimizer.zero_grad(set_to_none=False)
            with torch.autocast("cuda", torch.float16):
                output = model(images)
            output = output[0] if isinstance(output, (tuple, list)) else output
            torch.nn.functional.cross_entropy(output, labels).backward()
            optimizer.step()
        return [model], [optimizer], step
    return make


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
    train = job["kind"] == "train"
    timm.layers.set_fused_attn(not train)
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
    make = (training if train else inference)(name, job["size"], build)
    return snsim.record(make, path=path, iterations=2 if train else 1, name=job["model"])


def reason_of(error):
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]


def in_a_child(job):
    """None, or why not."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(MOST_SECONDS)
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
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)  # PyTorch 2.4 did not make float32 of attention in parts
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps({"path": job["path"], "failed": in_a_child(job)}), flush=True)


if __name__ == "__main__":
    main()
