#!/usr/bin/env bash
# Translates the GPU's kernels to PTX, which the repository keeps so that no build needs a compiler for GPUs: ptx.sh [FILE].
# Clang does it without CUDA; a test says when the sources have changed since.
set -euo pipefail
cd "$(dirname "$0")/../crates/kernels-cuda/kernel"
out=${1:-rsa.ptx}
readonly sources=(word.cuh real.cuh carry_device.cuh number.cuh digits.cuh rsa.cuh rsa52.cuh rsa.cu)

text=$(mktemp)
trap 'rm -f "$text"' EXIT
# Volta and later, drivers since CUDA 10.1: what shuffles with names for their partners want.
clang++ -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -Xclang -target-feature -Xclang +ptx63 -nocudainc -nocudalib \
    -std=c++17 -O3 -ffp-contract=off -S rsa.cu -o "$text"
{
    echo "// Made by scripts/ptx.sh; do not edit."
    echo "// clang $(clang++ -dumpversion)"
    echo "// sources $(cat "${sources[@]}" | sha256sum | cut -d ' ' -f 1)"
    cat "$text"
} >"$out"
