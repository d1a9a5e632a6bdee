#!/usr/bin/env python3
"""Iterations of several GPUs as others published them, beside what snsim says of the nearest that it can be asked.

    python3 bench/parallel/published_times.py build/snsim

Megatron-LM, 'Reducing Activation Recomputation in Large Transformer Models' (MLSys 2023), tables 4 and 5: GPT of 2,048
tokens on A100 of 80 GB, tp=8: times of an iteration with selective recomputation and sequence parallelism, and with full
recomputation and without; and of one layer of 22B. The figures are from memory; the iterations' were compared with the
paper's MFU alone.

Asked is snsim's `megatron`, bf16-master and AdamW: pytorch+recompute=attention is its selective recomputation, and
pytorch+recompute=units with sequence=whole its full one. With sequence parallelism Megatron gathers the inputs of
products once more in backward, gathered=again. What differs is in docs/measured/parallel.md.
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
SPLIT, WHOLE = ",gathered=again", ",sequence=whole"
SELECTIVE, FULL = (SPLIT, "pytorch+recompute=attention"), (WHOLE, "pytorch+recompute=units")

# what of a layer of 22B, how it is asked, ms forward, backward
LAYER = [
    ("no recomputation", (WHOLE, "pytorch"), 7.7, 11.9),
    ("sequence parallelism", (SPLIT, "pytorch"), 7.2, 11.8),
    ("full recomputation", FULL, 7.7, 19.5),
    ("selective", (WHOLE, SELECTIVE[1]), 7.7, 13.2),
    ("selective, sequence parallelism", SELECTIVE, 7.2, 13.1),
]


def ask(snsim, row, how, *more):
    """The result of an iteration; how: what is added to the mesh, and the strategy."""
    name, layers, features, heads, batch, micros, mesh, *_ = row
    net = f"megatron:layers={layers},hidden={features},heads={heads}"
    command = [snsim, "simulate", "--net", net, "--cluster",
               "dgx_a100", "--memory", "1TiB", "--sequence", "2048", "--batch", str(batch), "--accumulate",
               str(micros), "--parallel", mesh + how[0], "--precision", "bf16-master", "--optimizer", "adamw",
               "--strategy", how[1], "--no-db", "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr}")
    return json.loads(done.stdout)["results"][0]


def ask_layer(snsim, how):
    """Forward and backward of one layer in the middle, ms: what lies between its first step and the next layer's."""
    result, begins = ask(snsim, ("22B", 4, *MEGATRON[0][2:]), how, "--steps"), {}
    for step in result["steps_table"]:
        begins.setdefault((step["pass"], ".".join(step["layer"].split(".")[:2])), step["begin_ns"])
    forward = begins["forward", "layers.2"] - begins["forward", "layers.1"]
    backward = begins["backward", "layers.1"] - begins["backward", "layers.2"]
    return forward / 1e6, backward / 1e6


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("| GPT | mesh, micro-batches | selective, s | snsim | error | full, s | snsim | error | cost of full | snsim |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for row in MEGATRON:
        mesh, selective, full = row[-3:]
        mine, again = (ask(sys.argv[1], row, how)["iteration_ns"] / 1e9 for how in (SELECTIVE, FULL))
        print(f"| {row[0]} | {mesh}, {row[5]} of {row[4]} | {selective:.2f} | {mine:.2f} | {100 * (mine / selective - 1):+.1f} % | "
              f"{full:.2f} | {again:.2f} | {100 * (again / full - 1):+.1f} % | {100 * (full / selective - 1):.1f} % | "
              f"{100 * (again / mine - 1):.1f} % |")
    print("\n| a layer of 22B | forward, ms | snsim | backward, ms | snsim | both | snsim | error |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, how, *published in LAYER:
        mine, (forward, backward) = ask_layer(sys.argv[1], how), published
        print(f"| {name} | {forward:.1f} | {mine[0]:.1f} | {backward:.1f} | {mine[1]:.1f} | {sum(published):.1f} | {sum(mine):.1f} | "
              f"{100 * (sum(mine) / sum(published) - 1):+.1f} % |")


if __name__ == "__main__":
    main()
