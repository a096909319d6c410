//! Decisions of an authorization server, and how they change a request.

use crate::http::filter::service_call::CallError;
use crate::http::request::{Request, header_spelling};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The decision of an authorization server.
pub(super) enum Verdict {
    Allowed(Changes),
    Denied {
        status: u16,
        headers: HeaderMap,
        body: Bytes,
    },
    /// Allowed with changes that cannot be made.
    Unfeasible(CallError),
}

/// Changes to a request that was allowed.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) set: Vec<(HeaderName, HeaderValue)>,
    pub(super) add: Vec<(HeaderName, HeaderValue)>,
    /// Appended to headers that are present.
    pub(super) append: Vec<(HeaderName, HeaderValue)>,
    pub(super) add_if_absent: Vec<(HeaderName, HeaderValue)>,
    /// Replacements for headers that are present.
    pub(super) replace: Vec<(HeaderName, HeaderValue)>,
    pub(super) remove: Vec<HeaderName>,
    /// Headers for the response to the client.
    pub(super) response: HeaderMap,
}

impl Changes {
    pub(super) fn apply(self, request: &mut Request) {
        request.owned_headers.extend(self.names());
        let headers = &mut request.headers;
        for name in self.remove {
            header_spelling::remove(headers, &name);
        }
        for (name, value) in self.set {
            header_spelling::set(headers, name, value);
        }
        for (name, value) in self.add {
            headers.append(name, value);
        }
        for (name, value) in self.add_if_absent {
            if !header_spelling::contains(headers, &name) {
                headers.insert(name, value);
            }
        }
        for (name, value) in self.replace {
            if header_spelling::contains(headers, &name) {
                header_spelling::set(headers, name, value);
            }
        }
        for (name, value) in self.append {
            if headers.contains_key(&name) {
                headers.append(name, value);
            }
        }
        request.response_headers.extend(self.response);
    }

    /// Returns the names of the request headers that change.
    fn names(&self) -> Vec<HeaderName> {
        let pairs = [&self.set, &self.add, &self.add_if_absent, &self.replace, &self.append];
        let changed = pairs.into_iter().flatten().map(|(name, _)| name);
        changed.chain(&self.remove).cloned().collect()
    }
}
