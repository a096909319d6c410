//! From the model to what can be served: certificates read, names resolved, TLS set up, or every problem named.

use crate::{
    listener::{
        filter_chain::{Inside, Listening, NewSite, Prepared, Served, Slot},
        matcher::Choice,
    },
    model::{Chain, Gateway, Listener, Serve},
    problem::Problem,
    reload::{
        cache::{Change, Kept, Parts},
        control::Made,
    },
    telemetry::{sampling::Sampling, status::InForce},
    tls::{certificate::Certificate, resumption::Resumption},
    upstream::Shares,
};
use quadrille_engine::Engine;
use std::{collections::BTreeSet, sync::Arc};

/// Everything that a configuration needs, ready to be swapped in.
pub(crate) struct Plan {
    pub(crate) sites: Vec<NewSite>,
    /// What is to be done to upstreams.
    pub(crate) changes: Vec<Change>,
    /// For the next plan.
    pub(crate) kept: Kept,
    /// What the plan before did not have.
    pub(crate) made: Made,
    /// What the admin pages tell of it.
    pub(crate) in_force: InForce,
    /// What a user should know, though it is served.
    pub(crate) warnings: Vec<String>,
}

/// What plans are made with.
pub(crate) struct Maker<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) resumption: &'a Arc<Resumption>,
    /// The listeners whose connections go on.
    pub(crate) running: &'a [Arc<Listening>],
    /// Parts of the plan before.
    pub(crate) kept: &'a Kept,
}

impl Plan {
    /// Reads and checks all that the model names.
    pub(crate) fn new(model: &Gateway, maker: &Maker<'_>) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut making = Making {
            model,
            maker,
            parts: Parts::new(maker.kept),
            shown: Vec::new(),
            warnings: BTreeSet::new(),
        };
        let mut changes = Vec::new();
        for (name, upstream) in &model.upstreams {
            match making.parts.upstream(name, upstream) {
                Ok(change) => changes.push(change),
                Err(mut found) => problems.append(&mut found),
            }
        }
        let mut sites = Vec::new();
        let kept = Listening::kept(maker.running, model.listeners.iter().map(|listener| listener.address));
        for (listener, before) in model.listeners.iter().zip(kept) {
            match making.site(listener, before.as_deref()) {
                Ok(site) => sites.push(site),
                Err(mut found) => problems.append(&mut found),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut in_force = InForce::new(making.parts.now.upstreams());
        for (listener, certificates) in &making.shown {
            in_force.add(listener, certificates);
        }
        let (kept, warnings) = (making.parts.now, making.warnings.into_iter().collect());
        let made = kept.made_since(maker.kept);
        Ok(Self { sites, changes, kept, made, in_force, warnings })
    }
}

/// A plan that is being made.
struct Making<'a> {
    model: &'a Gateway,
    maker: &'a Maker<'a>,
    parts: Parts<'a>,
    shown: Vec<(&'a Listener, Vec<Arc<Certificate>>)>,
    warnings: BTreeSet<String>,
}

impl<'a> Making<'a> {
    fn site(&mut self, listener: &'a Listener, before: Option<&Listening>) -> Result<NewSite, Vec<Problem>> {
        let mut problems = Vec::new();
        let choice =
            Choice::new(listener).map_err(|mut found| problems.append(&mut found)).unwrap_or_default();
        let mut slots = before.map(|before| before.site().slots.clone()).unwrap_or_default();
        let mut chains = Vec::new();
        let mut shown = Vec::new();
        for chain in listener.all_chains() {
            let at = slots.iter().position(|slot| slot.is(&chain.name, &chain.accepts));
            let slot = at.map(|at| slots.swap_remove(at));
            match self.chain(chain, slot, &mut shown) {
                Ok(prepared) => chains.push(prepared),
                Err(mut found) => problems.append(&mut found),
            }
        }
        self.shown.push((listener, shown));
        if problems.is_empty() {
            Ok(NewSite { listener: listener.clone(), chains, choice })
        } else {
            Err(problems)
        }
    }

    /// A chain, in the place that it has already, if it has one.
    fn chain(
        &mut self,
        chain: &Chain,
        slot: Option<Arc<Slot>>,
        shown: &mut Vec<Arc<Certificate>>,
    ) -> Result<Prepared, Vec<Problem>> {
        let (engine, resumption) = (self.maker.engine, self.maker.resumption);
        let mut certificates = Vec::new();
        let mut problems = Vec::new();
        for source in
            chain.tls.iter().flat_map(|tls| tls.certificates.iter().map(move |source| (tls, source)))
        {
            let (tls, source) = source;
            match self.parts.certificate(source, tls.policy.allow_weak_keys, engine) {
                Ok(certificate) => certificates.push(certificate),
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let tls = chain
            .tls
            .as_ref()
            .map(|tls| self.parts.tls(tls, chain.mode(), &certificates, resumption, engine));
        let tls = tls.transpose().map_err(|problem| vec![problem])?;
        let certificates: Vec<_> = certificates.into_iter().map(|(certificate, _)| certificate).collect();
        self.warnings.extend(certificates.iter().flat_map(|certificate| certificate.warnings.clone()));
        let inside = match &chain.serve {
            Serve::Http(http) => Inside::Http {
                routes: self.parts.routes(&http.routes),
                normalize_path: http.normalize_path,
                merge_slashes: http.merge_slashes,
            },
            Serve::Tcp(to) => Inside::Tcp(Shares::new(to, self.parts.now.upstreams())),
        };
        let before = slot.as_ref().map(|slot| slot.served());
        let same = before.filter(|before| {
            before.sampling.follows(self.model.sampling) && before.same_names(tls.as_ref(), &inside)
        });
        let sampling = match same {
            Some(before) => Arc::clone(&before.sampling),
            None => Arc::new(Sampling::new(self.model.sampling, &certificates, chain)),
        };
        shown.extend(certificates);
        let served = Arc::new(Served { tls, inside, timeouts: chain.timeouts.clone(), sampling });
        let slot =
            slot.unwrap_or_else(|| Arc::new(Slot::new(&chain.name, &chain.accepts, Arc::clone(&served))));
        Ok(Prepared { slot, served })
    }
}
