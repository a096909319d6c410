//! Persistent storage of responses. A stored response is verified like a fetched one: write access to the files gives
//! no more power than a responder has.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

/// Maximum size of a file, as for a fetched response.
const LARGEST: u64 = 32 * 1024;
/// Age at which a file is removed. Responses are valid for days; a file not written for this long belongs to a
/// certificate that is no longer served.
const FORGOTTEN: Duration = Duration::from_secs(60 * 24 * 3600);

/// Returns the content of a file, if it exists.
pub(crate) fn read(file: &Path) -> Option<Vec<u8>> {
    let mut der = Vec::new();
    File::open(file).ok()?.take(LARGEST).read_to_end(&mut der).ok()?;
    Some(der)
}

/// Replaces or creates a file, with its directory, and removes expired files.
pub(crate) fn write(file: &Path, der: &[u8]) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let part = file.with_extension(format!("{}.part", std::process::id()));
    fs::write(&part, der)?;
    fs::rename(&part, file)?;
    for entry in fs::read_dir(directory)?.filter_map(Result::ok) {
        let age = entry.metadata().and_then(|known| known.modified()).ok();
        let age = age.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        if age.is_some_and(|age| age > FORGOTTEN) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
