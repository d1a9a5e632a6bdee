"""Trains the same network, from the same weights, on the same images, by snsim and by PyTorch, and compares: the loss, every
gradient, and with --times how long an iteration takes.

    python3 bench/pytorch_twin.py --net resnet50 --batch 8
    python3 bench/pytorch_twin.py --net models/examples/small_resnet.json --batch 64 --weights mine.safetensors
    python3 bench/pytorch_twin.py --net lenet,alexnet,vgg16 --batch 64,16,4 --times 9 --markdown

Of networks with adapters (--net gpt2+lora=8) and with --freeze both train what snsim trains. Adapters' second factors, which are 0 at
first, are drawn here, for nothing would come through them to the first ones.

snsim draws the weights (--weights takes a file instead) and leaves its gradients in a file (`snsim run --save-weights
--save-gradients`). PyTorch runs a network made of the layers that `snsim graph --json` has, in float32, and once more in
float64, from which both are measured: the error of a gradient is the norm of the difference over the norm of the gradient in
float64. Dropout keeps in PyTorch what snsim keeps: masks are functions of seed, layer and element (exec/kernel/kernel_internal.h).

Times: --times N measures N pairs, snsim and PyTorch in turn, each the median of --iterations, both with --threads; the table
has the medians of the pairs, with --markdown as docs/measured/parity.md has it. PyTorch is timed with plain tensors and with channels_last. Peak memory is of the processes.

Exit codes: 1 where a loss is off by more than 1e-5 of it, or the median error is more than one and a half times PyTorch's;
2 and 3 for what was asked; 4 where PyTorch is missing. PyTorch for the CPU is enough.
"""
import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import numpy
    import torch
    from torch.nn import functional as F
except ImportError as error:
    print(f"pytorch_twin.py: error: PyTorch cannot be imported by this Python: {error}", file=sys.stderr)
    sys.exit(4)

from pytorch_network import Network

SEED = 1
THEIRS = ("pytorch", "channels_last")
LOSS_TOLERANCE, ERROR_TOLERANCE = 1e-5, 1.5
SMALLEST = 1e-9  # of the largest gradient's norm: what is smaller is 0 but for rounding, as of a bias ahead of a BN


def fail(code, text):
    print(f"pytorch_twin.py: error: {text}", file=sys.stderr)
    sys.exit(code)


def ask(program, arguments):
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
    except OSError as error:
        fail(2, f"{program}: {error.strerror}; build snsim, or name it with --snsim")
    if done.returncode:
        fail(done.returncode, f"snsim {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


# ---- snsim's random numbers (exec/data/random.h) ----

MASK, GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15
PIXELS, LABELS, ORDER = (1 << 30), (1 << 30) + 1, (1 << 30) + 2  # streams; the last one orders images


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def key_of(seed, stream):
    return mix((mix((seed + GOLDEN) & MASK) + (stream + 1) * GOLDEN) & MASK)


def place(key, count, index):
    """What stands at a place of 0 .. count - 1 in the random order of a key."""
    half = 1
    while 1 << 2 * half < count:
        half += 1
    low = (1 << half) - 1
    while True:
        left, right = index >> half, index & low
        for step in range(6):
            mixed = left ^ (mix((key + ((step << half | right) + 1) * GOLDEN) & MASK) & low)
            left, right = right, mixed
        index = left << half | right
        if index < count:
            return index


def numbers(start, count):
    """The first so many numbers of a key's stream."""
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(start) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(GOLDEN)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return z ^ (z >> numpy.uint64(31))


def kept(seed, layer, iteration, ratio, shape):
    """Dropout's mask: 1 where an element is kept."""
    start = mix((seed + GOLDEN) & MASK)
    for part in (layer, iteration):
        start = mix(((start ^ part) + GOLDEN) & MASK)
    bits = numbers(start, int(numpy.prod(shape)))
    return ((bits >> numpy.uint64(11)) >= numpy.uint64(int(ratio * 2**53))).reshape(shape)


def synthetic(stream, count, below):
    """snsim's synthetic batch 0: whole numbers (exec/data/batch_synthetic.c)."""
    return (numbers(key_of(key_of(SEED, stream), 0), count) % numpy.uint64(below)).astype(numpy.int64)


def normal(stream, shape):
    """The same of nearly normal numbers: pixels, and targets."""
    bits = numbers(key_of(key_of(SEED, stream), 0), int(numpy.prod(shape)))
    low = numpy.uint64(0xFFFF)
    total = sum(((bits >> numpy.uint64(shift)) & low).astype(numpy.int64) for shift in (0, 16, 32, 48))
    return ((total - 131070).astype(numpy.float32) * numpy.float32(numpy.float32(1.7320508) / numpy.float32(65536))).reshape(
        shape)


# ---- files ----

def read_tensors(path):
    """A safetensors file of float32, as arrays by name."""
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data, "<f4", (t["data_offsets"][1] - t["data_offsets"][0]) // 4,
                                   8 + length + t["data_offsets"][0]).reshape(t["shape"])
            for name, t in header.items()}


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for values in tensors.values():
            file.write(numpy.ascontiguousarray(values, "<f4").tobytes())


