#!/usr/bin/env bash
# Runs the container image of `make image`: unpacked, with its user and command, on a read-only root and without privileges,
# and sends an HTTPS request. Needs root, for mounts, but no container engine.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d "${TMPDIR:-/tmp}/quadrille-image.XXXXXX")
readonly work root=$work/bundle/rootfs
# Separate ports, since the machine's may be in use.
readonly port=18444 admin=18445
# The shell that waits for the gateway, and the gateway.
shell="" gateway=""

main() {
    [[ $(id -u) == 0 ]] || fail "run it as root: mounts are needed"
    image=$(echo bin/quadrille_*.oci.tar)
    [[ -f $image ]] || fail "there is no image: run \`make image\` first"
    readonly image
    trap clean EXIT
    check "another tool reads it" read_by_skopeo
    check "its user is a number, and not root" user_is_not_root
    check "it unpacks" unpack
    check "its files are not writable by others, and not setuid" files_are_plain
    check "it has no shell" has_no_shell
    check "the command runs" inside /usr/bin/quadrille --version
    check "its command reports a missing configuration and fails" names_the_missing_file
    check "its command serves HTTPS, on a read-only root, without capabilities" serves
    check "it is ready" curl --silent --show-error --fail "http://127.0.0.1:$admin/ready"
    check "it has no privileges" has_no_privileges
    check "it exits on the image's stop signal" ends
    echo "test-image: $passed passed"
}

read_by_skopeo() {
    skopeo inspect --config "oci-archive:$image" >"$work/config.json"
    skopeo inspect "oci-archive:$image"
}

# of_config KEY: prints the values of a key of the image's configuration, one per line.
of_config() {
    python3 - "$work/config.json" "$1" <<'PYTHON'
import json, sys
value = json.load(open(sys.argv[1]))["config"].get(sys.argv[2], [])
print("\n".join([value] if isinstance(value, str) else value))
PYTHON
}

user_is_not_root() {
    [[ $(of_config User) =~ ^[1-9][0-9]*:[1-9][0-9]*$ ]]
}

unpack() {
    mkdir "$work/layout"
    tar --extract --file "$image" --directory "$work/layout"
    local tag
    tag=$(umoci list --layout "$work/layout") || return 1
    umoci unpack --image "$work/layout:$tag" "$work/bundle" || return 1
    # The container's user needs access.
    chmod 755 "$work" "$work/bundle" "$root"
    mkdir "$root/proc"
}

files_are_plain() {
    local found
    found=$(find "$root" \( -perm /7022 ! -type l -o ! -user root \) -print)
    [[ -z $found ]] || { echo "$found"; return 1; }
}

has_no_shell() {
    local found
    found=$(find "$root" -name '*sh' -perm /111 ! -type d)
    [[ -z $found ]] || { echo "$found"; return 1; }
}

# inside COMMAND...: runs it like a container engine, but with the host's network, which the test needs.
inside() {
    local user
    user=$(of_config User)
    # shellcheck disable=SC2016 # the inner shell's variables
    # chroot needs three capabilities, and drops them with the user change.
    env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare --mount --ipc --uts bash -euc '
        mount --bind "$1" "$1"
        mount --types proc -o ro proc "$1/proc"
        mount -o remount,bind,ro "$1"
        exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,+sys_chroot,+setuid,+setgid \
            chroot --userspec="$2" "$1" "${@:3}"
    ' inside "$root" "$user" "$@"
}

names_the_missing_file() {
    local command
    mapfile -t command < <(of_config Entrypoint; of_config Cmd)
    local status=0
    inside "${command[@]}" >"$work/log" 2>&1 || status=$?
    cat "$work/log"
    [[ $status == 2 ]] && grep --quiet /etc/quadrille/quadrille.yaml "$work/log"
}

serves() {
    configuration
    local command
    mapfile -t command < <(of_config Entrypoint; of_config Cmd)
    inside "${command[@]}" >"$work/log" 2>&1 &
    shell=$!
    local attempt
    for attempt in {1..100}; do
        if curl --silent --show-error --fail --cacert "$root/etc/quadrille/chain.pem" "https://localhost:$port/" \
            2>"$work/curl" | grep --quiet "from the image"; then
            gateway=$(pgrep --parent "$shell")
            return 0
        fi
        sleep 0.1
    done
    echo "after $attempt attempts: $(cat "$work/curl" "$work/log")"
    return 1
}

# The files that would be mounted there.
configuration() {
    local directory=$root/etc/quadrille
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -keyout "$directory/key.pem" -out "$directory/chain.pem" 2>/dev/null
    chown "$(of_config User)" "$directory/key.pem"
    chmod 400 "$directory/key.pem"
    cat >"$directory/quadrille.yaml" <<YAML
listeners:
  - address: 127.0.0.1:$port
    certificates:
      - { chain: chain.pem, key: key.pem }
    respond: "from the image"
admin: 127.0.0.1:$admin
YAML
}

has_no_privileges() {
    local status=/proc/$gateway/status
    grep -E '^(Uid|CapEff|CapPrm|NoNewPrivs):' "$status"
    grep --quiet "^Uid:[[:space:]]$(of_config User | cut -d : -f 1)[[:space:]]" "$status" &&
        grep --quiet '^CapEff:[[:space:]]0*$' "$status" && grep --quiet '^NoNewPrivs:[[:space:]]1$' "$status"
}

ends() {
    [[ $(of_config StopSignal) == SIGTERM ]] || return 1
    kill -TERM "$gateway"
    local status=0
    wait "$shell" || status=$?
    shell=""
    cat "$work/log"
    [[ $status == 0 ]]
}

passed=0
# check WHAT COMMAND...: shows its output if it fails.
check() {
    local what=$1
    shift
    if "$@" >"$work/output" 2>&1; then
        echo "ok    $what"
        passed=$((passed + 1))
    else
        cat "$work/output"
        fail "$what"
    fi
}

clean() {
    [[ -z $shell ]] || pkill --parent "$shell" || true
    wait
    rm -rf "$work"
}

fail() {
    echo "test-image: FAILED: $*" >&2
    exit 1
}

main "$@"
