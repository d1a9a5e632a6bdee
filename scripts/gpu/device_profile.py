"""A profile of the GPU (docs/devices.md) whose constants are what was measured: the known one, with every figure replaced that a
measurement gives."""
import json
import statistics

GIB, MIB = 2**30, 2**20


def last_bytes(rows, modules, behind=-1):
    """What PyTorch took behind one of its stages: the last has a convolution, the one before it none."""
    found = rows.of("memory", side="pytorch", modules=modules)
    return found[0]["stages"][behind]["bytes"] if found else None


def contexts(rows):
    """In GiB: snsim's own, PyTorch's of kernels that are loaded as they are used and of all at once."""
    found, own = {}, [row["context_bytes"] for row in rows.of("calibrate") if row.get("context_bytes")]
    seen = [row["pytorch"]["context_bytes"] for row in rows.of("dialect")] or [last_bytes(rows, "LAZY")]
    eager, conv = last_bytes(rows, "EAGER", -2), last_bytes(rows, "EAGER")
    if own:
        found["context_gib"] = statistics.median(own) / GIB
    if seen[0] is not None:
        found["library_context_gib"] = statistics.median(seen) / GIB
    if eager is not None:
        found |= {"eager_context_gib": eager / GIB, "eager_conv_gib": max(0, conv - eager) / GIB}
    return {key: round(value, 3) for key, value in found.items()}


def rates(row, known):
    """Of a copy over the link the slower way counts; no profile has two."""
    found = {"memory_mib": row["memory_bytes"] // MIB, "multiprocessors": row["multiprocessors"],
             "memory_source": f"torch.cuda.get_device_properties(0).total_memory, driver {row['driver']}",
             "memory_efficiency": round(min(1, row["copy_bytes_per_s"] / (known["memory_gb_per_s"] * 1e9)), 3),
             "host_gb_per_s": round(min(row["out_bytes_per_s"], row["in_bytes_per_s"]) / 1e9, 1)}
    for key, of in (("link_latency_us", "copy_latency_ns"), ("launch_us", "launch_ns"), ("malloc_us", "malloc_ns"), ("free_us", "free_ns"),
                    ("host_us", "host_ns")):
        if of in row:
            found[key] = round(row[of] / 1e3, 2)
    return found


def made(rows, known):
    """None where nothing was measured."""
    row = next(iter(rows.of("rates")), None)
    measured = contexts(rows) | (rates(row, known) if row else {})
    if not measured:
        return None
    kept = {key: value for key, value in known.items() if key != "nominal_gib" or "memory_mib" not in measured}
    return kept | measured


def text(profile):
    return json.dumps(profile, indent=2, ensure_ascii=False) + "\n"
