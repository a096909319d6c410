//! The servers behind the gateway: which is next, whether it is well, how to reach it.

mod balancer;
pub(crate) mod health;
mod peer;
mod proxy_header;

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

/// A group of servers, resolved and ready.
pub(crate) struct Upstream {
    name: String,
    model: model::Upstream,
    balancer: Balancer,
    /// Trusted for the servers' certificates; `None` means the system's.
    ca: Option<Arc<Box<[X509]>>>,
    /// Tells connections that were verified against other CAs apart.
    ca_digest: u64,
}

pub(crate) type Upstreams = BTreeMap<String, Arc<Upstream>>;

impl Upstream {
    /// Resolves the servers and reads the CA bundle.
    pub(crate) fn new(name: &str, model: &model::Upstream) -> Result<Self, Vec<Problem>> {
        let ca = read_ca(model).map_err(|problem| vec![problem])?;
        let balancer = Balancer::new(model, ca.as_ref())?;
        let ca_digest =
            digest(ca.as_ref()).map_err(|error| vec![Problem::new(&model.place, error.to_string())])?;
        Ok(Self { name: name.to_owned(), model: model.clone(), balancer, ca, ca_digest })
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

    /// Trusted for the servers' certificates; `None` means the system's.
    pub(crate) fn ca(&self) -> Option<&[X509]> {
        self.ca.as_ref().map(|ca| &***ca)
    }

    /// Every server, with whether it is well as far as is known.
    pub(crate) fn servers(&self) -> Vec<(Server, bool)> {
        self.balancer.servers()
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
