//! From the model to what can be served: certificates read, names resolved, TLS set up, or every problem named.

use crate::{
    certificate::Certificate,
    http::Routes,
    model::{Gateway, Listener},
    problem::Problem,
    resumption::Resumption,
    site::{Listening, Site},
    tls::ListenerTls,
    upstream::{Upstream, Upstreams},
};
use quadrille_engine::Engine;
use std::sync::Arc;

/// Everything that a configuration needs, ready to be swapped in.
pub(crate) struct Plan {
    pub(crate) sites: Vec<Site>,
    pub(crate) upstreams: Upstreams,
    /// What a user should know, though it is served.
    pub(crate) warnings: Vec<String>,
}

impl Plan {
    /// Reads and checks all that the model names. `running` are the listeners whose sessions should stay valid.
    pub(crate) fn new(
        model: &Gateway,
        engine: &Engine,
        resumption: &Arc<Resumption>,
        running: &[Arc<Listening>],
    ) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let upstreams = upstreams(model, &mut problems);
        let mut plan = Self { sites: Vec::new(), upstreams, warnings: Vec::new() };
        let kept = Listening::kept(running, model.listeners.iter().map(|listener| listener.address));
        for (listener, before) in model.listeners.iter().zip(kept) {
            match plan.site(listener, engine, resumption, before.as_deref()) {
                Ok(site) => plan.sites.push(site),
                Err(mut found) => problems.append(&mut found),
            }
        }
        if problems.is_empty() { Ok(plan) } else { Err(problems) }
    }

    fn site(
        &mut self,
        listener: &Listener,
        engine: &Engine,
        resumption: &Arc<Resumption>,
        before: Option<&Listening>,
    ) -> Result<Site, Vec<Problem>> {
        let certificates = self.certificates(listener)?;
        certificates.iter().for_each(|certificate| certificate.key.prepare(engine));
        let tls = match before {
            Some(before) => before.site().tls.renewed(listener, resumption, &certificates, engine),
            None => ListenerTls::new(listener, resumption, &certificates, engine),
        }
        .map_err(|problem| vec![problem])?;
        Ok(Site { listener: listener.clone(), tls, routes: Routes::new(&listener.routes, &self.upstreams) })
    }

    fn certificates(&mut self, listener: &Listener) -> Result<Vec<Certificate>, Vec<Problem>> {
        let load = |source| Certificate::load(source, listener.tls.allow_weak_keys);
        let (loaded, problems): (Vec<_>, Vec<_>) =
            listener.certificates.iter().map(load).partition(Result::is_ok);
        if !problems.is_empty() {
            return Err(problems.into_iter().filter_map(Result::err).collect());
        }
        let certificates: Vec<Certificate> = loaded.into_iter().flatten().collect();
        self.warnings.extend(certificates.iter().flat_map(|certificate| certificate.warnings.clone()));
        Ok(certificates)
    }
}

fn upstreams(model: &Gateway, problems: &mut Vec<Problem>) -> Upstreams {
    let mut upstreams = Upstreams::new();
    for (name, upstream) in &model.upstreams {
        match Upstream::new(name, upstream) {
            Ok(upstream) => {
                upstreams.insert(name.clone(), Arc::new(upstream));
            }
            Err(mut found) => problems.append(&mut found),
        }
    }
    upstreams
}
