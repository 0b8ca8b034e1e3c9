#!/usr/bin/env python3
"""How far training by several processes goes, on paper: a model fitted to what dist_bench has measured, its error on
that, and what it says of more ranks on faster networks. Prints the tables that docs/clusters.md sums up.

    for n in 1 2 4; do mpirun -n $n dist_bench collectives steps; done > results.jsonl
    bench/dist/scaling.py results.jsonl

An all-reduce of n bytes by N ranks, each of which sends a message of m bytes in alpha + m / beta:

    ring   2 (N - 1) alpha + 2 (N - 1) / N n / beta
    tree   2 (sqrt(d alpha) + sqrt(n / beta))^2,  d = ceil(log2 N)

and the faster of both. The ring: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
MPICH", 2005. The tree, two of them with pieces of the best size: Sanders, Speck and Traeff, "Two-tree algorithms for full
bandwidth broadcast, reduction and scan", 2009. Before it the ranks compare the call: a tree of 16 bytes. A bucket is reduced when its
gradients are there and the one before it is done. A step lasts forward, backward or the last bucket, and the optimiser.
"""
import argparse
import json
import math

MEGABYTE = 1 << 20

# alpha in seconds, beta in bytes a second. Assumed: TCP on 10 Gb/s; RDMA on 100 and 400 Gb/s.
NETWORKS = {"10 Gb/s": (30e-6, 1.25e9), "100 Gb/s": (3e-6, 12.5e9), "400 Gb/s": (2e-6, 50e9)}
RANKS = [8, 32, 128, 512, 1024, 4096]


def ring(ranks, size, alpha, beta):
    return 2 * (ranks - 1) * alpha + 2 * (ranks - 1) / ranks * size / beta


def tree(ranks, size, alpha, beta):
    return 2 * (math.sqrt(math.ceil(math.log2(ranks)) * alpha) + math.sqrt(size / beta)) ** 2


def all_reduce(ranks, size, alpha, beta):
    """Seconds, with the comparison before it."""
    if ranks == 1:
        return 0.0
    return tree(ranks, 16, alpha, beta) + min(ring(ranks, size, alpha, beta), tree(ranks, size, alpha, beta))


def fit(measured, ranks):
    """alpha and beta for which all_reduce is nearest to {bytes: seconds}, by relative squares."""
    best = None
    for alpha in (1e-7 * 1.05**i for i in range(160)):
        for beta in (1e8 * 1.05**i for i in range(120)):
            error = sum((math.log(all_reduce(ranks, size, alpha, beta) / t)) ** 2 for size, t in measured.items())
            if best is None or error < best[0]:
                best = (error, alpha, beta)
    return best[1], best[2]


def buckets(ready, megabytes):
    """[seconds at which it is full, bytes] of each bucket: as dist/buckets.cpp makes them, in the order of gradients."""
    first, made, limit = True, [], min(megabytes, 1.0) * MEGABYTE
    for time, size in ready:
        size = (size + 63) // 64 * 64
        if made and made[-1][1] + size <= limit:
            made[-1] = [time, made[-1][1] + size]
        else:
            if made:
                first = False
            made.append([time, size])
        limit = (min(megabytes, 1.0) if first else megabytes) * MEGABYTE
    return made


def reduced_step(alone, ranks, megabytes, alpha, beta, half=False, busy=False):
    """Seconds of a step. `busy`: the cores have nothing else to reduce with, so that it takes from backward's time."""
    end = work = 0.0
    for ready, size in buckets(alone["ready"], megabytes):
        taken = all_reduce(ranks, size / 2 if half else size, alpha, beta)
        end = max(end, ready + work * busy) + taken
        work += taken
    return alone["forward"] + max(alone["backward"] + work * busy, end) + alone["optimizer"]


def seconds_of(result, speed=1.0):
    """The parts of a step that was measured, `speed` times as fast."""
    step = {part: result[part] / 1e3 / speed for part in ("forward", "backward", "optimizer")}
    last = result["ready"][-1][0]
    # Measured once; stretched to the median.
    step["ready"] = [(t / last * step["backward"], size) for t, size in result["ready"]]
    return step


def whole(step):
    return step["forward"] + step["backward"] + step["optimizer"]


def table(head, rows):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def milliseconds(seconds):
    return f"{seconds * 1e3:,.0f}" if seconds >= 0.1 else f"{seconds * 1e3:.3g}"


