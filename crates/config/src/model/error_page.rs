//! Error pages.

use super::{Place, Source};

/// An error page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ErrorPage {
    /// The statuses to which it applies.
    pub statuses: Vec<Statuses>,
    /// The body.
    pub body: Source,
    /// The place of the body in the configuration.
    pub body_place: Place,
    /// The media type of the body.
    pub content_type: String,
    /// Whether the page also replaces errors of servers.
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
