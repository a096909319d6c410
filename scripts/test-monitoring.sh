#!/usr/bin/env bash
# Tests the Grafana dashboard and the alerts: promtool checks the alerts and runs their unit tests; then a real Prometheus
# scrapes a gateway with an RSA and an ECDSA certificate, a key server, Redis and endpoints of which one is down, under light
# load, and runs every query of the dashboard.
set -euo pipefail
cd "$(dirname "$0")/.."

quadrille=$(realpath "${QUADRILLE_BIN:-bin/quadrille}")
work=$(mktemp -d "${TMPDIR:-/tmp}/quadrille-monitoring.XXXXXX")
readonly quadrille work
pids=()

main() {
    [[ -x $quadrille ]] || fail "there is no $quadrille: run \`make build\` first"
    trap clean EXIT
    check "promtool accepts the alerts" promtool check rules deploy/prometheus/quadrille.rules.yml
    check "each alert fires on its condition, and on no other" promtool test rules deploy/prometheus/tests.yml
    choose_ports
    configuration
    start redis redis-server --port "$redis" --bind 127.0.0.1 --save ""
    mkdir "$work/www"
    printf '<p>%s</p>' {1..999} >"$work/www/long.html"
    start origin python3 -m http.server --bind 127.0.0.1 --directory "$work/www" "$origin"
    start key-server "$quadrille" keyserver --keys "$work/keys" --listen "127.0.0.1:$keys" --admin "127.0.0.1:$keys_admin" \
        --client-ca "$work/ca.pem" --cert "$work/keyserver.pem" --key "$work/keyserver.key" --policy "$work/policy.yaml"
    answers "http://127.0.0.1:$keys_admin/ready"
    start gateway "$quadrille" serve --config "$work/gateway.yaml"
    answers "http://127.0.0.1:$admin/ready"
    start prometheus prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/data" \
        --web.listen-address="127.0.0.1:$prometheus"
    answers "http://127.0.0.1:$prometheus/-/ready"
    start load load
    check "every query of the dashboard and every alert returns data" eventually_right
    [[ ${VERBOSE-} != 1 ]] || cat "$work/output"
    echo "test-monitoring: $passed passed"
}

# Prints ports that are free now.
choose_ports() {
    read -r https site denied admin keys keys_admin redis origin prometheus < <(python3 - <<'PYTHON'
import socket
sockets = [socket.socket() for _ in range(9)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))
PYTHON
    )
    readonly https site denied admin keys keys_admin redis origin prometheus
}

configuration() {
    local ec=(-newkey ec -pkeyopt ec_paramgen_curve:P-256)
    mkdir "$work/keys"
    certificate rsa localhost -newkey rsa:2048
    certificate ecdsa localhost "${ec[@]}"
    certificate site localhost "${ec[@]}"
    mv "$work/site.key" "$work/keys/site.key"
    certificate ca ca "${ec[@]}"
    certificate keyserver localhost -CA "$work/ca.pem" -CAkey "$work/ca.key" "${ec[@]}" -addext basicConstraints=CA:FALSE
    certificate gateway gateway.internal -CA "$work/ca.pem" -CAkey "$work/ca.key" "${ec[@]}" \
        -addext basicConstraints=CA:FALSE
    "$quadrille" tickets generate "$work/fleet.secret" >/dev/null
    # One operation per second: others are rejected, and counted.
    echo "clients: [{ client: gateway.internal, rate: 1 }]" >"$work/policy.yaml"
    cat >"$work/gateway.yaml" <<YAML
listeners:
  - address: 127.0.0.1:$https
    certificates: [{ chain: rsa.pem, key: rsa.key }, { chain: ecdsa.pem, key: ecdsa.key }]
    upstream: origin
    http3: on
    compression: on
    routes:
      - { path: /limited, upstream: origin, rate_limits: [{ rate: 1/m }] }
      - { path: /refusing, upstream: refusing }
      - { path: /full, upstream: full }
  - address: 127.0.0.1:$denied
    certificates: [{ chain: ecdsa.pem, key: ecdsa.key }]
    clients: { deny: [127.0.0.0/8] }
    respond: denied
  - address: 127.0.0.1:$site
    certificates:
      - chain: site.pem
        key:
          keyless: { servers: ["localhost:$keys"], ca: ca.pem, certificate: gateway.pem, key: gateway.key }
    respond: from a key server
upstreams:
  origin: { servers: ["127.0.0.1:$origin", "127.0.0.1:1"], health: { interval: 1s } }
  refusing: { servers: ["localhost:1"], dns_refresh: 1s, outlier_detection: { errors: 1, ejection: 1s } }
  full: { servers: ["127.0.0.1:$origin"], limits: { requests: 1 } }
tracing: { endpoint: "http://127.0.0.1:1", percent: 100 }
resumption: { tickets: fleet, cache: "redis://127.0.0.1:$redis", cache_size: 0, fleet_secret: fleet.secret }
sampling: { one_in: 1 }
admin: 127.0.0.1:$admin
YAML
    cat >"$work/prometheus.yml" <<YAML
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ["$PWD/deploy/prometheus/quadrille.rules.yml"]
scrape_configs:
  - job_name: quadrille
    static_configs: [{ targets: ["127.0.0.1:$admin", "127.0.0.1:$keys_admin"] }]
YAML
}

