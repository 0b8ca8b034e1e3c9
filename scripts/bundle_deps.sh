#!/usr/bin/env bash
# Collects the libraries that Pleat is built with into a folder:
#   scripts/bundle_deps.sh DIR
#
# For machines without package manager and network, as the nodes of a cluster are:
# copy DIR there, and give its place to CMake, `cmake -S . -B build
# -DCMAKE_PREFIX_PATH=DIR`, or to scripts/gpu_check.sh by --deps. A compiler and
# CMake must be there. Headers come along as they are; zlib, libpng and libjpeg as
# static libraries of this machine's processor. DIR must be new, empty, or made by
# this script, which then replaces what it had put there.
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

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
# Complete, or not at all: DIR is touched after everything was found and copied.
CXX=$compiler quietly bundle cmake -S "$root/cmake/bundle_deps" -B "$work/build" -DOUT="$work/bundle"
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
