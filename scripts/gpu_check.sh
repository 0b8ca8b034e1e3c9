#!/usr/bin/env bash
# Checks Pleat on a machine with a GPU, and prints one page of results last: scripts/gpu_check.sh [options]
#
#   --deps DIR     a folder made by scripts/bundle_deps.sh, where no package manager has installed the dependencies
#   --build DIR    build folder (build/gpu_check)
#   --data DIR     CIFAR-10's binary files to train on; without it the synthetic set
#   --shapes FILE  convolutions to time instead of ResNet-18's, as bench/compare_torch.py reads them
#   --commit TEXT  what the page says of the version, where this is no git checkout
#   --seconds N    all stages together end within these (590)
#   --quick        only the tests that compute on the GPU, fewer timings, no compute-sanitizer
#   --cpu          every stage on the CPU, to try the script itself; --dry-run is the same
#
# Stages: build, test, train an epoch, batch norm and conv3d by pleat-bench, time against PyTorch (Pleat alone where
# python3 has none), compute-sanitizer (where it is installed). Each has a time limit, and a stage that fails does not
# stop those that can do without it.
# Exit status: 0 all is well, 1 something failed, 2 wrong options, 3 there is no GPU.
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=common.sh
source "$here/common.sh"

usage() { sed -n '2,/^set -/{/^# \{0,1\}/s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}"; }
deps='' build=$root/build/gpu_check data='' shapes='' commit='' seconds=590 quick=0 device=cuda
while [[ $# -gt 0 ]]; do
  case $1 in
    --deps | --build | --data | --shapes | --commit | --seconds)
      [[ $# -ge 2 ]] || { echo "gpu_check.sh: $1 needs a value" >&2 && exit 2; }
      declare "${1#--}=$2"
      shift
      ;;
    --quick) quick=1 ;;
    --cpu | --dry-run) device=cpu ;;
    -h | --help) usage && exit 0 ;;
    *) echo "gpu_check.sh: there is no option $1" >&2 && usage >&2 && exit 2 ;;
  esac
  shift
done
[[ $seconds =~ ^[0-9]+$ ]] || { echo "gpu_check.sh: --seconds needs a whole number, got $seconds" >&2 && exit 2; }
for place in "$deps" "$data" "$shapes"; do
  [[ -z $place || -e $place ]] || { echo "gpu_check.sh: $place does not exist" >&2 && exit 2; }
done
if [[ $device == cuda ]] && ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
  echo "gpu_check.sh: there is no GPU here (nvidia-smi lists none); --cpu tries the stages on the CPU" >&2
  exit 3
fi

mkdir -p "$build"
build=$(cd "$build" && pwd)
out=$build/results
rm -rf "$out"
mkdir -p "$out"
begun=$SECONDS
cores=$(nproc 2>/dev/null || echo 2)
summary=$out/summary # a line for each stage
failed=0

note() { printf '%-22s %s\n' "$1" "$2" >>"$summary"; }
python_folder() { python3 -c "$1" 2>/dev/null; }

# Runs a command of a stage within a limit of seconds and what is left of all: stage NAME LIMIT COMMAND... Its output
# goes into results/NAME.log. Sets `code`, 124 where it ran out of time, and `took`.
stage() {
  local name=$1 limit=$2 left=$((seconds - (SECONDS - begun))) start=$SECONDS
  shift 2
  ((limit > left)) && limit=$left
  if ((limit < 5)); then
    echo 'no time was left' >"$out/$name.log"
    code=124 took=0
    return
  fi
  say "$name (at most $limit s)"
  timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1 </dev/null
  code=$?
  took=$((SECONDS - start))
}
outcome() {
  case $1 in
    0) echo "well, $took s" ;;
    124 | 137) echo "FAILED: out of time after $took s" ;;
    *) echo "FAILED with status $1 after $took s; $out has its output" ;;
  esac
}

# --- build
# CMake and Ninja may have come as Python packages; so may cuBLAS and cuDNN.
command -v cmake >/dev/null || PATH=$PATH:$(python_folder 'import cmake; print(cmake.CMAKE_BIN_DIR)')
command -v ninja >/dev/null || PATH=$PATH:$(python_folder 'import ninja; print(ninja.BIN_DIR)')
generator='Unix Makefiles'
command -v ninja >/dev/null && generator=Ninja
if [[ -z ${PLEAT_NVIDIA_ROOT:-} ]]; then
  PLEAT_NVIDIA_ROOT=$(python_folder 'import nvidia; print(list(nvidia.__path__)[0])')
  [[ -z $PLEAT_NVIDIA_ROOT ]] || export PLEAT_NVIDIA_ROOT
