#!/usr/bin/env bash
# Runs the IFMA tests of quadrille-kernels on an emulated CPU: see README.md. Exit status: 0 if they pass, 3 without
# an emulator, anything else if they fail. --short runs one test of each algorithm, with fewer operations.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
readonly here absent=3
readonly limit=900 # seconds; both together take about 150 of CPU time
read -ra flags <<<"${CARGO_FLAGS-}"
readonly kernels_test=(cargo test --quiet "${flags[@]}" --target x86_64-unknown-linux-gnu --package quadrille-kernels)

BOCHSCPU=$("$here/fetch.sh") || exit $absent
export BOCHSCPU
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$here/run.sh"
export RUSTFLAGS="-C target-feature=+crt-static" # the emulator loads static programs only
export RUST_TEST_THREADS=1 TEST_SINGLE_THREAD=1  # on one CPU
export TEST_TIERS=ifma TEST_OPERATIONS=20 TEST_FLIPS=30 TEST_ITERATIONS=30

main() {
    use_a_built_boringssl
    "${kernels_test[@]}" --no-run
    if [[ ${1-} == --short ]]; then
        short
    else
        whole
    fi
}

# For RSA the bad inputs, and for each other algorithm the test that fills the lanes to every number.
short() {
    export TEST_OPERATIONS=8 TEST_FLIPS=2 TEST_ITERATIONS=2
    local failed=0
    timeout $limit "${kernels_test[@]}" --test suite -- bad_inputs &
    timeout $limit "${kernels_test[@]}" --test ml_dsa --test ml_kem --test x25519 --test p256 \
        --test p256_exchange -- fills || failed=1
    wait $! || failed=1
    return $failed
}

whole() {
    # Two programs, for two cores.
    timeout $limit "${kernels_test[@]}" --lib -- --skip valgrind --skip avx2 --skip fma47 &
    local failed=0
    timeout $limit "${kernels_test[@]}" --test suite -- bad_inputs random threads unsound || failed=1
    timeout $limit "${kernels_test[@]}" --test x25519 || failed=1
    timeout $limit "${kernels_test[@]}" --test p256 || failed=1
    timeout $limit "${kernels_test[@]}" --test p256_exchange -- vectors extreme invalid || failed=1
    timeout $limit "${kernels_test[@]}" --test ml_kem || failed=1
    timeout $limit "${kernels_test[@]}" --test ml_dsa -- fills mixed refused random || failed=1
    wait $! || failed=1
    return $failed
}

# A static program is built separately, but may link an existing build of BoringSSL: the newest one, since older ones
# may have another version.
use_a_built_boringssl() {
    local library
    library=$(find "${CARGO_TARGET_DIR:-target}/debug/build" -path '*/boring-sys-*/out/build/libssl.a' \
        -printf '%T@ %p\n' 2>/dev/null | sort --numeric-sort | tail -1 | cut --delimiter ' ' --fields 2-) || true
    [[ -n $library ]] || return 0
    BORING_BSSL_PATH=$(dirname "$library")
    export BORING_BSSL_PATH BORING_BSSL_INCLUDE_PATH=$BORING_BSSL_PATH/../boringssl/include
}

main "$@"
