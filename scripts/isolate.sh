#!/bin/sh
# Runs a test in separate Linux namespaces: isolate.sh PROGRAM ARGUMENT...
#
# The network namespace has only a loopback device, so that ports of other tests and of the machine's services are not visible.
# The process namespace ends with the test, and with it all processes started by the test. TMPDIR is a file system in memory
# that ends with them. So nothing is left behind, even if the test is killed.
#
# QUADRILLE_TEST_LOGS is a folder for the logs of processes started by tests; if the test fails, the last 200 lines of each are
# printed.
#
# Needs root or user namespaces (Debian's default). Without them, and with QUADRILLE_ISOLATE=no, the test runs unisolated.
set -u

main() {
    if [ "${1-}" = --inside ]; then
        shift
        inside "$@"
    fi
    folder=${TMPDIR:-/tmp}/quadrille-tests
    mkdir -p "$folder"
    options='--net --pid --mount --fork --kill-child --mount-proc'
    # Without root, in a user namespace where the user keeps its identity.
    [ "$(id -u)" = 0 ] || options="--user --map-current-user --keep-caps $options"
    # shellcheck disable=SC2086
    if [ "${QUADRILLE_ISOLATE-}" != no ] && unshare $options true 2>/dev/null; then
        QUADRILLE_TEST_FOLDER=$folder exec unshare $options "$0" --inside "$@"
    fi
    exec "$@"
}

# This shell is the init process of the namespace. The test is its child, since the kernel keeps signals from an init process.
inside() {
    ip link set lo up
    mount -t tmpfs -o mode=1777 tests "$QUADRILLE_TEST_FOLDER"
    TMPDIR=$QUADRILLE_TEST_FOLDER
    unset QUADRILLE_TEST_FOLDER
    QUADRILLE_TEST_LOGS=$TMPDIR/logs
    export TMPDIR QUADRILLE_TEST_LOGS
    mkdir "$QUADRILLE_TEST_LOGS"
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        setpriv --ambient-caps=-all --inh-caps=-all "$@"
    fi
    status=$?
    [ "$status" = 0 ] || print_logs
    exit "$status"
}

print_logs() {
    for log in "$QUADRILLE_TEST_LOGS"/*; do
        if [ -s "$log" ]; then
            echo "--- the last 200 lines of $(basename "$log")"
            tail -n 200 "$log"
        fi
    done >&2
}

main "$@"
