//! One connection's HTTP life, with the listener's timeouts.

use super::{Proxy, deadline};
use crate::connection::Connection;
use async_trait::async_trait;
use pingora_core::{
    apps::{HttpServerApp, HttpServerOptions, ReusedHttpStream},
    protocols::http::ServerSession,
    server::ShutdownWatch,
};
use pingora_proxy::HttpProxy;
use std::{sync::Arc, time::Duration};

/// One connection's HTTP life.
pub(crate) struct App {
    proxy: Arc<HttpProxy<Proxy>>,
    connection: Arc<Connection>,
    options: HttpServerOptions,
    idle: Duration,
}

impl App {
    pub(crate) fn new(
        proxy: Arc<HttpProxy<Proxy>>,
        connection: Arc<Connection>,
        idle: Duration,
    ) -> Arc<Self> {
        let mut options = HttpServerOptions::default();
        options.h2_idle_timeout = Some(idle);
        Arc::new(Self { proxy, connection, options, idle })
    }
}

#[async_trait]
impl HttpServerApp for App {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        if !session.is_http2() {
            self.connection.header_clock.expect_header();
            // Zero would mean no limit at all.
            session.set_keepalive(Some(self.idle.as_secs().max(1)));
        }
        deadline::enforce(self.proxy.process_new_http(session, shutdown)).await.flatten()
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        Some(&self.options)
    }
}
