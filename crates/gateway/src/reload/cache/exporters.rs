//! Span exporters.

use super::{ArtifactBuilder, ExporterKey, Identity, client_certificate, known};
use crate::{
    traces::Exporter,
    upstream::{Credentials, Endpoints, Upstream},
};
use quadrille_config::{
    Diagnostic,
    model::{
        self, CollectorEndpoint, CollectorServers, SpanCollector, TracingProtocol, UpstreamProtocol,
        UpstreamTls,
    },
};
use std::sync::Arc;

impl ArtifactBuilder<'_> {
    /// Returns the exporter for a collector; its upstream, if it has one, is one of the snapshot's.
    pub(crate) fn exporter(&mut self, model: &SpanCollector) -> Result<Arc<Exporter>, Diagnostic> {
        let upstream = match &model.servers {
            CollectorServers::Endpoint(_) => None,
            CollectorServers::Upstream { name, .. } => self.now.upstreams.get(name).cloned(),
        };
        let contents = self.contents(model.tls().into_iter().flat_map(UpstreamTls::sources));
        let key = ExporterKey { model: model.clone(), upstream: upstream.clone().map(Identity), contents };
        let known = known(&self.now.exporters, &self.before.exporters, &key);
        let exporter = match (known, &model.servers) {
            (Some(known), _) => known,
            (None, CollectorServers::Upstream { .. }) => Arc::new(Exporter::new(model, upstream)),
            (None, CollectorServers::Endpoint(endpoint)) => {
                let way = self.way(endpoint, model)?;
                Arc::new(Exporter::new(model, Some(Arc::new(way))))
            }
        };
        self.now.exporters.insert(key, Arc::clone(&exporter));
        Ok(exporter)
    }

    /// Builds an upstream without endpoints for a collector that is configured by its address.
    fn way(
        &mut self,
        endpoint: &CollectorEndpoint,
        collector: &SpanCollector,
    ) -> Result<Upstream, Diagnostic> {
        let mut model = model::Upstream::new(Vec::new(), collector.place.clone());
        model.tls = endpoint.tls.clone();
        model.protocol = match collector.protocol {
            TracingProtocol::Grpc => UpstreamProtocol::Http2,
            TracingProtocol::Http => UpstreamProtocol::Auto,
        };
        let tls = endpoint.tls.as_ref();
        let credentials = Credentials {
            ca: self.ca(tls, &collector.place)?,
            certificate: tls.map_or(Ok(None), client_certificate)?,
        };
        Upstream::new("tracing", &model, Endpoints::new(), &[credentials], Vec::new())
    }
}
