#!/usr/bin/env bash
# Runs every test of the workspace, also after one has failed, and adds up the results.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
read -ra flags <<<"${CARGO_FLAGS-}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
started=$SECONDS

cargo test "${flags[@]}" --workspace --no-fail-fast "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}

awk -v seconds=$((SECONDS - started)) '
    /^test result:/ { passed += $4; failed += $6; ignored += $8 }
    /^test .* \.\.\. FAILED$/ { names = names "\n  failed: " $2 }
    END { printf "%s\n%d passed, %d failed, %d ignored in %d s\n", names, passed, failed, ignored, seconds }
' "$log"
[[ $status -eq 0 ]] || echo "make test: FAILED (cargo test ended with status $status)" >&2
exit "$status"
