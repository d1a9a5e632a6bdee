"""README.md of what scripts/validate-gpu measured: which aims are met, then a table for each kind of measurement. What was not measured
has no line; what failed has its message."""
import statistics

from measure import TOLD
from page import MATH, Rows, error, mib, percent, section, table, title, verdict
import report_kernels
import report_times

BYTES_LIMIT, TIME_LIMIT, CACHE_LIMIT, ALLOCATED_LIMIT, RESERVED_LIMIT, LARGEST_LIMIT = 0.02, 0.10, 0.03, 0.01, 0.05, 3
FASTER_NETS, DIALECT_NETS, DIALECT_RECORDED = 3, 12, 4
CACHE = "liveness+cache+recompute=cost"


# ---- which aims are met ----

def conformity(rows):
    programs, runs = rows.of("tests"), rows.results("same")
    if not programs and not runs:
        return None
    bad = [f"{row['side']}: {row['tests_failed']} failed, {row['skipped']} skipped" for row in programs if row["tests_failed"] or row["skipped"]]
    bad += [f"{title(row)} {r['strategy']}: off by {r['largest_relative_difference']:.1g}" for row, r in runs if not r["bit_equal_to_baseline"]]
    done = f"{sum(row['passed'] for row in programs)} tests passed" if programs else "the tests were not run"
    done += f"; {len(runs)} trainings of {len({row['net'] for row, _ in runs})} networks" if runs else "; no network was trained"
    if not bad and not (programs and runs):
        return f"in part: {done}"
    return verdict("; ".join([done, *bad]) if bad else f"{done}, all equal to the bit", not bad)


def is_pool_exact(r):
    return r["planned_pool_bytes"] == r["touched_pool_bytes"] == r["reserved_pool_bytes"]


def bytes_found(rows):
    runs = rows.results("same", "fastest")
    if not runs:
        return None
    off = [f"{title(row)} {r['strategy']}" for row, r in runs if not is_pool_exact(r)]
    errors = [(abs(error(r["predicted_device_bytes"], r["measured_device_bytes"])), row, r) for row, r in runs]
    worst, row, r = max(errors, key=lambda found: found[0])
    text = f"pool exact in {len(runs) - len(off)} of {len(runs)}; device at worst {100 * worst:.2f} % off ({title(row)}, {r['strategy']})"
    return verdict(text, not off and worst <= BYTES_LIMIT)


def time_errors(runs):
    return [(error(r["predicted_iteration_ns"], r["measured_iteration_ns"]), row, r) for row, r in runs if r.get("predicted_iteration_ns")]


def times_found(rows):
    errors = time_errors(rows.results("carried"))
    if not errors:
        return None
    median = statistics.median(abs(found) for found, _, _ in errors)
    worst, row, r = max(errors, key=lambda found: abs(found[0]))
    own = time_errors(rows.results("fastest"))
    text = f"median {100 * median:.1f} %, worst {percent(worst)} ({title(row)}, {r['strategy']}), of networks not calibrated"
    if own:
        text += f"; of calibrated ones median {100 * statistics.median(abs(found) for found, _, _ in own):.1f} %"
    return verdict(text, median <= TIME_LIMIT)


def idle_caches(rows):
    """(row, cache over baseline in time, layers re-run) where the cache moved nothing."""
    found = []
    for row in rows.of("fastest"):
        by_name = {r["strategy"]: r for r in row["results"] if "measured_iteration_ns" in r}
        cache, baseline = by_name.get(CACHE), by_name.get("baseline")
        if cache and baseline and not cache["measured_out_bytes"]:
            found.append((row, error(cache["measured_iteration_ns"], baseline["measured_iteration_ns"]), cache["recomputed_layers"]))
    return found


def caches_found(rows):
    found = idle_caches(rows)
    if not found:
        return None
    row, worst, again = max(found, key=lambda case: case[1])
    return verdict(f"{percent(worst)} of baseline's time at worst ({title(row)}, {again} layers re-run), {len(found)} cases", worst <= CACHE_LIMIT)


