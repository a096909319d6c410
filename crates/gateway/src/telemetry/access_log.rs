//! One line for each finished request, with what its handshake took.
//!
//! Lines are tracing events of the target `access`; whoever sets up tracing decides on text or JSON, and where to.

use crate::connection::Connection;
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

static ENABLED: AtomicBool = AtomicBool::new(false);

/// The tracing target of access lines.
pub const TARGET: &str = "access";

pub(crate) fn enable(on: bool) {
    ENABLED.store(on, Ordering::Relaxed);
}

pub(crate) fn enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// One finished request.
pub(crate) struct Request<'a> {
    /// For whom it was sent, as trusted proxies say; port 0 if they say none.
    pub(crate) client: SocketAddr,
    pub(crate) method: &'a str,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) protocol: &'a str,
    /// 0 if none was sent.
    pub(crate) status: u16,
    pub(crate) bytes: usize,
    pub(crate) took: Duration,
    pub(crate) upstream: &'a str,
    pub(crate) error: Option<&'a str>,
}

impl Request<'_> {
    pub(crate) fn write(self, connection: &Connection) {
        let key = connection.key;
        tracing::info!(
            target: TARGET,
            client = %self.client,
            method = self.method,
            host = self.host,
            path = self.path,
            protocol = self.protocol,
            status = self.status,
            bytes = self.bytes,
            request_us = micros(self.took),
            upstream = self.upstream,
            error = self.error,
            tls_version = connection.version,
            cipher = connection.cipher,
            sni = connection.sni.as_deref(),
            resumed = connection.resumed,
            handshake_us = micros(connection.handshake),
            key_wait_us = key.map(|key| micros(key.waited)),
            key_us = key.map(|key| micros(key.computed)),
            batch = key.map(|key| key.batch),
        );
    }
}

/// One finished connection of a TCP listener.
pub(crate) fn tcp(connection: &Connection, to_server: u64, to_client: u64, took: Duration, upstream: &str) {
    if !enabled() {
        return;
    }
    let key = connection.key;
    tracing::info!(
        target: TARGET,
        client = %connection.client,
        protocol = "TCP",
        bytes_in = to_server,
        bytes = to_client,
        connection_us = micros(took),
        upstream,
        tls_version = connection.version,
        cipher = connection.cipher,
        sni = connection.sni.as_deref(),
        resumed = connection.resumed,
        handshake_us = micros(connection.handshake),
        key_wait_us = key.map(|key| micros(key.waited)),
        key_us = key.map(|key| micros(key.computed)),
        batch = key.map(|key| key.batch),
    );
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
