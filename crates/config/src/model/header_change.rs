use super::RequestPart;
use http::{HeaderName, HeaderValue};

/// A change to the headers of a request or a response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeaderChange {
    /// Adds a value.
    Append(HeaderName, HeaderText),
    /// Adds a value if the header is absent.
    AddIfAbsent(HeaderName, HeaderText),
    /// Replaces all values; removes them if the resulting text is empty, so that a client cannot supply a value that
    /// the gateway does not know.
    Set(HeaderName, HeaderText),
    /// Replaces all values; keeps them if the resulting text is empty. Envoy: `OVERWRITE_IF_EXISTS_OR_ADD`.
    Overwrite(HeaderName, HeaderText),
    /// Replaces all values, if there are any.
    Replace(HeaderName, HeaderText),
    /// Removes all values.
    Remove(HeaderName),
}

impl HeaderChange {
    /// Returns the name of the header that it changes.
    pub fn name(&self) -> &HeaderName {
        match self {
            Self::Append(name, _)
            | Self::AddIfAbsent(name, _)
            | Self::Set(name, _)
            | Self::Overwrite(name, _)
            | Self::Replace(name, _)
            | Self::Remove(name) => name,
        }
    }
}

/// The value of a header, with variables that are substituted for each request. An empty result adds no header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeaderText(pub Vec<HeaderPart>);

/// A part of a header's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeaderPart {
    /// Fixed text.
    Literal(HeaderValue),
    /// The client's address and port.
    Client,
    /// The client's address.
    ClientIp,
    /// The address and port that the client has connected to.
    Local,
    /// The address that the client has connected to.
    LocalIp,
    /// `HTTP/1.1` or `HTTP/2`.
    Protocol,
    /// `https` or `http`.
    Scheme,
    /// The SNI.
    ServerName,
    /// The TLS version: `TLSv1.3`.
    TlsVersion,
    /// The name of the upstream.
    Upstream,
    /// The subject of the client's certificate, in the format of RFC 2253.
    CertificateSubject,
    /// The first URI of the client's certificate.
    CertificateUri,
    /// The first DNS name of the client's certificate.
    CertificateDns,
    /// SHA-256 of the client's certificate in DER, in hexadecimal.
    CertificateSha256,
    /// A part of the request line, or of the path.
    Request(RequestPart),
    /// The request's header of this name; empty if absent.
    RequestHeader(HeaderName),
    /// The response's header of this name; empty if absent. Only in responses.
    ResponseHeader(HeaderName),
}

impl HeaderText {
    /// Returns a fixed text.
    pub fn literal(value: HeaderValue) -> Self {
        Self(vec![HeaderPart::Literal(value)])
    }
}
