#!/usr/bin/env bash
# Runs `cargo build --release` with profile-guided optimization and an order of functions: build.sh CARGO-ARGUMENT...
#
# The profile has the counts of calls and branches under load, and was recorded by record.sh. Functions' names in it depend on
# the versions of the compiler and of dependencies. A function that is not in it is compiled as without a profile.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
readonly here profile=$here/quadrille.profdata
readonly target=${CARGO_TARGET_DIR:-$here/../../target}

# Cargo compiles again if flags change, but not if a file that they name does; and clones may share a target directory.
copy=$target/profiles/$(sha256sum "$profile" | cut --characters=-16).profdata
mkdir -p "${copy%/*}"
cmp --silent "$profile" "$copy" || { cp "$profile" "$copy.$$" && mv "$copy.$$" "$copy"; }
copy=$(realpath "$copy")
QUADRILLE_FUNCTION_ORDER=$("$here/function-order.sh")
export QUADRILLE_FUNCTION_ORDER
# No warning about each function that is newer than the profile.
RUSTFLAGS="${RUSTFLAGS:+$RUSTFLAGS }-Cprofile-use=$copy -Cllvm-args=-no-pgo-warn-mismatch" exec cargo build --release "$@"
