#!/usr/bin/env bash
# Installs the Debian package into a fresh Debian 12, edits one line, checks that HTTPS responds, upgrades it, and purges it.
# debootstrap fetches the fresh Debian once, into the cache; the test needs root, for chroot.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly cache=${QUADRILLE_CACHE:?run it by \`make test-deb\`}/debian
readonly suite=bookworm
root=$(mktemp -d "${TMPDIR:-/tmp}/quadrille-deb.XXXXXX")
readonly root
pids=()

main() {
    [[ $(id -u) == 0 ]] || fail "run it as root: a chroot is needed"
    local package
    package=$(echo bin/quadrille_*.deb)
    [[ -f $package ]] || fail "there is no package: run \`make deb\` first"
    trap clean EXIT
    check "lintian reports nothing" lintian_is_silent "$package"
    fresh_debian
    cp "$package" "$root/quadrille.deb"
    check "it installs" inside apt-get install --yes --no-install-recommends /quadrille.deb
    check "the command runs" inside quadrille --version
    check "its manual page is installed" test -f "$root/usr/share/man/man1/quadrille-serve.1.gz"
    check "the configuration's manual page is installed" test -f "$root/usr/share/man/man5/quadrille.yaml.5.gz"
    check "OpenSSL finds the provider" provider_is_found
    check "the unit's command serves HTTPS, as its user, after one line was edited" serves
    check "the key server's user can read its group's files, and others cannot" keys_are_separate
    next_version "$package"
    check "it upgrades" inside apt-get install --yes /next.deb
    check "the edited configuration is kept" grep --quiet "127.0.0.1:$upstream" "$root/etc/quadrille/quadrille.yaml"
    rm "$root/etc/quadrille/quadrille.yaml"
    check "it is reinstalled after its configuration was removed" inside apt-get install --reinstall --yes /next.deb
    check "it is purged" inside apt-get purge --yes quadrille
    check "and leaves no files" nothing_is_left
    echo "test-deb: $passed passed"
}

fresh_debian() {
    local tarball=$cache/$suite.tar.gz
    if [[ ! -f $tarball ]]; then
        echo "fetching a fresh Debian ($suite)"
        mkdir -p "$cache"
        debootstrap --variant=minbase "$suite" "$root" >"$cache/debootstrap.log" || fail "see $cache/debootstrap.log"
        tar --create --gzip --file "$tarball.part" --directory "$root" .
        mv "$tarball.part" "$tarball"
    else
        tar --extract --gzip --file "$tarball" --directory "$root"
    fi
    chmod 755 "$root" # mktemp created it for one user
    # Uses this machine's mirror, proxy and trusted keys.
    cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    cp -rL /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
    inside apt-get update --quiet=2
}

inside() {
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        HOME=/root ${http_proxy:+http_proxy="$http_proxy"} chroot "$root" "$@"
}

lintian_is_silent() {
    local found
    found=$(lintian --allow-root --fail-on none --display-level '>=warning' "$1" 2>&1) || true
    [[ -z $found ]] || { echo "$found"; return 1; }
}

provider_is_found() {
    inside apt-get install --yes --no-install-recommends openssl >/dev/null || return 1
    inside openssl list -providers -provider quadrille | grep --quiet quadrille
}

readonly port=18443 upstream=18080

serves() {
    local configuration=$root/etc/quadrille/quadrille.yaml
    sed -i "s|127.0.0.1:8080|127.0.0.1:$upstream|" "$configuration"
    # A separate port, since the machine's 443 may be in use.
    sed -i "s|0.0.0.0:443|127.0.0.1:$port|" "$configuration"
    (cd "$root/usr/share/doc/quadrille" && exec python3 -m http.server --bind 127.0.0.1 "$upstream" >/dev/null 2>&1) &
    pids+=($!)
    local pre start
    pre=$(sed -n 's/^ExecStartPre=//p' "$root/lib/systemd/system/quadrille.service")
    start=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/quadrille.service")
    # shellcheck disable=SC2086 # a command line
    inside runuser --user quadrille -- $pre || return 1
    # shellcheck disable=SC2086
    inside runuser --user quadrille -- $start >"$root/log" 2>&1 &
    pids+=($!)
    local attempt
    for attempt in {1..50}; do
        if curl --silent --show-error --fail --insecure "https://127.0.0.1:$port/README.md" 2>"$root/curl" |
            grep --quiet Quadrille; then
            return 0
        fi
        sleep 0.2
    done
    echo "after $attempt attempts: $(cat "$root/curl" "$root/log")"
    return 1
}

keys_are_separate() {
    local key=/etc/quadrille-keyserver/a.key
    install -m 640 /dev/null "$root$key"
    inside chown root:quadrille-keyserver "$key"
    inside runuser --user quadrille-keyserver -- cat "$key" || return 1
    if inside runuser --user quadrille -- cat "$key" 2>/dev/null; then
        echo "the gateway's user can read the key server's keys"
        return 1
    fi
    rm "$root$key"
}

# Builds the same package with a later version.
next_version() {
    local unpacked=$root/unpacked
    dpkg-deb --raw-extract "$1" "$unpacked"
    sed -i 's/^Version: .*/&+later/' "$unpacked/DEBIAN/control"
    dpkg-deb --root-owner-group --build "$unpacked" "$root/next.deb" >/dev/null
    rm -r "$unpacked"
}

nothing_is_left() {
    local left
    left=$(find "$root/etc" "$root/usr" "$root/lib" "$root/var/lib/dpkg/info" "$root/var/log" -name '*quadrille*')
    [[ -z $left ]] || { echo "$left"; return 1; }
}

passed=0
# check WHAT COMMAND...: shows its output if it fails.
check() {
    local what=$1 output=$root.output
    shift
    if "$@" >"$output" 2>&1; then
        echo "ok    $what"
        passed=$((passed + 1))
    else
        cat "$output"
        fail "$what"
    fi
}

clean() {
    local pid
    for pid in "${pids[@]}"; do
        pkill --parent "$pid" 2>/dev/null || true
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -rf "$root" "$root.output"
}

fail() {
    echo "test-deb: FAILED: $*" >&2
    exit 1
}

main "$@"
