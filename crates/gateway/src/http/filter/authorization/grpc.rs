//! Request and response of `envoy.service.auth.v3.Authorization`, limited to the fields in use.

use super::verdict::{Changes, Verdict};
use crate::http::filter::service_call::{CallError, is_fixed};
use http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message;
use std::collections::HashMap;

/// The gRPC method that is called.
pub(super) const METHOD: &str = "/envoy.service.auth.v3.Authorization/Check";

#[derive(Clone, PartialEq, Message)]
pub(super) struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) attributes: Option<Attributes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Attributes {
    #[prost(message, optional, tag = "1")]
    pub(super) source: Option<Peer>,
    #[prost(message, optional, tag = "2")]
    pub(super) destination: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    pub(super) request: Option<Request>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Peer {
    #[prost(message, optional, tag = "1")]
    pub(super) address: Option<Address>,
    #[prost(string, tag = "4")]
    pub(super) principal: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Address {
    #[prost(message, optional, tag = "1")]
    pub(super) socket_address: Option<SocketAddress>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SocketAddress {
    #[prost(string, tag = "2")]
    pub(super) address: String,
    #[prost(uint32, tag = "3")]
    pub(super) port_value: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(message, optional, tag = "2")]
    pub(super) http: Option<HttpRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HttpRequest {
    #[prost(string, tag = "2")]
    pub(super) method: String,
    #[prost(map = "string, string", tag = "3")]
    pub(super) headers: HashMap<String, String>,
    #[prost(string, tag = "4")]
    pub(super) path: String,
    #[prost(string, tag = "5")]
    pub(super) host: String,
    #[prost(string, tag = "6")]
    pub(super) scheme: String,
    #[prost(int64, tag = "9")]
    pub(super) size: i64,
    #[prost(string, tag = "10")]
    pub(super) protocol: String,
    #[prost(string, tag = "11")]
    pub(super) body: String,
    #[prost(bytes = "vec", tag = "12")]
    pub(super) raw_body: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CheckResponse {
    #[prost(message, optional, tag = "1")]
    status: Option<Status>,
    #[prost(message, optional, tag = "2")]
    denied: Option<Denied>,
    #[prost(message, optional, tag = "3")]
    ok: Option<Ok>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Denied {
    #[prost(message, optional, tag = "1")]
    status: Option<Status>,
    #[prost(message, repeated, tag = "2")]
    headers: Vec<HeaderOption>,
    #[prost(string, tag = "3")]
    body: String,
}

#[derive(Clone, PartialEq, Message)]
struct Ok {
    #[prost(message, repeated, tag = "2")]
    headers: Vec<HeaderOption>,
    #[prost(string, repeated, tag = "5")]
    headers_to_remove: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    response_headers_to_add: Vec<HeaderOption>,
    /// Query changes, which are not supported: a response that has any is rejected.
    #[prost(bytes = "vec", repeated, tag = "7")]
    query_parameters_to_set: Vec<Vec<u8>>,
    #[prost(string, repeated, tag = "8")]
    query_parameters_to_remove: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct HeaderOption {
    #[prost(message, optional, tag = "1")]
    header: Option<Header>,
    #[prost(message, optional, tag = "2")]
    append: Option<Bool>,
    #[prost(int32, tag = "3")]
    append_action: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Header {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
    #[prost(bytes = "vec", tag = "3")]
    raw_value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Bool {
    #[prost(bool, tag = "1")]
    value: bool,
}

impl CheckRequest {
    /// Adds the body, as text in which invalid UTF-8 is replaced, or as bytes.
    pub(super) fn tell_body(&mut self, bytes: &[u8], as_bytes: bool) {
        let http = self.attributes.as_mut().and_then(|of| of.request.as_mut()?.http.as_mut());
        let Some(http) = http else { return };
        if as_bytes {
            http.raw_body = bytes.to_vec();
            return;
        }
        for chunk in bytes.utf8_chunks() {
            http.body.push_str(chunk.valid());
            // The replacement that Envoy uses.
            http.body.extend(chunk.invalid().iter().map(|_| '!'));
        }
    }
}

/// Reads the decision of the authorization server.
pub(super) fn verdict(response: CheckResponse) -> Verdict {
    if response.status.is_none_or(|status| status.code == 0) {
        let changes = response.ok.unwrap_or_default().into_changes();
        return changes.map_or_else(Verdict::Unfeasible, Verdict::Allowed);
    }
    let denied = response.denied.unwrap_or_default();
    let status = denied.status.map_or(0, |status| status.code);
    let status = u16::try_from(status).ok().filter(|status| (200..600).contains(status)).unwrap_or(403);
    let mut headers = HeaderMap::new();
    // A denial stands, even if some of its headers cannot be sent.
    for (name, value) in denied.headers.iter().filter_map(|option| option.parts().ok()) {
        headers.append(name, value);
    }
    Verdict::Denied { status, headers, body: denied.body.into() }
}

impl Ok {
    fn into_changes(self) -> Result<Changes, CallError> {
        if !self.query_parameters_to_set.is_empty() || !self.query_parameters_to_remove.is_empty() {
            return Err(CallError::Invalid("the response changes the query, which is not supported"));
        }
        let mut changes = Changes::default();
        for option in &self.headers {
            let (name, value) = option.parts()?;
            match (&option.append, option.append_action) {
                (Some(Bool { value: true }), _) => changes.append.push((name, value)),
                (None, 1) => changes.add_if_absent.push((name, value)),
                (None, 3) => changes.replace.push((name, value)),
                _ => changes.set.push((name, value)),
            }
        }
        for name in &self.headers_to_remove {
            // Skipped as in Envoy: these headers cannot be removed.
            if !name.starts_with(':') && !name.eq_ignore_ascii_case("host") {
                changes.remove.push(header_name(name)?);
            }
        }
        for option in &self.response_headers_to_add {
            let (name, value) = option.parts()?;
            changes.response.append(name, value);
        }
        Ok(changes)
    }
}

impl HeaderOption {
    fn parts(&self) -> Result<(HeaderName, HeaderValue), CallError> {
        const INVALID: CallError = CallError::Invalid("the response has a header that is missing or invalid");
        let header = self.header.as_ref().ok_or(INVALID)?;
        let value = if header.raw_value.is_empty() { header.value.as_bytes() } else { &header.raw_value };
        Ok((header_name(&header.key)?, HeaderValue::from_bytes(value).map_err(|_| INVALID)?))
    }
}

/// Parses a header name. Headers that frame the message or direct it are rejected.
fn header_name(name: &str) -> Result<HeaderName, CallError> {
    let name = HeaderName::try_from(name)
        .map_err(|_| CallError::Invalid("the response has an invalid header name"))?;
    if is_fixed(&name) {
        return Err(CallError::Invalid("the response changes a header that must not change"));
    }
    Ok(name)
}
