#!/usr/bin/env bash
# Builds the module for Debian's nginx, as bin/ngx_quadrille_async_module.so.
#
# NGINX_SOURCE=DIR   build for the nginx with this source folder and its configure; it must have been configured
#                    --with-compat, and the module loads into that version only
set -euo pipefail
cd "$(dirname "$0")/.."
readonly module=$PWD/nginx-module
readonly out=bin/ngx_quadrille_async_module.so
readonly build=${CARGO_TARGET_DIR:-$PWD/target}/nginx-module

main() {
    mkdir -p "$build"
    local source=${NGINX_SOURCE:-}
    [[ -n $source ]] || source=$(debian_source)
    configure_once "$source"
    cd "$build/nginx"
    make -f objs/Makefile objs/ngx_quadrille_async_module.so >"$build/make.log" 2>&1 || fail "the compiler" "$build/make.log"
    cd "$OLDPWD"
    install -m 644 "$build/nginx/objs/ngx_quadrille_async_module.so" "$build/"
    install -D -m 644 "$build/ngx_quadrille_async_module.so" "$out"
    echo "$out: load it in nginx.conf with 'load_module $PWD/$out;'"
}

# configure writes into the source folder, and takes longer than the compiler.
configure_once() {
    local made_of
    made_of="$1 $(sha256sum "$module/config")"
    [[ ! -f $build/made-of || $(<"$build/made-of") != "$made_of" ]] || return 0
    # Debian's options; its other options do not affect modules.
    local flags=(--with-compat --with-pcre-jit --with-threads --with-http_ssl_module --with-http_v2_module)
    flags+=(--with-stream=dynamic --with-stream_ssl_module --with-stream_ssl_preread_module)
    rm -rf "$build/nginx" "$build/made-of"
    cp --recursive "$1" "$build/nginx"
    (cd "$build/nginx" && ./configure "${flags[@]}" --add-dynamic-module="$module" \
        --with-cc-opt="-O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -fPIC" >"$build/configure.log") ||
        fail configure "$build/configure.log"
    echo "$made_of" >"$build/made-of"
}

# The headers of exactly the installed nginx. Their package depends on many libraries for other modules that this module does
# not need: it is unpacked, not installed.
debian_source() {
    local version folder
    version=$(dpkg-query --show --showformat '${source:Version}' nginx)
    folder=$build/nginx-dev-$version
    if [[ ! -d $folder ]]; then
        (cd "$build" && apt-get --quiet --quiet download "nginx-dev=$version" 1>&2)
        dpkg-deb --extract "$build"/nginx-dev_"$version"_all.deb "$folder.part"
        mv "$folder.part" "$folder"
        rm -f "$build"/nginx-dev_*.deb
    fi
    echo "$folder/usr/share/nginx/src"
}

# fail COMMAND LOG
fail() {
    tail --lines=40 "$2" >&2
    echo "build-nginx-module.sh: $1 failed; its output is in $2" >&2
    exit 1
}

main