# certificate NAME HOST OPTION...
certificate() {
    local name=$1 host=$2
    shift 2
    openssl req -x509 "$@" -nodes -days 2 -subj "/CN=$host" -addext "subjectAltName=DNS:$host" \
        -keyout "$work/$name.key" -out "$work/$name.pem" 2>/dev/null
}

# Runs a few clients of each kind in a loop. Some are expected to fail.
load() {
    set +e
    local bench=("$quadrille" bench --insecure --count 8 --connections 8)
    local curl=(--silent --max-time 5 --insecure)
    while true; do
        "${bench[@]}" --resumed 0.5 --key-type rsa "https://localhost:$https/"
        "${bench[@]}" --resumed 0.5 --key-type ecdsa "https://localhost:$https/"
        "${bench[@]}" --resumed 0.5 --tls 1.2 "https://localhost:$https/"
        # Sessions by their ids, one of them under another name; a client without TLS; a missing path.
        local client=(openssl s_client -tls1_2 -no_ticket)
        "${client[@]}" -connect "127.0.0.1:$https" -reconnect </dev/null
        "${client[@]}" -connect "127.0.0.1:$https" -sess_out "$work/session" </dev/null
        "${client[@]}" -connect "127.0.0.1:$https" -servername localhost -sess_in "$work/session" </dev/null
        curl "${curl[@]}" "http://localhost:$https/"
        curl "${curl[@]}" "https://localhost:$https/missing"
        "${bench[@]}" --requests 1 "https://localhost:$site/"
        # Requests above a rate limit, to an unreachable endpoint, above a concurrency limit, from a denied network, and with
        # a compressed response; a datagram that is not QUIC.
        curl "${curl[@]}" "https://localhost:$https/limited" "https://localhost:$https/limited"
        curl "${curl[@]}" "https://localhost:$https/refusing"
        curl "${curl[@]}" --parallel "https://localhost:$https/full?[1-8]"
        curl "${curl[@]}" "https://localhost:$denied/"
        curl "${curl[@]}" --compressed "https://localhost:$https/long.html"
        echo "not a packet" >"/dev/udp/127.0.0.1/$https"
    done
}

# start NAME COMMAND...
start() {
    local log=$work/$1.log
    shift
    "$@" >"$log" 2>&1 &
    pids+=($!)
}

answers() {
    local attempt
    for attempt in {1..200}; do
        ! curl --silent --fail --output /dev/null "$1" || return 0
        sleep 0.1
    done
    tail -n 5 "$work"/*.log
    fail "$1 does not respond after $attempt attempts"
}

# Retries for a minute: the first scrapes have no rates yet.
eventually_right() {
    local attempt
    for attempt in {1..30}; do
        ! python3 scripts/monitoring/check.py "http://127.0.0.1:$prometheus" >"$work/found" || break
        sleep 2
    done
    cat "$work/found"
    ! grep --quiet ^FAILED "$work/found" || { echo "after $attempt attempts"; return 1; }
}

passed=0
# check WHAT COMMAND...: shows its output if it fails.
check() {
    local what=$1
    shift
    if "$@" >"$work/output" 2>&1; then
        echo "ok    $what"
        passed=$((passed + 1))
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
    echo "test-monitoring: FAILED: $*" >&2
    exit 1
}

main "$@"
