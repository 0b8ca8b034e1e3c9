#!/usr/bin/env bash
# Checks Pleat on a machine with a GPU: scripts/gpu_check.sh [options]
#
#   --deps DIR      a folder made by scripts/bundle_deps.sh, where no package
#                   manager has installed the dependencies
#   --build DIR     build folder (build/gpu_check)
#   --results DIR   where results go, those of an earlier run being removed (the
#                   folder `results` in the build folder)
#   --archive FILE  all results as one file (.tar.gz), renewed after each stage
#   --data DIR      CIFAR-10's binary files to train on; without it the synthetic
#                   set
#   --shapes FILE   convolutions to time instead of ResNet-18's, as
#                   bench/compare_torch.py reads them
#   --commit TEXT   what the page says of the version, where this is no git
#                   checkout
#   --only STAGES   some stages, separated by commas; without build, the programs
#                   are those that are there
#   --seconds N     all stages together end within these (590; more below 12
#                   cores, on which nvcc takes longer)
#   --quick         fewer timings, no compute-sanitizer
#   --cpu           every stage on the CPU, to try the script itself; --dry-run is
#                   the same
#   --double        the same on the double of CUDA (PLEAT_CUDA=DOUBLE), whose
#                   times are not taken
#
# Stages, in this order:
#   versions   driver, compilers, libraries, commit
#   build      without tests of the host alone; goes on after what does not
#              compile, and runs nothing that it has linked
#   smoke      copy, elementwise, reduction, cublas, unfold, cudnn: small
#              programs, a process each, with blocking launches
#   tests      those tagged [cuda] or [device], a process each
#   memcheck   compute-sanitizer on a part of the tests
#   train      resnet20 for an epoch
#   dist       the tests of several processes, one a GPU, by NCCL: where there is
#              MPI, which connects them
#   formats    convolutions, batch norm and training steps, contiguous and
#              channels-last
#   torch      the same problems in Pleat and in PyTorch, where python3 has it
#   ask        the five questions of pleat-bench, whose answers are printed below
#              the page (answers.txt)
#   racecheck  compute-sanitizer again: racecheck and initcheck
# Each has a time limit, and one that fails does not stop those that can do
# without it. What a stage found is on disk before the next begins: a line in
# `summary`, its output in NAME.log, and page.txt, the page that is also printed
# last. Exit status: 0 all is well, 1 something failed or was stopped, 2 wrong
# options, 3 there is no GPU.
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=common.sh
source "$here/common.sh"

all_stages=(versions build smoke tests memcheck train dist formats torch ask racecheck)
smoke_checks=(copy elementwise reduction cublas unfold cudnn)
questions=(batchnorm-after-unfold unfold-speed conv2d-vs-conv3d patches faster-convolution)

deps='' build=$root/build/gpu_check results='' archive='' data='' shapes='' commit='' only='' seconds=''
quick=0 mode=gpu
while [[ $# -gt 0 ]]; do
  case $1 in
    --deps | --build | --results | --archive | --data | --shapes | --commit | --only | --seconds)
      [[ $# -ge 2 ]] || wrong "$1 needs a value"
      declare "${1#--}=$2"
      shift
      ;;
    --quick) quick=1 ;;
    --cpu | --dry-run) mode=cpu ;;
    --double) mode=double ;;
    *) wrong "there is no option $1" ;;
  esac
  shift
done
cores=$(nproc 2>/dev/null || echo 2)
: "${seconds:=$((cores < 12 ? 590 + 360 * (12 - cores) / cores : 590))}"
[[ $seconds =~ ^[0-9]+$ ]] || wrong "--seconds needs a whole number, got $seconds"
for place in "$deps" "$data" "$shapes"; do
  [[ -z $place || -e $place ]] || wrong "$place does not exist"
