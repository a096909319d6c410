#!/usr/bin/env bash
# Runs tests and measurements on a machine with an NVIDIA GPU, without network, that is available for minutes only.
#
#   scripts/gpu.sh pack DIR          here: builds everything into DIR/pack.tar.gz, 33 MB
#   scripts/gpu.sh visit DIR OUT [STEP...]
#                                    there, from the repository's root: tests, then measurements, into OUT; thirteen minutes
#
# The visit needs NVIDIA's driver, a C++ compiler and python3; ncu and compute-sanitizer are optional. RESULTS=FILE.tar.gz
# also packs OUT after each step, and SCALING has options of bench/scaling.py.
set -euo pipefail

readonly port=18443 admin=18444

main() {
    case ${1-} in
    pack) [[ $# -eq 2 ]] && pack "$2" ;;
    visit) [[ $# -ge 3 ]] && visit "$(realpath "$2")" "$(realpath "$3")" "${@:4}" ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" && exit 2 ;;
    esac
}

pack() {
    local built test target=${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/quadrille/target}
    # All at once: separate builds would select other features and recompile BoringSSL.
    local -r packages=(--package quadrille-cli --package quadrille-bench-handshakes --package quadrille-bench-kernels
        --package quadrille-engine --package quadrille-kernels-cuda --features quadrille-bench-kernels/aws-lc)
    export CARGO_TARGET_DIR=$target
    CARGO_TARGET_DIR=$target scripts/claim-target.sh
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$1" "$work/driver" "$work/lib"
    # As `make build`.
    scripts/profile-guided/build.sh "${packages[@]}"
    cp "$target"/release/quadrille{,-bench-kernels} "$work"
    "$target/release/quadrille-bench-handshakes" --certificates "$work"
    built=$(scripts/profile-guided/build.sh "${packages[@]}" --test engine --test kernels_cuda --test gpu_ml_dsa --message-format json-render-diagnostics)
    for test in engine kernels_cuda gpu_ml_dsa; do
        cp "$(python3 -c 'import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] == sys.argv[1] and "test" in message["target"]["kind"]:
        print(message["executable"])' "$test" <<<"$built")" "$work/$test"
    done
    cc -shared -fPIC -O2 -o "$work/driver/libcuda.so.1" bench/gpu/forward.c -ldl
    rivals "$work"
    strip "$work"/quadrille* "$work/engine" "$work/kernels_cuda" "$work/gpu_ml_dsa" "$work/haproxy" 2>/dev/null || true
    openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" -days 30 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
    # Where the tests look for their sources and build their fake driver.
    printf '%s\n%s\n' "$PWD" "$target/tmp" >"$work/paths"
    tar -czf "$1/pack.tar.gz" -C "$work" .
    ls -l "$1/pack.tar.gz"
}

# rivals DIR: Debian's nginx, and HAProxy with AWS-LC, with the libraries that they need on another system. Either may be missing.
rivals() {
    local nginx haproxy
    nginx=$(PATH=$PATH:/usr/sbin command -v nginx || true)
    haproxy=$(bench/haproxy-awslc.sh)
    [[ -z $nginx ]] || cp "$nginx" "$1/nginx"
    [[ -z $haproxy ]] || cp "$haproxy" "$1/haproxy"
    for program in $nginx $haproxy; do
        ldd "$program" | grep --only-matching '/[^ ]*' | xargs cp --dereference --update --target-directory "$1/lib"
    done
}

visit() {
    local -r out=$2 wanted=" ${*:3} "
    local -a paths
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    tar -xzf "$1/pack.tar.gz" -C "$dir"
    mapfile -t paths <"$dir/paths"
    mkdir -p "$out" "${paths[1]}" "$(dirname "${paths[0]}")"
    [[ -e ${paths[0]} ]] || ln -s "$PWD" "${paths[0]}"
    step machine describe
    step suite in_folder crates/kernels-cuda env TEST_GPU=required TEST_OPERATIONS=600 "$dir/kernels_cuda"
    step ml-dsa-suite in_folder crates/engine env TEST_GPU=required "$dir/gpu_ml_dsa"
    step ml-dsa ml_dsa_rates "$dir" "$out"
    step engine in_folder crates/engine "$dir/engine" --nocapture lanes::every lanes::wycheproof
    step rates rates "$dir" "$out"
    step cores over_cores "$dir"
    step scaling scaling "$dir" "$out"
    step gateway over_gateways "$dir" "$out"
    step overload overload "$dir" "$out"
    step sanitizer sanitize "$dir" memcheck initcheck
    step racecheck sanitize "$dir" racecheck
    step profile profile quadrille_rsa "$dir/quadrille-bench-kernels" --sizes 2048 --gpu-only 1 --gpu-seconds 1 \
        --out "$out/profiled.json"
    step ml-dsa-profile profile quadrille_ml_dsa "$dir/quadrille-bench-kernels" --gpu-ml-dsa --gpu-seconds 1 \
        --out "$out/profiled.json"
}

# step NAME COMMAND...: its output goes to the terminal and into OUT/NAME.txt; a failure is reported and does not end the visit.
step() {
    local name=$1 began=$SECONDS
    shift
    [[ $wanted == "  " || $wanted == *" $name "* ]] || return 0
    echo "== $name"
    "$@" 2>&1 | tee "$out/$name.txt" || echo "FAILED: $name"
    echo "   ($((SECONDS - began)) s)"
    # If the visit is stopped, the results so far are in one file.
    [[ -z ${RESULTS-} ]] || tar -czf "$RESULTS" -C "$out" .
}

in_folder() {
    (cd "$1" && shift && timeout 200 "$@" | tail -n 30)
}

describe() {
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.draw,power.limit,temperature.gpu \
        --format=csv
    lscpu | grep -E '^(Model name|CPU\(s\)|Thread|L3)'
    grep --only-matching --max-count=1 --word-regexp avx512ifma /proc/cpuinfo || echo "no avx512ifma"
}

# A million random RSA-2048 operations compared with the lanes, fewer of the larger sizes; then rates and latencies.
rates() {
    "$1/quadrille-bench-kernels" --sizes 2048 --gpu-only 1000 --gpu-seconds 3 --out "$2/rsa2048.json" &
    local -r bench=$!
    sleep 20
    clocks
    wait "$bench"
    "$1/quadrille-bench-kernels" --sizes 3072,4096 --gpu-only 150 --gpu-seconds 2 --out "$2/larger.json"
}

ml_dsa_rates() {
    "$1/quadrille-bench-kernels" --gpu-ml-dsa --gpu-seconds 1 --out "$2/ml-dsa.json"
}

# Sampled during the computation.
clocks() {
    local -r end=$((SECONDS + 12))
    while [[ $SECONDS -lt $end ]]; do
        sleep 2
        nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu,clocks_event_reasons.active --format=csv,noheader
    done
}

# RSA-2048 in lanes over 1 to 16 cores.
over_cores() {
    local cores
    for cores in 1 2 4 8 16; do
        [[ $cores -le $(nproc) ]] || continue
        echo -n "$cores: "
        taskset --cpu-list "0-$((cores - 1))" "$1/quadrille-bench-kernels" --sizes 2048 --all-cores --gpu-seconds 2
    done
}

# The whole machine: gateway, nginx and HAProxy with AWS-LC on 1 to 8 cores, the load from the others; two and a half minutes.
scaling() {
    local options=()
    read -ra options <<<"${SCALING-}"
    timeout 240 python3 bench/scaling.py "$1" "$2/scaling" "${options[@]}"
}

# Full handshakes over 1 to 8 cores of the gateway; the load comes from the other half of the machine.
over_gateways() {
    local cores
    for cores in 1 2 4 8; do
        [[ $cores -le $((($(nproc) + 1) / 2)) ]] || continue
        serve "$1" "$cores" lanes
        load "$1" "$2/gateway-$cores.json" --connections "$((cores * 64))" --duration 4s
        stop_serving
    done
}

# Four times the handshake capacity of a quarter of the cores with lanes: with lanes; with the GPU and as many compute threads,
# and with one; and with the GPU lost halfway.
overload() {
    local rate capacity cores=$((($(nproc) + 3) / 4))
    serve "$1" "$cores" lanes
    load "$1" "$2/capacity.json" --connections 256 --duration 4s
    stop_serving
    capacity=$(python3 -c 'import json, sys; print(round(json.load(open(sys.argv[1]))["handshakes_per_second"]))' \
        "$2/capacity.json")
    rate=$((4 * capacity))
    echo "capacity $capacity/s; offered from now on $rate/s, open loop, and with 4,000 clients, closed loop"
    local backend compute
    for backend in "lanes $cores" "gpu $cores" "gpu 1"; do
        read -r backend compute <<<"$backend"
        serve "$1" "$cores" "$backend" "$compute"
        load "$1" "$2/overload-$backend-$compute-open.json" --rate "$rate" --connections 8000 --duration 5s
        stop_serving
        serve "$1" "$cores" "$backend" "$compute"
        load "$1" "$2/overload-$backend-$compute-closed.json" --connections 4000 --duration 5s
        operations
        stop_serving
    done
    export FORWARD_TO FORWARD_LOST=$2/lost
    FORWARD_TO=${FORWARD_TO:-$(ldconfig -p | awk '/libcuda.so.1 /{print $NF; exit}')}
    LD_LIBRARY_PATH=$1/driver serve "$1" "$cores" gpu
    (sleep 4 && touch "$FORWARD_LOST") &
    load "$1" "$2/overload-lost.json" --connections 4000 --duration 8s
    operations
    grep --max-count=2 "GPU is lost" "$2/gateway.log" || echo "the gateway did not report the loss of the GPU"
    stop_serving
    rm -f "$FORWARD_LOST"
}

# serve DIR CORES BACKEND [COMPUTE_THREADS], on the first CORES cores.
serve() {
    taskset --cpu-list "0-$(($2 - 1))" "$1/quadrille" serve --listen 127.0.0.1:$port --admin 127.0.0.1:$admin \
        --cert "$1/cert.pem" --key "$1/key.pem" --respond ok --threads "$2" --compute-threads "${4:-$2}" --backend "$3" \
        --session-tickets off --session-cache off --drain-timeout 1s >"$out/gateway.log" 2>&1 &
    server=$!
    local waited
    for ((waited = 0; waited < 100; waited++)); do
        grep --quiet "serving HTTPS" "$out/gateway.log" && break
        sleep 0.2
    done
    began=$(cpu_of "$server")
    what="$2 cores, $3, ${4:-$2} compute"
}

stop_serving() {
    kill "$server"
    wait "$server" || true
}

# load DIR JSON ARGUMENTS...
load() {
    local dir=$1 json=$2 all half
    all=$(nproc)
    half=$((all / 2))
    shift 2
    taskset --cpu-list "$half-$((all - 1))" "$dir/quadrille" bench "https://localhost:$port/" \
        --connect 127.0.0.1:$port --ca "$dir/cert.pem" --threads "$((all - half))" --requests 0 --groups X25519 --json "$@" \
        >"$json" || true
    python3 - "$json" "$what" "$((10000 * ($(cpu_of "$server") - began)))" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
per = int(sys.argv[3]) / max(run["full"], 1)
print(f'{sys.argv[2]:26} {run["handshakes_per_second"]:9.0f} handshakes/s  p50 {run["latency_us"]["p50"] / 1e3:8.1f} ms  '
      f'p99 {run["latency_us"]["p99"] / 1e3:8.1f} ms  failed {run["failed"]:6}  CPU {per:6.1f} us each  {run["failures"][:2]}')
PYTHON
}

# Prints the CPU time of a process in hundredths of a second.
cpu_of() {
    awk '{print $14 + $15}' "/proc/$1/stat"
}

operations() {
    curl --silent "http://127.0.0.1:$admin/metrics" | grep -E '^quadrille_(key_operations_total|gpu_in_use)' || true
}

# sanitize DIR TOOL...: random operations of all sizes, for at most a minute each.
sanitize() {
    local tool
    command -v compute-sanitizer || return 0
    for tool in "${@:2}"; do
        echo "-- $tool"
        (
            cd crates/kernels-cuda
            export TEST_GPU=required TEST_OPERATIONS=${SANITIZED:-30} TEST_SIGNATURES=${SANITIZED:-30}
            timeout 60 compute-sanitizer --tool "$tool" "$1/kernels_cuda" random_operations 2>&1 | tail -n 5
            timeout 60 compute-sanitizer --tool "$tool" "$1/gpu_ml_dsa" signatures_are_valid 2>&1 | tail -n 5
        ) || true
    done
}

# profile KERNEL BENCHMARK ARGUMENT...
profile() {
    command -v ncu || return 0
    timeout 60 ncu --clock-control none --kill yes --launch-skip 3 --launch-count 3 --kernel-name "regex:$1" \
        --section SpeedOfLight --section ComputeWorkloadAnalysis --section MemoryWorkloadAnalysis \
        --section SchedulerStats --section WarpStateStats --section Occupancy --section InstructionStats \
        --metrics "$(stalls)" "${@:2}" || true
}

stalls() {
    local reason list=()
    for reason in no_instruction math_pipe_throttle dispatch_stall wait short_scoreboard long_scoreboard barrier \
        lg_throttle mio_throttle not_selected selected branch_resolving imc_miss; do
        list+=("smsp__average_warps_issue_stalled_${reason}_per_issue_active.ratio")
    done
    (IFS=, && echo "${list[*]}")
}

main "$@"
