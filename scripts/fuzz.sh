#!/usr/bin/env bash
# Fuzzes the parsers of untrusted input: fuzz.sh [SECONDS] [TARGET [libFuzzer's options ...]]. SECONDS apply to each
# target: xds_response, configuration, bootstrap, connection, request, envelope, keyless_wire,
# fleet_documents. libFuzzer with coverage feedback on the stable toolchain; with a nightly one, `cargo fuzz run TARGET`
# adds the address sanitizer. Failing inputs are left in fuzz/artifacts and fail again when given as an option.
# fuzz/seeds has the initial inputs of each target: named examples, and a small corpus, named by libFuzzer, with the
# shortest inputs that reach the coverage of an hour.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

readonly seconds=${1:-60} host=x86_64-unknown-linux-gnu
shift $(($# > 0))
targets=(xds_response configuration bootstrap connection request envelope keyless_wire fleet_documents)
if (($#)); then
    targets=("$1")
    shift
fi

flags=(--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks)
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=("-Cllvm-args=-sanitizer-coverage-$option")
done
# Only for the target, which is therefore named: build scripts and macros have no coverage.
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/fuzz RUSTFLAGS="${flags[*]}" cargo build --release --target "$host"

for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" "artifacts/$target" "seeds/$target"
    echo "== $target"
    "${CARGO_TARGET_DIR:-target}/fuzz/$host/release/$target" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 \
        -artifact_prefix="artifacts/$target/" "$@" "corpus/$target" "seeds/$target"
done
