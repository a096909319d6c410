//! How the module is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Compute threads, thread-local destructors and fork handlers point into it: it stays when OpenSSL unloads it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // BoringSSL has functions of the same names as the OpenSSL that loads this: inside, only its own are meant.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
}
