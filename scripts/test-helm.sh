#!/usr/bin/env bash
# Tests the Helm chart. Without a cluster: its output is mounted like by a kubelet, checked by `quadrille check`, and run:
# gateway, key server and Redis. With a real kube-apiserver and etcd, on loopback: every object is applied,
# validated strictly, installed, upgraded and removed by Helm, and the pods fit the Pod Security Standard `restricted`.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly chart=deploy/helm/quadrille kubernetes=1.37
readonly quadrille=${QUADRILLE_BIN:-bin/quadrille}
work=$(mktemp -d "${TMPDIR:-/tmp}/quadrille-helm.XXXXXX")
readonly work secrets=$work/secrets name=try-quadrille
pids=()
# shellcheck source=scripts/kubernetes/apiserver.sh
source scripts/kubernetes/apiserver.sh

main() {
    [[ -x $quadrille ]] || fail "there is no $quadrille: run \`make build\` first"
    helm=$(scripts/install-tools.sh helm)/helm
    readonly helm
    trap clean EXIT
    choose_ports
    make_secrets
    check "helm lint reports nothing" lints
    check "the chart has this version" is_of_this_version
    mistakes_are_refused
    check "the configuration of the default values passes \`quadrille check\`" default_configuration_is_good
    check "the configuration of a DaemonSet with existing key servers passes" daemon_set_is_good
    check "the admin address is private in the node's network" host_network_has_a_private_admin_address
    check "the configuration of all features passes" full_configuration_is_good
    check "a policy allows HTTP/3 if a listener has it" policy_knows_http3
    check "the examples of the guide render" guide_renders
    check "the gateway accepts the arguments for Ingress objects" ingress_arguments_are_accepted
    without_a_cluster
    with_an_apiserver
    echo "test-helm: $passed passed"
}

# Prints ports that are free now.
choose_ports() {
    read -r https http admin keys keys_admin redis etcd peers api < <(python3 - <<'PYTHON'
import socket
sockets = [socket.socket() for _ in range(9)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))
PYTHON
    )
    readonly https http admin keys keys_admin redis etcd peers api
    sed -e "s/PORT_HTTPS/$https/g; s/PORT_HTTP/$http/; s/PORT_ADMIN/$admin/; s/PORT_KEYS/$keys/; s/PORT_REDIS/$redis/" \
        scripts/helm/values.yaml >"$work/values.yaml"
}

# Objects that users create with kubectl and cert-manager: a folder for each Secret.
make_secrets() {
    certificate example-tls ec localhost
    certificate shop-tls rsa localhost
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca \
        -keyout "$work/ca.key" -out "$work/ca.crt" 2>/dev/null
    identity gateway-identity gateway.internal
    identity key-server-identity localhost
    mkdir "$secrets/fleet" "$secrets/redis-password"
    "$quadrille" tickets generate "$secrets/fleet/fleet.secret" >/dev/null
    openssl rand -hex 16 | tr -d '\n' >"$secrets/redis-password/password"
}

# certificate SECRET KIND HOST
certificate() {
    local folder=$secrets/$1 options=(-newkey rsa:2048)
    [[ $2 == rsa ]] || options=(-newkey ec -pkeyopt ec_paramgen_curve:P-256)
    mkdir -p "$folder"
    openssl req -x509 "${options[@]}" -nodes -days 2 -subj "/CN=$3" -addext "subjectAltName=DNS:$3" \
        -keyout "$folder/tls.key" -out "$folder/tls.crt" 2>/dev/null
}

# identity SECRET HOST: signed by the CA.
identity() {
    local folder=$secrets/$1
    mkdir -p "$folder"
    openssl req -x509 -CA "$work/ca.crt" -CAkey "$work/ca.key" -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
        -nodes -days 2 -subj "/CN=$2" -addext "subjectAltName=DNS:$2" -addext basicConstraints=CA:FALSE \
        -keyout "$folder/tls.key" -out "$folder/tls.crt" 2>/dev/null
    cp "$work/ca.crt" "$folder/ca.crt"
}

lints() {
    "$helm" lint --strict --quiet --kube-version "$kubernetes" "$chart" &&
        "$helm" lint --strict --quiet --kube-version "$kubernetes" --values "$work/values.yaml" "$chart"
}

is_of_this_version() {
    local version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
    grep "^version: $version$" "$chart/Chart.yaml" && grep "^appVersion: $version$" "$chart/Chart.yaml"
}

