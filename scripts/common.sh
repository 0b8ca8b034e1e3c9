# Shared by the scripts beside it (sourced, never run).
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$root/build/logs
# Where setup.sh puts a CMake when the distribution's is too old.
tools=$root/build/tools
[[ -x $tools/bin/cmake ]] && PATH=$tools/bin:$PATH

say() { printf '== %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# What makes no sense is said before anything is done.
wrong() {
  printf '%s: %s (see %s --help)\n' "$(basename "$0")" "$1" "$0" >&2
  exit 2
}
# Of a script without options, the arguments: at_most COUNT ARGUMENT...
at_most() {
  local most=$1 argument
  shift
  for argument in "$@"; do [[ $argument != -* ]] || wrong "there is no option $argument"; done
  (($# <= most)) || wrong "takes at most $most arguments, got $#"
}
# The comment at the head of the script that sources this is its help, whatever else it is given.
for argument in "$@"; do
  [[ $argument != -h && $argument != --help ]] || { sed -n '1d;/^#/!q;s/^# \{0,1\}//p' "$0" && exit; }
done

# Runs a command whose output only matters when it fails: quietly NAME COMMAND...
quietly() {
  local log=$logs/$1.log
  shift
  mkdir -p "$logs"
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "'$*' failed; all of its output is in $log"
  fi
}

# What the compiler $1 is and what it can include, one word a line: gcc or clang with its version, and libraries.
probe_compiler() {
  "$1" -std=c++20 -E -P -x c++ - 2>/dev/null <<'CPP'
#if defined(__clang__)
clang __clang_major__
#elif defined(__GNUC__)
gcc __GNUC__
#endif
#if __has_include(<Eigen/Core>) || __has_include(<eigen3/Eigen/Core>)
eigen
#endif
#if __has_include(<fmt/core.h>)
fmt_library
#endif
#if __has_include(<zlib.h>)
zlib
#endif
#if __has_include(<png.h>)
png
#endif
#if __has_include(<jpeglib.h>)
jpeg
#endif
#if __has_include(<nlohmann/json.hpp>)
json
#endif
#if __has_include(<CLI/CLI.hpp>)
cli11
#endif
#if __has_include(<catch2/catch.hpp>) || __has_include(<catch2/catch_all.hpp>)
catch2
#endif
CPP
}

# Sets `compiler` to the first that is new enough, and `found` to what probe_compiler says of it; fails when none is.
# A CXX in the environment is the only candidate.
find_compiler() {
  local candidate version
  local candidates=(c++ g++ g++-14 g++-13 g++-12 clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14)
  [[ -n ${CXX:-} ]] && candidates=("$CXX")
  for candidate in "${candidates[@]}"; do
    found=$(probe_compiler "$candidate") || continue
    version=${found%%$'\n'*}
    case $version in
      gcc\ *) [[ ${version#gcc } -ge 12 ]] || continue ;;
      clang\ *) [[ ${version#clang } -ge 14 ]] || continue ;;
      *) continue ;;
    esac
    compiler=$candidate
    return 0
  done
  compiler='' found=''
  return 1
}

# Compilations at a time: one a core, and no more than the free memory carries (1.5 GB each).
jobs() {
  local cores memory
  cores=$(nproc 2>/dev/null || echo 2)
  memory=$(awk '/^MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo 2>/dev/null || true)
  [[ -n $memory && $memory -lt $cores ]] && cores=$memory
  echo $((cores > 1 ? cores : 1))
}

# Of Ninja's status lines, passes on about one in ten; all other lines as they are.
thin_status() {
  local line tenth=0 now
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
      now=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      ((now > tenth)) || continue
      tenth=$now
    elif [[ $line == 'ninja: no work to do.' ]]; then
      continue
    fi
    printf '%s\n' "$line"
  done
}

# The wine that runs programs of 64-bit Windows; nothing where there is none. Debian keeps it out of PATH.
find_wine() { PATH=$PATH:/usr/lib/wine command -v wine64 || true; }

# Whether nvcc compiles: not without a GPU, where nothing could run what takes it minutes.
default_cuda() { if nvidia-smi -L >/dev/null 2>&1; then echo AUTO; else echo OFF; fi; }

# Configures a preset and builds the given targets: build_preset PRESET TARGET...
build_preset() {
  local preset=$1 werror=OFF options=()
  shift
  local command=(cmake --build --preset "$preset" --parallel "$(jobs)" --target "$@")
  [[ $preset != release ]] || options+=("-DPLEAT_CUDA=${PLEAT_CUDA:-$(default_cuda)}")
  [[ ${CI:-} == true ]] && werror=ON
  find_compiler || fail "no C++20 compiler found; run $root/scripts/setup.sh"
  say "configure $preset"
  (cd "$root" && CXX=$compiler quietly "configure_$preset" cmake --preset "$preset" \
    "-DPLEAT_WERROR=${PLEAT_WERROR:-$werror}" ${options[@]+"${options[@]}"})
  say "build $preset $*"
  # A terminal gets Ninja's own status line, a file a few lines.
  if [[ -t 1 ]]; then
    (cd "$root" && "${command[@]}")
  else
    (cd "$root" && NINJA_STATUS='[%f/%t] ' "${command[@]}") | thin_status
  fi
}

status=0 tests=0 failures=0 disabled=0 skipped=0
# Runs ctest with the options: run_tests REPORT OPTION... Leaves the report, and counts.
run_tests() {
  local junit=$1 run
  shift
  rm -f "$junit"
  run=(ctest --parallel "$(jobs)" --output-junit "$junit" --no-tests=ignore "$@")
  # Of the tests that pass or are skipped, a terminal gets a line that counts up, a file nothing.
  if [[ -t 1 ]]; then
    (cd "$root" && "${run[@]}" --progress) || status=$?
  else
    (cd "$root" && "${run[@]}") |
      grep -vE '^$|^Test project |^ +Start +[0-9]+: |^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*[ .](Passed|\*\*\*Skipped) ' ||
      status=${PIPESTATUS[0]}
  fi
  [[ -s $junit ]] || return 0  # with options that select no test
  say_skipped "$junit"
  add_counts "$junit"
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

# Runs a program of Catch2 tests and adds its counts, of which its last line tells: run_program COMMAND...
run_program() {
  local log=$logs/tests.log code=0 ran failed
  mkdir -p "$logs"
  "$@" | tee "$log" || code=${PIPESTATUS[0]}
  ran=$(sed -nE 's/^(All tests passed .* in|test cases:) *([0-9]+) .*/\2/p' "$log")
  failed=$(sed -nE 's/^test cases:.* ([0-9]+) failed.*/\1/p' "$log")
  skipped=$((skipped + $(grep -c '^skipped: ' "$log" || true)))
  # 77: some were skipped. One that ends otherwise without that line has crashed.
  ((code == 0 || code == 77)) || status=1 failed=${failed:-1} ran=${ran:-1}
  tests=$((tests + ${ran:-0})) failures=$((failures + ${failed:-0}))
}

# The last line of a script that tests, and its status.
end_of_tests() {
  ((tests > 0)) || fail "no test ran"
  skipped=$((skipped + disabled))
  printf '%d passed, %d failed, %d skipped\n' $((tests - failures - skipped)) "$failures" "$skipped"
  exit "$status"
}