def speeds(rows):
    """(network and batch, tf32) -> (snsim's best strategy and images/s, PyTorch's by benchmark)."""
    found = {}
    for row in rows.of("fastest"):
        done = [r for r in row["results"] if "measured_iteration_ns" in r]
        theirs = {other["benchmark"]: other["images_per_second"] for other in
                  rows.of("pytorch", net=row["net"], batch=row["batch"], tf32=row["tf32"])}
        if done and theirs:
            best = max(done, key=lambda r: r["images_per_second"])
            found[row["net"], row["batch"], row["tf32"]] = (best["strategy"], best["images_per_second"], theirs)
    return found


def speeds_found(rows):
    found = speeds(rows)
    if not found:
        return None
    texts, met = [], True
    for tf32 in (False, True):
        ratios = {net: ours / max(theirs.values()) for (net, _, math), (_, ours, theirs) in found.items() if math == tf32}
        faster = sum(ratio >= 1 for ratio in ratios.values())
        met = met and faster >= FASTER_NETS
        texts.append(f"{MATH[tf32]}: {faster} of {len(ratios)} networks at least as fast ({', '.join(f'{net} {ratio:.2f}' for net, ratio in ratios.items())})")
    return verdict("; ".join(texts), met)


def largest_pairs(rows):
    theirs = {row["net"]: row["largest"] for row in rows.of("largest", side="pytorch")}
    return [(row, theirs[row["net"]]) for row in rows.of("largest", side="snsim") if theirs.get(row["net"])]


def largest_found(rows):
    best = {}
    for row, theirs in largest_pairs(rows):
        best[row["net"]] = max(best.get(row["net"], 0), row["largest"] / theirs)
    if not best:
        return None
    text = ", ".join(f"{net} {ratio:.2f} times" for net, ratio in best.items())
    return verdict(text, min(best.values()) >= LARGEST_LIMIT)


def dialect_errors(rows, key):
    return [(error(row["snsim"][key], row["pytorch"][key]), row) for row in rows.of("dialect")]


def dialect_found(rows):
    texts, met = [], True
    for key, word, limit in (("allocated_bytes", "allocated", ALLOCATED_LIMIT), ("reserved_bytes", "reserved", RESERVED_LIMIT)):
        errors = dialect_errors(rows, key)
        if not errors:
            return None
        worst, row = max(errors, key=lambda found: abs(found[0]))
        within = sum(abs(found) <= limit for found, _ in errors)
        recorded = sum(row["precision"] == "recorded" for _, row in errors)
        met = met and within == len(errors) >= DIALECT_NETS and recorded >= DIALECT_RECORDED
        texts.append(f"{word} within {100 * limit:.0f} % in {within} of {len(errors)}, worst {percent(worst)} ({row['net']}, {row['precision']})")
    return verdict("; ".join(texts), met)


def kinds_found(rows):
    found = report_times.found(rows)
    return verdict(*found) if found else None


AIMS = (
    ("a", "all strategies give the same bits, and agree with the reference", conformity),
    ("b", "pool exact, device bytes within 2 %", bytes_found),
    ("c", "times within 10 % (median) on networks that were not calibrated", times_found),
    ("d", "`superneurons` within 3 % of baseline's time where the cache has nothing to move", caches_found),
    ("e", "at least PyTorch eager's images/s on three networks", speeds_found),
    ("e", "at least three times PyTorch's largest batch", largest_found),
    ("f", "PyTorch's allocated bytes within 1 %, reserved within 5 %, twelve networks, four of them recorded", dialect_found),
    ("f", "each attention by the kernel that the recorder takes, which keeps as many bytes", report_kernels.attention_found),
    ("f", "cuDNN's workspaces as the row `pytorch` has them", report_kernels.workspaces_found),
    ("f", "a workspace is never needed: where memory is short PyTorch takes another algorithm", report_kernels.shortage_found),
    ("g", "times from recordings within 12 % (median) on a card of which nothing was fitted", kinds_found),
)


# ---- tables ----

def memory_tables(rows):
    return [f"{row['of']} ({row['device']}, driver {row['driver']}, modules {row['modules'].lower()}), MiB in use beyond {mib(row['before_bytes'])}:\n\n"
            + table(["behind", "MiB"], [(stage["stage"], mib(stage["bytes"])) for stage in row["stages"]]) for row in rows.of("memory")]


