//! Metrics of access decisions.

use metrics::counter;

/// Counts a `connection` or `request` that the rules of a chain deny.
pub(crate) fn access_denied(what: &'static str) {
    counter!("quadrille_access_denied_total", "what" => what).increment(1);
}

/// Counts an attempt to fetch a token issuer's keys.
pub(crate) fn token_keys_fetched(fetched: bool) {
    let result = if fetched { "fetched" } else { "failed" };
    counter!("quadrille_token_keys_fetches_total", "result" => result).increment(1);
}
