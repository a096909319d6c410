//! Istio's `privateKeyProvider`.

use crate::{
    common::duration,
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{Problem, values::show_duration};
use std::{fmt, time::Duration};

/// A provider as configured in Istio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Type of the provider.
    pub kind: ProviderKind,
    /// Poll delay as configured.
    pub poll_delay: Duration,
    /// Whether a proxy without the hardware may compute in software.
    pub fallback: bool,
}

/// Type of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Multi-buffer RSA operations on the CPU.
    CryptoMb,
    /// A QAT accelerator card.
    Qat,
}

impl ProviderKind {
    /// Returns Istio's name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::CryptoMb => "cryptomb",
            Self::Qat => "qat",
        }
    }
}

impl Provider {
    /// Returns the delay that reaches the proxy: Istio forwards only the nanoseconds of a duration, not its seconds.
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

/// Reads the provider of a `ProxyConfig`, with its field; `Some(None)` if it has none.
pub(super) fn of_proxy_config<'a>(field: &Field<'a>) -> Option<Option<(Provider, Field<'a>)>> {
    let message = field.message(&schema::PROXY_CONFIG)?;
    let Some(field) = message.get("private_key_provider") else { return Some(None) };
    let provider = field.message(&schema::ISTIO_PROVIDER)?;
    let found = match provider.one_of(&["cryptomb", "qat"]) {
        Some(("cryptomb", inner)) => {
            settings(ProviderKind::CryptoMb, &inner.message(&schema::ISTIO_CRYPTOMB)?)?
        }
        Some((_, inner)) => settings(ProviderKind::Qat, &inner.message(&schema::ISTIO_QAT)?)?,
        None => return field.fail(Problem::new("no provider is set", "write `cryptomb` or `qat`")),
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
                "Istio forwards only the nanoseconds of a duration: {} reaches the proxy as {}",
                show_duration(provider.poll_delay),
                show_duration(provider.delivered_delay())
            ),
        );
    }
    Some(provider)
}
