//! Active health checks: each opens a new connection to the endpoint.

use super::grpc_health;
use crate::upstream::{
    balance::server::{Server, ServerState},
    cluster::Upstream,
    connect::{connector::ServerStream, proxy_header::local_header},
    exchange::request_body::RequestBody,
    tls::alpn::Alpn,
};
use http::{Request, header, uri};
use http_body::Body;
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use quadrille_config::model::{Health, HealthProbe, HttpProbe};
use std::{
    error::Error,
    future::poll_fn,
    io::{self, ErrorKind},
    net::Ipv6Addr,
    pin::{Pin, pin},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

impl Upstream {
    /// Checks the endpoints' health until the upstream is dropped, as after a reload.
    pub(crate) async fn run_health_checks(upstream: Weak<Self>) {
        while let Some(upstream) = upstream.upgrade() {
            let Some(health) = &upstream.model.health else { return };
            let interval = health.interval;
            let mut checks = JoinSet::new();
            for (endpoint, state) in upstream.balancer.states() {
                checks.spawn(check(Arc::clone(&upstream), health.clone(), Server::from(&endpoint), state));
            }
            while checks.join_next().await.is_some() {}
            drop(upstream);
            tokio::time::sleep(interval).await;
        }
    }
}

async fn check(upstream: Arc<Upstream>, health: Health, server: Server, state: Arc<ServerState>) {
    let outcome = match tokio::time::timeout(health.timeout, probe(&upstream, &health, &server)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(io::Error::new(ErrorKind::TimedOut, "health check timeout")),
    };
    let needed = if outcome.is_ok() { health.healthy } else { health.unhealthy };
    if state.observe(outcome.is_ok(), needed) {
        let (upstream, server) = (upstream.name(), &server.address);
        match outcome {
            Ok(()) => {
                state.begin_slow_start(Instant::now());
                tracing::info!(upstream, %server, "the endpoint is healthy again");
            }
            Err(error) => tracing::warn!(upstream, %server, %error, "the endpoint is not healthy"),
        }
    }
}

async fn probe(upstream: &Upstream, health: &Health, server: &Server) -> io::Result<()> {
    let name = health.server_name.as_deref();
    match &health.probe {
        HealthProbe::Tcp if name.is_none() => {
            server.address.connect(&upstream.model.source_addresses).await.map(drop)
        }
        HealthProbe::Tcp => {
            let header = local_header(upstream.model.proxy_protocol);
            upstream.open(server, &header, Alpn::None, name).await.map(drop)
        }
        HealthProbe::Http(probe) => {
            let header = local_header(upstream.model.proxy_protocol);
            let stream = upstream.open(server, &header, upstream.alpn(server), name).await?;
            exchange(stream, upstream, server, probe).await.map_err(io::Error::other)
        }
        HealthProbe::Grpc { service, authority } => {
            let header = local_header(upstream.model.proxy_protocol);
            let stream = upstream.open(server, &header, Alpn::Http2, name).await?;
            let authority = authority.clone().unwrap_or_else(|| authority_of(upstream, server));
            call(stream, upstream, server, service, &authority).await.map_err(io::Error::other)
        }
    }
}

type Failure = Box<dyn Error + Send + Sync>;

/// Sends the request of a check, with the HTTP version of requests, and checks the response.
async fn exchange(
    stream: ServerStream,
    upstream: &Upstream,
    server: &Server,
    probe: &HttpProbe,
) -> Result<(), Failure> {
    let host = probe.host.clone().unwrap_or_else(|| authority_of(upstream, server));
    let request = Request::builder().method(probe.method.clone());
    if upstream.speaks_http2(server, &stream) {
        let target = uri::Builder::new()
            .scheme(scheme(upstream, server))
            .authority(host)
            .path_and_query(probe.path.as_str())
            .build()?;
        let request = request.uri(target).body(RequestBody::default())?;
        let (mut sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        drive(driver, async move { expect(sender.send_request(request).await?, probe).await }).await
    } else {
        let request =
            request.uri(probe.path.as_str()).header(header::HOST, host).body(RequestBody::default())?;
        let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        drive(driver, async move { expect(sender.send_request(request).await?, probe).await }).await
    }
}

/// Returns the authority of health-check requests.
fn authority_of(upstream: &Upstream, server: &Server) -> String {
    let explicit = upstream.model.transport(server.transport).and_then(|tls| tls.server_name.as_deref());
    let host = explicit.unwrap_or(&server.host);
    if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() }
}

fn scheme(upstream: &Upstream, server: &Server) -> uri::Scheme {
    if upstream.speaks_tls(server) { uri::Scheme::HTTPS } else { uri::Scheme::HTTP }
}

/// Performs a gRPC call, which uses HTTP/2 in any case: in plaintext with prior knowledge.
async fn call(
    stream: ServerStream,
    upstream: &Upstream,
    server: &Server,
    service: &str,
    authority: &str,
) -> Result<(), Failure> {
    if upstream.speaks_tls(server) && !upstream.speaks_http2(server, &stream) {
        return Err("it does not support HTTP/2, which gRPC requires".into());
    }
    let timeout = upstream.model.health.as_ref().map_or(Duration::MAX, |health| health.timeout);
    let question = grpc_health::question(service, scheme(upstream, server).as_str(), authority, timeout)?;
    let (mut sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    drive(driver, async move { grpc_health::serving(sender.send_request(question).await?).await }).await
}

/// Performs the exchange while driving its connection.
async fn drive(
    driver: impl Future<Output = hyper::Result<()>>,
    exchange: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let mut exchange = pin!(exchange);
    tokio::select! {
        outcome = &mut exchange => outcome,
        ended = driver => {
            ended?;
            // The connection may end with the response, which has arrived.
            exchange.await
        }
    }
}

/// Checks that the response has an expected status and body, and is complete as far as it is read.
async fn expect(mut response: http::Response<Incoming>, probe: &HttpProbe) -> Result<(), Failure> {
    let status = response.status();
    if !probe.statuses.iter().any(|(first, last)| (*first..=*last).contains(&status.as_u16())) {
        return Err(format!("status {status}").into());
    }
    let mut body = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(response.body_mut()).poll_frame(context)).await {
        let Ok(data) = frame?.into_data() else { continue };
        if probe.body.is_some() {
            let room = HttpProbe::MOST_BODY - body.len();
            body.extend_from_slice(&data[..data.len().min(room)]);
            if body.len() == HttpProbe::MOST_BODY {
                break;
            }
        }
    }
    match &probe.body {
        Some(expected) if !expected.matches(&String::from_utf8_lossy(&body)) => {
            Err("the body does not match `body` of the health check".into())
        }
        _ => Ok(()),
    }
}