fi
configure=(cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release)
[[ -f $build/CMakeCache.txt ]] || configure+=(-G "$generator")
[[ -z $deps ]] || configure+=("-DCMAKE_PREFIX_PATH=$(cd "$deps" && pwd)")
if [[ $device == cuda ]]; then configure+=(-DPLEAT_CUDA=ON); else configure+=(-DPLEAT_CUDA=OFF); fi
if find_compiler; then export CXX=$compiler; fi
stage configure 60 "${configure[@]}"
if [[ $code == 0 ]]; then
  # With more --seconds a machine of few cores gets there, too.
  stage build $((seconds > 590 ? seconds - 230 : 360)) cmake --build "$build" --parallel "$(jobs)"
  note build "$(outcome $code)"
else
  note build "$(outcome $code) (configure)"
fi
built=0
[[ $code == 0 ]] && built=1 || failed=1

# --- test
tests_line='not run' failures=''
if [[ $built == 1 ]]; then
  select=()
  [[ $quick == 0 ]] || select=(-R '^(cuda|device)')
  # A process for each test: one that loses the GPU does not take the others with it.
  stage test 150 ctest --test-dir "$build" --parallel "$cores" --timeout 100 --output-on-failure \
    ${select[@]+"${select[@]}"}
  passed=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#[0-9]+: .* Passed ' "$out/test.log")
  skipped=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*\*\*\*Skipped' "$out/test.log")
  failures=$(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (.*[^ .]) *\.*\*\*\*(Failed|Timeout|Exception|Not Run).*/  \1: \2/p' "$out/test.log")
  tests_line="$passed passed, $(grep -c . <<<"$failures") failed, $skipped skipped"
  note test "$(outcome $code); $tests_line"
  [[ $code == 0 && $passed -gt 0 ]] || failed=1
else
  note test 'not run'
fi

# --- train
accuracy='not run'
if [[ $built == 1 ]]; then
  train=("$build/examples/train_cifar" --device "$device" --model resnet20 --epochs 1 --batch-size 128 --optimizer sgd
    --lr 0.05 --output "$out/runs")
  [[ -z $data ]] || train+=(--data "$data")
  stage train 90 "${train[@]}"
  note train "$(outcome $code)"
  accuracy=$(sed -n 's/^\(test accuracy [0-9.]* %\).*/\1/p' "$out/train.log")
  [[ $code == 0 && -n $accuracy ]] || failed=1
else
  note train 'not run'
fi

# --- what the figures with PyTorch leave open: memory's speed, and 3-D beside 2-D
asked=''
threads=$((cores < 16 ? cores : 16))
if [[ $built == 1 ]]; then
  for question in 'norm' 'ask batchnorm-after-unfold' 'ask conv2d-vs-conv3d'; do
    read -ra words <<<"$question"
    ask=("$build/bench/pleat-bench" "${words[@]}" --device "$device" --threads "$threads" --color never)
    [[ $quick == 0 && $device == cuda ]] || ask+=(--quick)
    stage "${words[-1]}" 40 "${ask[@]}"
    note "${words[-1]}" "$(outcome $code)"
    [[ $code == 0 ]] || failed=1
    [[ ${words[0]} != ask ]] || asked+=" ${words[-1]}"
  done
fi

# --- time
usable='import sys, torch; sys.exit(sys.argv[1] == "cuda" and not torch.cuda.is_available())'
has_torch=0
python3 -c "$usable" "$device" 2>/dev/null && has_torch=1
if [[ $built == 0 ]]; then
  note time 'not run'
elif [[ $has_torch == 0 ]]; then
  stage time 100 "$build/bench/pleat-bench" conv --device "$device" --threads "$threads" --quick
  note time "$(outcome $code); Pleat alone: there is no python3 whose PyTorch works here"
  [[ $code == 0 ]] || failed=1
else
  budget=$((seconds - (SECONDS - begun) - 100))
  ((quick == 1 && budget > 60)) && budget=60
  ((budget < 20)) && budget=20
  compare=(python3 "$root/bench/compare_torch.py" --program "$build/bench/turns" --device "$device" --threads "$threads"
    --limit-seconds "$budget" --json "$out/compare_torch.json")
  [[ -z $shapes ]] || compare+=(--shapes "$shapes")
  [[ $quick == 0 && $device == cuda ]] || compare+=(--quick)
  stage time $((budget + 60)) "${compare[@]}"
  note time "$(outcome $code)"
  [[ $code == 0 ]] || failed=1
fi

# --- compute-sanitizer
sanitizer=$(command -v compute-sanitizer || true)
nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[^=]*=//p' "$build/CMakeCache.txt" 2>/dev/null | head -n 1)
[[ -n $sanitizer || ! -x ${nvcc%/*}/compute-sanitizer ]] || sanitizer=${nvcc%/*}/compute-sanitizer
if [[ $built == 0 || $quick == 1 || $device == cpu ]]; then
  note sanitizer 'not run'
elif [[ -z $sanitizer ]]; then
  note sanitizer 'not run: compute-sanitizer is not installed'
else
  # A part that has every kind of kernel: elementwise, blocks whose threads meet, sorts, convolutions, losses.
  part='device: relu,device: add,device: sum,device: softmax,device: cumsum,device: sort,device: gather'
  part+=',device: conv2d,device: max_pool,device: batch_norm,device: cross_entropy'
  meeting='device: sum,device: softmax,device: cumsum,device: batch_norm'
  for tool in memcheck racecheck initcheck; do
    [[ $tool == memcheck ]] && which=$part || which=$meeting
    stage "$tool" 60 "$sanitizer" --tool $tool --error-exitcode 99 "$build/tests/pleat_tests" "$which"
    if grep -q 'Device not supported' "$out/$tool.log"; then
      note "$tool" 'not run: compute-sanitizer does not support this device'
    elif [[ $code == 124 || $code == 137 ]]; then
      note "$tool" "did not end within its time; until then $(grep -c '^========= .*[Ee]rror' "$out/$tool.log") lines of errors"
      # Slowness is no finding, but what it had found by then is.
      grep -qE '^========= (Invalid|Error|Uninitialized)' "$out/$tool.log" && failed=1
    else
      note "$tool" "$(outcome $code); $(sed -n 's/^=* \(ERROR SUMMARY\|RACECHECK SUMMARY\)/\1/p' "$out/$tool.log" | tail -n 1)"
      [[ $code == 0 ]] || failed=1
    fi
  done
fi

# --- the page
if [[ -z $commit ]]; then
  commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo 'unknown: no git checkout')
  [[ -z $(git -C "$root" status --porcelain 2>/dev/null) ]] || commit+=', changed'
fi
page=$out/page.txt
{
  echo "Pleat on $([[ $device == cuda ]] && echo a GPU || echo 'the CPU (a trial of the script)'), $(date -u '+%Y-%m-%d %H:%M') UTC"
  echo
  echo "commit       $commit"
  if [[ $device == cuda ]]; then
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | sed 's/^/GPU, driver  /'
  fi
  echo "build        $(sed -n 's/^-- \(Pleat with\(out\)\{0,1\} CUDA.*\)/\1/p' "$out/configure.log" | head -n 1)"
  echo "compiler     $(${CXX:-c++} --version 2>/dev/null | head -n 1); $(cmake --version 2>/dev/null | head -n 1)"
  echo "machine      $cores cores, $(uname -srm)"
  echo
  cat "$summary"
  echo
  echo "tests        $tests_line"
  [[ -z $failures ]] || printf '%s\n' "$failures" | head -n 40
  echo "training     resnet20, one epoch on $([[ -n $data ]] && echo "CIFAR-10's files" || echo 'synthetic shapes'): ${accuracy:-no accuracy}"
  sed -n '/^epoch /,$p' "$out/train.log" 2>/dev/null | head -n 2 | sed 's/^/  /'
  for log in norm time; do
    [[ -s $out/$log.log ]] && echo && cat "$out/$log.log"
  done
  for log in $asked; do
    printf '\n%s (the tables are in %s.log)\n' "$log" "$log"
    sed -n '/^- /,$p' "$out/$log.log"
  done
  echo
  echo "took $((SECONDS - begun)) s; $([[ $failed == 0 ]] && echo 'nothing failed' || echo 'SOMETHING FAILED')"
} >"$page"
echo
cat "$page"
exit "$failed"
