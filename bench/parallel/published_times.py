#!/usr/bin/env python3
"""Iterations of several GPUs as others published them, beside what snsim says of the nearest that it can be asked.

    python3 bench/parallel/published_times.py build/snsim

Megatron-LM, 'Reducing Activation Recomputation in Large Transformer Models' (MLSys 2023), tables 4 and 5: GPT of 2,048
tokens on A100 of 80 GB, tp=8 with sequence parallel, times of an iteration with selective and with full recomputation.
The figures are from memory and were compared with the paper's MFU alone.

Asked is snsim's `megatron`, bf16-master and AdamW: pytorch+recompute=attention is its selective recomputation, and
pytorch+recompute=units beside full. What differs is in docs/measured/parallel.md.
"""
import json
import subprocess
import sys

# name, layers, features, heads, micro-batch, micro-batches, mesh, seconds selective, full
MEGATRON = [
    ("22B", 48, 6144, 64, 4, 1, "tp=8", 1.10, 1.42),
    ("175B", 96, 12288, 96, 1, 64, "tp=8,pp=8,schedule=interleaved:3", 13.75, 18.13),
    ("530B", 105, 20480, 128, 1, 280, "tp=8,pp=35,schedule=interleaved:3", 37.83, 49.05),
    ("1T", 128, 25600, 160, 1, 512, "tp=8,pp=64", 71.49, 94.42),
]
STRATEGIES = ["pytorch+recompute=attention", "pytorch+recompute=units"]


def ask(snsim, row):
    """Seconds of an iteration by strategy."""
    name, layers, features, heads, batch, micros, mesh, *_ = row
    net = f"megatron:layers={layers},hidden={features},heads={heads}"
    command = [snsim, "simulate", "--net", net, "--cluster",
               "dgx_a100", "--memory", "1TiB", "--sequence", "2048", "--batch", str(batch), "--accumulate",
               str(micros), "--parallel", mesh, "--precision", "bf16-master", "--optimizer", "adamw", "--no-db", "--json"]
    for strategy in STRATEGIES:
        command += ["--strategy", strategy]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr}")
    return {r["strategy"]: r["iteration_ns"] / 1e9 for r in json.loads(done.stdout)["results"]}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("| GPT | mesh, micro-batches | selective, s | snsim | error | full, s | snsim | error | cost of full | snsim |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for row in MEGATRON:
        times, (mesh, selective, full) = ask(sys.argv[1], row), row[-3:]
        mine, again = (times[strategy] for strategy in STRATEGIES)
        print(f"| {row[0]} | {mesh}, {row[5]} of {row[4]} | {selective:.2f} | {mine:.2f} | {100 * (mine / selective - 1):+.1f} % | "
              f"{full:.2f} | {again:.2f} | {100 * (again / full - 1):+.1f} % | {100 * (full / selective - 1):.1f} % | "
              f"{100 * (again / mine - 1):.1f} % |")


if __name__ == "__main__":
    main()
