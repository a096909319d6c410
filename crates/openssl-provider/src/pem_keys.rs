//! What `QUADRILLE KEY` blocks in PEM files may name: only what openssl.cnf lists.
//!
//! A URI stands in a server's own configuration. A PEM file may have been uploaded by one of many customers, and must not
//! bring a key of this machine along that somebody else's file holds.

use crate::error::{Failure, Reason};
use std::{
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicPtr, Ordering},
};

/// Directories, files and sockets. A list that was replaced by another is not freed: somebody may still read it, and a
/// process has one configuration as a rule.
static LISTED: AtomicPtr<Vec<PathBuf>> = AtomicPtr::new(std::ptr::null_mut());

/// Takes the setting: absolute paths with commas between them.
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

/// Whether this path is listed, or lies below a directory that is.
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
