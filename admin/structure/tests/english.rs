//! Comments, messages, pages and commit subjects follow CONTRIBUTING's section on English, as far as a list of words can tell.

use quadrille_structure::{
    english::{self, Place},
    files, root, text,
};
use std::{
    io::{self, Write},
    path::Path,
    process::Command,
};

/// Texts that others wrote, lists of the refused words, and recorded inputs.
const EXEMPT: &[&str] = &[
    "LICENSE",
    "packages/php/extension/Cargo.lock",
    // Its section on English quotes the words.
    "CONTRIBUTING.md",
    "admin/structure/src/english.rs",
    "admin/structure/tests/english.rs",
    "Cargo.lock",
    "fuzz/",
];

/// Words of standards, protocols and other programs, by the beginning of the path and the words.
const ALLOWED: &[(&str, &str)] = &[
    // Python's `is None`.
    ("bench/envoy.py", "is None"),
    ("crates/kernels/tests/emulated/emulator.py", "is None"),
    ("scripts/", "is None"),
    // The user of Unix.
    ("bench/handshakes/src/rival/template.rs", "nobody"),
    ("docs/guide/provider-apache.md", "nobody"),
    ("crates/openssl-provider/tests/provider/servers.rs", "nobody"),
    // The flag `--kill-whom` of systemd.
    ("docs/guide/", "whom"),
    // A method of hickory.
    ("crates/gateway/src/upstream/names/", "is_no"),
    // The key `acme.on_demand.ask`, a placeholder, an enum of Envoy, and types in a picture.
    ("crates/cli/tests/acme/on_demand.rs", "ask"),
    ("crates/cli/tests/acme/failures.rs", "ask"),
    ("docs/guide/acme.md", "ask"),
    ("bench/handshakes/src/rival/envoy.rs", "answer"),
    ("bench/handshakes/src/rival/template.rs", "answer"),
    ("crates/envoy/src/tests/rbac.rs", "ASK"),
    ("crates/acme/src/lib.rs", "Answers"),
    ("crates/keyless/src/lib.rs", "Answer"),
    // The variable `answered` in a message.
    ("crates/cli/tests/gateway/support/load.rs", "answered"),
];

/// The last commit before this rule.
const BASE: &str = "d78e8882";

#[test]
fn texts_use_no_refused_words() {
    report(files().iter().flat_map(|file| {
        let found = text(file).map(|text| english::refused_words(&text)).unwrap_or_default();
        places(file, found)
    }));
}

#[test]
fn standard_terms_are_used() {
    report(files().iter().flat_map(|file| {
        let check = match file.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => english::terms_of_source,
            Some("md") => english::terms_of_page,
            _ => return Vec::new(),
        };
        places(file, text(file).map(|text| check(&text)).unwrap_or_default())
    }));
}

#[test]
fn documentation_begins_with_a_noun_or_a_verb() {
    report(
        files().iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs")).flat_map(
            |file| places(file, text(file).map(|text| english::openers(&text)).unwrap_or_default()),
        ),
    );
}

#[test]
fn subjects_of_commits_are_imperatives() {
    let range = format!("{BASE}..HEAD");
    let log = Command::new("git")
        .args(["log", "--no-merges", "--format=%h %s", &range])
        .current_dir(root())
        .output();
    let Some(log) = log.ok().filter(|log| log.status.success()) else {
        let _ = writeln!(io::stderr(), "SKIPPED: the subjects of commits: this copy has no history");
        return;
    };
    let log = String::from_utf8(log.stdout).expect("subjects are UTF-8");
    report(log.lines().filter_map(|line| line.split_once(' ')).flat_map(|(commit, subject)| {
        let broken = english::subject(subject).into_iter();
        broken.map(move |rule| format!("commit {commit}, {subject:?}: {rule}")).collect::<Vec<_>>()
    }));
}

fn places(file: &Path, found: Vec<Place>) -> Vec<String> {
    let path = file.to_str().expect("paths are UTF-8");
    if EXEMPT.iter().any(|exempt| path.starts_with(exempt)) {
        return Vec::new();
    }
    let allowed = |place: &Place| {
        ALLOWED
            .iter()
            .any(|(prefix, words)| path.starts_with(prefix) && place.words.eq_ignore_ascii_case(words))
    };
    let refused = found.into_iter().filter(|place| !allowed(place));
    refused.map(|place| format!("{path}:{}: {:?}: {}", place.line, place.words, place.remedy)).collect()
}

fn report(places: impl Iterator<Item = String>) {
    let places: Vec<_> = places.collect();
    assert!(places.is_empty(), "{} places:\n  {}\n", places.len(), places.join("\n  "));
}