class Question:
    """A network, a batch of it, and where the files of both sides lie."""

    def __init__(self, options, net, batch, folder):
        self.options, self.net, self.batch, self.folder = options, net, batch, folder
        self.narrow = "+lora=" in net or bool(options.freeze)
        graph = ["graph", "--net", net, "--json", "--dialect", "pytorch", *self.size()]
        self.network = json.loads(self.snsim(graph))["network"]
        shape = Network(self.network)
        self.classes = 0 if shape.squares else min(channels for channels, *_ in shape.end_shapes)
        # a file has images with a label each
        self.drawn = "tokens" in self.network or shape.each or shape.squares or len(self.network["input"]) > 3
        if self.drawn:
            self.images, self.labels = self.draw(shape)
            return
        random = numpy.random.default_rng(SEED)
        self.images = random.standard_normal((batch, *self.network["input"]), dtype=numpy.float32)
        self.labels = random.integers(0, self.classes, batch)
        numpy.save(self.path("images.npy"), self.images)
        numpy.save(self.path("labels.npy"), self.labels)

    def draw(self, shape):
        """The batch that snsim draws. Of several ends all have the same labels, or targets."""
        if self.classes:
            labels = synthetic(LABELS, self.batch * int(numpy.prod(shape.positions, dtype=int)), self.classes)
            labels = labels.reshape(self.batch, *shape.positions)
        else:
            labels = normal(LABELS, (self.batch, *shape.end_shapes[0]))
        if "tokens" in self.network:
            rows = min(layer["vocabulary"] for layer in self.network["layers"] if layer["op"] == "EMBEDDING")
            tokens = self.network["tokens"]
            return synthetic(PIXELS, self.batch * tokens, rows).reshape(self.batch, 1, tokens, 1), labels
        return normal(PIXELS, (self.batch, *self.network["input"])), labels

    def size(self):
        """Images or sequences of another size than the network's own."""
        sizes = {"--image": self.options.image, "--sequence": self.options.sequence}
        return [word for option, size in sizes.items() if size for word in (option, str(size))]

    def path(self, name):
        return os.path.join(self.folder, name)

    def snsim(self, arguments):
        return ask(self.options.snsim, arguments)

    def run(self, strategy, iterations, *more):
        """`snsim run` on the batch."""
        data = [] if self.drawn else ["--data", self.path("images.npy")]
        data += ["--freeze", self.options.freeze] if self.options.freeze else []
        return ["run", "--net", self.net, "--batch", str(self.batch), *self.size(), "--strategy", strategy, "--iterations",
                str(iterations), "--threads", str(self.options.threads), "--seed", str(SEED), *data, "--no-db", "--json", *more]

    def batch_of(self, dtype):
        """The first batch in snsim's order."""
        if self.drawn:
            data = torch.from_numpy(self.images)
            labels = torch.from_numpy(self.labels)
            return (data if "tokens" in self.network else data.to(dtype)), (labels if self.classes else labels.to(dtype))
        key = key_of(key_of(SEED, ORDER), 0)
        order = [place(key, self.batch, i) for i in range(self.batch)]
        return torch.from_numpy(self.images[order]).to(dtype), torch.from_numpy(self.labels[order])


# ---- PyTorch ----

class Dropout:
    def __init__(self, network):
        self.index = {layer["name"]: i + 1 for i, layer in enumerate(network["layers"])}  # layer 0 is the input

    def __call__(self, x, layer, training):
        scale = 1 / numpy.float32(1 - layer["ratio"])
        shape = (len(x), *[1] * (x.ndim - 1)) if layer.get("images") else tuple(x.shape)
        mask = kept(SEED, self.index[layer["name"]], 0, layer["ratio"], shape) * scale
        return x * torch.from_numpy(mask).to(x.dtype)


