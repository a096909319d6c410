//! Key ring files: read only if other users cannot read them, replaced atomically, and changed by one process at a time.

use super::KeyRing;
use crate::KeyRingError;
use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::Path,
};
use tempfile::NamedTempFile;
use zeroize::Zeroizing;

/// Upper limit of a file's size; a ring has few keys.
const LARGEST: u64 = 1 << 20;

/// Lock on a key ring file, held until it is dropped: a process that changes the file reads it under the lock, so that
/// no change of another process is lost.
pub struct KeyRingLock(#[expect(dead_code, reason = "closing the file releases the lock")] File);

impl KeyRing {
    /// Waits for other processes that change the file. Reading it needs no lock.
    pub fn lock(path: impl AsRef<Path>) -> Result<KeyRingLock, KeyRingError> {
        let path = path.as_ref();
        lock(path).map_err(|error| cannot("lock", error).of_file(path))
    }

    /// Reads a file. It must be a regular file, belong to the user of this process or to root, and be inaccessible to
    /// group and others (mode 0600 or 0400).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, KeyRingError> {
        let path = path.as_ref();
        load(path).map_err(|error| error.of_file(path))
    }

    /// Writes a new file with mode 0600; does not replace an existing one.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<(), KeyRingError> {
        let path = path.as_ref();
        let written = || {
            self.written_beside(path)?.persist_noclobber(path)?;
            sync_folder(path)
        };
        written().map_err(|error| cannot("write", error).of_file(path))
    }

    /// Replaces a file by this ring, atomically: after a crash there is the old one or the new one. Owner and group
    /// are preserved, if this user may set them.
    pub fn replace(&self, path: impl AsRef<Path>) -> Result<(), KeyRingError> {
        let path = path.as_ref();
        let replaced = || {
            // Resolves symbolic links to the file itself.
            let path = path.canonicalize()?;
            let old = path.metadata()?;
            let file = self.written_beside(&path)?;
            std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()))?;
            file.persist(&path)?;
            sync_folder(&path)
        };
        replaced().map_err(|error| cannot("replace", error).of_file(path))
    }

    /// Creates a file in the same folder, with mode 0600 (set by tempfile) and synced to disk.
    fn written_beside(&self, path: &Path) -> io::Result<NamedTempFile> {
        let mut file = NamedTempFile::new_in(folder(path))?;
        file.write_all(self.to_text().as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file)
    }
}

fn lock(path: &Path) -> io::Result<KeyRingLock> {
    loop {
        let file = File::open(path)?;
        file.lock()?;
        // The holder before may have replaced the file.
        let (locked, current) = (file.metadata()?, path.metadata()?);
        if (locked.dev(), locked.ino()) == (current.dev(), current.ino()) {
            return Ok(KeyRingLock(file));
        }
    }
}

fn load(path: &Path) -> Result<KeyRing, KeyRingError> {
    let file = File::open(path).map_err(|error| cannot("read", error))?;
    let metadata = file.metadata().map_err(|error| cannot("read", error))?;
    if !metadata.is_file() {
        return Err(KeyRingError::new("is not a plain file"));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        let what = format!(
            "others may read the keys (mode {mode:04o}); close it with: chmod 600 {}",
            path.display()
        );
        return Err(KeyRingError::new(what));
    }
    // SAFETY: the call has no preconditions.
    let user = unsafe { libc::geteuid() };
    if user != 0 && ![0, user].contains(&metadata.uid()) {
        let what = format!("belongs to user {}, neither to this one ({user}) nor to root", metadata.uid());
        return Err(KeyRingError::new(what));
    }
    // One byte more than allowed shows that the file is too large; the buffer is not reallocated, which would leave a
    // copy.
    let mut bytes = Zeroizing::new(Vec::with_capacity(metadata.len().min(LARGEST) as usize + 1));
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| cannot("read", error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(KeyRingError::new("is larger than 1 MiB: not a key ring"));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| KeyRingError::new("is not text: not a key ring"))?;
    KeyRing::parse(text)
}

fn cannot(verb: &str, source: io::Error) -> KeyRingError {
    KeyRingError::new(format!("cannot {verb} the key ring")).because(source)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}
