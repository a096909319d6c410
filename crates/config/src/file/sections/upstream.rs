//! A named group of servers.

use super::{health, upstream_tls};
use crate::{
    Field,
    file::schema::{Key, Preset, Section},
    model::{Server, Upstream, UpstreamTimeouts},
    values::{count, count_or_zero, server_address, timeout},
    words::word,
};
use std::collections::HashMap;

pub(super) const UPSTREAM: Section = Section {
    path: "upstreams.<name>",
    about: "A named group of servers that routes point to.",
    keys: &[
        Key {
            name: "servers",
            value: "list of `host:port` or mappings",
            preset: Preset::Required,
            about: "The servers. Names are resolved at start and on every reload.",
        },
        Key {
            name: "balance",
            value: "`round_robin`, `random`, `least_request` or `client_ip`",
            preset: Preset::Is("round_robin"),
            about: "How a server is chosen, by weight. `client_ip` keeps a client with its server by consistent hashing, \
                    and spreads the load less evenly.",
        },
        Key {
            name: "health",
            value: "mapping, `on` or `off`",
            preset: Preset::Is("off"),
            about: "Active health checks. `off` trusts every server, and a dead one costs a failed attempt for each \
                    request that is sent to it.",
        },
        Key {
            name: "tls",
            value: "mapping, `on` or `off`",
            preset: Preset::Is("off"),
            about: "TLS towards the servers. Costs a handshake for each new connection; the pool makes them few.",
        },
        Key {
            name: "protocol",
            value: "`auto`, `http1` or `http2`",
            preset: Preset::Is("auto"),
            about: "The HTTP version towards the servers. `auto` takes what ALPN offers, and HTTP/1.1 in plain text; \
                    `http2` in plain text needs servers that speak it with prior knowledge. Without meaning in `tcp` mode.",
        },
        Key {
            name: "proxy_protocol",
            value: "`off`, `v1` or `v2`",
            preset: Preset::Is("off"),
            about: "Announce the client's address to the server. Such connections belong to one client, so the pool \
                    cannot share them between clients.",
        },
        Key {
            name: "retries",
            value: "count, or `0`",
            preset: Preset::Is("1"),
            about: "How often an idempotent request is tried again on another connection or server. Each adds load just \
                    when servers fail.",
        },
        Key {
            name: "pool",
            value: "count",
            preset: Preset::Is("128"),
            about: "Idle connections kept, for each event-loop thread. Each costs memory and a file descriptor here and \
                    on the server.",
        },
        Key {
            name: "timeouts",
            value: "mapping",
            preset: Preset::Means("its defaults"),
            about: "When a slow server is given up.",
        },
    ],
};

pub(super) const SERVER: Section = Section {
    path: "upstreams.<name>.servers[]",
    about: "One server. `host:port` alone is short for a mapping with that `address`.",
    keys: &[
        Key {
            name: "address",
            value: "`host:port`",
            preset: Preset::Required,
            about: "A name or an IP address; IPv6 in brackets and quotes, `\"[::1]:8080\"`. A name with several \
                    addresses counts as so many servers.",
        },
        Key {
            name: "weight",
            value: "count",
            preset: Preset::Is("1"),
            about: "The share of the requests, relative to the other servers.",
        },
    ],
};

pub(super) const UPSTREAM_TIMEOUTS: Section = Section {
    path: "upstreams.<name>.timeouts",
    about: "When a slow server is given up. Longer times let more requests pile up behind a server that hangs.",
    keys: &[
        Key {
            name: "connect",
            value: "duration",
            preset: Preset::Is("5s"),
            about: "For the TCP and the TLS handshake together.",
        },
        Key {
            name: "read",
            value: "duration",
            preset: Preset::Is("60s"),
            about: "Without a byte from the server while an answer is due.",
        },
        Key {
            name: "write",
            value: "duration",
            preset: Preset::Is("60s"),
            about: "Without the server taking a byte of the request.",
        },
        Key {
            name: "idle",
            value: "duration",
            preset: Preset::Is("60s"),
            about: "How long an idle connection is kept in the pool. Keep it below the server's own idle timeout, or \
                    requests meet connections that are being closed.",
        },
    ],
};

/// A group of servers.
pub(super) fn upstream(field: &Field<'_>) -> Option<Upstream> {
    let keys = field.mapping(&UPSTREAM)?;
    let servers = keys.require("servers").map(|field| servers(&field)).unwrap_or_default();
    let mut upstream = Upstream::new(servers, field.place());
    keys.update("balance", &mut upstream.balance, word);
    upstream.health = keys.get("health").and_then(|field| health::health(&field));
    upstream.tls = keys.get("tls").and_then(|field| upstream_tls::tls(&field));
    keys.update("protocol", &mut upstream.protocol, word);
    keys.update("proxy_protocol", &mut upstream.proxy_protocol, word);
    keys.update("retries", &mut upstream.retries, count_or_zero);
    keys.update("pool", &mut upstream.pool, count);
    if let Some(field) = keys.get("timeouts") {
        upstream.timeouts = timeouts(&field);
    }
    Some(upstream)
}

fn servers(field: &Field<'_>) -> Vec<Server> {
    let mut seen = HashMap::new();
    let mut servers = Vec::new();
    for item in field.items() {
        let Some(server) = server(&item) else { continue };
        if let Some(line) = seen.insert(server.address.clone(), item.line()) {
            item.error(format!(
                "the server of line {line} again; to give it a larger share, set its `weight`"
            ));
        }
        servers.push(server);
    }
    servers
}

fn server(field: &Field<'_>) -> Option<Server> {
    if field.is_scalar() {
        return Some(Server::new(field.parse(server_address)?, field.place()));
    }
    let keys = field.mapping(&SERVER)?;
    let address = keys.require("address");
    let weight = keys.read("weight", count);
    let mut server = Server::new(address.as_ref()?.parse(server_address)?, address?.place());
    server.weight = weight.unwrap_or(server.weight);
    Some(server)
}

fn timeouts(field: &Field<'_>) -> UpstreamTimeouts {
    let mut timeouts = UpstreamTimeouts::default();
    if let Some(keys) = field.mapping(&UPSTREAM_TIMEOUTS) {
        keys.update("connect", &mut timeouts.connect, timeout);
        keys.update("read", &mut timeouts.read, timeout);
        keys.update("write", &mut timeouts.write, timeout);
        keys.update("idle", &mut timeouts.idle, timeout);
    }
    timeouts
}
