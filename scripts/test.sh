#!/usr/bin/env bash
# Runs every test, also after one has failed, and adds up the results: the workspace's, and without arguments (they are for
# cargo test) those of the dashboard's figures, of packages/node, of packages/php, and of the kernels on an emulated CPU.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
read -ra flags <<<"${CARGO_FLAGS-}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
started=$SECONDS

main() {
    # The provider's module is a file of its own, which `cargo test` does not leave where servers can load it.
    cargo build "${flags[@]}" --workspace || return
    cargo test "${flags[@]}" --workspace --no-fail-fast "$@" 2>&1 | tee "$log"
    local status=${PIPESTATUS[0]} tiers
    tiers=$(native_tiers)
    # Everything was asked for, so the instructions that this CPU may lack are too.
    if [[ $# -eq 0 ]]; then
        emulate || status=$?
        test_dashboard || status=$?
        test_node_package || status=$?
        test_php || status=$?
        tiers="${tiers:+$tiers, }ifma $emulated"
    fi
    add_up
    [[ -z $tiers ]] || echo "kernels: $tiers"
    [[ $status -eq 0 ]] || echo "make test: FAILED (status $status)" >&2
    return "$status"
}

# What the suite of the kernels said of this CPU: avx2 native, ifma native.
native_tiers() {
    sed -n 's/^tier \(avx2\|ifma\): .* lanes$/\1 native/p; s/^tier \(avx2\|ifma\): SKIPPED.*/\1 NOT NATIVE (this CPU lacks it)/p' "$log" |
        paste --serial --delimiters , | sed 's/,/, /g'
}

# The IFMA tests on a CPU model; sets `emulated` to what came of it.
emulate() {
    echo "--- kernels: AVX-512 IFMA on an emulated CPU"
    crates/kernels/tests/emulated/test.sh 2>&1 | tee --append "$log"
    case ${PIPESTATUS[0]} in
        0) emulated="emulated" ;;
        3) emulated="NOT EMULATED (see above)" ;;
        *) emulated="emulated, FAILED" && return 1 ;;
    esac
}

# What the dashboard computes, on any Node that has a test runner; the page itself is tested in a browser by the workspace.
test_dashboard() {
    echo "--- dashboard"
    command -v node >/dev/null || scripts/install-packages.sh node
    local results status
    results=$(node --test crates/gateway/dashboard/test/*.test.js)
    status=$?
    [[ $status -eq 0 ]] || echo "$results"
    awk '/^# pass/ { passed = $3 } /^# fail/ { failed = $3 } /^# skipped/ { ignored = $3 }
        END { printf "node tests: %d passed, %d failed, %d ignored\n", passed, failed, ignored }' <<<"$results" | tee --append "$log"
    return "$status"
}

# The suite of packages/node, on every Node that can be had.
test_node_package() {
    echo "--- packages/node"
    # One of the peers of these tests.
    QUADRILLE_BIN=${QUADRILLE_BIN:-$(realpath "${CARGO_TARGET_DIR:-target}/debug/quadrille")} scripts/node-package.sh test 2>&1 | tee --append "$log"
    return "${PIPESTATUS[0]}"
}

# Encrypted fields in PHP, with the worked application's servers.
test_php() {
    echo "--- packages/php"
    { scripts/build-php.sh && scripts/test-php.sh; } 2>&1 | tee --append "$log"
    return "${PIPESTATUS[0]}"
}

add_up() {
    awk -v seconds=$((SECONDS - started)) '
        /^test result:/ { passed += $4; failed += $6; ignored += $8 }
        /^node tests:/ { passed += $3; failed += $5; ignored += $7 }
        /^test .* \.\.\. FAILED$/ { sub(/^test /, ""); sub(/ \.\.\. FAILED$/, ""); names = names "\n  failed: " $0 }
        END { printf "%s\n%d passed, %d failed, %d ignored in %d s\n", names, passed, failed, ignored, seconds }
    ' "$log"
}

main "$@"
