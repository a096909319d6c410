//! Shares of requests, drawn at random.

use quadrille_config::share;

/// Whether a request is one of so many of a million.
pub(super) fn is_one_of(parts: u32) -> bool {
    fastrand::u32(..share::ALL) < parts
}
