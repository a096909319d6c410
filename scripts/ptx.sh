#!/usr/bin/env bash
# Translates the GPU's kernels to PTX, which is in the repository so that builds need no GPU compiler: ptx.sh [FILE].
# Clang does not need CUDA for it; a test detects when the sources have changed since.
set -euo pipefail
cd "$(dirname "$0")/../crates/kernels-cuda/kernel"
out=${1:-rsa.ptx}
readonly sources=(word.cuh real.cuh carry_device.cuh number.cuh digits.cuh rsa.cuh rsa52.cuh rsa.cu)

text=$(mktemp)
trap 'rm -f "$text"' EXIT
# Volta and later, drivers since CUDA 10.1: required by shuffles with a member mask.
clang++ -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -Xclang -target-feature -Xclang +ptx63 -nocudainc -nocudalib \
    -std=c++17 -O3 -ffp-contract=off -S rsa.cu -o "$text"
{
    echo "// Made by scripts/ptx.sh; do not edit."
    echo "// clang $(clang++ -dumpversion)"
    echo "// sources $(cat "${sources[@]}" | sha256sum | cut -d ' ' -f 1)"
    cat "$text"
} >"$out"