def make_network(question, weights, dtype):
    """The network with these weights, and its parameters by snsim's names."""
    torch.manual_seed(SEED)
    net, named = Network(question.network, Dropout(question.network)), {}
    for layer, module in zip(net.layers, net.members):
        for kind, values in (*module.named_parameters(), *module.named_buffers()):
            if kind != "num_batches_tracked":
                values.data.copy_(torch.from_numpy(weights[f"{layer['name']}.{kind}"].copy()))
        named |= {f"{layer['name']}.{kind}": values for kind, values in module.named_parameters()}
    return net.to(dtype), named


def loss_of(net, images, labels):
    of = F.mse_loss if net.squares else F.cross_entropy
    return sum(of(end, labels) for end in net(images))


def gradients_of(question, weights, trained, dtype):
    """The loss, and the gradients of what is trained."""
    net, named = make_network(question, weights, dtype)
    if not trained <= set(named):
        fail(3, f"{question.net}: gradients of other names: {sorted(trained - set(named))[:3]}")
    for name, values in named.items():
        values.requires_grad_(name in trained)
    loss = loss_of(net, *question.batch_of(dtype))
    loss.backward()
    return loss.item(), {name: named[name].grad.numpy() for name in named if name in trained}


# ---- comparing ----

def distance(a, b):
    """Of two arrays, in float64 whatever they are."""
    return float(numpy.linalg.norm(a.astype(numpy.float64).ravel() - b.astype(numpy.float64).ravel()))


def open_adapters(path):
    """Draws the second factors of adapters in a file of weights; whether there are any."""
    weights, random = read_tensors(path), numpy.random.default_rng(SEED)
    second = [name for name in weights if name.endswith(".lora_B.weight")]
    for name in second:
        weights[name] = random.standard_normal(weights[name].shape, dtype=numpy.float32) * numpy.float32(0.02)
    if second:
        write_tensors(path, weights)
    return bool(second)


def compare(question):
    options = question.options
    weights_path = options.weights or question.path("weights.safetensors")
    gradients_path = question.path("gradients.safetensors")
    given = ["--load-weights", options.weights] if options.weights else ["--save-weights", weights_path]
    run = question.run("pytorch" if question.narrow else "liveness", 1, "--learning-rate", "0", "--save-gradients",
                       gradients_path)
    loss = json.loads(question.snsim(run + given))["results"][0]["loss"]
    if not options.weights and open_adapters(weights_path):
        loss = json.loads(question.snsim(run + ["--load-weights", weights_path]))["results"][0]["loss"]
    weights, ours = read_tensors(weights_path), read_tensors(gradients_path)
    exact_loss, exact = gradients_of(question, weights, set(ours), torch.float64)
    torch_loss, theirs = gradients_of(question, weights, set(ours), torch.float32)
    norms = {name: numpy.linalg.norm(values.ravel()) for name, values in exact.items()}
    counted = [name for name in exact if norms[name] > SMALLEST * max(norms.values())]
    errors = {side: {name: distance(values[name], exact[name]) / norms[name] for name in counted}
              for side, values in (("snsim", ours), ("pytorch", theirs))}
    row = {"net": question.net, "batch": question.batch, "threads": options.threads, "classes": question.classes,
           "tensors": len(exact), "left_out": len(exact) - len(counted),
           "loss": {"snsim": loss, "pytorch": torch_loss, "float64": exact_loss}}
    for side, found in errors.items():
        worst = max(found, key=found.get)
        row[side] = {"median": statistics.median(found.values()), "largest": found[worst], "largest_of": worst}
    if options.verbose:
        for name in counted:
            print(f"  {name:<40}{errors['snsim'][name]:>12.2e}{errors['pytorch'][name]:>12.2e}")
    return row


def is_good(row):
    exact = row["loss"]["float64"]
    near = abs(row["loss"]["snsim"] - row["loss"]["pytorch"]) <= LOSS_TOLERANCE * abs(exact)
    return near and row["snsim"]["median"] <= ERROR_TOLERANCE * row["pytorch"]["median"]


# ---- timing ----

