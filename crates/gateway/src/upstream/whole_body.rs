//! Bodies that are read to their end.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;

/// Why a body was not read to its end.
pub(crate) enum UnreadBody<E> {
    TooLong,
    Failed(E),
}

/// All of a body, of at most so many bytes, and its trailers.
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
    /// For the log.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::TooLong => "its answer is too long".to_owned(),
            Self::Failed(error) => error.to_string(),
        }
    }
}
