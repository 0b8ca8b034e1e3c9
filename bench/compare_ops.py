#!/usr/bin/env python3
"""Times convolutions and batch norms in Pleat and the same in PyTorch, in turns in one run.

    bench/compare_ops.py [--program build/release/bench/op_times] [--device cuda] [--shapes conv_shapes.csv] [--seconds 150]

Both sides use the same types and formats and the same precision (true float32 unless --tf32 is given). A figure is the
median over the rounds, by events of the device (on the CPU by a steady clock). Pleat's convolutions are cuDNN's, tuned,
against PyTorch's with cudnn.benchmark. Without PyTorch, Pleat's times are printed alone. Sections, in this order:
  resnet18  the convolutions of ResNet-18 at batch 128, each pass
  unfold    unfold + GEMM against F.unfold + matmul
  conv3d    a (1, 3, 3) conv3d beside the conv2d of the same elements
  norm      batch norm in both formats, beside a copy, and after unfold and cuDNN
  shapes    the file of --shapes, until the seconds are used up
The columns of the file: those of oneDNN's layer lists (name,dims,n,g,ic,oc,id,ih,iw,kd,kh,kw,sd,sh,sw,pd,ph,pw,dd,dh,dw).
"""
import argparse
import csv
import math
import statistics
import subprocess
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

PASSES = ("forward", "backward_input", "backward_weight")
# Input channels, output channels, size, kernel, stride of its different layers, for images of 224 x 224.
RESNET18 = [
    (3, 64, 224, 7, 2), (64, 64, 56, 3, 1), (64, 128, 56, 3, 2), (64, 128, 56, 1, 2), (128, 128, 28, 3, 1),
    (128, 256, 28, 3, 2), (128, 256, 28, 1, 2), (256, 256, 14, 3, 1), (256, 512, 14, 3, 2), (256, 512, 14, 1, 2),
    (512, 512, 7, 3, 1),
]


class Conv:
    """A problem: input [N, C, spatial...], weight [K, C / groups, kernel...]."""

    def __init__(self, name, input, weight, stride, padding, dilation=None, groups=1):
        self.name, self.input, self.weight = name, list(input), list(weight)
        dims = len(input) - 2
        self.stride, self.padding = list(stride), list(padding)
        self.dilation, self.groups = list(dilation or [1] * dims), groups

    def words(self):
        keys = ("input", "weight", "stride", "padding", "dilation")
        return " ".join(f"{k}={','.join(map(str, getattr(self, k)))}" for k in keys) + f" groups={self.groups}"


