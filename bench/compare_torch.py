#!/usr/bin/env python3
"""Runs the same problems in Pleat and in PyTorch, interleaved, and prints PyTorch's time over Pleat's.

    bench/compare_torch.py [--shapes conv_shapes.csv] [--only step,conv] [--quick] [--json FILE]

Sections, in this order:
  step    a training step (forward, loss, backward, SGD) of networks for images of 32 x 32 pixels
  norm    batch norm in training, forward and backward
  unfold  20,480 patches of 32 x 4 x 4, 3 x 3 to 64 channels: unfold and fold alone, and a convolution written
          as unfold, matmul, fold: forward, and backward to image and weight
  conv    convolutions, each pass: those of ResNet-18 at batch 128, or those of --shapes

Both sides have the same sizes, memory formats (contiguous is PyTorch's default), threads and precision. A gradient
comes in the format that the framework's own forward gave its result. Pleat chooses its implementations as in any
program, unless --implementation names one; on a GPU both sides tune (ConvPolicy's benchmark, cudnn.benchmark).

Two calls of each side are not counted. Then in each round one side is timed and then the other, in changing order;
problems under 5 ms run several times in a row, after a call that is not counted. By events of the device on a GPU, on
the CPU by a steady clock; on a machine that other work shares, --threads 1 --clock processor counts only the time that
the processor spent on either side. A ratio is one of the medians over the rounds: above 1, Pleat is faster.

Exit status: 0 all was compared, 1 something failed, 2 wrong options, 3 PyTorch cannot be used here.
"""
import argparse
import collections
import csv
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError as error:
    print(f"compare_torch.py: needs PyTorch (Debian: python3-torch): {error}", file=sys.stderr)
    sys.exit(3)

FORMATS = ("contiguous", "channels_last")
# Input channels, output channels, size, kernel, stride of its different layers, for images of 224 x 224.
RESNET18 = [
    (3, 64, 224, 7, 2), (64, 64, 56, 3, 1), (64, 128, 56, 3, 2), (64, 128, 56, 1, 2), (128, 128, 28, 3, 1),
    (128, 256, 28, 3, 2), (128, 256, 28, 1, 2), (256, 256, 14, 3, 1), (256, 512, 14, 3, 2), (256, 512, 14, 1, 2),
    (512, 512, 7, 3, 1),
]
LONG_ENOUGH = 5.0  # milliseconds in a row, for the clock
QUICK_GFLOP = 20  # of a pass of a convolution
# At smaller batches PyTorch takes other implementations for some convolutions.
QUICK_BATCH = 16
# Idle threads of OpenMP spin for some milliseconds after the work of one side, in the way of the other's.
SECONDS_BETWEEN = 0.01


# --- the two sides: prepare(problem), then time(n), the milliseconds of one of n runs


class Pleat:
    """The program timing_server: a JSON object a line, and one back."""

    def __init__(self, args):
        self.command = [args.program, "--device", args.device, "--precision", args.precision,
                        "--threads", str(args.threads), "--clock", args.clock]
        self.process = None

    def ask(self, command, **request):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            print(json.dumps({"command": command} | request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # it has ended: there is no reply either
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.command[0]} ended with status {self.process.wait()} at '{command}'")
        reply = json.loads(line)
        if "error" in reply:
            raise RuntimeError(reply["error"].replace("\n", " "))
        return reply["result"]

    def prepare(self, problem):
        self.ask("prepare", **problem)

    def time(self, runs):
        return self.ask("time", runs=runs)

    def close(self):
        if self.process is not None:
            self.process.stdin.close()  # it reads until there
            self.process.wait()


class Torch:
    def __init__(self, device, clock):
        self.device, self.work = device, None
        self.clock = time.process_time if clock == "processor" else time.perf_counter

    def prepare(self, problem):
        self.work = None  # its memory first
        if self.device == "cuda":
            torch.cuda.empty_cache()
        try:
            self.work = SECTIONS[problem["section"]][1](problem, self.device)
        except RuntimeError as error:
            raise RuntimeError(f"PyTorch: {error}") from error

    def time(self, runs):
        if self.device == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
        begin = self.clock()
        for _ in range(runs):
            self.work()
        if self.device != "cuda":
            return 1e3 * (self.clock() - begin) / runs
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / runs


# --- what PyTorch does with a problem; timing_server.cpp does the same


def random_numbers(shape, device, format="contiguous"):
    x = torch.randn(*shape, device=device)
    if format == "channels_last":
        x = x.contiguous(memory_format=torch.channels_last_3d if x.dim() == 5 else torch.channels_last)
    return x


def differentiable_work(problem, inputs, function):
    """A function forward alone, or backward alone to all inputs."""
    if problem["pass"] == "forward":
        return torch.no_grad()(function)
    y = function()
    dy = torch.randn_like(y)
    return lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True)


