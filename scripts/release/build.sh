#!/usr/bin/env bash
# Builds the artifacts of a release in this clone, which is clean, into a folder: build.sh FOLDER. release.sh runs it with an
# environment of its own; SOURCE_DATE_EPOCH is the time of every file, and CARGO_TARGET_DIR lies outside the clone.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly output=$1
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
architecture=$(dpkg --print-architecture)
readonly version architecture
readonly registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
readonly binaries=quadrille-cli,quadrille-openssl-provider
# Debian packages that determine the output, as a regular expression.
readonly tools='apt-utils|binutils|ca-certificates|clang-[0-9]+|cmake|dpkg|g\+\+-[0-9]+|gcc-[0-9]+|git|gzip|libc6|libc6-dev|libgcc-s1|libstdc\+\+.*|tar|umoci|xz-utils'

main() {
    mkdir -p "$output" bin
    compile
    no_local_paths
    program_archive
    source_archive
    manual_archive
    chart
    debian_package
    image
    build_information
    repository
}

compile() {
    local host prefixes flags
    local -a maps
    host=$(rustc -vV | sed -n 's/^host: //p')
    cargo fetch --locked --target "$host"
    prefixes=$(prefixes)
    # mimalloc prints the date of its compilation in a message; clang 14 does not derive it from SOURCE_DATE_EPOCH.
    # shellcheck disable=SC2089 # the quotes are part of the value
    flags="-Wno-builtin-macro-redefined -D__DATE__=\"$(date --utc --date "@$SOURCE_DATE_EPOCH" +%F)\" -D__TIME__=\"00:00:00\""
    mapfile -t maps <<<"$prefixes"
    flags+=" ${maps[*]/#/-ffile-prefix-map=}"
    # RUSTFLAGS, even empty, takes precedence over flags in a user's cargo configuration.
    QUADRILLE_FUNCTION_ORDER=$(scripts/profile-guided/function-order.sh)
    export QUADRILLE_FUNCTION_ORDER
    QUADRILLE_PREFIXES=$prefixes RUSTC_WRAPPER=$PWD/scripts/release/rustc.sh RUSTFLAGS='' CFLAGS=$flags CXXFLAGS=$flags \
        cargo build --release --locked --package quadrille-cli --package quadrille-openssl-provider
    install -m 755 "$CARGO_TARGET_DIR/release/quadrille" bin/quadrille
    install -m 644 "$CARGO_TARGET_DIR/release/libquadrille_provider.so" bin/quadrille-provider.so
    strip --strip-unneeded bin/quadrille bin/quadrille-provider.so
}

