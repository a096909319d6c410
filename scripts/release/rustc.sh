#!/usr/bin/env bash
# Cargo's RUSTC_WRAPPER for a release: runs the compiler, which replaces the paths in QUADRILLE_PREFIXES (lines of FROM=TO) in its
# output, and optimizes by the profile as scripts/profile-guided/build.sh does. RUSTFLAGS would have the same effect, but cargo
# derives file names from them, and they differ between clones.
set -euo pipefail

mapfile -t prefixes <<<"$QUADRILLE_PREFIXES"
profile=$(dirname "$0")/../profile-guided/quadrille.profdata
exec "$@" "${prefixes[@]/#/--remap-path-prefix=}" "-Cprofile-use=$(realpath "$profile")" -Cllvm-args=-no-pgo-warn-mismatch
