//! Calls to services while a request is processed: for authorization, rate limits and token keys.

use crate::{
    connection::Connection,
    http::request::hop_by_hop,
    upstream::{
        CallFailure, ConnectionPool, EndpointCall, Limits, RequestBody, UnreadBody, Upstream,
        exchange::grpc_call, read_whole,
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, Uri, Version, header};
use prost::Message;
use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

/// A call to a service: its upstream, and the settings of the call.
pub(crate) struct ServiceCall<'a> {
    /// `None` while the upstream does not exist.
    pub(crate) upstream: Option<&'a Arc<Upstream>>,
    /// Server name of the endpoints, where the host of a request determines it.
    pub(crate) authority: Option<&'a str>,
    /// Address that selects an endpoint.
    pub(crate) client: SocketAddr,
    pub(crate) connection: &'a Connection,
    pub(crate) pool: &'a Arc<ConnectionPool>,
    /// Time limit of the whole call.
    pub(crate) timeout: Duration,
    /// Maximum size of the response body, in bytes.
    pub(crate) largest_response: usize,
}

/// A complete response.
pub(crate) struct ServiceResponse {
    pub(crate) head: Response<()>,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

/// Reason why a call failed.
pub(crate) enum CallError {
    NoServer,
    Overloaded,
    Connect(io::Error),
    Exchange(String),
    TimedOut,
    TooLong,
    /// The request cannot be encoded, or the response is invalid.
    Invalid(&'static str),
}

impl ServiceCall<'_> {
    /// Sends a request and returns the response. `build` makes it for HTTP/2 or HTTP/1.1, and for a scheme.
    pub(crate) async fn send(
        &self,
        build: impl Fn(bool, &str) -> Result<Request<RequestBody>, CallError>,
    ) -> Result<ServiceResponse, CallError> {
        let due = Instant::now() + self.timeout;
        let exchange = self.exchange(build, due);
        tokio::time::timeout_at(due.into(), exchange).await.map_err(|_| CallError::TimedOut)?
    }

    /// Calls a unary method of a gRPC service with this authority. `not_one` is the error for a response that cannot
    /// be decoded as the message.
    pub(crate) async fn call<Reply: Message + Default>(
        &self,
        authority: &str,
        method: &str,
        message: &impl Message,
        not_one: &'static str,
    ) -> Result<Reply, CallError> {
        let build = |http2: bool, scheme: &str| {
            if !http2 {
                return Err(CallError::Invalid("the server does not support HTTP/2, which gRPC requires"));
            }
            grpc_call::request(scheme, authority, method, self.timeout, message)
                .map_err(|_| CallError::Invalid("the request cannot be encoded"))
        };
        let ServiceResponse { head, body, trailers } = self.send(build).await?;
        if grpc_call::status(head.headers(), trailers.as_ref()).is_none_or(|status| status != "0") {
            return Err(CallError::Invalid("the call failed"));
        }
        let message = grpc_call::message(&body).ok_or(CallError::Invalid("not a single gRPC message"))?;
        Reply::decode(message).map_err(|_| CallError::Invalid(not_one))
    }

    async fn exchange(
        &self,
        build: impl Fn(bool, &str) -> Result<Request<RequestBody>, CallError>,
        due: Instant,
    ) -> Result<ServiceResponse, CallError> {
        let upstream = self.upstream.ok_or(CallError::NoServer)?;
        let _active = upstream.begin(false).await.map_err(|_| CallError::Overloaded)?;
        let server = upstream.pick(self.client, None, None, &[]).ok_or(CallError::NoServer)?;
        let server = match self.authority.filter(|_| upstream.model().host_from_request) {
            Some(authority) => server.called(crate::http::request::request_view::without_port(authority)),
            None => server,
        };
        let limits = Limits { read: self.timeout, write: self.timeout, header: Some(due), whole: Some(due) };
        let (endpoint, connection, pool) = (&server, self.connection, self.pool);
        let call = EndpointCall { upstream, endpoint, connection, pool, separate: false };
        let scheme = if upstream.speaks_tls(&server) { "https" } else { "http" };
        let sent = call.send(limits, |http2| build(http2, scheme), || true, |_, _| {}).await;
        let response = sent.map_err(|failure| match failure {
            CallFailure::Connect(error) => CallError::Connect(error),
            CallFailure::Build(error) => error,
            CallFailure::Exchange { error, .. } => CallError::Exchange(error.to_string()),
        })?;
        let (head, body) = response.into_parts();
        let (body, trailers) =
            read_whole(body, self.largest_response).await.map_err(|unread| match unread {
                UnreadBody::TooLong => CallError::TooLong,
                UnreadBody::Failed(error) => CallError::Exchange(error.to_string()),
            })?;
        Ok(ServiceResponse { head: Response::from_parts(head, ()), body, trailers })
    }
}

/// Sets the authority and path of a request: in the URI with a scheme for HTTP/2, and without one for HTTP/1.1.
/// Returns `None` if they are invalid.
pub(crate) fn direct(
    request: &mut Request<RequestBody>,
    scheme: Option<&str>,
    authority: &str,
    path: &str,
) -> Option<()> {
    match scheme {
        Some(scheme) => {
            let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path);
            *request.uri_mut() = uri.build().ok()?;
            *request.version_mut() = Version::HTTP_2;
        }
        None => {
            *request.uri_mut() = path.parse().ok()?;
            request.headers_mut().insert(header::HOST, authority.parse().ok()?);
        }
    }
    Some(())
}

/// Returns whether the header must not be changed by a service, because it frames a message or directs it.
pub(crate) fn is_fixed(name: &HeaderName) -> bool {
    hop_by_hop::is_always(name) || [header::HOST, header::CONTENT_LENGTH, header::TRAILER].contains(name)
}

impl CallError {
    /// Returns the text for the log.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::NoServer => "no endpoint is available".to_owned(),
            Self::Overloaded => "too many requests are in progress".to_owned(),
            Self::Connect(error) => format!("cannot reach the server: {error}"),
            Self::Exchange(error) => error.clone(),
            Self::TimedOut => "the server took too long".to_owned(),
            Self::TooLong => "the response is too long".to_owned(),
            Self::Invalid(problem) => (*problem).to_owned(),
        }
    }
}
