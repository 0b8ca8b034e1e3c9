#!/usr/bin/env bash
# Makes Pleat's package for this distribution and processor family:
#   scripts/package.sh
# build/package/pleat_VERSION_ARCHITECTURE.deb (`apt install
# ./build/package/pleat_*.deb`) has the shared library with its variants for newer
# processors, the headers, what find_package(Pleat) and pkg-config read,
# pleat-bench, and the examples as source; a .tar.gz beside it has the same for
# any folder. No CUDA: `cpack` packs any other build as it is.
# The library is compiled three times: a quarter of an hour on two cores.
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

at_most 0 "$@"
"$root/scripts/setup.sh"
build_preset package all
cd "$root/build/package"
rm -f pleat_*.deb pleat-*.tar.gz
quietly cpack cpack
say "packages"
ls -s --block-size=kB pleat_*.deb pleat-*.tar.gz
