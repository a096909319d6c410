//! The admin endpoint: metrics, health, and the configuration in force.

use crate::{bind, metrics, model, problem::Problem, resumption::Resumption, server::internal};
use arc_swap::ArcSwap;
use async_trait::async_trait;
use http::{Response, StatusCode, header};
use metrics_exporter_prometheus::PrometheusHandle;
use pingora_core::{
    apps::{ServerApp, http_app::ServeHttp},
    protocols::{http::ServerSession, l4::stream::Stream},
    server::ShutdownWatch,
};
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
    pub(crate) resumption: Option<Arc<ArcSwap<Resumption>>>,
    /// The configuration in force, without secrets.
    pub(crate) configuration: Box<dyn Fn() -> serde_json::Value + Send + Sync>,
    /// False from the moment a drain begins, so that balancers look elsewhere.
    pub(crate) ready: AtomicBool,
}

impl Admin {
    /// Opens the endpoint, unless it is switched off.
    pub(crate) fn start(
        self: &Arc<Self>,
        settings: Option<&model::Admin>,
        shutdown: &ShutdownWatch,
    ) -> Result<Option<SocketAddr>, Vec<Problem>> {
        let Some(settings) = settings else { return Ok(None) };
        let socket = bind::bind_one(settings.address, &settings.place).map_err(|problem| vec![problem])?;
        let address = socket.local_addr().map_err(internal)?;
        let listener = TcpListener::from_std(socket).map_err(internal)?;
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
            "/" => (StatusCode::OK, TEXT, "quadrille: /metrics /healthz /ready /config\n".into()),
            _ => (
                StatusCode::NOT_FOUND,
                TEXT,
                "no such page; there are /metrics /healthz /ready /config\n".into(),
            ),
        }
    }

    fn metrics(&self) -> String {
        let resumption = self.resumption.as_ref().map(|resumption| resumption.load());
        metrics::refresh(&self.engine, resumption.as_deref().map(AsRef::as_ref));
        self.prometheus.as_ref().map(PrometheusHandle::render).unwrap_or_default()
    }

    fn configuration(&self) -> String {
        format!("{:#}\n", (self.configuration)())
    }
}

#[async_trait]
impl ServeHttp for Admin {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let (status, content_type, body) = self.page(session.req_header().uri.path());
        let mut response = Response::new(body.into_bytes());
        *response.status_mut() = status;
        let length = response.body().len();
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        response
    }
}
