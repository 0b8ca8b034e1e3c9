#!/usr/bin/env python3
"""Runs the same problems in Pleat and in PyTorch, interleaved, and prints PyTorch's time over Pleat's.

    bench/compare_torch.py [--only step,conv,ops,inference] [--match REGEX] [--against default,keep] [--quick] [--json FILE]
    bench/compare_report.py FILE...    prints the tables of such files again, together

Sections, in this order:
  step    a training step (forward, loss, backward, update) of ten networks, and the memory that it took: the peak of
          its process less what the process held before
  conv    convolutions, each pass: layers of 35 networks (bench/layers.csv names their papers; where the column
          transposed is 1, the layer is the transpose of what the row says), or those of --shapes
  inference  calls of trained networks (inference_networks.cpp), through an Inference, the same in bfloat16, as a
          forward and through an Inference in int8; --only inference alone. Against onnxruntime, in a Python that has
          it: on the ONNX files that Pleat writes of them, in float32 beside bfloat16, too, and quantised by
          onnxruntime.quantization beside int8. Against PyTorch: the eight that scripts/torch_networks.py has, in
          inference_mode and channels_last, without int8
  hub     a training step (forward, backward, SGD) of networks that nobody has written in Pleat (hub_networks.py), there
          as import_onnx gives them; --only hub alone. Needs torchvision, timm and transformers
  ops     a survey of all other ops in three sizes, forward and backward: pointwise functions of the table of op
          cases, and the rows of survey_rows.cpp beside it

Both sides have the same sizes, memory formats (contiguous is PyTorch's default), threads and precision. A gradient
comes in the format that the framework's own forward gave its result. Pleat chooses its implementations as in any
program; on a GPU both sides tune (ConvPolicy's benchmark, cudnn.benchmark). PyTorch runs in one or several ways
(--against), each a column of ratios: as it is installed (default), with a malloc that keeps its pages (keep), and so
with torch.compile besides (compile; of steps and ops). Further ways are Pleat itself on one thread (one_thread) and
another build of it, of --other: what a change gains or costs.

Each side is a process. Two calls of each are not counted. Then in each round one side is timed after the other, in
changing order; problems under 20 ms run several times in a row, and those under 50 after a call that is not counted.
Where the system gives a processor to other work meanwhile, times under 50 ms are taken again until that is over, and a
~ stands in the row when it did not end. On a machine that other work shares, --threads 1 --clock processor counts only
the time that the processor spent on either side. A ratio is one of the medians over the rounds: above 1, Pleat is
faster.

Exit status: 0 all was compared, 1 something failed, 2 wrong options, 3 PyTorch cannot be used here.
"""
import argparse
import datetime
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

from compare_report import ONE_THREAD, OTHER, SECTIONS, heading, print_result, report
from conv_layers import gflop, read_layers

FORMATS = ("contiguous", "channels_last")
# Networks of a step, and their batches.
MODELS = {"small": 128, "resnet20": 128, "resnet18": 128, "vgg11": 128, "lenet": 16, "mobilenet_v2": 64, "unet": 16,
          "dcgan": 64, "voxels": 32, "chars": 32}
# Ways to run PyTorch: arguments of torch_server.py, variables of the environment. Beside them, Pleat on one thread.
KEEP_PAGES = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**34), "MALLOC_TOP_PAD_": str(2**28)}
ONNXRUNTIME = "onnxruntime"
ALONE = ("inference", "hub")  # sections
INFERENCE_BATCHES = (1, 8, 32)
# The networks that scripts/torch_networks.py has, too.
TORCH_INFERENCE = ("char_transformer", "convnext_atto", "mobilenet_v2", "resnet18", "resnet20", "unet", "vgg11", "voxels")
WAYS = {"default": ([], {}), "keep": ([], KEEP_PAGES), "compile": (["--compile"], KEEP_PAGES)}
LONG_ENOUGH = 20.0  # milliseconds in a row, for the clock
# Interruptions are no closer where it is calm [ms]: kernel threads that wake for some microseconds are, other work
# comes back sooner. Times below the second are else taken again, so often.
CALM, SHORT, ATTEMPTS = 5.0, 50.0, 10
SECONDS_BETWEEN_ATTEMPTS = 0.1
QUICK_GFLOP = 20  # of a pass of a convolution
QUICK_ELEMENTS = 1_000_000  # of an operand of ops
# At smaller batches PyTorch takes other implementations for some convolutions.
QUICK_BATCH = 16
# Idle threads of OpenMP spin for 7 to 12 ms after the work of one side, in the way of the other's.
SECONDS_BETWEEN = 0.03
HERE = os.path.dirname(os.path.abspath(__file__))


