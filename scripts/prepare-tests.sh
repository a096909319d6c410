#!/usr/bin/env bash
# Fetches what the tests of the workspace use and cannot fetch themselves, since each has a network of its own (isolate.sh): the
# stock Envoy, a client of HTTP/3, a certificate authority, modules of Go. What cannot be had is named by the tests that skip it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

main() {
    scripts/fetch-envoy.sh >/dev/null
    scripts/install-tools.sh aioquic >/dev/null
    command -v go >/dev/null || return 0
    scripts/install-tools.sh pebble >/dev/null
    local folder
    for folder in crates/xds/tests/control-plane crates/cli/tests/gateway/grpc/interop; do
        (cd "$folder" && go mod download)
    done
}

main
