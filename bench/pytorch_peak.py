"""The most memory that a process of PyTorch's has had after each of some iterations on the CPU, in MiB: training, by SGD with
momentum, a network of snsim's made of PyTorch's modules (bench/pytorch_network.py), as bench/pytorch_twin.py does.

    python3 bench/pytorch_peak.py --net resnet50 --batch 8 [--iterations 10] [--keep-gradients] [--plain] [--threads 2]

--keep-gradients: zero_grad(set_to_none=False), as was PyTorch's default before 2.0. --plain: torchvision's network of that
name, whose ReLUs are written over their inputs. --channels-last: tensors lie so.
Behind the peak stands what of the process is its own and what lies in files (RssAnon, RssFile) after that iteration.
Exit codes: 2 and 3 for what was asked, 4 where PyTorch is missing.
"""
import argparse
import json
import os
import sys

try:
    import torch
    from torch.nn import functional as F
except ImportError as error:
    print(f"pytorch_peak.py: error: PyTorch cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

import pytorch_zoo
from pytorch_network import Network
from pytorch_twin import ask, fail


def resident(key):
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(key))


def say(when):
    print(f"{when:<16}{resident('VmHWM'):>8,.0f}{resident('RssAnon'):>8,.0f}{resident('RssFile'):>8,.0f}", flush=True)


def make(options):
    """The network, and the sides of its images."""
    graph = ["graph", "--net", options.net, "--json", "--dialect", "pytorch", "--batch", str(options.batch)]
    described = json.loads(ask(options.snsim, graph))["network"]
    if "tokens" in described:
        fail(2, f"{options.net}: of tokens; networks of images are measured")
    if not options.plain:
        return Network(described, lambda x, layer, training: F.dropout(x, layer["ratio"], training)), described["input"]
    try:
        return pytorch_zoo.torchvision_network(options.net.removeprefix("tv_")), described["input"]
    except (ValueError, ImportError) as error:
        fail(2, f"--plain: torchvision's networks: {error}")


def train(options):
    net, sides = make(options)
    images, labels = torch.randn(options.batch, *sides), torch.randint(10, (options.batch,))
    if options.channels_last:
        net, images = net.to(memory_format=torch.channels_last), images.contiguous(memory_format=torch.channels_last)
    update = torch.optim.SGD(net.parameters(), 0.001, momentum=0.9, weight_decay=0.0005)
    for i in range(options.iterations):
        update.zero_grad(set_to_none=not options.keep_gradients)
        ends = [net(images)] if options.plain else net(images)
        sum(F.cross_entropy(end, labels) for end in ends).backward()
        update.step()
        say(f"iteration {i + 1}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", default="resnet50")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep-gradients", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--snsim", default=os.path.join(os.path.dirname(__file__), "..", "build", "snsim"))
    options = parser.parse_args()
    if min(options.batch, options.iterations, options.threads) < 1:
        parser.error("--batch, --iterations and --threads are at least 1")
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, {options.net}, batch {options.batch}\n{'':<16}{'peak':>8}{'own':>8}{'files':>8}")
    say("imported")
    train(options)


if __name__ == "__main__":
    main()
