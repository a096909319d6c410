//! Properties of a section that its rules depend on, and what they become.

use super::{section::Section, test::Lists};
use crate::yaml::Map;

/// Results of the rules of a section.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// `rules` of the listener.
    pub(super) rules: Vec<Map>,
    pub(super) request_headers: Vec<Map>,
    pub(super) response_headers: Vec<Map>,
    pub(super) host: Option<String>,
}

/// Properties of the place of the rules.
pub(super) struct Place<'p> {
    pub(super) lists: &'p Lists<'p>,
    pub(super) tls: bool,
    pub(super) requests_certificates: bool,
    /// The section with the stick table of the counters.
    pub(super) section: &'p Section,
    /// Whether the rules concern the whole listener, not one backend.
    pub(super) of_listener: bool,
}
