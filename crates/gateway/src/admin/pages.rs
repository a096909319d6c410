//! Pages of the admin endpoint: its own, and those of a front end.

use super::{
    actions::{self, Actions},
    dashboard,
    page::{Page, TEXT},
};
use crate::{
    admission::{Admission, Load},
    memory,
    telemetry::{
        self,
        history::{self, History},
        metrics,
        status::StatusSnapshot,
    },
    tls::resumption_backend::ResumptionBackend,
};
use arc_swap::ArcSwap;
use async_trait::async_trait;
use http::{Response, StatusCode, Uri};
use metrics_exporter_prometheus::PrometheusHandle;
use quadrille_engine::Engine;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// Data shown by the admin endpoint.
pub(crate) struct Admin {
    pub(crate) prometheus: Option<PrometheusHandle>,
    pub(crate) engine: Engine,
    /// Admission control; only of a gateway.
    pub(crate) admission: Option<Arc<Admission>>,
    /// Session resumption; only of a gateway.
    pub(crate) resumption: Option<Arc<ArcSwap<ResumptionBackend>>>,
    /// Role of the process: `gateway` or `keyserver`.
    pub(crate) role: &'static str,
    /// Returns the status of certificates and upstreams, for `/status` and the metrics.
    pub(crate) status: Box<dyn Fn() -> StatusSnapshot + Send + Sync>,
    /// Returns the active configuration, without secrets.
    pub(crate) configuration: Box<dyn Fn() -> serde_json::Value + Send + Sync>,
    /// Data of the dashboard's charts.
    pub(crate) history: History,
    /// False once a drain begins, so that load balancers select other gateways.
    pub(crate) ready: AtomicBool,
    /// Parts that actions change; only of a gateway.
    pub(crate) actions: Option<Actions>,
    /// Additional pages of a front end.
    pub(crate) pages: Option<Arc<dyn AdminPages>>,
}

/// Additional pages of a front end on the admin address. They take precedence over the gateway's own.
#[async_trait]
pub trait AdminPages: Send + Sync {
    /// Returns the page of this path; `None` for a path of the gateway.
    async fn page(&self, path: &str, query: Option<&str>, view: &AdminView) -> Option<Page>;

    /// Performs the action of a POST to this path; `None` if there is no such action.
    fn act(&self, path: &str, query: Option<&str>) -> Option<Page>;
}

/// Data about a gateway for additional pages.
#[derive(Clone, Debug)]
pub struct AdminView {
    /// False once a drain begins.
    pub ready: bool,
    /// Content of `/status`: certificates, upstreams, start time of the process.
    pub status: serde_json::Value,
}

impl Admin {
    /// Performs the action of a POST to this URI. Actions of the front end are always possible.
    pub(super) async fn act(&self, uri: &Uri, may_act: bool) -> Option<Response<String>> {
        let (path, query) = (uri.path(), uri.query());
        let page = match self.pages.as_ref().and_then(|pages| pages.act(path, query)) {
            Some(page) => page,
            None => actions::perform(self.actions.as_ref(), may_act, path, query.unwrap_or_default()).await?,
        };
        Some(page.into_response())
    }

    /// Returns the page of this URI.
    pub(super) async fn answer(&self, uri: &Uri) -> Response<String> {
        let more = match &self.pages {
            Some(pages) => pages.page(uri.path(), uri.query(), &self.view()).await,
            None => None,
        };
        more.unwrap_or_else(|| self.page(uri.path())).into_response()
    }

    fn page(&self, path: &str) -> Page {
        if let ("/log-level", Some(page)) = (path, self.actions.as_ref().and_then(Actions::level)) {
            return page;
        }
        let (status, content_type, body) = match path {
            "/metrics" => (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", self.metrics()),
            "/healthz" => (StatusCode::OK, TEXT, "ok\n".into()),
            "/ready" if self.ready.load(Ordering::Relaxed) => (StatusCode::OK, TEXT, "ready\n".into()),
            "/ready" => (StatusCode::SERVICE_UNAVAILABLE, TEXT, "draining\n".into()),
            "/config" => (StatusCode::OK, "application/json", self.configuration()),
            "/status" => (StatusCode::OK, "application/json", format!("{:#}\n", self.status())),
            "/history" => (StatusCode::OK, "application/json", self.history.page(Instant::now()).to_string()),
            path if actions::is_action(path) => {
                (StatusCode::METHOD_NOT_ALLOWED, TEXT, "send a POST request\n".to_owned())
            }
            _ => match dashboard::asset(path) {
                Some(asset) => (StatusCode::OK, asset.content_type, asset.body.to_owned()),
                None => (StatusCode::NOT_FOUND, TEXT, NO_SUCH_PAGE.to_owned()),
            },
        };
        Page { status, content_type, body }
    }

    /// Records metrics for the history as long as it runs, even if no page is requested: histograms keep each value
    /// until they are rendered.
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
            telemetry::memory::update(&memory::usage());
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

const NO_SUCH_PAGE: &str = "no such page; available: / (the dashboard) /metrics /status /history /healthz /ready /config /log-level\n";
