#!/usr/bin/env bash
# Packs the PHP extension's sources for PECL and PIE into bin/quadrille-VERSION.tgz: package.xml for `pecl install`,
# composer.json for `pie install`, the extension, and the crate of the fields. No other part of this repository is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra flags <<<"${CARGO_FLAGS-}"

readonly extension=packages/php/extension
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$extension/Cargo.toml" | head -1)
stage=$(mktemp -d)
readonly version stage root=$stage/quadrille-$version
trap 'rm -rf "$stage"' EXIT

main() {
    umask 022
    mkdir "$root"
    cp -r "$extension"/{Cargo.lock,Makefile.frag,composer.json,config.m4,src} "$root"
    cp LICENSE CHANGELOG.md packages/php/README.md packages/php/stubs/quadrille.php "$root"
    fields
    # Outside of the extension's workspace, whose lock file would otherwise contain the dependencies of the crate's tests.
    sed 's|path = "../../../crates/field"|path = "field"|; s|^\[workspace\]$|&\nexclude = ["field"]|' \
        "$extension/Cargo.toml" >"$root/Cargo.toml"
    grep --quiet 'path = "field"' "$root/Cargo.toml"
    describe >"$stage/package.xml"
    cp "$stage/package.xml" "$root"
    rm -f bin/quadrille-*.tgz
    mkdir -p bin
    # PECL's layout: package.xml, and the rest below a folder.
    tar --create --gzip --file "bin/quadrille-$version.tgz" --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime="@$(changed)" --directory "$stage" package.xml "quadrille-$version"
    echo "bin/quadrille-$version.tgz: pecl install ./bin/quadrille-$version.tgz"
}

# Copies the crate as cargo would publish it, without the workspace that it inherits from.
fields() {
    cargo package --quiet "${flags[@]}" --package quadrille-field --no-verify --exclude-lockfile --allow-dirty \
        --no-metadata --target-dir "$stage/crate"
    mkdir "$root/field"
    tar --extract --file "$stage"/crate/package/quadrille-field-*.crate --directory "$root/field" --strip-components=1
    rm -f "$root/field"/{Cargo.toml.orig,.cargo_vcs_info.json}
}

describe() {
    sed -e "s|@VERSION@|$version|; s|@DATE@|$(date --utc --date "@$(changed)" +%F)|" \
        -e "s|@NAME@|${DEBFULLNAME:-Quadrille}|; s|@EMAIL@|${DEBEMAIL:-packages@localhost}|" \
        -e "/@FILES@/ {
            r $(contents)
            d
        }" "$extension/package.xml.in"
}

contents() {
    (cd "$root" && find . -type f -printf '%P\n' | sort) | while read -r file; do
        case $file in
            *.md | LICENSE) role=doc ;;
            *) role=src ;;
        esac
        echo "            <file name=\"$file\" role=\"$role\"/>"
    done >"$stage/contents"
    echo "$stage/contents"
}

changed() {
    git log -1 --format=%ct 2>/dev/null || date +%s
}

main
