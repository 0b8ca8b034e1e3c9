#!/usr/bin/env bash
# Collects the libraries that Pleat is built with into a folder:
#   scripts/bundle_deps.sh [--for windows] DIR
#
# For machines without package manager and network, as the nodes of a cluster are:
# copy DIR there, and give its place to CMake, `cmake -S . -B build
# -DCMAKE_PREFIX_PATH=DIR`, or to scripts/gpu_check.sh by --deps. A compiler and
# CMake must be there. Headers come along as they are; zlib, libpng and libjpeg as
# static libraries of this machine's processor; or, with --for windows, of 64-bit
# Windows, for which libpng and libjpeg-turbo are built from the sources of Debian
# or Ubuntu (scripts/setup.sh --for windows installs what that needs). DIR must be
# new, empty, or made by this script, which then replaces what it had put there.
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

target=''
if [[ ${1:-} == --for ]]; then
  [[ ${2:-} == windows ]] || wrong "--for takes windows, got '${2:-}'"
  target=$2
  shift 2
fi
at_most 1 "$@"
[[ -n ${1:-} ]] || wrong "DIR must be named"
bundle=$1
list=$bundle/files.txt
[[ ! -e $bundle || -d $bundle ]] || fail "$bundle is not a folder"
if [[ -d $bundle && ! -f $list && -n $(ls -A "$bundle") ]]; then
  fail "$bundle holds files that this script did not put there; name a new folder"
fi

find_compiler || fail "no C++20 compiler found; run $root/scripts/setup.sh"
missing=()
for library in eigen fmt_library zlib png jpeg json cli11 catch2; do
  [[ $'\n'$found$'\n' == *$'\n'$library$'\n'* ]] || missing+=("${library%_library}")
done
[[ ${#missing[@]} -eq 0 ]] || fail "not installed on this machine: ${missing[*]}; run $root/scripts/setup.sh first"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Builds the libraries that are not headers for Windows, from the sources of the packages $@, into $work/prefix, and
# leaves in `places` where the bundle finds them.
build_for_windows() {
  local mingw=/usr/x86_64-w64-mingw32 prefix=$work/prefix source apt
  mkdir -p "$work/lists/partial" "$work/sources"
  # The sources of where this machine's packages come from, with lists of their own: the machine's stay as they are.
  # shellcheck disable=SC2016  # names of apt-get's
  apt-get indextargets --format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    grep -E ' (main|universe)$' | grep -E 'debian|ubuntu' | sort -u >"$work/sources.list"
  apt=(apt-get -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists"
    -o APT::Sandbox::User=)
  mkdir -p "$logs"
  quietly bundle_lists "${apt[@]}" update
  if ! (cd "$work/sources" && "${apt[@]}" source "$@") >"$logs/bundle_sources.log" 2>&1; then
    say "not all sources of security updates can be had ($logs/bundle_sources.log); those of the release instead"
    sed -i '/-security /d' "$work/sources.list"
    quietly bundle_lists "${apt[@]}" update
    (cd "$work/sources" && quietly bundle_sources "${apt[@]}" source "$@")
  fi
  for source in "$work"/sources/*/; do
    say "build $(basename "$source")"
    quietly bundle_build cmake -G Ninja -S "$source" -B "$work/of_$(basename "$source")" \
      --toolchain "$root/cmake/x86_64-windows.cmake" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
      -DBUILD_SHARED_LIBS=OFF -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DPNG_SHARED=OFF -DPNG_TESTS=OFF \
      -DPNG_EXECUTABLES=OFF -DBUILD_TESTING=OFF
    quietly bundle_build cmake --build "$work/of_$(basename "$source")" --parallel "$(jobs)" --target install
  done
  places=(-DPROCESSOR=x86_64-windows "-DZLIB_HEADERS=$mingw/include" "-Dzconf_folder=$mingw/include"
    "-DZLIB_ARCHIVE=$mingw/lib/libz.a")
  for source in PNG JPEG; do places+=("-D${source}_HEADERS=$prefix/include" "-D${source}_CONFIGURATION=$prefix/include"); done
  places+=("-DPNG_ARCHIVE=$prefix/lib/libpng.a" "-DJPEG_ARCHIVE=$prefix/lib/libjpeg.a"
    "-DCATCH_ARCHIVE=$prefix/lib/libCatch2.a")
}

places=()
if [[ $target == windows ]]; then
  sources=(libpng1.6 libjpeg-turbo)
  # Catch2 2 is headers.
  [[ ! -f /usr/include/catch2/catch_all.hpp ]] || sources+=(catch2)
  build_for_windows "${sources[@]}"
fi
# Complete, or not at all: DIR is touched after everything was found and copied.
CXX=$compiler quietly bundle cmake -S "$root/cmake/bundle_deps" -B "$work/build" -DOUT="$work/bundle" \
  ${places[@]+"${places[@]}"}
if [[ -f $list ]]; then
  while IFS= read -r file; do
    [[ $file == /* || $file == *..* ]] || rm -f "$bundle/$file"
  done <"$list"
fi
mkdir -p "$bundle"
(cd "$work/bundle" && find . -type f | sed 's,^\./,,' | sort >"$work/files.txt")
cp -R "$work/bundle/." "$bundle/"
cp "$work/files.txt" "$list"
say "$bundle: $(du -sm "$bundle" | cut -f1) MB"
cat "$bundle/versions.txt"
