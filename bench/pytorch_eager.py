"""Trains a network with PyTorch eager as plainly as most people do, to compare with snsim on the same GPU: the networks
of snsim's zoo (same layers, same order), float32 without TF32, SGD with momentum and weight decay, random images.

    python3 bench/pytorch_eager.py --net resnet50 --batch 64 [--largest] [--iterations 20] [--json]

Prints images/s (median iteration, batch already on the GPU, as snsim counts it) and the most memory: what PyTorch's
allocator handed out (torch.cuda.max_memory_allocated), what it held, and what the device had in use. With --largest also
the largest batch that trains. Ends with exit code 4 where PyTorch or a GPU is missing.
"""
import argparse
import json
import statistics
import sys

try:
    import torch
    from torch import nn
except ImportError:
    print("pytorch_eager.py: error: PyTorch is not installed for this Python", file=sys.stderr)
    sys.exit(4)


def alexnet():
    return nn.Sequential(
        nn.Conv2d(3, 96, 11, stride=4), nn.ReLU(inplace=True), nn.LocalResponseNorm(5), nn.MaxPool2d(3, 2),
        nn.Conv2d(96, 256, 5, padding=2), nn.ReLU(inplace=True), nn.LocalResponseNorm(5), nn.MaxPool2d(3, 2),
        nn.Conv2d(256, 384, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(384, 384, 3, padding=1), nn.ReLU(inplace=True),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2), nn.Flatten(),
        *classifier(256 * 6 * 6))


def classifier(inputs):
    return (nn.Linear(inputs, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True),
            nn.Dropout(), nn.Linear(4096, 1000))


def vgg16():
    layers, channels = [], 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
            channels = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), *classifier(512 * 7 * 7))


def conv_bn(inputs, outputs, kernel, stride=1):
    return (nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(outputs))


class Unit(nn.Module):
    """A bottleneck: 1x1 (which carries the stride, as in the paper), 3x3, 1x1, and a shortcut."""

    def __init__(self, inputs, width, stride, project):
        super().__init__()
        self.branch = nn.Sequential(*conv_bn(inputs, width, 1, stride), nn.ReLU(inplace=True), *conv_bn(width, width, 3),
                                    nn.ReLU(inplace=True), *conv_bn(width, 4 * width, 1))
        self.shortcut = nn.Sequential(*conv_bn(inputs, 4 * width, 1, stride)) if project else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.branch(x) + self.shortcut(x))


def resnet(units):
    layers, channels = [*conv_bn(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)], 64
    for stage, count in enumerate(units):
        width = 64 << stage
        for k in range(count):
            layers.append(Unit(channels, width, 2 if stage > 0 and k == 0 else 1, k == 0))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


NETS = {  # how to make it, image size
    "alexnet": (alexnet, 227),
    "vgg16": (vgg16, 224),
    "resnet50": (lambda: resnet((3, 4, 6, 3)), 224),
    "resnet101": (lambda: resnet((3, 4, 23, 3)), 224),
    "resnet152": (lambda: resnet((3, 8, 36, 3)), 224),
}


def train(net, batch, iterations, warm_up=3):
    """Milliseconds of each iteration."""
    make, image = NETS[net]
    torch.manual_seed(1)
    model = make().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=0.0005)
    loss = nn.CrossEntropyLoss()
    images = torch.randn(batch, 3, image, image, device="cuda")
    labels = torch.randint(1000, (batch,), device="cuda")
    times = []
    for i in range(warm_up + iterations):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        optimizer.zero_grad(set_to_none=False)  # gradients keep their memory, as snsim counts them
        loss(model(images), labels).backward()
        optimizer.step()
        end.record()
        torch.cuda.synchronize()
        if i >= warm_up:
            times.append(begin.elapsed_time(end))
    return times


def fits(net, batch):
    """Whether two iterations run; what a failed one held is given back."""
    done = False
    try:
        train(net, batch, 1, warm_up=1)
        done = True
    except torch.cuda.OutOfMemoryError:
        pass
    torch.cuda.empty_cache()  # here nothing refers to the model any more
    return done


def largest_batch(net, start):
    low, high = 0, start
    while fits(net, high):
        low, high = high, 2 * high
    while high - low > max(1, low // 64):  # to 2 percent
        middle = (low + high) // 2
        low, high = (middle, high) if fits(net, middle) else (low, middle)
    return low


def measure(net, batch, iterations, largest):
    torch.cuda.reset_peak_memory_stats()
    times = train(net, batch, iterations)
    free, total = torch.cuda.mem_get_info()
    result = {
        "net": net, "batch": batch, "framework": f"PyTorch {torch.__version__}",
        "device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
        "parameters": sum(p.numel() for p in NETS[net][0]().parameters()),
        "iterations": iterations, "measured_iteration_ns": round(statistics.median(times) * 1e6),
        "images_per_second": batch / (statistics.median(times) / 1e3),
        "allocated_bytes": torch.cuda.max_memory_allocated(), "held_bytes": torch.cuda.max_memory_reserved(),
        "device_bytes_in_use": total - free,
    }
    if largest:
        torch.cuda.empty_cache()
        result["largest_batch"] = largest_batch(net, batch)
    return result


def main():
    parser = argparse.ArgumentParser(description="Measures PyTorch eager for comparison with snsim.")
    parser.add_argument("--net", choices=sorted(NETS), required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--largest", action="store_true", help="also search the largest batch that trains")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.batch < 1 or args.iterations < 1:
        parser.error("--batch and --iterations must be at least 1")
    if not torch.cuda.is_available():
        print("pytorch_eager.py: error: PyTorch finds no GPU", file=sys.stderr)
        return 4
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True  # the fastest algorithms, like snsim's after a calibration
    r = measure(args.net, args.batch, args.iterations, args.largest)
    if args.json:
        print(json.dumps(r))
    else:
        print(f"{r['net']}, batch {r['batch']}, {r['framework']} on {r['device']}: {r['images_per_second']:.1f} images/s, "
              f"{r['allocated_bytes'] / 2**20:.0f} MiB allocated, {r['held_bytes'] / 2**20:.0f} MiB held"
              + (f", largest batch {r['largest_batch']}" if "largest_batch" in r else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
