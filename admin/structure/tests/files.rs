//! Size limits of source files, and absence of machine-specific paths.

use quadrille_structure::{files, files_with, text};
use std::path::Path;

/// Maximum number of lines. A concept that needs more is two concepts.
const MAX_LINES: usize = 450;

/// Tables and generated code.
const GENERATED: &[&str] = &[];

/// Each written in two halves, because this file is checked too.
const MACHINE_PATHS: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];

#[test]
fn sources_are_small() {
    let mut sources = files_with("rs");
    assert!(!sources.is_empty(), "no sources found");
    sources.extend(["ts", "c", "h"].into_iter().flat_map(files_with));
    for file in sources.iter().filter(|file| !GENERATED.iter().any(|generated| Path::new(generated) == *file))
    {
        let text = text(file).expect("sources are UTF-8");
        // A module of tests at the end does not count.
        let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(&text);
        let lines = code.lines().count();
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
            "{generated} does not exist: remove it from the list"
        );
    }
}

/// `cargo` takes a program of another clone that shares the target directory for fresh, and that clone may be gone.
#[test]
fn no_program_contains_the_path_of_its_clone() {
    // In two halves, because this file is checked too.
    let compiled =
        [concat!("env!(\"CARGO_MANIFEST", "_DIR\")"), concat!("env!(\"CARGO_MANIFEST", "_PATH\")")];
    for file in files_with("rs") {
        let text = text(&file).expect("sources are UTF-8");
        assert!(
            !compiled.iter().any(|variable| text.contains(variable)),
            "{} is compiled with the path of its clone: tests and build scripts run in their package's folder, so name \
             files relative to it; other programs read the variable at run time",
            file.display()
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
                "{}:{} names a machine-specific path: {line}",
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
        "a folder of this name may be inside others"
    );
}

/// Returns whether `line` contains `path` at the start of a path.
fn names_absolute(line: &str, path: &str) -> bool {
    let continues = |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || "._-/})*".contains(c));
    line.match_indices(path).any(|(at, _)| !continues(&line[..at]))
}
