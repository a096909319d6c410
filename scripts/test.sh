#!/usr/bin/env bash
# Runs every test, of the workspace and then of packages/node, also after one has failed, and adds up the results.
# Arguments are for cargo test, and leave packages/node out.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
read -ra flags <<<"${CARGO_FLAGS-}"

quadrille() {
    local target=${CARGO_TARGET_DIR:-target}
    [[ -x $target/debug/quadrille ]] || cargo build --quiet "${flags[@]}" --workspace --bin quadrille >&2
    realpath "$target/debug/quadrille"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
started=$SECONDS

cargo test "${flags[@]}" --workspace --no-fail-fast "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}

node_status=0
if [[ $# -eq 0 ]]; then
    # One of the peers of the package's tests; cargo has just built it for the tests of the command line.
    QUADRILLE_BIN=${QUADRILLE_BIN:-$(quadrille)} scripts/node-package.sh test 2>&1 | tee -a "$log"
    node_status=${PIPESTATUS[0]}
fi

awk -v seconds=$((SECONDS - started)) '
    /^test result:/ { passed += $4; failed += $6; ignored += $8 }
    /^node tests:/ { passed += $3; failed += $5; ignored += $7 }
    /^test .* \.\.\. FAILED$/ { names = names "\n  failed: " $2 }
    END { printf "%s\n%d passed, %d failed, %d ignored in %d s\n", names, passed, failed, ignored, seconds }
' "$log"
[[ $status -eq 0 ]] || echo "make test: FAILED (cargo test ended with status $status)" >&2
[[ $node_status -eq 0 ]] || echo "make test: FAILED (the tests of packages/node ended with status $node_status)" >&2
exit "$((status ? status : node_status))"
