//! What becomes of an upstream when a snapshot is put into service.

use crate::upstream::{Endpoints, Upstream};
use std::sync::Arc;

/// What a snapshot changes of an upstream.
pub(crate) enum UpstreamChange {
    None,
    /// These are its servers now.
    Endpoints(Arc<Upstream>, Endpoints),
    New(Arc<Upstream>),
}

impl UpstreamChange {
    /// Makes the change, on the runtime on which the health of servers is checked.
    pub(crate) fn apply(self) {
        match self {
            Self::None => {}
            Self::Endpoints(upstream, endpoints) => upstream.set_endpoints(endpoints),
            Self::New(upstream) => drop(tokio::spawn(Upstream::run_health_checks(Arc::downgrade(&upstream)))),
        }
    }
}