done
for name in ${only//,/ }; do
  [[ " ${all_stages[*]} " == *" $name "* ]] || wrong "--only: there is no stage $name; there are ${all_stages[*]}"
done
if [[ $mode == gpu ]] && ! timeout 30 nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
  echo "gpu_check.sh: there is no GPU here (nvidia-smi lists none); --cpu tries the stages on the CPU" >&2
  exit 3
fi
device=cuda
[[ $mode != cpu ]] || device=cpu

mkdir -p "$build" || exit 1
build=$(cd "$build" && pwd)
out=${results:-$build/results}
[[ ! -f $out/summary ]] || rm -rf "$out"/{summary,page.txt,answers.txt,failures,*.log,*.json,runs,shapes}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
begun=$SECONDS
threads=$((cores < 16 ? cores : 16))
tests=$build/tests/pleat_tests
bench=$build/bench/pleat-bench
summary=$out/summary # a line for each stage
: >"$summary"
failed=0
trained_on=''
running='' # the stage that runs, and its limit
child=''
trap stop INT TERM

# --- what every stage needs

left() { echo $((seconds - (SECONDS - begun))); }

# A line of the summary.
note() {
  printf '%-24s %s\n' "$1" "$2" >>"$summary"
  running=''
  write_page
}

# shellcheck disable=SC2317 # the trap calls it
stop() {
  [[ -z $child ]] || kill "$child" 2>/dev/null
  failed=1
  note stopped "by a signal, in ${running:-no stage}"
  exit 1
}

# GPUs that one process sees: of one that is divided (MIG), a single part.
gpus() { timeout 30 nvidia-smi -L | awk '/^ +MIG/ { parts = 1 } /^GPU/ { ++n } END { print parts ? 1 : n }'; }

# Runs a command of a stage within a limit of seconds and what is left of all: run NAME LIMIT COMMAND... Its output
# goes into NAME.log. Sets `log`, `code`, 124 where it ran out of time, and `took`.
run() {
  local name=$1 limit=$2 start=$SECONDS
  shift 2
  log=$out/$name.log
  ((limit > $(left))) && limit=$(left)
  if ((limit < 5)); then
    echo 'no time was left' >"$log"
    code=124 took=0
    return
  fi
  say "$name (at most $limit s)"
  running="$name, at most $limit s"
  write_page
  timeout -k 5 "$limit" "$@" >"$log" 2>&1 </dev/null &
  child=$!
  wait "$child" 2>/dev/null # bash would say what ended by a signal
  code=$?
  child=''
  took=$((SECONDS - start))
}

outcome() {
  case $code in
    0) echo "well, $took s" ;;
    124 | 137) echo "FAILED: out of time after $took s" ;;
    *) echo "FAILED with status $code after $took s" ;;
  esac
}

last_line() { tail -n 1 "$log" | cut -c1-300; }

# Notes how the command ended that ran last: report NAME [MORE]. More of a failure is what it said last.
report() {
  local more=${2:-}
  [[ $code == 0 ]] || failed=1
  [[ $code == 0 || -n $more ]] || more=$(last_line)
  note "$1" "$(outcome)${more:+; $more}"
}

# Whether a program was built; notes it where not: have STAGE PROGRAM
have() {
  [[ -x $2 ]] && return
  failed=1
  note "$1" "not run: ${2##*/} was not built"
  return 1
}

# --- the page, written anew after each stage: what is known by then

write_page() {
  {
    case $mode in
      gpu) echo -n 'Pleat on a GPU' ;;
      cpu) echo -n 'Pleat on the CPU (a trial of the script)' ;;
      double) echo -n 'Pleat on the double of CUDA (a trial without a GPU)' ;;
    esac
    date -u '+, %Y-%m-%d %H:%M UTC'
    echo
    sed '/^$/,$d' "$out/versions.log" 2>/dev/null # its first paragraph
    echo
    cat "$summary"
    [[ -z $running ]] || echo "RUNNING: $running"
    [[ ! -s $out/failures ]] || { echo && head -n 40 "$out/failures"; }
    page_of_training
    page_of_formats
    [[ ! -s $out/norm.log ]] || { echo && cat "$out/norm.log"; }
    # Of the comparison the summary, once it is there.
    sed -n "/^PyTorch's time over Pleat's/,\$p" "$out/torch.log" 2>/dev/null | sed '1s/^/\n/'
    echo
    echo "$((SECONDS - begun)) s${running:+ so far}; $([[ $failed == 0 ]] && echo 'nothing failed' || echo 'SOMETHING FAILED');" \
      "all output is in $out"
  } >"$out/page.new"
  mv "$out/page.new" "$out/page.txt"
  if [[ -n $archive ]]; then
    tar -czf "$archive.new" --exclude=runs --exclude=shapes -C "$out" . && mv "$archive.new" "$archive"
  fi
}

