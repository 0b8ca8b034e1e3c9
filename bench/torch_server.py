#!/usr/bin/env python3
"""PyTorch's side of bench/compare_torch.py: does with a problem what timing_server.cpp does, and speaks as it does.

Reads a JSON object from each line of standard input and writes one for each: {"result": ...}, or {"error": "..."}. The
head of timing_server.cpp says what there is.
"""
import argparse
import ctypes
import json
import os
import resource
import sys
import time

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError as error:
    print(json.dumps({"error": f"needs PyTorch (Debian: python3-torch): {error}"}), flush=True)
    sys.exit(3)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts"))
import hub_networks  # noqa: E402
import torch_networks  # noqa: E402


def random_numbers(shape, device, format="contiguous"):
    return in_format(torch.randn(*shape, device=device), format)


def in_format(x, format):
    """A tensor or a module in a memory format. Tensors of ranks that have no channels_last stay as they are."""
    if format == "contiguous":
        return x
    if isinstance(x, nn.Module):
        for p in x.parameters():
            p.data = channels_last(p.data)
        return x
    return channels_last(x)


def channels_last(x):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.contiguous(memory_format=formats[x.dim()]) if x.dim() in formats else x


def differentiable_work(which, inputs, function):
    """A function forward alone, backward alone to all inputs, or both in one run ("training")."""
    if which == "forward":
        return torch.no_grad()(function)

    def outputs():
        y = function()
        return [one for one in ([y] if torch.is_tensor(y) else y) if one.requires_grad]
    y = outputs()
    dy = [torch.randn_like(one) for one in y]
    if which == "backward":
        return lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True)
    return lambda: torch.autograd.grad(outputs(), inputs, dy)


def conv_work(problem, device):
    x, w = (random_numbers(problem[key], device, problem["format"]) for key in ("input", "weight"))
    transposed = problem.get("transposed", False)
    how = (problem["stride"], problem["padding"], problem["dilation"], transposed,
           problem.get("output_padding", [0] * (x.dim() - 2)), problem["groups"])
    forward = lambda: torch.ops.aten.convolution(x, w, None, *how)
    if problem["pass"] == "forward":
        return forward
    dy = torch.randn_like(forward())
    wanted = [problem["pass"] == "backward_input", problem["pass"] == "backward_weight", False]
    return lambda: torch.ops.aten.convolution_backward(dy, x, w, None, *how, wanted)


def step_work(problem, device):
    step, parameters = torch_networks.make_step(problem["model"], problem["batch"], device,
                                                lambda x: in_format(x, problem["format"]), OPTIONS.compile)
    return step, {"parameters": parameters}


def inference_work(problem, device):
    """In channels_last, in which PyTorch's convolutions take least."""
    net, x = (in_format(one, "channels_last") for one in torch_networks.make_inference(problem["model"], problem["batch"]))
    if problem["pass"] == "bfloat16":
        net, x = net.bfloat16(), x.bfloat16() if x.is_floating_point() else x
    call = torch.compile(net) if OPTIONS.compile else net
    return torch.inference_mode()(lambda: call(x))


FLOATING = ("float16", "bfloat16", "float64")


def make_operand(operand, format, device):
    """As op_survey.cpp makes it."""
    kind, shape = operand["kind"], operand["shape"]
    if kind == "perm":
        return torch.randperm(shape[0], device=device)
    if kind == "int":
        return torch.randint(-1000, 1000, shape, device=device)
    if kind.startswith("<"):
        return torch.randint(int(kind[1:]), shape, device=device)
    if kind in ("u", "t"):
        x = torch.rand(shape, device=device) * 0.8 + 0.1
    elif kind == "byte":
        x = torch.randint(256, shape, device=device, dtype=torch.uint8)
    elif kind == "bool":
        x = torch.randn(shape, device=device) > 0
    else:
        x = torch.randn(shape, device=device).to(getattr(torch, kind or "float32"))
    return in_format(x, format)


def ops_work(problem, device):
    if problem["stateful"]:
        return eval(problem["torch"], NAMES)
    operands = [make_operand(operand, problem["format"], device) for operand in problem["operands"]]
    inputs = []
    if problem["pass"] != "forward":
        kinds = ("", "u") + FLOATING
        inputs = [x.requires_grad_() for x, o in zip(operands, problem["operands"]) if o["kind"] in kinds]
    function = eval("lambda x, y=None, z=None, w=None: " + problem["torch"], NAMES)
    if OPTIONS.compile:
        function = torch.compile(function)
    return differentiable_work(problem["pass"], inputs, lambda: function(*operands))


