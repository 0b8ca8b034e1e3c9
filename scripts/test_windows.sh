#!/usr/bin/env bash
# Builds Pleat for 64-bit Windows with mingw-w64 and runs its tests on wine:
#   scripts/test_windows.sh [--quick] [options of ctest, which ctest --help lists]
# With --quick only the library, a program that uses it as installed, and the tests
# of files, threads, memory and formats (tests/core, tests/io), by -O1: without -O
# its archive has 640 MB, and a program takes the linker 100 s.
# What is missing is installed (scripts/setup.sh --for windows); libraries for
# Windows are collected once, in build/windows-deps. The last line reads
# "N passed, N failed, N skipped"; tests that Windows cannot run are skipped.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=common.sh
source "$here/common.sh"

preset=windows build=$root/build/windows
options=()
if [[ ${1:-} == --quick ]]; then
  shift
  build=$root/build/windows-quick
  options=(-DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -DNDEBUG" -DPLEAT_BUILD_EXAMPLES=OFF -DPLEAT_BUILD_BENCH=OFF "-DPLEAT_TESTS_OF=core|io")
fi
deps=$root/build/windows-deps
"$here/setup.sh" --for windows
[[ -f $deps/versions.txt ]] || "$here/bundle_deps.sh" --for windows "$deps"

# A Windows of its own, made before programs run side by side on it. The build runs pleat_tests to list its tests.
wine=$(find_wine)
export WINEPREFIX=$root/build/wine WINEDEBUG=-all
mkdir -p "$WINEPREFIX"
# Its server stays till the end, and no earlier one: a program that starts while an idle one ends fails.
server=$(PATH=$PATH:/usr/lib/wine && { command -v wineserver64 || command -v wineserver || true; })
if [[ -n $server ]]; then
  "$server" -k || true
  "$server" -p
  trap '"$server" -k' EXIT
fi
quietly wine_prefix "$wine" wineboot --init
say "configure $preset"
(cd "$root" && quietly configure_windows cmake --preset "$preset" -B "$build" \
  "-DPLEAT_WERROR=${PLEAT_WERROR:-OFF}" ${options[@]+"${options[@]}"})
say "build $preset"
if [[ -t 1 ]]; then
  cmake --build "$build" --parallel "$(jobs)"
else
  NINJA_STATUS='[%f/%t] ' cmake --build "$build" --parallel "$(jobs)" | thin_status
fi

say "test $preset"
run_tests "$build/tests.xml" --test-dir "$build" --output-on-failure "$@"
end_of_tests
