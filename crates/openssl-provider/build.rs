//! Linker arguments of the provider module.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Compute threads, thread-local destructors and fork handlers point into the module: it must stay mapped after
    // OpenSSL unloads it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // BoringSSL exports functions with the same names as the OpenSSL that loads the module: references inside resolve
    // to BoringSSL's.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
}
