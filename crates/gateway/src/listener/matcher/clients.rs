//! Filter chains by client address, the last matching criterion.

use super::addresses::Addresses;
use quadrille_config::model::{ChainMatch, ClientOrigin, Network};
use std::net::{IpAddr, SocketAddr};

/// Filter chains that differ in client addresses only. They are few, and searched linearly.
#[derive(Debug, Default)]
pub(super) struct Clients(Vec<Member>);

#[derive(Debug)]
struct Member {
    chain: usize,
    peers: Vec<Network>,
    origin: Option<ClientOrigin>,
    clients: Vec<Network>,
    ports: Vec<u16>,
}

impl Clients {
    /// Adds a chain. On failure, returns the chain with the same criteria.
    pub(super) fn insert(&mut self, accepts: &ChainMatch, chain: usize) -> Result<(), usize> {
        let member = Member {
            chain,
            peers: accepts.peers.clone(),
            origin: accepts.origin,
            clients: accepts.clients.clone(),
            ports: accepts.client_ports.clone(),
        };
        match self.0.iter().find(|other| other.chain == chain || other.accepts_some_of(&member)) {
            Some(other) if other.chain != chain => Err(other.chain),
            Some(_) => Ok(()),
            None => {
                self.0.push(member);
                Ok(())
            }
        }
    }

    pub(super) fn find(&self, addresses: &Addresses) -> Option<usize> {
        if let [Member { chain, peers, origin: None, clients, ports }] = &self.0[..]
            && peers.is_empty()
            && clients.is_empty()
            && ports.is_empty()
        {
            return Some(*chain);
        }
        let Addresses { peer, client, local } = *addresses;
        let left = self.0.iter().collect();
        let left = closest(left, |member| within(&member.peers, peer.ip()));
        let left = closest(left, |member| match member.origin {
            None => Some(0),
            Some(origin) => (origin == origin_of(client, local)).then_some(1),
        });
        let left = closest(left, |member| within(&member.clients, client.ip()));
        let left = closest(left, |member| match &member.ports[..] {
            [] => Some(0),
            ports => ports.contains(&client.port()).then_some(1),
        });
        left.first().map(|member| member.chain)
    }
}

impl Member {
    /// Returns whether a connection may match both, neither of which is more specific.
    fn accepts_some_of(&self, other: &Self) -> bool {
        fn share<T: PartialEq>(one: &[T], other: &[T]) -> bool {
            one.is_empty() && other.is_empty() || one.iter().any(|value| other.contains(value))
        }
        share(&self.peers, &other.peers)
            && self.origin == other.origin
            && share(&self.clients, &other.clients)
            && share(&self.ports, &other.ports)
    }
}

/// Returns the members with the closest fit; `None` means that a member does not match.
fn closest(members: Vec<&Member>, fit: impl Fn(&Member) -> Option<u32>) -> Vec<&Member> {
    let Some(best) = members.iter().filter_map(|member| fit(member)).max() else { return Vec::new() };
    members.into_iter().filter(|member| fit(member) == Some(best)).collect()
}

/// Returns the longest matching prefix plus one; zero if there are no networks to match.
fn within(networks: &[Network], address: IpAddr) -> Option<u32> {
    if networks.is_empty() {
        return Some(0);
    }
    let fitting = networks.iter().filter(|network| network.contains(address));
    fitting.map(|network| network.prefix() + 1).max()
}

fn origin_of(client: SocketAddr, local: SocketAddr) -> ClientOrigin {
    let (client, local) = (client.ip().to_canonical(), local.ip().to_canonical());
    if client.is_loopback() || client == local { ClientOrigin::ThisMachine } else { ClientOrigin::Elsewhere }
}
