//! Bodies of responses, and the paths that select them.

use std::io;

use bytes::Bytes;

/// Bodies of responses.
#[derive(Clone, Debug)]
pub(super) struct Responses {
    /// Random bytes, which do not become smaller in the 32 KiB that gzip looks back.
    piece: Bytes,
    small: usize,
    large: usize,
}

/// Response to the key of the misbehaving clients' WebSocket handshakes (RFC 6455 section 1.3).
pub(in crate::fair) const WEBSOCKET_ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// Length of a piece of a body.
const PIECE: usize = 64 << 10;

/// Returns whether a request is that of the well-behaved client.
pub(super) fn is_measured(path: &str) -> bool {
    path.starts_with("/well-behaved")
}

impl Responses {
    /// Makes bodies of these lengths.
    pub(super) fn new(small: usize, large: usize) -> io::Result<Self> {
        let mut piece = vec![0; PIECE];
        boring::rand::rand_bytes(&mut piece).map_err(io::Error::other)?;
        Ok(Self { piece: piece.into(), small, large })
    }

    /// Returns the length of the response to a request.
    pub(super) fn length(&self, path: &str) -> usize {
        if path.starts_with("/large") { self.large } else { self.small }
    }

    /// Returns a body of this length in pieces.
    pub(super) fn body(&self, length: usize) -> impl Iterator<Item = Bytes> {
        (0..length).step_by(PIECE).map(move |start| self.piece.slice(..PIECE.min(length - start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_their_length() {
        let responses = Responses::new(1_400, 64 << 20).unwrap();
        for path in ["/large", "/well-behaved", "/"] {
            let length = responses.length(path);
            assert_eq!(responses.body(length).map(|piece| piece.len()).sum::<usize>(), length, "{path}");
        }
        assert_eq!(Responses::new(0, 0).unwrap().body(0).count(), 0);
    }
}
