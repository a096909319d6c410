#!/usr/bin/env bash
# Prints the path of a HAProxy with AWS-LC, the cheapest TLS server that an operator can assemble, and builds it first if
# necessary (two minutes). Prints only a message on stderr if it cannot be built. HAProxy is the source package of the Debian
# release after bookworm; AWS-LC's sources are those of the crate aws-lc-sys in Cargo.lock.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly out=${XDG_CACHE_HOME:-$HOME/.cache}/quadrille/haproxy-awslc
readonly release=trixie

main() {
    if [[ ! -x $out/haproxy ]]; then
        work=$(mktemp -d)
        trap 'rm -rf "$work"' EXIT
        # A separate bash: `set -e` has no effect in a command whose failure is checked.
        bash -euo pipefail -c "$(declare -f build haproxy_source); work=$work out=$out release=$release; build" >"$work/log" 2>&1 || {
            tail -n 5 "$work/log" >&2
            echo "HAProxy with AWS-LC could not be built (it needs cmake, g++, and Debian's source packages)" >&2
            return
        }
    fi
    echo "$out/haproxy"
}

build() {
    local crate
    cargo fetch --locked
    crate=$(cargo metadata --locked --format-version 1 | python3 -c '
import json, os, sys
print(next(os.path.dirname(package["manifest_path"]) for package in json.load(sys.stdin)["packages"] if package["name"] == "aws-lc-sys"))')
    haproxy_source
    cmake -S "$crate/aws-lc" -B "$work/lc" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=0 -DBUILD_TESTING=OFF \
        -DBUILD_TOOL=OFF -DDISABLE_GO=ON -DDISABLE_PERL=ON
    make -C "$work/lc" -j"$(nproc)" ssl crypto
    mkdir -p "$work/installed/lib"
    cp -r "$crate/aws-lc/include" "$work/installed/include"
    cp "$work/lc/ssl/libssl.a" "$work/lc/crypto/libcrypto.a" "$work/installed/lib/"
    tar -C "$work" -xf "$work"/haproxy_*.orig.tar.gz
    make -C "$work"/haproxy-3* -j"$(nproc)" TARGET=linux-glibc USE_OPENSSL_AWSLC=1 USE_ZLIB= USE_PCRE= USE_LUA= \
        SSL_INC="$work/installed/include" SSL_LIB="$work/installed/lib" ADDLIB=-lstdc++
    install -D "$work"/haproxy-3*/haproxy "$out/haproxy"
}

# Fetches from this machine's Debian mirror, with separate package lists, so that the system's are not changed.
haproxy_source() {
    local mirror
    # shellcheck disable=SC2016 # apt's own variable
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/\?$' | head -n 1)
    mkdir -p "$work/lists/partial" "$work/parts"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" >"$work/sources.list"
    local options=(-o "Dir::Etc::sourcelist=$work/sources.list" -o "Dir::Etc::sourceparts=$work/parts"
        -o "Dir::State::lists=$work/lists")
    (cd "$work" && apt-get -q "${options[@]}" update && apt-get -q "${options[@]}" source --download-only --tar-only haproxy)
}

main