def conv_work(problem, device):
    x, w = (random_numbers(problem[key], device, problem["format"]) for key in ("input", "weight"))
    how = (problem["stride"], problem["padding"], problem["dilation"], False, [0] * (x.dim() - 2), problem["groups"])
    forward = lambda: torch.ops.aten.convolution(x, w, None, *how)
    if problem["pass"] == "forward":
        return forward
    dy = torch.randn_like(forward())
    wanted = [problem["pass"] == "backward_input", problem["pass"] == "backward_weight", False]
    return lambda: torch.ops.aten.convolution_backward(dy, x, w, None, *how, wanted)


def norm_work(problem, device):
    x = random_numbers(problem["input"], device, problem["format"]).requires_grad_()
    weight, bias = (torch.full((x.shape[1],), value, device=device, requires_grad=True) for value in (1.0, 0.0))
    return differentiable_work(problem, (x, weight, bias), lambda: F.batch_norm(x, None, None, weight, bias, True))


def unfold_work(problem, device):
    x = random_numbers(problem["input"], device).requires_grad_()
    w = random_numbers(problem["weight"], device).flatten(1).requires_grad_()
    kernel, padding = problem["weight"][2], problem["padding"][0]
    unfold = lambda: F.unfold(x, kernel, padding=padding)
    if problem["pass"] == "unfold":
        return torch.no_grad()(unfold)
    if problem["pass"] == "fold":
        columns = unfold().detach()
        return lambda: F.fold(columns, x.shape[2:], kernel, padding=padding)
    return differentiable_work(problem, (x, w), lambda: F.fold(w @ unfold(), output(problem), 1))


def step_work(problem, device):
    net = MODELS[problem["model"]]().to(device)
    images = random_numbers((problem["batch"], 3, 32, 32), device, problem["format"])
    if problem["format"] == "channels_last":
        net = net.to(memory_format=torch.channels_last)
    labels = torch.randint(10, (problem["batch"],), device=device)
    sgd = torch.optim.SGD(net.parameters(), 1e-3, momentum=0.9, weight_decay=5e-4, nesterov=True)

    def step():
        loss = F.cross_entropy(net(images), labels)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    return step


def conv_norm(inside, out, kernel=3, stride=1):
    return [nn.Conv2d(inside, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out)]


class BasicBlock(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.body = nn.Sequential(*conv_norm(inside, out, 3, stride), nn.ReLU(), *conv_norm(out, out))
        self.shortcut = nn.Sequential(*conv_norm(inside, out, 1, stride) if stride != 1 or inside != out else ())

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def resnet(widths, blocks):
    layers, inside = [*conv_norm(3, widths[0]), nn.ReLU()], widths[0]
    for width in widths:
        for block in range(blocks):
            layers.append(BasicBlock(inside, width, 2 if block == 0 and width != widths[0] else 1))
            inside = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 10))


