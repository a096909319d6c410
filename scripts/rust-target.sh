#!/usr/bin/env bash
# Installs Rust's standard library for another target if missing: rust-target.sh TARGET. Fails if it is not available.
set -euo pipefail
library=$(rustc --print sysroot)/lib/rustlib/$1/lib
[[ -d $library ]] || { command -v rustup >/dev/null && timeout 120 rustup target add "$1" >&2; }
[[ -d $library ]]
