//! Files that are appended to.

use rustix::{fs::OFlags, io::Errno};
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Opens a file to append to. A FIFO is opened without waiting for its reader, which would block the start.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    const NONBLOCKING: i32 = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().create(true).append(true).custom_flags(NONBLOCKING).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::NXIO.raw_os_error() => {
            let problem =
                "it is a FIFO without a reader: start the reader first, or write to a file or to `stdout`";
            io::Error::new(error.kind(), problem)
        }
        _ => error,
    })?;
    // The log's thread waits for a slow reader; a non-blocking file would lose parts of lines.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}
