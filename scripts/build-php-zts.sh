#!/usr/bin/env bash
# Builds a thread-safe PHP, which Debian does not provide, from Debian's sources, once, and prints its folder. It includes the
# embed SAPI, for the tests. Takes some minutes of CPU.
#
# build-php-zts.sh --cached: prints the folder if it exists, and fails silently otherwise.
set -euo pipefail

folder=${QUADRILLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quadrille}/php-zts
readonly folder prefix=$folder/8.2

main() {
    if [[ ! -e $folder/complete ]]; then
        [[ ${1-} != --cached ]] || exit 1
        rm -rf "$folder"
        mkdir -p "$folder"
        fetch >&2
        build >&2
        rm -rf "$folder/source"
        touch "$folder/complete"
    fi
    echo "$prefix"
}

# Uses a separate apt configuration, because the system's may lack sources.
fetch() {
    local apt=$folder/source/apt
    mkdir -p "$apt"/{sources,lists/partial,cache/archives/partial}
    cat >"$apt/sources/debian.sources" <<'EOF'
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
EOF
    local options=(--quiet --quiet -o APT::Sandbox::User="" -o Dir::Etc::SourceList=/dev/null
        -o Dir::Etc::SourceParts="$apt/sources" -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache")
    cd "$folder/source"
    apt-get "${options[@]}" update
    # apt checks the hashes of its downloads against the signed index.
    apt-get "${options[@]}" --download-only source php8.2
    tar --extract --file php8.2_*.orig.tar.xz --strip-components=1
}

# Only what the tests and PHPUnit require.
build() {
    local with=(--enable-ctype --enable-dom --enable-mbstring --disable-mbregex --enable-opcache --enable-pcntl --enable-posix
        --enable-tokenizer --enable-xml --enable-xmlwriter --with-libxml --with-openssl)
    {
        ./buildconf --force &&
            ./configure --prefix="$prefix" --disable-all --enable-zts --enable-embed=shared --disable-cgi --disable-phpdbg \
                "${with[@]}" CFLAGS="-O1" &&
            make -j"$(nproc)" &&
            make install
    } >"$folder/log" 2>&1 || { tail -30 "$folder/log"; exit 1; }
}

main "$@"
