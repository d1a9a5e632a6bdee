"""What scripts/validate-gpu found of PyTorch's kernels, beside what snsim says of them: lines of aims, tables, and what failed."""
from page import MIB, mib, table, verdict

SAME_BYTES = 1024  # seeds and the like, of an attention
WORKSPACE_LIMIT, WORKSPACE_LEAST = 0.10, MIB  # within either


def kernel_cases(rows, side):
    """(PyTorch's figures, snsim's) of a part of the kernels, where both have some."""
    pairs = [pair for row in rows.of("kernels", side=side) for pair in row[side] if "snsim" in pair]
    return [(pair["pytorch"], pair["snsim"]) for pair in pairs if not any("failed" in of for of in pair.values())]


def attention_differs(theirs, ours):
    return theirs["kernel"] != ours["kernel"], abs(theirs["kept_bytes"] - ours["kept_bytes"]) > SAME_BYTES


def attention_found(rows):
    cases = kernel_cases(rows, "attention")
    if not cases:
        return None
    kernels, kept = (sum(flags) for flags in zip(*(attention_differs(*case) for case in cases)))
    return verdict(f"{len(cases) - kernels} of {len(cases)} cases have the kernel, {len(cases) - kept} keep the bytes", not kernels and not kept)


def workspace_sides(theirs, ours):
    """(pass, what PyTorch takes, what snsim says); backward is the larger of its two kernels."""
    backward = max(theirs["data_bytes"], theirs["filter_bytes"])
    return ("forward", theirs["forward_bytes"], ours["forward_bytes"]), ("backward", backward, ours["backward_bytes"])


def is_near(measured, predicted):
    return abs(predicted - measured) <= max(WORKSPACE_LEAST, WORKSPACE_LIMIT * measured)


def workspaces_found(rows):
    sides = [(f"{theirs['layer']}, {theirs['numbers']} {side}", measured, predicted) for theirs, ours in kernel_cases(rows, "workspaces")
             for side, measured, predicted in workspace_sides(theirs, ours)]
    if not sides:
        return None
    near = sum(is_near(measured, predicted) for _, measured, predicted in sides)
    name, measured, predicted = max(sides, key=lambda side: abs(side[2] - side[1]))
    return verdict(f"{near} of {len(sides)} kernels' within {100 * WORKSPACE_LIMIT:.0f} % or 1 MiB; at worst {mib(predicted)} MiB for {mib(measured)} ({name})",
                   near == len(sides))


def shortage_found(rows):
    cases = [pair["pytorch"] for row in rows.of("kernels", side="shortage") for pair in row["shortage"] if "failed" not in pair["pytorch"]]
    if not cases:
        return None
    texts = [f"{case['numbers']} runs with {mib(case['least_bytes'])} of {mib(case['enough']['held_bytes'])} MiB ({case['found']})" for case in cases]
    return verdict("; ".join(texts), not any(case["found"] == "needs all that it takes" for case in cases))


def attention_note(rows):
    cases = kernel_cases(rows, "attention")
    differ = f"Of {len(cases)} cases {sum(any(attention_differs(*case)) for case in cases)} differ, in MiB beyond what was there.\n"
    return "".join(f"cuBLAS's workspaces: {mib(row['cublas']['forward_bytes'])} MiB in forward, {mib(row['cublas']['backward_bytes'])} MiB more in "
                   f"backward. {differ}" for row in rows.of("kernels", side="attention"))


def attention_table(rows):
    keys = [f"{key}_bytes" for key in ("kept", "forward_peak", "backward_peak")]
    return table(["attention", "PyTorch", "snsim", *(word for key in ("kept", "forward at most", "backward at most") for word in (key, "snsim"))],
                 [(theirs["case"], theirs["kernel"], ours["kernel"], *(f"{of[key] / MIB:,.2f}" for key in keys for of in (theirs, ours)))
                  for theirs, ours in kernel_cases(rows, "attention") if any(attention_differs(theirs, ours))])


def first_call(theirs):
    """What a kernel took when it was first called, where that was more."""
    firsts = {kernel: theirs[f"{kernel}_first_bytes"] for kernel in ("forward", "data", "filter") if f"{kernel}_first_bytes" in theirs}
    return ", ".join(f"{kernel} {mib(count)}" for kernel, count in firsts.items()) or "-"


def workspaces_table(rows):
    lines = []
    for pair in (pair for row in rows.of("kernels", side="workspaces") for pair in row["workspaces"]):
        theirs, ours = pair["pytorch"], pair.get("snsim", {})
        if "failed" not in theirs:
            said = [mib(ours[key]) if key in ours else "-" for key in ("forward_bytes", "backward_bytes")]
            lines.append((theirs["layer"], theirs["numbers"], mib(theirs["tensor_bytes"]), mib(theirs["forward_bytes"]), said[0],
                          mib(theirs["data_bytes"]), mib(theirs["filter_bytes"]), said[1], first_call(theirs)))
    return table(["convolution", "numbers", "its tensors MiB", "forward", "snsim", "gradient of data", "of the filter", "snsim", "first calls that took more"], lines)


def shortage_table(rows):
    lines = []
    for pair in (pair for row in rows.of("kernels", side="shortage") for pair in row["shortage"]):
        case, ours = pair["pytorch"], pair.get("snsim", {})
        if "failed" not in case:
            enough, least = case["enough"], case["least"]
            said = [mib(ours[key]) if key in ours else "-" for key in ("device_bytes", "workspace_bytes", "least_bytes")]
            lines.append((f"{case['numbers']}, {case['batch']}", mib(enough["held_bytes"]), said[0], mib(enough["peak_bytes"]), mib(enough["workspace_bytes"]),
                          said[1], mib(case["least_bytes"]), said[2], mib(least["peak_bytes"]), f"{enough['ms']:.1f}", f"{least['ms']:.1f}", case["found"]))
    return table(["two convolutions, batch", "held MiB", "snsim", "asked for", "a workspace", "snsim", "least that runs", "snsim", "asked for then", "ms",
                  "ms then", "so it"], lines)


def kernel_failures(rows):
    """What failed within a part, a case at a time."""
    lines = []
    for row in rows.of("kernels"):
        lines += [f"- kernels {row['side']}, snsim's recorder: {row['recorder_failed']}\n"] if "recorder_failed" in row else []
        for pair in row[row["side"]]:
            title = ", ".join(str(pair["pytorch"][key]) for key in ("case", "layer", "numbers", "batch") if key in pair["pytorch"])
            lines += [f"- kernels {row['side']}, {title}, {side}: {figures['failed']}\n" for side, figures in pair.items() if "failed" in figures]
    return "".join(lines)