# Prints lines of FROM=TO: folders of this machine, and their names in the compilers' output. Cargo has a folder for each registry,
# named after the registry's host.
prefixes() {
    local folder
    echo "$PWD=/quadrille"
    echo "$CARGO_TARGET_DIR=/target"
    for folder in "$registry"/*/; do
        echo "${folder%/}=/crates"
    done
    echo "$(rustc --print sysroot)/lib/rustlib/src/rust=/rustc/$(rustc -vV | sed -n 's/^commit-hash: //p')"
}

no_local_paths() {
    local folder
    for folder in "$PWD" "$CARGO_TARGET_DIR" "$registry"; do
        if grep --quiet --text --fixed-strings "$folder" bin/quadrille bin/quadrille-provider.so; then
            fail "$folder is in a program, which makes it depend on this machine: find the compiler that ignores the maps of" \
                "\`prefixes\` in scripts/release/build.sh with \`strings bin/quadrille | grep $folder\`"
        fi
    done
}

# Packs the part of the repository from which scripts/install.sh installs without a compiler.
program_archive() {
    local name=quadrille-$version-linux-$architecture
    local folder=$CARGO_TARGET_DIR/pack/$name
    python3 scripts/book.py install "$folder"
    cp --parents --recursive LICENSE bin/quadrille bin/quadrille-provider.so deploy docs/SUMMARY.md scripts/book.py \
        scripts/install.sh "$folder"
    archive "$name"
    bill "$name.tar.gz" --type application --crates "$binaries"
}

source_archive() {
    local name=quadrille-$version-source
    git -c tar.umask=0022 archive --format=tar --prefix="quadrille-$version/" HEAD | gzip -9n >"$output/$name.tar.gz"
    bill "$name.tar.gz" --type file --locked
}

manual_archive() {
    local name=quadrille-$version-man page
    local folder=$CARGO_TARGET_DIR/pack/$name
    bin/quadrille man "$folder"
    for page in "$folder"/*.[15]; do
        install -D -m 644 "$page" "$folder/man${page##*.}/$(basename "$page")"
        rm "$page"
    done
    archive "$name"
    bill "$name.tar.gz" --type file
}

# Packs the chart like `helm package`, with fixed times.
chart() {
    local found
    found=$(sed -n 's/^\(version\|appVersion\): //p' deploy/helm/quadrille/Chart.yaml | sort --unique)
    [[ $found == "$version" ]] || fail "deploy/helm/quadrille/Chart.yaml has the version $found: set \`version\` and \`appVersion\`" \
        "to $version, the version in Cargo.toml"
    pack deploy/helm quadrille "quadrille-chart-$version.tgz"
    bill "quadrille-chart-$version.tgz" --type file
}

# archive NAME: packs the folder `pack/NAME`.
archive() {
    pack "$CARGO_TARGET_DIR/pack" "$1" "$1.tar.gz"
}

# pack FOLDER ENTRY ARCHIVE
pack() {
    tar --create --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r,go-w --mtime="@$SOURCE_DATE_EPOCH" \
        --directory "$1" "$2" | gzip -9n >"$output/$3"
}

debian_package() {
    scripts/package-deb.sh
    cp bin/quadrille_*.deb "$output"
    bill "quadrille_$version-1_$architecture.deb" --type application --crates "$binaries"
}

image() {
    local name=quadrille_${version}_$architecture.oci.tar
    scripts/package-image.sh
    cp "bin/$name" "$output"
    # Debian packages with files in the image.
    local folder=$CARGO_TARGET_DIR/image layer
    mkdir -p "$folder/layout" "$folder/root"
    tar --extract --file "$output/$name" --directory "$folder/layout"
    for layer in "$folder"/layout/blobs/sha256/*; do
        if gzip --test "$layer" 2>/dev/null; then
            tar --extract --gzip --file "$layer" --directory "$folder/root" ./var/lib/dpkg/status.d
        fi
    done
    bill "$name" --type container --crates quadrille-cli --debian "$folder/root/var/lib/dpkg/status.d"
}

# bill ARTIFACT OPTION...
bill() {
    local artifact=$1
    shift
    python3 scripts/release/sbom.py "$output/$artifact" "$@"
}

# Lists the tools that another machine needs to build the same bytes.
build_information() {
    {
        echo "version: $version"
        echo "commit: $(git rev-parse HEAD)"
        echo "time: $SOURCE_DATE_EPOCH"
        rustc -vV | sed 's/^/rustc /'
        cargo --version
        clang --version | head -1
        dpkg-query --show --showformat='${db:Status-Status} ${Package} ${Version}\n' |
            sed -nE "s/^installed (($tools) .*)/package \1/p" | LC_ALL=C sort
    } >"$output/quadrille-$version-linux-$architecture.buildinfo"
}

# Lays out an apt repository with this one package. release.sh signs its Release file.
repository() {
    local root=$output/apt
    local index=dists/stable/main/binary-$architecture
    install -D -m 644 --target-directory "$root/pool/main/q/quadrille" "$output"/quadrille_*.deb
    mkdir -p "$root/$index"
    (
        cd "$root"
        apt-ftparchive packages pool >"$index/Packages"
        gzip -9nk "$index/Packages"
        apt-ftparchive -o APT::FTPArchive::Release::Origin=Quadrille -o APT::FTPArchive::Release::Label=Quadrille \
            -o APT::FTPArchive::Release::Suite=stable -o APT::FTPArchive::Release::Codename=stable \
            -o APT::FTPArchive::Release::Components=main -o APT::FTPArchive::Release::Architectures="$architecture" \
            release dists/stable >"$output/release"
        sed -i "s/^Date: .*/Date: $(date --utc --rfc-email --date "@$SOURCE_DATE_EPOCH")/" "$output/release"
        mv "$output/release" dists/stable/Release
    )
}

fail() {
    echo "release/build.sh: $*" >&2
    exit 1
}

main "$@"
