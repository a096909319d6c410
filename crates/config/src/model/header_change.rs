use http::{HeaderName, HeaderValue};

/// A change to the headers of a request or an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeaderChange {
    /// One more value.
    Append(HeaderName, HeaderText),
    /// Only if there is none.
    AddIfAbsent(HeaderName, HeaderText),
    /// In place of all that are there; none is left if nothing is left of the text, so that a client cannot say what
    /// is not known of it.
    Set(HeaderName, HeaderText),
    /// In place of all that are there, which stay if nothing is left of the text. Envoy: `OVERWRITE_IF_EXISTS_OR_ADD`.
    Overwrite(HeaderName, HeaderText),
    /// In place of all that are there, if there are any.
    Replace(HeaderName, HeaderText),
    /// None is left.
    Remove(HeaderName),
}

/// The value of a header, with what is put in for each request. An empty outcome adds no header.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeaderText(pub Vec<HeaderPart>);

/// A part of a header's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeaderPart {
    /// This.
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
    /// Of the client's certificate: its subject, as RFC 2253 writes it.
    CertificateSubject,
    /// Of the client's certificate: its first URI.
    CertificateUri,
    /// Of the client's certificate: its first DNS name.
    CertificateDns,
    /// Of the client's certificate: SHA-256 of its DER form, in hexadecimal.
    CertificateSha256,
    /// The request's header of this name, or nothing.
    RequestHeader(HeaderName),
    /// The answer's header of this name, or nothing; only in answers.
    ResponseHeader(HeaderName),
}

impl HeaderText {
    /// Always this.
    pub fn literal(value: HeaderValue) -> Self {
        Self(vec![HeaderPart::Literal(value)])
    }
}
