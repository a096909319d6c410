//! Access control of a listener by client address.

use crate::{
    Field,
    file::{
        schema::{Key, Preset, Section},
        shown::list,
    },
    model::{AccessAction, AccessCondition, AccessPolicy, AccessRules, Network, Place},
};
use serde_json::Value;

pub(super) const CLIENTS: Section<Clients> = Section {
    path: "listeners[].clients",
    about: "Access control by client address. In `http` mode other clients receive a 403 response, and the client is \
            the one behind `trusted_proxies`; in `tcp` mode their connections are closed after the handshake.",
    keys: &[
        Key::new(
            "allow",
            "list of networks",
            Preset::Means("all clients"),
            "The only clients allowed, such as `10.0.0.0/8` or `2001:db8::1`.",
            |field, clients| clients.allow = networks(field),
            |clients| show_networks(&clients.allow),
        ),
        Key::new(
            "deny",
            "list of networks",
            Preset::Means("none"),
            "Clients denied, even if `allow` contains them.",
            |field, clients| clients.deny = networks(field),
            |clients| show_networks(&clients.deny),
        ),
    ],
};

/// The allowed and the denied networks; empty lists if not configured.
#[derive(Default)]
pub(super) struct Clients {
    allow: Vec<Network>,
    deny: Vec<Network>,
}

/// The name of the policies, by which [`Clients::of`] recognizes them.
const NAME: &str = "clients";

impl Clients {
    pub(super) fn into_rules(self, place: &Place) -> Vec<AccessRules> {
        let rules = |action, networks: Vec<Network>| {
            let principals: Vec<_> = networks.into_iter().map(AccessCondition::Client).collect();
            let policy = AccessPolicy {
                name: NAME.to_owned(),
                permissions: vec![AccessCondition::Always],
                principals,
            };
            AccessRules { action, policies: vec![policy], place: place.clone() }
        };
        [(AccessAction::Deny, self.deny), (AccessAction::Allow, self.allow)]
            .into_iter()
            .filter(|(_, networks)| !networks.is_empty())
            .map(|(action, networks)| rules(action, networks))
            .collect()
    }

    /// Returns whether no network is listed.
    fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Restores the networks from rules made by [`into_rules`](Self::into_rules); other rules are ignored.
    fn of(rules: &[&AccessRules]) -> Self {
        let mut clients = Self::default();
        for AccessRules { action, policies, place: _ } in rules {
            let ours = policies.iter().filter(|policy| policy.name == NAME);
            let networks =
                ours.flat_map(|policy| &policy.principals).filter_map(|principal| match principal {
                    AccessCondition::Client(network) => Some(*network),
                    _ => None,
                });
            match action {
                AccessAction::Allow => clients.allow.extend(networks),
                AccessAction::Deny => clients.deny.extend(networks),
            }
        }
        clients
    }
}

pub(super) fn show(rules: &[&AccessRules]) -> Value {
    let clients = Clients::of(rules);
    if clients.is_empty() { Value::Null } else { CLIENTS.show(&clients) }
}

/// Returns whether rules of a route concern client addresses.
pub(super) fn restricts_clients(rules: &[AccessRules]) -> bool {
    rules.iter().flat_map(|rules| &rules.policies).any(|policy| policy.name == NAME)
}

/// Reads the clients of a route.
pub(super) fn clients(field: &Field<'_>) -> Vec<AccessRules> {
    let mut clients = Clients::default();
    CLIENTS.read(field, &mut clients);
    clients.into_rules(&field.place())
}

fn networks(field: &Field<'_>) -> Vec<Network> {
    field.items().iter().filter_map(|field| field.parse(str::parse)).collect()
}

fn show_networks(networks: &[Network]) -> Value {
    match networks {
        [] => Value::Null,
        networks => list(networks.iter().map(|network| network.to_string().into())),
    }
}
