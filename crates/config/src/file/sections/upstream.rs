//! Upstreams: named groups of servers.

use super::{
    health::{self, HEALTH},
    outlier_detection::{self, OUTLIER_DETECTION},
    resolver,
    upstream_limits::UPSTREAM_LIMITS,
    upstream_tls::{self, UPSTREAM_TLS},
};
use crate::{
    Field, Problem,
    enums::{name, word},
    file::{
        schema::{Key, Preset, Section},
        shown::{or_off, time},
    },
    model::{Balance, Server, Upstream, UpstreamLimits, UpstreamTimeouts},
    quote, srv_name,
    values::{count, count_or_zero, server_address, timeout},
};
use std::{collections::HashMap, num::NonZeroUsize};

pub(super) const UPSTREAM: Section<Upstream> = Section {
    path: "upstreams.<name>",
    about: "A named group of servers that routes point to.",
    keys: &[
        Key::new(
            "servers",
            "list of `host:port`, `srv:name` or mappings",
            Preset::Required,
            "The servers. A name is resolved at start, on reloads, and at the times that \
                    `dns_refresh` sets.",
            |field, upstream| upstream.servers = servers(field),
            |upstream| upstream.servers.iter().map(|server| SERVER.show(server)).collect(),
        ),
        Key::new(
            "dns_refresh",
            "`ttl`, duration, or `off`",
            Preset::Is("ttl"),
            "The time at which names of servers are resolved again: after the time to live of their records \
                    (at most 10 min) or at an interval, and not more often than every second; with `off`, on reloads \
                    only. If that fails, they keep their addresses; connections to a removed address are not used \
                    for new requests.",
            |field, upstream| field.set(&mut upstream.dns_refresh, resolver::refresh),
            |upstream| resolver::show_refresh(upstream.dns_refresh),
        ),
        Key::new(
            "dns_lookup_family",
            "`all`, `auto`, `v4_only`, `v6_only` or `v4_preferred`",
            Preset::Is("all"),
            "The addresses of names that are used, as in Envoy: `v4_only` and `v6_only` look up one family; \
                    `auto` uses IPv4 addresses only of names without IPv6 addresses, `v4_preferred` the reverse. With \
                    both families, a DNS server that drops the queries for one delays a lookup by 50 ms.",
            |field, upstream| field.set(&mut upstream.dns_lookup_family, word),
            |upstream| name(upstream.dns_lookup_family).into(),
        ),
        Key::new(
            "balance",
            "`round_robin`, `random`, `least_request`, `client_ip` or `hash`",
            Preset::Is("round_robin"),
            "Load-balancing policy; all respect weights. `client_ip` keeps a client on one server by \
                    consistent hashing, and distributes load less evenly; `hash` does so by the properties that \
                    the route's `sticky` names.",
            |field, upstream| field.set(&mut upstream.balance, word),
            |upstream| name(upstream.balance).into(),
        ),
        Key::new(
            "health",
            "mapping, `on` or `off`",
            Preset::Is("off"),
            "Active health checks. With `off`, every server is assumed to be healthy, and a failed server \
                    costs a failed attempt for each request that is sent to it.",
            |field, upstream| upstream.health = health::health(field),
            |upstream| or_off(upstream.health.as_ref(), |health| HEALTH.show(health)),
        ),
        Key::new(
            "outlier_detection",
            "mapping, `on` or `off`",
            Preset::Is("off"),
            "Ejects servers that fail, detected from their responses to requests.",
            |field, upstream| upstream.outlier_detection = outlier_detection::outlier_detection(field),
            |upstream| {
                or_off(upstream.outlier_detection.as_ref(), |outliers| OUTLIER_DETECTION.show(outliers))
            },
        ),
        Key::new(
            "slow_start",
            "duration",
            Preset::Means("none"),
            "Time over which the share of a server grows to its weight, from a tenth of it, after it was added, became \
                    healthy again or returned from an ejection. It protects servers with cold caches. Not with \
                    `client_ip` and `hash`.",
            |field, upstream| upstream.slow_start = field.parse(timeout),
            |upstream| upstream.slow_start.map(time).into(),
        ),
        Key::new(
            "limits",
            "mapping",
            Preset::Means("none"),
            "Maximum number of concurrent requests and connections.",
            |field, upstream| _ = UPSTREAM_LIMITS.read(field, &mut upstream.limits),
            |upstream| {
                (upstream.limits != UpstreamLimits::default())
                    .then(|| UPSTREAM_LIMITS.show(&upstream.limits))
                    .into()
            },
        ),
        Key::new(
            "tls",
            "mapping, `on` or `off`",
            Preset::Is("off"),
            "TLS to the servers. Costs a handshake for each new connection; the pool reduces their \
                    number.",
            |field, upstream| upstream.tls = upstream_tls::tls(field),
            |upstream| or_off(upstream.tls.as_ref(), |tls| UPSTREAM_TLS.show(tls)),
        ),
        Key::new(
            "protocol",
            "`auto`, `http1`, `http2` or `of_request`",
            Preset::Is("auto"),
            "The HTTP version used with the servers. `auto` uses what ALPN selects, and HTTP/1.1 in plain \
                    text; `http2` in plain text needs servers that accept it with prior knowledge; `of_request` is \
                    `http1` for requests received over HTTP/1.1, and `http2` for others. Not in `tcp` mode.",
            |field, upstream| field.set(&mut upstream.protocol, word),
            |upstream| name(upstream.protocol).into(),
        ),
        Key::new(
            "proxy_protocol",
            "`off`, `v1` or `v2`",
            Preset::Is("off"),
            "Announce the client's address to the server. Such connections belong to one client, so the pool \
                    cannot share them between clients.",
            |field, upstream| field.set(&mut upstream.proxy_protocol, word),
            |upstream| name(upstream.proxy_protocol).into(),
        ),
        Key::new(
            "retries",
            "count, or `0`",
            Preset::Is("1"),
            "Maximum number of times that a request is sent again, on another connection or to another server, \
                    if no connection could be opened, if the server refused it by HTTP/2, or, for idempotent methods, \
                    if a connection from the pool was closed. Retries add load while servers fail.",
            |field, upstream| field.set(&mut upstream.retries, count_or_zero),
            |upstream| upstream.retries.into(),
        ),
        Key::new(
            "pool",
            "count",
            Preset::Is("128"),
            "Maximum number of HTTP/1.1 connections to each server, for each event-loop thread, that stay open between requests. While all of them are in use, a request waits up to 3 ms for one of them, and then opens another. \
                    Each costs memory and a file descriptor here and on the server.",
            |field, upstream| field.set(&mut upstream.pool, count),
            |upstream| upstream.pool.get().into(),
        ),
        Key::new(
            "timeouts",
            "mapping",
            Preset::Means("its defaults"),
            "Timeouts of slow servers.",
            |field, upstream| _ = UPSTREAM_TIMEOUTS.read(field, &mut upstream.timeouts),
            |upstream| UPSTREAM_TIMEOUTS.show(&upstream.timeouts),
        ),
    ],
};

