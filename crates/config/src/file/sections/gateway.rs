//! The top level of the configuration file.

use super::{
    access_log, acme, acme_order,
    admin::{self, ADMIN},
    engine::ENGINE,
    listener,
    process_limits::PROCESS_LIMITS,
    resolver::{self, RESOLVER},
    resumption::{self, RESUMPTION},
    sampling::{self, SAMPLING},
    tracing::{self, TRACING},
    upstream::{self, UPSTREAM},
};
use crate::{
    Diagnostic, Field, Problem,
    enums::switch,
    file::{
        fields::unknown_upstream,
        schema::{Key, Preset, Section, not_shown},
        shown::{or_off, threads, time},
    },
    model::{Gateway, Listener, Place, Upstream},
    values,
};
use serde_json::Value;
use std::{collections::BTreeMap, net::SocketAddr};

pub(in crate::file) const GATEWAY: Section<Gateway> = Section {
    path: "",
    about: "The whole file is one mapping. Only `listeners` is required.",
    keys: &[
        Key::new(
            "include",
            "list of files",
            Preset::Means("none"),
            "Files that are added to this one, such as `[sites/*.yaml]`: relative to this file, and in alphabetical \
                    order where `*`, `?` or `[...]` in the last part of the path match several. Each may have all keys \
                    of the top level: the items of lists are appended, and the entries of mappings added. A setting \
                    that two files have is refused.",
            // Files are added before sections are read.
            |_, _| (),
            not_shown,
        ),
        Key::new(
            "listeners",
            "list of listeners",
            Preset::Required,
            "The sockets that accept TLS connections.",
            |field, gateway| gateway.listeners = listeners(field),
            |gateway| gateway.listeners.iter().flat_map(listener::show).collect(),
        ),
        Key::new(
            "upstreams",
            "mapping of names to upstreams",
            Preset::Means("none"),
            "Groups of servers that routes point to. A name has letters, digits, `_`, `-` and `.`.",
            |field, gateway| gateway.upstreams = upstreams(field),
            |gateway| show_upstreams(&gateway.upstreams),
        ),
        Key::new(
            "resolver",
            "mapping",
            Preset::Means("its defaults"),
            "The DNS servers that resolve the names of upstream servers.",
            |field, gateway| gateway.resolver = resolver::resolver(field),
            |gateway| RESOLVER.show(&gateway.resolver),
        ),
        Key::new(
            "limits",
            "mapping",
            Preset::Means("its defaults"),
            "Limits of the whole process.",
            |field, gateway| _ = PROCESS_LIMITS.read(field, &mut gateway.memory),
            |gateway| PROCESS_LIMITS.show(&gateway.memory),
        ),
        Key::at_restart(
            "engine",
            "mapping",
            Preset::Means("its defaults"),
            "Batching and computation of private-key operations.",
            |field, gateway| _ = ENGINE.read(field, &mut gateway.engine),
            |gateway| ENGINE.show(&gateway.engine),
        ),
        Key::new(
            "resumption",
            "mapping, or `off`",
            Preset::Means("its defaults"),
            "TLS session resumption, which saves returning clients a full handshake. `off` makes every \
                    handshake a full one, with a private-key operation for each.",
            |field, gateway| gateway.resumption = resumption::resumption(field),
            |gateway| RESUMPTION.show(&gateway.resumption),
        ),
        Key::new(
            "acme",
            "mapping",
            Preset::Means("none"),
            "The ACME account with a certificate authority, for certificates that are ordered and \
                    renewed.",
            |field, gateway| gateway.acme = acme::acme(field),
            |gateway| acme::show(gateway.acme.as_ref()),
        ),
        Key::new(
            "sampling",
            "mapping, `on` or `off`",
            Preset::Is("on"),
            "Selects the handshakes that are measured message by message.",
            |field, gateway| gateway.sampling = sampling::sampling(field),
            |gateway| or_off(gateway.sampling.as_ref(), |sampling| SAMPLING.show(sampling)),
        ),
        Key::at_restart(
            "admin",
            "mapping, an address, or `off`",
            Preset::Is("127.0.0.1:9901"),
            "The dashboard, and the metrics and health pages.",
            |field, gateway| gateway.admin = admin::admin(field),
            |gateway| or_off(gateway.admin.as_ref(), |admin| ADMIN.show(admin)),
        ),
        Key::at_restart(
            "threads",
            "count, or `auto`",
            Preset::Is("auto"),
            "Event-loop threads; `auto` is one for each CPU. More threads than CPUs cost context switches; \
                    each thread keeps its own pool of upstream connections.",
            |field, gateway| field.set(&mut gateway.threads, values::threads),
            |gateway| threads(gateway.threads),
        ),
        Key::new(
            "lame_duck",
            "duration",
            Preset::Is("5s"),
            "Time for which connections are still accepted after SIGTERM, while `/ready` of the admin address \
                    fails, so that load balancers can send clients elsewhere first. A longer time delays the stop; a \
                    time shorter than the load balancer's reaction time causes refused connections. SIGINT and a \
                    second signal do not wait.",
            |field, gateway| field.set(&mut gateway.lame_duck, values::duration),
            |gateway| time(gateway.lame_duck),
        ),
        Key::new(
            "drain_timeout",
            "duration",
            Preset::Is("30s"),
            "Time that a stopping gateway waits for open connections before it closes them. A single client \
                    that stays connected can delay the stop by this time.",
            |field, gateway| field.set(&mut gateway.drain_timeout, values::duration),
            |gateway| time(gateway.drain_timeout),
        ),
        Key::new(
            "access_log",
            "`off`, `stdout`, a path, or mapping",
            Preset::Is("off"),
            "Destination of the access log, with one line for each finished request, and the format of lines. Costs the \
                    formatting of that line.",
            access_log::access_log,
            access_log::show,
        ),
        Key::new(
            "access_log_fields",
            "list of fields",
            Preset::Means("`[default]`: all but `query` and `user_agent`"),
            "The fields of each line of the access log: `default`, `client`, `user` (of `basic_auth`), \
                    `method`, `host`, `path`, `query`, `user_agent`, `request_id`, `protocol`, `status`, `bytes`, \
                    `request_us`, `upstream`, `upstream_server`, `upstream_us` (until the header of its response), \
                    `error`, `tls_version`, `cipher`, `sni`, `resumed`, `handshake_us`, `key_wait_us`, `key_us`, \
                    `batch`; for TCP also `bytes_in` and `connection_us`. Queries may contain passwords and tokens. \
                    Fields without a value are left out.",
            |field, gateway| gateway.access_log_fields = access_log::fields(field, gateway),
            access_log::show_fields,
        ),
        Key::new(
            "request_ids",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether servers receive an `X-Request-Id` with every request: the one from a trusted proxy, or \
                    else a random UUID, which replaces the client's. The access log has it as `request_id`.",
            |field, gateway| field.set(&mut gateway.request_ids, switch),
            |gateway| gateway.request_ids.into(),
        ),
        Key::new(
            "tracing",
            "mapping, an endpoint, or `off`",
            Preset::Is("off"),
            "Tracing of requests, and the OpenTelemetry collector that receives the spans.",
            |field, gateway| gateway.tracing = tracing::tracing(field),
            |gateway| or_off(gateway.tracing.as_ref(), |tracing| TRACING.show(tracing)),
        ),
    ],
};

