//! Changes to the headers of requests and answers.

use super::{header_spelling, request::Request};
use crate::connection::{CertificateNames, ClientCertificate, Connection};
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use quadrille_config::model::{HeaderChange, HeaderPart, HeaderText};
use std::net::SocketAddr;

/// What is put into the text of headers.
pub(super) struct Variables<'a> {
    pub(super) connection: &'a Connection,
    /// For whom the request was sent.
    pub(super) client: SocketAddr,
    pub(super) version: Version,
    pub(super) upstream: &'a str,
    /// Of the request, as the client has sent it.
    pub(super) request: &'a HeaderMap,
}

/// Makes the changes, in their order. Text may name headers of an answer if it is one: as they are by then.
pub(super) fn apply(headers: &mut HeaderMap, answer: bool, changes: &[HeaderChange], values: &Variables<'_>) {
    for change in changes {
        match change {
            HeaderChange::Remove(name) => _ = headers.remove(name),
            HeaderChange::Append(name, text) => {
                if let Some(value) = values.text(text, answer.then_some(headers)) {
                    headers.append(name, value);
                }
            }
            HeaderChange::AddIfAbsent(name, _) if headers.contains_key(name) => {}
            HeaderChange::Replace(name, _) if !headers.contains_key(name) => {}
            HeaderChange::Set(name, text) => {
                let value = values.text(text, answer.then_some(headers));
                if !answer {
                    // What servers take for it must not be a client's.
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
                    headers.insert(name, value);
                }
            }
        }
    }
}

impl<'a> Variables<'a> {
    /// Of a request that goes to this upstream, which may be empty.
    pub(super) fn new(request: &'a Request, connection: &'a Connection, upstream: &'a str) -> Self {
        let (client, version) = (request.sender.client, request.version);
        Self { connection, client, version, upstream, request: &request.headers }
    }

    /// `None` if nothing is left of it, or it is no value of a header.
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

    /// What is known of this, as text; nothing of answers.
    pub(super) fn value(&self, part: &HeaderPart) -> String {
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
            HeaderPart::RequestHeader(name) => return copied(Some(self.request), name),
            HeaderPart::ResponseHeader(name) => return copied(answer, name),
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

    /// What the client's certificate says of it; empty without one.
    fn named(&self, name: impl Fn(&CertificateNames) -> Option<&String>) -> String {
        let certificate = self.connection.certificate.as_ref();
        certificate.and_then(|certificate| name(certificate.names())).cloned().unwrap_or_default()
    }
}
