//! Filter chain matching, as in Envoy: by destination, the client's first bytes, and the client's address.

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

/// Filter chains of a listener by their matching criteria.
#[derive(Debug, Default)]
pub(crate) struct FilterChainMatcher {
    /// Whether there is a single chain without criteria, so that no inspection is needed.
    only: bool,
    ports: HashMap<u16, Destinations>,
    any_port: Destinations,
    default_chain: Option<usize>,
    inspection: Inspection,
}

/// Filter chains by destination network.
#[derive(Debug, Default)]
struct Destinations {
    /// Networks, longest prefix first.
    networks: Vec<(Network, Names)>,
    any: Option<Names>,
}

impl FilterChainMatcher {
    /// Builds the matcher. Indices are those of [`Listener::all_chains`].
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
                Problem::new("the listener has no filter chain", "add a filter chain"),
            ));
        }
        for (index, chain) in listener.chains.iter().enumerate() {
            if let Err(before) = matcher.insert(chain, index) {
                let other = &listener.chains[before].place;
                let message = Problem::new(
                    format!("the chain at {other} accepts the same connections"),
                    "make them differ in destination, server name, transport, application protocol or client",
                );
                problems.push(Diagnostic::new(&chain.place, message));
            }
        }
        if problems.is_empty() { Ok(matcher) } else { Err(problems) }
    }

    /// Returns the only chain, if there is no choice.
    pub(crate) fn only_chain(&self) -> Option<usize> {
        self.only.then_some(0)
    }

    /// Returns the inspection that a connection with this destination requires.
    pub(crate) fn look(&self, local: SocketAddr) -> Look {
        let wanted = self.at(local).map(Names::look).unwrap_or_default();
        Look {
            tls: wanted.tls && self.inspection.tls.contains(local.port()),
            http: wanted.http && self.inspection.http.contains(local.port()),
        }
    }

    /// Returns the chain for a connection.
    pub(crate) fn find_chain(&self, hello: &ClientHelloInfo, addresses: &Addresses) -> Option<usize> {
        let name = hello.server_name.as_deref().unwrap_or_default();
        self.find(hello.tls, name, &hello.protocols, addresses)
    }

    /// Returns the chain for connections with this server name, in lower case, and these application protocols.
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

    /// Returns the chains for a destination. If any chain names the port, only those that name it match.
    fn at(&self, local: SocketAddr) -> Option<&Names> {
        self.ports.get(&local.port()).unwrap_or(&self.any_port).at(local.ip())
    }

    /// Adds a chain. On failure, returns the chain with the same criteria.
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
