"""The page of `snsim report sweep:N` in a real browser, like check.py: it shows the figures that `snsim show` prints, sorts,
filters and turns pages, draws what is chosen, and shows strangers' names as text.

    python3 tests/report/check_sweep.py [--pictures FOLDER]"""
import contextlib
import decimal
import json
import pathlib
import re
import sqlite3
import sys

from check import DESKTOP, EVIL, LOW_CONTRAST, OVERLAPS, PHONE, equal, evil_net, main, plain, snsim

PAGES = ("sweep", "options", "evil", "none", "one", "pools", "meshes")
RESNET, REASON = "resnet:n1=3,n2=4", "tensor conv1.y is beyond what can be counted"


def change(statements, *values):
    """Makes of what is stored what is slow or hard to come by."""
    with contextlib.closing(sqlite3.connect("runs.db")) as base, base:
        base.execute(statements, values)


def make_pages():
    """Pages by name, and the rows of the first two as the store has them."""
    snsim("sweep", "--for", "superneurons", "--nets", f"paper:alexnet,{RESNET}", "--batches", "64:256:x2", "--gpus", "k40c,v100_32")
    snsim("report", "sweep:1", "-o", "sweep.html")
    snsim("sweep", "--for", "superneurons", "--nets", "paper:alexnet", "--batches", "100:500:100", "--pools", "all,3GiB", "--workspaces", "none,dynamic")
    change("UPDATE points SET failure = ?, fits = 0, peak_device_bytes = 0, iteration_ns = 0, images_per_second = 0"
           " WHERE sweep_id = 2 AND point IN (7, 31)", REASON)
    change("DELETE FROM points WHERE sweep_id = 2 AND workspace = 'dynamic' AND pool_limit_bytes > 0")
    snsim("report", "sweep:2", "-o", "options.html")
    evil_net("evil.json")
    snsim("sweep", "--nets", "./evil.json", "--batches", "4,8", "--strategy", "baseline", "--strategy", "liveness")
    change("UPDATE points SET net = ?1, gpu = ?1 || gpu, failure = CASE point WHEN 1 THEN ?1 ELSE '' END,"
           " fits = point <> 1 WHERE sweep_id = 3", EVIL)
    change("UPDATE sweeps SET grid = json_set(grid, '$.nets[0]', ?1, '$.version', ?1), version = ?1 WHERE id = 3", EVIL)
    snsim("report", "sweep:3", "-o", "evil.html")
    snsim("sweep", "--nets", "vgg16", "--batches", "2000,3000", "--strategy", "baseline", "--strategy", "liveness")
    snsim("report", "sweep:4", "-o", "none.html")
    snsim("sweep", "--nets", "lenet", "--batches", "8", "--strategy", "liveness")
    change("UPDATE sweeps SET grid = 'no JSON' WHERE id = 5")
    snsim("report", "sweep:5", "-o", "one.html")
    snsim("sweep", "--for", "superneurons", "--nets", "paper:alexnet", "--batches", "200", "--pools", "256MiB,1GiB,2GiB,4GiB,all")
    snsim("report", "sweep:6", "-o", "pools.html")
    snsim("sweep", "--nets", "resnet50", "--batches", "32", "--cluster", "h100x8", "--strategy", "pytorch", "--parallels", "fsdp=1:16:x2", "--parallels", "dp=2")
    snsim("report", "sweep:7", "-o", "meshes.html")
    return {name: json.loads(snsim("show", f"sweep:{i}", "--json"))["rows"]
            for i, name in ((1, "sweep"), (2, "options"), (6, "pools"), (7, "meshes"))}


def cells(page, table):
    rows = page.evaluate(f"[...document.querySelectorAll('#{table} tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))")
    return [[plain(cell).replace("\n", " ").strip() for cell in row] for row in rows]


def mib(value):
    """With three places, halves up as in JavaScript: sizes are whole KiB, which end in 5 too often."""
    return str((decimal.Decimal(value) / 2**20).quantize(decimal.Decimal("0.001"), decimal.ROUND_HALF_UP))


