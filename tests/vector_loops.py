#!/usr/bin/env python3
"""Whether the inner loops of kernels compute with the vectors of 64-bit Arm, in registers: vector_loops.py OBJDUMP FILE..."""

import re
import subprocess
import sys

# A function, what multiplies and adds in its innermost loops, how many of these the best of them has at least, and
# their share of its instructions. Loads and steps are the rest: as g++ 12 makes them, a tenth more than here.
FMLA = r"fmla\s+v\d+\.(4s|2d),"
LOOPS = [
    ("multiply_tile<float, 8, 2, 1>", FMLA, 16, 0.48),
    ("multiply_tile<double, 8, 2, 1>", FMLA, 16, 0.48),
    ("multiply_tile<float, 3, 2, 2>", FMLA, 12, 0.45),
    ("sum_tile<float, 16, 2, 8>", FMLA, 16, 0.45),  # direct, panels
    ("slide_lanes<float, 1, 8>", FMLA, 60, 0.3),  # direct, lanes
    ("sum_groups<float, 4, true, 8>", FMLA, 32, 0.37),  # direct, groups: of single taps; three side by side have 24 of 41
    ("winograd::", FMLA, 100, 0.12),  # transforms of tiles; their products are multiply_tile
    ("multiply_tile<pleat::ops::(anonymous namespace)::Arm, 1, 5>", "usdot", 20, 0.5),
    ("multiply_tile<pleat::ops::(anonymous namespace)::Arm, 1, 4>", "sdot", 20, 0.27),
    ("multiply_tile<6>", "bfdot", 24, 0.58),
]
SPILLS = {"winograd::"}  # more values than registers


def functions(objdump, files):
    """(name, [(address, instruction)]) of each."""
    text = subprocess.run([objdump, "-d", "-C", "--no-show-raw-insn", *files], check=True, capture_output=True, text=True).stdout
    name, body = "", []
    for line in text.splitlines():
        if head := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            yield name, body
            name, body = head[1], []
        elif code := re.match(r"\s*([0-9a-f]+):\s+(.*)", line):
            body.append((int(code[1], 16), code[2]))
    yield name, body


def innermost_loops(body):
    places = {address: i for i, (address, _) in enumerate(body)}
    loops = []
    for i, (address, code) in enumerate(body):
        jump = re.match(r"(?:b\.\w+|cbn?z|tbn?z)\s.*?([0-9a-f]+) <", code)
        if jump and int(jump[1], 16) <= address and int(jump[1], 16) in places:
            loops.append((places[int(jump[1], 16)], i))
    for first, last in loops:
        if not any(first <= f and l <= last and (f, l) != (first, last) for f, l in loops):
            yield [code for _, code in body[first : last + 1]]


def main():
    best = {}  # (row): count, share and instructions on the stack of the loop with most
    for name, body in functions(sys.argv[1], sys.argv[2:]):
        for row in LOOPS:
            if row[0] not in name:
                continue
            for loop in innermost_loops(body):
                count = sum(bool(re.match(row[1], code)) for code in loop)
                found = (count, count / len(loop), sum(bool(re.search(r"\bq\d+,.*\[sp", code)) for code in loop))
                best[row] = max(best.get(row, found), found)
    failed = False
    for row in LOOPS:
        count, share, spills = best.get(row, (0, 0, 0))
        bad = count < row[2] or share < row[3] or (spills > 0 and row[0] not in SPILLS)
        failed = failed or bad
        print(f"{'BAD ' if bad else ''}{row[0]}: {count} of at least {row[2]} vector multiply-adds in its innermost loop, {share:.2f} of "
              f"its instructions (at least {row[3]}), {spills} vectors through memory")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
