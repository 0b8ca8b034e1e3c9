#!/usr/bin/env python3
"""Compares a training step in Pleat with the same step in PyTorch: same network, batch, threads and precision, in turns.

    bench/compare_step.py [--program build/release/bench/train_step] [--model resnet20] [--device cpu|cuda]

Needs PyTorch (Debian: python3-torch). Prints the median and the quartiles of both, in milliseconds, and their ratio.
"""
import argparse
import statistics
import subprocess
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class BasicBlock(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.shortcut = nn.Identity()
        if stride != 1 or inside != out:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def resnet(widths, blocks):
    layers = [nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    inside = widths[0]
    for width in widths:
        for block in range(blocks):
            layers.append(BasicBlock(inside, width, 2 if block == 0 and width != widths[0] else 1))
            inside = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 10))


def small():
    layers, inside = [], 3
    for out in (32, 64, 128):
        layers += [nn.Conv2d(inside, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
        inside = out
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 10))


MODELS = {
    "small": small,
    "resnet20": lambda: resnet((16, 32, 64), 3),
    "resnet18": lambda: resnet((64, 128, 256, 512), 2),
}


class TorchStep:
    def __init__(self, model, batch, channels_last, device):
        torch.manual_seed(1)
        self.device = device
        self.net = MODELS[model]().to(device)
        self.images = torch.randn(batch, 3, 32, 32, device=device)
        if channels_last:
            self.net = self.net.to(memory_format=torch.channels_last)
            self.images = self.images.contiguous(memory_format=torch.channels_last)
        self.labels = torch.randint(10, (batch,), device=device)
        self.sgd = torch.optim.SGD(self.net.parameters(), 0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)

    def step(self):
        loss = F.cross_entropy(self.net(self.images), self.labels)
        self.sgd.zero_grad()
        loss.backward()
        self.sgd.step()

    def __call__(self):
        if self.device == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            self.step()
            end.record()
            end.synchronize()
            return start.elapsed_time(end)
        start = time.perf_counter()
        self.step()
        return 1e3 * (time.perf_counter() - start)


class PleatStep:
    def __init__(self, program, model, batch, threads, device, tf32):
        command = [program, "--model", model, "--batch-size", str(batch), "--threads", str(threads)]
        command += ["--device", device, "--precision", "high" if tf32 else "highest"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bench/train_step")
    parser.add_argument("--model", default="resnet20", choices=sorted(MODELS))
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--tf32", action="store_true", help="allow TF32 on both sides (GPU)")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = args.tf32
    peers = {
        "pleat": PleatStep(args.program, args.model, args.batch_size, args.threads, args.device, args.tf32),
        "torch": TorchStep(args.model, args.batch_size, False, args.device),
        "torch channels_last": TorchStep(args.model, args.batch_size, True, args.device),
    }
    for step in peers.values():  # warm-up: first calls allocate and choose
        for _ in range(2):
            step()
    times = {name: [] for name in peers}
    for _ in range(args.rounds):
        for name, step in peers.items():
            times[name].append(step())
    where = f"{args.threads} threads"
    if args.device == "cuda":
        where = f"{torch.cuda.get_device_name()}, TF32 {'on' if args.tf32 else 'off'}"
    print(f"{args.model}, batch {args.batch_size}, {where}, PyTorch {torch.__version__}, {args.rounds} rounds in turns")
    pleat = statistics.median(times["pleat"])
    for name, values in times.items():
        low, median, high = statistics.quantiles(values, n=4)
        print(f"  {name:20} median {median:8.1f} ms  quartiles {low:8.1f} {high:8.1f}  {median / pleat:5.2f} x pleat")


if __name__ == "__main__":
    main()
