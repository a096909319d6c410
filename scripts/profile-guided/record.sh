#!/usr/bin/env bash
# Records the profile for profile-guided optimization, scripts/profile-guided/quadrille.profdata: builds an instrumented gateway
# and loads it with full and resumed handshakes, requests and downloads over HTTP/1.1, HTTP/2 and HTTP/3, by the clients of
# `make compare`. About fifteen minutes. To be run before a release, and after an update of dependencies or of the compiler.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly profile=scripts/profile-guided/quadrille.profdata
readonly instrumented=$CARGO_TARGET_DIR/instrumented

main() {
    local merge harness counts
    merge=$(profdata)
    # The harness is not instrumented, and the gateway is built with the same packages, thus with the same features.
    scripts/profile-guided/build.sh --locked --package quadrille-cli --package quadrille-bench-handshakes \
        --package quadrille-openssl-provider
    harness=$CARGO_TARGET_DIR/release/quadrille-bench-handshakes
    counts=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder is known now
    trap "rm -rf '$counts'" EXIT
    RUSTFLAGS="-Cprofile-generate=$counts" cargo build --release --locked --target-dir "$instrumented" --package quadrille-cli \
        --package quadrille-bench-handshakes --package quadrille-openssl-provider
    # Those of build scripts and macros.
    rm -rf "${counts:?}"/*
    load --quick --keys p256,rsa2048 --versions 1.3,1.2
    load --quick --requests
    load --quick --http3
    "$merge" merge --sparse --output "$profile" "$counts"
    ls -l "$profile"
}

load() {
    "$harness" --servers quadrille --quadrille "$instrumented/release/quadrille" --date "$(date +%Y-%m-%d)" "$@" >/dev/null
}

# Prints the path of llvm-profdata, from the toolchain's component llvm-tools or from Debian.
profdata() {
    local tool
    for tool in "$(rustc --print target-libdir)/../bin/llvm-profdata" /usr/lib/llvm-*/bin/llvm-profdata; do
        if [[ -x $tool ]]; then
            echo "$tool"
            return
        fi
    done
    echo "record.sh: llvm-profdata is missing: \`rustup component add llvm-tools\`, or Debian's package llvm-19" >&2
    exit 1
}

main
