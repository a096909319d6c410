//! Istio's `privateKeyProvider`.

use crate::{
    common::duration,
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{Problem, values::show_duration};
use std::{fmt, time::Duration};

/// A provider as Istio writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Which one.
    pub kind: ProviderKind,
    /// As it is written.
    pub poll_delay: Duration,
    /// Whether a proxy without the hardware may compute by itself.
    pub fallback: bool,
}

/// Which provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Several RSA operations at once.
    CryptoMb,
    /// A card.
    Qat,
}

impl ProviderKind {
    /// As Istio writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CryptoMb => "cryptomb",
            Self::Qat => "qat",
        }
    }
}

impl Provider {
    /// What reaches the proxy: Istio builds the duration from its nanoseconds, and the seconds are lost.
    pub fn delivered_delay(&self) -> Duration {
        Duration::from_nanos(u64::from(self.poll_delay.subsec_nanos()))
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, pollDelay {}", self.kind.name(), show_duration(self.poll_delay))?;
        if self.fallback { f.write_str(", with fallback") } else { Ok(()) }
    }
}

/// The provider of a `ProxyConfig`, with its field; `Some(None)` if it has none.
pub(super) fn of_proxy_config<'a>(field: &Field<'a>) -> Option<Option<(Provider, Field<'a>)>> {
    let message = field.message(&schema::PROXY_CONFIG)?;
    let Some(field) = message.get("private_key_provider") else { return Some(None) };
    let provider = field.message(&schema::ISTIO_PROVIDER)?;
    let found = match provider.one_of(&["cryptomb", "qat"]) {
        Some(("cryptomb", inner)) => {
            settings(ProviderKind::CryptoMb, &inner.message(&schema::ISTIO_CRYPTOMB)?)?
        }
        Some((_, inner)) => settings(ProviderKind::Qat, &inner.message(&schema::ISTIO_QAT)?)?,
        None => return field.fail(Problem::new("names no provider", "write `cryptomb` or `qat`")),
    };
    Some(Some((found, field)))
}

fn settings(kind: ProviderKind, message: &Message<'_>) -> Option<Provider> {
    let delay_field = message.require("poll_delay")?;
    let provider = Provider { kind, poll_delay: duration(&delay_field)?, fallback: message.flag("fallback") };
    if provider.delivered_delay() != provider.poll_delay {
        delay_field.warn(
            &format!("istio delay {}", delay_field.place()),
            format!(
                "Istio forwards the nanoseconds of a duration only: {} reaches the proxy as {}",
                show_duration(provider.poll_delay),
                show_duration(provider.delivered_delay())
            ),
        );
    }
    Some(provider)
}
