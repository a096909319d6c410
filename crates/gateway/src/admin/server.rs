//! The admin endpoint: serves its own pages, and those of a front end.

use crate::{
    admin::dashboard::{self, CONTENT_SECURITY_POLICY},
    listener::socket,
    process,
    telemetry::{metrics, status::StatusSnapshot},
    tls::resumption_backend::ResumptionBackend,
};
use arc_swap::ArcSwap;
use async_trait::async_trait;
use http::{Response, StatusCode, header};
use metrics_exporter_prometheus::PrometheusHandle;
use pingora_core::{
    apps::{ServerApp, http_app::ServeHttp},
    protocols::{http::ServerSession, l4::stream::Stream},
    server::ShutdownWatch,
};
use quadrille_config::{Diagnostic, model};
use quadrille_engine::Engine;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::net::TcpListener;

/// What the admin endpoint shows.
pub(crate) struct Admin {
    pub(crate) prometheus: Option<PrometheusHandle>,
    pub(crate) engine: Engine,
    /// Of a gateway; key servers have none.
    pub(crate) resumption: Option<Arc<ArcSwap<ResumptionBackend>>>,
    /// `gateway` or `keyserver`.
    pub(crate) role: &'static str,
    /// What is served, for `/status` and the metrics.
    pub(crate) status: Box<dyn Fn() -> StatusSnapshot + Send + Sync>,
    /// The configuration in force, without secrets.
    pub(crate) configuration: Box<dyn Fn() -> serde_json::Value + Send + Sync>,
    /// False from the moment a drain begins, so that balancers look elsewhere.
    pub(crate) ready: AtomicBool,
    /// Of a front end whose users look for other pages.
    pub(crate) pages: Option<Arc<dyn AdminPages>>,
}

/// Pages that a front end adds to the admin address. They come before the gateway's own.
#[async_trait]
pub trait AdminPages: Send + Sync {
    /// The page of this path; `None` leaves it to the gateway.
    async fn page(&self, path: &str, query: Option<&str>, view: &AdminView) -> Option<Page>;
}

/// What pages can tell of a gateway.
#[derive(Clone, Debug)]
pub struct AdminView {
    /// False from the moment a drain begins.
    pub ready: bool,
    /// The page `/status`: certificates, upstreams, when the process has started.
    pub status: serde_json::Value,
}

/// A page of the admin address.
#[derive(Clone, Debug)]
pub struct Page {
    /// HTTP status.
    pub status: StatusCode,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// The whole body.
    pub body: String,
}

impl Admin {
    /// Opens the endpoint, unless it is switched off.
    pub(crate) fn start(
        self: &Arc<Self>,
        settings: Option<&model::Admin>,
        shutdown: &ShutdownWatch,
    ) -> Result<Option<SocketAddr>, Vec<Diagnostic>> {
        let Some(settings) = settings else { return Ok(None) };
        let socket = socket::bind_one(settings.address, &settings.place).map_err(|problem| vec![problem])?;
        let address = socket.local_addr().map_err(process::start_failure)?;
        let listener = TcpListener::from_std(socket).map_err(process::start_failure)?;
        tokio::spawn(Arc::clone(self).serve(listener, shutdown.clone()));
        Ok(Some(address))
    }

    /// Answers until the process ends.
    async fn serve(self: Arc<Self>, listener: TcpListener, shutdown: ShutdownWatch) {
        loop {
            match listener.accept().await {
                Ok((tcp, _)) => {
                    let (admin, shutdown) = (Arc::clone(&self), shutdown.clone());
                    tokio::spawn(async move {
                        admin.process_new(Box::new(Stream::from(tcp)), &shutdown).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept an admin connection");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn page(&self, path: &str) -> (StatusCode, &'static str, String) {
        const TEXT: &str = "text/plain; charset=utf-8";
        match path {
            "/metrics" => (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", self.metrics()),
            "/healthz" => (StatusCode::OK, TEXT, "ok\n".into()),
            "/ready" if self.ready.load(Ordering::Relaxed) => (StatusCode::OK, TEXT, "ready\n".into()),
            "/ready" => (StatusCode::SERVICE_UNAVAILABLE, TEXT, "draining\n".into()),
            "/config" => (StatusCode::OK, "application/json", self.configuration()),
            "/status" => (StatusCode::OK, "application/json", format!("{:#}\n", self.status())),
            _ => match dashboard::asset(path) {
                Some(asset) => (StatusCode::OK, asset.content_type, asset.body.to_owned()),
                None => (StatusCode::NOT_FOUND, TEXT, NO_SUCH_PAGE.to_owned()),
            },
        }
    }

    fn metrics(&self) -> String {
        let resumption = self.resumption.as_ref().map(|resumption| resumption.load_full());
        let tickets = resumption.as_ref().and_then(|resumption| resumption.tickets.as_deref());
        let sessions = resumption.as_ref().and_then(|resumption| resumption.store.as_deref());
        metrics::update_gauges(&self.engine, tickets, sessions);
        let recorded = self.prometheus.as_ref().map(PrometheusHandle::render).unwrap_or_default();
        recorded + &(self.status)().gauges()
    }

    fn status(&self) -> serde_json::Value {
        let ready = self.ready.load(Ordering::Relaxed);
        (self.status)().page(self.role, ready, &self.engine)
    }

    fn view(&self) -> AdminView {
        AdminView { ready: self.ready.load(Ordering::Relaxed), status: self.status() }
    }

    fn configuration(&self) -> String {
        format!("{:#}\n", (self.configuration)())
    }
}

const NO_SUCH_PAGE: &str =
    "no such page; there are / (the dashboard) /metrics /status /healthz /ready /config\n";

/// Headers of every answer: nothing is kept, guessed, embedded or told to others.
const EVERYWHERE: [(header::HeaderName, &str); 4] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

#[async_trait]
impl ServeHttp for Admin {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let uri = &session.req_header().uri;
        let more = match &self.pages {
            Some(pages) => pages.page(uri.path(), uri.query(), &self.view()).await,
            None => None,
        };
        let (status, content_type, body) = match more {
            Some(Page { status, content_type, body }) => (status, content_type, body),
            None => self.page(uri.path()),
        };
        let mut response = Response::new(body.into_bytes());
        *response.status_mut() = status;
        let length = response.body().len();
        let headers = response.headers_mut();
        for (name, value) in [(header::CONTENT_TYPE, content_type)].into_iter().chain(EVERYWHERE) {
            headers.insert(name, header::HeaderValue::from_static(value));
        }
        headers.insert(header::CONTENT_LENGTH, length.into());
        response
    }
}
