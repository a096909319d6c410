//! Keys that `QUADRILLE KEY` blocks in PEM files may name: only those listed in openssl.cnf.
//!
//! A URI in a server's own configuration is trusted. A PEM file may have been uploaded by one of many customers, and
//! must not gain access to a key of this machine that belongs to another customer.

use crate::error::{Failure, Reason};
use std::{
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicPtr, Ordering},
};

/// Allowed directories, files and sockets. A replaced list is not freed: it may still be read, and a process usually
/// loads one configuration.
static LISTED: AtomicPtr<Vec<PathBuf>> = AtomicPtr::new(std::ptr::null_mut());

/// Parses the setting: absolute paths separated by commas.
pub(crate) fn list(setting: &str) -> Result<(), Failure> {
    let mut listed = Vec::new();
    for path in setting.split(',').map(str::trim).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        if !is_plain(&path) {
            let detail = format!("pem-keys: {}: paths must be absolute, without `..`", path.display());
            return Err(Failure::new(Reason::BadConfiguration, detail));
        }
        listed.push(path);
    }
    if current() != listed {
        LISTED.store(Box::into_raw(Box::new(listed)), Ordering::Release);
    }
    Ok(())
}

/// Returns whether this path is listed, or is below a listed directory.
pub(crate) fn covers(path: &Path) -> bool {
    is_plain(path) && current().iter().any(|listed| path.starts_with(listed))
}

fn current() -> &'static [PathBuf] {
    // SAFETY: it is null, or was made by `list` and is never freed.
    unsafe { LISTED.load(Ordering::Acquire).as_ref() }.map_or(&[], Vec::as_slice)
}

fn is_plain(path: &Path) -> bool {
    path.is_absolute() && path.components().all(|part| part != Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::{covers, list};
    use std::path::Path;

    #[test]
    fn only_what_is_listed_is_covered() {
        assert!(!covers(Path::new("/etc/ssl/site.pem")), "nothing is listed");
        list("/etc/ssl/, /run/quadrille/keys.sock").expect("absolute paths");
        for (path, covered) in [
            ("/etc/ssl/site.pem", true),
            ("/etc/ssl/private/site.key", true),
            ("/run/quadrille/keys.sock", true),
            ("/etc/ssl2/site.pem", false),
            ("/etc/ssl/../shadow", false),
            ("/run/quadrille/other.sock", false),
            ("etc/ssl/site.pem", false),
        ] {
            assert_eq!(covers(Path::new(path)), covered, "{path}");
        }
        assert!(list("keys").is_err() && list("/etc/../root").is_err());
    }
}