/// The message for an empty file.
pub(in crate::file) const EMPTY: [&str; 2] = ["the file is empty", "it needs at least `listeners`"];

/// Reads the whole document.
pub(in crate::file) fn gateway(root: &Field<'_>) -> Option<Gateway> {
    if root.is_null() {
        return root.fail(EMPTY);
    }
    let mut gateway = Gateway::default();
    GATEWAY.read(root, &mut gateway)?;
    acme_order::settle(root, &mut gateway);
    refuse_unknown_upstreams(root);
    refuse_the_admin_address(root, &gateway);
    Some(gateway)
}

/// Refuses references to upstreams that do not exist. An upstream with mistakes of its own exists.
fn refuse_unknown_upstreams(root: &Field<'_>) {
    let known = root.entry("upstreams").map(|field| field.keys()).unwrap_or_default();
    for (place, name) in root.references() {
        if !known.contains(&name.as_str()) {
            root.report(Diagnostic::new(&place, unknown_upstream(&name, &known)));
        }
    }
}

fn refuse_the_admin_address(root: &Field<'_>, gateway: &Gateway) {
    let Some(address) = gateway.admin.as_ref().and_then(|admin| admin.address) else { return };
    for listener in gateway.listeners.iter().filter(|listener| collide(address, listener.address)) {
        let problem = Problem::new(format!("`admin` already uses {address}"), "give each its own address");
        root.report(Diagnostic::new(&listener.place, problem));
    }
}

fn listeners(field: &Field<'_>) -> Vec<Listener> {
    let mut taken: Vec<(SocketAddr, Place)> = Vec::new();
    let mut listeners = Vec::new();
    for field in field.items() {
        let Some(listener) = listener::listener(&field) else { continue };
        let Some(listener) = beside_others(listener, &field, &mut listeners) else { continue };
        if let Some((other, place)) = taken.iter().find(|(other, _)| collide(*other, listener.address)) {
            let problem = Problem::new(
                format!("the listener on {} already uses {other}", field.line_of(place)),
                "give each its own address",
            );
            field.at("address").error(problem);
        }
        taken.push((listener.address, field.place()));
        listeners.push(listener);
    }
    listeners
}

/// Merges a listener into another with the same address, as one more chain, if one of them has a `match`. Returns the
/// listener if it was not merged.
fn beside_others(listener: Listener, field: &Field<'_>, others: &mut [Listener]) -> Option<Listener> {
    let port = listener.address.port();
    let mut others = others.iter_mut().filter(|other| port != 0 && other.address == listener.address);
    let Some(other) = others.next() else { return Some(listener) };
    if !other.chains.iter().chain(&listener.chains).any(|chain| !chain.accepts.is_any()) {
        return Some(listener);
    }
    if other.limits != listener.limits {
        field.at("limits").error("listeners that share an address must agree on `limits`");
    }
    if other.proxy_protocol != listener.proxy_protocol {
        field.at("proxy_protocol").error("listeners that share an address must agree on `proxy_protocol`");
    }
    if other.trusted_proxies != listener.trusted_proxies {
        field.at("trusted_proxies").error("listeners that share an address must agree on `trusted_proxies`");
    }
    other.chains.extend(listener.chains);
    None
}

fn upstreams(field: &Field<'_>) -> BTreeMap<String, Upstream> {
    let named = |(name, field): &(&str, Field<'_>)| {
        let name = values::upstream_name(name).map_err(|problem| field.error(problem)).ok();
        let upstream = upstream::upstream(field);
        Some((name?, upstream?))
    };
    field.entries().iter().filter_map(named).collect()
}

fn show_upstreams(upstreams: &BTreeMap<String, Upstream>) -> Value {
    upstreams.iter().map(|(name, upstream)| (name.as_str(), UPSTREAM.show(upstream))).collect()
}

/// Returns whether two sockets cannot both be bound. The kernel chooses port 0, and `[::]` includes IPv4.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() && other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (everywhere || one.ip() == other.ip())
}
