//! Envoy's bootstrap, in YAML or JSON, and the gateway that is made of it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // It may name files, which are read: none of this machine.
    if text.contains("path") {
        return;
    }
    if let Ok(bootstrap) = quadrille_envoy::bootstrap(text, "bootstrap.yaml") {
        let _ = bootstrap.model();
    }
});
