//! A wall clock that a test sets while a gateway runs. Waits of the gateway, which use the monotonic clock, are not
//! affected.

use super::{serve, succeed};
use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// The clock of processes that are started with its library.
pub struct Clock {
    file: File,
    path: PathBuf,
    library: PathBuf,
}

impl Clock {
    /// Creates a correct clock. Its library and its file are written to `directory`.
    pub fn new(directory: &Path) -> Self {
        // Each clock has its own files: processes keep theirs mapped.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let [source, library, path] =
            ["c", "so", "settings"].map(|kind| directory.join(format!("clock-{number}.{kind}")));
        fs::write(&source, include_str!("clock.c")).expect("writing");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]);
        succeed(compiler.arg(&library).arg(&source));
        fs::write(&path, [0; 16]).expect("writing");
        let file = File::options().write(true).open(&path).expect("the settings");
        Self { file, path, library }
    }

    /// Returns `quadrille serve` with this clock.
    pub fn serve(&self) -> Command {
        let mut command = serve();
        command.env("LD_PRELOAD", &self.library).env("QUADRILLE_TEST_CLOCK", &self.path);
        command
    }

    /// Sets the clock ahead by this many seconds; it runs.
    pub fn runs_ahead(&self, seconds: i64) {
        self.set([seconds, 0]);
    }

    /// Stops the clock at this second since 1970.
    pub fn stands_at(&self, second: i64) {
        self.set([0, second]);
    }

    fn set(&self, settings: [i64; 2]) {
        let bytes = settings.map(i64::to_ne_bytes).concat();
        self.file.write_all_at(&bytes, 0).expect("setting the clock");
    }
}

/// Returns the machine's time in seconds since 1970.
pub fn unix_now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    i64::try_from(now.as_secs()).expect("a time")
}
