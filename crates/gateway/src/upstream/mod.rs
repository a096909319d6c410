//! The servers behind the gateway: which is next, whether it is well, how to reach it.

mod balancer;
pub(crate) mod health;
mod peer;
mod proxy_header;
mod tls;
mod upgrade;

pub(crate) use balancer::Server;
pub(crate) use proxy_header::proxy_header;

use crate::{certificate, model, problem::Problem};
use balancer::Balancer;
use boring::{error::ErrorStack, x509::X509};
use std::{
    collections::BTreeMap,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    net::SocketAddr,
    sync::Arc,
};
use tls::ClientTls;

/// A group of servers, resolved and ready.
pub(crate) struct Upstream {
    name: String,
    model: model::Upstream,
    balancer: Balancer,
    /// Trusted for the servers' certificates; `None` means the system's.
    ca: Option<Arc<Box<[X509]>>>,
    /// Tells connections that were verified against other CAs apart.
    ca_digest: u64,
    /// For TCP mode and upgrades.
    tls: Option<Arc<ClientTls>>,
}

pub(crate) type Upstreams = BTreeMap<String, Arc<Upstream>>;

impl Upstream {
    /// Resolves the servers and reads the CA bundle.
    pub(crate) fn new(name: &str, model: &model::Upstream) -> Result<Self, Vec<Problem>> {
        let ca = read_ca(model).map_err(|problem| vec![problem])?;
        let balancer = Balancer::new(model, ca.as_ref())?;
        let ca_digest =
            digest(ca.as_ref()).map_err(|error| vec![Problem::new(&model.place, error.to_string())])?;
        let tls = model.tls.as_ref().map(|tls| ClientTls::new(tls, ca.as_ref().map(|ca| &***ca)));
        let tls = tls
            .map(|tls| tls.map(Arc::new))
            .transpose()
            .map_err(|error| vec![Problem::new(&model.place, error.to_string())])?;
        Ok(Self { name: name.to_owned(), model: model.clone(), balancer, ca, ca_digest, tls })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn model(&self) -> &model::Upstream {
        &self.model
    }

    pub(crate) fn retries(&self) -> usize {
        self.model.retries
    }

    /// TLS towards the servers in TCP mode; `None` is plain text.
    pub(crate) fn tls(&self) -> Option<&ClientTls> {
        self.tls.as_deref()
    }

    /// The server for this client, if possible not one of those that were `tried`; `None` if none is healthy.
    pub(crate) fn pick(&self, client: SocketAddr, tried: &[SocketAddr]) -> Option<Server> {
        self.balancer.pick(client, tried)
    }
}

fn digest(ca: Option<&Arc<Box<[X509]>>>) -> Result<u64, ErrorStack> {
    let der: Vec<_> =
        ca.into_iter().flat_map(|ca| ca.iter()).map(|ca| ca.to_der()).collect::<Result<_, _>>()?;
    Ok(BuildHasherDefault::<DefaultHasher>::default().hash_one(der))
}

fn read_ca(model: &model::Upstream) -> Result<Option<Arc<Box<[X509]>>>, Problem> {
    let Some(tls) = &model.tls else { return Ok(None) };
    let Some(ca) = &tls.ca else { return Ok(None) };
    let chain = certificate::read_chain(ca, tls.ca_place.as_ref().unwrap_or(&model.place))?;
    Ok(Some(Arc::new(chain.into())))
}
