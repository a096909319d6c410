#!/bin/sh
# Reconnects for each request: curl.sh URL CA VISITS CONCURRENT default|resume
# curl keeps sessions in memory, so what shall resume is one command with several transfers, here one after the other.
# From curl 8.12 on, --ssl-sessions FILE keeps them for the next command, if curl was built with it.
set -eu
url=$1 ca=$2 visits=$(($3 + $4)) how=$5

get() {
    curl --http1.1 --no-progress-meter --fail --cacert "$ca" --header 'Connection: close' "$@" >/dev/null
}

if [ "$how" = resume ]; then
    # shellcheck disable=SC2046
    get $(yes "$url" | head -n "$visits")
else
    for _ in $(seq "$visits"); do get "$url"; done
fi
