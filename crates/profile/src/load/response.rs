//! Incremental parser of HTTP/1.1 responses (RFC 9112): only the end of a response matters, so the body is not kept.

use httparse::{EMPTY_HEADER, Header, Status};

/// Maximum length of a response head.
const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 128;

/// Reads a sequence of responses.
#[derive(Debug, Default)]
pub(super) struct Reader {
    head: Vec<u8>,
    body: Body,
}

#[derive(Debug, Default)]
enum Body {
    /// The head is incomplete.
    #[default]
    NotBegun,
    /// Number of bytes that remain.
    Length(u64),
    Chunked(Chunks),
    /// The body extends until the connection closes.
    UntilClose,
}

#[derive(Debug)]
enum Chunks {
    /// Reading the line with a chunk's size.
    Size(Vec<u8>),
    /// Number of bytes of the chunk that remain, without its CRLF.
    Data(u64),
    /// Reading the trailer section; the number of bytes seen of the current line.
    Trailer(u64),
}

/// Progress of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    /// The response is complete; `closes` tells whether the server will close the connection.
    Done {
        closes: bool,
    },
}

impl Reader {
    /// Consumes the next bytes. An error describes a status that is not successful, or malformed HTTP.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<Progress, String> {
        if matches!(self.body, Body::NotBegun) {
            let before = self.head.len();
            self.head.extend_from_slice(bytes);
            let Some((length, body)) = parse(&self.head)? else {
                return Ok(Progress::More);
            };
            bytes = &bytes[length - before..];
            self.body = body;
            self.head.clear();
        }
        let whole = match &mut self.body {
            Body::NotBegun | Body::UntilClose => false,
            Body::Length(missing) => {
                *missing = missing.saturating_sub(bytes.len() as u64);
                *missing == 0
            }
            Body::Chunked(chunks) => chunks.take(bytes)?,
        };
        if whole {
            *self = Self::default();
            return Ok(Progress::Done { closes: false });
        }
        Ok(Progress::More)
    }

    /// Handles the end of the connection.
    pub(super) fn end(&mut self) -> Result<Progress, String> {
        match std::mem::take(self).body {
            Body::UntilClose => Ok(Progress::Done { closes: true }),
            _ => Err("closed in the middle of a response".to_owned()),
        }
    }
}

impl Chunks {
    /// Consumes the next bytes. Returns whether the last chunk and the trailer section are complete.
    fn take(&mut self, mut bytes: &[u8]) -> Result<bool, String> {
        while let Some((&first, rest)) = bytes.split_first() {
            match self {
                Self::Size(line) => {
                    bytes = rest;
                    line.push(first);
                    if first != b'\n' {
                        if line.len() > 1024 {
                            return Err("not HTTP/1.1: unterminated chunk size".to_owned());
                        }
                        continue;
                    }
                    *self = match httparse::parse_chunk_size(line) {
                        Ok(Status::Complete((_, 0))) => Self::Trailer(0),
                        Ok(Status::Complete((_, size))) => Self::Data(size.saturating_add(2)),
                        _ => return Err("not HTTP/1.1: missing chunk size".to_owned()),
                    };
                }
                Self::Data(missing) => {
                    let taken = (*missing).min(bytes.len() as u64);
                    *missing -= taken;
                    bytes = &bytes[taken as usize..];
                    if *missing == 0 {
                        *self = Self::Size(Vec::new());
                    }
                }
                Self::Trailer(seen) => {
                    bytes = rest;
                    match first {
                        b'\n' if *seen == 0 => return Ok(true),
                        b'\n' => *seen = 0,
                        b'\r' => {}
                        _ => *seen += 1,
                    }
                }
            }
        }
        Ok(false)
    }
}

/// Parses the head; returns its length and the body framing, or `None` if it is incomplete.
fn parse(head: &[u8]) -> Result<Option<(usize, Body)>, String> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(head) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if head.len() <= MAX_HEAD => return Ok(None),
        Ok(Status::Partial) => return Err("not HTTP/1.1: the head is too long".to_owned()),
        Err(error) => return Err(format!("not HTTP/1.1: {error}")),
    };
    match response.code.unwrap_or_default() {
        204 | 304 => Ok(Some((length, Body::Length(0)))),
        200..400 => Ok(Some((length, body(response.headers)?))),
        status => Err(format!("status {status}")),
    }
}

/// Determines the body framing (RFC 9112 section 6.3).
fn body(headers: &[Header<'_>]) -> Result<Body, String> {
    let value = |name: &str| {
        let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(str::from_utf8(header.value).unwrap_or_default().trim().to_ascii_lowercase())
    };
    if value("transfer-encoding").is_some_and(|coding| coding.ends_with("chunked")) {
        return Ok(Body::Chunked(Chunks::Size(Vec::new())));
    }
    match value("content-length") {
        Some(length) => {
            length.parse().map(Body::Length).map_err(|_| format!("not HTTP/1.1: Content-Length {length}"))
        }
        None => Ok(Body::UntilClose),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Result<Progress, String> = Ok(Progress::Done { closes: false });

    /// Checks that the response is complete at its last byte and not before, at any split.
    fn ends_with_its_last_byte(response: &[u8]) {
        for at in 0..response.len() {
            let mut reader = Reader::default();
            assert_eq!(reader.take(&response[..at]), Ok(Progress::More), "{at} bytes");
            assert_eq!(reader.take(&response[at..]), DONE, "the rest after {at}");
        }
        let mut reader = Reader::default();
        for _ in 0..2 {
            for byte in &response[..response.len() - 1] {
                assert_eq!(reader.take(&[*byte]), Ok(Progress::More));
            }
            assert_eq!(reader.take(&response[response.len() - 1..]), DONE, "and the next can start");
        }
    }

    #[test]
    fn a_response_is_whole_with_its_last_byte() {
        ends_with_its_last_byte(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        ends_with_its_last_byte(b"HTTP/1.1 204 No Content\r\n\r\n");
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        ends_with_its_last_byte(format!("{head}2\r\nok\r\na;x=1\r\n0123456789\r\n0\r\n\r\n").as_bytes());
        ends_with_its_last_byte(format!("{head}2\r\nok\r\n0\r\nname: value\r\n\r\n").as_bytes());
    }

    #[test]
    fn a_body_may_end_with_the_connection() {
        let mut reader = Reader::default();
        assert_eq!(reader.take(b"HTTP/1.1 200 OK\r\n\r\nanything"), Ok(Progress::More));
        assert_eq!(reader.end(), Ok(Progress::Done { closes: true }));
        assert!(reader.end().is_err(), "but not a head");
    }

    #[test]
    fn what_is_not_a_good_response_is_an_error() {
        let refused = |text: &str| Reader::default().take(text.as_bytes()).unwrap_err();
        assert_eq!(refused("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n"), "status 503");
        assert!(refused("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n").contains("Content-Length"));
        assert!(refused("\x15\x03\x01").contains("not HTTP/1.1"));
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert!(refused(&format!("{head}xyz\r\n")).contains("chunk"));
    }
}
