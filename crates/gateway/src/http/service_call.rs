//! Questions to servers that come up while a request is served: who is let in, and by which keys tokens are signed.

use super::hop_by_hop;
use crate::{
    connection::Connection,
    upstream::{
        ConnectionPool, ExchangeError, Limits, RequestBody, UnreadBody, Upstream, grpc_call, read_whole,
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

/// Who is asked, and how.
pub(super) struct ServiceCall<'a> {
    /// `None` as long as there is no such upstream.
    pub(super) upstream: Option<&'a Arc<Upstream>>,
    /// The name of its servers where that is the host of a request.
    pub(super) authority: Option<&'a str>,
    /// By which a server is chosen.
    pub(super) client: SocketAddr,
    pub(super) connection: &'a Connection,
    pub(super) pool: &'a Arc<ConnectionPool>,
    /// How long the whole may take.
    pub(super) timeout: Duration,
    /// Bytes of the answer's body, at most.
    pub(super) largest_answer: usize,
}

/// An answer, complete.
pub(super) struct ServiceAnswer {
    pub(super) head: Response<()>,
    pub(super) body: Bytes,
    pub(super) trailers: Option<HeaderMap>,
}

/// Why there is no answer, or none that helps.
pub(super) enum CallError {
    NoServer,
    Overloaded,
    Connect(io::Error),
    Exchange(String),
    TimedOut,
    TooLong,
    /// The question cannot be put, or the answer is none.
    Answer(&'static str),
}

impl ServiceCall<'_> {
    /// What a server answers to the question, which is made for HTTP/2 or not, and for a scheme.
    pub(super) async fn ask(
        &self,
        question: impl Fn(bool, &str) -> Result<Request<RequestBody>, CallError>,
    ) -> Result<ServiceAnswer, CallError> {
        let due = Instant::now() + self.timeout;
        let exchange = self.exchange(question, due);
        tokio::time::timeout_at(due.into(), exchange).await.map_err(|_| CallError::TimedOut)?
    }

    /// Calls a unary method of a gRPC service that has this authority. `not_one` is the error for an answer that is no
    /// such message.
    pub(super) async fn call<Answer: Message + Default>(
        &self,
        authority: &str,
        method: &str,
        message: &impl Message,
        not_one: &'static str,
    ) -> Result<Answer, CallError> {
        let question = |http2: bool, scheme: &str| {
            if !http2 {
                return Err(CallError::Answer("it does not speak HTTP/2, which gRPC needs"));
            }
            grpc_call::request(scheme, authority, method, self.timeout, message)
                .map_err(|_| CallError::Answer("the question cannot be put"))
        };
        let ServiceAnswer { head, body, trailers } = self.ask(question).await?;
        if grpc_call::status(head.headers(), trailers.as_ref()).is_none_or(|status| status != "0") {
            return Err(CallError::Answer("the call has failed"));
        }
        let message = grpc_call::message(&body).ok_or(CallError::Answer("not one message of gRPC"))?;
        Answer::decode(message).map_err(|_| CallError::Answer(not_one))
    }

    async fn exchange(
        &self,
        question: impl Fn(bool, &str) -> Result<Request<RequestBody>, CallError>,
        due: Instant,
    ) -> Result<ServiceAnswer, CallError> {
        let upstream = self.upstream.ok_or(CallError::NoServer)?;
        let _active = upstream.begin(false).await.map_err(|_| CallError::Overloaded)?;
        let server = upstream.pick(self.client, None, None, &[]).ok_or(CallError::NoServer)?;
        let server = match self.authority.filter(|_| upstream.model().host_from_request) {
            Some(authority) => server.called(super::request_view::without_port(authority)),
            None => server,
        };
        let limits = Limits { read: self.timeout, write: self.timeout, header: Some(due), whole: Some(due) };
        let mut fresh = false;
        let response = loop {
            let leased = self.pool.lease(upstream, &server, self.connection, fresh).await;
            let lease = leased.map_err(CallError::Connect)?;
            let (reused, http2) = (lease.reused, lease.is_http2());
            let scheme = if upstream.speaks_tls(&server) { "https" } else { "http" };
            match lease.send(question(http2, scheme)?, limits, |_, _| {}).await {
                // The server closed an idle connection at that moment: this says nothing of the server.
                Err(ExchangeError::NotSent) if reused && !fresh => fresh = true,
                Err(error) => return Err(CallError::Exchange(error.to_string())),
                Ok(response) => break response,
            }
        };
        let (head, body) = response.into_parts();
        let (body, trailers) =
            read_whole(body, self.largest_answer).await.map_err(|unread| match unread {
                UnreadBody::TooLong => CallError::TooLong,
                UnreadBody::Failed(error) => CallError::Exchange(error.to_string()),
            })?;
        Ok(ServiceAnswer { head: Response::from_parts(head, ()), body, trailers })
    }
}

/// Directs a question to this authority and path: with a scheme as HTTP/2 has it, and as HTTP/1.1 without. `None` if they
/// are none.
pub(super) fn direct(
    question: &mut Request<RequestBody>,
    scheme: Option<&str>,
    authority: &str,
    path: &str,
) -> Option<()> {
    match scheme {
        Some(scheme) => {
            let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path);
            *question.uri_mut() = uri.build().ok()?;
            *question.version_mut() = Version::HTTP_2;
        }
        None => {
            *question.uri_mut() = path.parse().ok()?;
            question.headers_mut().insert(header::HOST, authority.parse().ok()?);
        }
    }
    Some(())
}

/// Headers that no server changes that is asked: they frame a message, or say where it goes.
pub(super) fn is_fixed(name: &HeaderName) -> bool {
    hop_by_hop::is_always(name) || [header::HOST, header::CONTENT_LENGTH, header::TRAILER].contains(name)
}

impl CallError {
    /// For the log.
    pub(super) fn text(&self) -> String {
        match self {
            Self::NoServer => "no server can be asked".to_owned(),
            Self::Overloaded => "too many are asked already".to_owned(),
            Self::Connect(error) => format!("cannot reach the server: {error}"),
            Self::Exchange(error) => error.clone(),
            Self::TimedOut => "the server took too long".to_owned(),
            Self::TooLong => "its answer is too long".to_owned(),
            Self::Answer(problem) => (*problem).to_owned(),
        }
    }
}
