//! Who a request is from, and what servers are told of that.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::sync::Arc;

/// Who a request is from, by name and password.
#[derive(Clone)]
pub(super) struct User {
    pub(super) name: Arc<str>,
    /// Tells the server of the name.
    pub(super) header: Option<(HeaderName, HeaderValue)>,
    /// The server gets the password too.
    pub(super) forwards: bool,
}

impl User {
    /// Makes of a request's headers what a server gets.
    pub(super) fn change(&self, headers: &mut HeaderMap) {
        if !self.forwards {
            headers.remove(header::AUTHORIZATION);
        }
        if let Some((name, value)) = &self.header {
            headers.insert(name, value.clone());
        }
    }
}
