//! What becomes of a request.

use super::{response_body::ResponseBody, tunnel::Tunnel};
use http::Response;

/// What a client gets.
pub(super) enum Outcome {
    Response(Response<ResponseBody>),
    /// The header, and bytes in both directions behind it.
    Tunnel(Response<()>, Box<Tunnel>),
}

impl From<Response<ResponseBody>> for Outcome {
    fn from(response: Response<ResponseBody>) -> Self {
        Self::Response(response)
    }
}
