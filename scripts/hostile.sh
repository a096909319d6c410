#!/usr/bin/env bash
# Attacks a gateway with common tools: hostile.sh [--short]. testssl.sh, sslyze, slowhttptest, h2spec, and the payload tables of the
# tests (smuggling, paths, hosts, bad frames), against a gateway in every mode and a key server. Prints one table; fails
# if there is a finding. --short takes a minute, uses installed tools, and lists missing ones; it attacks the build of
# `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra flags <<<"${CARGO_FLAGS-}"

short='' binary=bin/quadrille
[[ ${1-} == --short ]] && short=yes binary=${CARGO_TARGET_DIR:-target}/debug/quadrille
cache=${QUADRILLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quadrille}/tools
h2spec=$cache/bin/h2spec
work=$(mktemp --directory)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$work"' EXIT
readonly short binary cache work h2spec
# Ports that are rarely in use.
readonly http=28443 tcp=28444 client=28445 plain=28080 keys=28446

main() {
    [[ -n $short ]] || install_tools
    sslyze=$(installed_sslyze)
    make_certificates
    start_servers
    scan_tls
    attack_slowly
    check_http2
    [[ -n $short ]] || send_payloads
    still_serves
    report
}

install_tools() {
    scripts/install-tools.sh sslyze >/dev/null
    scripts/install-tools.sh h2spec >/dev/null || echo "h2spec is not available: is Go installed?"
}

installed_sslyze() {
    find "$cache" -maxdepth 3 -path '*/sslyze-*/bin/sslyze' 2>/dev/null | sort --version-sort | tail -n 1
}

make_certificates() {
    local name=/CN=localhost names=subjectAltName=DNS:localhost,IP:127.0.0.1
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=Hostile CA" \
        -keyout "$work/ca.key" -out "$work/ca.pem" 2>/dev/null
    local kind
    for kind in "ecdsa ec ec_paramgen_curve:P-256" "rsa rsa rsa_keygen_bits:2048"; do
        read -r kind algorithm option <<<"$kind"
        openssl req -x509 -CA "$work/ca.pem" -CAkey "$work/ca.key" -newkey "$algorithm" -pkeyopt "$option" -nodes -days 30 \
            -subj "$name" -addext "$names" -addext basicConstraints=CA:FALSE -addext extendedKeyUsage=serverAuth,clientAuth \
            -keyout "$work/$kind.key" -out "$work/$kind.pem" 2>/dev/null
    done
    mkdir -m 700 "$work/keys"
    cp "$work/rsa.key" "$work/keys/site.pem"
}

start_servers() {
    sed -e "s|FOLDER|$work|g" -e "s/HTTP_PORT/$http/; s/TCP_PORT/$tcp/; s/CLIENT_PORT/$client/; s/PLAIN_PORT/$plain/" \
        scripts/hostile/site.yaml >"$work/site.yaml"
    "$binary" serve --config "$work/site.yaml" >"$work/gateway.log" 2>&1 &
    pids+=($!)
    "$binary" keyserver --keys "$work/keys" --listen "127.0.0.1:$keys" --client-ca "$work/ca.pem" --cert "$work/ecdsa.pem" \
        --key "$work/ecdsa.key" --admin off >"$work/keyserver.log" 2>&1 &
    pids+=($!)
    local port
    for port in $http $tcp $client $plain $keys; do
        timeout 60 bash -c "until (: </dev/tcp/127.0.0.1/$port) 2>/dev/null; do sleep 0.1; done" ||
            fail "nothing listens on $port: $(tail -n 3 "$work"/*.log)"
    done
}

scan_tls() {
    local mode
    for mode in "http $http" "tcp $tcp" "client-certificates $client" "keyserver $keys"; do
        read -r mode port <<<"$mode"
        # One mode is enough for a minute: the TLS is the same in all.
        [[ -z $short || $mode == http ]] || continue
        with sslyze "$sslyze" "$mode" sslyze_findings "$port"
        [[ -n $short ]] || with testssl.sh testssl "$mode" testssl_findings "$port"
    done
}

sslyze_findings() {
    "$sslyze" --quiet --json_out="$work/sslyze.json" --sslv2 --sslv3 --tlsv1 --tlsv1_1 --tlsv1_2 --heartbleed \
        --openssl_ccs --compression --reneg --robot --fallback --sni=localhost "127.0.0.1:$1" >"$work/tool.log" 2>&1 || true
    python3 scripts/hostile/findings.py sslyze "$work/sslyze.json"
}

testssl_findings() {
    rm -f "$work/testssl.json"
    timeout 240 testssl -p -s -f -P -U --quiet --color 0 --warnings off --sneaky --ip 127.0.0.1 --add-ca "$work/ca.pem" \
        --jsonfile "$work/testssl.json" "localhost:$1" >"$work/tool.log" 2>&1 </dev/null || true
    python3 scripts/hostile/findings.py testssl "$work/testssl.json"
}

# Each attack holds 500 connections; meanwhile the tool itself checks that the service responds.
attack_slowly() {
    local seconds=30 attack mode
    [[ -z $short ]] || seconds=8
    for mode in "http https://localhost:$http/local" "tcp https://localhost:$tcp/" "plain http://localhost:$plain/"; do
        read -r mode url <<<"$mode"
        for attack in header:-H body:-B read:-X; do
            [[ -z $short || $mode$attack == httpheader:-H ]] || continue
            with "slowhttptest ${attack%:*}" slowhttptest "$mode" slow_findings "$url" "${attack#*:}" "$seconds"
        done
    done
}

