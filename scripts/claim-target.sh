#!/usr/bin/env bash
# Makes it safe that all clones share one target directory.
#
# Cargo knows a workspace's own crates by their path inside the workspace and judges them by the age of their files, so
# after another clone has built, it would take that clone's newer result for ours. When the last builder was another
# clone, all files here become new; dependencies, BoringSSL above all, stay built.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly owner=$CARGO_TARGET_DIR/last-clone

if [[ $(cat "$owner" 2>/dev/null) != "$PWD" ]]; then
    find . \( -name .git -o -name node_modules -o -path ./bin \) -prune -o -type f -exec touch --no-create {} +
    mkdir -p "$CARGO_TARGET_DIR"
    echo "$PWD" >"$owner"
fi