# render [OPTION...]
render() {
    "$helm" template try "$chart" --kube-version "$kubernetes" "$@"
}

mistakes_are_refused() {
    refused "additional properties 'enable' not allowed" --set redis.enable=true
    refused "set \`admin.port\`" --set configuration.admin=off
    local fleet=(--set 'certificates[0].secretName=example-tls' --set fleet.secretName=fleet)
    refused "a fleet needs Redis" "${fleet[@]}"
    refused "\`fleet.redis.passwordSecretName\`" "${fleet[@]}" --set redis.enabled=true --set networkPolicy.enabled=false
    refused "name Secrets in \`certificates\`"
    refused "\`keyServers.secretName\`" --set 'certificates[0].secretName=a' --set 'certificates[0].keyServers=true'
    refused "\`keyServer.secretName\`" --set keyServer.enabled=true
    refused "\`serviceMonitor\` cannot reach the admin address" --set hostNetwork=true --set serviceMonitor.enabled=true \
        --set 'certificates[0].secretName=example-tls'
}

# refused WORDS OPTION...
refused() {
    local words=$1
    shift
    if render "$@" >/dev/null 2>"$work/refused" || ! grep --quiet --fixed-strings -- "$words" "$work/refused"; then
        cat "$work/refused"
        fail "a mistake is not refused by \"$words\": $*"
    fi
    ok "a mistake is refused: $words"
}

# mount KIND NAME FOLDER <MANIFESTS: writes the files of its pod, and prints its arguments.
mount() {
    mkdir -p "$work/$3"
    python3 scripts/helm/mount.py "$1" "$2" "$secrets" "$work/$3"
}

default_configuration_is_good() {
    render --set 'certificates[0].secretName=example-tls' | mount Deployment "$name" default &&
        "$quadrille" check "$work/default/quadrille.yaml"
}

daemon_set_is_good() {
    render --set kind=DaemonSet --set hostNetwork=true --set 'certificates[0].secretName=shop-tls' \
        --set 'certificates[0].keyServers=true' --set keyServers.secretName=gateway-identity \
        --set 'keyServers.addresses={keys.example:2407}' |
        mount DaemonSet "$name" daemon-set && "$quadrille" check "$work/daemon-set/quadrille.yaml" &&
        [[ ! -e $work/daemon-set/certificates/shop-tls/tls.key ]] # the key is absent
}

# In the node's network, no network policy keeps clients from the admin address.
host_network_has_a_private_admin_address() {
    local options=(--set 'certificates[0].secretName=example-tls')
    render --set hostNetwork=true "${options[@]}" >"$work/host.yaml" &&
        grep --fixed-strings 'address: 127.0.0.1:9901' "$work/host.yaml" &&
        [[ $(grep --count --fixed-strings 'port: admin, host: 127.0.0.1 }' "$work/host.yaml") == 3 ]] &&
        ! grep --fixed-strings 'address: 0.0.0.0:9901' "$work/host.yaml" &&
        render "${options[@]}" >"$work/pod.yaml" &&
        grep --fixed-strings 'address: 0.0.0.0:9901' "$work/pod.yaml" &&
        ! grep --fixed-strings 'host: 127.0.0.1' "$work/pod.yaml"
}

full_configuration_is_good() {
    render --values "$work/values.yaml" >"$work/full.yaml"
    mount Deployment "$name" gateway <"$work/full.yaml" >"$work/gateway.arguments" &&
        "$quadrille" check "$work/gateway/quadrille.yaml"
}

policy_knows_http3() {
    grep -F "{ port: $https, protocol: UDP }" "$work/full.yaml" >/dev/null &&
        ! grep -F "{ port: $http, protocol: UDP }" "$work/full.yaml"
}

# Outside of a cluster, they end with the service account, which is missing.
ingress_arguments_are_accepted() {
    local arguments options
    for options in "" "ingress.namespaces={shop}" "fleet.secretName=fleet,redis.enabled=true" \
        "ingress.configMap=edge/settings,ingress.defaultCertificate=edge/tls,ingress.publishAddresses={192.0.2.1}"; do
        render --set ingress.enabled=true --set "$options" >"$work/ingress.yaml" || return 1
        ! grep --quiet "kind: ConfigMap" "$work/ingress.yaml" || return 1
        mapfile -t arguments < <(mount Deployment "$name" ingress <"$work/ingress.yaml")
        echo "${arguments[@]}"
        ! "$quadrille" "${arguments[@]}" 2>"$work/ingress.log" || return 1
        cat "$work/ingress.log"
        grep --quiet "outside a cluster, give --kubeconfig FILE" "$work/ingress.log" || return 1
    done
}

