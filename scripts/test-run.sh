# Common parts of test runs: the number of concurrent tests, and the check for leftovers on the machine. Sourced by test.sh and stress.sh.
# shellcheck shell=bash

# Most tests of processes wait more than they compute, and none depends on a fast machine.
export NEXTEST_TEST_THREADS=${NEXTEST_TEST_THREADS:-$((3 * $(nproc)))}

# Every process of the run has this variable in its environment, and a temporary folder that is removed with the run.
begin_run() {
    QUADRILLE_TEST_RUN=$$-$(date +%s)
    TMPDIR=$(mktemp --directory --tmpdir quadrille-run.XXXXXX)
    # Like /tmp: servers run as other users.
    chmod 1777 "$TMPDIR"
    mkdir "$TMPDIR/quadrille-tests"
    namespaces=$(ip netns list 2>/dev/null)
    export QUADRILLE_TEST_RUN TMPDIR
}

# Lists leftovers of the tests, and fails if there are any.
left_by_run() {
    local left=0 process entry
    for process in $(processes_of_run); do
        echo "left by the tests: process $process: $(tr '\0' ' ' <"/proc/$process/cmdline" 2>/dev/null)"
        left=1
    done
    while IFS= read -r entry; do
        echo "left by the tests: $entry"
        left=1
    done < <(find "$TMPDIR" -mindepth 1 -not -path "$TMPDIR/quadrille-tests")
    if [[ $(ip netns list 2>/dev/null) != "$namespaces" ]]; then
        echo "left by the tests: network namespaces: $(ip netns list)"
        left=1
    fi
    return "$left"
}

# Runs after an interruption too.
end_run() {
    local processes
    processes=$(processes_of_run)
    # shellcheck disable=SC2086
    [[ -z $processes ]] || kill -9 $processes 2>/dev/null
    rm -rf "$TMPDIR"
}

# Prints the processes started by this run that are still running, except this shell and its children.
processes_of_run() {
    local folder process
    for folder in /proc/[0-9]*; do
        process=${folder#/proc/}
        [[ $process != "$$" && $process != "$BASHPID" ]] || continue
        grep --quiet --null-data --line-regexp --fixed-strings "QUADRILLE_TEST_RUN=$QUADRILLE_TEST_RUN" "$folder/environ" 2>/dev/null ||
            continue
        [[ $(awk '$1 == "PPid:" { print $2 }' "$folder/status" 2>/dev/null) == "$$" ]] || echo "$process"
    done
}
