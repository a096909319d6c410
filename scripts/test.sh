#!/usr/bin/env bash
# Runs every test of the workspace and of PHP, also after one has failed, and adds up the results.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
read -ra flags <<<"${CARGO_FLAGS-}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
started=$SECONDS

cargo test "${flags[@]}" --workspace --no-fail-fast "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}

# Not if only some of cargo's tests were asked for.
if [[ $# -eq 0 ]]; then
    { scripts/build-php.sh && scripts/test-php.sh; } 2>&1 | tee --append "$log"
    php_status=${PIPESTATUS[0]}
    [[ $php_status -eq 0 ]] || status=$php_status
fi

awk -v seconds=$((SECONDS - started)) '
    /^test result:/ { passed += $4; failed += $6; ignored += $8 }
    /^test .* \.\.\. FAILED$/ { sub(/^test /, ""); sub(/ \.\.\. FAILED$/, ""); names = names "\n  failed: " $0 }
    END { printf "%s\n%d passed, %d failed, %d ignored in %d s\n", names, passed, failed, ignored, seconds }
' "$log"
[[ $status -eq 0 ]] || echo "make test: FAILED (status $status)" >&2
exit "$status"
