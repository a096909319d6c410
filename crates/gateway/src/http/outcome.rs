//! What becomes of a request.

use super::{response_body::ResponseBody, tunnel::Tunnel};
use http::{HeaderMap, Response};

/// What a client gets.
pub(super) enum Outcome {
    Response(Response<ResponseBody>),
    /// The header, and bytes in both directions behind it.
    Tunnel(Response<()>, Box<Tunnel>),
}

impl Outcome {
    /// Adds to the headers that there are.
    pub(super) fn add_headers(&mut self, more: &HeaderMap) {
        let headers = match self {
            Self::Response(response) => response.headers_mut(),
            Self::Tunnel(response, _) => response.headers_mut(),
        };
        for (name, value) in more {
            headers.append(name, value.clone());
        }
    }
}

impl From<Response<ResponseBody>> for Outcome {
    fn from(response: Response<ResponseBody>) -> Self {
        Self::Response(response)
    }
}
