#!/usr/bin/env bash
# Builds a release of the commit that is checked out into bin/release, from a clean clone of it, reproducibly: the artifacts depend
# only on the commit and on the versions of the tools, which the file *.buildinfo lists.
#
# release.sh [--output FOLDER] [--work FOLDER]
#   --output  output folder in place of bin/release; its contents are replaced
#   --work    folder for the clone and the build, some 3 GB, which is removed at the end; by default a temporary folder
#
# MINISIGN_KEY=FILE signs the list of checksums; the public key is next to it, with `.pub` in place of `.key`.
# GPG_KEY=ID signs the apt repository. This script never creates a key.
set -euo pipefail
cd "$(dirname "$0")/.."

output=$PWD/bin/release
work=''

main() {
    options "$@"
    commit=$(git rev-parse HEAD)
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
    readonly output commit version
    tree_is_clean
    version_is_released
    keys_are_there
    umask 022
    work=${work:-$(mktemp -d "${TMPDIR:-/tmp}/quadrille-release.XXXXXX")}
    readonly work
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work/tmp"
    clone
    sealed "$work/clone/scripts/release/build.sh" "$work/artifacts"
    checksums
    sign
    rm -rf "$output"
    mkdir -p "$(dirname "$output")"
    mv "$work/artifacts" "$output"
    tell
}

options() {
    while [[ $# -gt 0 ]]; do
        [[ $# -ge 2 ]] || fail "$1 needs a folder"
        case $1 in
            --output) output=$(realpath --canonicalize-missing "$2") ;;
            --work) work=$(realpath --canonicalize-missing "$2") ;;
            *) fail "unknown option $1 (there are: --output, --work)" ;;
        esac
        shift 2
    done
    [[ -z $work || ! -e $work ]] || fail "--work $work exists, and would be removed at the end: name a folder that does not exist"
    # Compilers receive these paths in lists that are separated by spaces.
    [[ $work != *[[:space:]]* ]] || fail "--work $work contains a space: name another folder"
}

tree_is_clean() {
    local changes
    changes=$(git status --porcelain)
    [[ -z $changes ]] || fail "the working tree has changes that are not in a commit: commit them, or remove them by \`git stash" \
        "--include-untracked\`"$'\n'"$(head -5 <<<"$changes")"
}

version_is_released() {
    local tags
    grep --quiet "^## \[$version\] - [0-9]" CHANGELOG.md ||
        fail "CHANGELOG.md has no section \`## [$version] - DATE\`: add it below \`## [Unreleased]\`, or set the version in Cargo.toml"
    tags=$(git tag --points-at HEAD 'v*')
    [[ -z $tags || $'\n'$tags$'\n' == *$'\n'"v$version"$'\n'* ]] ||
        fail "this commit has the tag $tags, and Cargo.toml has the version $version: tag it v$version, or set the version"
    if git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null && [[ $(git rev-parse "v$version^{commit}") != "$commit" ]]; then
        fail "the tag v$version is on another commit: check it out by \`git checkout v$version\`, or set the next version in Cargo.toml"
    fi
}

keys_are_there() {
    [[ -z ${MINISIGN_KEY-} || -f $MINISIGN_KEY ]] || fail "MINISIGN_KEY=$MINISIGN_KEY is not a file: make a key by \`minisign -G -p" \
        "quadrille.pub -s quadrille.key\`, or leave MINISIGN_KEY out"
    [[ -z ${GPG_KEY-} ]] || gpg --batch --list-secret-keys "$GPG_KEY" >/dev/null 2>&1 ||
        fail "GPG_KEY=$GPG_KEY is not a secret key of gpg: \`gpg --list-secret-keys\` lists them"
}

clone() {
    # The repository's attributes determine line ends, not the user's settings.
    git clone --quiet --shared --no-checkout --config core.autocrlf=false . "$work/clone"
    git -C "$work/clone" checkout --quiet --detach "$commit"
}

# sealed COMMAND...: runs it with the variables that locate the tools, the registry and the maintainer, and without the caller's others.
sealed() {
    local name kept=()
    for name in PATH HOME CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN DEBFULLNAME DEBEMAIL SSL_CERT_FILE SSL_CERT_DIR \
        http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY \
        "${!CARGO_HTTP_@}" "${!CARGO_NET_@}" "${!CARGO_REGISTRIES_@}" "${!CARGO_REGISTRY_@}" "${!CARGO_SOURCE_@}"; do
        [[ -z ${!name-} ]] || kept+=("$name=${!name}")
    done
    env --ignore-environment "${kept[@]}" LC_ALL=C TZ=UTC TMPDIR="$work/tmp" CARGO_TARGET_DIR="$work/target" \
        SOURCE_DATE_EPOCH="$(git log -1 --format=%ct "$commit")" "$@"
}

# Lists all files except signatures, so that a build without the keys has the same list.
checksums() {
    (cd "$work/artifacts" && find . -type f -printf '%P\0' | LC_ALL=C sort --zero-terminated | xargs --null sha256sum) >"$work/sums"
    mv "$work/sums" "$work/artifacts/SHA256SUMS"
}

sign() {
    local dists=$work/artifacts/apt/dists/stable public
    if [[ -n ${MINISIGN_KEY-} ]]; then
        minisign -S -s "$MINISIGN_KEY" -m "$work/artifacts/SHA256SUMS" -t "Quadrille $version, commit $commit"
        public=${MINISIGN_KEY%.key}.pub
        if [[ -f $public ]]; then
            minisign -V -q -p "$public" -m "$work/artifacts/SHA256SUMS"
            install -m 644 "$public" "$work/artifacts/minisign.pub"
        fi
    fi
    if [[ -n ${GPG_KEY-} ]]; then
        gpg --batch --yes --local-user "$GPG_KEY" --clear-sign --output "$dists/InRelease" "$dists/Release"
        gpg --batch --yes --local-user "$GPG_KEY" --armor --detach-sign --output "$dists/Release.gpg" "$dists/Release"
        gpg --batch --yes --export --output "$work/artifacts/apt/quadrille-archive-keyring.gpg" "$GPG_KEY"
    fi
}

tell() {
    echo
    echo "Quadrille $version, commit $commit, in $output:"
    (cd "$output" && find . -maxdepth 1 -type f -printf '  %9s  %P\n' | LC_ALL=C sort --key=2)
    [[ -n $(git tag --points-at "$commit" "v$version") ]] ||
        echo "The commit has no tag. To publish it: git tag --sign v$version --message 'Quadrille $version' $commit"
    [[ -n ${GPG_KEY-} ]] || echo "The apt repository is not signed: set GPG_KEY=ID."
    echo "To verify, in that folder:"
    if [[ -n ${MINISIGN_KEY-} ]]; then
        echo "  minisign -V -p minisign.pub -m SHA256SUMS && sha256sum --check --quiet SHA256SUMS"
    else
        echo "  sha256sum --check --quiet SHA256SUMS    # not signed: set MINISIGN_KEY=FILE"
    fi
}

fail() {
    echo "release.sh: $*" >&2
    exit 1
}

main "$@"
