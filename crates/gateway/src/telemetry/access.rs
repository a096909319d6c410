//! Who is let in, and what is asked about it, as Prometheus counts it.

use metrics::counter;

/// Something (`connection` or `request`) that the rules of a chain do not let in.
pub(crate) fn access_denied(what: &'static str) {
    counter!("quadrille_access_denied_total", "what" => what).increment(1);
}

/// The keys that tokens are signed with were fetched, or could not be.
pub(crate) fn token_keys_fetched(fetched: bool) {
    let result = if fetched { "fetched" } else { "failed" };
    counter!("quadrille_token_keys_fetches_total", "result" => result).increment(1);
}
