//! Key exchange by the engine: it receives the client's key share before BoringSSL needs the server's.

use crate::tls::handshake_state::{ExchangeTiming, HandshakeState};
use boring::ssl::{ClientHello, ExtensionType, SslRef, SslVersion};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_config::model::{Group, TlsPolicy, Version};
use quadrille_engine::{Engine, Exchange, ServerShare};
use std::time::Duration;

/// Key exchange of a context's connections by the engine.
pub(crate) struct KeyExchange {
    engine: Engine,
    /// Code points of the groups, in the server's order.
    groups: Vec<u16>,
}

impl KeyExchange {
    /// Creates the key exchange; `None` if it is left to BoringSSL.
    pub(crate) fn new(engine: &Engine, policy: &TlsPolicy) -> Option<Self> {
        let wanted = engine.exchanges_keys() && policy.max >= Version::Tls13;
        wanted.then(|| Self { engine: engine.clone(), groups: code_points(policy) })
    }

    /// Submits the client's key share, if the engine supports the group that BoringSSL will choose.
    pub(crate) fn begin(&self, hello: &ClientHello<'_>) -> Option<Exchange> {
        let extension = |code: u16| hello.get_extension(ExtensionType::from(code));
        let awaits = |group| self.engine.awaits(group);
        let share = quadrille_key_share::predict(extension, &self.groups, awaits)?;
        Some(match quadrille_handshake_timing::is_followed(hello.ssl()) {
            true => self.engine.measured_exchange(share),
            false => self.engine.exchange(share),
        })
    }
}

/// Passes the server's key share to BoringSSL. If this fails for lack of memory, BoringSSL computes its own.
pub(crate) fn hand_over(ssl: &mut SslRef, answer: &ServerShare) {
    if quadrille_key_share::hand_over(ssl, answer).is_ok()
        && let Some(handshake) = HandshakeState::attached(ssl)
    {
        let timing = ExchangeTiming { group: answer.group.code_point(), cpu: answer.cpu };
        let _ = handshake.key_exchange.set(timing);
    }
}

/// Returns the group of a completed handshake, and the engine's time for it if BoringSSL used the engine's key share.
/// Returns `None` if no group was used: a resumed session of TLS 1.2, or RSA key exchange.
pub(crate) fn completed(ssl: &SslRef) -> Option<(&'static str, Option<Duration>)> {
    // SAFETY: the connection is live.
    let negotiated = unsafe { ffi::SSL_get_group_id(ssl.as_ptr()) };
    let group = GROUPS.iter().find(|group| code_point(group) == negotiated)?;
    let timing = HandshakeState::attached(ssl).and_then(|handshake| handshake.key_exchange.get());
    // In another group, or in TLS 1.2, BoringSSL did not use the key share.
    let used =
        timing.filter(|timing| timing.group == negotiated && ssl.version2() == Some(SslVersion::TLS1_3));
    Some((label(group), used.map(|timing| timing.cpu)))
}

const GROUPS: [Group; 5] = [Group::X25519MlKem768, Group::X25519, Group::P256, Group::P384, Group::P521];

/// Returns the code points of a policy's groups, in its order.
pub(crate) fn code_points(policy: &TlsPolicy) -> Vec<u16> {
    policy.groups.iter().map(code_point).collect()
}

/// Returns the code point of a group in TLS.
fn code_point(group: &Group) -> u16 {
    match group {
        Group::X25519MlKem768 => 0x11ec,
        Group::X25519 => 0x001d,
        Group::P256 => 0x0017,
        Group::P384 => 0x0018,
        Group::P521 => 0x0019,
    }
}

/// Returns the value of the metric's label.
fn label(group: &Group) -> &'static str {
    match group {
        Group::X25519MlKem768 => "x25519mlkem768",
        Group::X25519 => "x25519",
        Group::P256 => "p256",
        Group::P384 => "p384",
        Group::P521 => "p521",
    }
}
