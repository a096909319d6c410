//! Text format of Unix socket addresses.

use crate::{model::Problem, suggest::quote};
use std::path::Path;

/// Prefix of the address of a server on a Unix socket.
pub const UNIX: &str = "unix:";

/// The capacity of `sockaddr_un`, without the byte that ends a path or begins an abstract name.
const LONGEST_PATH: usize = 107;

/// Checks the path of a Unix socket that this process creates.
pub fn file(path: &Path) -> Result<(), Problem> {
    let text = path.display().to_string();
    check(&text)
}

/// Checks the path of a Unix socket, or its abstract name after `@` (unix(7)).
pub(crate) fn path(path: &str) -> Result<(), Problem> {
    let shown = quote(path);
    if !path.starts_with(['/', '@']) || path.len() == 1 {
        let example = "write `unix:/run/app.sock`, or `unix:@name` for an abstract one";
        return Err(Problem::new(format!("{shown} is not the path of a Unix socket"), example));
    }
    check(path)
}

fn check(path: &str) -> Result<(), Problem> {
    let shown = quote(path);
    if path.len() > LONGEST_PATH {
        return Err(Problem::new(
            format!("{shown} is longer than the kernel accepts"),
            format!("paths of Unix sockets have at most {LONGEST_PATH} bytes"),
        ));
    }
    match path.contains(char::is_control) {
        true => Err(Problem::new(format!("{shown} has control characters"), "write a path without them")),
        false => Ok(()),
    }
}
