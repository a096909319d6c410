//! Logs of the processes that a test starts. scripts/isolate.sh prints the end of each when the test fails.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

/// A file for what a process writes. Without the folder for logs, thus without scripts/isolate.sh, it leads nowhere.
pub fn create(name: &str) -> File {
    let path = path(name).unwrap_or_else(|| "/dev/null".into());
    File::options().append(true).create(true).open(path).expect("a log")
}

/// Keeps a process's own log file, whose folder goes with the test.
pub fn keep(name: &str, file: &Path) {
    if let Some(path) = path(name) {
        // A process that never started has written none.
        let _ = std::fs::copy(file, path);
    }
}

/// Numbered in the order in which processes start.
fn path(name: &str) -> Option<PathBuf> {
    static COUNT: AtomicUsize = AtomicUsize::new(1);
    let folder = std::env::var_os("QUADRILLE_TEST_LOGS")?;
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Some(Path::new(&folder).join(format!("{number:02}-{name}.log")))
}
