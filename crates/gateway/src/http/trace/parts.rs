//! What is told of a request and of its attempts.

use crate::upstream::ServerAddress;
use std::time::{Duration, Instant};

/// Characters of what clients say, at most.
const LONGEST: usize = 1024;

/// How a request has ended.
pub(in crate::http) struct Ended<'a> {
    /// Of the response that was sent; 0 without one.
    pub(in crate::http) status: u16,
    /// Of its body.
    pub(in crate::http) bytes: usize,
    pub(in crate::http) error: Option<&'static str>,
    pub(in crate::http) upstream: Option<&'a str>,
}

impl Ended<'_> {
    pub(super) fn has_failed(&self) -> bool {
        self.status == 0 || self.status >= 500
    }
}

/// One attempt at a server.
pub(in crate::http) struct Attempt<'a> {
    pub(in crate::http) began: Instant,
    pub(in crate::http) took: Duration,
    pub(in crate::http) upstream: &'a str,
    pub(in crate::http) server: &'a ServerAddress,
    /// Of the response, if there was one.
    pub(in crate::http) status: Option<u16>,
}

pub(super) fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}
