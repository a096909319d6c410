//! Reading of complete bodies.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;

/// Reason for an incomplete body.
pub(crate) enum UnreadBody<E> {
    TooLong,
    Failed(E),
}

/// Reads a body of at most `most` bytes, and its trailers.
pub(crate) async fn read_whole<B: Body<Data = Bytes> + Unpin>(
    mut body: B,
    most: usize,
) -> Result<(Bytes, Option<HeaderMap>), UnreadBody<B::Error>> {
    let (mut whole, mut trailers) = (BytesMut::new(), None);
    while let Some(frame) = body.frame().await {
        match frame.map_err(UnreadBody::Failed)?.into_data() {
            Ok(data) if whole.len() + data.len() > most => return Err(UnreadBody::TooLong),
            Ok(data) => whole.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    Ok((whole.freeze(), trailers))
}

impl<E: ToString> UnreadBody<E> {
    /// Returns the reason for the log.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::TooLong => "the response is too long".to_owned(),
            Self::Failed(error) => error.to_string(),
        }
    }
}
