//! Envoy's bootstrap, in YAML or JSON, and the gateway configured by it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // The bootstrap may name files, which would be read: skip those inputs.
    if text.contains("path") {
        return;
    }
    if let Ok(bootstrap) = quadrille_envoy::bootstrap(text, "bootstrap.yaml") {
        let _ = bootstrap.model();
    }
});
