#!/usr/bin/env bash
# Builds and runs a project outside of Pleat's tree in every way that README.md
# offers, with a static and a shared library:
#   scripts/test_consumers.sh [build folder]     (default: build/consumers)
# The library is compiled for each of six builds, without optimisation and without
# CUDA: a quarter of an hour on two cores. The tests "consumer_*" of any build,
# with CUDA or without, do in seconds what needs no library of its own.
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

at_most 1 "$@"
work=${1:-$root/build/consumers}
find_compiler || fail "no C++20 compiler found; run $root/scripts/setup.sh"
CMAKE_BUILD_PARALLEL_LEVEL=$(jobs)
export CMAKE_BUILD_PARALLEL_LEVEL
for shared in OFF ON; do
  kind=static
  [[ $shared == OFF ]] || kind=shared
  build=$work/$kind/pleat
  say "$kind: build Pleat"
  quietly "consumers_$kind" cmake -G Ninja -S "$root" -B "$build" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DPLEAT_NATIVE=OFF -DPLEAT_BUILD_BENCH=OFF -DPLEAT_CUDA=OFF \
    -DBUILD_SHARED_LIBS=$shared -DPLEAT_CPU_VARIANTS=OFF -DPLEAT_BUILD_TESTS=OFF -DPLEAT_BUILD_EXAMPLES=OFF
  quietly "consumers_$kind" cmake --build "$build"
  for way in find_package pkg_config add_subdirectory fetch_content; do
    say "$kind: $way"
    cmake -DWAY=$way -DWHOLE=ON -DPLUGIN=ON -DSHARED=$shared -DBUILD="$build" -DWORK="$work/$kind/$way" -DGENERATOR=Ninja \
      -DCXX="$compiler" -P "$root/tests/consumer/run.cmake"
  done
done
