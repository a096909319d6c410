#!/usr/bin/env bash
# Records the profile for profile-guided optimization, scripts/profile-guided/quadrille.profdata: builds an instrumented gateway
# and loads it with full and resumed handshakes, requests and downloads over HTTP/1.1, HTTP/2 and HTTP/3, by the clients of
# `make compare`; then records the order of functions. Half an hour. To be run before a release, and after an update of
# dependencies or of the compiler.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly profile=scripts/profile-guided/quadrille.profdata
readonly instrumented=$CARGO_TARGET_DIR/instrumented

main() {
    local merge harness counts
    counts=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder is known now
    trap "rm -rf '$counts'" EXIT
    merge=$(profdata)
    # The harness is not instrumented, and the gateway is built with the same packages, thus with the same features.
    scripts/profile-guided/build.sh --locked --package quadrille-cli --package quadrille-bench-handshakes \
        --package quadrille-openssl-provider
    harness=$CARGO_TARGET_DIR/release/quadrille-bench-handshakes
    RUSTFLAGS="-Cprofile-generate=$counts" cargo build --release --locked --target-dir "$instrumented" --package quadrille-cli \
        --package quadrille-bench-handshakes --package quadrille-openssl-provider
    # Those of the probe, of build scripts and of macros.
    rm -rf "${counts:?}"/*
    load --quick --keys p256,rsa2048 --versions 1.3,1.2
    load --quick --requests
    load --quick --http3
    "$merge" merge --sparse --output "$profile" "$counts"
    ls -l "$profile"
    # Names of functions in the program that this profile guides.
    scripts/profile-guided/build.sh --locked --package quadrille-cli --package quadrille-bench-handshakes \
        --package quadrille-openssl-provider
    scripts/profile-guided/order.sh
}

load() {
    "$harness" --servers quadrille --quadrille "$instrumented/release/quadrille" --date "$(date +%Y-%m-%d)" "$@" >/dev/null
}

# Prints the path of an llvm-profdata that reads this compiler's profiles, from the toolchain's component llvm-tools or the
# newest of Debian's.
profdata() {
    local tool probe=$counts/probe
    mkdir "$probe"
    echo 'fn main() {}' | rustc -Cprofile-generate="$probe" -o "$probe/program" -
    "$probe/program"
    for tool in "$(rustc --print target-libdir)/../bin/llvm-profdata" \
        $(printf '%s\n' /usr/lib/llvm-*/bin/llvm-profdata | sort --version-sort --reverse); do
        if [[ -x $tool ]] && "$tool" merge --output "$probe/merged" "$probe"/*.profraw 2>"$probe/errors"; then
            echo "$tool"
            return
        fi
    done
    {
        echo "record.sh: no llvm-profdata here reads the profiles of $(rustc --version):"
        echo "  run \`rustup component add llvm-tools\`, or install Debian's package llvm-19"
        cat "$probe/errors" 2>/dev/null || true
    } >&2
    exit 1
}

main
