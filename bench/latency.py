#!/usr/bin/env python3
"""Latencies of one network that several threads call at once, beside onnxruntime.

    bench/latency.py [--models resnet20,mobilenet_v2] [--callers 1,2,4] [--requests 10000] [--pause 0]

Each caller sends its next request when the last is answered, --pause milliseconds later. One caller computes with
--threads threads; several compute in threads of their own, on both sides. The table has percentiles of milliseconds and
the processor time of a request, which is above that of one thread where threads wait by spinning. Needs a Python with
onnx and onnxruntime; networks are those of `compare_torch.py --only inference`.
"""
import argparse
import os
import statistics
import sys
import tempfile

from compare_torch import HERE, Side, processors

PERCENTILES = (50, 99, 99.9)


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--models", default="resnet20,mobilenet_v2,resnet50,vit_tiny,lstm,mlp")
    add("--callers", type=numbers, default=[1, 2, 4])
    add("--requests", type=int, default=10000)
    add("--pause", type=float, default=0)
    add("--threads", type=int, default=processors(), help="of one caller (all processors)")
    add("--program", default=os.path.join(os.path.dirname(HERE), "build", "release", "bench", "timing_server"))
    args = parser.parse_args()
    print("| network | callers | " + " | ".join(f"p{p:g}" for p in PERCENTILES) + " | processor "
          "| onnxruntime " + " | ".join(f"p{p:g}" for p in PERCENTILES) + " | processor |")
    print("|---" * (2 * len(PERCENTILES) + 4) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models.split(","):
            for callers in args.callers:
                how = ["--device", "cpu", "--threads", str(args.threads if callers == 1 else 1)]
                sides = [Side("pleat", [args.program, *how]),
                         Side("onnxruntime", [sys.executable, os.path.join(HERE, "onnx_server.py"), *how])]
                cells = []
                for side in sides:
                    side.prepare({"section": "inference", "model": model, "batch": 1, "pass": "plan",
                                  "file": os.path.join(folder, f"{model}.onnx")})
                    side.ask("latencies", callers=callers, requests=max(callers, args.requests // 20), pause=0)
                    took = side.ask("latencies", callers=callers, requests=args.requests, pause=args.pause)
                    per_mille = statistics.quantiles(took["ms"], n=1000)
                    cells += [f"{per_mille[round(10 * p) - 1]:.3f}" for p in PERCENTILES]
                    cells.append(f"{took['processor_ms']:.3f}")
                    side.close()
                print(f"| {model} | {callers} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
