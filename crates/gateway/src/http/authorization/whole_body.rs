//! A body that is there at once.

use crate::upstream::{BoxError, RequestBody};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};

pub(super) fn whole(bytes: Bytes) -> RequestBody {
    RequestBody::new(Box::pin(Full::new(bytes).map_err(|never| -> BoxError { match never {} })))
}