slow_findings() {
    slowhttptest "$2" -c 500 -r 250 -i 2 -l "$3" -p 3 -x 24 -w 10 -y 20 -z 32 -k 3 -u "$1" >"$work/tool.log" 2>&1 || true
    sed 's/\x1b\[[0-9;]*m//g' "$work/tool.log" >"$work/plain.log"
    grep -q 'service available' "$work/plain.log" || echo "it ran no tests"
    ! grep -Eq 'service available: +NO' "$work/plain.log" || echo "the service did not respond meanwhile"
}

check_http2() {
    with h2spec "$h2spec" http h2spec_findings "$http" -t
    [[ -n $short ]] || with h2spec "$h2spec" client-certificates h2spec_refused "$client"
}

# A finding must occur twice: some cases expect RST_STREAM for a stream whose response may have been sent completely, in
# which case no RST_STREAM follows (RFC 9113, section 5.1).
h2spec_findings() {
    h2spec_failures "$@" | sort >"$work/found"
    [[ ! -s $work/found ]] || h2spec_failures "$@" | sort | comm -12 "$work/found" -
}

h2spec_failures() {
    "$h2spec" "$2" -k -h localhost -p "$1" -P /local -o 4 --strict >"$work/tool.log" 2>&1 || true
    grep -Eq '^[0-9]{3} tests, [0-9]{3} passed' "$work/tool.log" || echo "it ran too few tests: $(tail -n 1 "$work/tool.log")"
    sed -n '/^Failures:/,$p' "$work/tool.log" | grep -E '^ *× ' || true
}

# Clients without a certificate are rejected.
h2spec_refused() {
    if "$h2spec" -t -k -h localhost -p "$1" -o 1 generic/1 >"$work/tool.log" 2>&1; then
        echo "HTTP/2 was accepted without a certificate"
    fi
}

# The payload tables of the tests, which start a gateway for each.
send_payloads() {
    local tools suite
    tools=$(scripts/install-tools.sh cargo-nextest)
    for suite in authority paths requests bad_clients messages resets trusted_proxies; do
        PATH=$tools:$PATH row payloads "$suite" payload_findings "$suite"
    done
}

payload_findings() {
    cargo nextest run "${flags[@]}" --workspace --no-fail-fast -E "binary(gateway) & test(/^$1::/)" >"$work/tool.log" 2>&1 || true
    grep -Eq 'tests? run' "$work/tool.log" || echo "it ran no tests"
    sed -n '/Summary/,$p' "$work/tool.log" | grep -E '^ +(FAIL|TIMEOUT|SIGNAL)' || true
}

still_serves() {
    row alive all alive_findings
}

alive_findings() {
    local url
    for url in "https://localhost:$http/local" "https://localhost:$tcp/" "http://localhost:$plain/"; do
        [[ $(curl --silent --max-time 10 --cacert "$work/ca.pem" "$url") == here ]] || echo "$url does not respond"
    done
    kill -0 "${pids[@]}" || echo "a server has ended"
    ! grep -hE 'panicked|ERROR' "$work/gateway.log" "$work/keyserver.log" || true
}

# with TOOL PROGRAM MODE FUNCTION ARGUMENT...: adds a row, if the program is installed.
with() {
    local tool=$1 program=$2
    shift 2
    if command -v "$program" >/dev/null; then
        row "$tool" "$@"
    else
        printf '%s\t%s\t-\tnot run\n' "$tool" "$1" >>"$work/table"
        echo "SKIPPED: $tool is not installed; \`make hostile\` installs it"
    fi
}

# row TOOL MODE FUNCTION ARGUMENT...: runs it; each line that it prints is a finding.
row() {
    local tool=$1 mode=$2 began=$SECONDS found count verdict=ok
    shift 2
    found=$("$@" 2>&1 | sed '/^$/d') || found+=$'\nit has failed'
    count=$(grep -c . <<<"$found" || true)
    if [[ $count -gt 0 ]]; then
        verdict=FAILED
        echo "$tool, $mode: ${found//$'\n'/$'\n'    }"
    fi
    printf '%s\t%s\t%s\t%s (%s s)\n' "$tool" "$mode" "$count" "$verdict" $((SECONDS - began)) >>"$work/table"
}

report() {
    printf '\n%-22s %-22s %-9s %s\n' tool mode findings verdict
    local passed failed missing
    while IFS=$'\t' read -r tool mode count verdict; do
        printf '%-22s %-22s %-9s %s\n' "$tool" "$mode" "$count" "$verdict"
    done <"$work/table"
    passed=$(grep -c $'\tok ' "$work/table" || true)
    failed=$(grep -c $'\tFAILED ' "$work/table" || true)
    missing=$(grep -c $'\tnot run' "$work/table" || true)
    echo "hostile tests: $passed passed, $failed failed, $missing skipped; $SECONDS s"
    [[ $failed -eq 0 ]]
}

fail() {
    echo "hostile.sh: $*" >&2
    exit 1
}

main "$@"
