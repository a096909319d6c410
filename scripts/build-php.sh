#!/usr/bin/env bash
# Builds the PHP extension for Debian's PHP as bin/quadrille.so.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra flags <<<"${CARGO_FLAGS-}"

# Not PHP's default version, which may be another.
export PHP=/usr/bin/php8.2 PHP_CONFIG=/usr/bin/php-config8.2
target=${CARGO_TARGET_DIR:-target}/php

cargo build --release "${flags[@]}" --manifest-path packages/php/extension/Cargo.toml --target-dir "$target"
install -D -m 644 "$target/release/libquadrille.so" bin/quadrille.so
echo "bin/quadrille.so: load it with 'extension=$PWD/bin/quadrille.so' in php.ini, or from $("$PHP_CONFIG" --extension-dir)"
