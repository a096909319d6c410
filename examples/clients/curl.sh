#!/bin/sh
# Reconnects for each request: curl.sh URL CA VISITS CONCURRENT default|resume
# curl keeps sessions in memory, so only transfers of one command resume, here one after the other.
# Since curl 8.12, --ssl-sessions FILE stores them for the next command, if curl was built with it.
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
