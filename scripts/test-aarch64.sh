#!/usr/bin/env bash
# Tests the portable tier of the kernels and what has no C in it as programs for aarch64, on an emulated CPU (qemu-user).
# BoringSSL is built for aarch64 once, which takes some minutes; without Debian's cross compiler or the target's standard
# library it says so and ends with 3.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra flags <<<"${CARGO_FLAGS-}"

readonly target=aarch64-unknown-linux-gnu root=/usr/aarch64-linux-gnu
readonly packages=(quadrille-rsa-numbers quadrille-kernels quadrille-field quadrille-config)
# It asks the kernel to wipe a page in children (MADV_WIPEONFORK), which qemu-user says it does and does not do.
readonly untested=nonce::tests::a_child_draws_its_own

main() {
    command -v aarch64-linux-gnu-g++ >/dev/null || missing "g++-aarch64-linux-gnu"
    command -v qemu-aarch64 >/dev/null || missing "qemu-user"
    scripts/rust-target.sh "$target" || missing "Rust's standard library for $target"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $root"
    export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++
    export CMAKE_TOOLCHAIN_FILE_aarch64_unknown_linux_gnu=$PWD/scripts/aarch64.cmake
    # bindgen reads headers as clang does, which has to be told where those of the other CPU are.
    export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="--sysroot=$root"
    local selected=()
    for package in "${packages[@]}"; do
        selected+=(--package "$package")
    done
    # A directory of its own: what the build scripts are made of is selected with other features there.
    cargo test "${flags[@]}" --target "$target" --target-dir "${CARGO_TARGET_DIR:-target}/aarch64" \
        "${selected[@]}" --lib --tests --no-fail-fast -- --skip "$untested"
    echo "aarch64: NOT TESTED, qemu-user wipes no pages on fork: $untested"
}

missing() {
    echo "aarch64: NOT TESTED, there is no $1" >&2
    exit 3
}

main "$@"