def parameters_with_gradients(model):
    parameters = list(torch_networks.MODELS[model]().parameters())
    for p in parameters:
        p.grad = torch.randn_like(p) * 1e-3
    return parameters


def stepping(optimizer, model, **options):
    return optimizer(parameters_with_gradients(model), **options).step


def clipping(model):
    parameters = parameters_with_gradients(model)
    return lambda: nn.utils.clip_grad_norm_(parameters, 1.0)


# What rows are written in: Pleat's names are PyTorch's but for some, and what these leave out is in their calls.
NAMES = vars(torch) | vars(F) | globals() | {
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "softmax": torch.softmax, "log_sigmoid": F.logsigmoid,
    "negate": torch.neg, "equal": torch.eq, "polygamma": lambda x: torch.polygamma(1, x),
    "clamp": lambda x: x.clamp(-1, 1), "threshold": lambda x: F.threshold(x, 1, -2.5),
    "masked_fill": lambda x, mask, value=0: x.masked_fill(mask, value)}
def hub_work(problem, device):
    """In channels_last, in which PyTorch's convolutions take least."""
    net, x = (in_format(one, "channels_last") for one in hub_networks.make(problem["model"]))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    call = torch.compile(net) if OPTIONS.compile else net

    def step():
        optimizer.zero_grad()
        call(x).square().mean().backward()
        optimizer.step()
    return step


SECTIONS = {"step": step_work, "conv": conv_work, "ops": ops_work, "inference": inference_work, "hub": hub_work}


def lines_of(path, word):
    with open(path) as file:
        return [line for line in file if word in line]


def versions():
    """With the library of PyTorch's matrix products on the CPU: where it is the unoptimised one of a distribution, their
    times say nothing about PyTorch."""
    on = "MKL" if torch.backends.mkl.is_available() else ", ".join(sorted(
        {os.path.realpath(line.split()[-1]) for line in lines_of("/proc/self/maps", "blas")})) or "inside PyTorch"
    if OPTIONS.device == "cuda":
        on = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
    return f"PyTorch {torch.__version__}, {'' if OPTIONS.device == 'cuda' else 'BLAS '}{on}"


def interruptions():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


class Server:
    def __init__(self):
        self.work = None
        self.clock = time.process_time if OPTIONS.clock == "processor" else time.perf_counter

    def prepare(self, request):
        self.work = None  # its memory first
        if OPTIONS.device == "cuda":
            torch.cuda.empty_cache()
        made = SECTIONS[request["section"]](request, OPTIONS.device)
        self.work, facts = made if isinstance(made, tuple) else (made, None)
        return facts

    def time(self, request):
        runs = request["runs"]
        if OPTIONS.device == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start.record()
        interrupted, begin = interruptions(), self.clock()
        for _ in range(runs):
            self.work()
        ms = 1e3 * (self.clock() - begin) / runs
        if OPTIONS.device == "cuda":
            end.record()
            end.synchronize()
            ms = start.elapsed_time(end) / runs
        return {"ms": ms, "interruptions": interruptions() - interrupted}

    def result_of(self, request):
        command = request["command"]
        if command == "versions":
            return versions()
        if command == "export":
            return hub_networks.export(request["model"], request["file"])
        if command == "peak":
            return int(lines_of("/proc/self/status", "VmHWM")[0].split()[1]) / 1024
        return {"prepare": self.prepare, "time": self.time}[command](request)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="highest")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", default="wall")
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    return parser.parse_args()


def main():
    torch.manual_seed(1)
    if OPTIONS.device != "cpu":
        torch.set_default_device(OPTIONS.device)  # for rows that name none
    torch.set_num_threads(OPTIONS.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = OPTIONS.precision == "high"
    server = Server()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what PyTorch's exporter prints is no answer
    for line in sys.stdin:
        try:
            reply = {"result": server.result_of(json.loads(line))}
        except Exception as error:
            reply = {"error": f"PyTorch: {str(error) or type(error).__name__}"}
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    OPTIONS = options()
    if OPTIONS.device == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"error": f"PyTorch {torch.__version__} finds no GPU"}), flush=True)
        sys.exit(3)
    main()