class Side:
    """A process that reads a JSON object a line, and writes one back: timing_server, or torch_server.py."""

    def __init__(self, name, command, environment={}):
        self.name, self.command, self.environment, self.process = name, command, os.environ | environment, None
        self.disturbed = False  # by other work, since prepare

    def ask(self, command, **request):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        try:
            print(json.dumps({"command": command} | request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # it has ended: its last words, if any
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.command[0]} ended with status {self.process.wait()} at '{command}'")
        reply = json.loads(line)
        if "error" in reply:
            raise RuntimeError(reply["error"].replace("\n", " "))
        return reply["result"]

    def time(self, runs):
        """Milliseconds of a run. When other work got a processor meanwhile, a short time is taken again until that is
        over: a thread that waits for its share makes all others wait, which is long beside some microseconds. Where it
        does not end, that is tried once a problem."""
        for _ in range(1 if self.disturbed else ATTEMPTS):
            took = self.ask("time", runs=runs)
            total = runs * took["ms"]
            disturbed = took["interruptions"] > total / CALM
            if not disturbed or total > SHORT:
                break
            time.sleep(SECONDS_BETWEEN_ATTEMPTS)
        self.disturbed |= disturbed
        return took["ms"]

    def prepare(self, problem):
        self.disturbed = False
        return self.ask("prepare", **problem)

    def ended_with(self):
        """The exit status, after an error with which it ends."""
        return self.process.wait() if self.process is not None else None

    def close(self):
        if self.process is not None:
            self.process.stdin.close()  # it reads until there
            self.process.wait()
            self.process = None


def make_sides(args):
    """Pleat's, then those that it is compared with."""
    def how(threads):
        return ["--device", args.device, "--precision", args.precision, "--threads", str(threads), "--clock", args.clock]

    def other(way):
        if way == ONE_THREAD:
            return Side(way, [args.program, *how(1)])
        if way == OTHER:
            return Side(way, [args.other, *how(args.threads)])
        if way == ONNXRUNTIME:
            return Side(way, [sys.executable, os.path.join(HERE, "onnx_server.py"), *how(args.threads)])
        options, environment = WAYS[way]
        server = os.path.join(HERE, "torch_server.py")
        return Side(way, [sys.executable, server, *how(args.threads), *options], environment)
    return [Side("pleat", [args.program, *how(args.threads)]), *map(other, args.against)]


def conv_problems(args, pleat):
    for path in args.layers:
        for name, conv in read_layers(path, args.batch if args.quick else math.inf):
            if args.quick and gflop(conv) > QUICK_GFLOP:
                continue
            # "resnet_50:conv1" is of the group resnet_50.
            group = name.split(":")[0] if ":" in name else ""
            for which in ("forward", "backward_input", "backward_weight"):
                yield {"group": group, "name": name, "pass": which, "tuned": args.device == "cuda"} | conv


def step_problems(args, pleat):
    for model in args.models:
        batch = min(args.batch, MODELS[model])
        yield {"group": model, "name": f"{model}, batch {batch}", "pass": "step", "model": model, "batch": batch}


def op_problems(args, pleat):
    for row in pleat.ask("ops"):
        if not row["torch"] and set(args.against) & set(WAYS):
            continue  # PyTorch has nothing like it
        if args.quick and max(math.prod(operand["shape"]) for operand in row["operands"]) > QUICK_ELEMENTS:
            continue
        for which in row.pop("passes"):
            yield row | {"pass": which}


def inference_problems(args, pleat):
    with_torch = bool(set(args.against) & set(WAYS))
    for model in TORCH_INFERENCE if with_torch else pleat.ask("networks"):
        for batch in INFERENCE_BATCHES:
            for which in ("plan", "bfloat16", "forward") if with_torch else ("plan", "bfloat16", "forward", "int8"):
                yield {"group": model, "name": f"{model}, batch {batch}", "pass": which, "model": model, "batch": batch,
                       "file": os.path.join(args.folder.name, f"{model}.onnx")}


def hub_problems(args, pleat):
    from hub_networks import NETWORKS
    for model in NETWORKS:
        yield {"group": "", "name": model, "pass": "step", "model": model,
               "file": os.path.join(args.folder.name, f"{model}.onnx")}


PROBLEMS = dict(zip(SECTIONS, (step_problems, conv_problems, op_problems, inference_problems, hub_problems)))


def has_formats(problem):
    """Whether it has images or volumes: PyTorch has no channels_last with one dimension."""
    if problem["section"] in ALONE:
        return False
    if problem["section"] == "ops":
        return any(len(operand["shape"]) in (4, 5) for operand in problem["operands"])
    return len(problem.get("stride", "hw")) > 1 and problem["group"] != "chars"


def all_problems(args, pleat):
    for section in args.only:
        for problem in PROBLEMS[section](args, pleat):
            problem["section"] = section
            if not args.match.search(f"{section}/{problem['group']}/{problem['name']}/{problem['pass']}"):
                continue
            for format in args.formats if has_formats(problem) else ("contiguous",):
                yield problem | {"format": format}


def interleaved(sides, rounds):
    """Milliseconds of each side in each round."""
    once, runs = [], []
    for side in sides:
        side.time(1)  # plans, tunes, allocates
        once.append(side.time(1))
        runs.append(1 if once[-1] >= LONG_ENOUGH else min(2000, math.ceil(LONG_ENOUGH / max(once[-1], 1e-3))))
    times = [[] for _ in sides]
    for round in range(rounds):
        for i in range(len(sides))[::1 if round % 2 == 0 else -1]:
            time.sleep(SECONDS_BETWEEN)
            if once[i] < SHORT:
                sides[i].time(1)  # threads are awake, and the other side's operands out of the caches again
            times[i].append(sides[i].time(runs[i]))
    return times


def compare(problem, sides, rounds):
    """A result as it stands in the JSON file; with "error" in place of times where a side cannot do it."""
    result = {key: problem[key] for key in ("section", "group", "name", "format", "pass")}
    with_memory = problem["section"] in ("step", *ALONE)
    try:
        if problem["section"] == "hub":
            sides[1].ask("export", **problem)
        if with_memory:  # processes of their own, whose peak is that of this step
            for side in sides:
                side.close()
            before = [side.ask("peak") for side in sides]
        facts = [side.prepare(problem) for side in sides]
        if any(fact != facts[0] for fact in facts):
            raise RuntimeError(f"not the same on all sides: {facts}")
        times = interleaved(sides, rounds)
        peaks = [side.ask("peak") - held for side, held in zip(sides, before)] if with_memory else None
    except RuntimeError as error:
        return result | {"error": str(error).splitlines()[0]}
    for i, (side, own) in enumerate(zip(sides, times)):
        low, median, high = statistics.quantiles(own, n=4)
        result[side.name] = {"median_ms": median, "lower_quartile_ms": low, "upper_quartile_ms": high,
                             "rounds_ms": own, "disturbed": side.disturbed} | ({"peak_mb": peaks[i]} if peaks else {})
    own = result["pleat"]["median_ms"]
    return result | {"ratio": {side.name: result[side.name]["median_ms"] / own for side in sides[1:]}}


def compare_all(args, sides):
    """The results, and how many problems were left when the time was up."""
    ends = time.monotonic() + args.limit_seconds
    problems = list(all_problems(args, sides[0]))
    results, section = [], None
    for done, problem in enumerate(problems):
        if time.monotonic() > ends:
            return results, len(problems) - done
        if problem["section"] != section:
            section = problem["section"]
            print(heading(section, args.against))
        results.append(compare(problem, sides, args.rounds))
        print_result(results[-1])
    return results, 0


def processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def conditions(args, sides):
    """What the times were taken on."""
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": f"{platform.node()}, {processors()} processors, {platform.system()}",
            "pleat": sides[0].ask("versions"), "against": sides[1].ask("versions"),
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


def options():
    parser = argparse.ArgumentParser(usage="%(prog)s [OPTIONS], see --help", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", type=several(SECTIONS), default=SECTIONS[:3], help="sections, separated by commas (step,conv,ops)")
    add("--match", metavar="REGEX", type=re.compile, default=re.compile(""),
        help="only problems whose section/group/name/pass has this in it")
    add("--against", type=several([*WAYS, ONNXRUNTIME, ONE_THREAD, OTHER]), default=["default"],
        help=f"ways to run PyTorch, separated by commas: {', '.join(WAYS)}; or {ONNXRUNTIME}; or {ONE_THREAD}, {OTHER}: "
        "Pleat itself (default)")
    add("--shapes", metavar="FILE", dest="layers", action="append",
        help="a CSV file of convolutions (bench/layers.csv); may be given again")
    add("--models", type=several(MODELS), default=list(MODELS),
        help=f"for step: some of {','.join(MODELS)} (all)")
    add("--formats", type=several(FORMATS), default=list(FORMATS), help="memory formats, separated by commas (both)")
    add("--device", default="cpu", choices=("cpu", "cuda"))
    add("--threads", type=int, default=processors(), help="of both sides on the CPU (all processors)")
    add("--clock", default="wall", choices=("wall", "processor"), help="on the CPU (wall)")
    add("--precision", default="highest", choices=("highest", "high"), help="of float32 on a GPU; high: TF32 on both")
    add("--rounds", type=int, help="(7, with --quick 3)")
    add("--quick", action="store_true",
        help=f"3 rounds, batches to {QUICK_BATCH}, convolutions to {QUICK_GFLOP} GFLOP, no large "
        "operands of ops")
    add("--limit-seconds", type=float, default=math.inf, metavar="S",
        help="after these no further problem is begun")
    add("--json", metavar="FILE", type=argparse.FileType("a"), help="writes conditions, results and summary")
    add("--program", default=os.path.join(os.path.dirname(HERE), "build", "release", "bench", "timing_server"),
        help="Pleat's side, built from bench/timing_server.cpp (build/release/bench/timing_server)")
    add("--other", metavar="PROGRAM", help=f"that of another build, for --against {OTHER}")
    args = parser.parse_args()
    args.rounds = args.rounds if args.rounds is not None else 3 if args.quick else 7
    args.batch = QUICK_BATCH if args.quick else 128
    for name, least in ("threads", 1), ("rounds", 3):
        if getattr(args, name) < least:
            parser.error(f"--{name}: must be at least {least}, got {getattr(args, name)}")
    if args.clock == "processor" and (args.device != "cpu" or args.threads != 1):
        # Threads that wait for others spin, and would be counted.
        parser.error("--clock processor: needs --device cpu and --threads 1")
    for section in ALONE:
        if (section in args.only) != (args.only == [section]):
            parser.error(f"--only: {section} goes alone")
    if args.only == ["hub"] and args.against[0] not in WAYS:
        parser.error(f"--only: hub goes with PyTorch, which writes the networks: --against {','.join(WAYS)}")
    if ONNXRUNTIME in args.against and (args.only != ["inference"] or set(args.against) & set(WAYS)):
        parser.error(f"--against: {ONNXRUNTIME} goes with --only inference, and not beside PyTorch")
    if (OTHER in args.against) != (args.other is not None):
        parser.error(f"--other: goes with --against {OTHER}")
    for name, program in ("program", args.program), ("other", args.other):
        if program is not None and not (os.path.isfile(program) and os.access(program, os.X_OK)):
            parser.error(f"--{name}: there is no program {program}: build it (target timing_server)")
    args.layers = args.layers or [os.path.join(HERE, "layers.csv")]
    try:
        for path in args.layers:
            read_layers(path)
    except (OSError, ValueError) as error:
        parser.error(f"--shapes: {error}")
    return args


def main():
    args = options()
    args.folder = tempfile.TemporaryDirectory()
    sides = make_sides(args)
    try:
        where = conditions(args, sides)
    except RuntimeError as error:
        print(f"compare_torch.py: {error}", file=sys.stderr)
        return 3 if sides[1].ended_with() == 3 else 1
    print(f"{where['date']}, {where['machine']}, load before {where['load_before']:.1f}\n"
          f"Pleat: {where['pleat']}\n{where['against']}, {', '.join(args.against)}\n"
          f"threads of all: {args.threads}, float32, precision {args.precision}, clock: {where['clock']}, "
          f"medians of {args.rounds} interleaved rounds{', --quick' if args.quick else ''}\n")
    results, left = compare_all(args, sides)
    for side in sides:
        side.close()
    where["load_after"] = os.getloadavg()[0]
    summary = report(results)
    failed = sum("error" in result for result in results)
    print(f"\n{len(results) - failed} compared, {failed} failed, {left} not begun for lack of time; "
          f"load after {where['load_after']:.1f}")
    if args.json:
        text = json.dumps({"conditions": where, "results": results, "summary": summary, "not_begun": left}, indent=1)
        args.json.truncate(0)
        args.json.write(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
