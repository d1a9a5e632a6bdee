"""`snsim calibrate --backend cuda` on the GPU in software (tests/fake_cuda): an algorithm that the device, or the process, does not
survive costs that algorithm and no other, and plans made with the calibration leave it out."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SNSIM, ROOT, FAKE = os.environ["SNSIM_BINARY"], pathlib.Path(os.environ["SNSIM_SOURCE_DIR"]), sys.argv[1]
NET = ROOT / "tests" / "nets" / "small_alexnet.json"
CONVOLUTIONS = 4


def snsim(*words, **more):
    environment = os.environ | {"SNSIM_CUDA_MODULE": FAKE} | more
    done = subprocess.run([SNSIM, *map(str, words)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: exit code {done.returncode}: {done.stderr}"
    return done


def calibrate(folder, name, **more):
    done = snsim("calibrate", "--net", NET, "--batch", 2, "--backend", "cuda", "--gpu", name, "--db", folder / name, "--json", **more)
    forward = {}
    for timing in json.loads(done.stdout)["timings"]:
        if timing["pass"] == "forward" and "algorithm" in timing:
            forward.setdefault(timing["algorithm"], []).append(timing["samples"])
    return forward, done.stderr


def check_less(folder, whole, why, **how):
    """`how` the precomputed one, number 1 of cuDNN's, goes wrong."""
    name = next(iter(how))
    less, said = calibrate(folder, name, **how)
    assert said.count(f"left out, as the device did not survive it: {why}") == CONVOLUTIONS, said
    assert less["precomputed_gemm"] == [0] * CONVOLUTIONS, less
    assert {algorithm: len(samples) for algorithm, samples in less.items()} == {
        algorithm: len(samples) for algorithm, samples in whole.items()}, less
    assert all(min(samples) > 0 for algorithm, samples in less.items() if algorithm != "precomputed_gemm"), less
    snsim("validate", "--net", NET, "--batch", 2, "--backend", "cuda", "--gpu", name, "--db", folder / name, "--workspace", "dynamic",
          "--strategy", "liveness", **how)  # no plan takes it


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        whole, said = calibrate(folder, "well")
        assert "left out" not in said and all(min(samples) > 0 for samples in whole.values()), (said, whole)
        assert len(whole["precomputed_gemm"]) == CONVOLUTIONS, whole
        check_less(folder, whole, "layer", FAKE_CUDA_CRASHING_ALGO="1")
        check_less(folder, whole, "training died in a library (Killed)", FAKE_CUDA_DEADLY_ALGO="1")


main()