page_of_training() {
  local accuracy
  accuracy=$(sed -n 's/^\(test accuracy [0-9.]* %\).*/\1/p' "$out/train.log" 2>/dev/null)
  [[ -n $accuracy ]] || return
  printf '\ntraining     an epoch on %s: %s\n' "$trained_on" "$accuracy"
  sed -n '/^epoch /,$p' "$out/train.log" | head -n 2 | sed 's/^/  /'
}

# Of each convolution the fastest implementation in either format.
page_of_formats() {
  [[ -s $out/formats.log ]] || return
  awk '
    / (contiguous|channels_last)  / {
      format = / contiguous  / ? "contiguous" : "channels_last"
      name = type = $0
      sub(/.* (contiguous|channels_last)  /, "", name)
      sub(/ +(contiguous|channels_last)  .*/, "", type)
      sub(/.* /, "", type)
    }
    /\* fastest$/ {
      row = sprintf("%-22s %-9s %-16s", name, type, $1)
      if (!(row in seen)) { seen[row] = 1; rows[++count] = row }
      time[row, format] = sprintf("%-12s %5s %-2s", $2, $3, $4)
    }
    END {
      if (count) printf "\n%-22s %-9s %-16s %-24s%s\n", "fastest convolution", "type", "pass", "contiguous", "channels_last"
      for (i = 1; i <= count; ++i)
        printf "%s %-24s%s\n", rows[i], time[rows[i], "contiguous"], time[rows[i], "channels_last"]
    }' "$out/formats.log"
  grep -E '^ +[a-z0-9_]+ n[0-9]+ ' "$out/format_steps.log" 2>/dev/null | sed '1s/^/\n/'
}

# --- versions

stage_versions() {
  if [[ -z $commit ]]; then
    commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo 'unknown: no git checkout')
    [[ -z $(git -C "$root" status --porcelain 2>/dev/null) ]] || commit+=', changed'
  fi
  {
    echo "commit       $commit"
    if [[ $mode == gpu ]]; then
      timeout 30 nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | sed 's/^/GPU, driver  /'
      echo "nvcc         $({ nvcc --version || /usr/local/cuda/bin/nvcc --version; } 2>/dev/null | sed -n 's/.*release //p')"
    fi
    echo "compiler     $(${CXX:-c++} --version 2>/dev/null | head -n 1); $(cmake --version 2>/dev/null | head -n 1)"
    echo "machine      $cores cores, $(uname -srm)"
    echo
    [[ $mode != gpu ]] || timeout 30 nvidia-smi
  } >"$out/versions.log" 2>&1
  note versions "in versions.log"
}

# --- build

python_folder() { python3 -c "$1" 2>/dev/null; }

cmake_is_new() {
  printf '3.24\n%s\n' "$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')" | sort -CV
}

