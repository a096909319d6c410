//! Waiting until an upstream's limits let a request begin.

use crate::upstream::{ActiveRequest, Overloaded, Upstream};
use std::{sync::Arc, time::Instant};

/// Why a request is not begun.
pub(super) enum Refusal {
    Overloaded,
    OutOfTime,
}

impl Refusal {
    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Overloaded => 503,
            Self::OutOfTime => 504,
        }
    }

    /// For the access log.
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Overloaded => "upstream overloaded",
            Self::OutOfTime => "timeout",
        }
    }
}

/// Waits until the upstream's limits let the request begin.
pub(super) async fn begin(
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
