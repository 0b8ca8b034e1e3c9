#!/usr/bin/env bash
# Which lines of the library the tests run:
#   scripts/coverage.sh [--files] [tests, as pleat_tests takes them]
# Builds the preset coverage (g++), runs pleat_tests once, and prints a table by
# folder, or with --files by file. A line counts when code was made for it; a
# template's line is covered when one of its instances ran.
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

by=folder
[[ ${1:-} != --files ]] || { by='file' && shift; }
build_preset coverage pleat_tests
find build/coverage -name '*.gcda' -delete  # the counts of an earlier run
say "run pleat_tests${1:+ $*}"
status=0
build/coverage/tests/pleat_tests "$@" >"$logs/coverage.log" || status=$?
((status == 0 || status == 77)) || { tail -n 40 "$logs/coverage.log" >&2 && fail "tests fail; all output is in $logs/coverage.log"; }

GCOV=${GCOV:-gcov} python3 - "$by" <<'PYTHON'
import collections, concurrent.futures, json, os, pathlib, subprocess, sys

root, by = pathlib.Path.cwd(), sys.argv[1]
objects = root / "build/coverage/CMakeFiles/pleat.dir"


def lines(data):
    """(file, line, whether it ran) of one object."""
    gcov = subprocess.run([os.environ["GCOV"], "--json-format", "--stdout", data], capture_output=True, check=True)
    found = json.loads(gcov.stdout)
    for source in found["files"]:
        path = pathlib.Path(found["current_working_directory"], source["file"]).resolve()
        if path.is_relative_to(root) and not path.is_relative_to(root / "build"):
            yield from ((path.relative_to(root), line["line_number"], line["count"] > 0) for line in source["lines"])


ran = collections.defaultdict(bool)
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    # Of an object that no test has run code of, there is only the .gcno file.
    for entries in pool.map(lambda note: list(lines(note)), objects.rglob("*.gcno")):
        for path, line, count in entries:
            ran[path, line] |= count
rows = collections.defaultdict(lambda: [0, 0])
for (path, _), count in ran.items():
    for name in {str(path if by == "file" else path.parent), "total"}:
        rows[name][0] += 1
        rows[name][1] += count
print(f"{by:<44}{'lines':>8}{'covered':>9}{'%':>7}")
for name in sorted(rows, key=lambda name: (name == "total", name)):
    total, covered = rows[name]
    print(f"{name:<44}{total:>8}{covered:>9}{100 * covered / total:>7.1f}")
PYTHON
