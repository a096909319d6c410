//! Deadlines of the main loop.

use std::time::Instant;

/// Waits until a time, or forever without one.
pub(super) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