def calibration_table(rows):
    return table(["network", "MiB taken by libraries", "TFLOP/s", "GB/s", "shortest step us", "copies out GB/s", "in", "both", "residual"],
                 [(title(row), mib(row["context_bytes"]), f"{row['flops'] / 1e12:.2f}", f"{row['memory_bytes_per_s'] / 1e9:,.0f}",
                   f"{row['launch_ns'] / 1e3:.1f}", *(f"{row[key + '_bytes_per_s'] / 1e9:.1f}" for key in ("out", "in", "together")),
                   f"{row['residual']:.2f}") for row in rows.of("calibrate")])


def strategy_line(row, r):
    predicted = r.get("predicted_iteration_ns")
    return (title(row), r["strategy"], "=" if is_pool_exact(r) else mib(r["touched_pool_bytes"] - r["planned_pool_bytes"]),
            mib(r["predicted_device_bytes"]), mib(r["measured_device_bytes"]),
            percent(error(r["predicted_device_bytes"], r["measured_device_bytes"]), 2),
            f"{predicted / 1e6:.2f}" if predicted else "-", f"{r['measured_iteration_ns'] / 1e6:.2f}",
            percent(error(predicted, r["measured_iteration_ns"])) if predicted else "-", f"{r['images_per_second']:.1f}",
            "same" if r["bit_equal_to_baseline"] else f"{r['largest_relative_difference']:.0e}")


def strategy_table(rows, part):
    return table(["network", "strategy", "pool", "device MiB", "seen", "error", "ms", "seen", "error", "images/s", "result"],
                 [strategy_line(row, r) for row, r in rows.results(part)])


def overlap_table(rows):
    """Where something is copied: how fast, what the kernels take beside it, and what was waited."""
    lines = []
    for row in rows.of("fastest"):
        by_name = {r["strategy"]: r for r in row["results"] if "measured_iteration_ns" in r}
        for r in by_name.values():
            alone = by_name.get(r["strategy"].replace("+offload", "").replace("+cache", ""))
            if not r["measured_out_bytes"]:
                continue
            slower = percent(error(r["compute_ns"], alone["compute_ns"])) if alone else "-"
            lines.append((title(row), r["strategy"], mib(r["measured_out_bytes"]), f"{r['measured_out_bytes'] / max(1, r['out_ns']):.1f}",
                          f"{r['measured_in_bytes'] / max(1, r['in_ns']):.1f}", slower,
                          f"{r.get('predicted_stall_ns', 0) / 1e6:.2f}", f"{r['stall_ns'] / 1e6:.2f}"))
    return table(["network", "strategy", "MiB out", "GB/s", "in GB/s", "kernels beside copies", "stall ms", "seen"], lines)


def speed_table(rows):
    def line(key, ours, theirs):
        cells = [f"{theirs[benchmark]:.1f}" if benchmark in theirs else "-" for benchmark in (False, True)]
        return (f"{key[0]}, {key[1]}, {MATH[key[2]]}", f"`{ours[0]}`", f"{ours[1]:.1f}", *cells, f"{ours[1] / max(theirs.values()):.2f}")
    return table(["network", "snsim's fastest", "images/s", "PyTorch eager", "with cudnn.benchmark", "ratio"],
                 [line(key, found[:2], found[2]) for key, found in speeds(rows).items()])


def speed_note(rows):
    return ("The batch is on the GPU on both sides. snsim's host draws dropout's masks between iterations, which is in nobody's time; PyTorch "
            "draws them within.\n") if speeds(rows) else ""


def largest_table(rows):
    lines = []
    for row, theirs in largest_pairs(rows):
        refused = [f"{batch}: {of['why'][:160]}" for batch, of in row["tries"].items() if not of["trained"]]
        speed = next((f"{of['images_per_second']:.1f}" for batch, of in row["tries"].items() if int(batch) == row["largest"] and of["trained"]), "-")
        lines.append((row["net"], f"`{row['strategy']}`", theirs, row["predicted"], row["largest"], f"{row['largest'] / theirs:.2f}", speed,
                      "; ".join(refused) or "-"))
    return table(["network", "strategy", "PyTorch", "predicted", "snsim", "ratio", "images/s", "what did not train"], lines)


