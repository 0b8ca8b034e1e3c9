#!/usr/bin/env bash
# Checks a change of a few files in a minute or two: scripts/check.sh [COMMIT]
# The change is all since the last commit, or since the branch left COMMIT
# ("main"), new files included. Checks its format and the rules that sources keep
# (include rule and the like), builds pleat_tests, and runs the test files that
# belong to the change. Those are the ones whose name begins with the name of a
# changed file or of one of its folders (ops/conv/cpu/gather.cpp: conv_test,
# conv_tune_test, ...), else all of the mirrored folder (core/tensor/copy.cpp:
# tests/core/). To functions belong the tests of tests/op_cases/, too: those of
# the families with one of these names (conv), else all. To modules belong those
# that run over tests/nn/module_cases.cpp. PLEAT_PRESET chooses a preset other
# than release. scripts/test.sh runs all tests.
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
at_most 1 "$@"
cd "$root"
preset=${PLEAT_PRESET:-release}

# The files under the given paths that git knows or would add.
list() { git ls-files --cached --others --exclude-standard -- "$@"; }

# The clang-format that .clang-format is written for; other versions break lines elsewhere.
find_formatter() {
  for formatter in clang-format-14 clang-format; do
    [[ $("$formatter" --version 2>/dev/null) =~ version\ 14\. ]] && return
  done
  return 1
}

# Prints the test files that belong to a source file.
tests_of() {
  local path=${1%.*} folder
  [[ $1 =~ ^(tests/)?nn/ ]] && grep -E '/(modules|nn_sweep)_test\.cpp$' <<<"$test_files"
  grep -Fx "$1" <<<"$test_files" && return
  path=${path#tests/} folder=tests/$(dirname "$path")
  path=${path#*/} path=${path%_cases}
  grep -E "/(${path//\//|})_[^/]*$" <<<"$test_files" && return
  while [[ ! -d $folder ]]; do folder=$(dirname "$folder"); done
  [[ $folder == tests ]] || grep "^$folder/" <<<"$test_files"
}

# Prints the families of op cases that belong to a source file.
families_of() {
  [[ $1 =~ ^(ops|op_cases|tests/op_cases)/ ]] || return 0
  tr '/._' '\n' <<<"$1" | grep -Fx "$families" || echo '*'
}

base=$(git merge-base HEAD "${1:-HEAD}") || fail "COMMIT must be a commit of this repository, got '${1:-HEAD}'"
mapfile -t files < <(git diff --name-only --diff-filter=d "$base" && git ls-files --others --exclude-standard)
mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep -E '\.(h|cpp|cu)$')
mapfile -t shell < <(printf '%s\n' "${files[@]}" | grep -E '\.sh$|^\.ci/')
say "${#files[@]} changed files, ${#sources[@]} of C++ or CUDA"

if ((${#sources[@]})); then
  if find_formatter; then
    say "format"
    "$formatter" --dry-run -Werror "${sources[@]}" || fail "run $formatter -i on these files"
  else
    say "format: not checked, clang-format 14 is not installed"
  fi
fi
if ((${#shell[@]})) && command -v shellcheck >/dev/null; then
  say "shellcheck"
  shellcheck -x -P SCRIPTDIR "${shell[@]}"
fi

# Programs are linked anew only where one of them changed.
target=pleat_tests
printf '%s\n' "${files[@]}" | grep -qE '^(examples|bench|tests/(smoke|fuzz))/' && target=all
build_preset "$preset" "$target"
say "rules of the sources"
quietly rules ctest --test-dir "build/$preset" --label-regex '^sources$' --output-on-failure

test_files=$(list tests | grep -E '_test(_[a-z]+)?\.(cpp|cu)$')
families=$(list 'op_cases/*_cases.cpp' | sed -E 's#.*/(.*)_cases\.cpp#\1#')
mapfile -t concerned < <(for file in "${sources[@]}"; do tests_of "$file" || true; done | sort -u)
mapfile -t op_cases < <(for file in "${sources[@]}"; do families_of "$file"; done | sort -u)
((${#concerned[@]} + ${#op_cases[@]})) || { say "no test file belongs to the change" && exit; }
say "tests"
printf '  %s\n' "${concerned[@]}" "${op_cases[@]/#/op cases: }"
# With -# the name of a test's file is a tag; [.] are those that run only when they are asked for.
tests=$({
  printf '%s\n' "${concerned[@]}" | sed -nE 's#.*/(.*)\.[a-z]+$#[\#\1]~[.]#p' | sort -u
  ((${#op_cases[@]} == 0)) || printf '%s\n' "[#coverage_test]" "${op_cases[@]/*/*: &[op_cases]}"
} | paste -sd,)
status=0
"build/$preset/tests/pleat_tests" "-#" "$tests" >"$logs/check.log" || status=$?
# 77: some tests were skipped; each says why.
((status == 0 || status == 77)) || { tail -n 60 "$logs/check.log" && exit 1; }
{ grep '^skipped: ' "$logs/check.log" || true; } | sort | uniq -c
tail -n 2 "$logs/check.log"
