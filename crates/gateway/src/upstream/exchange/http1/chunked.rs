//! Chunked transfer coding of a response (RFC 9112 section 7.1).

use super::malformed::Malformed;
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Maximum length of a line, with a chunk's size and extensions or a trailer field.
const MOST_LINE: usize = 16 * 1024;

/// Maximum number of trailer fields.
const MOST_TRAILERS: usize = 100;

/// Part of a body.
#[derive(Debug, PartialEq)]
pub(super) enum Part {
    Data(Bytes),
    Trailers(HeaderMap),
}

/// Incremental decoder of chunks.
#[derive(Debug, Default)]
pub(super) struct ChunkedDecoder {
    state: State,
    /// Start of an incomplete line.
    line: BytesMut,
    trailers: HeaderMap,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Size,
    /// Number of remaining bytes of the chunk.
    Data(u64),
    /// Line end after a chunk's data.
    DataEnd,
    Trailers,
    Complete,
}

impl ChunkedDecoder {
    /// Returns whether the body has ended, including its trailers.
    pub(super) fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Decodes the next part; `None` if that requires more bytes, or the body is complete.
    pub(super) fn decode(&mut self, input: &mut Bytes) -> Result<Option<Part>, Malformed> {
        loop {
            if let State::Data(left) = self.state
                && left > 0
            {
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                self.state = State::Data(left - count as u64);
                return Ok(Some(input.split_to(count)).filter(|data| !data.is_empty()).map(Part::Data));
            }
            if self.is_complete() {
                return Ok(None);
            }
            if self.state == State::Data(0) {
                self.state = State::DataEnd;
            }
            let Some(line) = self.line(input)? else { return Ok(None) };
            self.state = match self.state {
                State::Size => match size(&line)? {
                    0 => State::Trailers,
                    size => State::Data(size),
                },
                State::DataEnd if line.is_empty() => State::Size,
                State::DataEnd => return Err(Malformed("a chunk exceeds its size")),
                State::Trailers if line.is_empty() => State::Complete,
                other => {
                    self.trailer(&line)?;
                    other
                }
            };
            if self.is_complete() && !self.trailers.is_empty() {
                return Ok(Some(Part::Trailers(std::mem::take(&mut self.trailers))));
            }
        }
    }

    /// Returns a complete line without its line end. A bare line feed does not end a line: recipients that accept it
    /// see another body than those that do not.
    fn line(&mut self, input: &mut Bytes) -> Result<Option<BytesMut>, Malformed> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(input.len(), |end| end + 1);
        if self.line.len() + count > MOST_LINE {
            return Err(Malformed("a chunk line is too long"));
        }
        self.line.extend_from_slice(&input[..count]);
        input.advance(count);
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.line);
        if !line.ends_with(b"\r\n") {
            return Err(Malformed("a chunk line ends without a carriage return"));
        }
        line.truncate(line.len() - 2);
        Ok(Some(line))
    }

    fn trailer(&mut self, line: &[u8]) -> Result<(), Malformed> {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let name = HeaderName::from_bytes(name).map_err(|_| Malformed("invalid trailer name"))?;
        let value =
            HeaderValue::from_bytes(value.trim_ascii()).map_err(|_| Malformed("invalid trailer value"))?;
        if self.trailers.len() >= MOST_TRAILERS {
            return Err(Malformed("too many trailer fields"));
        }
        self.trailers.append(name, value);
        Ok(())
    }
}

/// Parses the size of a chunk, before its extensions (RFC 9112 section 7.1.1).
fn size(line: &[u8]) -> Result<u64, Malformed> {
    let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (size, rest) = line.split_at(digits);
    let extended = rest.trim_ascii_start();
    if !extended.is_empty() && !extended.starts_with(b";") || rest.contains(&b'\r') {
        return Err(Malformed("invalid chunk size"));
    }
    let size = str::from_utf8(size).ok().and_then(|size| u64::from_str_radix(size, 16).ok());
    size.ok_or(Malformed("invalid chunk size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the data and trailers of a body received in these pieces, and whether nothing of the last piece was
    /// left.
    fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, HeaderMap, bool), Malformed> {
        let (mut decoder, mut data, mut trailers) = (ChunkedDecoder::default(), Vec::new(), HeaderMap::new());
        for piece in pieces {
            let mut input = Bytes::copy_from_slice(piece);
            while let Some(part) = decoder.decode(&mut input)? {
                match part {
                    Part::Data(bytes) => data.extend_from_slice(&bytes),
                    Part::Trailers(some) => trailers = some,
                }
            }
        }
        Ok((data, trailers, decoder.is_complete()))
    }

    #[test]
    fn a_body_is_the_same_however_it_is_cut() {
        let body = b"5;name=\"value\"\r\nhello\r\nA \r\n, world!!!\r\n0\r\nGrpc-Status:  0 \r\nx: \r\n\r\n";
        let whole = decode(&[body]).unwrap();
        assert_eq!((&whole.0[..], whole.2), (&b"hello, world!!!"[..], true));
        assert_eq!(whole.1["grpc-status"], "0");
        assert_eq!(whole.1["x"], "");
        for cut in 0..=body.len() {
            assert_eq!(decode(&[&body[..cut], &body[cut..]]).unwrap(), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(decode(&bytes).unwrap(), whole);
    }

    #[test]
    fn malformed_chunked_bodies_are_rejected() {
        for body in [
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
            "5;a\rb\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello!\r\n0\r\n\r\n",
            "\r\n",
            "-5\r\nhello",
            "+5\r\nhello",
            "0x5\r\nhello",
            "5 5\r\nhello",
            "10000000000000000\r\nhello",
            "0\r\n folded: 1\r\n\r\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\nspace : 1\r\n\r\n",
            "0\r\na: 1\n\r\n",
        ] {
            assert!(decode(&[body.as_bytes()]).is_err(), "{body:?}");
        }
        assert!(decode(&[b"5;", &[b'a'; MOST_LINE]]).is_err());
        let many = format!("0\r\n{}\r\n", "a: 1\r\n".repeat(MOST_TRAILERS + 1));
        assert!(decode(&[many.as_bytes()]).is_err());
    }

    #[test]
    fn what_follows_a_body_stays() {
        let mut input = Bytes::from_static(b"1\r\na\r\n0\r\n\r\nHTTP/1.1");
        let mut decoder = ChunkedDecoder::default();
        assert_eq!(decoder.decode(&mut input).unwrap(), Some(Part::Data(Bytes::from_static(b"a"))));
        assert_eq!(decoder.decode(&mut input).unwrap(), None);
        assert!(decoder.is_complete());
        assert_eq!(input, "HTTP/1.1");
    }
}
