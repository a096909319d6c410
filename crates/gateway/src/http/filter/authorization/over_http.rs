//! Authorization servers over HTTP.

use super::verdict::{Changes, Verdict};
use crate::{
    header_list,
    http::{
        filter::service_call::{CallError, direct, is_fixed},
        request::Request,
    },
    upstream::RequestBody,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode, header};
use quadrille_config::model::{HttpAuthorization, TextMatch};

/// Response header with which a server lists the request headers to remove.
const TO_REMOVE: HeaderName = HeaderName::from_static("x-envoy-auth-headers-to-remove");

/// Builds the authorization request with the given headers and body; over HTTP/2 with this scheme.
pub(super) fn request(
    service: &HttpAuthorization,
    request: &Request,
    headers: HeaderMap,
    scheme: Option<&str>,
    body: Bytes,
) -> Option<http::Request<RequestBody>> {
    let path = request.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = format!("{}{path}", service.path_prefix);
    let length = body.len();
    let body = RequestBody::whole(body);
    let mut built = http::Request::new(body);
    *built.method_mut() = request.method.clone();
    let told = built.headers_mut();
    *told = headers;
    // These describe the body of the original request.
    [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::EXPECT, header::HOST]
        .into_iter()
        .for_each(|name| _ = told.remove(name));
    direct(&mut built, scheme, request.host(), &path)?;
    // The added headers may name another host.
    let told = built.headers_mut();
    if length > 0 {
        told.insert(header::CONTENT_LENGTH, length.into());
    }
    for (name, value) in &service.add_headers {
        told.insert(name, value.clone());
    }
    Some(built)
}

/// Reads the decision from the server's response.
pub(super) fn verdict(
    service: &HttpAuthorization,
    status: StatusCode,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Verdict, CallError> {
    if status.is_server_error() {
        return Err(CallError::Invalid("the server responded with an error"));
    }
    let listed = |patterns: &[TextMatch], name: &HeaderName| {
        !is_fixed(name) && patterns.iter().any(|pattern| pattern.matches(name.as_str()))
    };
    let pairs = || headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    if status != StatusCode::OK {
        const ALWAYS: [HeaderName; 2] = [header::WWW_AUTHENTICATE, header::LOCATION];
        let told = |name: &HeaderName| {
            let all = service.client_headers.is_empty();
            (all || listed(&service.client_headers, name) || ALWAYS.contains(name)) && !is_fixed(name)
        };
        let headers = pairs().filter(|(name, _)| told(name)).collect();
        return Ok(Verdict::Denied { status: status.as_u16(), headers, body });
    }
    let mut changes = Changes {
        set: pairs().filter(|(name, _)| listed(&service.upstream_headers, name)).collect(),
        add: pairs().filter(|(name, _)| listed(&service.upstream_headers_to_append, name)).collect(),
        response: pairs().filter(|(name, _)| listed(&service.client_headers_on_success, name)).collect(),
        ..Changes::default()
    };
    let names = header_list::members(headers, TO_REMOVE).filter_map(|name| name.parse().ok());
    changes.remove = names.filter(|name| !is_fixed(name)).collect();
    Ok(Verdict::Allowed(changes))
}
