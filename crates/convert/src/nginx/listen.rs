//! Addresses and names of servers.

use super::{statement::Statement, world::World};
use crate::expression;
use std::net::{IpAddr, Ipv4Addr};

/// A `listen` directive.
#[derive(Clone, Debug)]
pub(super) struct Listen {
    /// The address; `None` for all addresses of the machine.
    pub(super) ip: Option<IpAddr>,
    pub(super) port: u16,
    /// Whether IPv6 clients are accepted, where all addresses are meant.
    pub(super) ipv6: bool,
    pub(super) tls: bool,
    pub(super) quic: bool,
    pub(super) is_default: bool,
    pub(super) proxy_protocol: bool,
}

/// Reads the addresses of a server; port 80 without any. Addresses that cannot be used are refused.
pub(super) fn listens(block: &[Statement], world: &World<'_>) -> Vec<Listen> {
    let all: Vec<_> = block.iter().filter(|one| one.name == "listen").collect();
    let tls = block.iter().any(|one| one.name == "ssl" && one.is_on());
    if all.is_empty() {
        return vec![Listen {
            ip: None,
            port: 80,
            ipv6: false,
            tls,
            quic: false,
            is_default: false,
            proxy_protocol: false,
        }];
    }
    let mut found = Vec::new();
    for one in all {
        match address(one.arg(0)) {
            Some((ip, port, ipv6)) if !one.has("udp") => {
                world.ledger.converted(one.id);
                found.push(Listen {
                    ip,
                    port,
                    ipv6,
                    tls: tls || one.has("ssl") || one.has("quic"),
                    quic: one.has("quic"),
                    is_default: one.has("default_server") || one.has("default"),
                    proxy_protocol: one.has("proxy_protocol"),
                });
            }
            _ => world
                .ledger
                .refused(one.id, "listen on an IP address and a TCP port: `address: 0.0.0.0:8443`"),
        }
    }
    found
}

fn address(text: &str) -> Option<(Option<IpAddr>, u16, bool)> {
    if let Ok(port) = text.parse::<u16>() {
        return Some((None, port, false));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') && !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (text, 80),
    };
    match host {
        "*" => Some((None, port, false)),
        "localhost" => Some((Some(Ipv4Addr::LOCALHOST.into()), port, false)),
        _ => {
            let ip: IpAddr = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
            Some(((!ip.is_unspecified()).then_some(ip), port, ip.is_ipv6()))
        }
    }
}

/// Names of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Hosts of routes: names, and wildcards for one label.
    pub(super) hosts: Vec<String>,
    /// Expressions for the header `Host` of names that are not hosts of routes.
    pub(super) others: Vec<String>,
}

/// Reads the names of a server.
pub(super) fn names(block: &[Statement], world: &World<'_>) -> Names {
    let mut names = Names::default();
    for one in block.iter().filter(|one| one.name == "server_name") {
        world.ledger.converted(one.id);
        for name in &one.args {
            match name.strip_prefix('.') {
                Some(domain) => {
                    add(&mut names, domain, one, world);
                    add(&mut names, &format!("*.{domain}"), one, world);
                }
                None => add(&mut names, name, one, world),
            }
        }
    }
    names
}

fn add(names: &mut Names, name: &str, one: &Statement, world: &World<'_>) {
    // These names match no request; they stand for the default server.
    if matches!(name, "" | "_" | "__" | "-" | "$hostname") || name.starts_with("!@") {
        return;
    }
    if let Ok(Some(host)) = quadrille_config::values::route_host(name) {
        if let Some(domain) = host.strip_prefix("*.") {
            world.ledger.differs(one.id, "`*` stands for one label; hosts with more labels receive 503");
            names.others.push(format!(r"[^.]+\.[^:]+\.{}", expression::literal(domain)));
        }
        if !names.hosts.contains(&host) {
            names.hosts.push(host);
        }
        return;
    }
    world.ledger.refused(one.id, format!("list the hosts that `{name}` means; they receive 503 meanwhile"));
    let expression = match name.strip_prefix('~') {
        Some(expression) => expression::whole(expression, true).ok(),
        None => name.strip_suffix(".*").map(|name| format!(r"{}\.[^:]+", expression::literal(name))),
    };
    names.others.extend(expression);
}

/// Returns an expression for the header `Host` that matches these hosts.
pub(super) fn hosts_expression(hosts: &[String]) -> String {
    let one = |host: &String| match host.strip_prefix("*.") {
        Some(domain) => format!(r"[^.:]+\.{}", expression::literal(domain)),
        None => expression::literal(host),
    };
    let all: Vec<_> = hosts.iter().map(one).collect();
    format!("(?i)(?:{})(?::[0-9]+)?", all.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("80", Some((None, 80, false))),
            ("*:8080", Some((None, 8080, false))),
            ("[::]:443", Some((None, 443, true))),
            ("127.0.0.1", Some((Some([127, 0, 0, 1].into()), 80, false))),
            ("127.0.0.1:81", Some((Some([127, 0, 0, 1].into()), 81, false))),
            ("unix:/run/a", None),
            ("a.example:80", None),
        ] {
            assert_eq!(address(text), expected, "{text}");
        }
    }
}
