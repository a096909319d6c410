//! A trace collector: its endpoints and the connections to them.

use super::otlp::Form;
use crate::upstream::{RequestBody, RequestOutcome, Server, ServerAddress, Upstream, read_whole};
use bytes::Bytes;
use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_sdk::trace::SpanData;
use quadrille_config::model::{CollectorServers, SpanCollector};
use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};
use tokio::task::JoinHandle;

/// Maximum size of a response in bytes.
const LONGEST_ANSWER: usize = 64 * 1024;
/// Maximum number of addresses of a name that are tried.
const MOST_ADDRESSES: usize = 8;
/// Maximum number of endpoints with a kept connection.
const MOST_CONNECTIONS: usize = 16;

/// Sends spans over persistent connections.
pub(super) struct Collector {
    servers: CollectorServers,
    /// Upstream of the collector; `None` if it does not exist.
    upstream: Option<Arc<Upstream>>,
    form: Form,
    open: HashMap<ServerAddress, Connection>,
}

/// A connection for successive requests.
struct Connection {
    sender: Sender,
    driver: JoinHandle<()>,
}

enum Sender {
    Http1(http1::SendRequest<RequestBody>),
    Http2(http2::SendRequest<RequestBody>),
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Response to a request.
struct Answer {
    head: http::response::Parts,
    trailers: Option<http::HeaderMap>,
    body: Bytes,
}

impl Collector {
    pub(super) fn new(model: &SpanCollector, upstream: Option<Arc<Upstream>>, form: Form) -> Self {
        Self { servers: model.servers.clone(), upstream, form, open: HashMap::new() }
    }

    /// Sends spans, and returns how many the collector has rejected.
    pub(super) async fn send(&mut self, spans: Vec<SpanData>) -> Result<usize, String> {
        let message = self.form.message(spans);
        let upstream = self.upstream.clone().ok_or("there is no such upstream")?;
        let _active = upstream.begin(false).await.map_err(|_| "the upstream is overloaded")?;
        let addresses = self.addresses().await?;
        let (mut tried, mut last) = (Vec::new(), "no endpoint is available".to_owned());
        while let Some(server) = self.server(&upstream, &addresses, &tried) {
            tried.push(server.address.clone());
            match self.ask(&upstream, &server, &message).await {
                Ok(Answer { head, trailers, body }) => {
                    upstream.observe(&server, RequestOutcome::Status(head.status.as_u16()));
                    return self.form.answer(head.status, &head.headers, trailers.as_ref(), &body);
                }
                Err(error) => {
                    upstream.observe(&server, RequestOutcome::NoAnswer);
                    last = error;
                }
            }
        }
        Err(last)
    }

    /// Resolves the address of a collector that is not an upstream; its name may have several addresses.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let CollectorServers::Endpoint(endpoint) = &self.servers else { return Ok(Vec::new()) };
        let found = tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port)).await;
        Ok(found.map_err(|error| error.to_string())?.take(MOST_ADDRESSES).collect())
    }

    /// Selects the next endpoint; `None` if enough were tried.
    fn server(
        &self,
        upstream: &Upstream,
        addresses: &[SocketAddr],
        tried: &[ServerAddress],
    ) -> Option<Server> {
        match &self.servers {
            CollectorServers::Endpoint(endpoint) => {
                let is_new = |address: &&SocketAddr| !tried.contains(&ServerAddress::from(**address));
                let address = addresses.iter().find(is_new)?;
                Some(Server::at(*address).called(&endpoint.host))
            }
            CollectorServers::Upstream { .. } if tried.len() > upstream.model().retries => None,
            CollectorServers::Upstream { .. } => {
                let absent = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
                upstream.pick(absent, None, None, tried)
            }
        }
    }

    async fn ask(
        &mut self,
        upstream: &Upstream,
        server: &Server,
        message: &ExportTraceServiceRequest,
    ) -> Result<Answer, String> {
        let scheme = if upstream.speaks_tls(server) { "https" } else { "http" };
        let authority = match &self.servers {
            CollectorServers::Endpoint(endpoint) => endpoint.authority(),
            CollectorServers::Upstream { authority, .. } => authority.clone(),
        };
        // The endpoint may have closed an idle connection at any time.
        if let Some(kept) = self.open.remove(&server.address).filter(Connection::is_open) {
            let request = self.form.request(message, kept.is_http2(), scheme, &authority)?;
            if let Ok(answer) = self.exchange(server, kept, request).await {
                return Ok(answer);
            }
        }
        let connected = upstream.connect_own(server).await.map_err(|error| error.to_string())?;
        let connection = Connection::open(connected).await.map_err(|error| error.to_string())?;
        let request = self.form.request(message, connection.is_http2(), scheme, &authority)?;
        self.exchange(server, connection, request).await
    }

    async fn exchange(
        &mut self,
        server: &Server,
        mut connection: Connection,
        request: Request<RequestBody>,
    ) -> Result<Answer, String> {
        let response = connection.send(request).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let (body, trailers) = read_whole(body, LONGEST_ANSWER).await.map_err(|unread| unread.text())?;
        self.open.retain(|_, connection| connection.is_open());
        if self.open.len() < MOST_CONNECTIONS {
            self.open.insert(server.address.clone(), connection);
        }
        Ok(Answer { head, trailers, body })
    }
}

impl Connection {
    async fn open((stream, is_http2): (crate::upstream::ServerStream, bool)) -> hyper::Result<Self> {
        let stream = TokioIo::new(stream);
        if is_http2 {
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            let driver = tokio::spawn(async move { drop(connection.await) });
            Ok(Self { sender: Sender::Http2(sender), driver })
        } else {
            let (sender, connection) = http1::handshake(stream).await?;
            let driver = tokio::spawn(async move { drop(connection.await) });
            Ok(Self { sender: Sender::Http1(sender), driver })
        }
    }

    fn is_open(&self) -> bool {
        !self.driver.is_finished()
    }

    fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Http2(_))
    }

    async fn send(&mut self, request: Request<RequestBody>) -> hyper::Result<Response<Incoming>> {
        match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Sender::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }
}
