#!/usr/bin/env bash
# Runs every test that a change must pass, even after a failure, and adds up the results: the workspace's with cargo-nextest,
# and without arguments (they are for cargo-nextest) the examples in its documentation, the kernels on an emulated CPU, a part of
# BoGo and of the hostile clients, the dashboard's statistics, packages/node and packages/php.
#
# test.sh --all [ARGUMENT...]: includes slow tests, listed in .config/nextest.toml and in `suites` below.
#
# QUADRILLE_FLAKY=FILE: failed tests run once more, by themselves; those that pass then are listed in FILE, and do not fail the
# run.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
read -ra flags <<<"${CARGO_FLAGS-}"

# A JUnit report of each suite, or a log with its counts, for summarise-tests.py.
results=$(mktemp --directory)
status=0 profile=default nodes=one short=(--short) more=()
# shellcheck source=scripts/test-run.sh
source scripts/test-run.sh

main() {
    if [[ ${1-} == --all ]]; then
        profile=all nodes=all short=() more=(--run-ignored all)
        # The long forms of tests with a short form.
        export QUADRILLE_MESH_SERVICES=1000 QUADRILLE_MESH_CHANGES=20 QUADRILLE_MESH_ROUNDS=6 QUADRILLE_MESH_PAUSE=10
        export QUADRILLE_ACME_SOAK=600 QUADRILLE_HTTP3_MIB=1024 QUADRILLE_TRANSFER_MIB=1024 QUADRILLE_CHAINS=1000
        export TEST_OPERATIONS=10000 TEST_FLIPS=100000
        shift
    fi
    local tools
    tools=$(scripts/install-tools.sh cargo-nextest) || return
    PATH=$tools:$PATH
    scripts/prepare-tests.sh
    # The provider's module is a separate file, which the build of the tests does not place where servers can load it.
    cargo build "${flags[@]}" --workspace || return
    scripts/build-nginx-module.sh || return
    # Without Go or its proxy the tests under Istio report that they are skipped.
    [[ $# -gt 0 ]] || scripts/istio/build.sh >/dev/null || echo "istiod could not be built" >&2
    begin_run
    trap 'end_run; rm -rf "$results"' EXIT
    suites "$@"
    left_by_run || status=1
    echo "--- results after $SECONDS s"
    python3 scripts/summarise-tests.py "$results" "${QUADRILLE_FLAKY:-/dev/null}"
    [[ $status -eq 0 ]] || echo "make test: FAILED" >&2
    return "$status"
}

suites() {
    suite workspace test_workspace "$@"
    [[ $# -eq 0 ]] || return 0
    suite documentation cargo test "${flags[@]}" --workspace --doc --no-fail-fast
    suite "kernels on an emulated CPU" emulate
    suite BoGo bogo
    suite hostile hostile
    suite dashboard test_dashboard
    suite packages/node test_node_package
    suite packages/php test_php
}

# suite NAME COMMAND...
suite() {
    local name=$1 began=$SECONDS report failed=''
    report=$results/${1//[^A-Za-z]/-}
    shift
    echo "--- $name"
    REPORT=$report "$@" 2>&1 | tee "$report.log"
    [[ ${PIPESTATUS[0]} -eq 0 ]] || failed=yes
    if [[ -n $failed && -n ${QUADRILLE_FLAKY-} ]]; then
        echo "--- $name: failed tests, once more"
        failed=''
        FIRST=$report.xml REPORT=$report.again "$@" 2>&1 | tee "$report.again.log"
        [[ ${PIPESTATUS[0]} -eq 0 ]] || failed=yes
    fi
    [[ -z $failed ]] || status=1
    echo "--- $name took $((SECONDS - began)) s"
}

# With FIRST, the report of a run, only the tests that failed in it, one after the other.
test_workspace() {
    # shellcheck disable=SC2153
    local junit=target/nextest/$profile/junit.xml report=$REPORT status
    if [[ -n ${FIRST-} ]]; then
        local failed
        failed=$(python3 scripts/summarise-tests.py --failed "$FIRST")
        # No test failed in the report: the build did.
        [[ -n $failed ]] || return 1
        set -- --test-threads 1 -E "$failed"
    fi
    rm -f "$junit"
    cargo nextest run "${flags[@]}" --profile "$profile" --workspace "${more[@]}" "$@"
    status=$?
    cp "$junit" "$report.xml"
    return "$status"
}

# The IFMA tests on a CPU model.
emulate() {
    local status
    crates/kernels/tests/emulated/test.sh "${short[@]}"
    status=$?
    case $status in
        0) echo "tier ifma: emulated" ;;
        3) echo "tier ifma: NOT EMULATED (see above)" && status=0 ;;
        *) echo "tier ifma: emulated, FAILED" ;;
    esac
    return "$status"
}

bogo() {
    scripts/bogo.sh "${short[@]}"
}

hostile() {
    scripts/hostile.sh "${short[@]}"
}

# The dashboard's computations, on any Node with a test runner; the page itself is tested in a browser by the workspace.
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

# The suite of packages/node, on this machine's Node, or on every available Node.
test_node_package() {
    # One of the peers of these tests.
    QUADRILLE_BIN=${QUADRILLE_BIN:-$(realpath "${CARGO_TARGET_DIR:-target}/debug/quadrille")} QUADRILLE_NODES=$nodes \
        scripts/node-package.sh test
}

# Encrypted fields in PHP, with the worked application's servers.
test_php() {
    scripts/build-php.sh && scripts/test-php.sh
}

main "$@"