# What is wrong with driver, nvcc and GPU together, with the remedy, in a line; nothing where they fit.
mismatch() {
  local nvcc driver made_for capability known
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  [[ -x $nvcc ]] || return 0 # configure says so
  driver=$(timeout 30 nvidia-smi | sed -nE 's/.*CUDA Version: ([0-9.]+).*/\1/p' | head -n 1)
  made_for=$("$nvcc" --version | sed -nE 's/.*release ([0-9.]+),.*/\1/p')
  # Within a major version a driver runs what a newer nvcc compiled for its GPU.
  if [[ -n $driver && -n $made_for && ${made_for%%.*} -gt ${driver%%.*} ]]; then
    echo "the driver is for CUDA $driver and nvcc is $made_for: install the toolkit of CUDA ${driver%%.*}, or a newer driver"
    return
  fi
  known=$("$nvcc" --list-gpu-arch 2>/dev/null)
  for capability in $(timeout 30 nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sort -u); do
    [[ -z $known ]] || grep -qx "compute_${capability/./}" <<<"$known" ||
      echo "nvcc $made_for does not know the GPU, of compute capability $capability: install another toolkit," \
        "$([[ ${capability/./} -lt $(sed -n '1s/compute_//p' <<<"$known") ]] && echo an older || echo a newer) one"
  done
}

find_tools() {
  # CMake and Ninja may have come as Python packages, CMake beside an older one of the system; so may cuBLAS and cuDNN.
  cmake_is_new || PATH=$(python_folder 'import cmake; print(cmake.CMAKE_BIN_DIR)'):$PATH
  command -v ninja >/dev/null || PATH=$PATH:$(python_folder 'import ninja; print(ninja.BIN_DIR)')
  if [[ $mode == gpu && -z ${PLEAT_NVIDIA_ROOT:-} ]]; then
    PLEAT_NVIDIA_ROOT=$(python_folder 'import nvidia; print(list(nvidia.__path__)[0])')
    [[ -z $PLEAT_NVIDIA_ROOT ]] || export PLEAT_NVIDIA_ROOT
  fi
  if find_compiler; then export CXX=$compiler; fi
}

cached() { sed -n "s/^$1:[^=]*=//p" "$build/CMakeCache.txt" 2>/dev/null | head -n 1; }

stage_build() {
  local generator keep_going=-k library
  local -A cuda=([gpu]=ON [cpu]=OFF [double]=DOUBLE)
  # What is there later is of this build.
  rm -f "$build"/tests/smoke/smoke "$tests" "$build"/tests/dist/pleat_dist_tests "$bench" \
    "$build"/bench/timing_server "$build"/examples/train_cifar
  local configure=(cmake -S "$root" -B "$build" "-DPLEAT_CUDA=${cuda[$mode]}" -DPLEAT_DEVICE_TESTS_ONLY=ON)
  if [[ ! -f $build/CMakeCache.txt ]]; then
    generator='Unix Makefiles'
    command -v ninja >/dev/null && generator=Ninja
    configure+=(-G "$generator" -DCMAKE_BUILD_TYPE=Release)
  fi
  [[ -z $deps ]] || configure+=("-DCMAKE_PREFIX_PATH=$(cd "$deps" && pwd)")
  run configure 90 "${configure[@]}"
  report configure "$(sed -n 's/^-- \(Pleat with.*\)/\1/p' "$out/configure.log" | head -n 1)"
  if [[ $code != 0 ]]; then
    sed -n '/CMake Error/,/^$/p' "$log" | head -n 20 >>"$out/failures"
    return
  fi
  if [[ $mode == gpu ]]; then
    {
      echo
      for library in CMAKE_CUDA_COMPILER PLEAT_CUBLAS_LIBRARY PLEAT_CUDNN_LIBRARY; do
        echo "$library $(cached "$library")"
      done
    } >>"$out/versions.log"
  fi
  [[ $(cached CMAKE_GENERATOR) == Ninja* ]] && keep_going='-k 0'
  # With more --seconds a machine of few cores gets there, too.
  # shellcheck disable=SC2086
  run build $((seconds > 590 ? seconds - 230 : 360)) cmake --build "$build" --parallel "$(jobs)" \
    --target smoke pleat_tests pleat_dist_tests train_cifar make_shapes pleat-bench timing_server -- $keep_going
  reasons_of_build >>"$out/failures"
  report build "$([[ $code == 0 ]] || echo "$(grep -c 'did not build' "$out/failures") did not build")"
}

