//! Tracers of filter chains.

use super::SnapshotBuilder;
use crate::traces::{TraceRules, Tracer};
use quadrille_config::{Diagnostic, model::Http};
use std::sync::Arc;

impl SnapshotBuilder<'_> {
    pub(super) fn tracer(
        &mut self,
        rules: TraceRules,
        routes_decide: bool,
    ) -> Result<Arc<Tracer>, Diagnostic> {
        let exporter = self.artifacts.exporter(rules.collector())?;
        Ok(Arc::new(Tracer { rules, routes_decide, exporter }))
    }

    /// Returns the tracer of a chain: its own, or that of all chains.
    pub(super) fn http_tracer(&mut self, http: &Http) -> Result<Option<Arc<Tracer>>, Diagnostic> {
        let Some(tracing) = &http.tracing else { return Ok(self.tracer.clone()) };
        let mut routes = http.routes.hosts.iter().flat_map(|host| &host.routes);
        let routes_decide =
            routes.any(|route| route.tracing.as_ref().is_some_and(|tracing| tracing.sampling.is_some()));
        self.tracer(TraceRules::Envoy(Arc::clone(tracing)), routes_decide).map(Some)
    }
}
