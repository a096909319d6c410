#!/usr/bin/env bash
# Builds a release twice, from two clones in different folders, with different target folders, registries, environments and umasks,
# and compares every artifact byte for byte. Then verifies signatures, the apt repository, the bills of materials, the links of the
# documentation, the chart, and that the archive of programs installs. The test creates its own keys and removes them.
#
# It tests the commit that is checked out, like release.sh. It takes about half an hour on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d "${TMPDIR:-/tmp}/quadrille-test-release.XXXXXX")
readonly work one=$work/one two=$work/two
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
architecture=$(dpkg --print-architecture)
readonly version architecture
export GNUPGHOME=$work/gnupg

main() {
    trap clean EXIT
    check "a working tree with changes is refused, with the remedy" changes_are_refused
    check "a version without a section in the changelog is refused" unreleased_version_is_refused
    check "a missing key is refused" missing_key_is_refused
    keys
    check "a release is built" first
    check "a release is built in another folder" second
    equal
    check "the list of checksums holds, and names every artifact" checksums_hold
    check "its signature holds, and not for another list" signature_holds
    check "apt reads the signed repository" apt_reads
    check "bills of materials are valid, and each artifact has two" bills_are_valid
    check "links of the documentation in the Debian package lead somewhere" links_exist
    check "the archive of programs installs without a compiler" archive_installs
    check "manual pages have no warnings" manual_pages_are_clean
    if command -v go >/dev/null; then
        check "Helm renders the chart" helm_renders
    else
        echo "SKIPPED: the packed chart: Helm is built by Go, which is not installed" >&2
    fi
    echo "test-release: $passed passed"
}

changes_are_refused() {
    git clone --quiet --shared . "$work/changed"
    touch "$work/changed/new-file"
    refused "new-file" "$work/changed/scripts/release.sh"
    rm "$work/changed/new-file"
}

unreleased_version_is_refused() {
    (
        cd "$work/changed"
        sed -i "s/^## \[$version\]/## [0.0.0]/" CHANGELOG.md
        git -c user.name=test -c user.email=test@localhost commit --quiet --all --message "Remove the section"
    )
    refused "CHANGELOG.md has no section" "$work/changed/scripts/release.sh"
}

missing_key_is_refused() {
    MINISIGN_KEY=$work/missing refused "minisign -G" scripts/release.sh
}

# refused WORDS COMMAND...
refused() {
    local words=$1
    shift
    if "$@" >"$work/refused" 2>&1; then
        echo "exit status 0 instead of a failure"
        return 1
    fi
    cat "$work/refused"
    grep --quiet --fixed-strings -- "$words" "$work/refused"
}

keys() {
    mkdir -m 700 "$GNUPGHOME"
    gpg --batch --quiet --passphrase '' --quick-generate-key "Test of a release <test@localhost>" ed25519 sign never
    minisign -G -W -p "$work/test.pub" -s "$work/test.key" >/dev/null
    export MINISIGN_KEY=$work/test.key GPG_KEY=test@localhost
}

first() {
    scripts/release.sh --work "$work/a" --output "$one"
}

# Builds with the same registry, unpacked elsewhere, and with another environment.
second() {
    local home=${CARGO_HOME:-$HOME/.cargo} other=$work/another/folder/cargo-home file
    mkdir -p "$other/registry"
    ln -s "$home/registry/index" "$home/registry/cache" "$other/registry/"
    for file in config config.toml credentials.toml; do
        [[ ! -f $home/$file ]] || cp "$home/$file" "$other/"
    done
    (
        umask 077
        export CARGO_HOME=$other TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 CFLAGS=-O0 RUSTFLAGS=-Cdebuginfo=2 SOURCE_DATE_EPOCH=1
        scripts/release.sh --work "$work/another/folder/with-a-longer-name" --output "$two"
    )
}

# Compares all files except the signatures of GnuPG, which contain their time.
equal() {
    local file different=0
    while IFS= read -r -d '' file; do
        if cmp --silent "$one/$file" "$two/$file"; then
            echo "equal $(sha256sum "$one/$file" | cut -c 1-16)  $file"
        else
            echo "DIFFERS: $file"
            different=$((different + 1))
        fi
    done < <(cd "$work" && find one two -type f ! -name InRelease ! -name Release.gpg -printf '%P\0' | LC_ALL=C sort -zu)
    [[ $different -eq 0 ]] || {
        keep=yes
        fail "$different files differ; they stay in $one and $two: compare them by diffoscope, and remove $work"
    }
    passed=$((passed + 1))
}

