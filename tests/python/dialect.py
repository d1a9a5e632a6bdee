"""What the program itself says of torchvision's networks in the dialect `pytorch`: a second witness, that shares nothing
with the recorder."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("SNSIM_BINARY") or str(ROOT / "build" / "snsim")


def is_there():
    return os.access(BINARY, os.X_OK)


def live_peak(network, batch, *options):
    """Live bytes at the peak."""
    done = subprocess.run([BINARY, "--net", network, "--batch", str(batch), "--gpu", "a100_80", "--strategy", "pytorch",
                           "--costs", "model", "--no-db", "--json", *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["results"][0]["live_peak_bytes"]
