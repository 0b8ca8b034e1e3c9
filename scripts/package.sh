#!/usr/bin/env bash
# Makes Pleat's package for this distribution and processor family:
#   scripts/package.sh [--source]
# build/package/pleat_VERSION_ARCHITECTURE.deb (`apt install
# ./build/package/pleat_*.deb`) has the shared library with its variants for newer
# processors, the headers, what find_package(Pleat) and pkg-config read,
# pleat-bench, and the examples as source; a .tar.gz beside it has the same for
# any folder. No CUDA: `cpack` packs any other build as it is.
# The library is compiled three times: a quarter of an hour on two cores.
#   --source   instead, build/source/pleat_VERSION.dsc with its archives, of which
#              `dpkg-buildpackage -b` makes the same package (needs debhelper)
# Other packagers find their files in packaging/ (docs/releases.md).
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if [[ ${1:-} == --source ]]; then
  at_most 0 "${@:2}"
  command -v dpkg-source >/dev/null || fail "dpkg-source is not installed: apt-get install dpkg-dev debhelper"
  version=$(sed -n '1s/.*(\(.*\)-.*).*/\1/p' "$root/packaging/debian/changelog")
  stage=$root/build/source/pleat-$version
  rm -rf "$root/build/source"
  mkdir -p "$stage"
  git -C "$root" archive HEAD | tar -x -C "$stage"
  tar -C "$root/build/source" -cJf "$root/build/source/pleat_$version.orig.tar.xz" "pleat-$version"
  cp -r "$stage/packaging/debian" "$stage/debian"
  cp "$root/cmake/copyright" "$stage/debian/copyright"
  (cd "$root/build/source" && quietly source dpkg-source -b "pleat-$version")
  say "a source package, beside its folder"
  ls -s --block-size=kB "$root"/build/source/pleat_*
  exit
fi
at_most 0 "$@"
"$root/scripts/setup.sh"
build_preset package all
cd "$root/build/package"
rm -f pleat_*.deb pleat-*.tar.gz
quietly cpack cpack
say "packages"
ls -s --block-size=kB pleat_*.deb pleat-*.tar.gz
