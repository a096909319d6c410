//! Source ranges: `allowlist-source-range`, `denylist-source-range` and `satisfy`.

use super::{Annotations, text::list};
use quadrille_draft::{draft::Route, yaml::Map};
use std::net::IpAddr;

/// Restricts a route to the clients of both lists.
pub(crate) fn apply(annotations: &Annotations<'_, '_>, route: &mut Route) {
    let mut clients = Map::new();
    for (name, global, key) in [
        ("allowlist-source-range", "whitelist-source-range", "allow"),
        ("denylist-source-range", "denylist-source-range", "deny"),
    ] {
        let Some(text) = annotations.value(name).or_else(|| annotations.world.globals.get(global)) else {
            continue;
        };
        let networks: Vec<_> = list(text).collect();
        if let Some(bad) = networks.iter().find(|network| !is_network(network)) {
            annotations.refuse(
                name,
                format!(
                    "`{bad}` is not a network: write it as 10.0.0.0/8; its paths respond with 503 meanwhile"
                ),
            );
            route.close(503, &format!("{}: `{bad}` is not a network", annotations.shown(name)));
        } else if !networks.is_empty() {
            clients.set(key, networks);
        }
    }
    if !clients.is_empty() {
        route.keys.set("clients", clients);
    }
    match annotations.value("satisfy") {
        Some("any") => annotations.differ("satisfy", "all conditions must hold, not only one of them"),
        Some("all") => annotations.works("satisfy"),
        Some(_) => annotations.refuse("satisfy", "write \"any\" or \"all\"; all conditions must hold"),
        None => {}
    }
}

/// Returns whether a text is an address or a network.
pub(crate) fn is_network(text: &str) -> bool {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= most))
}
