#!/usr/bin/env bash
# Runs a script of packages/node: node-package.sh test|check ... Installs the package's tools first if they are missing or
# not those of package-lock.json. Needs Node 20.18 or later with npm, which Debian 12 does not have: https://nodejs.org.
set -euo pipefail
cd "$(dirname "$0")/../packages/node"

if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 18) ? 0 : 1)' 2>/dev/null ||
    ! command -v npm >/dev/null; then
    echo "packages/node needs Node 20.18 or later with npm (found: $(node --version 2>/dev/null || echo none)); see https://nodejs.org" >&2
    exit 1
fi
# npm leaves this file when an installation is complete.
if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
    npm ci --silent
    touch node_modules/.package-lock.json
fi
npm run --silent "$@"