def check_against(results):
    ranks = sorted({r["ranks"] for r in results} - {1})
    fits = {}
    for n in ranks:
        measured = {r["bytes"]: r["ms"] / 1e3 for r in results if r["kind"] == "all_reduce" and r["ranks"] == n}
        fits[n] = fit(measured, n)
    print("### All-reduce\n")
    table(["ranks", "alpha, µs", "beta, GB/s"], [[n, f"{a * 1e6:.1f}", f"{b / 1e9:.2f}"] for n, (a, b) in fits.items()])
    rows = []
    for size in sorted({r["bytes"] for r in results if r["kind"] == "all_reduce"}):
        row = [f"{size:,}"]
        for n in ranks:
            time = next(r["ms"] / 1e3 for r in results if r["kind"] == "all_reduce" and r["ranks"] == n and r["bytes"] == size)
            row += [milliseconds(time), f"{all_reduce(n, size, *fits[n]) / time - 1:+.0%}",
                    f"{all_reduce(n, size, *fits[ranks[0]]) / time - 1:+.0%}"]
        rows.append(row)
    table(["bytes"] + [text for n in ranks for text in (f"{n} ranks, ms", "its own fit", f"that of {ranks[0]} ranks")], rows)
    print("### Steps\n")
    rows, errors = [], []
    for r in results:
        if r["kind"] != "reduced" or r["ranks"] == 1:
            continue
        alone = next(a for a in results if a["kind"] == "alone" and a["ranks"] == r["ranks"] and a["model"] == r["model"])
        took = (r["forward"] + r["backward"] + r["optimizer"]) / 1e3
        predicted = reduced_step(seconds_of(alone), r["ranks"], r["bucket_megabytes"], *fits[r["ranks"]], busy=True)
        errors.append(abs(predicted / took - 1))
        rows.append([r["model"], r["ranks"], r["bucket_megabytes"], r["buckets"], f"{r['collectives']:.0f}",
                     f"{r['bytes'] / 1e6:.2f}", f"{r['hidden']:.0%}", milliseconds(whole(seconds_of(alone))),
                     milliseconds(took), f"{took / whole(seconds_of(alone)) - 1:+.0%}", milliseconds(predicted),
                     f"{predicted / took - 1:+.0%}"])
    table(["network", "ranks", "bucket, MB", "buckets", "collectives a step", "MB a step", "while backward computes",
           "step without reduction, ms", "with", "more", "model", "its error"], rows)
    if errors:
        print(f"The model's error on these {len(errors)} steps: {sum(errors) / len(errors):.1%} in the mean, "
              f"{max(errors):.0%} at most.\n")


def extrapolate(results, speed):
    rows = []
    alone = {r["model"]: r for r in results if r["kind"] == "alone" and r["ranks"] == 1}
    for model, result in alone.items():
        step = seconds_of(result, speed)
        for network, (alpha, beta) in NETWORKS.items():
            rows.append([model, network] + [
                f"{whole(step) / reduced_step(step, n, 25, alpha, beta):.0%}" for n in RANKS])
    table(["network", "link"] + [f"{n} ranks" for n in RANKS], rows)


def remedies(results, speed):
    """What each remedy makes of the cases that scale badly: efficiency as it is, and with it."""
    rows = []
    alone = {r["model"]: r for r in results if r["kind"] == "alone" and r["ranks"] == 1}
    for model, result in alone.items():
        step = seconds_of(result, speed)
        larger = {part: 4 * step[part] for part in ("forward", "backward")} | {"optimizer": step["optimizer"]}
        larger["ready"] = [(4 * t, size) for t, size in step["ready"]]
        for network, (alpha, beta) in NETWORKS.items():
            for n in (128, 4096):
                plain = whole(step) / reduced_step(step, n, 25, alpha, beta)
                if plain > 0.9:
                    continue
                half = whole(step) / reduced_step(step, n, 25, alpha, beta, half=True)
                four = whole(larger) / reduced_step(larger, n, 25, alpha, beta)
                # Reduced in a machine of 8 first, by a link 10 times as fast, then between machines.
                def two_levels(size):
                    return all_reduce(8, size, alpha / 2, beta * 10) + all_reduce(n // 8, size / 8, alpha, beta)
                end = 0.0
                for ready, size in buckets(step["ready"], 25):
                    end = max(end, ready) + two_levels(size)
                levels = whole(step) / (step["forward"] + max(step["backward"], end) + step["optimizer"])
                rows.append([model, network, n] + [f"{e:.0%}" for e in (plain, half, four, levels)])
    table(["network", "link", "ranks", "as it is", "half precision", "4 times the batch, or accumulation",
           "in two levels"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="lines of dist_bench")
    arguments = parser.parse_args()
    results = []
    for name in arguments.results:
        with open(name, encoding="utf-8") as file:
            results += [json.loads(line) for line in file if line.startswith("{")]
    check_against(results)
    for speed in (1, 100):
        print(f"### Efficiency, ranks {speed} times as fast as the one measured\n" if speed > 1 else
              "### Efficiency, ranks as fast as the one measured\n")
        extrapolate(results, speed)
    print("### What helps, ranks 100 times as fast\n")
    remedies(results, 100)


if __name__ == "__main__":
    main()
