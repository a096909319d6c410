//! Which chain a connection belongs to, looked up as Envoy does: by its destination, what the client says first, and
//! where the client is.

mod addresses;
mod clients;
mod look;
mod names;
#[cfg(test)]
mod tests;

use crate::tls::client_hello::ClientHelloInfo;
pub(crate) use addresses::Addresses;
pub(crate) use look::Look;
use names::Names;
use quadrille_config::{
    Diagnostic, Problem,
    model::{Chain, Inspection, Listener, Network},
};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
};

/// A listener's chains, by what they accept.
#[derive(Debug, Default)]
pub(crate) struct FilterChainMatcher {
    /// There is but one, and it takes all: nobody needs to look.
    only: bool,
    ports: HashMap<u16, Destinations>,
    any_port: Destinations,
    default_chain: Option<usize>,
    inspection: Inspection,
}

/// Chains by the networks of destinations.
#[derive(Debug, Default)]
struct Destinations {
    /// The longest prefixes first.
    networks: Vec<(Network, Names)>,
    any: Option<Names>,
}

impl FilterChainMatcher {
    /// Numbers are those of [`Listener::all_chains`].
    pub(crate) fn new(listener: &Listener) -> Result<Self, Vec<Diagnostic>> {
        let mut matcher = Self {
            only: matches!(&listener.chains[..], [only] if only.accepts.is_any()),
            default_chain: listener.default_chain.as_ref().map(|_| listener.chains.len()),
            inspection: listener.inspection.clone(),
            ..Self::default()
        };
        let mut problems = Vec::new();
        if listener.chains.is_empty() && listener.default_chain.is_none() {
            problems.push(Diagnostic::new(
                &listener.place,
                Problem::new("the listener has no filter chain", "give it one"),
            ));
        }
        for (index, chain) in listener.chains.iter().enumerate() {
            if let Err(before) = matcher.insert(chain, index) {
                let other = &listener.chains[before].place;
                let message = Problem::new(
                    format!("the chain at {other} accepts the same connections"),
                    "let them differ in destinations, server names, transport, application protocols or clients",
                );
                problems.push(Diagnostic::new(&chain.place, message));
            }
        }
        if problems.is_empty() { Ok(matcher) } else { Err(problems) }
    }

    /// The only chain, where there is no choice.
    pub(crate) fn only_chain(&self) -> Option<usize> {
        self.only.then_some(0)
    }

    /// What has to be known of a connection with this destination.
    pub(crate) fn look(&self, local: SocketAddr) -> Look {
        let wanted = self.at(local).map(Names::look).unwrap_or_default();
        Look {
            tls: wanted.tls && self.inspection.tls.contains(local.port()),
            http: wanted.http && self.inspection.http.contains(local.port()),
        }
    }

    /// The chain for such a connection.
    pub(crate) fn find_chain(&self, hello: &ClientHelloInfo, addresses: &Addresses) -> Option<usize> {
        let name = hello.server_name.as_deref().unwrap_or_default();
        self.find(hello.tls, name, &hello.protocols, addresses)
    }

    /// The chain for connections with this server name, in lower case, and these application protocols.
    pub(crate) fn find(
        &self,
        tls: bool,
        name: &str,
        offered: &[String],
        addresses: &Addresses,
    ) -> Option<usize> {
        let chain = self.at(addresses.local).and_then(|names| names.find(tls, name, offered, addresses));
        chain.or(self.default_chain)
    }

    /// Those for a destination. A port of which there is any chain has no others.
    fn at(&self, local: SocketAddr) -> Option<&Names> {
        self.ports.get(&local.port()).unwrap_or(&self.any_port).at(local.ip())
    }

    /// On failure, which chain has the place already.
    fn insert(&mut self, chain: &Chain, index: usize) -> Result<(), usize> {
        let destinations = match chain.accepts.destination_port {
            Some(port) => self.ports.entry(port).or_default(),
            None => &mut self.any_port,
        };
        destinations.insert(chain, index)
    }
}

impl Destinations {
    fn at(&self, address: IpAddr) -> Option<&Names> {
        let network = self.networks.iter().find(|(network, _)| network.contains(address));
        network.map(|(_, names)| names).or(self.any.as_ref())
    }

    fn insert(&mut self, chain: &Chain, index: usize) -> Result<(), usize> {
        if chain.accepts.destinations.is_empty() {
            return self.any.get_or_insert_default().insert(chain, index);
        }
        chain.accepts.destinations.iter().try_for_each(|network| self.of(*network).insert(chain, index))
    }

    fn of(&mut self, network: Network) -> &mut Names {
        let at = match self.networks.iter().position(|(known, _)| *known == network) {
            Some(known) => known,
            None => {
                let at = self.networks.partition_point(|(known, _)| known.prefix() >= network.prefix());
                self.networks.insert(at, (network, Names::default()));
                at
            }
        };
        &mut self.networks[at].1
    }
}
