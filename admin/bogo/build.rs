//! Compiles BoringSSL's shim, and links its certificate selection through `src/main.rs`.

fn main() {
    #[cfg(feature = "shim")]
    shim::build();
}

#[cfg(feature = "shim")]
mod shim {
    use std::{env, path::PathBuf};

    const SOURCES: [&str; 8] = [
        "async_bio.cc",
        "bssl_shim.cc",
        "handshake_util.cc",
        "mock_quic_transport.cc",
        "packeted_bio.cc",
        "settings_writer.cc",
        "test_config.cc",
        "test_state.cc",
    ];

    pub(super) fn build() {
        println!("cargo:rerun-if-env-changed=BORINGSSL_SOURCE");
        let source = env::var_os("BORINGSSL_SOURCE").expect("BORINGSSL_SOURCE: BoringSSL's sources");
        let source = PathBuf::from(source);
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .warnings(false)
            .include(source.join("include"))
            // Rust has a `main` of its own.
            .define("main", "bssl_shim_main")
            .files(SOURCES.map(|file| source.join("ssl/test").join(file)))
            .compile("bssl_shim");
        println!("cargo:rustc-link-arg-bins=-Wl,--wrap=SSL_CTX_set_select_certificate_cb");
    }
}
