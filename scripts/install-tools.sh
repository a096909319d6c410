#!/usr/bin/env bash
# Builds the cargo tools that the checks need into the cache, unless they are there, and prints their folder.
set -euo pipefail

# With the toolchain's least version in mind: cargo-deny 0.20 wants Rust 1.88.
readonly cargo_deny=0.20.2

readonly cache=${QUADRILLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quadrille}

if [[ $("$cache/tools/bin/cargo-deny" --version 2>/dev/null) != "cargo-deny $cargo_deny" ]]; then
    echo "building cargo-deny $cargo_deny, once (about 4 minutes on 2 cores)" >&2
    # It runs for a second: its own link-time optimisation would cost more than it could ever give back.
    CARGO_TARGET_DIR="$cache/tools/target" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        cargo install --quiet --locked --root "$cache/tools" --version "$cargo_deny" cargo-deny >&2
    rm -rf "$cache/tools/target"
fi
echo "$cache/tools/bin"