pub(super) const SERVER: Section<Server> = Section {
    path: "upstreams.<name>.servers[]",
    about: "One server. `host:port`, `unix:/path` or `srv:name` alone is short for a mapping with that `address`.",
    keys: &[
        Key::new(
            "address",
            "`host:port`, `unix:/path` or `srv:name`",
            Preset::Required,
            "A name or an IP address; IPv6 in brackets and quotes, `\"[::1]:8080\"`. A name with several \
                    addresses counts as several servers. `unix:/run/app.sock` is a Unix socket, and `unix:@name` an \
                    abstract one; for TLS, the name of a server on a Unix socket is `localhost` unless \
                    `server_name` is set. `srv:_http._tcp.example.com` stands for the servers that these SRV records \
                    (RFC 2782) name, with their ports, priorities and weights; with `tls`, it needs \
                    `tls.server_name`, because the names in the records are not authenticated.",
            |field, server| field.set(&mut server.address, server_address),
            |server| server.address.as_str().into(),
        ),
        Key::new(
            "weight",
            "count",
            Preset::Is("1"),
            "The share of the requests, relative to the other servers.",
            |field, server| field.set(&mut server.weight, count),
            |server| server.weight.get().into(),
        ),
        Key::new(
            "priority",
            "0 to 127",
            Preset::Is("0"),
            "Servers with a higher number are backups: they receive requests while no server with a lower number is \
                    healthy, and retries of requests that have tried all of those. `health` or `outlier_detection` \
                    detects failures.",
            |field, server| field.set(&mut server.priority, priority),
            |server| server.priority.into(),
        ),
        Key::new(
            "max_connections",
            "count",
            Preset::Means("no limit"),
            "Maximum number of active requests at this server, or of connections in `tcp` mode, from all event loops. \
                    While all servers of the lowest priority in use have reached theirs, requests wait in order of \
                    arrival, as `limits.pending` and `limits.pending_timeout` allow; connections in `tcp` mode do not \
                    wait. For a name, it applies to each address.",
            |field, server| server.max_connections = field.parse(count),
            |server| server.max_connections.map(NonZeroUsize::get).into(),
        ),
    ],
};