# What did not build, in the words of Ninja or of make, and the compilers' errors.
reasons_of_build() {
  sed -nE 's/^FAILED: (\[[^]]*\] )?([^ ]*).*/  did not build: \2/p
    s/^.*build\.make:[0-9]+: ([^]]*)\] Error [0-9]+$/  did not build: \1/p
    /: (fatal |catastrophic )?error[: ]|^(nvcc|ptxas) (fatal|error)|undefined reference/s/^/    /p' "$log" | cut -c1-240
}

# --- smoke

stage_smoke() {
  local check
  have smoke "$build/tests/smoke/smoke" || return
  for check in "${smoke_checks[@]}"; do
    run "smoke_$check" 40 env CUDA_LAUNCH_BLOCKING=1 "$build/tests/smoke/smoke" "$check" "$device"
    # What one says last is the outcome, or where it died the step or the reason.
    if [[ $code == 77 ]]; then note "smoke $check" "$(last_line)"; else report "smoke $check"; fi
  done
}

# --- tests

# The names of the tests that a specification selects, a line each; Catch2 2.13 and 3 are asked differently.
list_tests() {
  local names
  names=$(timeout 60 "$tests" "$1" --list-test-names-only 2>/dev/null)
  [[ -n $names ]] || names=$(timeout 60 "$tests" "$1" --list-tests --verbosity quiet 2>/dev/null)
  printf '%s\n' "$names"
}

# Runs one test and says in a line whether it passed, how long it took, and its name; below that what a failed one said.
# shellcheck disable=SC2001,SC2317 # xargs calls it; what stands for `&` in ${} differs between versions of bash
one_test() {
  local output code word start=$SECONDS
  # The limit of all of them is to reach this one, too.
  output=$(timeout --foreground -k 5 60 "$tests" "$(sed 's/[][\\,]/\\&/g' <<<"$1")" 2>&1)
  code=$?
  case $code in
    0) word=passed ;;
    77) word=skipped ;;
    124 | 137) word=TIMEOUT ;;
    *) word=FAILED ;;
  esac
  printf -v word '%-7s %3d s  %s' "$word" $((SECONDS - start)) "$1"
  case $code in
    0 | 77) printf '%s\n' "$word" ;;
    *) printf '%s (status %d)\n%s\n' "$word" "$code" "$(head -n 60 <<<"$output" | sed 's/^/    /')" ;;
  esac
}

# The tests that failed, each with why: what it said before Catch2 did, an exception's words, or the first check.
reasons_of_tests() {
  awk '
    function close_test() { if (check != "") print "      " substr(check, 1, 240); check = ""; place = "ended" }
    /^[a-zA-Z]/ { close_test() }
    /^(FAILED|TIMEOUT) / { print "  " $0; place = "first"; next }
    place == "ended" { next }
    { line = $0; sub(/^ +/, "", line) }
    place == "first" && line !~ /^(Filters: |~~~|$)/ || place == "words" { check = line; close_test(); next }
    place == "check" && check == "" { check = line }
    { place = "" }
    line ~ /: FAILED:$/ { place = "check" }
    line ~ /^due to unexpected exception with message:$/ { place = "words" }
    END { close_test() }' "$out/tests.log"
}

count_tests() { grep -cE "^($1) " "$out/tests.log"; }

# Each process takes up to 1.5 GB of the GPU's memory: libraries, and what a test allocates.
tests_at_once() {
  local memory n=$cores
  if [[ $mode == gpu ]]; then
    memory=$(timeout 30 nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits | head -n 1)
    ((n > 8)) && n=8
    [[ ! $memory =~ ^[0-9]+$ ]] || ((memory / 1500 >= n)) || n=$((memory / 1500))
  fi
  echo $((n > 1 ? n : 1))
}

