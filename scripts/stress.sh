#!/usr/bin/env bash
# Runs tests of the workspace many times to expose flakiness: with two busy loops per core, and on one core.
#
#   stress.sh [--times N] [--busy-only|--one-core-only] [ARGUMENT of cargo-nextest ...]
#
# Without arguments for cargo-nextest it runs the end-to-end tests. Tests run eight at once per core, so that they compete with each
# other too. Prints a line for each run, and at the end each test that
# failed at least once, with its log. Fails if there is one.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
read -ra flags <<<"${CARGO_FLAGS-}"
# shellcheck source=scripts/test-run.sh
source scripts/test-run.sh

times=5
ways=(busy one-core)
selection=()
loops=()
results=$(mktemp --directory)

main() {
    read_arguments "$@"
    local tools way turn
    tools=$(scripts/install-tools.sh cargo-nextest) || return
    PATH=$tools:$PATH
    scripts/prepare-tests.sh
    cargo build "${flags[@]}" --workspace && cargo nextest run "${flags[@]}" --workspace --no-run || return
    begin_run
    trap 'end_loops; end_run; rm -rf "$results"' EXIT
    for ((turn = 1; turn <= times; turn++)); do
        for way in "${ways[@]}"; do
            run "$way" "$turn"
        done
    done
    python3 scripts/summarise-tests.py --stress "$results"
}

read_arguments() {
    while [[ $# -gt 0 ]]; do
        case $1 in
            --times) times=${2:?stress.sh: --times needs a number} && shift ;;
            --busy-only) ways=(busy) ;;
            --one-core-only) ways=(one-core) ;;
            --help)
                sed --quiet '2,/^set/s/^# \?//p' "$0"
                exit
                ;;
            *) selection+=("$1") ;;
        esac
        shift
    done
    [[ $times =~ ^[1-9][0-9]*$ ]] || { echo "stress.sh: --times needs a number above 0" >&2 && exit 2; }
    [[ ${#selection[@]} -gt 0 ]] || selection=(-E 'package(quadrille-cli) & kind(test)')
}

# run WAY TURN
run() {
    local began=$SECONDS log=$results/$1-$2.log pin=()
    [[ $1 != busy ]] || begin_loops
    # The first core that this process may use.
    [[ $1 != one-core ]] || pin=(taskset --cpu-list "$(taskset --cpu-list --pid $$ | grep --only-matching ': [0-9]*' | tr -d ': ')")
    "${pin[@]}" env NEXTEST_TEST_THREADS=$((8 * $(nproc))) cargo nextest run "${flags[@]}" --workspace --status-level fail \
        --failure-output never "${selection[@]}" >"$log" 2>&1
    local status=$?
    end_loops
    cp target/nextest/default/junit.xml "$results/$1-$2.xml" 2>/dev/null || cat "$log"
    echo "run $2 of $times, $1: $(grep --extended-regexp --only-matching '[0-9]+ tests? run:.*' "$log" || echo "status $status"), $((SECONDS - began)) s"
    left_by_run || true
}

begin_loops() {
    local loop
    for ((loop = 0; loop < 2 * $(nproc); loop++)); do
        while :; do :; done &
        loops+=($!)
    done
}

end_loops() {
    [[ ${#loops[@]} -eq 0 ]] || kill "${loops[@]}" 2>/dev/null
    wait "${loops[@]}" 2>/dev/null
    loops=()
}

main "$@"
