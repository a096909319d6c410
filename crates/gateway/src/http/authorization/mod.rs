//! Servers that are asked who may ask for what. Who cannot be asked about is not let in, unless the configuration says so.

mod grpc;
mod over_http;
mod verdict;

use super::{
    client_body::ClientBody,
    forwarded_headers, hop_by_hop,
    read_ahead::Beginning,
    request::Request,
    service_call::{CallError, ServiceAnswer, ServiceCall},
};
use crate::{
    connection::{ClientCertificate, Connection},
    telemetry::paced::Paced,
    upstream::{ClientBodyError, ConnectionPool, Upstream, Upstreams},
};
use bytes::Bytes;
use grpc::{Address, Attributes, CheckRequest, HttpRequest, Peer, SocketAddress};
use http::{HeaderMap, HeaderName, HeaderValue, Version, header, uri::PathAndQuery};
use http_body::Body;
use quadrille_config::model::{Authorization as Model, AuthorizationService, TextMatch};
use std::{net::SocketAddr, sync::Arc};
use verdict::Verdict;

/// Bytes of a server's answer, at most.
const LARGEST_ANSWER: usize = 64 * 1024;

/// A server that is asked about requests.
pub(crate) struct Authorization {
    model: Arc<Model>,
    /// `None` as long as there is no such upstream.
    upstream: Option<Arc<Upstream>>,
    warning: Paced,
}

/// A request that is not let in.
pub(super) struct Denied {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// For the log.
    pub(super) reason: &'static str,
}

impl Authorization {
    pub(crate) fn new(model: &Arc<Model>, upstreams: &Upstreams) -> Self {
        Self {
            upstream: upstreams.get(&model.upstream).cloned(),
            model: Arc::clone(model),
            warning: Paced::default(),
        }
    }

    /// Whether the server lets a request in, which then has what it adds.
    ///
    /// # Errors
    /// Says how the client is answered otherwise.
    pub(super) async fn check(
        &self,
        request: &mut Request,
        body: &mut ClientBody,
        connection: &Connection,
        pool: &Arc<ConnectionPool>,
    ) -> Result<(), Denied> {
        if self.model.only_if.as_ref().is_some_and(|condition| !request.metadata.matches(condition)) {
            return Ok(());
        }
        let beginning = self.beginning(request, body).await?;
        match self.ask(request, beginning.as_ref(), connection, pool).await {
            Ok(Verdict::Allowed(changes)) => {
                changes.apply(request);
                Ok(())
            }
            Ok(Verdict::Denied { status, headers, body }) => {
                Err(Denied { status, headers, body, reason: "the authorization server does not let it in" })
            }
            Err(error) => {
                if self.warning.is_due() {
                    tracing::warn!(upstream = self.model.upstream, error = error.text(), "authorization");
                }
                self.undecided(request)
            }
        }
    }

    /// What the server is told of the body, if it is told anything.
    async fn beginning(&self, request: &Request, body: &mut ClientBody) -> Result<Option<Beginning>, Denied> {
        let Some(told) = &self.model.body else { return Ok(None) };
        if request.websocket || body.is_end_stream() {
            return Ok(None);
        }
        let denied = |status, words: &'static str, reason| Denied {
            status,
            headers: HeaderMap::new(),
            body: Bytes::from_static(words.as_bytes()),
            reason,
        };
        match body.beginning(told.most, !told.partial).await {
            Ok(beginning) if beginning.is_partial && !told.partial => {
                let reason = "its body is longer than the authorization server is told";
                Err(denied(413, "Payload Too Large", reason))
            }
            Ok(beginning) => Ok(Some(beginning).filter(|beginning| !beginning.bytes.is_empty())),
            Err(error) => {
                let late = matches!(error.downcast_ref(), Some(ClientBodyError::TimedOut));
                Err(denied(if late { 408 } else { 400 }, "", "its body does not come"))
            }
        }
    }

    fn undecided(&self, request: &mut Request) -> Result<(), Denied> {
        const TOLD: HeaderName = HeaderName::from_static("x-envoy-auth-failure-mode-allowed");
        if !self.model.fail_open {
            let (headers, body) = (HeaderMap::new(), Bytes::new());
            let reason = "the authorization server could not be asked";
            return Err(Denied { status: self.model.status_on_error, headers, body, reason });
        }
        if self.model.tell_fail_open {
            request.headers.insert(TOLD, HeaderValue::from_static("true"));
        }
        Ok(())
    }

    async fn ask(
        &self,
        request: &Request,
        body: Option<&Beginning>,
        connection: &Connection,
        pool: &Arc<ConnectionPool>,
    ) -> Result<Verdict, CallError> {
        let authority = match &self.model.service {
            AuthorizationService::Grpc(authority) => Some(authority.as_str()),
            AuthorizationService::Http(_) => None,
        };
        let call = ServiceCall {
            upstream: self.upstream.as_ref(),
            authority,
            client: request.sender.client,
            connection,
            pool,
            timeout: self.model.timeout,
            largest_answer: LARGEST_ANSWER,
        };
        const INVALID: CallError = CallError::Answer("the request cannot be told");
        let headers = self.told_headers(request, body, connection).ok_or(INVALID)?;
        match &self.model.service {
            AuthorizationService::Http(service) => {
                let bytes = body.map(|body| body.bytes.clone()).unwrap_or_default();
                let question = |http2: bool, scheme: &str| {
                    let (headers, scheme) = (headers.clone(), http2.then_some(scheme));
                    over_http::question(service, request, headers, scheme, bytes.clone()).ok_or(INVALID)
                };
                let ServiceAnswer { head, body, .. } = call.ask(question).await?;
                over_http::verdict(service, head.status(), head.headers(), body)
            }
            AuthorizationService::Grpc(authority) => {
                let mut check = check_request(request, connection, &headers);
                if let (Some(body), Some(told)) = (body, &self.model.body) {
                    check.tell_body(&body.bytes, told.as_bytes);
                }
                grpc::verdict(call.call(authority, grpc::METHOD, &check, "not a CheckResponse").await?)
            }
        }
    }

    /// The headers of the request that the server is told. What clients say of the way they came is replaced, as it is
    /// for every server.
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

/// Joins several values of one header (RFC 9110 section 5.3), so that nobody takes one of them for all; whether that can be
/// done.
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