# Renders each block of values in the guide, on top of the first.
guide_renders() {
    mkdir "$work/guide"
    awk -v folder="$work/guide" '/^```yaml$/ { inside = 1; block++; next } /^```$/ { inside = 0 }
        inside { print > (folder "/" block ".yaml") }' docs/guide/kubernetes.md
    local block
    [[ -f $work/guide/1.yaml ]] || return 1
    for block in "$work/guide"/*.yaml; do
        echo "$block"
        render --values "$work/guide/1.yaml" --values "$block" >"$work/guide/rendered" || return 1
    done
}

without_a_cluster() {
    check "the arguments of Redis start it" redis_starts
    check "the arguments of the key server start it" key_server_starts
    check "the arguments of the gateway start it, and the probe finds it ready" gateway_starts
    check "it serves HTTPS" serves example-tls ECDSA
    check "a key on the key server serves HTTPS, with the policy" serves shop-tls RSA
    check "the fleet's keys are in Redis" fleet_is_in_redis
    check "plain HTTP is redirected" redirected
    certificate example-tls ec localhost
    check "a renewed Secret is in use without a restart" renewed
    check "the \`helm test\` passes" helm_test
}

redis_starts() {
    local arguments
    mapfile -t arguments < <(mount Deployment "$name-redis" redis <"$work/full.yaml")
    # shellcheck disable=SC2016 # replaced by the kubelet
    redis-server "${arguments[@]/'$(PASSWORD)'/$(<"$secrets/redis-password/password")}" --port "$redis" \
        >"$work/redis.log" &
    pids+=($!)
    await "$work/redis.log" redis_answers
}

redis_answers() {
    REDISCLI_AUTH=$(<"$secrets/redis-password/password") redis-cli -p "$redis" ping 2>&1 | grep --quiet PONG
}

key_server_starts() {
    mapfile -t arguments < <(mount StatefulSet "$name-key-server" key-server <"$work/full.yaml" |
        sed "s/--admin=0.0.0.0:2406/--admin=127.0.0.1:$keys_admin/; s/0.0.0.0:$keys/127.0.0.1:$keys/")
    "$quadrille" "${arguments[@]}" >"$work/key-server.log" 2>&1 &
    pids+=($!)
    await "$work/key-server.log" curl --silent --fail --output /dev/null "http://127.0.0.1:$keys_admin/ready"
}

gateway_starts() {
    mapfile -t arguments <"$work/gateway.arguments"
    "$quadrille" "${arguments[@]}" >"$work/gateway.log" 2>&1 &
    pids+=($!)
    await "$work/gateway.log" curl --silent --fail --output /dev/null "http://127.0.0.1:$admin/ready" &&
        curl --silent --fail "http://127.0.0.1:$admin/healthz"
}

# serves SECRET SIGNATURE
serves() {
    curl --silent --show-error --fail --cacert "$secrets/$1/tls.crt" --tls-max 1.2 \
        --ciphers "ECDHE-$2-AES128-GCM-SHA256" "https://localhost:$https/" | grep "from the chart"
}

fleet_is_in_redis() {
    local found
    found=$(REDISCLI_AUTH=$(<"$secrets/redis-password/password") redis-cli -p "$redis" dbsize)
    echo "$found"
    [[ $found != *0 ]]
}

redirected() {
    local found
    # Clients connect by the Service, with its port in the Host header or without.
    found=$(curl --silent --head --header "Host: localhost" "http://localhost:$http/path")
    echo "$found"
    grep --quiet --ignore-case "^location: https://localhost/path" <<<"$found"
}

renewed() {
    mount Deployment "$name" gateway <"$work/full.yaml"
    await "$work/gateway.log" serves example-tls ECDSA
}

helm_test() {
    mapfile -t arguments < <(mount Pod "$name-test" test <"$work/full.yaml" | sed "s/$name.default.svc/localhost/")
    "$quadrille" "${arguments[@]}"
}

with_an_apiserver() {
    kubernetes_folder=$(scripts/install-tools.sh kube-apiserver) || fail "kube-apiserver could not be built"
    readonly kubernetes_folder
    check "etcd starts" etcd_starts
    check "kube-apiserver $kubernetes starts" apiserver_starts
    check "it accepts ServiceMonitors" custom_resources
    check "it rejects fields outside its schemas" strict_validation_refuses
    check "every object of the default values is valid" valid --set 'certificates[0].secretName=example-tls'
    check "every object of all features is valid" valid --values "$work/values.yaml"
    check "every object for Ingress objects is valid" valid --set ingress.enabled=true --set ingress.class.create=true
    check "every object for those of a namespace is valid" valid --set ingress.enabled=true --set "ingress.namespaces={default}"
    check "the pods meet the Pod Security Standard \`restricted\`" restricted
    check "a pod as root does not" root_is_refused
    check "helm install" helm install try "$chart" --namespace edge --create-namespace --values "$work/values.yaml"
    check "running pods get a configuration change" upgrade_without_restart
    check "new pods get startup settings" upgrade_with_restart
    check "helm uninstall" helm uninstall try --namespace edge
    check "and leaves no objects" nothing_is_left
}

custom_resources() {
    request /apis/apiextensions.k8s.io/v1/customresourcedefinitions --output /dev/null \
        --header "Content-Type: application/yaml" \
        --data-binary "@$kubernetes_folder/monitoring.coreos.com_servicemonitors.yaml" &&
        await "$work/apiserver.log" request /apis/monitoring.coreos.com/v1/servicemonitors --output /dev/null
}

# apply NAMESPACE <MANIFESTS: validates them strictly, without storing them.
apply() {
    python3 scripts/helm/apply.py "https://127.0.0.1:$api" "$token" "$1"
}

# applied_not NAMESPACE WORDS <MANIFESTS: expects rejection with these words.
applied_not() {
    ! apply "$1" >"$work/applied" && grep --fixed-strings -- "$2" "$work/applied"
}

valid() {
    render "$@" | apply default
}

strict_validation_refuses() {
    render --values "$work/values.yaml" | sed 's/readOnlyRootFilesystem/readOnlyRootFileSystem/' | applied_not default \
        "readOnlyRootFileSystem: field not declared in schema"
}

restricted() {
    request /api/v1/namespaces --output /dev/null --json '{
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "restricted",
            "labels": { "pod-security.kubernetes.io/enforce": "restricted" } } }' &&
        render --values "$work/values.yaml" --set priorityClassName= | python3 scripts/helm/pods.py | apply restricted
}

root_is_refused() {
    render --values "$work/values.yaml" --set priorityClassName= | python3 scripts/helm/pods.py |
        sed 's/runAsNonRoot: true/runAsNonRoot: false/' |
        applied_not restricted 'violates PodSecurity "restricted:latest": runAsNonRoot != true'
}

upgrade_without_restart() {
    local before
    before=$(pod_template) || return 1
    helm upgrade try "$chart" --namespace edge --values "$work/values.yaml" \
        --set 'configuration.listeners[0].respond=changed' \
        --set "configuration.listeners[0].address=127.0.0.1:$https" || return 1
    request "/api/v1/namespaces/edge/configmaps/$name" | grep "respond: changed" &&
        [[ $(pod_template) == "$before" ]]
}

upgrade_with_restart() {
    local before
    before=$(pod_template) || return 1
    helm upgrade try "$chart" --namespace edge --values "$work/values.yaml" --set configuration.threads=2 &&
        [[ $(pod_template) != "$before" ]]
}

pod_template() {
    request "/apis/apps/v1/namespaces/edge/deployments/$name" |
        python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["spec"]["template"]))'
}

nothing_is_left() {
    local path left
    for path in /apis/apps/v1/namespaces/edge/{deployments,statefulsets} /api/v1/namespaces/edge/{services,configmaps} \
        /apis/networking.k8s.io/v1/namespaces/edge/networkpolicies /api/v1/namespaces/edge/secrets; do
        left=$(request "$path" |
            python3 -c 'import json, sys; print(*(x["metadata"]["name"] for x in json.load(sys.stdin)["items"]))')
        [[ -z $left || $left == kube-root-ca.crt ]] || { echo "$path: $left"; return 1; }
    done
}

helm() {
    "$helm" "$@"
}

main "$@"