def dialect_table(rows):
    lines = []
    for row in rows.of("dialect"):
        ours, theirs = row["snsim"], row["pytorch"]
        cells = [f"{row['net']}, {row['batch']}, {row['precision']}"]
        for key, seen in (("allocated_bytes", "allocated_bytes"), ("reserved_bytes", "reserved_bytes"), ("peak_device_bytes", "driver_bytes"),
                          ("context_bytes", "context_bytes")):
            cells += [mib(ours[key]), mib(theirs[seen]), percent(error(ours[key], theirs[seen]), 2) if theirs[seen] else "-"]
        lines.append(cells)
    return table(["network", *(word for key in ("allocated", "reserved", "on the device", "context") for word in (f"{key} MiB", "PyTorch", "error"))], lines)


def rates_table(rows):
    lines = []
    for row in rows.of("rates"):
        lines += [(f"product, {word}", f"{rate / 1e12:.1f} TFLOP/s") for word, rate in row["flops"].items()]
        lines += [(name, f"{row[key + '_bytes_per_s'] / 1e9:,.1f} GB/s") for name, key in
                  (("copy within the device", "copy"), ("copies out", "out"), ("copies in", "in"), ("both at once", "together"))]
    return table(["", "measured"], lines)


def profile_table(known, profile):
    """What a measurement gave, beside what stood there."""
    changed = [key for key, value in (profile or {}).items() if known.get(key) != value and key != "memory_source"]
    return table(["constant of the profile", "known", "measured"], [(f"`{key}`", known.get(key, "by architecture"), profile[key]) for key in changed])


def failures(rows):
    return "".join(f"- {' '.join(str(row[key]) for key in TOLD if key in row)}{', TF32' if row.get('tf32') else ''}: {row['failed']}\n" for row in rows.failed()) \
        + report_kernels.kernel_failures(rows)


def text(lines, known=None, profile=None):
    """The page. A profile is shown beside the known one."""
    rows = Rows(lines)
    machine = rows.of("machine")[0]
    with_pytorch = [row for part in ("pytorch", "kernels", "times") for row in rows.of(part)] + [row["pytorch"] for row in rows.of("dialect")]
    frameworks = sorted({f"{row['framework']} (CUDA {row['cuda']}, cuDNN {row['cudnn']})" for row in with_pytorch if "cuda" in row})
    aims = [(f"{letter}: {aim}", judge(rows) or "not measured") for letter, aim, judge in AIMS]
    head = f"# Predicted and measured on {machine['hardware']}\n\n{machine['date']} UTC, {machine['version']}; {machine['device']}"
    return (head + (f"; {', '.join(frameworks)}" if frameworks else "") + ".\n"
            + section("What was aimed at", table(["aim", "found"], aims))
            + section("Memory that libraries take", *memory_tables(rows))
            + section("Calibrations", calibration_table(rows))
            + section("Networks that were not calibrated yet, predicted by what was measured of others", strategy_table(rows, "carried"))
            + section("The fastest algorithms that fit", strategy_table(rows, "fastest"))
            + section("The same deterministic algorithms for all strategies", strategy_table(rows, "same"))
            + section("Copies beside kernels", overlap_table(rows))
            + section("Speed beside PyTorch eager", speed_note(rows), speed_table(rows))
            + section("The largest batch that trains, found by trying", largest_table(rows))
            + section("PyTorch's memory, and the row pytorch", dialect_table(rows))
            + section("Rates, and the profile of this GPU", rates_table(rows), profile_table(known, profile))
            + section("Attention's kernels", report_kernels.attention_note(rows), report_kernels.attention_table(rows))
            + section("What convolutions take beside their results", report_kernels.workspaces_table(rows))
            + section("Where memory is short", report_kernels.shortage_table(rows))
            + section("Times by kind of kernel, from recordings", *report_times.tables(rows))
            + section("What failed", failures(rows)))
