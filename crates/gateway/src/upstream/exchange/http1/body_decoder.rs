//! Decoder of response bodies, for all kinds of framing (RFC 9112 section 6).

use super::{
    chunked::{ChunkedDecoder, Part},
    malformed::Malformed,
};
use bytes::Bytes;
use http_body::SizeHint;

/// Decodes a response body.
#[derive(Debug)]
pub(super) struct BodyDecoder(Framing);

#[derive(Debug)]
enum Framing {
    /// Number of remaining bytes.
    Length(u64),
    Chunked(Box<ChunkedDecoder>),
    /// The body ends with the connection.
    UntilClose,
}

impl BodyDecoder {
    /// Creates a decoder for a response without a body.
    pub(super) fn none() -> Self {
        Self::length(0)
    }

    pub(super) fn length(length: u64) -> Self {
        Self(Framing::Length(length))
    }

    pub(super) fn chunked() -> Self {
        Self(Framing::Chunked(Box::default()))
    }

    pub(super) fn until_close() -> Self {
        Self(Framing::UntilClose)
    }

    /// Returns whether the end of the body is not that of the connection.
    pub(super) fn has_an_end(&self) -> bool {
        !matches!(self.0, Framing::UntilClose)
    }

    pub(super) fn is_complete(&self) -> bool {
        match &self.0 {
            Framing::Length(left) => *left == 0,
            Framing::Chunked(chunked) => chunked.is_complete(),
            Framing::UntilClose => false,
        }
    }

    /// Handles the end of the connection.
    pub(super) fn end(&mut self) -> Result<(), Malformed> {
        if self.has_an_end() {
            return Err(Malformed("the connection was closed before the end of the body"));
        }
        *self = Self::none();
        Ok(())
    }

    /// Returns the number of remaining bytes, if it is known.
    pub(super) fn remaining(&self) -> Option<u64> {
        match &self.0 {
            Framing::Length(left) => Some(*left),
            Framing::Chunked(_) | Framing::UntilClose => None,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.remaining().map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    /// Decodes the next part; `None` if that requires more bytes, or the body is complete.
    pub(super) fn decode(&mut self, input: &mut Bytes) -> Result<Option<Part>, Malformed> {
        let data = match &mut self.0 {
            Framing::Chunked(chunked) => return chunked.decode(input),
            Framing::UntilClose => std::mem::take(input),
            Framing::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= count as u64;
                input.split_to(count)
            }
        };
        Ok(Some(data).filter(|data| !data.is_empty()).map(Part::Data))
    }
}
