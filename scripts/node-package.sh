#!/usr/bin/env bash
# Runs a script of packages/node: node-package.sh test|check ... Installs the package's tools first if they are missing or
# do not match package-lock.json. Needs Node 20.18 or later, which Debian 12 does not have: npm fetches it if missing.
set -euo pipefail
cd "$(dirname "$0")/../packages/node"

# The line to fetch; the tests use the same folder.
readonly line=22
readonly cache=${QUADRILLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quadrille}/node/v$line

is_recent() {
    node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 18) ? 0 : 1)' 2>/dev/null
}

if ! is_recent || ! command -v npm >/dev/null; then
    command -v npm >/dev/null || ../../scripts/install-packages.sh node
    if [[ ! -x $cache/node_modules/node/bin/node ]]; then
        echo "packages/node needs Node 20.18 or later (found: $(node --version 2>/dev/null || echo none)): fetching Node $line" >&2
        mkdir -p "$cache"
        npm install --silent --prefix "$cache" "node@$line"
    fi
    PATH=$cache/node_modules/node/bin:$PATH
    is_recent || { echo "Node $line is not available from the npm registry; see https://nodejs.org" >&2 && exit 1; }
fi
# npm writes this file when an installation is complete.
if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
    npm ci --silent
    touch node_modules/.package-lock.json
fi
npm run --silent "$@"
