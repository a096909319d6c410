#!/usr/bin/env bash
# Packs what `make build` has built into bin/quadrille_VERSION_ARCHITECTURE.deb, for the Debian that it was built on.
set -euo pipefail
cd "$(dirname "$0")/.."

stage=$(mktemp -d)
readonly stage provider=/usr/lib/quadrille/quadrille-provider.so
trap 'rm -rf "$stage"' EXIT

main() {
    local version architecture package
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)-1
    architecture=$(dpkg --print-architecture)
    package=bin/quadrille_${version}_$architecture.deb
    umask 022
    DESTDIR=$stage/root PREFIX=/usr scripts/install.sh
    strip --strip-unneeded "$stage/root/usr/bin/quadrille" "$stage/root/usr/lib/quadrille/"*.so
    # Debian's units lie below /lib, as long as /usr is not merged in every package.
    install -d "$stage/root/lib"
    mv "$stage/root/usr/lib/systemd" "$stage/root/lib/systemd"
    rm -r "$stage/root/usr/lib/sysusers.d" # the maintainer scripts make the users
    legal "$version"
    control "$version" "$architecture"
    rm -f bin/quadrille_*.deb
    dpkg-deb --root-owner-group --build "$stage/root" "$package" >"$stage/log" || { cat "$stage/log"; exit 1; }
    echo "$package ($(du -h "$package" | cut -f1)): apt install ./$package"
}

# What Debian's policy asks for below /usr/share/doc.
legal() {
    local documentation=$stage/root/usr/share/doc/quadrille
    {
        echo "quadrille ($1) unstable; urgency=medium"
        echo
        echo "  * See CHANGELOG.md."
        echo
        echo " -- $(maintainer)  $(date --utc --rfc-email --date "@$(git log -1 --format=%ct 2>/dev/null || date +%s)")"
    } | gzip -9n >"$documentation/changelog.Debian.gz"
    gzip -9nc CHANGELOG.md >"$documentation/changelog.gz"
    rm "$documentation/CHANGELOG.md"
    cp deploy/debian/copyright "$documentation/copyright"
    install -D -m 644 deploy/debian/lintian-overrides "$stage/root/usr/share/lintian/overrides/quadrille"
}

control() {
    local directory=$stage/root/DEBIAN
    install -d "$directory"
    sed -e "s|@VERSION@|$1|; s|@ARCHITECTURE@|$2|; s|@DEPENDS@|$(libraries)|; s|@MAINTAINER@|$(maintainer)|" \
        -e "s|@SIZE@|$(du -sk --exclude=DEBIAN "$stage/root" | cut -f1)|" deploy/debian/control.in >"$directory/control"
    echo /etc/quadrille/quadrille.yaml >"$directory/conffiles"
    install -m 755 deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm "$directory"
    (cd "$stage/root" && find . -type f ! -path './DEBIAN/*' ! -path './etc/*' -printf '%P\0' |
        sort -z | xargs -0 md5sum) >"$directory/md5sums"
}

# The packages of the libraries that the binaries are linked with.
libraries() {
    install -d "$stage/shlibs/debian"
    echo "Source: quadrille" >"$stage/shlibs/debian/control"
    (cd "$stage/shlibs" && dpkg-shlibdeps -O "$stage/root/usr/bin/quadrille" "$stage/root$provider" 2>/dev/null) |
        sed -n 's/^shlibs:Depends=//p'
}

maintainer() {
    echo "${DEBFULLNAME:-Quadrille} <${DEBEMAIL:-packages@localhost}>"
}

main "$@"
