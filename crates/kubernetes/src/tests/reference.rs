//! The reference page is the table, and each annotation has its test.

use crate::{annotation::table::ALL, reference};
use std::path::Path;

const PAGE: &str = "../../docs/reference/ingress-nginx.md";

#[test]
fn the_reference_is_the_table() {
    let page = reference();
    if std::env::var_os("QUADRILLE_BLESS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "{PAGE} is out of date; run QUADRILLE_BLESS=1 cargo test -p quadrille-kubernetes reference"
    );
}

#[test]
fn every_annotation_has_its_test() {
    let mut all = String::new();
    for folder in ["../cli/tests/gateway/ingress", "src/tests"] {
        for entry in std::fs::read_dir(Path::new(folder)).unwrap() {
            all.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
        }
    }
    for entry in ALL {
        assert!(
            all.contains(&format!("#[test]\nfn {}()", entry.test)),
            "{}: no test `{}`",
            entry.name,
            entry.test
        );
    }
}
