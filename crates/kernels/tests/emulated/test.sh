#!/bin/sh
# Runs the IFMA tests of quadrille-kernels on an emulated CPU. See README.md.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export RUSTFLAGS="-C target-feature=+crt-static"
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$here/run"
export RUST_TEST_THREADS=1
export TEST_SINGLE_THREAD=1 TEST_OPERATIONS=40 TEST_FLIPS=20 TEST_TIERS=ifma
target="--target x86_64-unknown-linux-gnu -p quadrille-kernels"
cargo test $target --lib -- --nocapture --skip valgrind --skip avx2 --skip fma47
cargo test $target --test suite -- fill bad random thread
