//! Text of files.

use crate::{
    diagnostic::Diagnostics,
    model::{Origin, Problem},
};
use std::{io, path::Path};
use zeroize::Zeroizing;

/// Reads a file of text, which may hold private keys.
///
/// # Errors
/// If it cannot be read, or is not UTF-8 text.
pub fn read_text(path: &Path) -> Result<Zeroizing<String>, Diagnostics> {
    let refuse = |problem| Diagnostics::whole(Origin::file(&path.display().to_string()), problem);
    let bytes = std::fs::read(path).map(Zeroizing::new).map_err(|error| refuse(unreadable(&error)))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(refuse(Problem::new("not UTF-8 text", "save it as UTF-8"))),
    }
}

fn unreadable(error: &io::Error) -> Problem {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => Some("check the path"),
        io::ErrorKind::PermissionDenied => Some("give the user that runs quadrille read access"),
        io::ErrorKind::IsADirectory => Some("name a file in this directory"),
        _ => None,
    };
    Problem { message: format!("cannot be read: {error}"), remedy: remedy.map(str::to_owned) }
}
