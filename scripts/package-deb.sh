#!/usr/bin/env bash
# Packs the output of `make build` into bin/quadrille_VERSION_ARCHITECTURE.deb, for the Debian release of the build.
set -euo pipefail
cd "$(dirname "$0")/.."

stage=$(mktemp -d)
readonly stage provider=/usr/lib/quadrille/quadrille-provider.so
trap 'rm -rf "$stage"' EXIT
# Modification time of all files and of the package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

main() {
    local version architecture package
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)-1
    architecture=$(dpkg --print-architecture)
    package=bin/quadrille_${version}_$architecture.deb
    umask 022
    DESTDIR=$stage/root PREFIX=/usr scripts/install.sh
    strip --strip-unneeded "$stage/root/usr/bin/quadrille" "$stage/root/usr/lib/quadrille/"*.so
    # Debian's units are below /lib, as long as /usr is not merged in every package.
    install -d "$stage/root/lib"
    mv "$stage/root/usr/lib/systemd" "$stage/root/lib/systemd"
    rm -r "$stage/root/usr/lib/sysusers.d" # the maintainer scripts create the users
    legal "$version"
    control "$version" "$architecture"
    rm -f bin/quadrille_*.deb
    find "$stage/root" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
    # One thread, because the output of xz depends on the number of threads.
    dpkg-deb --root-owner-group -Zxz -z6 --threads-max=1 --build "$stage/root" "$package" >"$stage/log" || { cat "$stage/log"; exit 1; }
    echo "$package ($(du -h "$package" | cut -f1)): apt install ./$package"
}

# Files required by Debian's policy below /usr/share/doc.
legal() {
    local documentation=$stage/root/usr/share/doc/quadrille
    {
        echo "quadrille ($1) unstable; urgency=medium"
        echo
        echo "  * See CHANGELOG.md."
        echo
        echo " -- $(maintainer)  $(date --utc --rfc-email --date "@$SOURCE_DATE_EPOCH")"
    } | gzip -9n >"$documentation/changelog.Debian.gz"
    # Debian's tools read changelog.gz; CHANGELOG.md stays, because pages link to it.
    gzip -9nc CHANGELOG.md >"$documentation/changelog.gz"
    cp deploy/debian/copyright "$documentation/copyright"
    install -D -m 644 deploy/debian/lintian-overrides "$stage/root/usr/share/lintian/overrides/quadrille"
}

control() {
    local directory=$stage/root/DEBIAN
    install -d "$directory"
    sed -e "s|@VERSION@|$1|; s|@ARCHITECTURE@|$2|; s|@DEPENDS@|$(libraries)|; s|@MAINTAINER@|$(maintainer)|" \
        -e "s|@SIZE@|$(size)|" deploy/debian/control.in >"$directory/control"
    printf '%s\n' /etc/quadrille/quadrille.yaml /etc/logrotate.d/quadrille >"$directory/conffiles"
    install -m 755 deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm "$directory"
    (cd "$stage/root" && find . -type f ! -path './DEBIAN/*' ! -path './etc/*' -printf '%P\0' |
        sort -z | xargs -0 md5sum) >"$directory/md5sums"
}

# Prints the installed size in KiB, as dpkg-gencontrol computes it: independent of the file system's blocks.
size() {
    find "$stage/root" -path "$stage/root/DEBIAN" -prune -o -type f -printf '%s\n' -o -printf '1\n' |
        awk '{ kib += int(($1 + 1023) / 1024) } END { print kib }'
}

# Prints the packages of the binaries' shared libraries.
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
