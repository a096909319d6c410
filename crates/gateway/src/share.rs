//! Shares of what comes, drawn at random.

use quadrille_config::share;

/// Whether something is one of so many of a million.
pub(crate) fn is_one_of(parts: u32) -> bool {
    fastrand::u32(..share::ALL) < parts
}