def expected(row):
    """A point of sweep.html as its table shows it."""
    timed = [f"{row['iteration_ns'] / 1e6:.2f}", f"{row['images_per_second']:.2f}"] if row["fits"] else ["-", "-"]
    return [row["net"], row["gpu"], str(row["batch"]), row["strategy"], "yes" if row["fits"] else "no",
            f"{row['peak_device_bytes'] / 2**30:.2f}", mib(row["peak_tensor_bytes"]),
            f"{row['pool_bytes'] / 2**30:.2f}", *timed, f"{row['offload_bytes'] / 2**30:.2f}", f"{row['prefetch_bytes'] / 2**30:.2f}"]


def set_value(page, selector, value):
    """What a hand does to a control: an option by its text, or what is typed."""
    page.evaluate(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}), text = {json.dumps(str(value))};
      e.value = e.options ? [...e.options].find((o) => o.textContent === text).value : text;
      e.dispatchEvent(new Event(e.options ? "change" : "input", {{bubbles: true}})); }})()""")
    page.frame()


def range_of(page):
    return page.text("#points-pages span")


# ---- the tests; each has the browser and the stored rows ----

def loads_alone(page, stored):
    for name in PAGES:
        for size in (DESKTOP, PHONE):
            page.requests.clear()
            page.open(f"{name}.html", *size)
            page.frame()
            equal(f"{name}.html: requests", len(page.requests), 1)
    text = pathlib.Path("sweep.html").read_text()
    equal("addresses in the page", set(re.findall(r"\w+://[\w./]+", text)), {"http://www.w3.org/2000/svg"})


def says_what_was_tried(page, stored):
    rows = stored["sweep"]
    fit = sum(r["fits"] for r in rows)
    page.open("sweep.html", *DESKTOP)
    equal("heading", page.text("h1"), "2 networks, batches 64 to 256, on 2 GPUs")
    equal("verdict", page.text("#verdict strong"), f"{fit} of 156 points fit")
    for part in ("sweep 1", "156 of 156 points computed", f"{fit} fit", "0 failed"):
        assert part in page.text("#facts"), f"{part!r} is not in {page.text('#facts')!r}"
    for part in (f"alexnet, {RESNET}", "64, 128, 256", "k40c, v100_32", "dynamic"):
        assert part in page.text("#grid"), f"{part!r} is not in {page.text('#grid')!r}"
    page.open("options.html", *DESKTOP)
    for part in ("65 points of the grid are not computed yet", "2 points could not be computed"):
        assert part in page.text("#verdict"), f"{part!r} is not in {page.text('#verdict')!r}"
    page.open("none.html", *DESKTOP)
    equal("none fits", page.text("#verdict strong"), "None of 4 points fits")
    equal("its colour", page.evaluate("document.querySelector('#verdict').className"), "fails")
    page.open("one.html", *DESKTOP)
    equal("a grid that cannot be read", page.text("#grid dd"), "lenet")


def says_the_gist(page, stored):
    """Of every network and GPU the largest batch that fits, and the most images per second."""
    page.open("sweep.html", *DESKTOP)
    verdict, shown = plain(page.text("#verdict")), cells(page, "pairs")
    equal("pairs", [row[:2] for row in shown], [[n, g] for n in ("alexnet", RESNET) for g in ("k40c", "v100_32")])
    for row in shown:
        fit = [r for r in stored["sweep"] if [r["net"], r["gpu"]] == row[:2] and r["fits"]]
        largest = max(fit, key=lambda r: (r["batch"], r["images_per_second"], -r["peak_device_bytes"]))
        fastest = max(fit, key=lambda r: (r["images_per_second"], -r["peak_device_bytes"]))
        plain_one = max((r["batch"] for r in fit if r["strategy"] == "baseline"), default="-")
        equal("gist", row[2:], [f"{len(fit)}/39", str(largest["batch"]), largest["strategy"], f"{largest['images_per_second']:.1f}",
                                str(plain_one), f"{fastest['images_per_second']:.1f}", fastest["strategy"], str(fastest["batch"])])
        begin = f"{row[0]} on {row[1]}: the largest batch that fits is {largest['batch']}, the largest tried, with {largest['strategy']}"
        end = f"the most images per second, {row[7]}, are those of {fastest['strategy']} with batch {fastest['batch']}."
        assert begin in verdict and end in verdict, f"{begin!r}, {end!r}: {verdict!r}"


def says_the_gist_of_pools(page, stored):
    """Of one batch and several pools the smallest pool with which anything fits."""
    page.open("pools.html", *DESKTOP)
    fit = [r for r in stored["pools"] if r["fits"]]
    size = lambda r: r["pool_limit_bytes"] or 2**63
    text = lambda r: f"{r['pool_limit_bytes'] / 2**30:.2f} GiB" if r["pool_limit_bytes"] else "all"
    smallest = min(fit, key=lambda r: (size(r), -r["images_per_second"], r["peak_device_bytes"]))
    fastest = max(fit, key=lambda r: (r["images_per_second"], -r["peak_device_bytes"]))
    plain_one = min((r for r in fit if r["strategy"] == "baseline"), key=size)
    assert size(smallest) > 2**28 and size(plain_one) > size(smallest), "pools of these sizes do not show enough"
    equal("sentence", plain(page.text("#verdict strong")),
          f"alexnet on k40c: the smallest pool with which something fits is {text(smallest)}, with {smallest['strategy']}; baseline"
          f" fits from {text(plain_one)} on; the most images per second, {fastest['images_per_second']:.1f}, are those of"
          f" {fastest['strategy']} with pool {text(fastest)}.")
    row = cells(page, "pairs")[0]
    equal("pairs", [row[3], row[6], row[9]], [text(smallest), text(plain_one), text(fastest)])


def tells_meshes_apart(page, stored):
    """Of several GPUs what they share, and the speed of all of them."""
    page.open("meshes.html", *DESKTOP)
    rows = stored["meshes"]
    shown = [(row[2], row[10]) for row in cells(page, "points")]
    equal("points", shown, [(r["parallel"] or "one", f"{r['images_per_second']:.2f}") for r in rows])
    fastest = max(rows, key=lambda r: r["images_per_second"])
    said = (f"resnet50 on h100_sxm: the smallest number of GPUs with which something fits is 1, the smallest tried, with pytorch; the most images"
            f" per second, {fastest['images_per_second']:.1f}, are those of pytorch (GPUs {fastest['parallel']}) on 16 GPUs.")
    assert said in plain(page.text("#verdict")), page.text("#verdict")
    assert "one, fsdp=2, fsdp=4, fsdp=8, fsdp=16, dp=2" in page.text("#grid"), page.text("#grid")
    speed = {r["parallel"]: r["images_per_second"] for r in rows}
    for scheme, meshes in (("dp", ("", "dp=2")), ("fsdp", ("", "fsdp=2", "fsdp=4", "fsdp=8", "fsdp=16"))):
        set_value(page, "#choose-scheme", scheme)
        head = page.evaluate("[...document.querySelectorAll('#heat thead th')].map((cell) => cell.innerText.trim())")
        equal("GPUs", head[1:], [mesh.split("=")[-1] or "1" for mesh in meshes])
        shown = [float(cell) for cell in page.evaluate(HEAT)[0][1:]]
        assert all(abs(x / speed[mesh] - 1) < 0.02 for x, mesh in zip(shown, meshes, strict=True)), (shown, speed)
        equal("marks", page.evaluate("document.querySelectorAll('#memory circle').length"), len(meshes))
    equal("title", plain(page.text("#charts-title")), "Over the number of GPUs")


def limit_looks_like_no_strategy(page, stored):
    for name in ("sweep", "pools"):
        page.open(f"{name}.html", *DESKTOP)
        look = "(e) => [getComputedStyle(e).stroke, getComputedStyle(e).strokeDasharray].join()"
        limit = page.evaluate(f"({look})(document.querySelector('#memory .limit'))")
        strategies = page.evaluate(f"[...document.querySelectorAll('#memory g.line path')].map({look})")
        colours = [line.rsplit(")", 1)[0] for line in strategies]
        assert limit.rsplit(")", 1)[0] not in colours, f"{limit} is one of {strategies}"


HEAT = """[...document.querySelectorAll("#heat tbody tr")].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"""


def maps_what_fits(page, stored):
    """Every batch and strategy of the pair shown has its speed, or says that it does not fit; strategies that come to the
    same share a row, those of different rows do not."""
    page.open("sweep.html", *DESKTOP)
    set_value(page, "#choose-net", "alexnet")
    set_value(page, "#choose-gpu", "v100_32")
    rows = [r for r in stored["sweep"] if [r["net"], r["gpu"]] == ["alexnet", "v100_32"]]
    shown, batches = {}, sorted({r["batch"] for r in rows})
    for cells_of in page.evaluate(HEAT):
        for strategy in cells_of[0].split("\n"):
            shown[strategy] = cells_of[1:]
    figures = {}
    for row in rows:
        text = "no" if not row["fits"] else f"{row['images_per_second']:.{1 if row['images_per_second'] < 100 else 0}f}"
        equal(f"{row['strategy']}, batch {row['batch']}", shown[row["strategy"]][batches.index(row["batch"])], text)
        figures.setdefault(row["strategy"], []).append((row["fits"], row["iteration_ns"], row["peak_device_bytes"]))
    equal("rows", len(page.evaluate(HEAT)), len({tuple(f) for f in figures.values()}))
    assert len(figures) > len({tuple(f) for f in figures.values()}), "no two strategies come to the same: nothing is tested"


def shows_every_point(page, stored):
    page.open("sweep.html", *DESKTOP)
    equal("range", range_of(page), "rows 1 to 100 of 156")
    first = cells(page, "points")
    page.click("#points-pages button[aria-label='next rows']")
    equal("range", range_of(page), "rows 101 to 156 of 156")
    for shown, row in zip(first + cells(page, "points"), stored["sweep"], strict=True):
        equal("row", shown, expected(row))
    page.click("#points-pages button[aria-label='first rows']")
    equal("back", cells(page, "points"), first)


def sorts(page, stored):
    rows = [r for r in stored["sweep"] if r["fits"]]
    page.open("sweep.html", *DESKTOP)
    page.click("#points-pages button[aria-label='next rows']")
    page.click("#points th:nth-child(10) button")
    equal("from the beginning", range_of(page), "rows 1 to 100 of 156")
    speeds = sorted((f"{r['images_per_second']:.2f}" for r in rows), key=float, reverse=True)
    equal("the fastest first", [c[9] for c in cells(page, "points")], speeds[:100])
    page.press_enter()
    equal("the slowest first, by key", [c[9] for c in cells(page, "points")], speeds[::-1][:100])
    page.click("#points-pages button[aria-label='last rows']")
    equal("those without are last", [c[9] for c in cells(page, "points")][-20:], [speeds[0]] + ["-"] * 19)
    equal("aria-sort", page.evaluate("document.querySelector('#points th:nth-child(10)').getAttribute('aria-sort')"), "ascending")
    page.click("#pairs th:nth-child(4) button")
    page.click("#pairs th:nth-child(1) button")
    page.press_enter()
    equal("pairs", [row[0] for row in cells(page, "pairs")], [RESNET, RESNET, "alexnet", "alexnet"])


def filters(page, stored):
    page.open("sweep.html", *DESKTOP)
    keep = lambda test: [expected(r) for r in stored["sweep"] if test(r)]
    set_value(page, "#filter-net", RESNET)
    set_value(page, "#filter-outcome", "does not fit")
    equal("network, outcome", cells(page, "points"), keep(lambda r: r["net"] == RESNET and not r["fits"]))
    set_value(page, "#filter-from", 128)
    set_value(page, "#filter-to", 200)
    equal("and batch", cells(page, "points"), keep(lambda r: r["net"] == RESNET and not r["fits"] and r["batch"] == 128))
    set_value(page, "#filter-net", "all")
    set_value(page, "#filter-outcome", "all")
    set_value(page, "#filter-text", "V100 Cache")
    equal("and words", cells(page, "points"),
          keep(lambda r: r["gpu"] == "v100_32" and "cache" in r["strategy"] and r["batch"] == 128))
    set_value(page, "#filter-text", "nothing of that name")
    equal("nothing is left", (cells(page, "points"), range_of(page)), ([], "no rows"))
    for name in ("text", "from", "to"):
        set_value(page, f"#filter-{name}", "")
    equal("all again", range_of(page), "rows 1 to 100 of 156")


def shows_failures(page, stored):
    page.open("options.html", *DESKTOP)
    set_value(page, "#filter-outcome", "failed")
    failed = [r for r in stored["options"] if r["failure"]]
    equal("rows", [(c[4], c[5], c[6], c[7], c[-1]) for c in cells(page, "points")],
          [(str(r["batch"]), r["strategy"], "failed", "-", REASON) for r in failed])
    set_value(page, "#filter-outcome", "all")
    set_value(page, "#filter-pool_limit", "3.00\u00a0GiB")
    equal("a pool", range_of(page), "rows 1 to 65 of 65")


def legend(page):
    items = page.evaluate("[...document.querySelectorAll('#legend li')].map((e) => [e.children[0].textContent, e.children[1].textContent])")
    return [tuple(map(plain, item)) for item in items]


def check_legend(page, rows, batch, **choice):
    """The figures of every strategy at a batch."""
    equal("batch", page.text("#legend h3"), f"Batch {batch}")
    rows = [r for r in rows if r["batch"] == batch and choice.items() <= r.items() and not r["failure"]]
    assert rows, f"no stored point has {choice} and batch {batch}"
    text = lambda r: f"{r['images_per_second']:.1f} images/s" if r["fits"] else "does not fit"
    need = lambda r: r["pool_bytes" if r["pool_limit_bytes"] else "peak_device_bytes"]  # of what is limited
    equal("legend", legend(page), [(r["strategy"], f"{need(r) / 2**30:.2f} GiB, {text(r)}") for r in rows])


def lines(page, chart):
    return page.evaluate(f"[...document.querySelectorAll('#{chart} g.line path')].map((p) => p.getAttribute('d')).filter((d) => d)")


def draws_what_is_chosen(page, stored):
    rows = stored["sweep"]
    page.open("sweep.html", *DESKTOP)
    page.evaluate("document.querySelector('#pairs tbody tr button').click()")
    check_legend(page, rows, 256, net="alexnet", gpu="k40c")
    drawn = lines(page, "memory"), lines(page, "speed")
    equal("all fit: no hollow mark", page.evaluate("document.querySelectorAll('#memory circle[style*=\"page\"]').length"), 0)
    set_value(page, "#choose-net", RESNET)
    check_legend(page, rows, 256, net=RESNET, gpu="k40c")
    assert lines(page, "memory") != drawn[0] and lines(page, "speed") != drawn[1], "the lines stay as they were"
    hollow = sum(not r["fits"] for r in rows if (r["net"], r["gpu"]) == (RESNET, "k40c"))
    equal("hollow marks", page.evaluate("document.querySelectorAll('#memory circle[style*=\"page\"]').length"), hollow)
    equal("marks of speed", page.evaluate("document.querySelectorAll('#speed circle').length"), 39 - hollow)
    limit = plain(page.evaluate("document.querySelector('#memory .limit + text').textContent"))
    equal("limit", limit, "memory of the GPU: 11.17 GiB")
    drawn = lines(page, "memory")
    set_value(page, "#choose-gpu", "v100_32")
    check_legend(page, rows, 256, net=RESNET, gpu="v100_32")
    assert lines(page, "memory") != drawn, "the lines stay as they were"
    equal("marked pair", [c[:2] for c in cells(page, "pairs")][page.evaluate(
        "[...document.querySelectorAll('#pairs tbody tr')].findIndex((r) => r.className === 'shown')")], [RESNET, "v100_32"])


def draws_the_chosen_options(page, stored):
    page.open("options.html", *DESKTOP)
    set_value(page, "#choose-workspace", "none")
    set_value(page, "#choose-pool_limit", "3.00\u00a0GiB")
    page.evaluate("document.querySelector('#memory svg').focus()")
    page.press("End")
    check_legend(page, stored["options"], 500, workspace="none", pool_limit_bytes=3 * 2**30)
    set_value(page, "#choose-workspace", "dynamic")
    assert "No point" in page.text("#memory"), "what was not computed is drawn"


def follows_pointer_finger_and_keyboard(page, stored):
    choice = {"net": "alexnet", "gpu": "k40c"}
    page.open("sweep.html", *DESKTOP)
    set_value(page, "#choose-net", "alexnet")
    for across, batch in ((0.06, 64), (0.5, 128), (0.95, 256)):
        page.hover("#speed svg", across, 0.5)
        check_legend(page, stored["sweep"], batch, **choice)
    page.evaluate("document.querySelector('#memory svg').focus()")
    for key, batch in (("Home", 64), ("ArrowRight", 128), ("ArrowRight", 256), ("ArrowRight", 256), ("ArrowLeft", 128), ("End", 256)):
        page.press(key)
        check_legend(page, stored["sweep"], batch, **choice)
        equal("aria-valuenow", page.evaluate("document.querySelector('#memory svg').getAttribute('aria-valuenow')"), str(batch))
    page.open("sweep.html", *PHONE)
    set_value(page, "#choose-net", "alexnet")
    page.tap("#memory svg", 0.2, 0.5)
    check_legend(page, stored["sweep"], 64, **choice)


def hides_and_shows_lines(page, stored):
    count = lambda: [page.evaluate(f"document.querySelectorAll('#{chart} g.line').length") for chart in ("memory", "speed")]
    page.open("sweep.html", *DESKTOP)
    equal("all", count(), [13, 13])
    page.click("#legend li:nth-child(3) button")
    equal("one less", count(), [12, 12])
    equal("pressed", page.evaluate("document.activeElement.getAttribute('aria-pressed')"), "false")
    page.press_enter()
    equal("again, by key", count(), [13, 13])
    page.hover("#legend li:nth-child(4)", 0.9, 0.8)
    equal("the one pointed at", page.evaluate("[...document.querySelectorAll('#memory g.line:not(.faint)')].map((g) => g.dataset.strategy)"), ["3"])
    page.click("#legend .tools button:nth-child(2)")
    equal("none", count(), [0, 0])
    page.click("#legend .tools button:nth-child(1)")
    equal("all", count(), [13, 13])


def shows_names_as_text(page, stored):
    page.open("evil.html", *DESKTOP)
    equal("scripts that ran", page.evaluate("typeof pwned"), "undefined")
    equal("elements from names", page.evaluate("document.querySelectorAll('b, script:not([id]) ~ script, img').length"), 0)
    for place in ("h1", "#verdict", "#grid", "#pairs", "#chooser", "#points", "#made"):
        assert EVIL in page.evaluate(f"document.querySelector('{place}').textContent"), f"the name is not in {place}"
    equal("title", page.evaluate("document.title").count(EVIL), 3)  # file, the name it gives itself, GPU
    equal("why it failed", [row[-1] for row in cells(page, "points")], [EVIL, "", "", ""])


def fits_a_phone(page, stored):
    for name in PAGES:
        page.open(f"{name}.html", *PHONE)
        equal(f"{name}.html: width", page.evaluate("document.documentElement.scrollWidth"), PHONE[0])


def does_not_overlap(page, stored):
    for name in PAGES:
        for size in (DESKTOP, PHONE):
            page.open(f"{name}.html", *size)
            equal(f"{name}.html: texts over each other", page.evaluate(OVERLAPS), [])


def is_legible_in_light_and_dark(page, stored):
    for name in ("sweep", "options"):
        for dark in (False, True):
            page.dark(dark)
            page.open(f"{name}.html", *DESKTOP)
            equal("texts of low contrast", page.evaluate(LOW_CONTRAST), [])
    page.dark(False)


TESTS = (loads_alone, says_what_was_tried, says_the_gist, says_the_gist_of_pools, tells_meshes_apart, limit_looks_like_no_strategy, maps_what_fits,
         shows_every_point, sorts, filters, shows_failures, draws_what_is_chosen,
         draws_the_chosen_options, follows_pointer_finger_and_keyboard, hides_and_shows_lines, shows_names_as_text, fits_a_phone,
         does_not_overlap, is_legible_in_light_and_dark)


def take_pictures(page, folder):
    """What people should look at."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for name, size, dark in (("light", DESKTOP, False), ("dark", DESKTOP, True), ("phone", PHONE, False)):
        page.dark(dark)
        page.open("sweep.html", *size)
        page.size(size[0], page.evaluate("document.documentElement.scrollHeight"))
        page.frame()
        page.picture(pathlib.Path(folder) / f"{name}.png")


if __name__ == "__main__":
    sys.exit(main(TESTS, make_pages, take_pictures))
