# shellcheck shell=bash
# A real kube-apiserver with etcd, on loopback, without controllers; sourced by tests, which have set `work`, `pids`,
# `kubernetes_folder` and the ports `etcd`, `peers` and `api`.
# shellcheck disable=SC2154

etcd_starts() {
    etcd --data-dir "$work/etcd" --listen-client-urls "http://127.0.0.1:$etcd" --advertise-client-urls \
        "http://127.0.0.1:$etcd" --listen-peer-urls "http://127.0.0.1:$peers" >"$work/etcd.log" 2>&1 &
    pids+=($!)
    await "$work/etcd.log" curl --silent --fail --output /dev/null "http://127.0.0.1:$etcd/health"
}

# Makes the keys of an API server, and a kubeconfig of its administrator.
prepare_apiserver() {
    openssl genrsa -out "$work/accounts.key" 2048 2>/dev/null
    token=$(openssl rand -hex 16)
    echo "$token,admin,admin,system:masters" >"$work/tokens"
    cat >"$work/kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{ name: it, cluster: { server: "https://127.0.0.1:$api", insecure-skip-tls-verify: true } }]
users: [{ name: admin, user: { token: $token } }]
contexts: [{ name: it, context: { cluster: it, user: admin } }]
current-context: it
YAML
    KUBECONFIG=$work/kubeconfig
    export KUBECONFIG
}

# Starts it with these further arguments; its process is `apiserver`.
apiserver_starts() {
    [[ -e $work/tokens ]] || prepare_apiserver
    # There are no controllers that would create service accounts.
    "$kubernetes_folder/kube-apiserver" --etcd-servers "http://127.0.0.1:$etcd" --bind-address 127.0.0.1 \
        --secure-port "$api" --cert-dir "$work/apiserver" --token-auth-file "$work/tokens" --authorization-mode RBAC \
        --service-cluster-ip-range 10.96.0.0/16 --service-account-issuer https://kubernetes.default.svc \
        --service-account-key-file "$work/accounts.key" --service-account-signing-key-file "$work/accounts.key" \
        --disable-admission-plugins ServiceAccount,Priority "$@" >>"$work/apiserver.log" 2>&1 &
    apiserver=$!
    pids+=("$apiserver")
    await "$work/apiserver.log" request /readyz
}

# request PATH [OPTION...]
request() {
    local path=$1
    shift
    curl --silent --show-error --fail-with-body --insecure --header "Authorization: Bearer $token" \
        "https://127.0.0.1:$api$path" "$@"
}

# await LOG COMMAND...: retries until it succeeds, for 20 s; then shows the log.
await() {
    local log=$1
    shift
    local attempt
    for attempt in {1..200}; do
        "$@" && return
        sleep 0.1
    done
    echo "after $attempt attempts:"
    cat "$log"
    return 1
}

passed=0
# check WHAT COMMAND...: shows its output if it fails.
check() {
    local what=$1
    shift
    if "$@" >"$work/output" 2>&1; then
        ok "$what"
    else
        cat "$work/output"
        fail "$what"
    fi
}

ok() {
    echo "ok    $1"
    passed=$((passed + 1))
}

# Ends the processes in `pids`, and removes `work`.
clean() {
    local pid
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "$work"
}

fail() {
    echo "$(basename "$0" .sh): FAILED: $*" >&2
    exit 1
}
