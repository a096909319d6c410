//! Files stay small, and say nothing about the machine they were written on.

use quadrille_structure::{files, files_with, text};
use std::path::Path;

/// A concept that needs more is two concepts.
const MAX_LINES: usize = 450;

/// Tables and code made by a program.
const GENERATED: &[&str] = &[];

/// Written in two halves, because this file is read as well.
const MACHINE_PATHS: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];

#[test]
fn sources_are_small() {
    let mut sources = files_with("rs");
    assert!(!sources.is_empty(), "no sources found");
    sources.extend(["ts", "c", "h"].into_iter().flat_map(files_with));
    for file in sources.iter().filter(|file| !GENERATED.iter().any(|generated| Path::new(generated) == *file))
    {
        let lines = text(file).expect("sources are UTF-8").lines().count();
        assert!(
            lines <= MAX_LINES,
            "{} has {lines} lines, more than {MAX_LINES}: split it by concept",
            file.display()
        );
    }
}

#[test]
fn generated_files_exist() {
    let files = files();
    for generated in GENERATED {
        assert!(
            files.iter().any(|file| file == Path::new(generated)),
            "{generated} is gone: take it off the list"
        );
    }
}

#[test]
fn no_paths_of_a_machine() {
    for file in files() {
        for (number, line) in text(&file).iter().flat_map(|text| text.lines()).enumerate() {
            let found = MACHINE_PATHS.iter().find(|path| names_absolute(line, path));
            assert!(
                found.is_none(),
                "{}:{} names a path of somebody's machine: {line}",
                file.display(),
                number + 1
            );
        }
    }
}

#[test]
fn machine_paths_are_recognised() {
    let [first, ..] = MACHINE_PATHS else { panic!("the list is empty") };
    assert!(names_absolute(&format!("cd {first}quadrille"), first));
    assert!(names_absolute(first, first));
    assert!(
        !names_absolute(&format!("build{first}quadrille"), first),
        "a folder of this name may lie inside others"
    );
}

/// Whether `line` has `path` at the beginning of a path.
fn names_absolute(line: &str, path: &str) -> bool {
    let continues = |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || "._-/})*".contains(c));
    line.match_indices(path).any(|(at, _)| !continues(&line[..at]))
}
