#!/usr/bin/env bash
# Runs every static check, even after a failure, and prints the numbers of passed, failed and skipped checks at the end.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
read -ra flags <<<"${CARGO_FLAGS-}"
passed=0 failed=0 skipped=0
# A separate workspace, because it needs PHP's headers.
readonly extension=packages/php/extension/Cargo.toml

main() {
    local tools
    check "format" cargo fmt --all --check
    check "layers, file sizes, links" cargo test --quiet "${flags[@]}" --package quadrille-structure
    check "format of the PHP extension" cargo fmt --manifest-path "$extension" --check
    check "clippy of the PHP extension" cargo clippy "${flags[@]}" --manifest-path "$extension" --all-targets \
        --target-dir "${CARGO_TARGET_DIR:-target}/php" -- --deny warnings
    check "PHP's syntax" check_php
    check "one build of the C libraries" python3 scripts/check-one-build.py
    check "clippy" cargo clippy "${flags[@]}" --workspace --all-targets -- --deny warnings
    # They include source files of other crates, with replacements for the parts of BoringSSL and of the engine in use.
    check "fuzz targets" env RUSTFLAGS="--deny warnings" cargo check --quiet --manifest-path fuzz/Cargo.toml \
        --target-dir "${CARGO_TARGET_DIR:-target}/fuzz"
    check_aarch64
    check "warnings in nginx's module" scripts/build-nginx-module.sh
    check "types and format of packages/node" scripts/node-package.sh check
    check "shell scripts" check_scripts
    check "software bills of materials" check_bills
    check "the book of the pages" scripts/build-book.sh "${CARGO_TARGET_DIR:-target}/book"
    check_unit deploy/systemd/quadrille.service
    check_unit deploy/systemd/quadrille-keyserver.service
    if tools=$(scripts/install-tools.sh cargo-deny); then
        check_dependencies "$tools"
    else
        fail_step "licences, bans, sources: cargo-deny could not be built"
    fi
    echo "lint: $passed passed, $failed failed, $skipped skipped"
    [[ $failed -eq 0 ]]
}

# check NAME COMMAND...
check() {
    local name=$1 began=$SECONDS
    shift
    echo "== $name"
    if "$@"; then
        passed=$((passed + 1))
    else
        fail_step "$name"
    fi
    echo "== $name took $((SECONDS - began)) s"
}

fail_step() {
    echo "FAILED: $1" >&2
    failed=$((failed + 1))
}

skip() {
    echo "== $1: skipped, $2"
    skipped=$((skipped + 1))
}

check_scripts() {
    git ls-files -z --cached --others --exclude-standard '*.sh' .ci/run | xargs --null shellcheck --external-sources
}

check_bills() {
    local tools
    tools=$(scripts/install-tools.sh sbom-validators) && "$tools/python3" scripts/release/test_sbom.py
}

check_php() {
    local file status=0
    while IFS= read -r -d '' file; do
        php8.2 --syntax-check "$file" >/dev/null || status=1
    done < <(git ls-files -z --cached --others --exclude-standard '*.php')
    return "$status"
}

# Crates without C: BoringSSL for another CPU takes minutes and a cross compiler, and `make test-aarch64` has both.
readonly portable=(rsa-numbers kernels-cuda config envoy xds field migrate)

check_aarch64() {
    local target=aarch64-unknown-linux-gnu
    if scripts/rust-target.sh "$target"; then
        check "crates without C on aarch64" cargo check --quiet "${flags[@]}" --target "$target" \
            --target-dir "${CARGO_TARGET_DIR:-target}/aarch64" "${portable[@]/#/--package=quadrille-}"
    else
        skip "crates without C on aarch64" "Rust's standard library for $target is not installed"
    fi
}

check_unit() {
    if command -v systemd-analyze >/dev/null; then
        check "systemd unit" unit_is_clean "$1"
    else
        skip "systemd unit" "systemd-analyze is not installed"
    fi
}

# systemd-analyze requires the commands of a unit to exist, so it checks a copy that starts `true`; it succeeds despite
# warnings, so any output about the unit counts as a failure.
unit_is_clean() {
    local copy words
    copy=$(mktemp --directory)/$(basename "$1")
    sed 's|/usr/bin/quadrille|/bin/true|' "$1" >"$copy"
    words=$(systemd-analyze verify --man=no --recursive-errors=no "$copy" 2>&1 | grep --fixed-strings "$(basename "$1")")
    rm -r "$(dirname "$copy")"
    [[ -z $words ]] || { echo "$words" && false; }
}

check_dependencies() {
    local manifest
    for manifest in Cargo.toml "$extension"; do
        check "licences, bans, sources of $manifest" "$1/cargo-deny" --locked --manifest-path "$manifest" --config "$PWD/deny.toml" \
            check --hide-inclusion-graph licenses bans sources
    done
    local database=https://github.com/RustSec/advisory-db
    if GIT_TERMINAL_PROMPT=0 timeout 20 git ls-remote --quiet "$database" HEAD >/dev/null 2>&1; then
        check "advisories" "$1/cargo-deny" --locked check advisories
    else
        skip "advisories" "$database cannot be reached"
    fi
}

main
