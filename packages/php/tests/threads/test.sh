#!/usr/bin/env bash
# Tests the extension in a thread-safe PHP: the fields' suite in one thread, then concurrent requests in 16 threads.
# test.sh PREFIX: the directory where a thread-safe PHP with the embed SAPI is installed (scripts/build-php-zts.sh).
set -euo pipefail
cd "$(dirname "$0")/../../../.."
readonly prefix=$1
readonly php=$prefix/bin/php
target=${CARGO_TARGET_DIR:-target}/php-zts
folder=$(mktemp --directory)
readonly target folder
trap 'rm -rf "$folder"' EXIT
read -ra flags <<<"${CARGO_FLAGS-}"

main() {
    "$php" --version | head -1 | tee "$folder/version"
    grep --quiet --fixed-strings '(ZTS)' "$folder/version"
    PHP=$php PHP_CONFIG=$prefix/bin/php-config cargo build --release "${flags[@]}" \
        --manifest-path packages/php/extension/Cargo.toml --target-dir "$target"
    # A place where the tests can read it, as one file of a known name.
    install -m 644 "$target/release/libquadrille.so" "$folder/quadrille.so"
    "$php" -n -d "extension=$folder/quadrille.so" packages/php/tests/valgrind.php
    fields
    fields -dzend_extension=opcache -dopcache.enable_cli=1 -dopcache.jit=tracing -dopcache.jit_buffer_size=32M
    requests
}

# fields OPTION...: runs the suite with Debian's PHPUnit.
fields() {
    QUADRILLE_EXTENSION=$folder/quadrille.so "$php" -n -d include_path=.:/usr/share/php \
        -d "extension=$folder/quadrille.so" "$@" /usr/bin/phpunit --configuration packages/php/tests/phpunit.xml --testsuite fields
}

requests() {
    local includes
    read -ra includes <<<"$("$prefix/bin/php-config" --includes)"
    cc -O1 -Wall -DZEND_ENABLE_STATIC_TSRMLS_CACHE=1 "${includes[@]}" packages/php/tests/threads/host.c -o "$folder/host" \
        -L"$prefix/lib" -Wl,-rpath,"$prefix/lib" -lphp -lpthread
    cp packages/php/tests/threads/request.php "$folder"
    echo "extension=$folder/quadrille.so" >"$folder/php.ini"
    key() { printf "$1%.0s" {1..32} | base64; }
    printf 'quadrille field keys 1\nkey 3f9a01c2 active %s\nkey 3f9a01c3 decrypt-only %s\nindex %s\n' "$(key a)" "$(key b)" "$(key i)" \
        >"$folder/original.keys"
    install -m 600 "$folder/original.keys" "$folder/fields.keys"
    PHPRC=$folder/php.ini "$folder/host" 16 200 "$folder"
    local repeated
    repeated=$(sort "$folder/nonces" | uniq --repeated | wc --lines)
    echo "$(wc --lines <"$folder/nonces") nonces, $repeated of them twice"
    [[ $repeated -eq 0 ]]
}

main
