#!/usr/bin/env bash
# Tests ML-DSA certificates with real clients: Go 1.27, rustls, AWS-LC's TLS library, and BoringSSL's `bssl client` receive
# them, each parameter set over TLS 1.3, also below an ML-DSA CA, and Go and rustls resume their sessions; OpenSSL 3.0, an
# older client, receives the P-256 certificate of the same listeners. `quadrille check` says the same beforehand.
set -euo pipefail
cd "$(dirname "$0")/.."

quadrille=$(realpath "${QUADRILLE_BIN:-bin/quadrille}")
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
work=$(mktemp -d "${TMPDIR:-/tmp}/quadrille-post-quantum.XXXXXX")
readonly quadrille target work
# The certificate of each listener, beside P-256, and its kind of key.
readonly certificates=(mldsa44 mldsa65 mldsa87 below44) kinds=(mldsa44 mldsa65 mldsa87 mldsa44)
pids=()

main() {
    [[ -x $quadrille ]] || fail "there is no $quadrille: run \`make build\` first"
    trap clean EXIT
    build_go
    build_rustls
    build_bssl
    "$work/go-client" make "$work"
    choose_ports
    configuration
    check "quadrille check names Go and rustls as clients of ML-DSA, and OpenSSL 3.0 as one of P-256" shows_certificates_of_clients
    "$quadrille" serve --config "$work/gateway.yaml" >"$work/gateway.log" 2>&1 &
    pids+=($!)
    answers
    check "Go $(go_version) gets each parameter set, over HTTP/2, and resumes" go_clients
    check "$(rustls --version) gets each parameter set, and resumes" rustls_clients
    check "AWS-LC's TLS library gets each parameter set" aws_lc_clients
    check "BoringSSL's client gets each parameter set" bssl_clients
    check "the gateway counts the handshakes by kind of key" counts
    check "$(openssl version | cut -d ' ' -f 1,2), an older client, gets P-256 from each listener" older_clients
    echo "test-post-quantum-clients: $passed passed"
}

# Go fetches the toolchain of go.mod, a Go module, if it is older.
build_go() {
    command -v go >/dev/null || fail "go is missing: install Go 1.21 or later, which fetches the toolchain that it needs"
    (cd scripts/post-quantum-clients && GOTOOLCHAIN=auto CGO_ENABLED=0 go build -trimpath -o "$work/go-client" .) ||
        fail "Go 1.27 or later is not available"
}

go_version() {
    go version "$work/go-client" | sed 's/.*: go//'
}

build_rustls() {
    cargo build --release --locked --manifest-path bench/rustls/Cargo.toml --features aws-lc-client \
        --target-dir "$target/rustls"
}

rustls() {
    "$target/rustls/release/quadrille-bench-rustls" "$@"
}

