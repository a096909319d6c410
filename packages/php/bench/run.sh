#!/usr/bin/env bash
# Measures encrypted fields in PHP: one field compared with OpenSSL, sodium and Laravel's form, then a page like the worked
# application's under ab, compared with plain text, OpenSSL and mcrypt. run.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../../.."
readonly php=/usr/bin/php8.2 bench=packages/php/bench
readonly rounds=${1:-9}
export QUADRILLE_EXTENSION=$PWD/bin/quadrille.so

"$php" --version | head -1
openssl version
mariadbd --version
grep --max-count=1 'model name' /proc/cpuinfo
"$php" -n -d "extension=$QUADRILLE_EXTENSION" --ri quadrille | grep 'AES in use'
echo
"$php" -n -d "extension=$QUADRILLE_EXTENSION" "$bench/fields.php" "$rounds"
echo
"$php" -n "$bench/fields.php" "$rounds" | tail -1
echo
"$php" -d "extension=$QUADRILLE_EXTENSION" "$bench/page.php" "$rounds"
