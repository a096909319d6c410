//! Filter chains by the client's first bytes: server name, transport (TLS or plain), and application protocols.

use super::{addresses::Addresses, clients::Clients, look::Look};
use crate::host_map::HostMap;
use quadrille_config::model::{Chain, Transport};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct Names {
    names: HostMap<Transports>,
    any: Transports,
    look: Look,
}

#[derive(Debug, Default)]
struct Transports {
    tls: Option<Protocols>,
    plain: Option<Protocols>,
    any: Option<Protocols>,
}

#[derive(Debug, Default)]
struct Protocols {
    named: HashMap<String, Clients>,
    any: Option<Clients>,
}

impl Names {
    /// Returns the inspection that distinguishing these chains requires.
    pub(super) fn look(&self) -> Look {
        self.look
    }

    pub(super) fn find(
        &self,
        tls: bool,
        name: &str,
        offered: &[String],
        addresses: &Addresses,
    ) -> Option<usize> {
        let transports =
            self.names.exact(name).or_else(|| self.names.longest_wildcard(name)).unwrap_or(&self.any);
        let own = if tls { &transports.tls } else { &transports.plain };
        let protocols = own.as_ref().or(transports.any.as_ref())?;
        let named = offered.iter().find_map(|name| protocols.named.get(name));
        named.or(protocols.any.as_ref())?.find(addresses)
    }

    /// Adds a chain. On failure, returns the chain with the same criteria.
    pub(super) fn insert(&mut self, chain: &Chain, index: usize) -> Result<(), usize> {
        let accepts = &chain.accepts;
        let protocols = &accepts.application_protocols;
        self.look.tls |=
            !accepts.server_names.is_empty() || accepts.transport.is_some() || !protocols.is_empty();
        self.look.http |= accepts.transport != Some(Transport::Tls)
            && protocols.iter().any(|name| PLAIN_HTTP.contains(&name.as_str()));
        if accepts.server_names.is_empty() {
            return self.any.insert(chain, index);
        }
        accepts.server_names.iter().try_for_each(|name| {
            let name = name.to_ascii_lowercase();
            let transports = if name == "*" { &mut self.any } else { self.names.entry(&name) };
            transports.insert(chain, index)
        })
    }
}

/// ALPN names of HTTP without TLS.
const PLAIN_HTTP: [&str; 3] = ["http/1.0", "http/1.1", "h2c"];

impl Transports {
    fn insert(&mut self, chain: &Chain, index: usize) -> Result<(), usize> {
        let protocols = match chain.accepts.transport {
            Some(Transport::Tls) => &mut self.tls,
            Some(Transport::Plain) => &mut self.plain,
            None => &mut self.any,
        };
        let protocols = protocols.get_or_insert_default();
        if chain.accepts.application_protocols.is_empty() {
            return protocols.any.get_or_insert_default().insert(&chain.accepts, index);
        }
        chain.accepts.application_protocols.iter().try_for_each(|name| {
            protocols.named.entry(name.clone()).or_default().insert(&chain.accepts, index)
        })
    }
}
