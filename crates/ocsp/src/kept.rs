//! Responses in files, which outlive a process. Who reads one checks it as if it had just come: whoever can write here
//! can do no more than a responder can.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    time::{Duration, SystemTime},
};

/// As large as what a responder may send.
const LARGEST: u64 = 32 * 1024;
/// Responses hold for days. A file that nobody has written for so long is of a certificate that is not served any more.
const FORGOTTEN: Duration = Duration::from_secs(60 * 24 * 3600);

/// What a file holds, if it is there.
pub(crate) fn read(file: &Path) -> Option<Vec<u8>> {
    let mut der = Vec::new();
    File::open(file).ok()?.take(LARGEST).read_to_end(&mut der).ok()?;
    Some(der)
}

/// Replaces a file, or makes it with its directory, and removes those that have been forgotten.
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
