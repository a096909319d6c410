#!/usr/bin/env bash
# Tests the package for PECL and PIE as installed on a server: PEAR's own check, `pecl install` into separate folders, and
# the steps of `pie install` (phpize, configure, make, make install). The installed extension is then loaded.
# test.sh [PHP-CONFIG]
set -euo pipefail
cd "$(dirname "$0")/../../../.."
readonly php_config=${1:-/usr/bin/php-config8.2}
php=$("$php_config" --php-binary)
phpize=$(dirname "$php_config")/$(basename "$php_config" | sed 's/php-config/phpize/')
folder=$(mktemp --directory)
readonly php phpize folder
trap 'rm -rf "$folder"' EXIT
# One target folder for both, and that of `make php`, so that crates are compiled once.
CARGO_TARGET_DIR=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR

main() {
    scripts/package-pecl.sh
    local package
    package=$(realpath bin/quadrille-*.tgz)
    by_pie "$package"
    if command -v pecl >/dev/null; then
        by_pecl "$package"
    else
        echo "SKIPPED: php-pear is not installed: PECL does not check the package"
    fi
}

# The steps of PIE for a composer.json of the type php-ext.
by_pie() {
    echo "-- phpize, configure, make, make install"
    tar --extract --file "$1" --directory "$folder" --exclude package.xml
    cd "$folder"/quadrille-*
    # shellcheck disable=SC2016
    "$php" -n -r '
        $package = json_decode(file_get_contents("composer.json"), flags: JSON_THROW_ON_ERROR);
        exit($package->type === "php-ext" && $package->{"php-ext"}->{"extension-name"} === "quadrille" ? 0 : 1);'
    quietly "$phpize"
    # Called by its bare name, as by PECL, which failed once.
    PATH=$(dirname "$php_config"):$PATH quietly ./configure --with-php-config="$(basename "$php_config")" --enable-quadrille
    quietly make
    quietly make install INSTALL_ROOT="$folder/root"
    cd - >/dev/null
    loads "$folder/root$("$php_config" --extension-dir)/quadrille.so"
}

by_pecl() {
    echo "-- pecl install"
    # The system's PEAR is not read or written, nor PHP's extension folder, which PECL gets from php-config.
    local pecl=(pecl -C "$folder/pearrc" -c "$folder/pearrc") installed=$folder/installed
    quietly pear config-create "$folder/pear" "$folder/pearrc"
    mkdir "$folder/bin"
    ln --symbolic "$phpize" "$folder/bin/phpize"
    cat >"$folder/bin/php-config" <<EOF
#!/bin/sh
case \$1 in
    --prefix) echo "$installed" ;;
    --extension-dir) echo "$installed/modules" ;;
    *) exec "$php_config" "\$@" ;;
esac
EOF
    chmod +x "$folder/bin/php-config"
    quietly "${pecl[@]}" config-set php_prefix "$folder/bin/"
    "${pecl[@]}" package-validate "$1" | tee "$folder/said"
    grep --quiet 'Validation: 0 error(s), 0 warning(s)' "$folder/said"
    quietly "${pecl[@]}" install "$1" </dev/null
    loads "$installed/modules/quadrille.so"
}

# Prints the output of failed commands only.
quietly() {
    "$@" >"$folder/log" 2>&1 || { cat "$folder/log"; echo "failed: $*"; exit 1; }
}

loads() {
    "$php" -n -d "extension=$1" packages/php/tests/valgrind.php
}

main
