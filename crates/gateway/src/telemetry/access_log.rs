//! The access log: one line for each finished request, with the times of its handshake.
//!
//! Lines are tracing events of the target `access`; the tracing subscriber determines format and destination.

pub(crate) use super::access_line::Request;
use super::access_line::{Transfer, Values};
use crate::connection::Connection;
use arc_swap::ArcSwapOption;
use http::Version;
use quadrille_config::model::{AccessLog, Gateway, LogField, LogFields, LogFormat};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

static ENABLED: AtomicBool = AtomicBool::new(false);
static FIELDS: AtomicU32 = AtomicU32::new(0);
static FORMAT: ArcSwapOption<LogFormat> = ArcSwapOption::const_empty();

/// The tracing target of access lines.
pub const TARGET: &str = "access";

/// The field of a line that has its own format: the line, complete. Such an event has no other field.
pub const LINE: &str = "line";

/// Applies the settings of this configuration.
pub(crate) fn follow(model: &Gateway) {
    FIELDS.store(model.access_log_fields.bits(), Ordering::Relaxed);
    FORMAT.store(model.access_log_format.clone());
    let is_on = model.access_log != AccessLog::Off || model.access_log_syslog.is_some();
    ENABLED.store(is_on, Ordering::Relaxed);
}

pub(crate) fn enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Returns the format of lines, if they have their own.
pub(crate) fn format() -> Option<Arc<LogFormat>> {
    FORMAT.load_full()
}

/// Returns the fields of a line.
pub(crate) fn fields() -> LogFields {
    LogFields::from_bits(FIELDS.load(Ordering::Relaxed))
}

impl Request<'_> {
    pub(crate) fn write(self, connection: &Connection) {
        if let Some((format, headers)) = self.format {
            let line = Values::of_request(&self, headers, connection).line(format);
            return tracing::info!(target: TARGET, line);
        }
        let (key, only) = (connection.key, Only(fields()));
        tracing::info!(
            target: TARGET,
            client = only.told(LogField::Client, display(self.client)),
            user = only.known(LogField::User, self.user),
            method = only.told(LogField::Method, self.method),
            host = only.told(LogField::Host, self.host),
            path = only.told(LogField::Path, self.path),
            query = self.query,
            user_agent = self.user_agent,
            request_id = self.request_id,
            protocol = only.told(LogField::Protocol, protocol(self.version)),
            status = only.told(LogField::Status, self.status),
            bytes = only.told(LogField::Bytes, self.bytes),
            request_us = only.told(LogField::RequestTime, micros(self.took)),
            upstream = only.told(LogField::Upstream, self.upstream),
            upstream_server = only.known(LogField::UpstreamServer, self.upstream_server.map(display)),
            upstream_us = only.known(LogField::UpstreamTime, self.upstream_took.map(micros)),
            error = only.known(LogField::Error, self.error),
            tls_version = only.told(LogField::TlsVersion, connection.version),
            cipher = only.told(LogField::Cipher, connection.cipher),
            sni = only.known(LogField::Sni, connection.sni.as_deref()),
            resumed = only.told(LogField::Resumed, connection.resumed),
            handshake_us = only.told(LogField::HandshakeTime, micros(connection.handshake)),
            key_wait_us = only.known(LogField::KeyWaitTime, key.map(|key| micros(key.waited))),
            key_us = only.known(LogField::KeyTime, key.map(|key| micros(key.computed))),
            batch = only.known(LogField::Batch, key.map(|key| key.batch)),
        );
    }
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "HTTP/3",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1",
    }
}

/// Logs a finished connection of a TCP listener.
pub(crate) fn tcp(connection: &Connection, to_server: u64, to_client: u64, took: Duration, upstream: &str) {
    if !enabled() {
        return;
    }
    if let Some(format) = format() {
        let transfer = Transfer { to_server, to_client, took, upstream };
        let line = Values::of_transfer(&transfer, connection).line(&format);
        return tracing::info!(target: TARGET, line);
    }
    let (key, only) = (connection.key, Only(fields()));
    tracing::info!(
        target: TARGET,
        client = only.told(LogField::Client, display(connection.client)),
        protocol = only.told(LogField::Protocol, "TCP"),
        bytes_in = only.told(LogField::BytesIn, to_server),
        bytes = only.told(LogField::Bytes, to_client),
        connection_us = only.told(LogField::ConnectionTime, micros(took)),
        upstream = only.told(LogField::Upstream, upstream),
        tls_version = only.told(LogField::TlsVersion, connection.version),
        cipher = only.told(LogField::Cipher, connection.cipher),
        sni = only.known(LogField::Sni, connection.sni.as_deref()),
        resumed = only.told(LogField::Resumed, connection.resumed),
        handshake_us = only.told(LogField::HandshakeTime, micros(connection.handshake)),
        key_wait_us = only.known(LogField::KeyWaitTime, key.map(|key| micros(key.waited))),
        key_us = only.known(LogField::KeyTime, key.map(|key| micros(key.computed))),
        batch = only.known(LogField::Batch, key.map(|key| key.batch)),
    );
}

/// Filters the enabled fields.
struct Only(LogFields);

impl Only {
    fn told<T>(&self, field: LogField, value: T) -> Option<T> {
        self.0.has(field).then_some(value)
    }

    fn known<T>(&self, field: LogField, value: Option<T>) -> Option<T> {
        value.filter(|_| self.0.has(field))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
