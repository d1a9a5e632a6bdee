"""The page of `snsim report` in a real browser: it renders without a complaint and without asking for anything but
itself, shows the figures that `snsim show` prints, sorts, follows pointer, finger and keyboard, shows strangers' names as
text, is no wider than a phone, and is legible in light and dark.

    python3 tests/report/check.py [--pictures FOLDER]

SNSIM_BINARY names the program. Skipped (exit status 77) where there is no Chromium."""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from browser import Browser, find

PROGRAM = os.path.abspath(os.environ.get("SNSIM_BINARY", "build/snsim"))
RECORDING = pathlib.Path(__file__).resolve().parents[1] / "record/data/resnet18.rec.gz"
DESKTOP, PHONE = (1280, 900), (390, 844)
EVIL = "</script><script>pwned=1</script>&amp;\"'<!--<b>"
STRATEGY = "liveness+offload+recompute=speed"
SIDE_BY_SIDE = "liveness+corun=path"


def snsim(*arguments):
    done = subprocess.run([PROGRAM, *arguments, "--db", "runs.db"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"snsim {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def evil_net(path):
    layers = [{"name": EVIL + "conv", "op": "CONV", "channels": 8, "kernel": 3},
              {"name": EVIL + "x" * 120, "op": "ACT"},
              {"name": "\N{SNOWMAN}\N{GRINNING FACE}fc", "op": "FC", "channels": 10}, {"name": "softmax", "op": "SOFTMAX"}]
    net = {"snsim_net": 1, "name": EVIL, "input": [3, 16, 16], "layers": layers}
    pathlib.Path(path).write_text(json.dumps(net))


def make_pages():
    """Pages by name, and what the store says of the first."""
    evil_file = "./" + EVIL.replace("/", "\N{LINE SEPARATOR}") + ".json"
    evil_net(evil_file)
    snsim("--net", "paper:alexnet", "--batch", "200")
    stored = json.loads(snsim("show", "last", "--json", "--steps", "--explain"))
    snsim("report", "-o", "graphs.html")
    stored["results"] = [r for r in stored["results"] if r["dialect"] == "superneurons"]  # of one graph
    snsim("report", "--strategy", ",".join(r["strategy"] for r in stored["results"]), "-o", "alexnet.html")
    snsim("report", "--strategy", "pytorch", "-o", "pytorch.html")
    snsim("--net", evil_file, "--batch", "4")
    snsim("report", "-o", "evil.html")
    snsim("--net", "paper:resnet152", "--batch", "32", "--memory", "1GiB")
    snsim("report", "-o", "large.html")
    snsim("--net", "lenet", "--batch", "8", "--strategy", "liveness+cache", "--allocator", "cuda")
    snsim("report", "-o", "single.html")
    snsim("--net", "lenet", "--batch", "64", "--gpu", "knl7250", "--strategy", f"liveness,{SIDE_BY_SIDE},liveness+corun=s1234,liveness+corun=4x34")
    snsim("report", "-o", "corun.html")
    snsim("export", "--table", "ops", "-o", "ops.csv")
    snsim("--net", str(RECORDING), "--batch", "512", "--gpu", "rtx2060", "--strategy", "pytorch", "--host-memory", "1GiB")
    snsim("report", "-o", "recorded.html")
    snsim("--net", "resnet50", "--batch", "32", "--parallel", "fsdp=8", "--cluster", "h100x8", "--strategy", "pytorch")
    snsim("report", "-o", "meshed.html")
    stored["meshed"] = json.loads(snsim("show", "last", "--json"))["results"][0]
    snsim("--net", "llm:4,1024,8,8,4096,1000", "--sequence", "2048", "--batch", "2", "--parallel", "fsdp=8", "--cluster", "h100x8", "--strategy", "pytorch+offload")
    snsim("report", "-o", "offloaded.html")
    with open("ops.csv", newline="") as file:
        stored["operations"] = list(csv.DictReader(file))
    return stored


def equal(what, got, wanted):
    assert got == wanted, f"{what}: {got!r}, not {wanted!r}"


def plain(text):
    return text.replace("\u00a0", " ")


# ---- the tests; each has the browser and what the store says of alexnet.html ----

def loads_alone(page, stored):
    for name in ("alexnet", "pytorch", "evil", "large", "single", "corun", "recorded"):
        for size in (DESKTOP, PHONE):
            page.requests.clear()
            page.open(f"{name}.html", *size)
            page.frame()
            equal(f"{name}.html: requests", len(page.requests), 1)
            equal(f"{name}.html: canvases that stayed empty", page.evaluate(EMPTY_CANVASES), 0)
    text = pathlib.Path("alexnet.html").read_text()
    equal("addresses in the page", set(re.findall(r"\w+://[\w./]+", text)), {"http://www.w3.org/2000/svg"})


EMPTY_CANVASES = """[...document.querySelectorAll("canvas")].filter((c) => {
  const d = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer);
  return new Set(d).size < 5; }).length"""


def says_what_the_store_says(page, stored):
    page.open("alexnet.html", *DESKTOP)
    best = min((r for r in stored["results"] if r["fits"]), key=lambda r: (r["iteration_ns"], r["peak_device_bytes"]))
    verdict = plain(page.text("#verdict"))
    for part in ("Yes, it fits", best["strategy"], f"{best['images_per_second']:.1f} images per second",
                 f"{best['peak_device_bytes'] / 2**30:.2f} GiB"):
        assert part in verdict, f"{part!r} is not in {verdict!r}"
    rows = page.evaluate("[...document.querySelectorAll('#strategies tbody tr')].map((r) => r.innerText)")
    equal("rows", len(rows), len(stored["results"]))
    for row, result in zip(rows, stored["results"]):
        cells = [cell.strip() for cell in plain(row).replace("\n", "").split("\t")]
        equal("row", cells[:7],
              [result["strategy"], "yes", f"{result['peak_device_bytes'] / 2**30:.2f}",
               f"{result['peak_tensor_bytes'] / 2**20:.3f}", f"{result['pool_step']} ({result['pool_cause']})",
               f"{result['iteration_ns'] / 1e6:.2f}", f"{result['images_per_second']:.2f}"])


def says_the_speed_of_all_gpus(page, stored):
    page.open("meshed.html", *DESKTOP)
    equal("heading", page.text("h1"), "tv_resnet50, batch 32, on 8 h100_sxm with fsdp=8")
    speed = stored["meshed"]["images_per_second"]
    row = page.evaluate("[...document.querySelector('#strategies tbody tr').cells].map((c) => c.innerText)")
    equal("row", plain(row[6]), f"{speed:.2f}")
    tile = page.evaluate("[...document.querySelectorAll('#tiles div')].find((d) => d.innerText.startsWith('Images per second')).querySelector('dd').firstChild.textContent")
    assert abs(float(plain(tile)) / speed - 1) < 0.06, f"{tile!r}, not {speed}"


def does_not_fit(page, stored):
    page.open("large.html", *DESKTOP)
    equal("class", page.evaluate("document.querySelector('#verdict').className"), "fails")
    said = page.text("#verdict")
    assert "Not as it stands; it fits with checkpoint all" in said and "too much" in said, said
    assert "\u2605 checkpoint all" in page.text("#changes") and "checkpoint" in page.text("#answer pre"), page.text("#answer")


def says_what_is_not_offered(page, stored):
    page.open("recorded.html", *DESKTOP)
    said = page.text("#answer")
    for line in ("Not offered: checkpoint all 8 blocks, kept in host memory", "Not tried, as the loop is the recording's: parts of the batch"):
        assert line in said, f"{line}: not in {said}"


def order(page):
    return page.evaluate("[...document.querySelectorAll('#strategies tbody tr')].map((r) => r.cells[0].innerText)")


def sorts(page, stored):
    page.open("alexnet.html", *DESKTOP)
    by = lambda key: [r["strategy"] for r in sorted(stored["results"], key=key)]
    equal("first order", order(page), by(lambda r: 0))
    page.click("#strategies th:nth-child(4) button")
    equal("by peak", order(page), by(lambda r: r["peak_tensor_bytes"]))
    page.press_enter()
    equal("and back by key", order(page), by(lambda r: -r["peak_tensor_bytes"]))
    equal("aria-sort", page.evaluate("document.querySelector('#strategies th:nth-child(4)').getAttribute('aria-sort')"),
          "descending")
    page.click("#strategies th:nth-child(6) button")
    equal("by time", order(page), by(lambda r: r["iteration_ns"]))


def choose(page, strategy):
    page.evaluate(f"""(() => {{ const s = document.getElementById("strategy");
      s.value = [...s.options].find((o) => o.textContent === {json.dumps(strategy)}).value;
      s.dispatchEvent(new Event("change")); }})()""")
    page.frame()


def check_step(page, row):
    equal("step", plain(page.text("#step h3")), f"Step {row['step']} of 46: {row['layer']} {row['pass']}")
    sizes = page.evaluate("[...document.querySelectorAll('#step ol li span:nth-child(2)')].map((s) => s.innerText)")
    units = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    total = sum(float(s.split("\u00a0")[0]) * units[s.split("\u00a0")[1]] for s in sizes)
    assert abs(total - row["tensor_bytes"]) <= 0.006 * 2**20 * len(sizes), f"{total} bytes are listed, {row}"
    assert 0 < len(sizes) <= row["live_tensors"], f"{len(sizes)} tensors are listed, {row}"


STACK = """[...document.querySelectorAll("#device-step ol li")].map((row) => [row.children[1].innerText, row.children[2].innerText])"""


def in_bytes(text):
    value, unit = plain(text).split(" ")
    return float(value) * {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]


def stacks_everything_on_the_device(page, stored):
    """At the step that sets the memory the stack is what the store says the device must hold; its parts add up to it."""
    for result in stored["results"]:
        page.open("alexnet.html", *DESKTOP)
        choose(page, result["strategy"])
        need = result["peak_device_bytes"]
        said = plain(page.text("#device-step p"))
        assert "the most of all steps" in said and abs(in_bytes(" ".join(said.split()[:2])) - need) < 0.006 * 2**30, (said, need)
        rows = page.evaluate(STACK)
        total = sum(in_bytes(size) for _, size in rows if size != "-")
        assert abs(total - need) < 0.006 * 2**20 * len(rows), f"{rows} add up to {total}, not to {need}"
        sentence = plain(page.text("#device-text"))
        assert sentence.startswith(result["strategy"] + " needs ") and "holes" in sentence or "workspace" in sentence, sentence
        page.evaluate("document.querySelector('#device svg').focus()")
        page.press("Home")
        equal("step", page.text("#device-step h3"), "Step 1 of 46: conv1 forward")
        equal("rows", len(page.evaluate(STACK)), len(rows))


def shows_several_graphs(page, stored):
    """PyTorch's row has steps of its own: what is shown follows the strategy, and only alike ones are drawn together."""
    page.open("graphs.html", *DESKTOP)
    names = lambda which: page.evaluate(f"[...document.querySelectorAll('#{which} option')].map((o) => o.textContent.split(' (')[0])")
    mine = [r["strategy"] for r in stored["results"]]
    equal("strategies", names("strategy"), ["pytorch"] + mine)
    choose(page, "liveness")
    equal("alike", names("other"), ["nothing"] + mine)
    page.evaluate("document.querySelector('#device svg').focus()")
    page.press("Home")
    equal("step", page.text("#device-step h3"), "Step 1 of 46: conv1 forward")
    choose(page, "pytorch")
    equal("alike", names("other"), ["nothing", "pytorch"])
    page.evaluate("document.querySelector('#device svg').focus()")
    page.press("Home")
    equal("step", page.text("#device-step h3"), "Step 1 of 46: conv1 forward")
    page.press("End")
    assert "conv1 backward" in page.text("#device-step h3"), page.text("#device-step h3")
    assert "maximum" not in page.text("#peak-text") and "tensors" in page.text("#peak-text"), page.text("#peak-text")
    choose(page, "baseline")
    equal("back again", names("other"), ["nothing"] + mine)


def begins_with_the_interesting_strategy(page, stored):
    """Of equally fast ones the one that needs least: baseline is as fast as liveness where both fit."""
    page.open("alexnet.html", *DESKTOP)
    fastest = min(r["iteration_ns"] for r in stored["results"] if r["fits"])
    least = min((r for r in stored["results"] if r["fits"] and r["iteration_ns"] == fastest), key=lambda r: r["peak_device_bytes"])
    equal("shown", page.evaluate("document.querySelector('#strategy').selectedOptions[0].textContent"), least["strategy"])


def explains_every_strategy(page, stored):
    page.open("alexnet.html", *DESKTOP)
    equal("names", page.evaluate("[...document.querySelectorAll('#does dt')].map((t) => t.textContent)"), [r["strategy"] for r in stored["results"]])
    for text in page.evaluate("[...document.querySelectorAll('#does dd')].map((t) => t.textContent)"):
        assert len(text.split()) > 6 and text.endswith("."), text
    choose(page, "baseline")
    assert "keeps every tensor in memory of its own" in page.text("#explained"), page.text("#explained")


BROKEN = """[...document.querySelectorAll("#tiles dd, #strategies td:first-child button")].flatMap((e) =>
  [...e.childNodes].filter((n) => n.nodeType === 3).filter((n) => { const r = document.createRange(); r.selectNode(n);
    return new Set([...r.getClientRects()].map((b) => Math.round(b.top))).size > 1; }).map((n) => n.data))"""


def breaks_no_word(page, stored):
    for name in ("alexnet", "large", "single"):
        for size in (DESKTOP, (1000, 800), PHONE):
            page.open(f"{name}.html", *size)
            equal(f"{name}.html at {size[0]}: words on two lines", page.evaluate(BROKEN), [])


METERS = """[...document.querySelectorAll("#strategies .meter")].map((m) =>
  [m.firstChild.getBoundingClientRect().width / m.getBoundingClientRect().width, m.children.length])"""


def keeps_proportions(page, stored):
    """What does not fit has a bar as long as it needs, beyond the mark of what there is."""
    page.open("large.html", *DESKTOP)
    needs = page.evaluate("[...document.querySelectorAll('#strategies tbody tr')].map((r) => parseFloat(r.cells[2].innerText))")
    for (share, parts), need in zip(page.evaluate(METERS), needs):
        assert parts == 2 and abs(share - need / max(needs)) < 0.01, f"{share} of the bar for {need} of {max(needs)}"


def follows_the_pointer(page, stored):
    rows = next(r for r in stored["results"] if r["strategy"] == STRATEGY)["steps_table"]
    page.open("alexnet.html", *DESKTOP)
    choose(page, STRATEGY)
    check_step(page, rows[42])  # the peak
    left, right = 58, 46  # what the axes take
    width = page.box("#curve svg")[2]
    for step in (1, 12, 23, 24, 46):
        page.hover("#curve svg", (left + (step - 0.5) / 46 * (width - left - right)) / width, 0.5)
        check_step(page, rows[step - 1])


def shows_live_tensors_when_asked(page, stored):
    page.open("alexnet.html", *DESKTOP)
    assert "live tensors" not in page.evaluate("document.querySelector('#curve svg').textContent"), "they are there unasked"
    peak = next(r for r in stored["results"] if r["strategy"] == "liveness")["peak_step"]
    assert f"at step {peak}" in page.evaluate("document.querySelector('#curve svg').textContent"), "the peak is not named"
    page.click("#live")
    assert "live tensors" in page.evaluate("document.querySelector('#curve svg').textContent"), "they are not"
    page.press_enter()
    assert "live tensors" not in page.evaluate("document.querySelector('#curve svg').textContent"), "they stay"


def follows_the_keyboard(page, stored):
    rows = next(r for r in stored["results"] if r["strategy"] == STRATEGY)["steps_table"]
    page.open("alexnet.html", *DESKTOP)
    choose(page, STRATEGY)
    page.evaluate("document.querySelector('#curve svg').focus()")
    for key, step in (("Home", 1), ("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("End", 46), ("PageDown", 41)):
        page.press(key)
        check_step(page, rows[step - 1])
        equal("aria-valuenow", page.evaluate("document.querySelector('#curve svg').getAttribute('aria-valuenow')"), str(step))


def follows_the_finger(page, stored):
    rows = next(r for r in stored["results"] if r["strategy"] == STRATEGY)["steps_table"]
    page.open("alexnet.html", *PHONE)
    choose(page, STRATEGY)
    width = page.box("#curve svg")[2]
    page.tap("#curve svg", (58 + 9.5 / 46 * (width - 58 - 46)) / width, 0.5)
    check_step(page, rows[9])


def shows_the_lanes(page, stored):
    page.open("alexnet.html", *DESKTOP)
    choose(page, STRATEGY)
    width, height = page.box("#lanes canvas")[2:]
    page.hover("#lanes canvas", 62 / width, 30 / height)
    equal("first bar", page.text("#bar h3"), "conv1 forward")
    range_before = page.text("#lanes .tools span")
    page.click("#lanes button[aria-label='zoom in']")
    assert page.text("#lanes .tools span") != range_before, "zooming in changes nothing"
    page.click("#lanes button[aria-label='show all']")
    equal("range", page.text("#lanes .tools span"), range_before)
    page.evaluate("document.querySelector('#lanes canvas').focus()")
    seen = set()
    for _ in range(60):
        page.press("ArrowRight")
        seen.add(plain(page.text("#bar h3")))
    for wanted in ("copy out of conv1.y", "waits for copy out of conv1.y", "relu1 forward"):
        assert wanted in seen, f"{wanted!r} is not among {sorted(seen)}"


def names_collectives(page, stored):
    """Copies are those to and from the host: what goes among GPUs is told by its name, and what computing waits for, too."""
    for name, words, legend in (("meshed", "collectives", "a collective"), ("offloaded", "copies and collectives", "a copy or a collective")):
        page.open(f"{name}.html", *DESKTOP)
        assert f" for {words};" in page.text("#explained"), page.text("#explained")
        assert f"of it waiting for {words}" in plain(page.text("#tiles")), page.text("#tiles")
        lanes = page.text("#lanes")
        assert "collective among GPUs" in lanes and f"computing waits for {legend}" in lanes, lanes
        page.evaluate("document.querySelector('#lanes canvas').focus()")
        page.press("Home")
        seen = set()
        for _ in range(80):
            page.press("ArrowRight")
            seen.add(plain(page.text("#bar h3")).split(" at ")[0])
        assert {"all-gather", "waits for all-gather"} <= seen, sorted(seen)
        assert page.text("#beside").endswith("and collectives"), page.text("#beside")
    page.open("single.html", *DESKTOP)
    assert "collective" not in page.text("#lanes") + page.text("#tiles") + page.text("#explained") + page.text("#beside"), "collectives of one GPU"


def name_of(row):
    part = "" if row["part"] == "whole" else ", " + row["part"]
    return f"{row['layer']} {row['pass']}{part}"


def team_of(row):
    first, count = int(row["first_core"]), int(row["cores"])
    if row["slot"] == "any":
        return f"on {count} threads, which float over all cores"
    cores = f"core {first};" if count == 1 else f"cores {first} to {first + count - 1};"
    return "on " + ("second hardware threads of " if row["slot"] == "1" else "") + cores


def shows_operations_side_by_side(page, stored):
    """Every operation of the table is a bar on its lane, in that order, with its part and its cores; in the stack it is a
    column."""
    page.open("corun.html", *DESKTOP)
    equal("shown", page.evaluate("document.querySelector('#strategy').selectedOptions[0].textContent"), SIDE_BY_SIDE)
    for strategy in (SIDE_BY_SIDE, "liveness+corun=s1234", "liveness+corun=4x34"):
        choose(page, strategy)
        rows = [r for r in stored["operations"] if r["strategy"] == strategy]
        lanes = sorted({r["lane"] for r in rows})  # none waits: the lanes that are shown are those with operations
        equal("height", page.box("#lanes canvas")[3], 20 + len(lanes) * 42 + 12 + 90 + 24)
        page.evaluate("document.querySelector('#lanes canvas').focus()")
        seen = []
        for _ in range(100):
            page.press("ArrowRight")
            seen.append((page.text("#bar h3"), plain(page.text("#bar p"))))
        seen = [s for s, before in zip(seen, [None] + seen) if s != before and not s[0].startswith("waits")]
        equal("operations", [name for name, _ in seen], [name_of(r) for r in rows])
        for (_, text), row in zip(seen, rows):
            assert team_of(row) in text, f"{text!r} does not say {team_of(row)!r}"
        page.evaluate("document.querySelector('#device svg').focus()")
        page.press("Home")
        assert page.text("#device-step h3").startswith("Operation 1 of "), page.text("#device-step h3")
        assert page.text("#device-step h3").endswith(": " + name_of(rows[0])), page.text("#device-step h3")
        for _ in range(10):
            page.press("ArrowRight")
        assert page.text("#device-step h3").endswith(": " + name_of(rows[10])), page.text("#device-step h3")
        assert plain(page.text("#pool .tools span")).startswith("operations 1 to "), page.text("#pool .tools span")
    choose(page, "liveness")
    equal("height", page.box("#lanes canvas")[3], 20 + 3 * 42 + 12 + 90 + 24)


def shows_the_pool(page, stored):
    page.open("alexnet.html", *DESKTOP)
    choose(page, "baseline")
    width, height = page.box("#pool canvas")[2:]
    page.hover("#pool canvas", 0.5, (420 - 34 - 6) / height)
    equal("name", page.text("#rect h3"), "conv1.y")
    equal("text", plain(page.text("#rect p")), "layer output, 221.56 MiB; at 0 B of the pool, from step 1 to the end")
    page.evaluate("document.querySelector('#pool canvas').focus()")
    page.press("ArrowRight")
    equal("the next one", page.text("#rect h3"), "relu1.y")
    page.press("+")
    assert "steps 1 to 46" not in page.text("#pool .tools span")
    page.press("0")
    equal("range", page.text("#pool .tools span"), "steps 1 to 46")
    for result in stored["results"]:
        choose(page, result["strategy"])
        said = plain(page.text("#pool-text"))
        for part in (f"is set at step {result['pool_step']}, {result['pool_layer']} {result['pool_pass']} (workspace)",
                     f"workspace {result['pool_workspace_bytes'] / 2**20:.2f} MiB", "--workspace none"):
            assert part in said, f"{part!r} is not in {said!r}"


def zooms_upwards(page, stored):
    """Of baseline's pool the lowest tensor fills the frame when it is zoomed far enough; "all" shows everything again."""
    page.open("alexnet.html", *DESKTOP)
    choose(page, "baseline")
    name_at = lambda across: (page.hover("#pool canvas", across, 0.45), page.text("#rect").split("\n")[0])[1]
    assert name_at(0.5) != "conv1.y", name_at(0.5)
    for name, times in (("zoom in vertically", 5), ("move down", 70)):
        page.evaluate(f"for (let i = 0; i < {times}; i++) document.querySelector(\"#pool button[aria-label='{name}']\").click()")
    page.frame()
    equal("the lowest", name_at(0.5), "conv1.y")
    page.click("#pool button[aria-label='show all']")
    assert name_at(0.51) != "conv1.y", name_at(0.51)
    page.evaluate("document.querySelector('#pool canvas').focus()")
    for key in ["*"] * 5 + ["ArrowDown"] * 70:
        page.press(key)
    equal("the lowest, with the keys", name_at(0.5), "conv1.y")


def shows_names_as_text(page, stored):
    page.open("evil.html", *DESKTOP)
    equal("scripts that ran", page.evaluate("typeof pwned"), "undefined")
    equal("elements from names", page.evaluate("document.querySelectorAll('b, script:not([id]) ~ script, img').length"), 0)
    assert EVIL.replace("/", "") in page.text("h1").replace("\u2028", ""), page.text("h1")
    assert EVIL + "conv.y" in page.text("#peak"), page.text("#peak")
    page.evaluate("document.querySelector('#curve svg').focus()")
    page.press("Home")
    assert EVIL + "conv forward" in page.text("#step"), page.text("#step")


def fits_a_phone(page, stored):
    for name in ("alexnet", "evil", "large", "single", "corun", "offloaded"):
        page.open(f"{name}.html", *PHONE)
        equal(f"{name}.html: width", page.evaluate("document.documentElement.scrollWidth"), PHONE[0])


OVERLAPS = """(() => { const all = [...document.querySelectorAll("figure text")].map((t) => [t.textContent, t.getBoundingClientRect()]);
  const found = [];
  all.forEach(([name, a], i) => all.slice(0, i).forEach(([other, b]) => {
    if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2) found.push(other + " / " + name);
  }));
  return found; })()"""


def does_not_overlap(page, stored):
    for name in ("alexnet", "large", "single", "corun"):
        for size in (DESKTOP, PHONE):
            page.open(f"{name}.html", *size)
            equal(f"{name}.html: texts over each other", page.evaluate(OVERLAPS), [])


# The contrast of every text to what is behind it: WCAG 2, relative luminance.
LOW_CONTRAST = """(() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c; } return [255, 255, 255]; };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility() || /^(SCRIPT|OPTION|text)$/.test(e.tagName)) continue;
    const [a, b] = [luminance(parse(getComputedStyle(e).color)), luminance(behind(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(e.tagName + " " + e.textContent.slice(0, 40));
  }
  return found; })()"""


def is_legible_in_light_and_dark(page, stored):
    backgrounds = []
    for dark in (False, True):
        page.dark(dark)
        page.open("alexnet.html", *DESKTOP)
        backgrounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        equal("texts of low contrast", page.evaluate(LOW_CONTRAST), [])
    page.dark(False)
    equal("background follows", len(set(backgrounds)), 2)


TESTS = (loads_alone, says_what_the_store_says, says_the_speed_of_all_gpus, does_not_fit, says_what_is_not_offered, stacks_everything_on_the_device,
         shows_several_graphs, begins_with_the_interesting_strategy, explains_every_strategy, breaks_no_word, keeps_proportions, sorts,
         follows_the_pointer, shows_live_tensors_when_asked, follows_the_keyboard,
         follows_the_finger, shows_the_lanes, names_collectives, shows_operations_side_by_side, shows_the_pool, zooms_upwards, shows_names_as_text, fits_a_phone, does_not_overlap,
         is_legible_in_light_and_dark)


def take_pictures(page, folder):
    """What people should look at."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for name, size, dark in (("light", DESKTOP, False), ("dark", DESKTOP, True), ("phone", PHONE, False)):
        page.dark(dark)
        page.open("alexnet.html", *size)
        choose(page, STRATEGY)
        page.size(size[0], page.evaluate("document.documentElement.scrollHeight"))
        page.frame()
        page.picture(pathlib.Path(folder) / f"{name}.png")


def run(test, page, stored):
    page.faults.clear()
    try:
        test(page, stored)
        equal("complaints", page.faults, [])
    except (AssertionError, RuntimeError) as problem:
        print(f"FAILED {test.__name__}: {problem}")
        return 1
    print(f"ok     {test.__name__}")
    return 0


def main(tests, make, take):
    program = find()
    if not program:
        print("skipped: there is no Chromium; install chromium or name one in SNSIM_CHROMIUM")
        return 77
    pictures = os.path.abspath(sys.argv[2]) if sys.argv[1:2] == ["--pictures"] else None
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        stored = make()
        with Browser(program) as page:
            failed = sum(run(test, page, stored) for test in tests)
            if pictures:
                take(page, pictures)
        os.chdir("/")
    print(f"{len(tests) - failed} of {len(tests)} good")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(TESTS, make_pages, take_pictures))
