"""The totals of docs/pytorch.md once more, from recordings: each network is recorded in the loop of these totals, once for all
batches, and `snsim --net FILE.rec` answers. Beside it stands what snsim says of the network that it knows by itself.

    PYTHONPATH=python python3 bench/record/record_totals.py                              # all 108
    PYTHONPATH=python python3 bench/record/record_totals.py --net tv_resnet50 --optimizer momentum --precision amp-bf16

A row each: the live peak of the recording, by how much the network's, the document's and MemTracker's (--tracker) differ from
it, and the bytes of the optimizer's states that the recording has on the host: Adam counts steps there unless it is fused,
and the document's figures have 4 bytes a tensor for that on the GPU, and in the update 4 more, the loss's gradient, which no
loop keeps. With adam:capturable the counters are on the GPU; its update holds two scalars a tensor beside, which the
network has not. Exit code 1 where a difference is not these bytes.
"""
import argparse
import json
import logging
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python"), str(ROOT / "tests" / "python")]
warnings.simplefilter("ignore")
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)  # it misses triton, which nothing here needs

import oracle  # noqa: E402  ahead of torch
import torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402
import pytorch_zoo  # noqa: E402
import replay  # noqa: E402
import snsim  # noqa: E402

NETS = ("tv_squeezenet1_1,tv_resnet18,tv_alexnet,tv_vgg16,tv_vgg19,tv_mobilenet_v2,tv_resnet50,tv_inception_v3,tv_densenet121,"
        "tv_resnet101,tv_resnet152,resnext50_32x4d,wide_resnet50_2,convnext_tiny,efficientnet_b0,efficientnet_b4,mobilenet_v3_small,"
        "mobilenet_v3_large")
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.01),
    "momentum": lambda parameters: torch.optim.SGD(parameters, 0.01, momentum=0.9),
    "adam": torch.optim.Adam,
    "adam:capturable": lambda parameters: torch.optim.Adam(parameters, capturable=True),
    "adam:impl=fused": lambda parameters: torch.optim.Adam(parameters, fused=True),
    "adamw": torch.optim.AdamW, "adamw:impl=fused": lambda parameters: torch.optim.AdamW(parameters, fused=True)}
CAPTURABLE = ":capturable"  # of PyTorch alone
AUTOCAST = {"fp32": None, "amp-bf16": torch.bfloat16}


def words(text):
    return [word for word in text.split(",") if word]


def loop(name, shape, optimizer, autocast):
    """make of the document's iteration, which holds the batch and the loss until the next one."""
    def make(batch):
        model = pytorch_zoo.torchvision_network(pytorch_zoo.torchvision_name(name)).train()
        update = OPTIMIZERS[optimizer](model.parameters())
        images, labels = torch.empty(batch, *shape, device="cuda"), torch.zeros(batch, dtype=torch.long, device="cuda")

        def step():
            update.zero_grad()
            with torch.autocast("cuda", autocast, enabled=autocast is not None):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            update.step()
        return [model], [update], step
    return make


class Program:
    def __init__(self, path):
        self.path = path

    def ask(self, *arguments):
        done = subprocess.run([self.path, *arguments], capture_output=True, text=True)
        if done.returncode > 1:
            raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def peak(self, net, batch, *options):
        """The live peak in bytes, and where it is."""
        answer = self.ask("--net", str(net), "--batch", str(batch), "--strategy", "pytorch", "--gpu", "a100_80", "--costs", "model",
                          "--no-db", "--json", *options)
        row = answer["results"][0]
        return row["live_peak_bytes"], f"{row['peak_layer']} {row['peak_pass']}"

    def shape(self, net):
        return self.ask("graph", "--net", net, "--json")["network"]["input"]


def documented(optimizers):
    """The figures of the table of 108 totals, by network, batch and optimizer."""
    text = (ROOT / "docs" / "pytorch.md").read_text()
    rows = re.findall(r"^\| (\w+) \| (\d+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| 0, 0, ", text, re.MULTILINE)
    return {(net, int(batch), optimizer): int(total.replace(",", ""))
            for net, batch, *totals in rows for optimizer, total in zip(optimizers, totals)}


def on_host(file):
    """Bytes of optimizer states that are not on the GPU, and how many there are."""
    sizes = [size for size, _, _, device, role in file.storages if device == "cpu" and role == "state"]
    return sum(sizes), len(sizes)


def expected(optimizer, host, tensors, in_update):
    """By how much the network is higher."""
    if optimizer.endswith(CAPTURABLE):
        return 4 - 8 * tensors if in_update else 0
    return host + 4 * (host > 0 and in_update)


class Totals:
    def __init__(self, options):
        self.options, self.program = options, Program(options.snsim)
        self.documented = documented(("sgd", "momentum", "adam")) if options.precision == "fp32" else {}
        self.rows = self.equal = self.explained = self.wrong = 0

    def network(self, name, optimizer, folder):
        shape, path = self.program.shape(name), folder / "net.rec"
        make = loop(name, shape, optimizer, AUTOCAST[self.options.precision])
        snsim.record(make, path=path)
        for batch in self.options.batch:
            self.row(name, batch, optimizer, path, make)

    def row(self, name, batch, optimizer, path, make):
        file = replay.File(path)
        host, counters = on_host(file)
        ours, where = self.program.peak(path, batch)
        known, known_where = self.program.peak(name, batch, "--optimizer", optimizer.replace(CAPTURABLE, ""), "--precision", self.options.precision)
        text = self.documented.get((name, batch, optimizer.replace(CAPTURABLE, "")))
        difference = known - ours
        due = expected(optimizer, host, len(file.parameters), where.endswith("update"))
        self.rows += 1
        self.equal += not difference
        self.explained += difference == due != 0
        self.wrong += difference not in (0, due)
        tracked = f", MemTracker {oracle.memtracker(make, batch) - replay.peak(file, batch):+,}" if self.options.tracker else ""
        print(f"| {name} | {batch} | {optimizer} | {ours:,} | {difference:+,} | {'-' if text is None else format(text - ours, '+,')} | "
              f"{host:,} in {counters} | {where}{'' if where == known_where else ' / ' + known_where}{tracked} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", type=words, default=words(NETS), help="torchvision's, names parted by commas")
    parser.add_argument("--batch", type=lambda text: [int(word) for word in words(text)], default=[16, 64])
    parser.add_argument("--optimizer", type=words, default=["sgd", "momentum", "adam"], help=f"of {', '.join(OPTIMIZERS)}")
    parser.add_argument("--precision", choices=AUTOCAST, default="fp32")
    parser.add_argument("--tracker", action="store_true", help="also run MemTracker over the loop, beside the file with sums apart")
    parser.add_argument("--snsim", default=os.path.join(ROOT, "build", "snsim"))
    options = parser.parse_args()
    totals = Totals(options)
    print("| network | batch | optimizer | recording | network | document | states on the host | peak |\n|---|---:|---|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.net:
            for optimizer in options.optimizer:
                totals.network(name, optimizer, pathlib.Path(folder))
    print(f"{totals.rows} totals: {totals.equal} equal, {totals.explained} but for counters and scalars of Adam, {totals.wrong} others")
    sys.exit(bool(totals.wrong))


if __name__ == "__main__":
    main()
