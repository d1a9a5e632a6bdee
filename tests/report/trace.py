"""Checks a file of `snsim trace` against the Trace Event Format as docs/trace.md describes it, and prints what is in it.

    python3 tests/report/trace.py trace.json"""
import collections
import decimal
import json
import sys

KEYS = {"M": {"name", "args"}, "X": {"name", "cat", "ts", "dur", "args"}, "C": {"name", "ts", "args"},
        "s": {"name", "cat", "id", "ts"}, "f": {"name", "cat", "id", "ts", "bp"}}
CATEGORIES = {"forward", "backward", "update", "rerun", "copy_out", "copy_in", "stall", "idle", "alloc", "release"}


def check_keys(events):
    for event in events:
        missing = (KEYS[event["ph"]] | {"ph", "pid", "tid"}) - event.keys()
        assert not missing, f"{event} has no {missing}"
        for key in ("ts", "dur"):
            assert event.get(key, 0) >= 0 and event.get(key, decimal.Decimal(0)).as_tuple().exponent in (0, -3), event


def check_tracks(events):
    named = {e["tid"] for e in events if e["name"] == "thread_name"}
    used = {e["tid"] for e in events if e["ph"] in "Xsf"}
    assert used <= named, f"tracks without a name: {used - named}"
    assert len({e["pid"] for e in events}) == 1


def check_cores(slices):
    """No hardware thread of a core has two operations at a time."""
    taken = [(s["ts"], s["ts"] + s["dur"], s["args"]["cores"]) for s in slices if "cores" in s["args"]]
    running = []
    for begin, end, cores in sorted((t for t in taken if t[2]["slot"] != "any"), key=lambda t: t[:2]):
        running = [(other_end, other) for other_end, other in running if other_end > begin]
        for _, other in running:
            apart = cores["first"] >= other["first"] + other["count"] or other["first"] >= cores["first"] + cores["count"]
            assert apart or cores["slot"] != other["slot"], (begin, cores, other)
        running.append((end, cores))
    return len(taken)


def check_slices(slices):
    """On a track one slice after another, none inside another."""
    ends = collections.defaultdict(int)
    for s in slices:
        assert s["cat"] in CATEGORIES, s
        assert s["ts"] >= ends[s["tid"]], f"{s} begins before {ends[s['tid']]}"
        ends[s["tid"]] = s["ts"] + s["dur"]
    return max(ends.values())


def check_flows(events, slices):
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) == sum(e["ph"] == "s" for e in events), "flows without an end"
    for number, start in starts.items():
        end = ends[number]
        assert start["ts"] <= end["ts"] and start["name"] == end["name"] and end["bp"] == "e", (start, end)
        for flow in (start, end):
            assert any(s["tid"] == flow["tid"] and s["ts"] <= flow["ts"] <= s["ts"] + s["dur"] for s in slices), flow
    return len(starts)


def check_counters(events, end):
    """Time goes on, nothing is negative, and at the end nothing is left."""
    last = {}
    for e in (e for e in events if e["ph"] == "C"):
        before = last.get(e["name"])
        assert before is None or e["ts"] > before["ts"], (before, e)
        assert all(value >= 0 for value in e["args"].values()), e
        last[e["name"]] = e
    assert last.keys() == {"pool (bytes)", "live tensors"}
    assert all(v == 0 for e in last.values() for v in e["args"].values()), last
    assert all(e["ts"] <= end for e in last.values())


def main(path):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file, parse_float=decimal.Decimal)
    events, other = trace["traceEvents"], trace["otherData"]
    assert trace["displayTimeUnit"] == "ms" and other.keys() >= {"net", "device", "strategy", "batch", "snsim"}
    slices = [e for e in events if e["ph"] == "X"]
    check_keys(events)
    check_tracks(events)
    end = check_slices(slices)
    assert end * 1000 <= other["iteration_ns"], (end, other)  # a real one ends a little after its last bar
    side_by_side = check_cores(slices)
    flows = check_flows(events, slices)
    check_counters(events, end)
    counts = collections.Counter(s["cat"] for s in slices)
    print(f"{other['net']}, {other['strategy']}:", ", ".join(f"{n} {c}" for c, n in sorted(counts.items())) + f", {flows} arrows"
          + (f", {side_by_side} with cores" if side_by_side else ""))


if __name__ == "__main__":
    main(sys.argv[1])
