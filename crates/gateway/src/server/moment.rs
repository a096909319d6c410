//! Moments that the server waits for.

use std::time::Instant;

/// Never, if there is no time.
pub(super) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
