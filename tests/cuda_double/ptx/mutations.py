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

MUTATIONS = [
    # barriers left out
    Mutation("softmax_barrier", "12SoftmaxLines", "bar.sync", 2, "", "", LINES),
    Mutation("softmax_last_barrier", "12SoftmaxLines", "bar.sync", 4, "", "", LINES),
    Mutation("softmax_backward_barrier", "SoftmaxBackwardLines", "bar.sync", 2, "", "", LINES),
    Mutation("cross_entropy_barrier", "CrossEntropyLines", "bar.sync", 5, "", "", LOSS + "," + LINES),
    Mutation("reduction_barrier_before_write", "ReduceElements", "bar.sync", 1, "", "", REDUCE),
    Mutation("reduction_barrier_before_read", "ReduceElements", "bar.sync", 2, "", "", REDUCE),
    Mutation("group_barrier", "ReduceGroups", "bar.sync", 2, "", "", NORM),
    Mutation("merge_barrier", "MergeStates", "bar.sync", 2, "", "", NORM),
    Mutation("joint_norm_barrier", "6Powers", "bar.sync", 2, "", "", CLIP),
    Mutation("image_barrier", "AdjustedImage", "bar.sync", 2, "", "", "device: images are changed alike,colours*"),
    # a shuffle from another lane
    Mutation("softmax_shuffle_up", "12SoftmaxLines", "shfl.sync.down", 3, "down", "up", LINES),
    Mutation("softmax_share", "12SoftmaxLines", "shfl.sync.idx", 2, "idx", "bfly", LINES),
    Mutation("cross_entropy_shuffle", "CrossEntropyLines", "shfl.sync.down", 1, "down", "bfly", LOSS),
    Mutation("reduction_shuffle", "ReduceElements", "shfl.sync.down", 1, "down", "up", REDUCE),
    Mutation("group_shuffle", "ReduceGroups", "shfl.sync.down", 1, "down", "up", NORM),
    Mutation("joint_norm_shuffle", "6Powers", "shfl.sync.down", 1, "down", "up", CLIP),
    Mutation("merge_shuffle", "MergeStates", "shfl.sync.down", 2, "down", "up", NORM),
    Mutation("image_shuffle", "AdjustedImage", "shfl.sync.down", 2, "down", "up", "device: images are changed alike,colours*"),
    # a predicate inverted
    Mutation("sum_bounds", "4PlusE", "@%p", 1, "@%p", "@!%p", "devices: arithmetic"),
    Mutation("unfold_bounds", "13UnfoldElement", "@%p", 1, "@%p", "@!%p", "unfold and fold*"),
    Mutation("fold_inside", "11FoldElement", "@%p", 11, "@%p", "@!%p", "unfold and fold*"),
    Mutation("softmax_guard", "12SoftmaxLines", "@%p", 2, "@%p", "@!%p", LINES),
    Mutation("max_pool_greater", "MaxPoolForward", "setp.leu.f", 1, "leu", "geu", "devices: pool"),
    Mutation("group_guard", "ReduceGroups", "@%p", 2, "@%p", "@!%p", NORM),
    Mutation("pad_inside", "10PadElement", "@%p", 4, "@%p", "@!%p", "padding*"),
    Mutation("depthwise_inside", "DepthwiseForward", "@%p", 1, "@%p", "@!%p", CONV),
    # a store or a load moved
    Mutation("sum_store", "4PlusE", "st.global", 1, "],", "+4],", "devices: arithmetic"),
    Mutation("unfold_store", "13UnfoldElement", "st.global", 1, "],", "+8],", "unfold and fold*"),
    Mutation("softmax_store", "12SoftmaxLines", "st.global", 1, "],", "+2],", LINES),
    Mutation("reduction_shared_store", "ReduceElements", "st.shared", 1, "],", "+8],", REDUCE),
    Mutation("group_shared_load", "ReduceGroups", "ld.shared", 1, "]", "+8]", NORM),
    Mutation("pool_store", "MaxPoolForward", "st.global", 1, "],", "+8],", "devices: pool"),
    Mutation("random_store", "UniformElement", "st.global", 1, "],", "+8],", "random numbers on a GPU*"),
    # a number of another width, or another kind
    Mutation("copy_width", "8IdentityEff", "st.global.f32", 1, "f32", "b16", "devices: copy"),
    Mutation("unfold_width", "13UnfoldElementIj", "st.global.u32", 1, "u32", "u16", "unfold and fold*"),
    Mutation("pool_index_width", "MaxPoolForwardIf", "st.global.u16", 4, "u16", "u8", "devices: pool"),
    Mutation("reduction_sum_of_float", "ReduceElements", "add.f64", 1, "add", "sub", REDUCE),
    Mutation("softmax_sum", "12SoftmaxLinesIff", "add.f32", 1, "add", "sub", LINES),
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
        done = subprocess.run([program, tests], env=environment, capture_output=True, text=True, errors="replace",
                              timeout=120)
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
