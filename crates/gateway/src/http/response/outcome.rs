//! Outcome of a request.

use super::{body::ResponseBody, tunnel::Tunnel};
use http::Response;

/// Outcome of a request for the client.
pub(crate) enum Outcome {
    Response(Response<ResponseBody>),
    /// A response header, followed by bytes in both directions.
    Tunnel(Response<()>, Box<Tunnel>),
}

impl From<Response<ResponseBody>> for Outcome {
    fn from(response: Response<ResponseBody>) -> Self {
        Self::Response(response)
    }
}