def plain(widths, features):
    """3 x 3 convolutions of these widths with batch norm and ReLU, a 2 x 2 maximum where there is a 0."""
    layers, inside = [], 3
    for width in widths:
        layers += [*conv_norm(inside, width), nn.ReLU()] if width else [nn.MaxPool2d(2)]
        inside = width or inside
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(features, 10))


# As in examples/common/cifar_models.cpp.
MODELS = {
    "small": lambda: plain((32, 0, 64, 0, 128, 0), 128 * 4 * 4),
    "resnet20": lambda: resnet((16, 32, 64), 3),
    "resnet18": lambda: resnet((64, 128, 256, 512), 2),
    "vgg11": lambda: plain((64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0), 512),
}


# --- the problems: what both sides prepare, beside "section" and "format"


def convolution(input, weight, stride, padding, dilation=None, groups=1):
    """Input [N, C, spatial...], weight [K, C / groups, kernel...]."""
    return dict(input=input, weight=weight, stride=stride, padding=padding,
                dilation=dilation or [1] * len(stride), groups=groups)


def output(conv):
    return [(size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1 for size, taps, stride, padding, dilation
            in zip(conv["input"][2:], conv["weight"][2:], conv["stride"], conv["padding"], conv["dilation"])]


def gflop(conv):
    return 2e-9 * conv["input"][0] * math.prod(output(conv)) * math.prod(conv["weight"])


def read_shapes(path, batch=math.inf):
    """Names and convolutions of a file with the columns name,dims,n,g,ic,oc,id,ih,iw,kd,kh,kw,sd,sh,sw,pd,ph,pw,dd,dh,
    dw,od,oh,ow, in which dilation counts from 1; batches no larger than `batch`. Raises OSError, and ValueError for a row
    that is no convolution."""
    convs = []
    with open(path, newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            try:
                axes = "dhw"[3 - int(row["dims"]):]
                i, k, s, p, d, o = ([int(row[letter + axis]) for axis in axes] for letter in "ikspdo")
                n, groups, channels, filters = (int(row[key]) for key in ("n", "g", "ic", "oc"))
                conv = convolution([min(n, batch), channels, *i], [filters, channels // groups, *k], s, p, d, groups)
                name = row["name"]
            except KeyError as error:
                raise ValueError(f"{path}: the column {error} is missing") from error
            except (TypeError, ValueError) as error:
                raise ValueError(f"{path}:{number}: not a convolution: {error!r}") from error
            # Where the padding of the two sides differs, the low one for both gives the same output.
            if output(conv) != o:
                raise ValueError(f"{path}:{number}: {name}: the output would be {output(conv)}, not {o}")
            convs.append((name, conv))
    return convs


def conv_problems(args):
    convs = [(f"{c}->{k} {size}x{size} {r}x{r}/{s}",
              convolution([args.batch, c, size, size], [k, c, r, r], [s, s], [r // 2, r // 2]))
             for c, k, size, r, s in RESNET18]
    if args.shapes:
        convs = read_shapes(args.shapes, args.batch if args.quick else math.inf)
    for name, conv in convs:
        if args.quick and gflop(conv) > QUICK_GFLOP:
            continue
        # "resnet_50:conv1" is of the group resnet_50.
        group = name.split(":")[0] if ":" in name else "" if args.shapes else "ResNet-18"
        for which in ("forward", "backward_input", "backward_weight"):
            yield {"group": group, "name": name, "pass": which, "implementation": args.implementation,
                   "tuned": args.device == "cuda"} | conv


def norm_problems(args):
    for n, *sizes in ((128, 16, 32, 32), (256, 64, 56, 56), (128, 512, 4, 4)):
        shape = [args.batch if args.quick else n, *sizes]
        for which in ("forward", "backward"):
            yield {"group": "batch norm", "name": " x ".join(map(str, shape)), "pass": which, "input": shape}


def unfold_problems(args):
    patches = 2560 if args.quick else 20480
    conv = convolution([patches, 32, 4, 4], [64, 32, 3, 3], [1, 1], [1, 1])
    for which in ("unfold", "fold", "forward", "backward"):
        yield {"group": "patches", "name": f"{patches} patches of 32 x 4 x 4", "pass": which} | conv


def step_problems(args):
    for model in args.models:
        yield {"group": model, "name": f"{model}, batch {args.batch_size}", "pass": "step", "model": model,
               "batch": args.batch_size}


# In the order in which they run: the problems, and what PyTorch does with one.
SECTIONS = {"step": (step_problems, step_work), "norm": (norm_problems, norm_work),
            "unfold": (unfold_problems, unfold_work), "conv": (conv_problems, conv_work)}


def all_problems(args):
    for section in args.only:
        for problem in SECTIONS[section][0](args):
            for format in args.formats if section != "unfold" else ("contiguous",):
                # PyTorch has no channels_last with one dimension.
                if format == "contiguous" or len(problem.get("stride", "hw")) > 1:
                    yield problem | {"section": section, "format": format}


# --- measuring


def interleaved(sides, rounds):
    """Milliseconds of each side in each round."""
    runs = []
    for side in sides:
        side.time(1)  # plans, tunes, allocates
        once = side.time(1)
        runs.append(1 if once >= LONG_ENOUGH else min(200, math.ceil(LONG_ENOUGH / max(once, 1e-3))))
    times = [[] for _ in sides]
    for round in range(rounds):
        for i in range(len(sides))[::1 if round % 2 == 0 else -1]:
            time.sleep(SECONDS_BETWEEN)
            if runs[i] > 1:
                sides[i].time(1)  # the other side's operands are out of the caches again
            times[i].append(sides[i].time(runs[i]))
    return times


def compare(problem, sides, rounds):
    """A result as it stands in the JSON file; with "error" in place of times where a side cannot do it."""
    result = {key: problem[key] for key in ("section", "group", "name", "format", "pass")}
    try:
        for side in sides:
            side.prepare(problem)
        times = interleaved(sides, rounds)
    except RuntimeError as error:
        return result | {"error": str(error).splitlines()[0]}
    for name, own in zip(("pleat", "torch"), times):
        low, median, high = statistics.quantiles(own, n=4)
        result[name] = {"median_ms": median, "lower_quartile_ms": low, "upper_quartile_ms": high, "rounds_ms": own}
    return result | {"ratio": result["torch"]["median_ms"] / result["pleat"]["median_ms"]}


def print_result(result):
    line = f"  {result['name']:36.36} {result['pass']:15} {result['format']:13}"
    for side in () if "error" in result else (result["pleat"], result["torch"]):
        spread = (side["upper_quartile_ms"] - side["lower_quartile_ms"]) / side["median_ms"]
        line += f" {side['median_ms']:10.3f} ±{spread:5.0%}"
    print(line + (f" failed: {result['error']}" if "error" in result else f" {result['ratio']:7.2f}"), flush=True)


def compare_all(args, pleat):
    """The results, and how many problems were left when the time was up."""
    sides = (pleat, Torch(args.device, args.clock))
    ends = time.monotonic() + args.limit_seconds
    problems = list(all_problems(args))
    results, section = [], None
    for done, problem in enumerate(problems):
        if time.monotonic() > ends:
            return results, len(problems) - done
        if problem["section"] != section:
            section = problem["section"]
            print(f"{section:39}{'pass':16}{'format':12}{'Pleat ms':>12}{'quart.':>7}{'PyTorch ms':>11}{'quart.':>7}"
                  f"{'ratio':>8}")
        results.append(compare(problem, sides, args.rounds))
        print_result(results[-1])
    return results, 0


def summarise(results):
    """A row for each group, pass and format, then two for each section, a format each."""
    sets = collections.defaultdict(list)
    for r in results:
        if "ratio" in r:
            sets[r["section"], r["group"], r["pass"], r["format"]].append(r)
            sets[r["section"], "all", "all", r["format"]].append(r)
    summary = []
    # `all` of a section after its groups.
    for key, members in sorted(sets.items(), key=lambda item: (list(SECTIONS).index(item[0][0]), item[0][1] == "all")):
        worst = min(members, key=lambda member: member["ratio"])
        summary.append(dict(zip(("section", "group", "pass", "format"), key), problems=len(members),
                            geometric_mean=statistics.geometric_mean(m["ratio"] for m in members),
                            worst=worst["ratio"], worst_name=worst["name"], worst_pass=worst["pass"],
                            at_least_as_fast=sum(m["ratio"] >= 1 for m in members)))
    return summary


def print_summary(summary):
    print("\nPyTorch's time over Pleat's:\n")
    rows = [("section", "of", "pass", "format", "problems", "geometric mean", "worst", "which", "at least as fast")]
    for s in summary:
        which = s["worst_name"] + (" " + s["worst_pass"] if s["pass"] == "all" else "")
        rows.append((s["section"], s["group"] or "-", s["pass"], s["format"], str(s["problems"]),
                     f"{s['geometric_mean']:.2f}", f"{s['worst']:.2f}", which, str(s["at_least_as_fast"])))
    widths = [max(map(len, column)) for column in zip(*rows)]
    rows.insert(1, ["-" * width for width in widths])
    for row in rows:
        print("| " + " | ".join(map(str.ljust, row, widths)) + " |")


# --- the program


def processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def lines_of(path, word):
    try:
        with open(path) as file:
            return [line for line in file if word in line]
    except OSError:
        return []


def blas():
    """The library of PyTorch's matrix products on the CPU: where it is the unoptimised one of a distribution, their
    times say nothing about PyTorch."""
    if torch.backends.mkl.is_available():
        return "MKL"
    paths = {os.path.realpath(line.split()[-1]) for line in lines_of("/proc/self/maps", "blas")}
    return ", ".join(sorted(paths)) or "inside PyTorch"


def conditions(args, pleat):
    """What the times were taken on."""
    models = [line.split(":", 1)[1].strip() for line in lines_of("/proc/cpuinfo", "model name")]
    torch_on = f"BLAS {blas()}"
    if args.device == "cuda":
        torch_on = (f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, "
                    f"cuDNN {torch.backends.cudnn.version()}")
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": f"{(models or [platform.machine()])[0]}, {processors()} processors, {platform.system()}",
            "pleat": pleat.ask("versions"), "torch": f"PyTorch {torch.__version__}, {torch_on}",
            "threads": args.threads, "precision": args.precision,
            "clock": "device events" if args.device == "cuda" else args.clock, "command": " ".join(sys.argv),
            "rounds": args.rounds, "quick": args.quick, "load_before": os.getloadavg()[0]}


def several(known):
    """A type for argparse: names of `known` with commas, in its order."""
    def parse(text):
        names = text.split(",")
        if wrong := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"must be some of {','.join(known)}, got '{wrong[0]}'")
        return [name for name in known if name in names]
    return parse


def writable(path):
    """A type for argparse. What the file holds stays as it is until there is something to write."""
    if os.path.isdir(path) or not os.access(path if os.path.exists(path) else os.path.dirname(path) or ".", os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write {path}")
    return path


def options():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(usage="%(prog)s [OPTIONS], see --help", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", type=several(SECTIONS), default=list(SECTIONS), help="sections, separated by commas")
    add("--shapes", metavar="FILE", help="a CSV file of convolutions in place of ResNet-18's")
    add("--models", type=several(list(MODELS)), default=["small", "resnet20"],
        help=f"for step: some of {','.join(MODELS)} (small,resnet20)")
    add("--batch-size", type=int, help=f"for step (128, with --quick {QUICK_BATCH})")
    add("--formats", type=several(FORMATS), default=list(FORMATS), help="memory formats, separated by commas (both)")
    add("--implementation", default="", help="Pleat's for conv; without it, Pleat chooses")
    add("--device", default="cpu", choices=("cpu", "cuda"))
    add("--threads", type=int, default=processors(), help="of both sides on the CPU (all processors)")
    add("--clock", default="wall", choices=("wall", "processor"), help="on the CPU (wall)")
    add("--precision", default="highest", choices=("highest", "high"), help="of float32 on a GPU; high: TF32 on both")
    add("--rounds", type=int, help="(7, with --quick 3)")
    add("--quick", action="store_true",
        help=f"3 rounds, batches to {QUICK_BATCH}, 2,560 patches, convolutions to {QUICK_GFLOP} GFLOP")
    add("--limit-seconds", type=float, default=math.inf, metavar="S",
        help="after these no further problem is begun")
    add("--json", metavar="FILE", type=writable, help="writes conditions, results and summary")
    add("--program", default=os.path.join(root, "build", "release", "bench", "timing_server"),
        help="Pleat's side, built from bench/timing_server.cpp (build/release/bench/timing_server)")
    args = parser.parse_args()
    args.rounds = args.rounds if args.rounds is not None else 3 if args.quick else 7
    args.batch = QUICK_BATCH if args.quick else 128
    args.batch_size = args.batch if args.batch_size is None else args.batch_size
    for name, least in ("batch_size", 1), ("threads", 1), ("rounds", 3), ("limit_seconds", 0):
        if not getattr(args, name) >= least:
            parser.error(f"--{name.replace('_', '-')}: must be at least {least}, got {getattr(args, name)}")
    if args.clock == "processor" and (args.device != "cpu" or args.threads != 1):
        # Threads that wait for others spin, and would be counted.
        parser.error("--clock processor: needs --device cpu and --threads 1")
    if not os.path.isfile(args.program) or not os.access(args.program, os.X_OK):
        parser.error(f"--program: there is no program {args.program}: build it (target timing_server)")
    try:
        if args.shapes and not read_shapes(args.shapes):
            parser.error(f"--shapes: {args.shapes} has no rows")
    except (OSError, ValueError) as error:
        parser.error(f"--shapes: {error}")
    return args


def main():
    args = options()
    if args.device == "cuda" and not torch.cuda.is_available():
        print(f"compare_torch.py: PyTorch {torch.__version__} finds no GPU", file=sys.stderr)
        return 3
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = args.precision == "high"
    pleat = Pleat(args)
    try:
        where = conditions(args, pleat)
    except RuntimeError as error:
        print(f"compare_torch.py: {error}", file=sys.stderr)
        return 1
    quick = f", batches to {QUICK_BATCH}, convolutions to {QUICK_GFLOP} GFLOP (--quick)" if args.quick else ""
    print(f"{where['date']}, {where['machine']}, load before {where['load_before']:.1f}\n"
          f"Pleat: {where['pleat']}\n{where['torch']}\n"
          f"threads of both: {args.threads}, float32, precision {args.precision}, clock: {where['clock']}, "
          f"medians of {args.rounds} interleaved rounds{quick}\n")
    if args.clock == "wall" and args.device == "cpu" and where["load_before"] > 0.5 * processors():
        print("Other work uses this machine: threads that wait for each other wait longest, and ratios are far off. "
              "See --clock processor.\n")
    results, left = compare_all(args, pleat)
    pleat.close()
    where["load_after"] = os.getloadavg()[0]
    summary = summarise(results)
    if summary:
        print_summary(summary)
    failed = sum("error" in result for result in results)
    print(f"\n{len(results) - failed} compared, {failed} failed, {left} not begun for lack of time; "
          f"load after {where['load_after']:.1f}")
    if args.json:
        text = json.dumps({"conditions": where, "results": results, "summary": summary, "not_begun": left}, indent=1)
        with open(args.json, "w") as file:
            file.write(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