stage_tests() {
  local names all bad
  have tests "$tests" || return
  names=$(list_tests '[cuda]~[.],[device]~[.]')
  all=$(grep -c . <<<"$names")
  if [[ $all == 0 ]]; then
    failed=1
    note tests "FAILED: $tests lists none"
    return
  fi
  export -f one_test
  export tests
  # shellcheck disable=SC2016
  # With more --seconds a slow machine gets there, too.
  run tests $((seconds > 590 ? 150 + (seconds - 590) / 2 : 150)) \
    bash -c 'tr "\n" "\0" <<<"$1" | xargs -0 -P "$2" -I {} bash -c "one_test \"\$1\"" one_test {}' tests "$names" \
    "$(tests_at_once)"
  bad=$(count_tests 'FAILED|TIMEOUT')
  reasons_of_tests >>"$out/failures"
  [[ $code != 0 || $bad == 0 ]] || code=1
  report tests "$(count_tests passed) passed, $bad failed, $(count_tests skipped) skipped of $all"
}

# --- compute-sanitizer

# Finds it; notes where it cannot run: have_sanitizer STAGE
have_sanitizer() {
  local nvcc
  sanitizer=$(command -v compute-sanitizer || true)
  nvcc=$(cached CMAKE_CUDA_COMPILER)
  [[ -n $sanitizer || ! -x ${nvcc%/*}/compute-sanitizer ]] || sanitizer=${nvcc%/*}/compute-sanitizer
  if [[ $quick == 1 || $mode != gpu ]]; then
    note "$1" 'left out'
  elif [[ -z $sanitizer ]]; then
    note "$1" 'left out: compute-sanitizer is not installed'
  else
    have "$1" "$tests" && return
  fi
  return 1
}

sanitize() {
  local tool=$1 which=$2
  # Where tensors share memory, a step past the end of one is inside of another.
  run "$tool" 60 env PLEAT_CUDA_SEPARATE_BLOCKS=1 "$sanitizer" --tool "$tool" --error-exitcode 99 "$tests" "$which"
  if grep -q 'Device not supported' "$log"; then
    note "$tool" 'left out: compute-sanitizer does not support this device'
  elif [[ $code == 124 || $code == 137 ]]; then
    # Slowness is no finding, but what it had found by then is.
    grep -qE '^========= (Invalid|Error|Uninitialized)' "$log" && failed=1
    note "$tool" "did not end within its time; until then $(grep -c '^========= .*[Ee]rror' "$log") lines of errors"
  else
    report "$tool" "$(sed -n 's/^=* \(ERROR SUMMARY\|RACECHECK SUMMARY\)/\1/p' "$log" | tail -n 1)"
  fi
}

# Parts that have every kind of kernel: elementwise, blocks whose threads meet, sorts, convolutions, losses; and the
# blocks alone.
meeting='device: reductions*,device: scans*,device: softmax*,devices: norm'
part="devices: activation,devices: scan,devices: index,devices: conv,devices: pool,devices: loss,$meeting"

stage_memcheck() {
  have_sanitizer memcheck || return
  sanitize memcheck "$part"
}

stage_racecheck() {
  have_sanitizer racecheck || return
  sanitize racecheck "$meeting"
  sanitize initcheck "$meeting"
}

# --- train

stage_train() {
  local model=resnet20 folder=$data file
  trained_on=$([[ -n $data ]] && echo "CIFAR-10's files" || echo 'synthetic shapes')
  have train "$build/examples/train_cifar" || return
  if [[ $mode != gpu && -x $build/examples/make_shapes ]]; then
    # A trial: a small network, and the first images of each file.
    model=small folder=$out/shapes trained_on='few synthetic shapes'
    "$build/examples/make_shapes" --output "$folder" >/dev/null
    for file in "$folder"/*.bin; do truncate -s $((128 * 3073)) "$file"; done
  fi
  local command=("$build/examples/train_cifar" --device "$device" --model "$model" --epochs 1 --batch-size 128
    --optimizer sgd --lr 0.05 --output "$out/runs")
  [[ -z $folder ]] || command+=(--data "$folder")
  run train 90 "${command[@]}"
  report train
}

# --- several processes

stage_dist() {
  local program=$build/tests/dist/pleat_dist_tests launcher processes=2
  launcher=$(cached MPIEXEC_EXECUTABLE)
  if [[ -z $launcher || $launcher == *NOTFOUND ]]; then
    note dist 'left out: there is no MPI'
    return
  fi
  have dist "$program" || return
  [[ $mode != gpu ]] || processes=$(gpus)
  local environment=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    OMPI_MCA_hwloc_base_binding_policy=none)
  [[ $device == cpu ]] || environment+=(PLEAT_TEST_DEVICE=cuda)
  run dist 120 env "${environment[@]}" "$launcher" -n "$processes" "$program"
  report dist "$processes processes, $(sed -n 's/^connected by //p' "$log" | head -n 1)"
}

# --- measurements

# Notes it where figures would say nothing: have_times STAGE
have_times() {
  [[ $mode == double ]] || return 0
  note "$1" 'left out: times of the double say nothing'
  return 1
}

# Runs a subcommand of pleat-bench: measure LOG LIMIT WORDS...
measure() {
  local name=$1 limit=$2
  shift 2
  local command=("$bench" "$@" --device "$device" --threads "$threads")
  if [[ $quick == 1 || $device == cpu ]]; then command+=(--quick); else command+=(--seconds 0.1); fi
  run "$name" "$limit" "${command[@]}"
  report "$name"
}

stage_formats() {
  have_times formats && have formats "$bench" || return
  measure formats 60 conv --format contiguous,channels_last --dtype float32,bfloat16
  measure norm 40 ops --match '^norm/batch_norm' --format contiguous,channels_last
  measure format_steps 40 step --format contiguous,channels_last --dtype float32,bfloat16
}

stage_torch() {
  local budget
  have_times torch && have torch "$build/bench/timing_server" || return
  local usable='import sys, torch; sys.exit(sys.argv[1] == "cuda" and not torch.cuda.is_available())'
  if ! timeout 60 python3 -c "$usable" "$device" 2>/dev/null; then
    note torch 'left out: there is no python3 whose PyTorch works here'
    return
  fi
  # As long again for questions and compute-sanitizer.
  budget=$(($(left) / 2 - 20))
  ((quick == 1 && budget > 60)) && budget=60
  ((budget < 20)) && budget=20
  local compare=(python3 "$root/bench/compare_torch.py" --program "$build/bench/timing_server" --device "$device"
    --threads "$threads" --limit-seconds "$budget" --json "$out/compare_torch.json")
  compare+=(--only "step,conv" --models "small,resnet20")
  # Of the layers that it knows itself.
  if [[ -n $shapes ]]; then compare+=(--shapes "$shapes"); else compare+=(--match '^(conv/resnet18|step)/'); fi
  [[ $quick == 0 && $device == cuda ]] || compare+=(--quick)
  run torch $((budget + 40)) "${compare[@]}"
  report torch
}

stage_ask() {
  local question
  have_times ask && have ask "$bench" || return
  for question in "${questions[@]}"; do
    measure "$question" 40 ask "$question"
    { echo "$question (the tables are in $question.log)" && sed -n '/^- /,$p' "$log" && echo; } >>"$out/answers.txt"
  done
}

# --- all of them

wanted() { [[ -z $only || ",$only," == *",$1,"* ]]; }

find_tools
stage_versions
if [[ $mode == gpu ]]; then
  reason=$(mismatch)
  if [[ -n $reason ]]; then
    failed=1
    echo "  $reason" >>"$out/failures"
    note mismatch "FAILED: $reason"
    write_page
    cat "$out/page.txt"
    exit 1
  fi
fi
if wanted build; then stage_build; fi
if wanted smoke; then stage_smoke; fi
if wanted tests; then stage_tests; fi
if wanted memcheck; then stage_memcheck; fi
if wanted train; then stage_train; fi
if wanted dist; then stage_dist; fi
if wanted formats; then stage_formats; fi
if wanted torch; then stage_torch; fi
if wanted ask; then stage_ask; fi
if wanted racecheck; then stage_racecheck; fi
write_page
echo
cat "$out/page.txt"
[[ ! -s $out/answers.txt ]] || { echo && cat "$out/answers.txt"; }
exit "$failed"
