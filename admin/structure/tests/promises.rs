//! Promises in SECURITY.md are backed by existing tests.

use quadrille_structure::{files_with, text};
use std::{collections::BTreeSet, path::Path};

#[test]
fn each_test_that_a_promise_names_exists() {
    let named = named_tests(&text(Path::new("SECURITY.md")).expect("pages are UTF-8"));
    assert!(named.len() > 20, "the table was not found: {named:?}");
    let known = tests_of_the_sources();
    let missing: Vec<_> = named.iter().filter(|name| !known.contains(*name)).collect();
    assert!(missing.is_empty(), "SECURITY.md names tests that do not exist: {missing:?}");
}

#[test]
fn a_test_that_is_gone_would_be_noticed() {
    let page = "## Tests\n\n| promise | held by |\n|---|---|\n| a | `file::gone`, `file::there` |\n";
    let known = tests_in("file", "#[test]\nfn there() {}\n\nfn gone() {}\n");
    assert_eq!(named_tests(page), ["file::gone", "file::there"]);
    assert_eq!(known, ["file::there"]);
}

/// Returns all entries of the form `file::test` in the second column of tables.
fn named_tests(page: &str) -> Vec<String> {
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").nth(1));
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    quoted.filter(|name| name.contains("::")).map(str::to_owned).collect()
}

fn tests_of_the_sources() -> BTreeSet<String> {
    let tests = |file: &Path| {
        let stem = match file.file_stem().and_then(|stem| stem.to_str()) {
            Some("mod") => file.parent().and_then(Path::file_name).and_then(|name| name.to_str()),
            stem => stem,
        };
        tests_in(stem.unwrap_or_default(), &text(file).unwrap_or_default())
    };
    files_with("rs").iter().flat_map(|file| tests(file)).collect()
}

/// Returns the names of functions with `#[test]`.
fn tests_in(stem: &str, source: &str) -> Vec<String> {
    let behind_attribute = source.split("#[test]").skip(1);
    let name = |rest: &str| {
        let (_, rest) = rest.split_once("fn ")?;
        let (name, _) = rest.split_once('(')?;
        Some(format!("{stem}::{name}"))
    };
    behind_attribute.filter_map(name).collect()
}
