#!/usr/bin/env python3
"""How good Pleat's choice among its convolutions is: what `pleat-bench conv --implementation plans --json` wrote.

    bench/choice_report.py FILE.json...

For each pass, how many problems there are by the time of what Pleat chooses over that of the fastest; then the worst.
"""
import collections
import json
import sys

BRACKETS = (1.02, 1.1, 1.25, 1.5)
SHOWN = 20


def choices(paths):
    """Rows of the ratio, the pass, the problem, and name and milliseconds of what is chosen and of the fastest."""
    problems = collections.defaultdict(list)
    for path in paths:
        with open(path) as file:
            for record in json.load(file)["results"]:
                if "time" in record:
                    labels = record["labels"]
                    key = labels["pass"], labels["problem"], labels.get("name", ""), labels["dtype"]
                    problems[key].append((record["time"]["median"] * 1e3, labels["implementation"],
                                          record.get("details", {}).get("chosen") == "yes"))
    for (which, problem, name, _), times in problems.items():
        chosen = [time for time in times if time[2]]
        if chosen:
            yield chosen[0][0] / min(times)[0], which, name or problem, chosen[0], min(times)


def main(paths):
    rows = sorted(choices(paths), reverse=True)
    print(f"{'pass':18}{'problems':>9}" + "".join(f"{f'> {b}':>8}" for b in BRACKETS))
    for which in (*sorted({row[1] for row in rows}), "all"):
        ratios = [row[0] for row in rows if which in (row[1], "all")]
        print(f"{which:18}{len(ratios):9}" + "".join(f"{sum(r > b for r in ratios):8}" for b in BRACKETS))
    print(f"\nWorst:\n{'':46}{'pass':18}{'chosen':16}{'ms':>10}  {'fastest':16}{'ms':>10}{'ratio':>7}")
    for ratio, which, name, chosen, best in rows[:SHOWN]:
        print(f"{name:45.45} {which:18}{chosen[1]:16}{chosen[0]:10.4f}  {best[1]:16}{best[0]:10.4f}{ratio:7.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
