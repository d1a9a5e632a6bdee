"""Exports models of torchvision, timm, transformers and diffusers to ONNX files in training mode, and compares what snsim says of the
file with PyTorch's own live bytes at the peak, measured on fake tensors: no GPU is needed.

    python3 bench/onnx_models.py --folder /tmp/exports                 # all of bench/onnx_zoo.py
    python3 bench/onnx_models.py --folder /tmp/exports --only 'hf/*,timm/levit*'
    python3 bench/onnx_models.py --folder /tmp/exports --markdown

Files and PyTorch's bytes stay in the folder and are used again; weights beside the files are deleted, as snsim does not read them.
Attention is the kernel that a GPU takes of tensors of four bytes. Needs onnx and onnxscript beside the libraries.
"""
import argparse
import contextlib
import fnmatch
import json
import multiprocessing
import os
import subprocess
import sys

import pytorch_memory as memory
import torch
from onnx_zoo import MODELS
from torch.nn import functional as F

aten = torch.ops.aten
EXPORTED = 2  # images of the file


# ---- PyTorch's side ----

def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """What a GPU does with four bytes: its memory-efficient kernel, else products and a softmax. Keys that several heads share are
    repeated, as the exporter has it."""
    if enable_gqa and q.shape[-3] != k.shape[-3]:
        k, v = (x.repeat_interleave(q.shape[-3] // k.shape[-3], -3) for x in (k, v))
    if q.dim() != 4 or q.shape[-1] % 4 or v.shape[-1] % 4:
        return aten._scaled_dot_product_attention_math(q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]
    mask = attn_mask
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(mask.logical_not(), float("-inf"))
        if mask.shape[-1] % 16:
            mask = F.pad(mask, (0, 16 - mask.shape[-1] % 16))[..., :mask.shape[-1]]
        mask = mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    needs = any(t is not None and t.requires_grad for t in (q, k, v, mask))
    return aten._scaled_dot_product_efficient_attention(q, k, v, mask, needs, dropout_p, is_causal, scale=scale)[0]


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5):
    """A GPU's takes and makes plain images, whichever way its input lies."""
    return torch.group_norm(x.contiguous(), num_groups, weight, bias, eps)


def without_values():
    """Fresh weights are never looked at."""
    for name in ("normal_", "uniform_", "trunc_normal_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_", "orthogonal_"):
        setattr(torch.nn.init, name, lambda tensor, *_, **__: tensor)


def loss_of(model, out):
    if model.loss == "mse":
        return F.mse_loss(out, torch.zeros_like(out))
    out = out.flatten(0, 1) if out.dim() == 3 else out
    return F.cross_entropy(out, torch.zeros(out.shape[0], *out.shape[2:], dtype=torch.int64))


def without_bytes(net):
    """The same model of fake tensors; it was made of real ones, as some look at numbers while they are made."""
    fakes = {}
    for module in net.modules():
        for members in (module._parameters, module._buffers):
            for key, value in members.items():
                if value is None:
                    continue
                if id(value) not in fakes:
                    fake = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
                    fakes[id(value)] = torch.nn.Parameter(fake, value.requires_grad) if isinstance(value, torch.nn.Parameter) else fake
                members[key] = fakes[id(value)]
    return net


def unpacked():
    """transformers looks at positions whether several texts are packed into one, which fake tensors do not let it see: they are not."""
    masks = sys.modules.get("transformers.masking_utils")
    if masks:
        masks.find_packed_sequence_indices = lambda *_, **__: None


def measure(model, batch):
    F.dropout, F.scaled_dot_product_attention, F.group_norm = memory.dropout, attention, group_norm
    net = model.make().train()
    net.measured = True
    unpacked()
    with memory.FakeTensorMode():
        without_bytes(net)
        update = memory.optimizer_of("momentum", [p for p in net.parameters() if p.requires_grad])
        tracker = memory.Tracker()
        tracker.leave_alone(p for p in net.parameters() if not p.requires_grad)
        tracker.track_external(net, update)
        with tracker:
            given = model.given(batch)
            for _ in range(2):
                update.zero_grad()
                loss = loss_of(model, net(*given))
                loss.backward()
                del loss
                tracker.reset_mod_stats()
                update.step()
        (peak,) = tracker.get_tracker_snapshot("peak").values()
        parameters = sum(p.numel() for p in net.parameters())
    return {"total": peak["Total"], "parameters": parameters} | {getattr(kind, "value", kind): count for kind, count in peak.items()}


def export(model, path):
    net = model.make().train()
    with torch.no_grad():
        given = model.given(EXPORTED)
        names = ["input_ids" if not given[0].is_floating_point() else "images", *(f"given_{i}" for i in range(1, len(given)))]
        named = getattr(net, "names", ())
        names[len(names) - len(named):] = named
        torch.onnx.export(net, given, path, dynamo=True, input_names=names, optimize=False, opset_version=23, external_data=True)
    if os.path.exists(path + ".data"):
        os.remove(path + ".data")


def prepare(name, base, batch):
    """Writes BASE.onnx and BASE.json; what went wrong stands in the latter."""
    model, found = MODELS[name], {}
    os.environ["TQDM_DISABLE"] = "1"
    without_values()
    with open(base + ".log", "w", encoding="utf-8") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        try:
            found["step"] = "measure"
            found["pytorch"] = put_back(measure, model, batch)
            found["step"] = "export"
            export(model, base + ".onnx")
            found["step"] = "done"
        except BaseException as error:  # of any library
            found["error"] = f"{type(error).__name__}: {error}"[:300]
    with open(base + ".json", "w", encoding="utf-8") as file:
        json.dump(found, file)


def put_back(function, *arguments):
    """With PyTorch's own functions back afterwards."""
    kept = F.dropout, F.scaled_dot_product_attention, F.group_norm
    try:
        return function(*arguments)
    finally:
        F.dropout, F.scaled_dot_product_attention, F.group_norm = kept


def prepared(name, options):
    """A process a model, so that one that hangs or dies takes no other with it."""
    base = os.path.join(options.folder, name.replace("/", "-"))
    if not os.path.exists(base + ".json"):
        child = multiprocessing.get_context("fork").Process(target=prepare, args=(name, base, options.batch))
        child.start()
        child.join(options.seconds)
        if child.is_alive():
            child.kill()
            child.join()
            with open(base + ".json", "w", encoding="utf-8") as file:
                json.dump({"step": "late", "error": f"not exported in {options.seconds} s"}, file)
    with open(base + ".json", encoding="utf-8") as file:
        return base + ".onnx", json.load(file)


# ---- snsim's side ----

def ask(options, path, loss):
    done = subprocess.run([options.snsim, "--net", path, "--batch", str(options.batch), "--loss", loss, "--strategy", "pytorch", "--gpu", "h200",
                           "--costs", "model", "--no-db", "--json"], capture_output=True, text=True)
    if done.returncode > 1:
        return None, done.stderr.strip()
    return json.loads(done.stdout), None


def compare(name, options):
    path, found = prepared(name, options)
    row = {"model": name}
    if "error" in found:
        return row | {"unmeasured": f"{found['step']}: {found['error']}"}
    answer, refused = ask(options, path, MODELS[name].loss)
    if refused is not None:
        return row | {"refused": refused.replace(path, os.path.basename(path))}
    row |= {"snsim": answer["results"][0]["live_peak_bytes"], "pytorch": found["pytorch"]["total"]}
    return row | {"off": 100 * (row["snsim"] / row["pytorch"] - 1)}


def mebibytes(count):
    return f"{count / 2**20:,.1f}"


def cells(row):
    if "unmeasured" in row:
        return [row["model"], "", "", "", row["unmeasured"]]
    if "refused" in row:
        return [row["model"], "", "", "", "refused: " + row["refused"].removeprefix("snsim: ")]
    return [row["model"], mebibytes(row["pytorch"]), mebibytes(row["snsim"]), f"{row['off']:+.2f}", ""]


def print_row(row, markdown):
    if markdown:
        print("| " + " | ".join(cells(row)) + " |", flush=True)
    else:
        name, theirs, ours, off, why = cells(row)
        print(f"{name:<40}{theirs:>11}{ours:>11}{off:>9}  {why}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True, help="of files that stay")
    parser.add_argument("--only", default="*", metavar="GLOB,..", help="models")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=240, help="that an export may take")
    parser.add_argument("--export", action="store_true", help="only export")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--snsim", default=os.path.join(os.path.dirname(__file__), "..", "build", "snsim"))
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    names = [name for name in MODELS if any(fnmatch.fnmatchcase(name, glob) for glob in options.only.split(","))]
    if options.export:
        for name in names:
            print(name, prepared(name, options)[1].get("error", ""), flush=True)
        return 0
    rows = []
    for name in names:
        rows.append(compare(name, options))
        print_row(rows[-1], options.markdown)
    tried = [row for row in rows if "unmeasured" not in row]
    arrived = [abs(row["off"]) for row in tried if "off" in row]
    print(f"{len(tried)} models, {len(arrived)} arrive, {sum(off <= 1 for off in arrived)} within 1 %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
