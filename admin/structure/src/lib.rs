//! The shape of the repository, as tests can ask for it.
//!
//! - [`crates`]: which workspace crates exist and what they depend on, read from `cargo metadata`.
//! - [`layers`]: who may depend on whom; a pure check of that graph.
//! - [`paths`]: which paths (`std::net::TcpStream`, `crate::model::Route`) a source file names, macros included.
//! - [`circles`]: circles among the modules of a crate; a pure check of its sources.
//! - [`markdown`]: links and heading anchors of a Markdown text.
//!
//! The tests beside this crate apply them to the working tree. Each check is itself tested on a made-up violation,
//! so that none can pass by looking at nothing.

pub mod circles;
pub mod crates;
pub mod layers;
pub mod markdown;
pub mod paths;

use std::path::{Path, PathBuf};

/// The repository's root. Cargo says at run time where the crate lies: what it said at compile time may have been
/// another clone that shares the target directory.
pub fn root() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets this for whatever it runs");
    Path::new(&folder).join("../..").canonicalize().expect("the crate lies two levels below the root")
}

/// Every file of the working tree that `.gitignore` does not exclude, relative to the [`root`], sorted.
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

/// The [`files`] whose names end in `.extension`.
pub fn files_with(extension: &str) -> Vec<PathBuf> {
    files().into_iter().filter(|file| file.extension().is_some_and(|found| found == extension)).collect()
}

/// A file's text, with its path relative to the [`root`]; `None` if it is not UTF-8.
pub fn text(file: &Path) -> Option<String> {
    let bytes = std::fs::read(root().join(file)).expect("a listed file is readable");
    String::from_utf8(bytes).ok()
}
