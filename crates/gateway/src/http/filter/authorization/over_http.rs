//! Authorization servers over HTTP.

use super::verdict::{Changes, Verdict};
use crate::{
    header_list,
    http::{
        filter::service_call::{CallError, direct, is_fixed},
        request::{Request, header_spelling},
    },
    upstream::RequestBody,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
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
    let received = request.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = match &service.forward_auth {
        Some(forward) => forward.path.clone(),
        None => format!("{}{received}", service.path_prefix),
    };
    let length = body.len();
    let body = RequestBody::whole(body);
    let mut built = http::Request::new(body);
    *built.method_mut() = request.method.clone();
    let told = built.headers_mut();
    *told = headers;
    if service.forward_auth.is_some() {
        tell_request_line(told, request, received)?;
        *built.method_mut() = Method::GET;
    }
    let told = built.headers_mut();
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

/// Sets the headers that carry the request line, as Traefik and Caddy (`X-Forwarded-*`) and nginx (`X-Original-*`) name
/// them.
fn tell_request_line(headers: &mut HeaderMap, request: &Request, path: &str) -> Option<()> {
    let method = HeaderValue::from_str(request.method.as_str()).ok()?;
    let scheme = headers.get(FORWARDED_PROTO).and_then(|scheme| scheme.to_str().ok()).unwrap_or("https");
    let url = HeaderValue::try_from(format!("{scheme}://{}{path}", request.host())).ok()?;
    let path = HeaderValue::from_str(path).ok()?;
    for (name, value) in [
        ("x-forwarded-method", method.clone()),
        ("x-forwarded-uri", path),
        ("x-original-method", method),
        ("x-original-url", url),
    ] {
        header_spelling::set(headers, HeaderName::from_static(name), value);
    }
    Some(())
}

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

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
    let allows = match &service.forward_auth {
        Some(_) => status.is_success(),
        None => status == StatusCode::OK,
    };
    if !allows {
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
    if let Some(forward) = &service.forward_auth {
        // A value from the client must not remain.
        changes.remove.extend(forward.copied.iter().cloned());
        let copied = |name: &HeaderName| forward.copied.contains(name) && !is_fixed(name);
        changes.set.extend(pairs().filter(|(name, _)| copied(name)));
    }
    Ok(Verdict::Allowed(changes))
}
