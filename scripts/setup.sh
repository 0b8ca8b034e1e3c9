#!/usr/bin/env bash
# Installs what building, running and testing Pleat needs and this machine lacks.
# Silent when nothing is missing:
#   scripts/setup.sh [--for windows]
# With --for windows also what building for Windows needs, and wine, which runs
# its tests.
#
# Debian and Ubuntu: through apt-get, as root or by sudo. Where the distribution's
# CMake is older than 3.24 (Ubuntu 22.04), a newer one goes into a virtual
# environment of Python under build/tools, which the scripts prefer. Elsewhere:
# says what to install, and fails.
# PLEAT_SKIP_SETUP=1 skips the check (for libraries in places that only CMake
# knows).
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

target=''
if [[ ${1:-} == --for ]]; then
  [[ ${2:-} == windows ]] || wrong "--for takes windows, got '${2:-}'"
  target=$2
  shift 2
fi
at_most 0 "$@"
[[ ${PLEAT_SKIP_SETUP:-} == 1 ]] && exit 0

cmake_is_new_enough() {
  local version major minor
  version=$(cmake --version 2>/dev/null) || return 1
  [[ $version =~ ([0-9]+)\.([0-9]+) ]] || return 1
  major=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]}
  ((major > 3 || (major == 3 && minor >= 24)))
}

# Fills `missing` with names that `describe` knows.
look() {
  local library
  missing=()
  if ! find_compiler; then
    missing+=(compiler)
    # What the libraries' headers are is a question for the compiler to come; meanwhile any will do.
    found=$(probe_compiler "${CXX:-c++}" || true)
  fi
  cmake_is_new_enough || missing+=(cmake)
  command -v ninja >/dev/null || missing+=(ninja)
  for library in eigen fmt_library zlib png jpeg json cli11 catch2; do
    [[ $'\n'$found$'\n' == *$'\n'$library$'\n'* ]] || missing+=("$library")
  done
  if [[ $target == windows ]]; then
    command -v x86_64-w64-mingw32-g++-posix >/dev/null || missing+=(mingw)
    [[ -f /usr/x86_64-w64-mingw32/include/zlib.h ]] || missing+=(mingw_zlib)
    [[ -n $(find_wine) ]] || missing+=(wine)
    command -v dpkg-source >/dev/null || missing+=(dpkg_source)
    command -v nasm >/dev/null || missing+=(nasm)
  fi
}

# Functions rather than associative arrays, which the bash 3.2 of macOS lacks: it too shall say what to install.
describe() {
  case $1 in
    compiler) echo 'a C++20 compiler: g++ 12 or clang++ 14, or newer' ;;
    cmake) echo 'CMake 3.24 or newer' ;;
    ninja) echo 'Ninja' ;;
    eigen) echo 'Eigen 3.4' ;;
    fmt_library) echo 'fmt' ;;
    zlib) echo 'zlib, with its headers' ;;
    png) echo 'libpng 1.6, with its headers' ;;
    jpeg) echo 'libjpeg-turbo, with its headers' ;;
    json) echo 'nlohmann-json' ;;
    cli11) echo 'CLI11' ;;
    catch2) echo 'Catch2 (2.13 or 3)' ;;
    mingw) echo 'g++ of mingw-w64 with the threads of POSIX (x86_64-w64-mingw32-g++-posix)' ;;
    mingw_zlib) echo 'zlib for mingw-w64' ;;
    wine) echo 'wine for 64-bit programs (wine64)' ;;
    dpkg_source) echo 'dpkg-source, which unpacks sources of Debian' ;;
    nasm) echo 'nasm, for libjpeg-turbo' ;;
  esac
}
package_of() {
  case $1 in
    ninja) echo ninja-build ;;
    eigen) echo libeigen3-dev ;;
    fmt_library) echo libfmt-dev ;;
    zlib) echo zlib1g-dev ;;
    png) echo libpng-dev ;;
    jpeg) echo libjpeg-dev ;;
    json) echo nlohmann-json3-dev ;;
    cli11) echo libcli11-dev ;;
    catch2) echo catch2 ;;
    mingw) echo g++-mingw-w64-x86-64-posix ;;
    mingw_zlib) echo libz-mingw-w64-dev ;;
    wine) echo wine64 ;;
    dpkg_source) echo dpkg-dev ;;
    nasm) echo nasm ;;
  esac
}
describe_missing() {
  local name
  for name in "${missing[@]}"; do echo "  - $(describe "$name")"; done
}

