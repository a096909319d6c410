//! Descriptions of a request and its attempts for spans.

use crate::upstream::ServerAddress;
use std::time::{Duration, Instant};

/// Maximum length of text from clients, in characters.
const LONGEST: usize = 1024;

/// End of a request.
pub(crate) struct Ended<'a> {
    /// Status of the response; 0 without one.
    pub(crate) status: u16,
    /// Number of bytes of the response body.
    pub(crate) bytes: usize,
    pub(crate) error: Option<&'static str>,
    pub(crate) upstream: Option<&'a str>,
}

impl Ended<'_> {
    pub(super) fn has_failed(&self) -> bool {
        self.status == 0 || self.status >= 500
    }
}

/// One attempt at an endpoint.
pub(crate) struct Attempt<'a> {
    pub(crate) began: Instant,
    pub(crate) took: Duration,
    pub(crate) upstream: &'a str,
    pub(crate) server: &'a ServerAddress,
    /// Status of the response, if there was one.
    pub(crate) status: Option<u16>,
}

pub(super) fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}
