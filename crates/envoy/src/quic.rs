//! UDP listeners: HTTP/3, with TLS inside QUIC.

use crate::{
    common::duration,
    reader::{Field, Message, ReadMessage},
    schema,
    tls::{DownstreamTls, downstream},
    values::boolean,
};
use quadrille_config::{Problem, model::Timeouts};
use std::time::Duration;

/// Settings of a UDP listener for all its chains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuicOptions {
    idle: Duration,
    handshake: Duration,
}

/// Envoy's default idle timeout.
const IDLE: Duration = Duration::from_secs(300);
const HANDSHAKE: Duration = Duration::from_secs(20);
/// Envoy's minimum handshake timeout.
const SHORTEST_HANDSHAKE: Duration = Duration::from_secs(5);

impl QuicOptions {
    /// Applies the settings to a chain, which may have its own.
    pub(crate) fn limit(self, timeouts: &mut Timeouts) {
        timeouts.idle = timeouts.idle.min(self.idle);
    }

    /// Returns the handshake timeout for chains without their own.
    pub(crate) fn handshake(self) -> Duration {
        self.handshake
    }
}

/// Reads the QUIC settings of a UDP listener's message.
pub(crate) fn quic_options(listener: &Message<'_>) -> Option<QuicOptions> {
    let udp = match listener.get("udp_listener_config") {
        Some(field) => Some(field.message(&schema::UDP_LISTENER)?),
        None => None,
    };
    let Some(options) = udp.and_then(|udp| udp.get("quic_options")) else {
        return listener.field().fail(Problem::new(
            "refused: raw UDP is not proxied",
            "for HTTP/3, write `udp_listener_config: { quic_options: {} }`; otherwise, use TCP",
        ));
    };
    let options = options.message(&schema::QUIC_OPTIONS)?;
    let time = |name: &'static str, otherwise| match options.get(name) {
        Some(field) => duration(&field),
        None => Some(otherwise),
    };
    let handshake = time("crypto_handshake_timeout", HANDSHAKE)?.max(SHORTEST_HANDSHAKE);
    Some(QuicOptions { idle: time("idle_timeout", IDLE)?, handshake })
}

/// Reads `QuicDownstreamTransport`.
pub(crate) fn quic_transport(field: &Field<'_>) -> Option<DownstreamTls> {
    let message = field.message(&schema::QUIC_TRANSPORT)?;
    let mut tls = downstream(&message.require("downstream_tls_context")?)?;
    let resumes = match message.get("enable_resumption") {
        Some(field) => field.parse(boolean)?,
        None => true,
    };
    tls.sessions.no_tickets |= !resumes;
    Some(tls)
}
