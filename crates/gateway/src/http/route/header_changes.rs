//! Changes to the headers of requests and responses.

use crate::{
    connection::{CertificateNames, ClientCertificate, Connection},
    http::request::{Request, header_spelling},
};
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use quadrille_config::model::{HeaderChange, HeaderPart, HeaderText};
use std::net::SocketAddr;

/// Values for the variables in header texts.
pub(crate) struct Variables<'a> {
    pub(crate) connection: &'a Connection,
    /// Address of the client that the request is from.
    pub(crate) client: SocketAddr,
    pub(crate) version: Version,
    pub(crate) upstream: &'a str,
    /// The request, with its headers as sent by the client.
    pub(crate) request: &'a Request,
}

/// Applies the changes in order. In a response, texts may refer to response headers, with their values at that point.
pub(crate) fn apply(headers: &mut HeaderMap, answer: bool, changes: &[HeaderChange], values: &Variables<'_>) {
    // Upstreams may read several spellings of a name as one header; clients do not.
    let contains = |headers: &HeaderMap, name: &HeaderName| match answer {
        true => headers.contains_key(name),
        false => header_spelling::contains(headers, name),
    };
    for change in changes {
        match change {
            HeaderChange::Remove(name) if answer => _ = headers.remove(name),
            HeaderChange::Remove(name) => header_spelling::remove(headers, name),
            HeaderChange::Append(name, text) => {
                if let Some(value) = values.text(text, answer.then_some(headers)) {
                    headers.append(name, value);
                }
            }
            HeaderChange::AddIfAbsent(name, _) if contains(headers, name) => {}
            HeaderChange::Replace(name, _) if !contains(headers, name) => {}
            HeaderChange::Set(name, text) => {
                let value = values.text(text, answer.then_some(headers));
                if !answer {
                    // A client's header that upstreams read as this one must not remain.
                    header_spelling::remove(headers, name);
                }
                match value {
                    Some(value) => _ = headers.insert(name, value),
                    None => _ = headers.remove(name),
                }
            }
            HeaderChange::Overwrite(name, text)
            | HeaderChange::AddIfAbsent(name, text)
            | HeaderChange::Replace(name, text) => {
                if let Some(value) = values.text(text, answer.then_some(headers)) {
                    if !answer {
                        header_spelling::remove(headers, name);
                    }
                    headers.insert(name, value);
                }
            }
        }
    }
}

impl<'a> Variables<'a> {
    /// Creates the variables of a request to this upstream, whose name may be empty.
    pub(crate) fn new(request: &'a Request, connection: &'a Connection, upstream: &'a str) -> Self {
        let (client, version) = (request.sender.client, request.version);
        Self { connection, client, version, upstream, request }
    }

    /// Renders a text. Returns `None` if the result is empty or is not a valid header value.
    fn text(&self, text: &HeaderText, answer: Option<&HeaderMap>) -> Option<HeaderValue> {
        if let [HeaderPart::Literal(value)] = &text.0[..] {
            return Some(value.clone());
        }
        let mut bytes = Vec::new();
        for part in &text.0 {
            self.part(part, answer, &mut bytes);
        }
        if bytes.is_empty() { None } else { HeaderValue::from_bytes(&bytes).ok() }
    }

    /// Renders a variable as text; response headers are not available.
    pub(crate) fn value(&self, part: &HeaderPart) -> String {
        let mut bytes = Vec::new();
        self.part(part, None, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn part(&self, part: &HeaderPart, answer: Option<&HeaderMap>, out: &mut Vec<u8>) {
        let connection = self.connection;
        let mut copied = |headers: Option<&HeaderMap>, name: &HeaderName| {
            out.extend(headers.and_then(|headers| headers.get(name)).map_or(&b""[..], HeaderValue::as_bytes));
        };
        let text = match part {
            HeaderPart::Literal(value) => return out.extend(value.as_bytes()),
            HeaderPart::RequestHeader(name) => return copied(Some(&self.request.headers), name),
            HeaderPart::ResponseHeader(name) => return copied(answer, name),
            HeaderPart::Request(part) => {
                return out.extend(self.request.view(connection.tls).part(part).as_bytes());
            }
            HeaderPart::Client => self.client.to_string(),
            HeaderPart::ClientIp => self.client.ip().to_canonical().to_string(),
            HeaderPart::Local => connection.local.to_string(),
            HeaderPart::LocalIp => connection.local.ip().to_canonical().to_string(),
            HeaderPart::Protocol => match self.version {
                Version::HTTP_3 => "HTTP/3",
                Version::HTTP_2 => "HTTP/2",
                _ => "HTTP/1.1",
            }
            .to_owned(),
            HeaderPart::Scheme => connection.scheme().to_owned(),
            HeaderPart::ServerName => connection.sni.clone().unwrap_or_default(),
            HeaderPart::TlsVersion => connection.version.to_owned(),
            HeaderPart::Upstream => self.upstream.to_owned(),
            HeaderPart::CertificateSubject => self.named(|names| Some(&names.subject)),
            HeaderPart::CertificateUri => self.named(|names| names.uris.first()),
            HeaderPart::CertificateDns => self.named(|names| names.dns.first()),
            HeaderPart::CertificateSha256 => {
                let hash = connection.certificate.as_ref().and_then(ClientCertificate::sha256);
                hash.unwrap_or_default().to_owned()
            }
        };
        out.extend(text.as_bytes());
    }

    /// Returns a name from the client's certificate; empty without a certificate.
    fn named(&self, name: impl Fn(&CertificateNames) -> Option<&String>) -> String {
        let certificate = self.connection.certificate.as_ref();
        certificate.and_then(|certificate| name(certificate.names())).cloned().unwrap_or_default()
    }
}
