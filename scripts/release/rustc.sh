#!/usr/bin/env bash
# Cargo's RUSTC_WRAPPER for a release: runs the compiler, which replaces the paths in QUADRILLE_PREFIXES (lines of FROM=TO) in its
# output. RUSTFLAGS would have the same effect, but cargo derives file names from them, and they differ between clones.
set -euo pipefail

mapfile -t prefixes <<<"$QUADRILLE_PREFIXES"
exec "$@" "${prefixes[@]/#/--remap-path-prefix=}"
