#!/usr/bin/env bash
# Prints the path of the list of functions for the linker, or nothing if this target's linker does not order functions.
set -euo pipefail

list=$(realpath "$(dirname "$0")/functions.txt")
probe=$(mktemp -d)
trap 'rm -rf "$probe"' EXIT
if echo 'fn main() {}' | rustc "-Clink-arg=-Wl,--symbol-ordering-file=$list,--no-warn-symbol-ordering" -o "$probe/program" - \
    2>/dev/null; then
    echo "$list"
fi
