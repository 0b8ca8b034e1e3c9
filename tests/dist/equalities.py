#!/usr/bin/env python3
"""The table of equalities behind docs/clusters.md, from what the tests append by PLEAT_WRITE_EQUALITIES:

    for n in 1 2 3 4 8; do PLEAT_WRITE_EQUALITIES=$PWD/equalities.csv mpirun -n $n build/release/tests/dist/pleat_dist_tests \\
        "DataParallel: gradients of every*"; done
    tests/dist/equalities.py equalities.csv
"""
import sys


def main(path):
    rows, ranks = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            number, error, exact, layer = line.rstrip("\n").split(",", 3)
            if number not in ranks:
                ranks.append(number)
            rows.setdefault(layer, {})[number] = (float(error), exact == "1")
    print("| layer | " + " | ".join(f"{n} ranks" if n != "1" else "1 rank" for n in ranks) + " | the same bits |")
    print("|---|" + "---|" * (len(ranks) + 1))
    for layer, found in rows.items():
        errors = " | ".join(f"{found[n][0]:.1e}" if found[n][0] else "0" for n in ranks)
        exact = ", ".join(n for n in ranks if found[n][1])
        print(f"| {layer} | {errors} | {exact} |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
