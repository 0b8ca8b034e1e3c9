#!/usr/bin/env python3
"""The results of bench/compare_torch.py as tables: what it prints, and prints again from the files of several runs.

    bench/compare_report.py FILE.json...

A summary of PyTorch's times over Pleat's, and the rows that lose.
"""
import collections
import json
import math
import statistics
import sys

TRIVIAL = 0.02  # milliseconds on every side: rows of ops that means are given without, too
LOSING = {"conv": 0.9, "ops": 0.7}  # rows below are listed, trivial ones aside

ONE_THREAD, OTHER = "one_thread", "other"  # the ways that are Pleat's own: on one thread, and another build

SECTIONS = ["step", "conv", "ops", "inference", "hub"]  # in the order in which they run


def heading(section, ways):
    columns = [f"{way:>10.10} ms{'quart.':>7}" for way in ("Pleat", *ways)] + [f"{way:>9}" for way in ways]
    return f"{section:54}{'pass':16}{'format':13}" + "".join(columns)


def print_result(result):
    line = f"  {result['name']:52.52}{result['pass']:16}{result['format']:13}"
    if "error" in result:
        print(line + f" failed: {result['error']}", flush=True)
        return
    for side in ("pleat", *result["ratio"]):
        median, low, high = (result[side][key + "_ms"] for key in ("median", "lower_quartile", "upper_quartile"))
        line += f"{median:13.4f} {'~' if result[side]['disturbed'] else '±'}{(high - low) / median:5.0%}"
    line += "".join(f"{ratio:9.2f}" for ratio in result["ratio"].values())
    if "peak_mb" in result["pleat"]:
        peaks = (f"{result[side]['peak_mb']:.0f}" for side in ("pleat", *result["ratio"]))
        line += f"   peaks of memory {', '.join(peaks)} MiB"
    print(line, flush=True)


def is_trivial(result):
    slowest = max(result[side]["median_ms"] for side in ("pleat", *result["ratio"]))
    return result["section"] == "ops" and slowest < TRIVIAL


def summarise(results):
    """A row for each group, pass, format and way, then for each section: of all, and of ops without trivial rows."""
    sets = collections.defaultdict(list)
    for r in results:
        for way, ratio in r.get("ratio", {}).items():
            # Ops are too many for a row a pass.
            keys = [(r["group"], "all" if r["section"] == "ops" else r["pass"])]
            if r["section"] != "inference":
                keys.append(("all", "all"))
            if r["section"] == "ops" and not is_trivial(r):
                keys.append(("over 20 us", "all"))
            if r["section"] == "inference":
                keys.append(("all", r["pass"]))
            for key in keys:
                sets[(r["section"], *key, r["format"], way)].append((ratio, r))
    summary = []
    # Those of a section after its groups.
    for key in sorted(sets, key=lambda key: (SECTIONS.index(key[0]), key[1] in ("all", "over 20 us"))):
        members = sets[key]
        ratio, worst = min(members, key=lambda member: member[0])
        summary.append(dict(zip(("section", "group", "pass", "format", "against"), key), problems=len(members),
                            geometric_mean=statistics.geometric_mean(ratio for ratio, _ in members),
                            worst=ratio, worst_name=worst["name"], worst_pass=worst["pass"],
                            at_least_as_fast=sum(ratio >= 1 for ratio, _ in members)))
    return summary


def print_table(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in (rows[0], ["-" * width for width in widths], *rows[1:]):
        print("| " + " | ".join(map(str.ljust, row, widths)) + " |")


def print_summary(summary):
    print("\nTimes of others over Pleat's:\n")
    rows = [("section", "of", "pass", "format", "against", "problems", "geometric mean", "worst", "which",
             "at least as fast")]
    for s in summary:
        which = s["worst_name"] + (" " + s["worst_pass"] if s["pass"] == "all" else "")
        rows.append((s["section"], s["group"] or "-", s["pass"], s["format"], s["against"], str(s["problems"]),
                     f"{s['geometric_mean']:.2f}", f"{s['worst']:.2f}", which, str(s["at_least_as_fast"])))
    print_table(rows)


def is_disturbed(result):
    return any(result[side]["disturbed"] for side in ("pleat", *result["ratio"]))


def least_ratio(result):
    """The least ratio, but to one thread."""
    return min((ratio for way, ratio in result["ratio"].items() if way != ONE_THREAD), default=math.inf)


def print_losing(results):
    for section, limit in LOSING.items():
        losing = [r for r in results if r["section"] == section and not is_trivial(r) and least_ratio(r) < limit]
        if losing:
            print(f"\nBelow {limit}, worst first:\n\n{heading(section, losing[0]['ratio'])}")
        for r in sorted(losing, key=least_ratio):
            print_result(r)


def report(results):
    """Prints all tables; returns the summary."""
    compared = [r for r in results if "ratio" in r]
    summary = summarise(compared)
    if summary:
        print_summary(summary)
        if disturbed := sum(map(is_disturbed, compared)):
            print(f"\nOther work disturbed {disturbed} of {len(compared)} rows (~).")
        print_losing(compared)
    return summary


def main(paths):
    results = []
    for path in paths:
        with open(path) as file:
            results += json.load(file)["results"]
    report(results)


if __name__ == "__main__":
    main(sys.argv[1:])
