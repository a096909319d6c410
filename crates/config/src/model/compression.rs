//! Response compression (RFC 9110 section 8.4).

/// Settings of response compression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Compression {
    /// Content codings; the first of those that a client prefers equally is used. If empty, no response is
    /// compressed.
    pub codings: Vec<ContentCoding>,
    /// Media types without parameters, in lower case; `text/*` is all that begin with `text/`.
    pub types: Vec<String>,
    /// Minimum size in bytes, for responses that declare their length.
    pub minimum: u64,
    /// Whether responses that may contain a user's secrets are compressed too: responses to requests with a cookie or
    /// a password, unless they are public by their type or their headers.
    pub personal: bool,
    /// Names of the cookies that make responses personal; `None` for all cookies.
    pub cookies: Option<Vec<String>>,
}

/// A content coding.
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
    /// Returns the name in `Accept-Encoding` and `Content-Encoding`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// Text formats, in all codings, from 1 KiB on.
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
            cookies: None,
        }
    }
}
