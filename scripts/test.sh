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

# Runs the tests of a preset: run_tests PRESET OPTION... Leaves build/PRESET/tests.xml.
run_tests() {
  local preset=$1 junit=$root/build/$1/tests.xml run
  shift
  rm -f "$junit"
  run=(ctest --preset "$preset" --parallel "$(jobs)" --output-junit "$junit" --no-tests=ignore "$@")
  # Of the tests that pass or are skipped, a terminal gets a line that counts up, a file nothing.
  if [[ -t 1 ]]; then
    (cd "$root" && "${run[@]}" --progress) || status=$?
  else
    (cd "$root" && "${run[@]}") |
      grep -vE '^$|^Test project |^ +Start +[0-9]+: |^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*[ .](Passed|\*\*\*Skipped) ' ||
      status=${PIPESTATUS[0]}
  fi
}

# A skipped test says why in a line "skipped: reason" of its output; tests with the same reason share a line.
say_skipped() {
  awk '
    match($0, /<testcase name="[^"]*"/) { name = substr($0, RSTART + 16, RLENGTH - 17); skipped = 0 }
    /<skipped/ { skipped = 1 }
    skipped && match($0, /skipped: .*/) {
      reason = substr($0, RSTART + 9)
      sub(/<\/system-out>.*/, "", reason)
      if (!(reason in tests)) order[++reasons] = reason
      names[reason] = names[reason] (tests[reason]++ ? "; " : "") name
      skipped = 0
    }
    END {
      for (i = 1; i <= reasons; ++i) {
        reason = order[i]
        printf "skipped %s: %s\n", (tests[reason] > 3 ? tests[reason] " tests" : names[reason]), reason
      }
    }' "$1" | sed "s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&apos;/'/g; s/&amp;/\&/g"
}

# Adds the counts in the attributes of <testsuite tests="27" failures="0" disabled="0" skipped="0" ...>.
add_counts() {
  local suite name
  suite=$(awk -v RS='>' '/<testsuite[ \n\t]/ { print; exit }' "$1")
  for name in tests failures disabled skipped; do
    [[ $suite =~ [[:space:]]$name=\"([0-9]+)\" ]] && printf -v "$name" '%d' $((${!name} + BASH_REMATCH[1]))
  done
}

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

status=0 tests=0 failures=0 disabled=0 skipped=0
for preset in "${presets[@]}"; do
  say "test $preset"
  # shellcheck disable=SC2046  # an option and its value
  run_tests "$preset" $(share_of "$preset") "$@"
  [[ -s $root/build/$preset/tests.xml ]] || continue  # with options that select none of its tests
  say_skipped "$root/build/$preset/tests.xml"
  add_counts "$root/build/$preset/tests.xml"
done
((tests > 0)) || fail "no test ran"
skipped=$((skipped + disabled))
printf '%d passed, %d failed, %d skipped\n' $((tests - failures - skipped)) "$failures" "$skipped"
exit "$status"