def time_pytorch(pipe, question, weights_path, channels_last):
    """In a process of its own: for each number that comes through the pipe, the median of so many iterations."""
    torch.set_num_threads(question.options.threads)
    net, _ = make_network(question, read_tensors(weights_path), torch.float32)
    images, labels = question.batch_of(torch.float32)
    if channels_last:
        last = torch.channels_last_3d if images.ndim == 5 else torch.channels_last
        net, images = net.to(memory_format=last), images.contiguous(memory_format=last)
    net.dropout = lambda x, layer, training: F.dropout(x, layer["ratio"], training)  # its own, which costs what it costs
    update = torch.optim.SGD(net.parameters(), 0.001, momentum=0.9, weight_decay=0.0005)
    while iterations := pipe.recv():
        times = []
        for _ in range(iterations):
            start = time.perf_counter()
            update.zero_grad()
            loss_of(net, images, labels).backward()
            update.step()
            times.append(time.perf_counter() - start)
        pipe.send(statistics.median(times[1:] or times))
    with open("/proc/self/status", encoding="ascii") as status:  # getrusage() counts what it was before it became Python
        pipe.send(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")))


class Pytorch:
    """PyTorch, waiting in its process for its turn."""

    def __init__(self, question, weights_path, channels_last):
        self.pipe, other = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=time_pytorch, args=(other, question, weights_path, channels_last), daemon=True)
        self.process.start()
        self.ask(2)

    def ask(self, iterations):
        self.pipe.send(iterations)
        return self.pipe.recv()


# Runs a command, and says behind its output how large its processes were at most, in KiB. A process of its own, because a
# child counts the size of who started it as its own.
WATCH = """import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)"""


def time_snsim(question, strategy, iterations):
    """Seconds of an iteration, and the peak of the process in MiB."""
    command = [question.options.snsim, *question.run(strategy, iterations)]
    report, peak = ask(sys.executable, ["-c", WATCH, *command]).rsplit("}", 1)
    return json.loads(report + "}")["results"][0]["measured_iteration_ns"] / 1e9, int(peak) / 1024


def measure(question):
    """Pairs in turn, so that what else the machine does meets all alike."""
    options, weights_path = question.options, question.options.weights or question.path("weights.safetensors")
    theirs = {name: Pytorch(question, weights_path, name == "channels_last") for name in THEIRS}
    seconds, peaks = {}, {}
    for _ in range(options.times):
        for name, side in theirs.items():
            seconds.setdefault(name, []).append(side.ask(options.iterations + 1))
        for strategy in options.strategy:
            taken, peak = time_snsim(question, strategy, options.iterations + 1)
            seconds.setdefault(strategy, []).append(taken)
            peaks[strategy] = max(peak, peaks.get(strategy, 0))
    peaks |= {name: side.ask(0) for name, side in theirs.items()}
    bases = {"to_pytorch": "pytorch", "to_channels_last": "channels_last", "to_first": options.strategy[0]}
    return {name: {"ms": 1000 * statistics.median(values), "peak_mib": peaks[name]}
            | {ratio: statistics.median(a / b for a, b in zip(values, seconds[base])) for ratio, base in bases.items()}
            for name, values in seconds.items()}


# ---- printing ----

def print_row(row):
    loss, ours, theirs = row["loss"], row["snsim"], row["pytorch"]
    print(f"{row['net']}, batch {row['batch']}, {row['threads']} threads: {row['tensors']} gradients"
          + (f", {row['left_out']} of them 0 but for rounding and left out" if row["left_out"] else ""))
    print(f"  loss             snsim {loss['snsim']:.7f}   PyTorch {loss['pytorch']:.7f}   float64 {loss['float64']:.7f}"
          + (f"   ln(classes) {numpy.log(row['classes']):.4f}" if row["classes"] else ""))
    print(f"  median error     snsim {ours['median']:.2e}   PyTorch {theirs['median']:.2e}   "
          f"ratio {ours['median'] / theirs['median']:.2f}")
    print(f"  largest error    snsim {ours['largest']:.2e} ({ours['largest_of']})   PyTorch {theirs['largest']:.2e} "
          f"({theirs['largest_of']})")
    for name, t in row.get("times", {}).items():
        print(f"  {name:<32}{t['ms']:>10.1f} ms   {t['to_pytorch']:.2f} of PyTorch, {t['to_channels_last']:.2f} of "
              f"channels_last   peak {t['peak_mib']:,.0f} MiB")


