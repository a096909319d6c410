//! Metrics of tokens, through the `metrics` facade. They are described in the gateway crate, whose process serves them.

use metrics::{counter, gauge};

/// Records whether the token can be reached.
pub(crate) fn up(token: &str, up: bool) {
    gauge!("quadrille_pkcs11_token_up", "token" => token.to_owned()).set(if up { 1.0 } else { 0.0 });
}

/// Counts an operation without a result.
pub(crate) fn failed(token: &str, reason: &'static str) {
    counter!("quadrille_pkcs11_failures_total", "token" => token.to_owned(), "reason" => reason).increment(1);
}
