//! What the admin endpoint answers: its own pages, and those of a front end.

use super::dashboard::{self, CONTENT_SECURITY_POLICY};
use crate::{
    admission::{Admission, Load},
    telemetry::{
        history::{self, History},
        metrics,
        status::StatusSnapshot,
    },
    tls::resumption_backend::ResumptionBackend,
};
use arc_swap::ArcSwap;
use async_trait::async_trait;
use http::{HeaderValue, Response, StatusCode, Uri, header};
use metrics_exporter_prometheus::PrometheusHandle;
use quadrille_engine::Engine;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// What the admin endpoint shows.
pub(crate) struct Admin {
    pub(crate) prometheus: Option<PrometheusHandle>,
    pub(crate) engine: Engine,
    /// Of a gateway.
    pub(crate) admission: Option<Arc<Admission>>,
    /// Of a gateway; key servers have none.
    pub(crate) resumption: Option<Arc<ArcSwap<ResumptionBackend>>>,
    /// `gateway` or `keyserver`.
    pub(crate) role: &'static str,
    /// What is served, for `/status` and the metrics.
    pub(crate) status: Box<dyn Fn() -> StatusSnapshot + Send + Sync>,
    /// The configuration in force, without secrets.
    pub(crate) configuration: Box<dyn Fn() -> serde_json::Value + Send + Sync>,
    /// What the dashboard draws.
    pub(crate) history: History,
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

    /// Does what a POST to this path asks for; `None` if it asks for nothing that is known.
    fn act(&self, path: &str, query: Option<&str>) -> Option<Page>;
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
    /// What becomes of a POST to this address.
    pub(super) fn act(&self, uri: &Uri) -> Option<Response<String>> {
        let page = self.pages.as_ref()?.act(uri.path(), uri.query())?;
        Some(page.into_response())
    }

    /// The page at this address.
    pub(super) async fn answer(&self, uri: &Uri) -> Response<String> {
        let more = match &self.pages {
            Some(pages) => pages.page(uri.path(), uri.query(), &self.view()).await,
            None => None,
        };
        more.unwrap_or_else(|| self.page(uri.path())).into_response()
    }

    fn page(&self, path: &str) -> Page {
        let (status, content_type, body) = match path {
            "/metrics" => (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", self.metrics()),
            "/healthz" => (StatusCode::OK, TEXT, "ok\n".into()),
            "/ready" if self.ready.load(Ordering::Relaxed) => (StatusCode::OK, TEXT, "ready\n".into()),
            "/ready" => (StatusCode::SERVICE_UNAVAILABLE, TEXT, "draining\n".into()),
            "/config" => (StatusCode::OK, "application/json", self.configuration()),
            "/status" => (StatusCode::OK, "application/json", format!("{:#}\n", self.status())),
            "/history" => (StatusCode::OK, "application/json", self.history.page(Instant::now()).to_string()),
            _ => match dashboard::asset(path) {
                Some(asset) => (StatusCode::OK, asset.content_type, asset.body.to_owned()),
                None => (StatusCode::NOT_FOUND, TEXT, NO_SUCH_PAGE.to_owned()),
            },
        };
        Page { status, content_type, body }
    }

    /// Remembers what is to be seen now, for as long as this runs. Also where nobody ever asks: histograms keep each
    /// value until somebody looks at them.
    pub(super) async fn remember(&self) {
        let mut period = tokio::time::interval(history::PERIOD);
        loop {
            period.tick().await;
            self.history.add(&self.recorded(), Instant::now());
        }
    }

    fn metrics(&self) -> String {
        self.recorded() + &(self.status)().gauges()
    }

    fn recorded(&self) -> String {
        let resumption = self.resumption.as_ref().map(|resumption| resumption.load_full());
        let tickets = resumption.as_ref().and_then(|resumption| resumption.tickets.as_deref());
        let sessions = resumption.as_ref().and_then(|resumption| resumption.store.as_deref());
        metrics::update_gauges(&self.engine, tickets, sessions);
        if let Some(admission) = &self.admission {
            let Load { overloaded, key_wait, loop_delay, shut_out } = admission.load();
            metrics::admission(overloaded, key_wait, loop_delay, shut_out);
        }
        self.prometheus.as_ref().map(PrometheusHandle::render).unwrap_or_default()
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

const TEXT: &str = "text/plain; charset=utf-8";

const NO_SUCH_PAGE: &str =
    "no such page; there are / (the dashboard) /metrics /status /history /healthz /ready /config\n";

/// Headers of every answer: nothing is kept, guessed, embedded or told to others.
const EVERYWHERE: [(header::HeaderName, &str); 4] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

impl Page {
    pub(super) fn text(status: StatusCode, body: &str) -> Self {
        Self { status, content_type: TEXT, body: body.to_owned() }
    }

    pub(super) fn into_response(self) -> Response<String> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        for (name, value) in [(header::CONTENT_TYPE, self.content_type)].into_iter().chain(EVERYWHERE) {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
