#!/usr/bin/env bash
# Translates the GPU's kernels to PTX, which is in the repository so that builds need no GPU compiler: ptx.sh [FOLDER].
# Clang does not need CUDA for it; a test detects when the sources have changed since.
set -euo pipefail
cd "$(dirname "$0")/../crates/kernels-cuda/kernel"
readonly out=${1:-.}
readonly rsa=(word.cuh real.cuh carry_device.cuh number.cuh digits.cuh rsa.cuh rsa52.cuh rsa.cu)
readonly ml_dsa=(word.cuh carry_device.cuh modular.cuh keccak.cuh polynomial.cuh ml_dsa.cuh ml_dsa.cu)

text=$(mktemp)
trap 'rm -f "$text"' EXIT

# translate NAME SOURCE...: the last source is the one to compile.
translate() {
    local -r name=$1 sources=("${@:2}")
    # Volta and later, drivers since CUDA 10.1: required by shuffles with a member mask.
    clang++ -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -Xclang -target-feature -Xclang +ptx63 -nocudainc \
        -nocudalib -std=c++17 -O3 -ffp-contract=off -S "${sources[-1]}" -o "$text"
    {
        echo "// Made by scripts/ptx.sh; do not edit."
        echo "// clang $(clang++ -dumpversion)"
        echo "// sources $(cat "${sources[@]}" | sha256sum | cut -d ' ' -f 1)"
        cat "$text"
    } >"$out/$name.ptx"
}

translate rsa "${rsa[@]}"
translate ml_dsa "${ml_dsa[@]}"
