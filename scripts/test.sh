#!/usr/bin/env bash
# Sets up, builds everything and runs all tests:
#   scripts/test.sh [options of ctest, which ctest --help lists]
# Those that compute on a GPU run a second time, on a double of CUDA
# (docs/cuda.md), which needs none. PLEAT_WERROR=ON or CI=true makes warnings
# errors. Without a GPU nvcc compiles nothing unless PLEAT_CUDA=AUTO asks for
# it; where it compiles, every second of those tests runs on what it made of the
# kernels instead (the double's other form), which ones by the commit's hash.
# The last line reads "N passed, N failed, N skipped".
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=common.sh
source "$here/common.sh"

presets=(release)
"$here/setup.sh"
build_preset release all
if [[ $(uname) == Linux ]]; then
  presets+=(cuda-double)
  grep -q '^CMAKE_CUDA_COMPILER:' "$root/build/release/CMakeCache.txt" && presets+=(cuda-ptx)
  for preset in "${presets[@]:1}"; do build_preset "$preset" all; done
fi

# Where there are both doubles, each runs every second test: by ctest's numbers, from 1 or from 2 on.
commit=$(git -C "$root" rev-parse HEAD 2>/dev/null || echo 00000000)
odd=$((16#${commit:0:8} % 2))
share_of() {
  [[ ${presets[*]} == *cuda-ptx ]] || return 0
  case $1 in
    cuda-double) echo "-I $((1 + odd)),,2" ;;
    cuda-ptx) echo "-I $((2 - odd)),,2" ;;
  esac
}

for preset in "${presets[@]}"; do
  say "test $preset"
  # shellcheck disable=SC2046  # an option and its value
  run_tests "$root/build/$preset/tests.xml" --preset "$preset" $(share_of "$preset") "$@"
done
end_of_tests
