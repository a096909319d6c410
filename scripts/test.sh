#!/usr/bin/env bash
# Runs every test, also after one has failed, and adds up the results: the workspace's with cargo-nextest, and without arguments
# (they are for cargo-nextest) the examples in its documentation, the kernels on an emulated CPU, a part of BoGo and of the
# hostile clients, the dashboard's statistics, packages/node and packages/php.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
read -ra flags <<<"${CARGO_FLAGS-}"

# Of each suite a JUnit report, or a log with its counts, for summarise-tests.py.
results=$(mktemp --directory)
trap 'rm -rf "$results"' EXIT
status=0

main() {
    local tools
    tools=$(scripts/install-tools.sh cargo-nextest) || return
    PATH=$tools:$PATH
    # The provider's module is a file of its own, which the build of the tests does not leave where servers can load it.
    cargo build "${flags[@]}" --workspace || return
    scripts/build-nginx-module.sh || return
    # Without Go or its proxy the tests under Istio say that they are skipped.
    [[ $# -gt 0 ]] || scripts/istio/build.sh >/dev/null || echo "istiod could not be built" >&2
    suite workspace test_workspace "$@"
    # Everything was asked for, so the instructions that this CPU may lack are too.
    if [[ $# -eq 0 ]]; then
        suite documentation cargo test "${flags[@]}" --workspace --doc --no-fail-fast
        suite "kernels on an emulated CPU" emulate
        suite BoGo scripts/bogo.sh --short
        suite hostile scripts/hostile.sh --short
        suite dashboard test_dashboard
        suite packages/node test_node_package
        suite packages/php test_php
    fi
    echo "--- results after $SECONDS s"
    python3 scripts/summarise-tests.py "$results"
    [[ $status -eq 0 ]] || echo "make test: FAILED" >&2
    return "$status"
}

# suite NAME COMMAND...
suite() {
    local name=$1 began=$SECONDS
    shift
    echo "--- $name"
    "$@" 2>&1 | tee "$results/${name//[^a-z]/-}.log"
    [[ ${PIPESTATUS[0]} -eq 0 ]] || status=1
    echo "--- $name took $((SECONDS - began)) s"
}

test_workspace() {
    local report=target/nextest/default/junit.xml status
    rm -f "$report"
    cargo nextest run "${flags[@]}" --workspace "$@"
    status=$?
    cp "$report" "$results/workspace.xml"
    return "$status"
}

# The IFMA tests on a CPU model.
emulate() {
    local status
    crates/kernels/tests/emulated/test.sh
    status=$?
    case $status in
        0) echo "tier ifma: emulated" ;;
        3) echo "tier ifma: NOT EMULATED (see above)" && status=0 ;;
        *) echo "tier ifma: emulated, FAILED" ;;
    esac
    return "$status"
}

# What the dashboard computes, on any Node that has a test runner; the page itself is tested in a browser by the workspace.
test_dashboard() {
    command -v node >/dev/null || scripts/install-packages.sh node
    local report status
    report=$(node --test crates/gateway/dashboard/test/*.test.js)
    status=$?
    [[ $status -eq 0 ]] || echo "$report"
    awk '/^# pass/ { passed = $3 } /^# fail/ { failed = $3 } /^# skipped/ { skipped = $3 }
        END { printf "node tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped }' <<<"$report"
    return "$status"
}

# The suite of packages/node, on every Node that can be had.
test_node_package() {
    # One of the peers of these tests.
    QUADRILLE_BIN=${QUADRILLE_BIN:-$(realpath "${CARGO_TARGET_DIR:-target}/debug/quadrille")} scripts/node-package.sh test
}

# Encrypted fields in PHP, with the worked application's servers.
test_php() {
    scripts/build-php.sh && scripts/test-php.sh
}

main "$@"
