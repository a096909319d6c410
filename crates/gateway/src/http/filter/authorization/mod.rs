//! External authorization servers. A request without a decision is denied unless the configuration fails open.

mod grpc;
mod of_routes;
mod over_http;
mod verdict;

use super::{
    call::Call,
    service_call::{CallError, ServiceCall, ServiceResponse},
};
use crate::{
    connection::{ClientCertificate, Connection},
    http::{
        body::read_ahead::Beginning,
        error::refusal::Refusal,
        request::{Request, forwarded_headers, header_spelling, hop_by_hop},
    },
    telemetry::rate_limited_log::Paced,
    upstream::{ClientBodyError, Upstream, Upstreams},
};
use bytes::Bytes;
use grpc::{Address, Attributes, CheckRequest, HttpRequest, Peer, SocketAddress};
use http::{HeaderMap, HeaderName, HeaderValue, Version, header, uri::PathAndQuery};
use http_body::Body;
use quadrille_config::model::{Authorization as Model, AuthorizationService, TextMatch};
use std::{net::SocketAddr, sync::Arc};
use verdict::Verdict;

pub(crate) use of_routes::OfRoutes;

/// Maximum size of an authorization response, in bytes.
const LARGEST_RESPONSE: usize = 64 * 1024;

/// An authorization server that decides on requests.
pub(crate) struct Authorization {
    model: Arc<Model>,
    /// `None` while the upstream does not exist.
    upstream: Option<Arc<Upstream>>,
    warning: Paced,
}

impl Authorization {
    pub(crate) fn new(model: &Arc<Model>, upstreams: &Upstreams) -> Self {
        Self {
            upstream: upstreams.get(&model.upstream).cloned(),
            model: Arc::clone(model),
            warning: Paced::default(),
        }
    }

    /// Checks that the server allows a request, and applies the changes that the server makes to it.
    ///
    /// # Errors
    /// Returns the response to the client.
    pub(crate) async fn check(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        let holds = |condition| call.request().metadata.matches(condition);
        if self.model.only_if.as_ref().is_some_and(|condition| !holds(condition)) {
            return Ok(());
        }
        let beginning = self.beginning(call).await?;
        match self.query(call, beginning.as_ref()).await {
            Ok(Verdict::Allowed(changes)) => {
                changes.apply(call.request_mut());
                Ok(())
            }
            Ok(Verdict::Denied { status, headers, body }) => {
                Err(denied("denied by the authorization server", status, body).with_headers(headers))
            }
            // There is a decision, which cannot be carried out: a missing or oversized one is not a permission.
            Ok(Verdict::Unfeasible(error)) | Err(error @ CallError::TooLong) => {
                self.warn(&error);
                let reason = "the authorization server's decision cannot be carried out";
                Err(denied(reason, self.model.status_on_error, Bytes::new()))
            }
            Err(error) => {
                self.warn(&error);
                self.undecided(call.request_mut())
            }
        }
    }

    fn warn(&self, error: &CallError) {
        if let Some(omitted) = self.warning.is_due() {
            tracing::warn!(upstream = self.model.upstream, error = error.text(), omitted, "authorization");
        }
    }

    /// Reads the part of the body that is sent to the server, if any is.
    async fn beginning(&self, call: &mut Call<'_>) -> Result<Option<Beginning>, Refusal> {
        let Some(told) = &self.model.body else { return Ok(None) };
        let (request, body) = call.request_and_body();
        if request.body_is_tunnel() || body.is_end_stream() {
            return Ok(None);
        }
        match body.beginning(told.most, !told.partial).await {
            Ok(beginning) if beginning.is_partial && !told.partial => {
                let reason = "the request body exceeds the authorization server's limit";
                Err(denied(reason, 413, Bytes::from_static(b"Payload Too Large")))
            }
            Ok(beginning) => Ok(Some(beginning).filter(|beginning| !beginning.bytes.is_empty())),
            Err(error) => {
                let late = matches!(error.downcast_ref(), Some(ClientBodyError::TimedOut));
                Err(denied("the request body was not received", if late { 408 } else { 400 }, Bytes::new()))
            }
        }
    }

    /// Handles a failed query of the server.
    fn undecided(&self, request: &mut Request) -> Result<(), Refusal> {
        const TOLD: HeaderName = HeaderName::from_static("x-envoy-auth-failure-mode-allowed");
        if !self.model.fail_open {
            let reason = "no decision from the authorization server";
            return Err(denied(reason, self.model.status_on_error, Bytes::new()));
        }
        if self.model.tell_fail_open {
            header_spelling::set(&mut request.headers, TOLD, HeaderValue::from_static("true"));
        }
        Ok(())
    }

