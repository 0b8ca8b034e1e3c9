#!/usr/bin/env python3
"""Shows that the tests notice mistakes in what nvcc makes of the kernels.

    tests/cuda_double/ptx/mutations.py [--build-dir FOLDER] [--only NAME ...]

Each mutation is one mistake in the PTX of some kernels: a barrier left out, a predicate inverted, a shuffle with
another lane, a store to another place, a number of another width. A build with PLEAT_CUDA=PTX makes it when it reads
the kernel (PLEAT_PTX_MUTATION, parser.cpp), and those tests run that should notice it. The exit status is 0 when the
tests pass without a mutation and at least 38 of 40 are noticed.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass, replace

NEEDED = 38 / 40


@dataclass
class Mutation:
    name: str
    kernel: str  # a part of its symbol
    part: str  # of the statements that are counted
    number: int  # which of them
    old: str  # in it; "": the whole statement
    new: str
    tests: str  # what Catch2 is told to run


LINES = "device: softmax*,devices: norm"
REDUCE = "device: reductions of many elements,devices: reduce"
NORM = "device: every implementation of batch norm agrees with the formulas"
LOSS = "devices: loss"
CONV = "devices: conv"
CLIP = "clipping on a GPU gives the bits of clipping on the CPU,device: clipping gradients"
COLUMNS = "unfold and fold*"
COPY = "cuda: copies between memory orders*"
SCAN = "device: scans of long lines,devices: scan"

MUTATIONS = [
    # barriers left out
    Mutation("softmax_barrier", "12SoftmaxLines", "bar.sync", 14, "", "", LINES),
    Mutation("softmax_backward_barrier", "SoftmaxBackwardLines", "bar.sync", 8, "", "", LINES),
    Mutation("cross_entropy_barrier", "CrossEntropyLines", "bar.sync", 34, "", "", LOSS),
    Mutation("reduction_barrier", "ReduceElements", "bar.sync", 2, "", "", REDUCE),
    Mutation("group_barrier", "ReduceGroups", "bar.sync", 2, "", "", NORM),
    Mutation("merge_barrier", "MergeStates", "bar.sync", 2, "", "", "devices: norm"),
    Mutation("joint_norm_barrier", "6Powers", "bar.sync", 2, "", "", CLIP),
    Mutation("image_barrier", "AdjustedImage", "bar.sync", 2, "", "", "device: images are changed alike,colours*"),
    Mutation("unfold_barrier", "UnfoldTiles", "bar.sync", 2, "", "", COLUMNS),
    Mutation("depthwise_barrier", "DepthwiseTiles", "bar.sync", 1, "", "", CONV),
    Mutation("depthwise_weights_barrier", "DepthwiseWeightTiles", "bar.sync", 4, "", "", CONV),
    Mutation("rows_barrier", "MapRows", "bar.sync", 6, "", "", "devices: pool"),
    Mutation("copy_barrier", "CopyTiles", "bar.sync", 1, "", "", COPY),
    # a shuffle from another lane
    Mutation("softmax_shuffle_up", "12SoftmaxLines", "shfl.sync.down", 3, "down", "up", LINES),
    Mutation("softmax_share", "12SoftmaxLines", "shfl.sync.idx", 18, "idx", "bfly", LINES),
    Mutation("cross_entropy_shuffle", "CrossEntropyLines", "shfl.sync.down", 11, "down", "up", LOSS),
    Mutation("reduction_shuffle", "ReduceElements", "shfl.sync.down", 1, "down", "up", REDUCE),
    Mutation("group_shuffle", "ReduceGroups", "shfl.sync.down", 1, "down", "up", NORM),
    Mutation("joint_norm_shuffle", "6Powers", "shfl.sync.down", 1, "down", "up", CLIP),
    Mutation("scan_shuffle", "ScanByWarps", "shfl.sync.up", 3, "up", "down", SCAN),
    # a predicate inverted
    Mutation("sum_bounds", "4PlusE", "@%p", 1, "@%p", "@!%p", "devices: arithmetic"),
    Mutation("fold_inside", "FoldPixels", "@%p", 52, "@%p", "@!%p", COLUMNS),
    Mutation("softmax_guard", "12SoftmaxLines", "@%p", 44, "@%p", "@!%p", LINES),
    Mutation("max_pool_greater", "MaxPoolForwardIfi", "setp.le.f", 9, "le", "ge", "devices: pool"),
    Mutation("group_guard", "ReduceGroups", "@%p", 4, "@%p", "@!%p", NORM),
    Mutation("pad_inside", "10PadElement", "@%p", 4, "@%p", "@!%p", "padding*"),
    Mutation("depthwise_inside", "DepthwiseTiles", "@%p", 14, "@%p", "@!%p", CONV),
    # a store or a load moved
    Mutation("sum_store", "4PlusEfJ", "st.global", 11, "],", "+16],", "devices: arithmetic"),
    Mutation("unfold_store", "UnfoldTilesIjE", "st.global", 5, "],", "+4],", COLUMNS),
    Mutation("softmax_store", "12SoftmaxLinesIff", "st.global", 28, "],", "+4],", LINES),
    Mutation("softmax_backward_store", "SoftmaxBackwardLinesIff", "st.global.f32", 12, "],", "+4],", LINES),
    Mutation("group_shared_load", "ReduceGroups", "ld.shared", 1, "]", "+8]", NORM),
    Mutation("pool_store", "MaxPoolForwardIfi", "st.global.f32", 1, "],", "+4],", "devices: pool"),
    Mutation("rows_store", "MapRowsIf", "st.global.f32", 1, "],", "+4],", "devices: pool"),
    # a number of another width, or another kind
    Mutation("copy_width", "8IdentityEf", "st.global.f32", 1, "f32", "b16", "devices: copy"),
    Mutation("unfold_width", "UnfoldTilesIjE", "st.global.u32", 1, "u32", "u16", COLUMNS),
    Mutation("pool_index_width", "MaxPoolForwardIf", "st.global.u16", 1, "u16", "u8", "devices: pool"),
    Mutation("reduction_sum", "ReduceElements", "add.f64", 1, "add", "sub", REDUCE),
    Mutation("group_count", "ReduceGroups", "atom.global.inc.u32", 1, "inc", "max", NORM + "," + LINES),
    Mutation("round_to_integer", "5RoundE", "cvt.rni", 1, "rni", "rzi", "devices: math"),
]


def run(program, tests, mutation=None):
    """What is wrong, or nothing."""
    environment = dict(os.environ)
    environment.pop("PLEAT_PTX_MUTATION", None)
    if mutation:
        fields = (mutation.kernel, mutation.part, str(mutation.number), mutation.old, mutation.new)
        environment["PLEAT_PTX_MUTATION"] = ";".join(fields)
    try:
        done = subprocess.run([program, "--abort", tests], env=environment, capture_output=True, text=True,
                              errors="replace", timeout=120)
    except subprocess.TimeoutExpired:
        return "it does not end"
    if done.returncode == 0:
        return ""
    said = done.stdout + done.stderr
    lines = [line for line in said.splitlines() if line.startswith("cuda double: ")]
    if lines:
        return re.sub(r"<.*\)(?=: )", "", lines[0].replace("pleat::", ""))
    return "a test failed" if "FAILED" in said else f"exit status {done.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parents[3]
    parser.add_argument("--build-dir", type=pathlib.Path, default=root / "build/cuda-ptx")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutations alone")
    options = parser.parse_args()
    program = options.build_dir / "tests/pleat_tests"
    chosen = [each for each in MUTATIONS if not options.only or each.name in options.only]
    for tests in sorted({each.tests for each in chosen}):
        if said := run(program, tests):
            sys.exit(f"{tests}: without a mutation, {said}")
    noticed = 0
    for mutation in chosen:
        said = run(program, mutation.tests, mutation)
        noticed += bool(said)
        if not said:  # perhaps since the tests do not execute the statement
            executed = run(program, mutation.tests, replace(mutation, old="", new="trap"))
        outcome = f"noticed, {said[:120]}" if said else "NOT noticed" if executed else "not executed"
        print(f"{mutation.name}: {outcome}", flush=True)
    print(f"{noticed} of {len(chosen)} noticed")
    return 0 if noticed >= NEEDED * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
