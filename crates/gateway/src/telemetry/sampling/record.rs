//! Metrics of measured handshakes.

use crate::connection::Connection;
use metrics::counter;
use quadrille_handshake_timing::{Marks, reading_cost};
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

/// Stages that are not handshake messages.
const PRIVATE_KEY: &str = "PrivateKey";
const KEY_EXCHANGE: &str = "KeyExchange";

/// Adds one measured handshake. The look-up of its counters costs a few microseconds, which is acceptable for a
/// sample.
pub(super) fn record(
    marks: &Marks,
    sni: Arc<str>,
    connection: &Connection,
    exchange: Option<Duration>,
) -> Option<Duration> {
    static CLOCK: LazyLock<Duration> = LazyLock::new(reading_cost);
    let spent = marks.share_out(*CLOCK)?;
    let mut on_loop = spent.key_operation + exchange.unwrap_or_default();
    let session = if connection.resumed { "resumed" } else { "full" };
    let version = connection.version;
    let add = |stage: String, time: Duration| {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        counter!("quadrille_handshake_cpu_nanoseconds_total", "stage" => stage, "session" => session,
            "version" => version, "sni" => Arc::clone(&sni))
        .increment(nanoseconds);
    };
    for (message, time) in spent.messages {
        on_loop += time;
        add(format!("{message:?}"), time);
    }
    if let Some(key) = connection.key {
        add(PRIVATE_KEY.to_owned(), spent.key_operation + key.cpu);
    }
    if let Some(exchange) = exchange {
        add(KEY_EXCHANGE.to_owned(), exchange);
    }
    counter!("quadrille_handshake_samples_total", "session" => session, "version" => version, "sni" => sni)
        .increment(1);
    Some(on_loop)
}
