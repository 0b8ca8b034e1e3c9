#!/usr/bin/env python3
"""Pleat beside other frameworks for C++, measured on this machine: the table of README.md.

    bench/peers/compare.py --pleat PREFIX [--torch FOLDER] [--tiny-dnn PREFIX] [--ggml PREFIX] [--mlx FOLDER]

PREFIX has include/ and lib/, as `cmake --install` leaves them; the FOLDERs are those of the Python packages
`torch` and `mlx`, which hold headers and libraries (of torch those for the CPU count). A framework that is not named
is left out. Nothing else should run meanwhile.

- header: seconds to compile an empty program with all headers; program: seconds to compile and link the LeNet of this
  folder (g++ -O2; the shortest of three).
- size: of the headers and of the shared libraries (static ones where there are none) that a program needs beside it.
- step: milliseconds of a training step of LeNet, batch 128, two threads: the median of rounds in which all take turns.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Peer:
    """How a program of a framework is compiled."""

    def __init__(self, name, program, header, include, flags, libraries, link):
        self.name, self.program, self.header = name, program, header
        self.include, self.flags, self.libraries, self.link = include, flags, libraries, link

    def compiler(self):
        return ["g++", "-std=c++20", "-O2", *(f"-I{folder}" for folder in self.include), *self.flags]


def link_in(folder, *names):
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", *(f"-l{name}" for name in names)]


def peers(arguments):
    found = []
    if arguments.pleat:
        lib = next(f for f in (arguments.pleat / "lib", *(arguments.pleat / "lib").glob("*-linux-gnu")) if list(f.glob("libpleat.*")))
        found.append(Peer("Pleat", "lenet_pleat.cpp", "pleat/pleat.h", [arguments.pleat / "include"], [],
                          list(lib.glob("libpleat.*")), link_in(lib, "pleat") + arguments.pleat_link.split()))
    if arguments.torch:
        lib, include = arguments.torch / "lib", arguments.torch / "include"
        found.append(Peer("libtorch", "lenet_libtorch.cpp", "torch/torch.h",
                          [include, include / "torch/csrc/api/include"], [],
                          [lib / f"lib{name}.so" for name in ("torch", "torch_cpu", "c10")],
                          link_in(lib, "torch", "torch_cpu", "c10")))
    if arguments.tiny_dnn:
        found.append(Peer("tiny-dnn", "lenet_tiny_dnn.cpp", "tiny_dnn/tiny_dnn.h", [arguments.tiny_dnn / "include"],
                          ["-march=native", "-DCNN_USE_OMP", "-DCNN_USE_AVX", "-DCNN_USE_AVX2", "-fopenmp", "-w"], [],
                          ["-lpthread"]))
    if arguments.ggml:
        lib = arguments.ggml / "lib"
        found.append(Peer("ggml", "lenet_ggml.cpp", "ggml.h", [arguments.ggml / "include"], [], list(lib.glob("*.so")),
                          link_in(lib, "ggml", "ggml-cpu", "ggml-base")))
    if arguments.mlx:
        found.append(Peer("MLX", "lenet_mlx.py", "mlx/mlx.h", [arguments.mlx / "include"], [],
                          list((arguments.mlx / "lib").glob("*.so")), []))
    return found


def shortest(command):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, check=True, env={**os.environ, "CCACHE_DISABLE": "1"})
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def megabytes(paths):
    files = {file.resolve() for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()}
    return sum(file.stat().st_size for file in files) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("pleat", "torch", "tiny-dnn", "ggml", "mlx"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--pleat-link", default="-ldnnl -lfmt -lz -lpng -ljpeg -lpthread",
                        help="what a program links beside Pleat when that is a static library")
    parser.add_argument("--steps", type=int, default=200, help="in a round")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()

    rows, runs = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for peer in peers(arguments):
            empty = Path(folder) / "empty.cpp"
            empty.write_text(f"#include <{peer.header}>\nint main() {{}}\n")
            row = rows[peer.name] = {"header": shortest([*peer.compiler(), "-c", empty, "-o", f"{folder}/empty.o"])}
            row["size"] = megabytes(peer.libraries)
            if peer.program.endswith(".py"):
                runs[peer.name] = [sys.executable, HERE / peer.program, str(arguments.steps)]
                continue
            binary = f"{folder}/{Path(peer.program).stem}"
            row["program"] = shortest([*peer.compiler(), HERE / peer.program, "-o", binary, *peer.link])
            runs[peer.name] = [binary, str(arguments.steps)]
        times = {name: [] for name in runs}
        environment = {**os.environ, "OMP_NUM_THREADS": "2"}
        for _ in range(arguments.rounds):
            for name, command in runs.items():
                output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
                times[name].append(float(output))
    first = next(iter(times))
    print("| | headers [s] | program [s] | libraries [MB] | step [ms] | ratio |")
    print("|---|---|---|---|---|---|")
    for name, row in rows.items():
        ratio = statistics.median(a / b for a, b in zip(times[name], times[first]))
        program = f"{row['program']:.1f}" if "program" in row else "-"
        print(f"| {name} | {row['header']:.1f} | {program} | {row['size']:.0f} | "
              f"{statistics.median(times[name]):.2f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
