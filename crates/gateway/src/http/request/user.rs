//! The authenticated user of a request, and its headers for upstreams.

use super::header_spelling;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::Arc;

/// The user of a request, authenticated with a password.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) name: Arc<str>,
    /// Header that carries the user name to upstreams.
    pub(crate) header: Option<(HeaderName, HeaderValue)>,
    /// Whether the password is forwarded to upstreams.
    pub(crate) forwards: bool,
}

impl User {
    /// Adapts the request headers for upstreams.
    pub(crate) fn change(&self, headers: &mut HeaderMap) {
        if !self.forwards {
            headers.remove(header::AUTHORIZATION);
        }
        if let Some((name, value)) = &self.header {
            header_spelling::set(headers, name.clone(), value.clone());
        }
    }
}
