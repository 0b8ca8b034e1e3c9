#!/usr/bin/env bash
# Sets up, builds and trains a convolutional network:
#   scripts/demo.sh [options of train_cifar]
# Without --data it trains on a synthetic set that it makes itself. When it has
# built, build/release/examples/train_cifar --help lists the options.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=common.sh
source "$here/common.sh"

"$here/setup.sh"
build_preset release train_cifar
say "train"
exec "$root/build/release/examples/train_cifar" "$@"