# BoringSSL as `make build` has built it, by boring-sys.
build_bssl() {
    local library
    bssl=$target/bssl
    for library in "$target"/{release,debug}/build/boring-sys-*/out/build/libssl.a; do
        [[ -e $library ]] || continue
        [[ $bssl -nt $library ]] && return
        local out=${library%/build/libssl.a}
        c++ -std=c++17 -O1 -I "$out/boringssl/include" "$out"/boringssl/tool/*.cc "$library" "$out/build/libcrypto.a" \
            -lpthread -o "$bssl" && return
    done
    fail "bssl could not be built: there is no BoringSSL below $target; run \`make build\` first"
}

# Prints ports that are free now.
choose_ports() {
    read -r -a ports < <(python3 - <<'PYTHON'
import socket
sockets = [socket.socket() for _ in range(5)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))
PYTHON
    )
    admin=${ports[4]}
    unset 'ports[4]'
    readonly ports admin
}

configuration() {
    local index
    {
        echo "admin: 127.0.0.1:$admin"
        echo "listeners:"
        for index in "${!certificates[@]}"; do
            cat <<YAML
  - address: 127.0.0.1:${ports[index]}
    certificates: [{ chain: p256.pem, key: p256.key }, { chain: ${certificates[index]}.pem, key: ${certificates[index]}.key }]
    respond: it works
YAML
        done
    } >"$work/gateway.yaml"
}

shows_certificates_of_clients() {
    local index
    "$quadrille" check "$work/gateway.yaml" >"$work/said"
    cat "$work/said"
    for index in "${!kinds[@]}"; do
        grep --quiet --fixed-strings "certificates of 127.0.0.1:${ports[index]}, localhost: ${kinds[index]} for Chrome 150, Go 1.27, rustls 0.23.44; ecdsa-p256 for OpenSSL 3.0, Safari 17" \
            "$work/said" || return 1
    done
}

answers() {
    local attempt
    for attempt in {1..200}; do
        ! curl --silent --fail --output /dev/null "http://127.0.0.1:$admin/ready" || return 0
        sleep 0.1
    done
    cat "$work/gateway.log"
    fail "the gateway is not ready after $attempt attempts"
}

go_clients() {
    "$work/go-client" fetch "$work/ca.pem" "${ports[@]}" >"$work/seen"
    expect "full resumed X25519MLKEM768 HTTP/2.0 it works"
}

rustls_clients() {
    rustls fetch "$work/ca.pem" "${ports[@]}" >"$work/seen"
    expect "full resumed X25519MLKEM768 it works"
}

aws_lc_clients() {
    rustls fetch-by-aws-lc "$work/ca.pem" "${ports[@]}" >"$work/seen"
    expect "X25519MLKEM768 it works"
}

# expect WORDS: compares each line of the output with the port, the listener's kind of key, and these words.
expect() {
    local index
    cat "$work/seen"
    for index in "${!kinds[@]}"; do
        grep --quiet --line-regexp --fixed-strings "${ports[index]} ${kinds[index]} $1" "$work/seen" || return 1
    done
}

bssl_clients() {
    local index
    for index in "${!kinds[@]}"; do
        # The client ends when the gateway closes the connection.
        { printf 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' && sleep 3; } |
            timeout 60 "$bssl" client -connect "127.0.0.1:${ports[index]}" -server-name localhost -root-certs "$work/ca.pem" \
                -sigalgs mldsa44:mldsa65:mldsa87:ecdsa_secp256r1_sha256 >"$work/seen" 2>&1 || true
        cat "$work/seen"
        grep --quiet --ignore-case "signature algorithm: *${kinds[index]}" "$work/seen" && grep --quiet "it works" "$work/seen" ||
            return 1
    done
}

# Each client makes one full handshake with each listener.
counts() {
    curl --silent "http://127.0.0.1:$admin/metrics" | grep '^quadrille_key_operations_total' >"$work/seen"
    cat "$work/seen"
    [[ $(count mldsa44) == 8 && $(count mldsa65) == 4 && $(count mldsa87) == 4 ]]
}

count() {
    awk -v kind="key_type=\"$1\"" 'index($0, kind) { sum += $NF } END { print sum + 0 }' "$work/seen"
}

older_clients() {
    local port version
    for port in "${ports[@]}"; do
        for version in -tls1_3 -tls1_2; do
            openssl s_client -connect "127.0.0.1:$port" -servername localhost -CAfile "$work/ca.pem" -verify_return_error \
                "$version" </dev/null >"$work/seen" 2>&1 || return 1
            cat "$work/seen"
            grep --quiet "Peer signature type: ECDSA" "$work/seen" || return 1
        done
    done
}

passed=0
# check WHAT COMMAND...: shows its output if it fails.
check() {
    local what=$1
    shift
    if "$@" >"$work/output" 2>&1; then
        echo "ok    $what"
        passed=$((passed + 1))
        [[ ${VERBOSE-} != 1 ]] || cat "$work/output"
    else
        cat "$work/output"
        fail "$what"
    fi
}

clean() {
    local pid
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "$work"
}

fail() {
    echo "test-post-quantum-clients: FAILED: $*" >&2
    exit 1
}

main "$@"
