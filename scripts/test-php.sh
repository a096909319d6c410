#!/usr/bin/env bash
# Tests the encrypted fields in PHP: bin/quadrille.so and the implementation in PHP, with opcache and JIT on and off; the
# extension under valgrind; the package for PECL and PIE; the worked application with MariaDB, PostgreSQL, nginx and
# php-fpm. Each part prints a line like cargo's tests, even after a failure.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
readonly php=/usr/bin/php8.2

QUADRILLE_EXTENSION=$PWD/bin/quadrille.so
QUADRILLE_BINARY=${QUADRILLE_BINARY:-${CARGO_TARGET_DIR:-target}/debug/quadrille}
export QUADRILLE_EXTENSION QUADRILLE_BINARY
results=$(mktemp --directory)
trap 'rm -rf "$results"' EXIT
failed=0

main() {
    local extension=-dextension=$QUADRILLE_EXTENSION
    local opcache=(-dopcache.enable_cli=1 -dopcache.jit=off)
    local jit=(-dopcache.enable_cli=1 -dopcache.jit=tracing -dopcache.jit_buffer_size=32M)
    suite "extension" fields "$extension"
    suite "extension, opcache" fields "$extension" "${opcache[@]}"
    suite "extension, opcache and JIT" fields "$extension" "${jit[@]}"
    QUADRILLE_CPU=portable suite "extension, portable cipher" fields "$extension"
    suite "PHP" fields
    suite "PHP, opcache and JIT" fields "${jit[@]}"
    suite "README" readme "$extension"
    part "extension under valgrind" under_valgrind
    part "package for PECL and PIE" packages/php/tests/package/test.sh
    thread_safe
    suite "application" application
    return "$failed"
}

# suite NAME SUITE OPTION...: a suite of packages/php/tests/phpunit.xml, with options for PHP.
suite() {
    local name=$1 suite=$2 report=$results/junit.xml
    shift 2
    echo "== php: $name"
    rm -f "$report"
    "$php" "$@" /usr/bin/phpunit --configuration packages/php/tests/phpunit.xml --testsuite "$suite" --log-junit "$report"
    local status=$?
    # The first line with numbers is the total.
    count "$name" "$status" "$report"
}

count() {
    local name=$1 status=$2 report=$3 numbers
    numbers=$(grep --max-count=1 '<testsuite ' "$report" 2>/dev/null)
    number() { sed --quiet "s/.* $1=\"\([0-9]*\)\".*/\1/p" <<<"$numbers"; }
    local tests bad skipped
    tests=$(number tests) skipped=$(number skipped)
    bad=$(($(number errors) + $(number failures) + 0))
    [[ $status -eq 0 || $bad -gt 0 ]] || bad=1
    tell "$name" "$((${tests:-0} - bad - ${skipped:-0}))" "$bad" "${skipped:-0}"
}

# Debian has no such PHP, and building one takes minutes.
thread_safe() {
    local prefix
    if prefix=$(scripts/build-php-zts.sh --cached); then
        part "thread-safe PHP" packages/php/tests/threads/test.sh "$prefix"
    else
        echo "SKIPPED: no thread-safe PHP to test the extension with: make test-php-zts builds one"
    fi
}

# part NAME COMMAND...
part() {
    local name=$1
    shift
    echo "== php: $name"
    if "$@"; then tell "$name" 1 0 0; else tell "$name" 0 1 0; fi
}

# Cargo's format, so that scripts/test.sh adds it up.
tell() {
    [[ $3 -eq 0 ]] || { echo "test php: $1 ... FAILED" && failed=1; }
    echo "test result: $([[ $3 -eq 0 ]] && echo ok || echo FAILED). $2 passed; $3 failed; $4 ignored; php: $1"
}

# Uses malloc in place of PHP's own allocator, so that valgrind sees each string.
under_valgrind() {
    USE_ZEND_ALLOC=0 ZEND_DONT_UNLOAD_MODULES=1 valgrind --quiet --leak-check=full --show-leak-kinds=definite \
        --errors-for-leak-kinds=definite --error-exitcode=9 \
        "$php" -n -d "extension=$QUADRILLE_EXTENSION" packages/php/tests/valgrind.php
}

main
