#!/usr/bin/env bash
# Runs BoGo, BoringSSL's own protocol tests, against its shim with the key exchange computed by the engine: bogo.sh [--short]
# [the runner's options ...]. Runner and shim are built from the sources of boring-sys. --short runs the tests most affected
# by the key exchange, with the build of `make test`. Skipped tests and the reasons are in admin/bogo/skipped.json.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra flags <<<"${CARGO_FLAGS-}"

repository=$PWD
target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
readonly repository target
# Patterns of test names.
readonly short=(
    '*-Curve-*' '*KeyShare*' '*HelloRetryRequest*' '*MLKEM*' '*X25519*' 'TLS13-*-Server*' 'Resume-Server-*' '*EarlyData*-Server*'
    'EarlyCallback*' 'Basic-Server-*' '*SupportedGroups*' 'CurveTest-*' 'UnknownCurve*' 'NoCommonCurves*' '*SecondServerFlight*'
    '*CertCompression*'
)

main() {
    if ! has_go; then
        echo "SKIPPED: BoGo: its runner needs Go 1.26 or later"
        return
    fi
    local profile=release options=() source
    if [[ ${1-} == --short ]]; then
        profile=debug options=(-test "$(IFS=';' && echo "${short[*]}")")
        shift
    fi
    build "$profile"
    source=$(boringssl "$profile")
    BORINGSSL_SOURCE=$source build "$profile" --features quadrille-bogo/shim
    build_runner "$source"
    run "$target/$profile/quadrille-bogo" "${options[@]}" "$@"
}

has_go() {
    local version
    version=$(go env GOVERSION 2>/dev/null) && [[ $(printf 'go1.26\n%s\n' "$version" | sort --version-sort | head -1) == go1.26 ]]
}

# Built with the packages of other commands, so that BoringSSL is not rebuilt with other features.
build() {
    local profile=$1
    shift
    case $profile in
        debug) cargo build "${flags[@]}" --workspace "$@" ;;
        release)
            scripts/profile-guided/build.sh "${flags[@]}" --package quadrille-cli --package quadrille-bench-handshakes \
                --package quadrille-openssl-provider --package quadrille-bogo "$@"
            ;;
    esac
}

# Prints the folder of BoringSSL's sources as built by boring-sys, with its patches.
boringssl() {
    local bindings
    for bindings in "$target/$1"/build/boring-sys-*/out/bindings.rs; do
        if [[ -d ${bindings%/*}/boringssl ]]; then
            echo "${bindings%/*}/boringssl"
            return
        fi
    done
    echo "BoGo: no BoringSSL sources below $target/$1/build" >&2
    return 1
}

# Runs in a copy: the package of boring-sys has no private keys, and the runner needs ML-DSA, which Go has from 1.27 on.
build_runner() {
    local copy=$target/bogo key
    rm -rf "$copy"
    mkdir -p "$copy/ssl/test" "$copy/util"
    cp "$1/go.mod" "$1/go.sum" "$copy"
    cp -r "$1/ssl/test/runner" "$copy/ssl/test"
    cp -r "$1/util/testresult" "$copy/util"
    chmod -R u+w "$copy"
    cd "$copy/ssl/test/runner"
    for key in 1024 2048; do openssl genrsa -out "rsa_${key}_key.pem" "$key" 2>/dev/null; done
    for key in 256 384 521; do
        openssl genpkey -algorithm EC -pkeyopt "ec_paramgen_curve:P-$key" -out "ecdsa_p${key}_key.pem"
    done
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out channel_id_key.pem
    openssl genpkey -algorithm ED25519 -out ed25519_key.pem
    mkdir mldsa
    cp "$repository/admin/bogo/mldsa.go" mldsa
    sed -i 's|"crypto/mldsa"|"boringssl.googlesource.com/boringssl.git/ssl/test/runner/mldsa"|' ./*.go
    sed -i '/{"ML-DSA [0-9]*", mldsa[0-9]*Key,/d' runner.go
    sed -i '/{"ML-DSA-[0-9]*", signatureMLDSA/d' signature_algorithm_tests.go
    sed -i 's/^go 1\..*/go 1.26.0/' ../../../go.mod
    GOFLAGS=-mod=mod go test -c -o "$copy/runner" .
    cd "$repository"
}

run() {
    local shim=$1 exchanges=$target/bogo/exchanges results=$target/bogo/results.json status=0
    shift
    (cd "$target/bogo/ssl/test/runner" && QUADRILLE_BOGO_EXCHANGES=$exchanges "$target/bogo/runner" -shim-path "$shim" \
        -shim-config "$repository/admin/bogo/skipped.json" -json-output "$results" -pipe "$@") || status=$?
    summarise "$results"
    if [[ ! -s $exchanges ]]; then
        echo "BoGo: the engine computed no key exchange" >&2
        return 1
    fi
    echo "BoGo: $(wc -c <"$exchanges") key exchanges by the engine"
    return "$status"
}

summarise() {
    python3 - "$1" <<'PYTHON'
import json, sys
counts = json.load(open(sys.argv[1]))["num_failures_by_type"]
passed, skipped = counts.pop("PASS", 0), counts.pop("SKIP", 0)
print(f"BoGo tests: {passed} passed, {sum(counts.values())} failed, {skipped} skipped")
PYTHON
}

main "$@"
