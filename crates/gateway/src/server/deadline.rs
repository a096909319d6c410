//! Deadlines of the main loop.

use std::time::Instant;

/// Waits until a deadline, or forever without one.
pub(crate) async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
