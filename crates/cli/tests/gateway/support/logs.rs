//! Logs of processes started by a test. scripts/isolate.sh prints the end of each if the test fails.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Creates a file for a process's output. Without the log folder, thus without scripts/isolate.sh, output is
/// discarded.
pub fn create(name: &str) -> File {
    let path = path(name).unwrap_or_else(|| "/dev/null".into());
    File::options().append(true).create(true).open(path).expect("a log")
}

/// Copies a process's log file, whose folder is removed with the test.
pub fn keep(name: &str, file: &Path) {
    if let Some(path) = path(name) {
        // A process that never started has no log.
        let _ = std::fs::copy(file, path);
    }
}

/// Returns a path numbered in the order of process starts.
fn path(name: &str) -> Option<PathBuf> {
    static COUNT: AtomicUsize = AtomicUsize::new(1);
    let folder = std::env::var_os("QUADRILLE_TEST_LOGS")?;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Some(Path::new(&folder).join(format!("{number:02}-{name}.log")))
}