# Stops with a sentence that ends in what is missing.
give_up() {
  fail "$1:
$(describe_missing)
(ccache, oneDNN and MPI are used too when they are there)"
}

# Stops because the command $1 failed, whose output is in the log $2.
give_up_after() {
  local log=$logs/$2.log
  # The first errors are the cause, the others what follows from it.
  grep -E -m 3 '^(E|ERROR|sudo):' "$log" >&2 || tail -n 3 "$log" >&2
  give_up "'$1' failed; all of its output is in $log. Mend that and run this script again, or install"
}

# Whether MPI, without which Pleat is built and only the tests of several processes are left out, is to be installed:
# where that needs no password.
wants_mpi() { [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null && ! command -v mpicxx >/dev/null; }

look
[[ ${#missing[@]} -eq 0 ]] && ! wants_mpi && exit 0
if [[ ${#missing[@]} -gt 0 && -n ${CXX:-} && ${missing[0]} == compiler ]]; then
  fail "CXX=$CXX must be $(describe compiler); unset it to let the scripts choose"
fi

command -v apt-get >/dev/null || give_up 'this is not Debian or Ubuntu, so please install with your package manager'
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || give_up 'installing needs root, and there is no sudo here. Run this script as root once, or install'
  sudo true || give_up 'installing needs root, and sudo refuses. Run this script as root once, or install'
  as_root=(sudo)
fi

# Runs apt-get COMMAND [ARGUMENTS]; its output goes into the log apt-COMMAND.
apt() {
  mkdir -p "$logs"
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=120 "$@" \
    >"$logs/apt-$1.log" 2>&1
}

# Whether the version that apt would install of package $1 is at least $2. (To apt, "g++-14" is also a pattern.)
offers() {
  local candidate
  candidate=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null | awk -v heading="$1:" '
    /^[^ ]/ { mine = $0 == heading }
    mine && $1 == "Candidate:" { sub(/^[0-9]+:/, "", $2); print $2 }')
  [[ -n $candidate && $candidate != '(none)' ]] && dpkg --compare-versions "$candidate" ge "$2"
}

say "package lists"
# One list that cannot be fetched (a third party's, say) need not matter: the others, or older ones, may do.
lists_are_fresh=1
apt update -o APT::Update::Error-Mode=any || lists_are_fresh=0

packages=() cmake_by_pip=0
for name in "${missing[@]}"; do
  case $name in
    compiler)
      choice=''
      for candidate in g++ g++-14 g++-13 g++-12; do
        if offers "$candidate" 12; then choice=$candidate && break; fi
      done
      if [[ -z $choice ]]; then
        [[ $lists_are_fresh == 1 ]] || give_up_after 'apt-get update' apt-update
        give_up 'this release of the distribution has no g++ 12 or newer; please install'
      fi
      packages+=("$choice")
      ;;
    cmake)
      if offers cmake 3.24; then
        packages+=(cmake)
      else
        packages+=(python3-venv)
        cmake_by_pip=1
      fi
      ;;
    *) packages+=("$(package_of "$name")") ;;
  esac
done
# Comforts: they come along, but are no reason to install or to stop.
if ! command -v ccache >/dev/null && offers ccache 0; then packages+=(ccache); fi
if offers libdnnl-dev 2.6; then packages+=(libdnnl-dev); fi
mpi=()
if ! command -v mpicxx >/dev/null && offers libopenmpi-dev 4; then mpi=(libopenmpi-dev openmpi-bin); fi
if [[ ${#missing[@]} -eq 0 ]]; then
  [[ ${#mpi[@]} -eq 0 ]] && exit 0
  say "install ${mpi[*]}"
  apt install --no-install-recommends "${mpi[@]}" || say "MPI could not be installed: $logs/apt-install.log"
  exit 0
fi
packages+=(${mpi[@]+"${mpi[@]}"})

say "install ${packages[*]}"
apt install --no-install-recommends "${packages[@]}" || give_up_after 'apt-get install' apt-install
if [[ $cmake_by_pip == 1 ]]; then
  say "install CMake into $tools"
  # CMake 4 refuses the package files of some older libraries.
  { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet 'cmake>=3.24,<4'; } >"$logs/pip.log" 2>&1 ||
    give_up_after 'pip install cmake' pip
  PATH=$tools/bin:$PATH
fi

look
[[ ${#missing[@]} -eq 0 ]] || give_up 'still missing after the installation'
