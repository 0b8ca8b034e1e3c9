#!/usr/bin/env bash
# Compares the shared library with that of an earlier commit, by abidiff (Debian:
# abigail-tools):
#   scripts/check_abi.sh [COMMIT]        (default: the last tag v*)
# Both are compiled with debug information and without optimisation, the earlier
# one in build/abi/old. Prints what changed in symbols and in types that public
# headers declare. Exit status: 0 nothing was lost or changed, 1 something was,
# 2 the arguments make no sense. Ten minutes on two cores for each library.
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
at_most 1 "$@"
command -v abidiff >/dev/null || fail "abidiff is not installed: apt-get install abigail-tools"
commit=${1:-$(git -C "$root" describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
[[ -n $commit ]] || wrong "there is no tag v*; name a commit"
git -C "$root" rev-parse --verify --quiet "$commit^{commit}" >/dev/null || wrong "there is no commit '$commit'"
find_compiler || fail "no C++20 compiler found; run $root/scripts/setup.sh"

work=$root/build/abi
rm -rf "$work/old/source"
mkdir -p "$work/old/source"
git -C "$root" archive "$commit" | tar -x -C "$work/old/source"
# Installs the library of the source tree $1 in $2/installed.
build() {
  local name
  name=abi_$(basename "$2")
  say "build $1"
  quietly "$name" cmake -G Ninja -S "$1" -B "$2/build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_CXX_FLAGS_DEBUG='-O0 -g' -DBUILD_SHARED_LIBS=ON -DPLEAT_NATIVE=OFF -DPLEAT_CPU_VARIANTS=OFF -DPLEAT_CUDA=OFF \
    -DPLEAT_MPI=OFF -DPLEAT_BUILD_TESTS=OFF -DPLEAT_BUILD_EXAMPLES=OFF -DPLEAT_BUILD_BENCH=OFF
  quietly "$name" cmake --build "$2/build" --parallel "$(jobs)"
  quietly "$name" cmake --install "$2/build" --prefix "$2/installed"
}
build "$work/old/source" "$work/old"
build "$root" "$work/new"
library() { find "$work/$1/installed" -name 'libpleat.so' | head -1; }
status=0
abidiff --no-added-syms --headers-dir1 "$work/old/installed/include" --headers-dir2 "$work/new/installed/include" \
  "$(library old)" "$(library new)" || status=$?
((status == 0)) && say "nothing was lost since $commit" && exit
# 4: something changed; 8: so that programs must be compiled anew. 1 and 2 are errors of abidiff.
(((status & 3) == 0)) || fail "abidiff failed"
exit 1
