//! Index of the tests that show the effects of keys: each key of the reference has one.

use crate::file::sections::SECTIONS;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Lines of a section, keys of it, and the test that shows the effect of those: the name of its file, or of the folder of a
/// `mod.rs`, and its own. The tests are in `crates/*/tests` and beside the sources.
const EFFECTS: &str = include_str!("effects.txt");

/// Keys without such a test: their values are read and shown, and that is tested.
const WITHOUT: &[(&str, &str)] = &[
    // The code of certificates with `keyless` in the section above, which has its tests.
    ("acme.on_demand", "keyless"),
];

#[test]
fn every_key_has_a_test_of_its_effect() {
    let keys = effects().flat_map(|[section, keys, _]| keys.split(' ').map(move |key| (section, key)));
    let mut listed = BTreeSet::new();
    for key in keys.chain(WITHOUT.iter().copied()) {
        assert!(listed.insert(key), "{key:?} is in the index twice");
    }
    for section in SECTIONS {
        for key in section.keys() {
            let found = listed.remove(&(section.path(), key.name));
            assert!(
                found,
                "no test of the effect of `{}` in `{}`: add it to effects.txt",
                key.name,
                section.path()
            );
        }
    }
    assert!(listed.is_empty(), "these keys do not exist: {listed:?}");
}

#[test]
fn every_test_of_an_effect_exists() {
    let mut files = Vec::new();
    sources(Path::new(".."), &mut files);
    assert!(files.len() > 300, "only {} sources", files.len());
    let tests: BTreeSet<String> = files.iter().flat_map(|file| tests_of(file)).collect();
    let missing: BTreeSet<_> =
        effects().map(|[_, _, test]| test).filter(|test| !tests.contains(*test)).collect();
    assert!(missing.is_empty(), "these tests do not exist: {missing:?}");
}

/// Returns section, keys and test of each line.
fn effects() -> impl Iterator<Item = [&'static str; 3]> {
    EFFECTS.lines().map(|line| {
        let parts: Vec<_> = line.split('|').map(str::trim).collect();
        parts.try_into().unwrap_or_else(|_| panic!("not a line of three parts: {line}"))
    })
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the names of the functions with `#[test]` in a source, each after the name of the file.
fn tests_of(file: &Path) -> Vec<String> {
    let source = fs::read_to_string(file).unwrap();
    let stem = file.file_stem().unwrap().to_str().unwrap();
    let folder = file.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let stem = if stem == "mod" { folder.unwrap_or_default() } else { stem };
    let behind = source.split("#[test]").skip(1).filter_map(|rest| rest.split_once("fn ")?.1.split_once('('));
    behind.map(|(name, _)| format!("{stem}::{name}")).collect()
}
