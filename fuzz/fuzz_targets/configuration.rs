//! YAML of a gateway, and of a key server's policy: a parsed configuration is displayed in a form that parses to the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = quadrille_config::parse_key_policy(text, "policy.yaml");
    let Ok(model) = quadrille_config::parse(text, "quadrille.yaml") else { return };
    let shown = quadrille_config::show(&model);
    // Inline key material is not displayed.
    if shown.to_string().contains("(inline)") || shown.to_string().contains("***") {
        return;
    }
    let again = quadrille_config::parse(&shown.to_string(), "quadrille.yaml");
    let again = again.unwrap_or_else(|problems| panic!("the displayed form is rejected: {problems}"));
    assert_eq!(quadrille_config::show(&again), shown);
});
