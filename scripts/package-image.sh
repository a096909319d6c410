#!/usr/bin/env bash
# Packs the output of `make build` into bin/quadrille_VERSION_ARCHITECTURE.oci.tar, a container image in the OCI layout,
# without a daemon and without root. It contains the gateway, its shared libraries, and a CA bundle, but no shell and no
# package manager.
set -euo pipefail
cd "$(dirname "$0")/.."

stage=$(mktemp -d)
readonly stage root=$stage/root layout=$stage/layout
trap 'rm -rf "$stage"' EXIT

# As in other images without a shell. A number, so that Kubernetes can check that it is not root.
readonly user=65532

main() {
    local version architecture created image
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
    architecture=$(dpkg --print-architecture)
    created=$(date --utc --iso-8601=seconds --date "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}")
    image=bin/quadrille_${version}_$architecture.oci.tar
    umask 022
    gateway
    shared_libraries
    accounts
    # One time for all files, so that the image is reproducible.
    find "$root" -exec touch --no-dereference --date "$created" {} +
    layout "$version" "$architecture" "$created"
    rm -f bin/quadrille_*.oci.tar
    tar --create --file "$image" --directory "$layout" --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime "$created" .
    echo "$image ($(du -h "$image" | cut -f1)): skopeo copy oci-archive:$image docker://REGISTRY/quadrille:$version"
}

gateway() {
    install -D -m 755 bin/quadrille "$root/usr/bin/quadrille"
    strip --strip-unneeded "$root/usr/bin/quadrille"
    install -D -m 644 deploy/debian/copyright "$root/usr/share/doc/quadrille/copyright"
    # Authorities for TLS to upstreams: those of the package, without any that were added on this machine.
    install -d "$root/etc/ssl/certs"
    find /usr/share/ca-certificates/mozilla -name '*.crt' -print0 | LC_ALL=C sort --zero-terminated |
        xargs --null awk 1 >"$root/etc/ssl/certs/ca-certificates.crt"
    package ca-certificates
    # Where the configuration is mounted.
    install -d "$root/etc/quadrille"
}

# The libraries keep their paths, where the dynamic linker looks for them.
shared_libraries() {
    local library
    for library in $(ldd bin/quadrille | grep --only-matching '/[^ ]*'); do
        install -D -m 755 "$library" "$root$library"
        package "$(owner "$library")"
    done
}

# dpkg records the path in the package, which may lack the /usr of the real path.
owner() {
    local real
    real=$(realpath "$1")
    { dpkg-query --search "$1" "$real" "${real#/usr}" 2>/dev/null || true; } | head -1 | cut -d : -f 1
}

# package NAME: copies its licence, and the metadata that scanners read in images without dpkg.
package() {
    install -d "$root/var/lib/dpkg/status.d"
    dpkg-query --status "$1" >"$root/var/lib/dpkg/status.d/$1"
    install -D -m 644 "/usr/share/doc/$1/copyright" "$root/usr/share/doc/$1/copyright"
}

accounts() {
    printf 'root:x:0:0::/:/sbin/nologin\nquadrille:x:%d:%d::/etc/quadrille:/sbin/nologin\n' "$user" "$user" \
        >"$root/etc/passwd"
    printf 'root:x:0:\nquadrille:x:%d:\n' "$user" >"$root/etc/group"
    echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
}

# layout VERSION ARCHITECTURE CREATED
layout() {
    local image=$layout:$1
    # `umoci insert` is not used: its layers lack the end-of-archive blocks, and tar rejects them.
    tar --create --file "$stage/layer.tar" --directory "$root" --sort=name --owner=0 --group=0 --numeric-owner .
    umoci init --layout "$layout"
    umoci new --image "$image"
    umoci raw add-layer --image "$image" --history.created "$3" "$stage/layer.tar"
    umoci config --image "$image" --created "$3" --no-history --architecture "$2" --os linux \
        --config.user "$user:$user" --config.workingdir / --config.exposedports 8443/tcp --config.exposedports 9901/tcp \
        --config.entrypoint /usr/bin/quadrille \
        --config.cmd serve --config.cmd --config --config.cmd /etc/quadrille/quadrille.yaml \
        --config.stopsignal SIGTERM \
        --config.label org.opencontainers.image.title=quadrille \
        --config.label org.opencontainers.image.version="$1" \
        --config.label org.opencontainers.image.licenses=Apache-2.0 \
        --config.label org.opencontainers.image.revision="$(git rev-parse HEAD 2>/dev/null || echo unknown)"
    umoci gc --layout "$layout"
}

main "$@"
