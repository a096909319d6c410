#!/usr/bin/env bash
# Builds a book of the pages listed in docs/SUMMARY.md, searchable without a server, in the folder given as its argument, and
# checks every link, anchors included.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly folder=${1:?build-book.sh FOLDER}

mdbook=$(scripts/install-tools.sh mdbook)/mdbook
rm -rf "$folder"
mkdir -p "$folder"
cp docs/book.toml docs/wide.css "$folder/"
python3 scripts/book.py lay-out "$folder/pages"
"$mdbook" build "$folder" 2>"$folder/log" || { cat "$folder/log" >&2 && exit 1; }
if grep -E 'WARN|ERROR' "$folder/log" >&2; then
    exit 1
fi
python3 scripts/book.py check "$folder/book"