checksums_hold() {
    local listed
    (cd "$one" && sha256sum --check --quiet SHA256SUMS)
    listed=$(cut -c 67- "$one/SHA256SUMS" | grep --count --invert-match /)
    # The list itself, its signature and the key.
    [[ $listed == $(($(find "$one" -maxdepth 1 -type f | wc -l) - 3)) ]]
}

signature_holds() {
    minisign -V -q -p "$work/test.pub" -m "$one/SHA256SUMS"
    cp "$one/SHA256SUMS.minisig" "$work/changed.minisig"
    sed 's/^./0/' "$one/SHA256SUMS" >"$work/changed.sums"
    ! minisign -V -q -p "$work/test.pub" -m "$work/changed.sums" -x "$work/changed.minisig"
}

apt_reads() {
    local state=$work/apt
    mkdir -p "$state"/{lists/partial,archives/partial}
    # apt may read the repository as another user.
    chmod 755 "$work"
    echo "deb [signed-by=$one/apt/quadrille-archive-keyring.gpg] file:$one/apt stable main" >"$state/sources.list"
    local apt=(apt-get -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$state/lists"
        -o Dir::Cache::archives="$state/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=
        -o APT::Update::Error-Mode=any)
    "${apt[@]}" update
    (cd "$state" && "${apt[@]}" download "quadrille=$version-1")
    cmp "$state"/quadrille_*.deb "$one"/quadrille_*.deb
}

bills_are_valid() {
    local artifact
    for artifact in "$one"/*.{gz,tgz,deb,tar}; do
        [[ -f $artifact.cdx.json && -f $artifact.spdx.json ]] || { echo "$artifact lacks a bill of materials"; return 1; }
    done
    "$(scripts/install-tools.sh sbom-validators)/python3" scripts/release/validate_sbom.py "$one"/*.{cdx,spdx}.json
    grep --quiet '"pkg:deb/debian/libc6@' "$one"/*.oci.tar.cdx.json
}

links_exist() {
    dpkg-deb --extract "$one"/quadrille_*.deb "$work/installed"
    QUADRILLE_INSTALLED_PAGES=$work/installed/usr/share/doc/quadrille \
        cargo test --quiet --locked --package quadrille-structure --test installed_pages
}

archive_installs() {
    local name=quadrille-$version-linux-$architecture root=$work/prefix
    tar --extract --file "$one/$name.tar.gz" --directory "$work"
    (cd "$work/$name" && DESTDIR=$root PREFIX=/usr/local scripts/install.sh)
    "$root/usr/local/bin/quadrille" --version | grep "$version ($(git rev-parse --short=12 HEAD))"
    [[ -f $root/usr/local/share/man/man5/quadrille.yaml.5.gz && -f $root/usr/local/share/doc/quadrille/docs/guide/serving.md ]]
}

manual_pages_are_clean() {
    local page words
    tar --extract --file "$one/quadrille-$version-man.tar.gz" --directory "$work"
    for page in "$work/quadrille-$version-man"/man?/*; do
        words=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings --encoding=UTF-8 --local-file --troff-device=utf8 --ditroff \
            "$page" 2>&1 >/dev/null)
        [[ -z $words ]] || { echo "$page: $words"; return 1; }
    done
}

helm_renders() {
    "$(scripts/install-tools.sh helm)/helm" template try "$one/quadrille-chart-$version.tgz" \
        --kube-version 1.37.0 --set 'certificates[0].secretName=example-tls' | grep "image: .*quadrille:$version"
}

passed=0 keep=''
# check WHAT COMMAND...: shows the command's output if it fails.
check() {
    local what=$1 began=$SECONDS
    shift
    # In a condition, bash would continue after a command that fails.
    set +e
    (set -e && "$@") >"$work/output" 2>&1
    local status=$?
    set -e
    [[ $status -eq 0 ]] || { cat "$work/output" && fail "$what"; }
    echo "ok    $what ($((SECONDS - began)) s)"
    passed=$((passed + 1))
}

clean() {
    gpgconf --kill all 2>/dev/null || true
    [[ -n $keep ]] || rm -rf "$work"
}

fail() {
    echo "test-release: FAILED: $*" >&2
    exit 1
}

main "$@"
