//! Answers in fewer bytes (RFC 9110 section 8.4).

/// Which answers of servers are compressed, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Compression {
    /// Of those that a client likes as much, the first is taken. Without any, nothing is compressed.
    pub codings: Vec<ContentCoding>,
    /// Media types without parameters, in lower case; `text/*` is all that begin with `text/`.
    pub types: Vec<String>,
    /// Bytes from which it is worth the effort, where an answer says how many it has.
    pub minimum: u64,
    /// Also what may hold secrets of one person: answers to requests with a cookie or a password, unless they are the same
    /// for everybody by their type or by what they say.
    pub personal: bool,
}

/// A form that a body has on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentCoding {
    /// RFC 8878.
    Zstd,
    /// RFC 7932.
    Brotli,
    /// RFC 1952.
    Gzip,
}

impl ContentCoding {
    /// Its name in `Accept-Encoding` and `Content-Encoding`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// What is text, in all codings, from 1 KiB on.
impl Default for Compression {
    fn default() -> Self {
        const TYPES: [&str; 9] = [
            "text/*",
            "application/javascript",
            "application/json",
            "application/ld+json",
            "application/manifest+json",
            "application/rss+xml",
            "application/wasm",
            "application/xml",
            "image/svg+xml",
        ];
        Self {
            codings: vec![ContentCoding::Zstd, ContentCoding::Brotli, ContentCoding::Gzip],
            types: TYPES.map(str::to_owned).to_vec(),
            minimum: 1024,
            personal: false,
        }
    }
}
