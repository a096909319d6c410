#!/usr/bin/env bash
# Feeds the xDS client what no control plane sends: fuzz.sh [SECONDS] [libFuzzer's options ...]. libFuzzer with coverage feedback on the
# stable toolchain; with a nightly one, `cargo fuzz run xds_response` adds the address sanitizer. What it finds is left in
# fuzz/artifacts and fails again when the file is given as an option.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

readonly seconds=${1:-60} host=x86_64-unknown-linux-gnu
shift $(($# > 0))

flags=(--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks)
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=("-Cllvm-args=-sanitizer-coverage-$option")
done
# Only for the target, which is named for that reason: build scripts and macros have no coverage to give.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/fuzz RUSTFLAGS="${flags[*]}" cargo build --release --target "$host"

mkdir -p corpus/xds_response artifacts/xds_response
exec "${CARGO_TARGET_DIR:-target}/fuzz/$host/release/xds_response" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 \
    -artifact_prefix=artifacts/xds_response/ "$@" corpus/xds_response