pub(super) const UPSTREAM_TIMEOUTS: Section<UpstreamTimeouts> = Section {
    path: "upstreams.<name>.timeouts",
    about: "Timeouts of slow servers. Longer times let more requests accumulate at a server that hangs.",
    keys: &[
        Key::new(
            "connect",
            "duration",
            Preset::Is("5s"),
            "Time limit of the TCP and the TLS handshake together.",
            |field, timeouts| field.set(&mut timeouts.connect, timeout),
            |timeouts| time(timeouts.connect),
        ),
        Key::new(
            "read",
            "duration",
            Preset::Is("60s"),
            "Time limit without a byte from the server while a response is due.",
            |field, timeouts| field.set(&mut timeouts.read, timeout),
            |timeouts| time(timeouts.read),
        ),
        Key::new(
            "write",
            "duration",
            Preset::Is("60s"),
            "Time limit while the server accepts no byte of the request.",
            |field, timeouts| field.set(&mut timeouts.write, timeout),
            |timeouts| time(timeouts.write),
        ),
        Key::new(
            "idle",
            "duration",
            Preset::Is("60s"),
            "Time that an idle connection stays in the pool. Set it below the server's own idle timeout, \
                    or requests are sent on connections that the server is closing.",
            |field, timeouts| field.set(&mut timeouts.idle, timeout),
            |timeouts| time(timeouts.idle),
        ),
    ],
};

/// Reads an upstream.
pub(super) fn upstream(field: &Field<'_>) -> Option<Upstream> {
    let mut upstream = Upstream::new(Vec::new(), field.place());
    UPSTREAM.read(field, &mut upstream)?;
    health::refuse_grpc_over_http1(field, &upstream);
    health::refuse_name_without_tls(field, &upstream);
    refuse_slow_hashing(field, &upstream);
    refuse_unauthenticated_names(field, &upstream);
    Some(upstream)
}

/// Refuses TLS to the servers of SRV records under the names in these records, which DNS does not protect (RFC 6125
/// section 6.2.1).
fn refuse_unauthenticated_names(field: &Field<'_>, upstream: &Upstream) {
    let is_verified = upstream.tls.as_ref().is_some_and(|tls| tls.verify && tls.server_name.is_none());
    if is_verified && upstream.servers.iter().any(|server| srv_name::of_address(&server.address).is_some()) {
        field.at("tls").error(Problem::new(
            "a certificate for any name in the SRV records would be accepted, and DNS does not protect them",
            "add `server_name`, the name in the servers' certificates",
        ));
    }
}

/// Refuses a slow start with policies that hash: clients would change their server while its share grows.
fn refuse_slow_hashing(field: &Field<'_>, upstream: &Upstream) {
    if let (Some(slow), Balance::Hash | Balance::ClientIp) = (field.entry("slow_start"), upstream.balance) {
        slow.error(Problem::new(
            format!(
                "`balance: {}` keeps clients on their servers, whose shares cannot grow",
                name(upstream.balance)
            ),
            "remove this, or use `round_robin`, `random` or `least_request`",
        ));
    }
}

fn servers(field: &Field<'_>) -> Vec<Server> {
    let mut seen = HashMap::new();
    let mut servers = Vec::new();
    for item in field.items() {
        let Some(server) = server(&item) else { continue };
        if let Some(before) = seen.insert(server.address.clone(), item.place()) {
            item.error(Problem::new(
                format!("already listed on {}", item.line_of(&before)),
                "to give it a larger share, set its `weight`",
            ));
        }
        servers.push(server);
    }
    servers
}

fn priority(text: &str) -> Result<u32, Problem> {
    const MOST: u32 = 127;
    let number = text.parse().ok().filter(|number| *number <= MOST);
    number.ok_or_else(|| {
        Problem::new(
            format!("{} is not a priority", quote(text)),
            "write `0`, or a number up to `127` for backups",
        )
    })
}

fn server(field: &Field<'_>) -> Option<Server> {
    if field.is_scalar() {
        return Some(Server::new(field.parse(server_address)?, field.place()));
    }
    let mut server = Server::new(String::new(), field.at("address").place());
    SERVER.read(field, &mut server)?;
    if srv_name::of_address(&server.address).is_some() {
        let others = [("weight", server.weight.get() != 1), ("priority", server.priority != 0)];
        for (key, _) in others.iter().filter(|(_, differs)| *differs) {
            field
                .at(key)
                .error(Problem::new("the SRV records give the priorities and weights", "remove this"));
        }
    }
    (!server.address.is_empty()).then_some(server)
}
