#!/usr/bin/env bash
# Fetches dependencies of the workspace's tests, which cannot fetch themselves in their isolated network (isolate.sh): the stock
# Envoy, an HTTP/3 client, a certificate authority, crates, Go modules. Missing ones are reported by the tests that skip them.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

main() {
    scripts/fetch-envoy.sh >/dev/null
    scripts/install-tools.sh aioquic >/dev/null
    # The structure tests read its dependencies.
    cargo fetch --quiet --locked --manifest-path packages/php/extension/Cargo.toml
    command -v go >/dev/null || return 0
    scripts/install-tools.sh pebble >/dev/null
    local folder
    for folder in crates/xds/tests/control-plane crates/cli/tests/gateway/grpc/interop; do
        (cd "$folder" && go mod download)
    done
}

main
