//! Configuration files for tests.

use super::Pair;
use std::{
    fmt::Display,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// A configuration file in its own directory.
pub struct Configuration {
    directory: TempDir,
}

impl Configuration {
    pub fn new(text: &str) -> Self {
        let this = Self { directory: tempfile::tempdir().expect("a temporary directory") };
        this.replace(text);
        this
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("quadrille.yaml")
    }

    /// Replaces the file atomically, as editors and deployment tools do.
    pub fn replace(&self, text: &str) {
        replace(&self.path(), text.as_bytes());
    }
}

/// Replaces a file atomically.
pub fn replace(path: &Path, contents: &[u8]) {
    let new = path.with_extension("new");
    std::fs::write(&new, contents).expect("writing");
    std::fs::rename(&new, path).expect("renaming");
}

/// Returns a listener on a free port, with this certificate and these further keys, in YAML's flow style.
pub fn listener(pair: &Pair, keys: &str) -> String {
    listener_at("127.0.0.1:0", pair, keys)
}

/// Returns a listener at an address.
pub fn listener_at(address: impl Display, pair: &Pair, keys: &str) -> String {
    let (chain, key) = (pair.chain.display(), pair.key.display());
    format!("{{address: \"{address}\", certificates: [{{chain: {chain}, key: {key}}}], {keys}}}")
}

/// Returns a document with these listeners and upstreams (`name: {...}`), the admin pages on a free port.
pub fn document(listeners: &[String], upstreams: &str) -> String {
    let listeners = listeners.join(",\n  ");
    format!(
        "admin: 127.0.0.1:0\nthreads: 2\nlisteners: [\n  {listeners}]\nupstreams: {{{upstreams}}}\nlame_duck: 0s\n"
    )
}
