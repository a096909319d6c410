#!/usr/bin/env bash
# Prints the folder of the unpacked bochscpu-python wheel, fetching it into the cache if it is missing. BOCHSCPU names
# another folder. Fails, with the reason on stderr, if it is unavailable.
set -euo pipefail

readonly version=0.4.0
readonly cache=${QUADRILLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quadrille}
readonly folder=${BOCHSCPU:-$cache/tools/bochscpu-$version}

main() {
    [[ -d $folder/bochscpu ]] || download
    echo "$folder"
}

# Unpacks to a temporary place, so that an interrupted download is not used.
download() {
    local python
    python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "python3 not found"
    [[ $python == 3.11 ]] || fail "bochscpu-python $version is for Python 3.11, and python3 is $python"
    local part=$folder.part
    rm -rf "$part"
    mkdir -p "$part"
    timeout 120 python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest "$part" "bochscpu-python==$version" >&2 || fail "pip cannot fetch bochscpu-python $version"
    python3 -m zipfile -e "$part"/bochscpu_python-*.whl "$part"
    rm "$part"/bochscpu_python-*.whl
    mv "$part" "$folder"
}

fail() {
    echo "no emulator: $1" >&2
    exit 1
}

main
