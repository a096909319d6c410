//! Error for malformed HTTP/1.1 responses.

use std::fmt;

/// Description of a malformed response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Malformed(pub(super) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}
