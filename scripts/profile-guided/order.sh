#!/usr/bin/env bash
# Records the order of functions in the program, scripts/profile-guided/functions.txt: counts the instructions of each function of
# a release build, in valgrind, under full and resumed handshakes, requests and downloads. Called by record.sh. A few minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly list=scripts/profile-guided/functions.txt
readonly program=$CARGO_TARGET_DIR/release/quadrille
# Functions for instructions that valgrind lacks, which it does not see: they are selected at run time, by the CPU's features.
readonly unseen='quadrille_kernels.*x86_64|^quadrille_(x25519|p256|rsa)|^_*(aws_lc_[0-9_]+)?_*(aes|gcm|ghash|sha(256|512)|ecp_nistz256|curve25519|bignum|rsaz|bn)_'

main() {
    counts=$(mktemp -d)
    trap 'stop; rm -rf "$counts"' EXIT
    configure
    "$program" serve "$counts/origin.yaml" >"$counts/origin.log" 2>&1 &
    origin=$!
    await "$counts/origin.log"
    for key in p256 rsa2048; do
        serve "$key"
        bench --groups X25519MLKEM768 --resumed 0 -n 100 -r 15
        bench --groups X25519 --resumed 1 -n 50 -r 15
        bench --groups X25519MLKEM768 --resumed 0.5 -n 100 -c 16
        h2load --h1 -n 200 -c 4 "https://$address/small" >"$counts/load.log"
        h2load -n 200 -c 4 -m 4 "https://$address/small" >"$counts/load.log"
        h2load -n 4 -c 1 "https://$address/large" >"$counts/load.log"
        stop_gateway
    done
    order >"$list"
    wc --lines "$list"
}

# Writes the configurations of the origin and of the gateway. The kernel chooses the ports.
configure() {
    local key
    for key in p256 rsa2048; do
        case $key in
            p256) openssl ecparam -name prime256v1 -genkey -noout -out "$counts/$key.key" ;;
            *) openssl genrsa -out "$counts/$key.key" 2048 2>/dev/null ;;
        esac
        openssl req -x509 -key "$counts/$key.key" -subj /CN=localhost -days 30 -out "$counts/$key.crt"
    done
    cat >"$counts/origin.yaml" <<-END
		listeners:
		- address: 127.0.0.1:0
		  tls: off
		  routes:
		  - {path: /small, respond: {body: "$(printf '%1400s' '')"}}
		  - {path: /large, respond: {body: "$(printf '%60000s' '')"}}
		admin: off
		threads: 1
	END
}

# Starts the gateway with a key in valgrind, and sets its address.
serve() {
    valgrind --tool=callgrind --demangle=no --instr-atstart=no --callgrind-out-file="$counts/$1.out" "$program" serve \
        --listen 127.0.0.1:0 --cert "$counts/$1.crt" --key "$counts/$1.key" --threads 1 --admin off --mode http \
        --upstream "$(address_in "$counts/origin.log")" >"$counts/$1.log" 2>&1 &
    gateway=$!
    await "$counts/$1.log"
    address=$(address_in "$counts/$1.log")
    # The start does not count.
    callgrind_control --instr=on "$gateway" >"$counts/control.log"
}

bench() {
    "$program" bench "https://localhost/small" --connect "$address" --insecure --tls 1.3 "$@" >"$counts/load.log"
}

# Waits until a server has logged its address.
await() {
    local try
    for ((try = 0; try < 600; try++)); do
        ! address_in "$1" >/dev/null || return 0
        sleep 0.2
    done
    cat "$1" >&2
    echo "order.sh: the server did not start" >&2
    exit 1
}

address_in() {
    sed -n 's/.* address=\(127\.0\.0\.1:[0-9]*\).*/\1/p' "$1" | grep --max-count=1 .
}

stop_gateway() {
    kill "$gateway"
    wait "$gateway" || true
    gateway=
}

stop() {
    local process
    for process in "${origin:-}" "${gateway:-}"; do
        [[ -z $process ]] || kill "$process" 2>/dev/null || true
    done
}

# Prints the functions that were called, those with most instructions first, and then the unseen ones.
order() {
    nm "$program" | awk '$2 ~ /[tTwW]/ { print $3 }' >"$counts/symbols"
    {
        callgrind_annotate --threshold=100 "$counts"/p256.out "$counts"/rsa2048.out |
            sed -n "s/^ *[0-9,]* ([^)]*)  *[^ ]*:\([A-Za-z0-9_.\$]*\)\('[0-9]*\)\{0,1\} \[.*\/quadrille\]\$/\1/p"
        grep -E "$unseen" "$counts/symbols"
    } | awk 'NR == FNR { known[$0] = 1; next } known[$0] && !seen[$0]++' "$counts/symbols" -
}

main