def resnet18(batch):
    for c, k, size, r, s in RESNET18:
        yield Conv(f"{c}->{k} {size}x{size} {r}x{r}/{s}", (batch, c, size, size), (k, c, r, r), (s, s), (r // 2,) * 2)


def conv_shapes(path):
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            dims = int(row["dims"])
            axes = "dhw"[3 - dims:]
            get = lambda letter: [int(row[letter + a]) for a in axes]
            n, g, ic, oc = (int(row[k]) for k in ("n", "g", "ic", "oc"))
            # Where the sides of the padding differ, the low one for both gives the same output.
            yield Conv(row["name"], [n, ic, *get("i")], [oc, ic // g, *get("k")], get("s"), get("p"), get("d"), g)


class Pleat:
    def __init__(self, program, device, tf32, threads):
        command = [program, "--device", device, "--precision", "high" if tf32 else "highest", "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        reply = self.process.stdout.readline().strip()
        if not reply:
            raise RuntimeError(f"op_times ended at '{line}'")
        if reply.startswith("error: "):
            raise RuntimeError(reply[7:])
        return reply

    def prepare(self, line):
        self.ask("prepare " + line)
        return lambda: float(self.ask("time"))


class Torch:
    def __init__(self, device):
        self.device = device

    def tensor(self, shape, format="contiguous"):
        x = torch.randn(*shape, device=self.device)
        if format == "channels_last":
            x = x.contiguous(memory_format=torch.channels_last_3d if x.dim() == 5 else torch.channels_last)
        return x

    def timed(self, work):
        """A function that gives milliseconds, of as many runs as the other side takes."""
        for _ in range(3):
            work()

        def run(n):
            if self.device == "cuda":
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                for _ in range(n):
                    work()
                end.record()
                end.synchronize()
                return start.elapsed_time(end) / n
            start = time.perf_counter()
            for _ in range(n):
                work()
            return 1e3 * (time.perf_counter() - start) / n

        once = run(1)
        n = 1 if once > 5 else 100 if once < 0.05 else int(5 / once) + 1
        return lambda: run(n)

    def conv(self, c, which, format="contiguous"):
        x, w = self.tensor(c.input, format), self.tensor(c.weight, format)
        dims = len(c.input) - 2
        y = torch.ops.aten.convolution(x, w, None, c.stride, c.padding, c.dilation, False, [0] * dims, c.groups)
        if which == "forward":
            return self.timed(lambda: torch.ops.aten.convolution(
                x, w, None, c.stride, c.padding, c.dilation, False, [0] * dims, c.groups))
        dy = torch.randn_like(y)
        mask = [which != "backward_weight", which != "backward_input", False]
        return self.timed(lambda: torch.ops.aten.convolution_backward(
            dy, x, w, None, c.stride, c.padding, c.dilation, False, [0] * dims, c.groups, mask))

    def unfold(self, c, which):
        x, w = self.tensor(c.input).requires_grad_(), self.tensor(c.weight).requires_grad_()

        def forward():
            columns = F.unfold(x, c.weight[2:], padding=c.padding, stride=c.stride)
            return (w.flatten(1) @ columns).unflatten(2, [
                (c.input[i + 2] + 2 * c.padding[i] - c.weight[i + 2]) // c.stride[i] + 1 for i in range(2)])

        if which == "forward":
            with torch.no_grad():
                return self.timed(torch.no_grad()(forward))
        y = forward()
        dy = torch.randn_like(y)
        return self.timed(lambda: torch.autograd.grad(y, (x, w), dy, retain_graph=True))

    def norm(self, shape, which, format):
        x = self.tensor(shape, format).requires_grad_()
        w, b = (torch.ones(shape[1], device=self.device, requires_grad=True) for _ in range(2))
        forward = lambda: F.batch_norm(x, None, None, w, b, True)
        if which == "forward":
            return self.timed(torch.no_grad()(forward))
        y = forward()
        dy = torch.randn_like(y)
        return self.timed(lambda: torch.autograd.grad(y, (x, w, b), dy, retain_graph=True))

    def copy(self, shape):
        a, b = self.tensor(shape), self.tensor(shape)
        return self.timed(lambda: b.copy_(a))


class Comparison:
    def __init__(self, args):
        self.args = args
        self.pleat = Pleat(args.program, args.device, args.tf32, args.threads)
        self.torch = Torch(args.device) if torch else None
        self.ends = time.monotonic() + args.seconds
        self.failures = []
        self.ratios = {}

    def out_of_time(self):
        return time.monotonic() > self.ends

    def medians(self, *peers):
        times = [[] for _ in peers]
        for _ in range(self.args.rounds):
            for own, peer in zip(times, peers):
                own.append(peer())
        return [statistics.median(own) for own in times]

    def figures(self, section, name, line, make_torch):
        """Milliseconds of Pleat and of PyTorch (None without it); None when Pleat could not do it."""
        try:
            ours = self.pleat.prepare(line)
            theirs = make_torch() if self.torch and make_torch else None
            ms, *other = self.medians(ours, *([theirs] if theirs else []))
        except RuntimeError as error:
            self.failures.append(f"{name}: {str(error).splitlines()[0]}")
            return None
        if other:
            self.ratios.setdefault(section, []).append((other[0] / ms, name))
        return ms, other[0] if other else None

    def row(self, section, name, line, make_torch=None, note=lambda ms: ""):
        """Prints a row and returns Pleat's milliseconds."""
        found = self.figures(section, name, line, make_torch)
        if found is None:
            print(f"  {name:52} failed", flush=True)
            return None
        ms, other = found
        compared = f"  torch {other:9.4f} ms  {other / ms:6.2f} x" if other else ""
        print(f"  {name:52} pleat {ms:9.4f} ms{compared}{note(ms)}", flush=True)
        return ms

    def conv_rows(self, section, problems):
        """A row for each problem, with all passes."""
        print(f"  {section + ': Pleat in ms, x':36}" + "".join(f"{which:>22}" for which in PASSES))
        for done, c in enumerate(problems):
            cells = []
            for which in PASSES:
                if self.out_of_time():
                    print(f"  (the time was used up after {done} problems of this section)")
                    return
                line = (f"conv pass={which} implementation={self.args.implementation} tuned={int(self.args.tuned)} "
                        f"{c.words()}")
                found = self.figures(section, f"{c.name} {which}", line, lambda: self.torch.conv(c, which))
                if found is None:
                    cells.append("failed")
                else:
                    cells.append(f"{found[0]:.4f}" + (f" {found[1] / found[0]:6.2f} x" if found[1] else ""))
            print(f"  {c.name:36}" + "".join(f"{cell:>22}" for cell in cells), flush=True)

    def unfold_rows(self):
        s = self.args.scale
        problems = [
            Conv(f"unfold {max(1, 128 // s)} x 64 x 32 x 32, 3x3 -> 64", (max(1, 128 // s), 64, 32, 32), (64, 64, 3, 3), (1, 1), (1, 1)),
            Conv(f"unfold {max(1, 20480 // s)} x 32 x 4 x 4, 3x3 -> 64", (max(1, 20480 // s), 32, 4, 4), (64, 32, 3, 3), (1, 1), (1, 1)),
        ]
        for c in problems:
            for which in ("forward", "backward"):
                self.row(f"unfold of {c.input[0]}", f"{c.name} {which}",
                         f"conv pass={which} implementation=unfold {c.words()}", lambda: self.torch.unfold(c, which))

    def conv3d_rows(self):
        s = self.args.scale
        n, depth = 8, max(1, 500 // s)
        flat = Conv("conv2d (3, 3)", (n * depth, 2, 64, 64), (16, 2, 3, 3), (1, 1), (1, 1))
        deep = Conv("conv3d (1, 3, 3)", (n, 2, depth, 64, 64), (16, 2, 1, 3, 3), (1, 1, 1), (0, 1, 1))
        for implementation in dict.fromkeys((self.args.implementation, "unfold")):
            for which in ("forward", "backward"):
                times = []
                for c in (flat, deep):
                    line = f"conv pass={which} implementation={implementation} tuned={int(self.args.tuned)} {c.words()}"
                    note = lambda ms: f"  {ms / times[0]:5.2f} of conv2d" if times and times[0] else ""
                    times.append(self.row("conv3d", f"{implementation} {c.name} {which}", line,
                                          (lambda: self.torch.conv(c, which)) if implementation != "unfold" else None,
                                          note))

    def norm_rows(self):
        shape = [max(1, 256 // self.args.scale), 64, 56, 56]
        size = ",".join(map(str, shape))
        gigabytes = 4 * math.prod(shape) / 1e9
        copy = self.row("copy", f"copy {size}", f"copy input={size}", lambda: self.torch.copy(shape),
                        lambda ms: f"  {2e3 * gigabytes / ms:6.0f} GB/s")
        # Forward reads the input twice and writes once; backward reads input and gradient twice and writes once.
        for which, passes in (("forward", 3), ("backward", 5)):
            share = lambda ms: (f"  {1e3 * passes * gigabytes / ms:6.0f} GB/s" +
                                (f" = {50 * passes * copy / ms:3.0f} % of the copy's" if copy else ""))
            for format in ("contiguous", "channels_last"):
                self.row("norm", f"batch norm {size} {format} {which}", f"norm input={size} format={format} pass={which}",
                         lambda: self.torch.norm(shape, which, format), share)
            for after in dict.fromkeys(("unfold", self.args.implementation)):
                self.row("norm", f"batch norm {size} after {after} {which}", f"norm input={size} after={after} pass={which}",
                         None, share)

    def run(self):
        args = self.args
        print(f"Pleat: {self.pleat.ask('versions')}")
        if torch:
            cudnn = torch.backends.cudnn.version() if args.device == "cuda" else "not used"
            print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {cudnn}, {args.threads} threads")
        else:
            print("PyTorch cannot be imported: Pleat alone")
        print(f"float32, TF32 {'on' if args.tf32 else 'off'}, medians of {args.rounds} rounds in turns; x: torch's time over Pleat's")
        sections = {
            "resnet18": lambda: self.conv_rows("resnet18", resnet18(max(1, 128 // args.scale))),
            "unfold": self.unfold_rows,
            "conv3d": self.conv3d_rows,
            "norm": self.norm_rows,
            "shapes": lambda: self.conv_rows("shapes", conv_shapes(args.shapes)) if args.shapes else None,
        }
        for name, section in sections.items():
            if name in args.sections:
                section()
        for name, ratios in self.ratios.items():
            worst = min(ratios)
            mean = math.exp(statistics.fmean(math.log(r) for r, _ in ratios))
            print(f"{name}: {len(ratios)} rows, geometric mean {mean:.2f} x, worst {worst[0]:.2f} x ({worst[1]}), "
                  f"{sum(r >= 1 for r, _ in ratios)} at least as fast")
        if self.failures:
            print(f"{len(self.failures)} failed:")
            for failure in self.failures[:20]:
                print(f"  {failure[:200]}")
        return 1 if self.failures else 0


def main():
    sections = ["resnet18", "unfold", "conv3d", "norm", "shapes"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bench/op_times")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--implementation", help="of the convolutions; cudnn on a GPU, else direct")
    parser.add_argument("--no-tuning", dest="tuned", action="store_false", help="heuristics instead of the tuner")
    parser.add_argument("--shapes", help="a CSV file of convolutions")
    parser.add_argument("--sections", type=lambda text: text.split(","), default=sections)
    parser.add_argument("--seconds", type=float, default=150, help="after these no further problem is begun")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=int, default=1, help="batches are divided by this, for a quick look")
    parser.add_argument("--threads", type=int, default=2, help="of both sides on the CPU")
    parser.add_argument("--tf32", action="store_true", help="allow TF32 on both sides")
    args = parser.parse_args()
    if args.implementation is None:
        args.implementation = "cudnn" if args.device == "cuda" else "direct"
    if torch:
        torch.manual_seed(1)
        torch.set_num_threads(args.threads)
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = args.tf32
    sys.exit(Comparison(args).run())


if __name__ == "__main__":
    main()
