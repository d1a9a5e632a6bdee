"""scripts/validate-gpu on the GPU in software (tests/fake_cuda): its parts leave lines, tables and a page that says what was met,
what was not measured and what failed; folders join; and where there is no GPU nothing is written."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ["SNSIM_SOURCE_DIR"])
SNSIM, FAKE = os.environ["SNSIM_BINARY"], sys.argv[1]
NETS = ("tests/nets/tiny.json:2", "tests/nets/small_inception.json:2")


def validate(*words, module=FAKE, code=0):
    environment = os.environ | {"SNSIM_CUDA_MODULE": module, "PYTHON": "/bin/false"}
    done = subprocess.run([sys.executable, ROOT / "scripts" / "validate-gpu", *map(str, words)], env=environment, cwd=ROOT,
                          capture_output=True, text=True)
    assert done.returncode == code, f"{words}: exit code {done.returncode}, not {code}: {done.stderr}"
    return done.stderr


def lines_of(folder):
    return [json.loads(line) for line in (folder / "measured.jsonl").read_text(encoding="utf-8").splitlines()]


def only(place):
    (folder,) = place.iterdir()
    return folder


def check_lines(folder):
    by_part = {}
    for line in lines_of(folder):
        by_part.setdefault(line["part"], []).append(line)
    assert set(by_part) == {"machine", "memory", "calibrate", "carried", "same", "fastest", "pytorch", "dialect"}, set(by_part)
    assert all("failed" in line for line in by_part["memory"] + by_part["pytorch"] + by_part["dialect"])  # there is no PyTorch
    assert len(by_part["carried"]) == 2 and len(by_part["calibrate"]) == 4  # the second network, without TF32 and with it
    for line in by_part["same"] + by_part["fastest"]:
        assert len(line["results"]) == 13 and "failed" not in line, line
    for result in (result for line in by_part["same"] for result in line["results"]):
        assert result["bit_equal_to_baseline"] and result["planned_pool_bytes"] == result["touched_pool_bytes"], result
        assert result["predicted_device_bytes"] == result["measured_device_bytes"], result


def check_page(folder):
    page = (folder / "README.md").read_text(encoding="utf-8")
    for text in ("# Predicted and measured on Fake GPU", "in part: the tests were not run; 26 trainings of 2 networks",
                 "met: pool exact in 78 of 78; device at worst 0.00 % off", "of networks not calibrated", "| not measured |",
                 "## The same deterministic algorithms for all strategies", "## Copies beside kernels",
                 "## What failed", "- dialect: no known GPU is called like this one"):
        assert text in page, f"{text!r} is not in\n{page}"
    return page


def main():
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        parts = "memory,predict,same,fastest,pytorch,dialect"
        validate("-b", SNSIM, "-o", place / "all", "-i", 2, "-p", parts, *NETS)
        folder = only(place / "all")
        check_lines(folder)
        page = check_page(folder)
        validate("--report", folder)
        assert (folder / "README.md").read_text(encoding="utf-8") == page, "another page of the same lines"

        validate("-b", SNSIM, "-o", place / "one", "-i", 2, "-p", "same", NETS[0])
        before = len(lines_of(only(place / "one")))
        validate("-b", SNSIM, "-o", place / "one", "-i", 2, "-p", "same", NETS[0])  # again: in place of the first time
        assert len(lines_of(only(place / "one"))) == before == 2
        validate("--report", only(place / "one"), folder)
        assert len(lines_of(only(place / "one"))) == len(lines_of(folder))

        said = validate("-b", SNSIM, "-o", place / "none", module=str(place / "no.so"), code=4)
        assert "nothing was measured and nothing written" in said and not (place / "none").exists(), said
        assert "is not NET:BATCH" in validate("-b", SNSIM, "resnet50", code=2)
        assert "no part nonesuch" in validate("-b", SNSIM, "-p", "nonesuch", code=2)
        assert "no measured.jsonl" in validate("--report", place, code=3)


main()
