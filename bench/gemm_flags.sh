#!/usr/bin/env bash
# Times Eigen's single-threaded float32 matrix product under different compile flags (all of them for this CPU) and
# prints GFLOP/s: the best of interleaved rounds, because noise only ever adds time. The last column is an
# auto-vectorised loop, y += a x in the first cache, which feels the width of the vectors.
# cmake/native_tuning.cmake rests on these numbers; docs/measurements.md keeps them.
#
#   bench/gemm_flags.sh [rounds]        default: 7 rounds
#   CXX=g++-13 bench/gemm_flags.sh      another compiler in place of g++
#   CLANG=none bench/gemm_flags.sh      without the comparison with clang
#   EIGEN_FLAGS=-I... bench/gemm_flags.sh   where Eigen's headers are, if not in /usr/include/eigen3
#
# A candidate that this CPU cannot run, for lack of instructions, is left out.
set -euo pipefail
export LC_ALL=C

rounds=${1:-7}
cxx=${CXX:-g++}
clang=${CLANG:-clang++}
read -r -a eigen_flags <<<"${EIGEN_FLAGS:--I/usr/include/eigen3}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/gemm.cpp" <<'CPP'
#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

static double gflops(long m, long n, long k) {
  const Matrix a = Matrix::Random(m, k), b = Matrix::Random(k, n);
  Matrix c = Matrix::Zero(m, n);
  const auto run = [&] {
    const auto start = std::chrono::steady_clock::now();
    c.noalias() = a * b;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  run();
  // Small products repeat until they fill a tenth of a second.
  const double flop = 2.0 * double(m) * double(n) * double(k);
  const int repeats = std::max(2, int(10e9 / flop));
  double best = run();
  for (int i = 1; i < repeats; ++i) best = std::min(best, run());
  if (!(c(0, 0) == c(0, 0))) std::abort();
  return flop / best * 1e-9;
}

__attribute__((noinline)) static void axpy(float a, const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] += a * x[i];
}

static double axpy_gflops() {
  const long n = 2048;
  alignas(64) static float x[n], y[n];
  double best = 1;
  for (int i = 0; i < 2000; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int j = 0; j < 10; ++j) axpy(1e-9f, x, y, n);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 10 * 2.0 * double(n) / best * 1e-9;
}

int main(int argc, char** argv) {
  for (int i = 1; i + 2 < argc; i += 3)
    std::printf("%.1f ", gflops(std::atol(argv[i]), std::atol(argv[i + 1]), std::atol(argv[i + 2])));
  std::printf("%.1f\n", axpy_gflops());
}
CPP

# rows x columns x depth: squares, then channels-last convolutions (3x3) with the whole batch in one product,
# then the tile of 256 rows by which the unfold implementation works.
shapes=(256 256 256   1024 1024 1024   2048 2048 2048
        131072 64 576   32768 128 1152   2048 512 4608   256 64 576   256 16 144)

names=()
add() {  # name, compiler, flags...
  local name=$1 compiler=$2 binary="$work/bin${#names[@]}"
  shift 2
  command -v "$compiler" >/dev/null || return 0
  if "$compiler" -std=c++20 -O3 -DNDEBUG "$@" "${eigen_flags[@]}" "$work/gemm.cpp" -o "$binary" 2>"$work/log" &&
    ("$binary" 64 64 64) >/dev/null 2>"$work/log"; then
    names+=("$name")
  else
    local why
    why=$(head -n 1 "$work/log")
    printf "left out: %s (%s)\n" "$name" "${why:-this CPU cannot run it}" >&2
  fi
}

add 'native' "$cxx" -march=native
add 'native, tune icelake-server' "$cxx" -march=native -mtune=icelake-server
add 'native, tune icelake-server, 512-bit' "$cxx" -march=native -mtune=icelake-server -mprefer-vector-width=512
add 'native, 512-bit' "$cxx" -march=native -mprefer-vector-width=512
add 'native, tune generic' "$cxx" -march=native -mtune=generic
add 'native, tune haswell' "$cxx" -march=native -mtune=haswell
add 'native, tune znver4' "$cxx" -march=native -mtune=znver4
add 'x86-64-v4' "$cxx" -march=x86-64-v4
add 'x86-64-v4, tune icelake-server' "$cxx" -march=x86-64-v4 -mtune=icelake-server
# Ice Lake's instructions that Eigen never uses are switched off, because AMD lacks them.
add 'icelake-server' "$cxx" -march=icelake-server -mno-pconfig -mno-wbnoinvd -mno-sgx -mno-pku
add 'native, no AVX-512' "$cxx" -march=native -mno-avx512f
add 'native, no AVX-512, tune icelake-server' "$cxx" -march=native -mno-avx512f -mtune=icelake-server
[[ $clang == none ]] || add 'clang native' "$clang" -march=native

for ((round = 0; round < rounds; ++round)); do
  for i in "${!names[@]}"; do "$work/bin$i" "${shapes[@]}" >>"$work/times$i"; done
done

printf '%s, %s%s; float32, one thread, GFLOP/s, best of %s\n' "$(date +%Y-%m-%d)" "$("$cxx" --version | head -n 1)" \
  "$([[ $clang == none ]] || { command -v "$clang" >/dev/null && printf ', %s' "$("$clang" --version | head -n 1)"; })" "$rounds"
header='| flags |' rule='|---|'
for ((s = 0; s < ${#shapes[@]}; s += 3)); do
  header+=" ${shapes[s]}x${shapes[s + 1]}x${shapes[s + 2]} |"
  rule+='---|'
done
header+=' axpy |' rule+='---|'
printf '%s\n%s\n' "$header" "$rule"
for i in "${!names[@]}"; do
  row="| ${names[i]} |"
  for ((s = 1; s <= ${#shapes[@]} / 3 + 1; ++s)); do
    row+=" $(awk -v c="$s" '{print $c}' "$work/times$i" | sort -n | tail -n 1 | xargs printf '%.0f') |"
  done
  printf '%s\n' "$row"
done
