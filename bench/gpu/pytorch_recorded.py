"""Trains on a GPU what bench/record/recording_models.py records, by the same step, and says what memory PyTorch took of it.

    python3 bench/gpu/pytorch_recorded.py gpt2_amp_bf16 --batch 8 [--json]            three iterations on the GPU
    python3 bench/gpu/pytorch_recorded.py gpt2_amp_bf16 --batch 8 --record FILE.rec   records it at that batch, without a GPU

What it prints is what bench/pytorch_eager.py prints of memory: the most that PyTorch's allocator handed out and held, what the driver
says is in use beyond what was before, and what of that is neither. Exit codes: 2 for what was asked, 4 where PyTorch, a model's library
or a GPU is missing.
"""
import argparse
import json
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "record"), str(ROOT / "python"), str(ROOT / "tests" / "python")]
warnings.simplefilter("ignore")

try:
    import torch
except ImportError as error:
    print(f"pytorch_recorded.py: error: PyTorch cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

import gpu_memory  # noqa: E402
import recording_models as models  # noqa: E402
from pytorch_eager import memory  # noqa: E402


def fail(code, text):
    print(f"pytorch_recorded.py: error: {text}", file=sys.stderr)
    sys.exit(code)


def record(make, batch, path):
    import snsim
    snsim.record(make, batch=batch, path=path)
    return {"recorded": str(path)}


def train(make, batch, iterations):
    """As a user's script does: the model is built on the GPU, and the step names its device itself."""
    before = gpu_memory.used_before(torch)
    torch.manual_seed(1)
    with torch.device("cuda"):
        _models, _optimizers, step = make(batch)
    torch.cuda.reset_peak_memory_stats()
    for _ in range(iterations):
        step()
    torch.cuda.synchronize()
    return {"framework": f"PyTorch {torch.__version__}", "device": torch.cuda.get_device_name(), "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(), "iterations": iterations} | memory(before)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME", choices=sorted(models.ALL), help=", ".join(sorted(models.ALL)))
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--record", metavar="FILE", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.batch < 1 or options.iterations < 1:
        parser.error("--batch and --iterations are at least 1")
    return options


def main():
    options = read_options()
    make = models.ALL[options.name][0]
    try:
        row = record(make, options.batch, options.record) if options.record else train(make, options.batch, options.iterations)
    except (RuntimeError, ImportError, gpu_memory.Missing) as error:
        fail(2 if isinstance(error, RuntimeError) else 4, str(error).strip().splitlines()[0])
    row = {"net": options.name, "batch": options.batch} | row
    print(json.dumps(row) if options.json else ", ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
