"""Asks snsim the questions of docs/measured/parallel.md and says how far it is from what PyTorch's trackers count. Needs no PyTorch.

    python3 bench/parallel/compare.py --snsim build/snsim
    python3 bench/parallel/compare.py --snsim build/snsim --update    # writes the last column anew

The last column of the table holds what snsim says less what PyTorch holds, or "-" where snsim is not asked: of networks that it has not and of
optimizers that it refuses of several GPUs. Under trackers gradients are added apart, which is `pytorch-1.7`; with tp,
which that one does not share, `pytorch`, as with pp, of which all stages are compared.

Exit codes: 1 where a difference is not the written one, 2 where something else goes wrong.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "measured" / "parallel.md"
COLUMNS = 11  # question, eight components, total, difference
STAGES = 6  # question, each of four stages, differences
QUESTION = re.compile(r"(?P<net>[^ ]+), (?P<batch>\d+)(?: x (?P<tokens>\d+))?, (?P<mesh>[^ ]*=[^ ]*?)(?P<more>(?:, [^,]+)*)")
NEAR = 0.01  # percent, of which the screen says how many are so near (sim/capacity/bands.h)
PRECISIONS = ("bf16", "bf16-master", "amp-bf16")


def question(row):
    """snsim's options, or None where it is not asked."""
    words, optimizer = ["--net", row["net"], "--batch", row["batch"], "--parallel", row["mesh"]], "momentum"
    strategy = "pytorch" if "tp=" in row["mesh"] or "pp=" in row["mesh"] else "pytorch-1.7"
    if row["tokens"]:
        words += ["--sequence", row["tokens"]]
    for word in row["more"].split(", ")[1:]:
        if word.startswith("accumulate "):
            words += ["--accumulate", word.split()[1]]
        elif word.startswith("checkpoint "):
            strategy += f"+recompute=units:{word.split()[1]}"
        elif word == "norms of transformers":  # of pipelines measured on a CPU, where all norms are of simple operations
            words[1] += "" if "pp=" in row["mesh"] else ",gpu=1,simple_norms=1"
        elif word.startswith("recompute="):
            strategy += f"+{word}"
        elif word in PRECISIONS:
            words += ["--precision", word]
        else:
            optimizer = word if ":" in word or not word.startswith("adam") else f"{word}:impl=foreach"
    if row["net"].startswith("stack:") or optimizer.endswith("impl=loop"):
        return None
    return words + ["--optimizer", optimizer, "--strategy", strategy, "--gpu", "h100", "--no-db", "--json"]


def ask(program, words):
    """Stages and shards may be of any number: one node has them all."""
    node = {"snsim_cluster": 1, "name": "compared", "gpu": "h100_sxm", "gpus_per_node": 64, "nodes": 1, "communicator_mib": 0,
            "node": {"link": "nvlink", "line_gb_per_s": 450, "bus_gb_per_s": 370}}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(node, file)
        file.flush()
        return answer(program, words + ["--cluster", file.name] if "pp=" in " ".join(words) else words)


def answer(program, words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def difference(program, row, cells):
    """Of the total; of a pipeline of each stage."""
    words = question(row)
    if words is None:
        return "-"
    if len(cells) == STAGES:
        stages = ask(program, words)["stages"]
        return ", ".join(f"{stage['live_peak_bytes'] - number(cells[1 + i]):+,}".replace("+0", "0") for i, stage in enumerate(stages))
    total = number(cells[-2])
    off = ask(program, words)["results"][0]["live_peak_bytes"] - total
    return f"{off:+,} ({100 * off / total:+.2g} %)" if off else "0"


def percent(off):
    """Without its sign, of a difference as the page has it."""
    return abs(float(off.split("(")[1].split()[0])) if "(" in off else 0


def number(cell):
    return int(cell.replace(",", ""))


def fail(text):
    print(f"compare.py: error: {text}", file=sys.stderr)
    sys.exit(2)


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--snsim", default="build/snsim", metavar="PROGRAM")
    made.add_argument("--update", action="store_true", help="write what is found into the page")
    options = made.parse_args()
    lines, errors, stages, other = PAGE.read_text().splitlines(), [], 0, 0
    for i, line in enumerate(lines):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        found = QUESTION.fullmatch(cells[0]) if len(cells) in (COLUMNS, STAGES) else None
        if not found:
            continue
        off, written = difference(options.snsim, found, cells), cells[-1]
        other += off != written
        if len(cells) == STAGES:
            stages += 1
        elif off != "-":
            errors.append(percent(off))
        print(f"{off:>24}  {cells[0]}{'' if off == written else f'  (the page: {written})'}", flush=True)
        lines[i] = f"| {' | '.join([*cells[:-1], off])} |"
    if not errors:
        fail(f"{PAGE} has no rows")
    near = sum(each <= NEAR for each in errors)
    print(f"{near} of {len(errors)} totals within {NEAR} %, {errors.count(0)} of them equal to the byte, worst {max(errors):.2g} %; "
          f"{stages} pipelines, stage by stage; {other} not as the page has them")
    if options.update:
        PAGE.write_text("\n".join(lines) + "\n")
    sys.exit(1 if other and not options.update else 0)


if __name__ == "__main__":
    main()
