#!/usr/bin/env bash
# Sees to it that Rust's standard library for another target is there: rust-target.sh TARGET. Fails where it is not, and
# cannot be had.
set -euo pipefail
library=$(rustc --print sysroot)/lib/rustlib/$1/lib
[[ -d $library ]] || { command -v rustup >/dev/null && timeout 120 rustup target add "$1" >&2; }
[[ -d $library ]]
