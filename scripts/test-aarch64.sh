#!/usr/bin/env bash
# Tests the portable tier of the kernels and crates without C as programs for aarch64, on an emulated CPU (qemu-user).
# BoringSSL is built for aarch64 once, which takes some minutes; without Debian's cross compiler or the target's standard
# library it prints a message and exits with 3.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra flags <<<"${CARGO_FLAGS-}"

readonly target=aarch64-unknown-linux-gnu root=/usr/aarch64-linux-gnu
readonly packages=(quadrille-rsa-numbers quadrille-kernels quadrille-field quadrille-config)
# It requests that the kernel wipe a page in children (MADV_WIPEONFORK), which qemu-user accepts but does not implement.
readonly untested=nonce::tests::a_child_draws_its_own

main() {
    command -v aarch64-linux-gnu-g++ >/dev/null || missing "g++-aarch64-linux-gnu"
    command -v qemu-aarch64 >/dev/null || missing "qemu-user"
    scripts/rust-target.sh "$target" || missing "Rust's standard library for $target"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $root"
    export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++
    export CMAKE_TOOLCHAIN_FILE_aarch64_unknown_linux_gnu=$PWD/scripts/aarch64.cmake
    # bindgen reads headers with clang, which needs the path of the other CPU's headers.
    export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="--sysroot=$root"
    local selected=()
    for package in "${packages[@]}"; do
        selected+=(--package "$package")
    done
    # A separate directory: the dependencies of build scripts have other features there.
    cargo test "${flags[@]}" --target "$target" --target-dir "${CARGO_TARGET_DIR:-target}/aarch64" \
        "${selected[@]}" --lib --tests --no-fail-fast -- --skip "$untested"
    echo "aarch64: NOT TESTED, qemu-user wipes no pages on fork: $untested"
}

missing() {
    echo "aarch64: NOT TESTED, $1 is missing" >&2
    exit 3
}

main "$@"
