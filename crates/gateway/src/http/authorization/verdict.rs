//! What an authorization server decides, and what becomes of a request by that.

use crate::http::request::Request;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

/// What a server has decided.
pub(super) enum Verdict {
    Allowed(Changes),
    Denied { status: u16, headers: HeaderMap, body: Bytes },
}

/// What becomes of a request that is let in.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) set: Vec<(HeaderName, HeaderValue)>,
    pub(super) add: Vec<(HeaderName, HeaderValue)>,
    /// To headers that are there.
    pub(super) append: Vec<(HeaderName, HeaderValue)>,
    pub(super) add_if_absent: Vec<(HeaderName, HeaderValue)>,
    /// Of headers that are there.
    pub(super) replace: Vec<(HeaderName, HeaderValue)>,
    pub(super) remove: Vec<HeaderName>,
    /// For the client.
    pub(super) response: HeaderMap,
}

impl Changes {
    pub(super) fn apply(self, request: &mut Request) {
        let headers = &mut request.headers;
        for name in self.remove {
            headers.remove(name);
        }
        for (name, value) in self.set {
            headers.insert(name, value);
        }
        for (name, value) in self.add {
            headers.append(name, value);
        }
        for (name, value) in self.add_if_absent {
            headers.entry(name).or_insert(value);
        }
        for (name, value) in self.replace {
            if headers.contains_key(&name) {
                headers.insert(name, value);
            }
        }
        for (name, value) in self.append {
            if headers.contains_key(&name) {
                headers.append(name, value);
            }
        }
        request.answer_headers.extend(self.response);
    }
}
