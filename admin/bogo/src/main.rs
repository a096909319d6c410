//! BoringSSL's shim, `bssl_shim`, with the key exchange of its servers computed by the engine and handed over by
//! `quadrille-key-share`, as the gateway does. `scripts/bogo.sh` runs BoGo, BoringSSL's protocol tests, against it.
//!
//! The shim is BoringSSL's unmodified C++. It sets a callback for certificate selection on every context; the linker
//! redirects that call here (`--wrap`). The callback installed instead computes the key exchange, and then calls the
//! shim's own callback.

#[cfg(feature = "shim")]
mod bridge;

#[cfg(feature = "shim")]
fn main() {
    bridge::run_shim();
}

#[cfg(not(feature = "shim"))]
fn main() {
    eprintln!("built without the shim; `make bogo` builds and runs it");
    std::process::exit(2);
}
