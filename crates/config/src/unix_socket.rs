//! Unix sockets, as people write them.

use crate::{model::Problem, text::quote};

/// Begins the address of a server on a Unix socket.
pub const UNIX: &str = "unix:";

/// A Unix socket by its path, or by its abstract name with `@` in front (unix(7)).
pub(crate) fn path(path: &str) -> Result<(), Problem> {
    /// What fits into `sockaddr_un`, with the byte that ends a path or begins an abstract name.
    const LONGEST_PATH: usize = 107;
    let shown = quote(path);
    if !path.starts_with(['/', '@']) || path.len() == 1 {
        let example = "write `unix:/run/app.sock`, or `unix:@name` for an abstract one";
        return Err(Problem::new(format!("{shown} is no path of a Unix socket"), example));
    }
    if path.len() > LONGEST_PATH {
        return Err(Problem::new(
            format!("{shown} is longer than the kernel takes"),
            format!("paths of Unix sockets have at most {LONGEST_PATH} bytes"),
        ));
    }
    match path.contains(char::is_control) {
        true => Err(Problem::new(format!("{shown} has control characters"), "write a path without them")),
        false => Ok(()),
    }
}
