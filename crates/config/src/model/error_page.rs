//! What clients read of errors.

use super::{Place, Source};

/// A page for errors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ErrorPage {
    /// For which.
    pub statuses: Vec<Statuses>,
    /// What it says.
    pub body: Source,
    /// Where that was written.
    pub body_place: Place,
    /// The media type of the body.
    pub content_type: String,
    /// Errors of servers get it too, in the place of what these say.
    pub of_servers: bool,
}

/// A status, or all of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statuses {
    /// This one.
    One(u16),
    /// All that begin with this digit.
    Class(u16),
}
