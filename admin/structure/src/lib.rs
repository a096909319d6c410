//! The structure of the repository, as input of tests.
//!
//! - [`crates`]: the workspace crates and their dependencies, read from `cargo metadata`.
//! - [`layers`]: the allowed dependencies; a pure check of that graph.
//! - [`paths`]: the paths (`std::net::TcpStream`, `crate::model::Route`) that a source file names, macros included.
//! - [`circles`]: import cycles among the modules of a crate; a pure check of its sources.
//! - [`markdown`]: links, heading anchors and tables of a Markdown text.
//! - [`links`]: relative links of the pages below a folder.
//! - [`unsafe_code`]: unsafe constructs of a source, and the table that names every file with one.
//! - [`variants`]: the variants of an enum.
//! - [`english`]: words that CONTRIBUTING's section on English refuses; [`prose`] finds a source's comments and strings.
//!
//! The tests next to this crate apply them to the working tree. Each check is itself tested on a made-up violation,
//! so that no check passes on empty input.

pub mod circles;
pub mod crates;
pub mod english;
pub mod layers;
pub mod links;
pub mod markdown;
pub mod paths;
pub mod prose;
pub mod unsafe_code;
pub mod variants;

use std::path::{Path, PathBuf};

/// Returns the repository's root. Cargo provides the crate's path at run time; the path at compile time may belong to
/// another clone that shares the target directory.
pub fn root() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets this for all programs it runs");
    Path::new(&folder).join("../..").canonicalize().expect("the crate is two levels below the root")
}

/// Returns every file of the working tree that `.gitignore` does not exclude, relative to the [`root`], sorted.
pub fn files() -> Vec<PathBuf> {
    let root = root();
    let mut files: Vec<_> = ignore::WalkBuilder::new(&root)
        .hidden(false)
        .require_git(false)
        .parents(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build()
        .map(|entry| entry.expect("the working tree is readable"))
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(|entry| entry.path().strip_prefix(&root).expect("the walk stays below the root").to_owned())
        .collect();
    files.sort();
    files
}

/// Returns the [`files`] whose names end in `.extension`.
pub fn files_with(extension: &str) -> Vec<PathBuf> {
    files().into_iter().filter(|file| file.extension().is_some_and(|found| found == extension)).collect()
}

/// Returns a file's text, with its path relative to the [`root`]; `None` if it is not UTF-8.
pub fn text(file: &Path) -> Option<String> {
    let bytes = std::fs::read(root().join(file)).expect("a listed file is readable");
    String::from_utf8(bytes).ok()
}
