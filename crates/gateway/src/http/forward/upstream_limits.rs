//! Concurrency limits of upstreams.

use crate::upstream::{ActiveRequest, Overloaded, Upstream};
use std::{sync::Arc, time::Instant};

/// Reason why a request does not start.
pub(crate) enum Refusal {
    Overloaded,
    OutOfTime,
}

impl Refusal {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Overloaded => 503,
            Self::OutOfTime => 504,
        }
    }

    /// Returns the label for the access log.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Overloaded => "upstream overloaded",
            Self::OutOfTime => "timeout",
        }
    }
}

/// Waits until the upstream's limits allow the request to start.
pub(crate) async fn begin(
    upstream: &Arc<Upstream>,
    alone: bool,
    due: Option<Instant>,
) -> Result<ActiveRequest, Refusal> {
    let begun = match due {
        None => upstream.begin(alone).await,
        Some(due) => match Box::pin(tokio::time::timeout_at(due.into(), upstream.begin(alone))).await {
            Ok(begun) => begun,
            Err(_) => return Err(Refusal::OutOfTime),
        },
    };
    begun.map_err(|Overloaded| Refusal::Overloaded)
}
