#!/usr/bin/env bash
# Runs tests with Pleat for 64-bit Arm, cross-compiled and under qemu: scripts/test_arm.sh [tests, as pleat_tests takes them]
# On Debian; as root it installs what is missing: the compiler, qemu, and Arm's libraries. Without tests it runs those of
# the kernels with vectors. qemu is some ten times as slow as a processor.
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

packages=(g++-aarch64-linux-gnu qemu-user libfmt-dev:arm64 zlib1g-dev:arm64 libpng-dev:arm64)
if ! dpkg -s "${packages[@]}" >/dev/null 2>&1; then
  say "install ${packages[*]}"
  quietly arm-architecture dpkg --add-architecture arm64
  quietly arm-update apt-get update
  quietly arm-install env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"
fi
CXX=aarch64-linux-gnu-g++ build_preset arm pleat_tests
(($# > 0)) || set -- '[streaming],[gemm],[matmul],[batch_norm],[conv]'
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu
qemu-aarch64 build/arm/tests/pleat_tests "$@"