    async fn query(&self, call: &Call<'_>, body: Option<&Beginning>) -> Result<Verdict, CallError> {
        let (request, connection) = (call.request(), call.connection);
        let authority = match &self.model.service {
            AuthorizationService::Grpc(authority) => Some(authority.as_str()),
            AuthorizationService::Http(_) => None,
        };
        let service = ServiceCall {
            upstream: self.upstream.as_ref(),
            authority,
            client: request.sender.client,
            connection,
            pool: call.pool,
            timeout: self.model.timeout,
            largest_response: LARGEST_RESPONSE,
        };
        const INVALID: CallError = CallError::Invalid("the request cannot be encoded");
        let headers = self.told_headers(request, body, connection).ok_or(INVALID)?;
        match &self.model.service {
            AuthorizationService::Http(settings) => {
                let bytes = body.map(|body| body.bytes.clone()).unwrap_or_default();
                let build = |http2: bool, scheme: &str| {
                    let (headers, scheme) = (headers.clone(), http2.then_some(scheme));
                    over_http::request(settings, request, headers, scheme, bytes.clone()).ok_or(INVALID)
                };
                let ServiceResponse { head, body, .. } = service.send(build).await?;
                over_http::verdict(settings, head.status(), head.headers(), body)
            }
            AuthorizationService::Grpc(authority) => {
                let mut check = check_request(request, connection, &headers);
                if let (Some(body), Some(told)) = (body, &self.model.body) {
                    check.tell_body(&body.bytes, told.as_bytes);
                }
                let response = service.call(authority, grpc::METHOD, &check, "not a CheckResponse").await?;
                Ok(grpc::verdict(response))
            }
        }
    }

    /// The request headers that the server receives. Forwarding headers set by clients are replaced, as for every
    /// upstream.
    fn told_headers(
        &self,
        request: &Request,
        body: Option<&Beginning>,
        connection: &Connection,
    ) -> Option<HeaderMap> {
        const PARTIAL: HeaderName = HeaderName::from_static("x-envoy-auth-partial-body");
        let mut headers = request.headers.clone();
        hop_by_hop::remove_always(&mut headers);
        let host = HeaderValue::from_str(request.host()).ok().filter(|host| !host.is_empty());
        forwarded_headers::set(request, connection, host, &mut headers).ok()?;
        let over_http = matches!(self.model.service, AuthorizationService::Http(_));
        let listed = |patterns: &[TextMatch], name: &HeaderName| {
            patterns.iter().any(|pattern| pattern.matches(name.as_str()))
        };
        let allowed = |name: &HeaderName| {
            let all = !over_http && self.model.allowed_headers.is_empty();
            all || listed(&self.model.allowed_headers, name) || over_http && name == header::AUTHORIZATION
        };
        let unwanted: Vec<HeaderName> = headers
            .keys()
            .filter(|name| !allowed(name) || listed(&self.model.disallowed_headers, name))
            .cloned()
            .collect();
        for name in unwanted {
            headers.remove(name);
        }
        if !joined(&mut headers) {
            return None;
        }
        headers.remove(PARTIAL);
        if let Some(body) = body {
            let partial = if body.is_partial { "true" } else { "false" };
            headers.insert(PARTIAL, HeaderValue::from_static(partial));
        }
        Some(headers)
    }
}

fn denied(reason: &'static str, status: u16, body: Bytes) -> Refusal {
    Refusal::defined(reason, status, body).counted_as("asked")
}

/// Joins the values of a repeated header (RFC 9110 section 5.3), so that none is mistaken for the whole. Returns
/// whether that was possible.
fn joined(headers: &mut HeaderMap) -> bool {
    let several: Vec<HeaderName> =
        headers.keys().filter(|name| headers.get_all(*name).iter().nth(1).is_some()).cloned().collect();
    several.into_iter().all(|name| {
        let separator: &[u8] = if name == header::COOKIE { b"; " } else { b"," };
        let values: Vec<_> = headers.get_all(&name).iter().map(HeaderValue::as_bytes).collect();
        let joined = HeaderValue::from_bytes(&values.join(separator));
        joined.is_ok_and(|value| headers.insert(name, value).is_some())
    })
}

fn check_request(request: &Request, connection: &Connection, headers: &HeaderMap) -> CheckRequest {
    let peer = |address: SocketAddr, principal: String| Peer {
        address: Some(Address {
            socket_address: Some(SocketAddress {
                address: address.ip().to_canonical().to_string(),
                port_value: address.port().into(),
            }),
        }),
        principal,
    };
    let names = connection.certificate.as_ref().map(ClientCertificate::names);
    let principal = names.map(|names| {
        let first = names.uris.first().or(names.dns.first());
        first.unwrap_or(&names.subject).clone()
    });
    let scheme = connection.scheme();
    let path = request.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let pseudo = [
        (":authority", request.host()),
        (":method", request.method.as_str()),
        (":path", path),
        (":scheme", scheme),
    ];
    let mut told: std::collections::HashMap<String, String> =
        pseudo.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for (name, value) in headers.iter().filter(|(name, _)| *name != header::HOST) {
        told.insert(name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned());
    }
    let size = request.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let http = HttpRequest {
        method: request.method.to_string(),
        headers: told,
        path: path.to_owned(),
        host: request.host().to_owned(),
        scheme: scheme.to_owned(),
        size: size.and_then(|size| size.parse().ok()).unwrap_or(-1),
        protocol: match request.version {
            Version::HTTP_3 => "HTTP/3",
            Version::HTTP_2 => "HTTP/2",
            Version::HTTP_10 => "HTTP/1.0",
            _ => "HTTP/1.1",
        }
        .to_owned(),
        ..HttpRequest::default()
    };
    CheckRequest {
        attributes: Some(Attributes {
            source: Some(peer(request.sender.client, principal.unwrap_or_default())),
            destination: Some(peer(connection.local, String::new())),
            request: Some(grpc::Request { http: Some(http) }),
        }),
    }
}
