#!/usr/bin/env bash
# Sets up, builds everything and runs all tests: scripts/test.sh [options of ctest]
# PLEAT_WERROR=ON or CI=true makes warnings errors. The last line reads "N passed, N failed, N skipped".
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=common.sh
source "$here/common.sh"

"$here/setup.sh"
build_release all

say "test"
junit=$root/build/release/tests.xml
rm -f "$junit"
status=0
run=(ctest --preset release --parallel "$(jobs)" --output-junit "$junit" "$@")
# Of the tests that pass or are skipped, a terminal gets a line that counts up, a file nothing.
if [[ -t 1 ]]; then
  (cd "$root" && "${run[@]}" --progress) || status=$?
else
  (cd "$root" && "${run[@]}") |
    grep -vE '^$|^Test project |^ +Start +[0-9]+: |^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*[ .](Passed|\*\*\*Skipped) ' ||
    status=${PIPESTATUS[0]}
fi
[[ -s $junit ]] || fail "no test ran"

# A skipped test says why in a line "skipped: reason" of its output; tests with the same reason share a line.
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
  }' "$junit" | sed "s/&lt;/</g; s/&gt;/>/g; s/&quot;/\"/g; s/&apos;/'/g; s/&amp;/\&/g"

# The attributes of <testsuite tests="27" failures="0" disabled="0" skipped="0" ...>.
suite=$(awk -v RS='>' '/<testsuite[ \n\t]/ { print; exit }' "$junit")
count() { [[ $suite =~ [[:space:]]$1=\"([0-9]+)\" ]] && echo "${BASH_REMATCH[1]}" || echo 0; }
failed=$(count failures)
skipped=$(($(count skipped) + $(count disabled)))
printf '%d passed, %d failed, %d skipped\n' $(($(count tests) - failed - skipped)) "$failed" "$skipped"
exit "$status"
