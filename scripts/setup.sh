#!/usr/bin/env bash
# Installs what building, running and testing Pleat needs and this machine lacks. Silent when nothing is missing.
#
# Debian and Ubuntu: through apt-get, as root or by sudo. Where the distribution's CMake is older than 3.24 (Ubuntu
# 22.04), a newer one goes into a virtual environment of Python under build/tools, which the scripts prefer.
# Elsewhere: says what to install, and fails.
# PLEAT_SKIP_SETUP=1 skips the check (for libraries in places that only CMake is told of).
set -euo pipefail
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ ${PLEAT_SKIP_SETUP:-} == 1 ]] && exit 0

cmake_is_new_enough() {
  local version major minor
  version=$(cmake --version 2>/dev/null) || return 1
  [[ $version =~ ([0-9]+)\.([0-9]+) ]] || return 1
  major=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]}
  ((major > 3 || (major == 3 && minor >= 24)))
}

# Fills `missing` with the names of the table below.
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
  for library in eigen fmt_library zlib png json cli11 catch2; do
    [[ $'\n'$found$'\n' == *$'\n'$library$'\n'* ]] || missing+=("$library")
  done
}

declare -A description=(
  [compiler]='a C++20 compiler: g++ 12 or clang++ 14, or newer'
  [cmake]='CMake 3.24 or newer'
  [ninja]='Ninja'
  [eigen]='Eigen 3.4'
  [fmt_library]='fmt'
  [zlib]='zlib, with its headers'
  [png]='libpng 1.6, with its headers'
  [json]='nlohmann-json'
  [cli11]='CLI11'
  [catch2]='Catch2 (2.13 or 3)'
)
declare -A package=(
  [ninja]=ninja-build
  [eigen]=libeigen3-dev
  [fmt_library]=libfmt-dev
  [zlib]=zlib1g-dev
  [png]=libpng-dev
  [json]=nlohmann-json3-dev
  [cli11]=libcli11-dev
  [catch2]=catch2
)

list_missing() {
  local name
  for name in "${missing[@]}"; do printf '  - %s\n' "${description[$name]}"; done
}

look
if [[ -n ${CXX:-} && " ${missing[*]} " == *' compiler '* ]]; then
  fail "CXX=$CXX must be ${description[compiler]}; unset it to let the scripts choose"
fi
have_apt=0
command -v apt-get >/dev/null && have_apt=1
# ccache is a comfort: worth an installation by apt, never a reason to stop.
want_ccache=0
[[ $have_apt == 1 ]] && ! command -v ccache >/dev/null && want_ccache=1
[[ ${#missing[@]} -eq 0 && $want_ccache == 0 ]] && exit 0

if [[ $have_apt == 0 ]]; then
  fail "this is not Debian or Ubuntu, so please install what is missing with your package manager:
$(list_missing)
(ccache is used too when it is there)"
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    [[ ${#missing[@]} -eq 0 ]] && exit 0
    fail "installing needs root, and there is no sudo here. Run this script as root once, or install:
$(list_missing)"
  fi
  as_root=(sudo)
fi
apt() { quietly apt ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=120 "$@"; }

# Whether the version that apt would install of package $1 is at least $2. (To apt, "g++-14" is also a pattern.)
offers() {
  local candidate
  candidate=$(LC_ALL=C apt-cache policy "$1" 2>/dev/null | awk -v heading="$1:" '
    /^[^ ]/ { mine = $0 == heading }
    mine && $1 == "Candidate:" { sub(/^[0-9]+:/, "", $2); print $2 }')
  [[ -n $candidate && $candidate != '(none)' ]] && dpkg --compare-versions "$candidate" ge "$2"
}

say "package lists"
apt update

packages=() cmake_by_pip=0
[[ $want_ccache == 1 ]] && packages+=(ccache)
for name in ${missing[@]+"${missing[@]}"}; do
  case $name in
    compiler)
      choice=''
      for candidate in g++ g++-14 g++-13 g++-12; do
        if offers "$candidate" 12; then choice=$candidate && break; fi
      done
      [[ -n $choice ]] || fail "this release of the distribution has no g++ 12 or newer; please install ${description[compiler]}"
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
    *) packages+=("${package[$name]}") ;;
  esac
done

say "install ${packages[*]}"
apt install --no-install-recommends "${packages[@]}"
if [[ $cmake_by_pip == 1 ]]; then
  say "install CMake into $tools"
  quietly cmake python3 -m venv "$tools"
  # CMake 4 refuses the package files of some older libraries.
  quietly cmake "$tools/bin/pip" install --quiet 'cmake>=3.24,<4'
  PATH=$tools/bin:$PATH
fi

look
[[ ${#missing[@]} -eq 0 ]] || fail "still missing after the installation:
$(list_missing)"
