#!/usr/bin/env bash
# Prints the folder that has Istio's istiod (without Kubernetes: the objects come from a folder), pilot-agent and the
# template of Envoy's bootstrap. Builds them from the Go module proxy if they are not in the cache: 4 to 10 minutes
# on two cores, at most 2.2 GB of memory, 0.7 GB in Go's module cache and 2.2 GB in its build cache.
#
# build.sh --cached: prints the folder if it is there, and fails without a word if not.
set -euo pipefail
cd "$(dirname "$0")"

# A development version of 1.31, the newest that has a go.mod that other modules of the proxy agree with.
readonly version=v0.0.0-20260827124520-eed52ebb66ad
# The hashes of the module; those of what it needs are in its own go.sum. So no checksum database is asked.
readonly hashes="istio.io/istio $version h1:ui9TJjRMAV/hb5ehQaZDq7IUGxuQP6dra9lapT/VjHI=
istio.io/istio $version/go.mod h1:krub19xO5up6m9fUbvLGBgcAlHN4QuhVCGly52A4i4I="
# Some proxies have only releases of these two, which serve as well.
readonly release=v1.31.0
readonly release_hashes="istio.io/api $release h1:qGf/hZwCu5LOPK0jGti38NF71E8Eq4jGyhz/l2xsszU=
istio.io/api $release/go.mod h1:+brQWcBHoROuyA6fv8rbgg8Kfn0RCGuqoY0duCMuSLA=
istio.io/client-go $release h1:nDXIIiXiKEG1kYnM8aQBnR0Shfc3rY5WpurXco+Dk/8=
istio.io/client-go $release/go.mod h1:38zHhC9caf9LHE2eXJxtweMqh2CrR70sjmf5CQipe/8="
# Istio's own, but for vtprotobuf, which is for speed alone and would keep the two programs from sharing packages.
readonly tags=disable_pgv,grpcnotrace,retrynotrace

overlay=$(find overlay build.sh -type f | sort | xargs cat | sha256sum | cut -c1-12)
readonly cache=${QUADRILLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quadrille}
readonly folder=$cache/istio-${version##*-}-$overlay

main() {
    if [[ ! -x $folder/istiod ]]; then
        [[ ${1-} != --cached ]] || exit 1
        command -v go >/dev/null || { echo "istiod is not built: there is no Go" >&2 && exit 1; }
        mkdir -p "$cache"
        exec 9>"$cache/istio.lock"
        flock 9
        [[ -x $folder/istiod ]] || build >&2
    fi
    echo "$folder"
}

build() {
    echo "building istiod and pilot-agent, once (4 to 10 minutes on 2 cores)"
    work=$(mktemp -d "$cache/istio-build.XXXXXX")
    trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
    export GOTOOLCHAIN=local GOWORK=off GOFLAGS='' CGO_ENABLED=0
    sources
    compile pilot-agent "agent,$tags" ./pilot/cmd/pilot-agent
    compile istiod "$tags" ./pilot/cmd/quadrille-istiod
    install -m 644 "$work/source/tools/packaging/common/envoy_bootstrap.json" "$work/out/"
    rm -rf "$folder"
    mv "$work/out" "$folder"
}

# Istio's sources with ours beside them, in $work/source.
sources() {
    local module
    mkdir "$work/get" "$work/out"
    echo "module get" >"$work/get/go.mod"
    echo "$hashes" >"$work/get/go.sum"
    module=$(cd "$work/get" && go mod download -json "istio.io/istio@$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
    [[ -d $module ]] || { echo "istio.io/istio $version cannot be had from the Go module proxy" && exit 1; }
    cp -r "$module" "$work/source"
    chmod -R u+w "$work/source"
    cp -r overlay/. "$work/source/"
    (
        cd "$work/source"
        go mod download istio.io/api istio.io/client-go && exit
        echo "taking $release of istio.io/api and istio.io/client-go"
        go mod edit -replace "istio.io/api=istio.io/api@$release" \
            -replace "istio.io/client-go=istio.io/client-go@$release"
        echo "$release_hashes" >>go.sum
    )
}

# compile PROGRAM TAGS PACKAGE
compile() {
    (cd "$work/source" && nice -n 19 go build -p 2 -trimpath -buildvcs=false -tags "$2" \
        -ldflags "-s -w -X istio.io/istio/pkg/version.buildVersion=1.31" -o "$work/out/$1" "$3")
}

main "$@"
