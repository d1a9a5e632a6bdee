"""Which kernels PyTorch takes on a GPU and what they take of its memory, beside what snsim says of the same: three parts, each of cases
that are measured one by one, so that one that fails is a line with its message.

    python3 bench/gpu/pytorch_kernels.py [--only PART,..] [--gpu GPU] [--snsim PROGRAM] [--json]
    python3 bench/gpu/pytorch_kernels.py --recorded SM [--json]     without a GPU: snsim's side of attention, for an architecture as 90

  attention   which kernel F.scaled_dot_product_attention calls and how much it keeps until backward; snsim's recorder has the same cases on
              fakes, in a process of its own that sees no GPU
  workspaces  what convolutions take beyond their results, forward and for both gradients, with cuDNN's guesses (no benchmark); the row
              `pytorch` of the same layers
  shortage    the least memory with which two wide convolutions train (torch.cuda.set_per_process_memory_fraction), beside what they take when
              there is enough: does PyTorch fall back to other algorithms?

Bytes are those that PyTorch's allocator was asked for, not what it made of that (requested_bytes of torch.cuda.memory_stats), but for
what is held (max_memory_reserved). --gpu names the profile of `snsim list gpus` that stands for this GPU; without it
snsim is asked about attention alone. --device cpu is for trying this program: kernels of short attentions, and no memory. Exit codes: 2 for
what was asked, 4 where PyTorch or a GPU is missing.
"""
import argparse
import json
import os
import subprocess
import sys

try:
    import torch
except ImportError as error:
    print(f"pytorch_kernels.py: error: PyTorch cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

import attention
import shortage
import workspaces

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ("attention", "workspaces", "shortage")
TITLE = ("case", "layer", "numbers", "batch")  # what tells a row from others
SHORT = 77  # positions at most on a CPU, which is slow


def fail(code, text):
    print(f"pytorch_kernels.py: error: {text}", file=sys.stderr)
    sys.exit(code)


class Memory:
    """PyTorch's allocator on a GPU."""

    def now(self):
        return torch.cuda.memory_stats()["requested_bytes.all.current"]

    def peak(self):
        """The most since restart()."""
        return torch.cuda.memory_stats()["requested_bytes.all.peak"]

    def held(self):
        return torch.cuda.max_memory_reserved()

    def restart(self):
        torch.cuda.reset_peak_memory_stats()

    def wait(self):
        torch.cuda.synchronize()

    def empty(self):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def limit(self, count):
        """Holds the allocator to so many bytes; None: to what there is."""
        _, total = torch.cuda.mem_get_info()
        torch.cuda.set_per_process_memory_fraction(1.0 if count is None else min(1.0, count / total))


def warmed_up(memory):
    """cuBLAS's workspaces, which come with the first product, of the thread that goes forward and of backward's, and stay."""
    x = torch.randn(64, 64, device="cuda", requires_grad=True)
    y, before = torch.ones(64, 64, device="cuda"), memory.now()
    product = x @ y
    ahead = memory.now() - before - product.untyped_storage().nbytes()
    before = memory.now()
    (gradient,) = torch.autograd.grad(product, x, y)
    return {"forward_bytes": ahead, "backward_bytes": memory.now() - before - gradient.untyped_storage().nbytes()}


def recorded_apart(sm):
    """The recorder's rows, by a process without a GPU. RuntimeError with its last words."""
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--recorded", str(sm), "--json"], capture_output=True, text=True,
                          env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["the recorder said nothing"])[-1])
    return json.loads(done.stdout)["recorded"]


def answered(question, *words):
    """snsim's side of a case."""
    try:
        return question(*words)
    except (RuntimeError, OSError, ValueError, KeyError) as failed:
        return {"failed": str(failed)}


def attention_part(options, memory):
    if options.device == "cpu":
        return {"attention": [{"pytorch": attention.measured(case, "cpu", None)} for case in attention.CASES
                              if case.queries <= SHORT and (case.keys or SHORT) <= SHORT]}
    blas = warmed_up(memory)
    major, minor = torch.cuda.get_device_capability()
    theirs = [attention.measured(case, "cuda", memory) for case in attention.CASES]
    ours = answered(recorded_apart, 10 * major + minor)
    if not isinstance(ours, list):
        return {"cublas": blas, "recorder_failed": ours["failed"], "attention": [{"pytorch": one} for one in theirs]}
    return {"cublas": blas, "attention": [{"pytorch": one, "snsim": other} for one, other in zip(theirs, ours)]}


def beside(options, theirs, module, *words):
    """A case of convolutions, with snsim's side where its profile is known."""
    ours = {"snsim": answered(module.predicted, options.snsim, options.gpu, *words)} if options.gpu else {}
    return {"pytorch": theirs, **ours}


def workspaces_part(options, memory):
    return {"workspaces": [beside(options, workspaces.measured(layer, kind, options.device, memory), workspaces, layer, kind)
                           for layer, kind in workspaces.CASES]}


def shortage_part(options, memory):
    return {"shortage": [beside(options, shortage.measured(kind, options.device, memory), shortage, kind) for kind in shortage.KINDS]}


def measure(options):
    row = {"framework": f"PyTorch {torch.__version__}", "device": "CPU"}
    memory = None
    if options.device == "cuda":
        torch.cuda.init()  # before that its allocator has no figures
        memory = Memory()
        row |= {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
        torch.backends.cudnn.benchmark = False
    works = {"attention": attention_part, "workspaces": workspaces_part, "shortage": shortage_part}
    for part in options.only:
        row |= works[part](options, memory)
    return row


def title_of(row):
    return ", ".join(str(row[key]) for key in TITLE if key in row)


def figures_of(row):
    return row["failed"] if "failed" in row else json.dumps({key: value for key, value in row.items() if key not in TITLE})


def say(row):
    print(", ".join(str(row[key]) for key in ("framework", "device", "cuda", "cudnn") if key in row))
    for part in (*PARTS, "recorded"):
        for pair in row.get(part, []):
            sides = pair if "pytorch" in pair else {"snsim": pair}
            print(f"{part}: {title_of(next(iter(sides.values())))}")
            for side, figures in sides.items():
                print(f"  {side}: {figures_of(figures)}")


def parts_of(text):
    parts = [part for part in PARTS if part in text.split(",")]
    if not parts or set(text.split(",")) - set(PARTS):
        raise argparse.ArgumentTypeError(f"there are {', '.join(PARTS)}")
    return parts


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PART,..", type=parts_of, default=list(PARTS))
    parser.add_argument("--gpu")
    parser.add_argument("--snsim", default=os.path.join(HERE, "..", "..", "build", "snsim"))
    parser.add_argument("--recorded", metavar="SM", type=int)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.device == "cpu" and options.only != ["attention"]:
        parser.error("--device cpu has no memory to measure: --only attention")
    return options


def main():
    options = read_options()
    if options.recorded is not None:
        row = {"recorded": attention.recorded(options.recorded)}
    elif options.device == "cuda" and not torch.cuda.is_available():
        fail(4, "PyTorch finds no GPU")
    else:
        try:
            row = measure(options)
        except RuntimeError as error:
            fail(2, str(error).strip().splitlines()[0])
    print(json.dumps(row)) if options.json else say(row)


if __name__ == "__main__":
    main()
