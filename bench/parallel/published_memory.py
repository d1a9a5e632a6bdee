#!/usr/bin/env python3
"""Memory of several GPUs as others published it, beside what snsim says of the same.

    python3 bench/parallel/published_memory.py build/snsim

torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, tables 1 and 3: GiB that PyTorch's allocator has reserved, on H100, 2 sequences of 8,192 tokens a
GPU, fully_shard of each layer, the last of them not resharded, selective activation checkpointing of operations, AdamW,
bfloat16 with shards in float32, a loss of logits in float32. Times are not compared here. `gpu=1` takes norms of one kernel.

Its GPUs have 96 GB, and are given 94 GiB here. 128 GPUs are 16 nodes.
"""
import json
import subprocess
import sys

GIB = 1 << 30
ROWS = [(8, 82.4), (128, 67.0)]  # GPUs, GiB reserved
NETS = ["llm", "llm:gpu=1"]


def ask(snsim, net, gpus):
    done = subprocess.run([snsim, "simulate", "--net", net, "--loss", "cross_entropy_fp32", "--cluster", "h100x8", "--nodes", str(gpus // 8),
                           "--parallel", f"fsdp={gpus},keep-last=yes", "--precision", "bf16-master", "--optimizer", "adamw",
                           "--batch", "2", "--sequence", "8192", "--memory", "94GiB", "--strategy",
                           "pytorch+recompute=selective", "--no-db", "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{net} on {gpus}: {done.stderr}")
    return json.loads(done.stdout)["results"][0]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("| network | GPUs | live, GiB | reserved, GiB | torchtitan | error |")
    print("|---|---:|---:|---:|---:|---:|")
    for net in NETS:
        for gpus, published in ROWS:
            result = ask(sys.argv[1], net, gpus)
            reserved = result["reserved_bytes"] / GIB
            print(f"| {net} | {gpus} | {result['live_peak_bytes'] / GIB:.2f} | {reserved:.2f} | {published:.1f} | "
                  f"{100 * (reserved / published - 1):+.1f} % |")


if __name__ == "__main__":
    main()