def print_markdown(rows):
    print("| network, batch | gradients | loss: snsim | PyTorch | float64 | median error: snsim | PyTorch | ratio | largest: "
          "snsim | PyTorch |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        loss, ours, theirs = row["loss"], row["snsim"], row["pytorch"]
        print(f"| {row['net']}, {row['batch']} | {row['tensors']} | {loss['snsim']:.6f} | {loss['pytorch']:.6f} | "
              f"{loss['float64']:.6f} | {ours['median']:.1e} | {theirs['median']:.1e} | "
              f"{ours['median'] / theirs['median']:.2f} | {ours['largest']:.1e} | {theirs['largest']:.1e} |")
    timed = [row for row in rows if "times" in row]
    if timed:
        print_times(timed)


def print_times(rows):
    """A line for each network: the first strategy beside PyTorch, the others beside it and the first."""
    threads, (first, *others) = rows[0]["threads"], [name for name in rows[0]["times"] if name not in THEIRS]
    print(f"\n| network, batch, {threads} thread{'s' if threads > 1 else ''} | PyTorch ms | channels_last | snsim `{first}` | "
          "of PyTorch | of channels_last |" + "".join(f" `{name}` | of PyTorch | of `{first}` |" for name in others)
          + " peak MiB: " + " | ".join(["PyTorch", first, *others]) + " |")
    print("|---|" + "---:|" * (5 + 3 * len(others) + 2 + len(others)))
    for row in rows:
        times = row["times"]
        cells = [f"{row['net']}, {row['batch']}"] + [f"{times[name]['ms']:.0f}" for name in (*THEIRS, first)]
        cells += [f"**{times[first]['to_pytorch']:.2f}**", f"**{times[first]['to_channels_last']:.2f}**"]
        for name in others:
            cells += [f"{times[name]['ms']:.0f}", f"{times[name]['to_pytorch']:.2f}", f"{times[name]['to_first']:.2f}"]
        cells += [f"{times[name]['peak_mib']:,.0f}" for name in (THEIRS[0], first, *others)]
        print("| " + " | ".join(cells) + " |")


def describe(options):
    """Versions, processor, date and load: what figures are worth."""
    processor = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            processor = next(line.split(": ", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    mkldnn = [line.strip(" -") for line in torch.__config__.show().splitlines() if "MKL-DNN" in line]
    version = ask(options.snsim, ["--version"]).strip()
    return (f"{version}; PyTorch {torch.__version__} ({mkldnn[0].split(' (')[0] if mkldnn else 'no oneDNN'}); {processor}, "
            f"{os.cpu_count()} processors, {options.threads} threads; {time.strftime('%Y-%m-%d')}; load "
            f"{os.getloadavg()[0]:.1f} at the start")


def words_of(text):
    return [word for word in text.split(",") if word]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", type=words_of, default=["lenet"], help="names and files, parted by commas")
    parser.add_argument("--batch", type=words_of, default=["8"], help="one for all, or one for each network")
    parser.add_argument("--image", type=int, help="height and width, as snsim's --image")
    parser.add_argument("--sequence", type=int, help="tokens of a sequence, as snsim's --sequence")
    parser.add_argument("--freeze", metavar="GLOB,..", help="layers that are not trained, as snsim's --freeze")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--weights", metavar="FILE", help="weights to start from, as snsim's --load-weights")
    parser.add_argument("--times", type=int, default=0, metavar="N", help="also times, of N pairs")
    parser.add_argument("--iterations", type=int, default=5, metavar="N", help="of each of a pair, besides one to warm up")
    parser.add_argument("--strategy", type=words_of, default=["liveness", "superneurons"], help="of snsim, to be timed")
    parser.add_argument("--markdown", action="store_true", help="tables for a document")
    parser.add_argument("--json", action="store_true", help="a line for each network")
    parser.add_argument("--verbose", action="store_true", help="every gradient's errors, snsim's and PyTorch's")
    parser.add_argument("--snsim", default=os.path.join(os.path.dirname(__file__), "..", "build", "snsim"))
    options = parser.parse_args()
    if not all(batch.isdigit() and int(batch) > 0 for batch in options.batch):
        fail(2, "a batch is a whole number from 1")
    if len(options.batch) not in (1, len(options.net)):
        fail(2, f"{len(options.net)} networks and {len(options.batch)} batches; give one batch, or one for each")
    if options.threads < 1 or options.iterations < 1 or options.times < 0:
        fail(2, "--threads and --iterations are whole numbers from 1, --times from 0")
    return options


def main():
    options = read_options()
    torch.set_num_threads(options.threads)
    batches = options.batch if len(options.batch) > 1 else options.batch * len(options.net)
    rows = []
    if not options.json:
        print(describe(options) + "\n", flush=True)
    for net, batch in zip(options.net, map(int, batches)):
        with tempfile.TemporaryDirectory() as folder:
            question = Question(options, net, batch, folder)
            row = compare(question)
            if options.times:
                row["times"] = measure(question)
        rows.append(row)
        if options.json:
            print(json.dumps(row), flush=True)
        elif not options.markdown:
            print_row(row)
            sys.stdout.flush()
    if options.markdown:
        print_markdown(rows)
    sys.exit(0 if all(map(is_good, rows)) else 1)


if __name__ == "__main__":
    main()
