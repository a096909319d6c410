#!/usr/bin/env bash
# Installs the output of `make build`: the command, the OpenSSL provider, manual pages, completions, systemd units,
# documentation, and an initial configuration. PREFIX (/usr/local) and DESTDIR as usual.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly root=${DESTDIR-} prefix=${PREFIX:-/usr/local}
readonly sysconf=${SYSCONFDIR:-/etc}
readonly command=bin/quadrille provider=bin/quadrille-provider.so
# Only if built by `make nginx-module`, for this machine's nginx.
readonly nginx_module=bin/ngx_quadrille_async_module.so

main() {
    [[ -x $command && -f $provider ]] || fail "there is no $command or no $provider: run \`make build\` first"
    [[ -w ${root:-$prefix} || -n $root ]] || fail "cannot write to $prefix: run it by sudo, or give another PREFIX="
    file 755 "$command" "$prefix/bin/quadrille"
    file 644 "$provider" "$prefix/lib/quadrille/quadrille-provider.so"
    module_link
    [[ ! -f $nginx_module ]] || file 644 "$nginx_module" "$prefix/lib/quadrille/$(basename "$nginx_module")"
    pages
    completions
    units
    documentation
    configuration
    [[ -n $root ]] || next_steps
}

# file MODE FROM TO
file() {
    install -D -m "$1" "$2" "$root$3"
}

# OpenSSL looks for `-provider quadrille` in a single directory, which belongs to the distribution.
module_link() {
    local found
    [[ $prefix == /usr ]] && found=$(openssl version -m 2>/dev/null) && [[ $found == *'"'*'"' ]] || return 0
    found=${found#*\"}
    found=${found%\"}
    install -d "$root$found"
    ln -srf "$root$prefix/lib/quadrille/quadrille-provider.so" "$root$found/quadrille.so"
}

pages() {
    local directory
    directory=$(mktemp -d)
    "$command" man "$directory"
    local page
    for page in "$directory"/*.[15]; do
        gzip -9n "$page"
        file 644 "$page.gz" "$prefix/share/man/man${page##*.}/$(basename "$page").gz"
    done
    rm -rf "$directory"
}

completions() {
    local script
    script=$(mktemp)
    "$command" completions bash >"$script"
    file 644 "$script" "$prefix/share/bash-completion/completions/quadrille"
    "$command" completions zsh >"$script"
    file 644 "$script" "$prefix/share/zsh/vendor-completions/_quadrille"
    "$command" completions fish >"$script"
    file 644 "$script" "$prefix/share/fish/vendor_completions.d/quadrille.fish"
    rm -f "$script"
}

# Units of the distribution's packages are below /usr/lib, those of an administrator below /usr/local/lib.
units() {
    local unit
    for unit in quadrille quadrille-keyserver; do
        sed "s|/usr/bin/quadrille|$prefix/bin/quadrille|; s|/usr/share/doc|$prefix/share/doc|" \
            "deploy/systemd/$unit.service" >"deploy/systemd/.$unit"
        file 644 "deploy/systemd/.$unit" "$prefix/lib/systemd/system/$unit.service"
        rm "deploy/systemd/.$unit"
    done
    file 644 deploy/systemd/quadrille.sysusers "$prefix/lib/sysusers.d/quadrille.conf"
}

# Installs all pages, and the files that they link to, with their paths in the repository, since links are relative.
documentation() {
    local folder=$root$prefix/share/doc/quadrille page
    if command -v python3 >/dev/null; then
        (umask 022 && python3 scripts/book.py install "$folder")
        return
    fi
    echo "install.sh: python3 is not installed: links from the documentation to source files will be broken" >&2
    find README.md CHANGELOG.md SECURITY.md SOUNDNESS.md ARCHITECTURE.md docs examples -type f | while IFS= read -r page; do
        file 644 "$page" "${folder#"$root"}/$page"
    done
}

# An existing configuration is kept: it belongs to the administrator.
configuration() {
    [[ -e $root$sysconf/quadrille/quadrille.yaml ]] ||
        file 644 deploy/quadrille.yaml "$sysconf/quadrille/quadrille.yaml"
    [[ -e $root$sysconf/logrotate.d/quadrille ]] ||
        file 644 deploy/logrotate/quadrille "$sysconf/logrotate.d/quadrille"
    install -d -m 755 "$root$sysconf/quadrille-keyserver"
}

next_steps() {
    cat <<TEXT
installed below $prefix. Next:
  sudo systemd-sysusers && sudo systemctl daemon-reload
  sudo usermod --append --groups ssl-cert quadrille    # if keys belong to that group, as on Debian
  sudoedit $sysconf/quadrille/quadrille.yaml           # your certificate, and your application's address
  quadrille check $sysconf/quadrille/quadrille.yaml && sudo systemctl enable --now quadrille
TEXT
}

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

main "$@"
