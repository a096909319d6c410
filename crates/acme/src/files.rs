//! The state directory: files are replaced atomically, only this user can read them, and one process orders at a
//! time.

use crate::AcmeError;
use quadrille_config::model::Acme;
use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};
use zeroize::Zeroizing;

/// Directory with the account key, certificates and their keys.
#[derive(Clone, Debug)]
pub struct StateDirectory(PathBuf);

/// Lock on the directory. While it is held, no other process orders.
pub(crate) struct Lock(#[expect(dead_code, reason = "closing it is what unlocks")] File);

impl StateDirectory {
    /// Opens the directory, creating it if necessary.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(path: &Path) -> Result<Self, AcmeError> {
        let certificates = path.join("certificates");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&certificates);
        made.map_err(|error| AcmeError::file("make", &certificates, &error))?;
        Ok(Self(path.to_owned()))
    }

    /// Returns the path of a file in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Acquires the lock; `None` while another process holds it.
    pub(crate) fn lock(&self) -> Result<Option<Lock>, AcmeError> {
        let path = self.path("lock");
        let failed = |error: &io::Error| AcmeError::file("lock", &path, error);
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let file = opened.map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed(&error)),
        }
    }
}

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, AcmeError> {
    read_as_given(path).map_err(|error| AcmeError::file("read", path, &error))
}

/// Reads a file outside of `acme.state`; `None` if it does not exist.
pub(crate) fn read_as_given(path: &Path) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(Zeroizing::new(content))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces a file atomically: readers see the old or the new content, also after a power failure.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), AcmeError> {
    replace(path, content).map_err(|error| AcmeError::file("write", path, &error))
}

/// Returns the name of the account's file. Each directory URL of the authority has its own account.
pub(crate) fn account(acme: &Acme) -> String {
    let digest = boring::sha::sha256(acme.directory.as_bytes());
    let name: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("account-{name}.json")
}

/// Moves an unusable account out of the way.
pub(crate) fn put_aside(account: &Path) -> Result<(), AcmeError> {
    match fs::rename(account, account.with_extension("unknown")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(AcmeError::file("rename", account, &error))
        }
        _ => Ok(()),
    }
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let _ = fs::remove_file(&part);
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&part)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_written_is_for_this_user_only_and_whole() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(&directory.path().join("a/b")).unwrap();
        let file = state.path("key");
        write(&file, b"one").unwrap();
        write(&file, b"two").unwrap();
        assert_eq!(**read(&file).unwrap().unwrap(), *b"two");
        assert!(read(&state.path("other")).unwrap().is_none());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(&state.0)), (0o600, 0o700));
        assert_eq!(fs::read_dir(&state.0).unwrap().count(), 2, "no other file is left");
    }

    #[test]
    fn one_process_has_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(directory.path()).unwrap();
        let lock = state.lock().unwrap();
        assert!(lock.is_some() && state.lock().unwrap().is_none());
        drop(lock);
        assert!(state.lock().unwrap().is_some());
    }
}
