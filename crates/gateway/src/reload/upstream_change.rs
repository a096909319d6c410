//! Changes to upstreams when a snapshot is put into service.

use crate::upstream::{Endpoints, Upstream};
use std::sync::Arc;

/// A change to an upstream.
pub(crate) enum UpstreamChange {
    None,
    /// New set of endpoints.
    Endpoints(Arc<Upstream>, Endpoints),
    New(Arc<Upstream>),
}

impl UpstreamChange {
    /// Applies the change, on the runtime that runs the health checks.
    pub(crate) fn apply(self) {
        match self {
            Self::None => {}
            Self::Endpoints(upstream, endpoints) => upstream.set_endpoints(endpoints),
            Self::New(upstream) => drop(tokio::spawn(Upstream::run_health_checks(Arc::downgrade(&upstream)))),
        }
    }
}
