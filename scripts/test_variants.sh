#!/usr/bin/env bash
# Runs the tests with every variant of the library that this processor has
# instructions for (cmake/cpu_variants.cmake):
#   scripts/test_variants.sh [tests, as pleat_tests takes them]
# The library is compiled three times: a quarter of an hour on two cores. The last
# line reads "N passed, N failed, N skipped".
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

build_preset variants pleat_tests
program=build/variants/tests/pleat_tests
(($# > 0)) || set -- '~[.]~[programs]'
# What the processor lacks, as the loader is to believe.
for hidden in '' -AVX512F -AVX512F,-AVX2; do
  export GLIBC_TUNABLES=glibc.cpu.hwcaps=$hidden
  library=$(ldd "$program" | awk '/libpleat/ { print $3 }')
  [[ ${library:-} != "${last:-}" ]] || continue
  last=$library
  say "test ${library#"$root"/}"
  run_program "$program" "$@"
done
end_of_tests
