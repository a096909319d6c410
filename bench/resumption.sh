#!/usr/bin/env bash
# Measures the cost of a resumed handshake: a gateway and nginx, tickets and session ids, Redis and memory,
# and the size of a stored session.
#
#   bench/resumption.sh            7 rounds of 4000 connections
#   ROUNDS=3 COUNT=1000 bench/resumption.sh
#
# Measures bin/quadrille as built by `make build`; QUADRILLE=PATH selects another. In each round every server is measured
# once, in sequence, and values are compared within a round. CPU time is that of the server's threads (schedstat), for a
# connection with one request; the load comes from `quadrille bench` on another core.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly quadrille=${QUADRILLE:-bin/quadrille} rounds=${ROUNDS:-7} count=${COUNT:-4000}
readonly server_core=${SERVER_CORE:-0} client_core=${CLIENT_CORE:-1}
readonly kept=${KEPT:-50000}
directory=$(mktemp -d)
declare -A pids=() ports=()

main() {
    scripts/install-packages.sh test
    trap finish EXIT
    certificate
    versions
    start_all
    measure >"$directory/rounds"
    table
    memory
}

finish() {
    [[ ${#pids[@]} -eq 0 ]] || kill "${pids[@]}" 2>/dev/null || true
    wait
    rm -rf "$directory"
}

certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -keyout "$directory/key.pem" -out "$directory/chain.pem" 2>/dev/null
}

versions() {
    echo "$("$quadrille" --version), $(nginx -v 2>&1 | sed 's/.*: //') with $(openssl version | cut -d' ' -f1,2)," \
        "one worker each; P-256 certificate, X25519;" \
        "$rounds rounds of $count connections with one request each; $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)"
}

# --- servers

start_all() {
    gateway tickets --session-tickets local --session-cache off
    gateway memory --session-tickets off --session-cache memory
    redis
    gateway redis-asked --session-tickets off --session-cache "redis://127.0.0.1:${ports[redis]}" --session-cache-size 0 \
        --session-lookup-timeout 500ms --fleet-secret "$directory/fleet.secret"
    gateway cached --session-tickets off --session-cache-size $((2 * kept))
    gateway uncached --session-tickets off --session-cache off
    rival
}

# gateway NAME FLAGS...
gateway() {
    local name=$1 at
    at=$(port)
    shift
    run "$name" "$at" taskset -c "$server_core" "$quadrille" serve --listen "127.0.0.1:$at" --respond ok --threads 1 \
        --cert "$directory/chain.pem" --key "$directory/key.pem" --admin off --groups x25519 "$@"
}

# Runs on the core of the load, as if on another machine: its CPU time is not counted.
redis() {
    "$quadrille" tickets generate "$directory/fleet.secret" >/dev/null
    local at
    at=$(port)
    run redis "$at" taskset -c "$client_core" redis-server --port "$at" --bind 127.0.0.1 --save "" --dir "$directory"
}

# nginx with its own tickets, one process, so that all its CPU time is counted.
rival() {
    local at
    at=$(port)
    cat >"$directory/nginx.conf" <<EOF
worker_processes 1; master_process off; daemon off; pid $directory/nginx.pid;
events { worker_connections 4096; accept_mutex off; }
http {
    access_log off;
    server {
        listen 127.0.0.1:$at ssl;
        ssl_certificate $directory/chain.pem; ssl_certificate_key $directory/key.pem;
        ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve X25519; ssl_session_cache off; ssl_session_tickets on;
        location / { return 200 "ok"; }
    }
}
EOF
    run nginx "$at" taskset -c "$server_core" nginx -e stderr -c "$directory/nginx.conf"
}

# run NAME PORT COMMAND...
run() {
    local name=$1
    ports[$name]=$2
    shift 2
    "$@" >"$directory/$name.log" 2>&1 &
    pids[$name]=$!
    for _ in {1..100}; do
        # shellcheck disable=SC2188
        { : <"/dev/tcp/127.0.0.1/${ports[$name]}"; } 2>/dev/null && return
        sleep 0.1
    done
    cat "$directory/$name.log" >&2
    exit 1
}

port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# --- measuring

measure() {
    local round
    for round in 0 $(seq "$rounds"); do
        for name in nginx tickets; do
            handshakes "$round" "$name-full" "$name" --tls 1.3 --resumed 0
            handshakes "$round" "$name-resumed" "$name" --tls 1.3 --resumed 1
        done
        handshakes "$round" memory memory --tls 1.2 --resumed 1
        handshakes "$round" redis redis-asked --tls 1.2 --resumed 1
    done
}

# handshakes ROUND LABEL SERVER FLAGS...: prints ROUND LABEL and the nanoseconds per connection. Round 0 warms up.
handshakes() {
    local round=$1 label=$2 name=$3 before after
    shift 3
    before=$(cpu "${pids[$name]}")
    load "$name" "$count" "$@"
    # Work after the last response counts too.
    sleep 0.2
    after=$(cpu "${pids[$name]}")
    [[ $round -eq 0 ]] || echo "$round $label $(((after - before) / count))"
}

# load SERVER COUNT FLAGS...
load() {
    local name=$1 number=$2 json failed
    shift 2
    json=$(taskset -c "$client_core" "$quadrille" bench "https://localhost:${ports[$name]}/" \
        --connect "127.0.0.1:${ports[$name]}" --ca "$directory/chain.pem" --groups X25519 --connections 16 \
        --count "$number" --json "$@")
    failed=$(number failed <<<"$json")
    # The first connection of each client cannot be resumed.
    if [[ $failed -ne 0 ]] || { [[ " $* " == *" --resumed 1 "* ]] && (($(number resumed <<<"$json") + 32 < number)); }; then
        echo "$name $*: $json" >&2
        exit 1
    fi
}

number() {
    python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# Prints the nanoseconds that the threads of a process have run.
cpu() {
    cat "/proc/$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'
}

resident() {
    awk '/^VmRSS/ { print $2 * 1024 }' "/proc/$1/status"
}

# --- results

table() {
    python3 - "$directory/rounds" <<'EOF'
import statistics, sys

rounds = {}
for line in open(sys.argv[1]):
    number, label, ns = line.split()
    rounds.setdefault(label, {})[number] = int(ns) / 1000

def cost(label):
    values = rounds[label].values()
    return f"{statistics.median(values):.0f} ({min(values):.0f}..{max(values):.0f})"

def ratio(one, other):
    values = [rounds[one][number] / rounds[other][number] for number in rounds[one]]
    return f"{statistics.median(values):.2f} ({min(values):.2f}..{max(values):.2f})"

print("\n| connection | CPU us: median (least..greatest) |\n|---|---|")
for label, what in [
    ("tickets-full", "Quadrille, TLS 1.3, full"),
    ("tickets-resumed", "Quadrille, TLS 1.3, resumed by ticket"),
    ("nginx-full", "nginx, TLS 1.3, full"),
    ("nginx-resumed", "nginx, TLS 1.3, resumed by ticket"),
    ("memory", "Quadrille, TLS 1.2, resumed by id, stored in the process"),
    ("redis", "Quadrille, TLS 1.2, resumed by id, fetched from Redis each time"),
]:
    print(f"| {what} | {cost(label)} |")
print("\n| ratio of the same round | median (least..greatest) |\n|---|---|")
for one, other, what in [
    ("tickets-resumed", "nginx-resumed", "resumed by ticket: Quadrille to nginx"),
    ("tickets-resumed", "tickets-full", "Quadrille: resumed to full"),
    ("nginx-resumed", "nginx-full", "nginx: resumed to full"),
    ("redis", "memory", "Quadrille, by id: Redis to memory"),
]:
    print(f"| {what} | {ratio(one, other)} |")
EOF
}

# Growth of a gateway with a cache compared with one without; both have warmed up.
memory() {
    local -A grown
    local name before
    for name in uncached cached; do
        load "$name" 4000 --tls 1.2
        before=$(resident "${pids[$name]}")
        load "$name" "$kept" --tls 1.2
        grown[$name]=$(($(resident "${pids[$name]}") - before))
    done
    echo
    echo "$kept sessions kept in memory: $(((grown[cached] - grown[uncached]) / kept)) bytes each" \
        "(resident memory: with the cache +$((grown[cached] / 1024)) KiB, without +$((grown[uncached] / 1024)) KiB)"
}

main "$@"
