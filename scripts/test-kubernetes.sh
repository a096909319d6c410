#!/usr/bin/env bash
# Tests `quadrille kubernetes` with a real kube-apiserver and etcd, which are built once with Go (scripts/install-tools.sh): the
# chart is installed by Helm, and the gateway runs with the token of the chart's service account, so that its role must allow
# all that it does. Runs in its own network namespace, whose loopback device has the addresses of the endpoints.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly chart=deploy/helm/quadrille objects=scripts/kubernetes/objects.yaml
readonly quadrille=${QUADRILLE_BIN:-bin/quadrille}
readonly etcd=2379 peers=2380 api=6443 http=8080 https=8443 admin=9901
# Endpoints may not have loopback addresses.
readonly endpoint=192.0.2.10 other=192.0.2.11
pids=()

main() {
    if ! command -v go >/dev/null; then
        echo "test-kubernetes: SKIPPED: kube-apiserver is built with Go 1.26, which is not installed" >&2
        return
    fi
    [[ -x $quadrille ]] || { echo "test-kubernetes: there is no $quadrille: run \`make build\` first" >&2 && return 1; }
    kubernetes_folder=$(scripts/install-tools.sh kube-apiserver)
    helm_folder=$(scripts/install-tools.sh helm)
    export kubernetes_folder helm_folder
    local options="--net --pid --mount --fork --kill-child --mount-proc"
    # Without root, as root of a user namespace.
    [[ $(id -u) == 0 ]] || options="--user --map-root-user $options"
    # shellcheck disable=SC2086
    unshare $options "$0" --inside
}

inside() {
    work=$(mktemp -d "${TMPDIR:-/tmp}/quadrille-kubernetes.XXXXXX")
    readonly work
    # shellcheck source=scripts/kubernetes/apiserver.sh
    source scripts/kubernetes/apiserver.sh
    trap clean EXIT
    ip link set lo up
    ip address add "$endpoint/32" dev lo
    ip address add "$other/32" dev lo
    site "$endpoint" first
    site "$other" second
    check "etcd starts" etcd_starts
    check "kube-apiserver starts" apiserver_starts
    check "a namespace" request /api/v1/namespaces --json \
        '{ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } }'
    check "the chart is installed" "$helm_folder/helm" install try "$chart" --namespace edge --create-namespace \
        --set ingress.enabled=true --set ingress.class.create=true --set "ingress.publishAddresses={192.0.2.1}"
    check "its service account has a token" account
    check "the gateway starts with it" gateway_starts
    check "it is ready" await "$work/gateway.log" ready
    certificate a.example
    check "objects are created" put
    check "the page of the Ingress" await "$work/gateway.log" serves first
    check "over HTTPS, with the certificate of its Secret" await "$work/gateway.log" serves_https
    check "its status has the address" await "$work/gateway.log" has_address
    check "an annotation that does not work is an Event" await "$work/gateway.log" has_event
    check "and its path is closed" closes
    check "other endpoints" move_endpoints "$other" second
    kill -KILL "$apiserver"
    wait "$apiserver" 2>/dev/null || true
    check "the page without an API server" serves second
    check "the age of the view" await "$work/gateway.log" view_is_old
    check "kube-apiserver returns" apiserver_starts
    check "endpoints after its return" move_endpoints "$endpoint" first
    check "the view is new again" await "$work/gateway.log" view_is_new
    kill -KILL "$apiserver"
    wait "$apiserver" 2>/dev/null || true
    check "versions are forgotten, and objects deleted, meanwhile" compact
    check "kube-apiserver returns again" apiserver_starts
    check "the deleted Ingress is not served" await "$work/gateway.log" serves_nothing
    check "an Ingress after that" put_and_serve
    check "no verb was denied" nothing_denied
    echo "test-kubernetes: $passed passed"
}

# site ADDRESS TEXT: a server with one page.
site() {
    mkdir "$work/$2"
    echo "$2" >"$work/$2/index.html"
    python3 -m http.server --directory "$work/$2" --bind "$1" 8000 >"$work/$2.log" 2>&1 &
    pids+=($!)
}

certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -addext \
        "subjectAltName=DNS:$1" -keyout "$work/tls.key" -out "$work/tls.crt" 2>/dev/null
}

# A kubeconfig with the token of the service account, as in a pod.
account() {
    request /api/v1/namespaces/edge/serviceaccounts/try-quadrille/token --json \
        '{ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "expirationSeconds": 3600 } }' |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["status"]["token"], end="")' >"$work/token"
    cat >"$work/gateway.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{ name: it, cluster: { server: "https://127.0.0.1:$api", certificate-authority: apiserver/apiserver.crt } }]
users: [{ name: pod, user: { tokenFile: token } }]
contexts: [{ name: it, context: { cluster: it, user: pod, namespace: edge } }]
current-context: it
YAML
    [[ -s $work/token ]]
}

# With the arguments of the chart's Deployment.
gateway_starts() {
    local arguments
    mapfile -t arguments < <(request /apis/apps/v1/namespaces/edge/deployments/try-quadrille |
        python3 -c 'import json, sys
for one in json.load(sys.stdin)["spec"]["template"]["spec"]["containers"][0]["args"]: print(one)')
    POD_NAME=try-quadrille-0 "$quadrille" "${arguments[@]}" --kubeconfig "$work/gateway.kubeconfig" \
        >"$work/gateway.log" 2>&1 &
    pids+=($!)
    await "$work/gateway.log" curl --silent --fail --output /dev/null "http://127.0.0.1:$admin/healthz"
}

ready() {
    curl --silent --fail --output /dev/null "http://127.0.0.1:$admin/ready"
}

# put: stores the objects of the test.
put() {
    sed -e "s|ENDPOINT|${1-$endpoint}|; s|CHAIN|$(base64 --wrap=0 "$work/tls.crt")|; s|KEY|$(base64 --wrap=0 "$work/tls.key")|" \
        "$objects" | python3 scripts/helm/apply.py "https://127.0.0.1:$api" "$token" shop store
}

serves() {
    [[ $(curl --silent --header "Host: b.example" "http://127.0.0.1:$http/") == "$1" ]]
}

serves_https() {
    [[ $(curl --silent --cacert "$work/tls.crt" --resolve "a.example:$https:127.0.0.1" "https://a.example:$https/") == first ]]
}

closes() {
    [[ $(curl --silent --output /dev/null --write-out '%{http_code}' --header "Host: c.example" "http://127.0.0.1:$http/") == 503 ]]
}

serves_nothing() {
    [[ $(curl --silent --output /dev/null --write-out '%{http_code}' --header "Host: b.example" "http://127.0.0.1:$http/") == 404 ]]
}

has_address() {
    request /apis/networking.k8s.io/v1/namespaces/shop/ingresses/plain | grep --quiet '"ip": *"192.0.2.1"'
}

has_event() {
    request /apis/events.k8s.io/v1/namespaces/shop/events | grep --quiet "auth-type does not work"
}

move_endpoints() {
    put "$1" && await "$work/gateway.log" serves "$2"
}

age() {
    curl --silent "http://127.0.0.1:$admin/metrics" | sed -n 's/^quadrille_kubernetes_view_age_seconds //p'
}

view_is_old() {
    [[ $(age) != 0 ]]
}

view_is_new() {
    [[ $(age) == 0 ]]
}

# Deletes the Ingress in etcd, and forgets all former versions: the gateway's version is gone.
compact() {
    local key version
    key=$(printf /registry/ingress/shop/plain | base64)
    version=$(curl --silent --fail "http://127.0.0.1:$etcd/v3/kv/deleterange" --json "{\"key\": \"$key\"}" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["header"]["revision"])')
    curl --silent --fail "http://127.0.0.1:$etcd/v3/kv/compaction" --json "{\"revision\": \"$version\", \"physical\": true}"
}

put_and_serve() {
    put && await "$work/gateway.log" serves first
}

nothing_denied() {
    ! grep --ignore-case "forbidden" "$work/gateway.log"
}

if [[ ${1-} == --inside ]]; then inside; else main; fi
