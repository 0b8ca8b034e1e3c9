#!/usr/bin/env bash
# Builds Pleat for 64-bit Arm on another processor and runs its tests on an
# emulator, as three processors: with all instructions that the library chooses
# at run time, with dotprod alone, and with none of them.
#   scripts/test_arm.sh [--quick]
# --quick: of the tests those whose code is another one on Arm; five minutes where
# ccache knows the rest. Without it all, which takes hours. The last line reads
# "N passed, N failed, N skipped".
# Needs a Debian or Ubuntu with g++-aarch64-linux-gnu and qemu-user. The target's
# libraries are downloaded into build/arm-root, and nothing of the system is changed.
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

quick=0
[[ ${1:-} != --quick ]] || { quick=1 && shift; }
at_most 0 "$@"

for command in aarch64-linux-gnu-g++ qemu-aarch64 apt-get dpkg-deb; do
  command -v "$command" >/dev/null ||
    fail "there is no $command; on Debian and Ubuntu: apt-get install g++-aarch64-linux-gnu qemu-user"
done

# The libraries for Arm, with package lists of their own beside those of the system.
arm=$root/build/arm-root
# shellcheck disable=SC2317  # is called by quietly
download_libraries() {
  local packages=(libfmt-dev zlib1g-dev libpng-dev libjpeg-dev) options deb
  rm -rf "$arm"
  mkdir -p "$arm"/{state/lists/partial,cache/archives/partial,debs,root/usr/lib}
  : >"$arm/state/status"
  options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= -o "Dir::State=$arm/state"
    -o "Dir::State::status=$arm/state/status" -o "Dir::Cache=$arm/cache")
  apt-get "${options[@]}" update
  # What these need, but for the C and C++ libraries, which come with the compiler.
  mapfile -t packages < <(apt-get "${options[@]}" --simulate --no-install-recommends install "${packages[@]}" |
    awk '/^Inst / && $2 ~ /^lib(fmt|png|jpeg)|^zlib/ { print $2 }')
  (cd "$arm/debs" && apt-get "${options[@]}" download "${packages[@]}")
  for deb in "$arm"/debs/*.deb; do dpkg-deb -x "$deb" "$arm/root"; done
  [[ ! -d $arm/root/lib || -L $arm/root/lib ]] || cp -a "$arm/root/lib/." "$arm/root/usr/lib/"
  touch "$arm/complete"
}
if [[ ! -e $arm/complete ]]; then
  say 'libraries for Arm'
  quietly arm_libraries download_libraries
fi

build_arm() {
  say "build arm $*"
  quietly configure_arm cmake --preset arm "-DPLEAT_WERROR=${PLEAT_WERROR:-OFF}"
  NINJA_STATUS='[%f/%t] ' cmake --build --preset arm --parallel "$(jobs)" --target "$@" | thin_status
}

# Tests by the kernels that a processor chooses.
on_processor() {
  say "test $1: ${*:2}"
  QEMU_CPU=$1 run_program qemu-aarch64 -L /usr/aarch64-linux-gnu build/arm/tests/pleat_tests "${@:2}"
}

cd "$root"
report=$root/build/arm/tests.xml
if ((quick)); then
  build_arm pleat_tests
  run_tests "$report" --preset arm --tests-regex '^vector_loops$'
  for cpu in max cortex-a76 cortex-a53; do on_processor "$cpu" -# '[#gemm_bfloat16_test],[#quantized_conv_test]'; done
  on_processor max -# '[#gemm_test],[#half_test],[#safetensors_test],[#npy_test]'
else
  build_arm all
  # The emulator ends in a child of fork() that makes threads (qemu 7.2), and the test of kills starts its own program,
  # which the system does without the emulator. Indexing has calls that take it more than the five seconds that are allowed.
  run_tests "$report" --preset arm --timeout 7200 --exclude-regex \
    '^200 kills |^a child of fork\(\) computes|computes in a child of fork\(\)|^a process forks while|is alive at a fork|^indexing takes integers'
  for cpu in cortex-a76 cortex-a53; do on_processor "$cpu" -# '[#gemm_bfloat16_test],[#quantized_conv_test]'; done
fi
end_of_tests
