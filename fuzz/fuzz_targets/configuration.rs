//! The YAML of a gateway, and of a key server's policy: whatever is read is shown in a form that is read as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = quadrille_config::parse_key_policy(text, "policy.yaml");
    let Ok(model) = quadrille_config::parse(text, "quadrille.yaml") else { return };
    let shown = quadrille_config::show(&model);
    // Key material given in place is not shown.
    if shown.to_string().contains("(inline)") || shown.to_string().contains("***") {
        return;
    }
    let again = quadrille_config::parse(&shown.to_string(), "quadrille.yaml");
    let again = again.unwrap_or_else(|problems| panic!("what is shown is refused: {problems}"));
    assert_eq!(quadrille_config::show(&again), shown);
});
