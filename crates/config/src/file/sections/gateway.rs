//! The whole document.

use super::{admin, engine, listener, resumption, sampling, upstream};
use crate::{
    Field,
    file::{
        mapping::Mapping,
        schema::{Key, Preset, Section},
    },
    model::{AccessLog, Admin, Gateway, Listener, Upstream},
    values,
};
use std::net::SocketAddr;

pub(super) const GATEWAY: Section = Section {
    path: "",
    about: "The whole file is one mapping. Only `listeners` is needed.",
    keys: &[
        Key {
            name: "listeners",
            value: "list of listeners",
            preset: Preset::Required,
            about: "The sockets that accept TLS connections.",
        },
        Key {
            name: "upstreams",
            value: "mapping of names to upstreams",
            preset: Preset::Means("none"),
            about: "Groups of servers that routes point to. A name has letters, digits, `_`, `-` and `.`.",
        },
        Key {
            name: "engine",
            value: "mapping",
            preset: Preset::Means("its defaults"),
            about: "How private-key operations are collected and computed.",
        },
        Key {
            name: "resumption",
            value: "mapping, or `off`",
            preset: Preset::Means("its defaults"),
            about: "How returning clients avoid a full handshake. `off` makes every handshake a full one, with a \
                    private-key operation for each.",
        },
        Key {
            name: "sampling",
            value: "mapping, `on` or `off`",
            preset: Preset::Is("on"),
            about: "Which handshakes are measured message by message.",
        },
        Key {
            name: "admin",
            value: "mapping, an address, or `off`",
            preset: Preset::Is("127.0.0.1:9901"),
            about: "The dashboard, and the metrics and health pages.",
        },
        Key {
            name: "threads",
            value: "count, or `auto`",
            preset: Preset::Is("auto"),
            about: "Event-loop threads; `auto` is one for each CPU. More threads than CPUs cost context switches; \
                    each thread keeps its own pool of upstream connections.",
        },
        Key {
            name: "drain_timeout",
            value: "duration",
            preset: Preset::Is("30s"),
            about: "How long a stopping gateway waits for open connections before it cuts them. A longer time delays \
                    the stop as long as one client holds on.",
        },
        Key {
            name: "access_log",
            value: "`off`, `stdout` or a path",
            preset: Preset::Is("off"),
            about: "Where finished requests are recorded, one line each. Costs one formatted line a request.",
        },
    ],
};

/// What an empty file is told.
pub(in crate::file) const EMPTY: &str = "the file is empty; it needs at least `listeners`";

/// The whole document.
pub(in crate::file) fn gateway(root: &Field<'_>) -> Option<Gateway> {
    if root.is_null() {
        root.error(EMPTY);
        return None;
    }
    let keys = root.mapping(&GATEWAY)?;
    let mut gateway = Gateway::default();
    let upstreams = keys.get("upstreams").map(|field| field.entries()).unwrap_or_default();
    let names: Vec<_> = upstreams.iter().map(|(name, _)| *name).collect();

    if let Some(field) = keys.get("admin") {
        gateway.admin = admin::admin(&field);
    }
    gateway.listeners = listeners(&keys, gateway.admin.as_ref(), &names);
    gateway.upstreams = upstreams.iter().filter_map(|(name, field)| named_upstream(name, field)).collect();
    if let Some(field) = keys.get("engine") {
        gateway.engine = engine::engine(&field);
    }
    if let Some(field) = keys.get("resumption") {
        gateway.resumption = resumption::resumption(&field);
    }
    if let Some(field) = keys.get("sampling") {
        gateway.sampling = sampling::sampling(&field);
    }
    keys.update("threads", &mut gateway.threads, values::threads);
    keys.update("drain_timeout", &mut gateway.drain_timeout, values::duration);
    if let Some(field) = keys.get("access_log") {
        gateway.access_log = access_log(&field);
    }
    Some(gateway)
}

fn listeners(keys: &Mapping<'_>, admin: Option<&Admin>, upstreams: &[&str]) -> Vec<Listener> {
    let mut taken: Vec<_> = admin.map(|admin| (admin.address, "`admin`".to_owned())).into_iter().collect();
    let mut listeners = Vec::new();
    for field in keys.require("listeners").map(|field| field.items()).unwrap_or_default() {
        let Some(listener) = listener::listener(&field, upstreams) else { continue };
        let Some(listener) = beside_others(listener, &field, &mut listeners) else { continue };
        if let Some((other, owner)) = taken.iter().find(|(other, _)| collide(*other, listener.address)) {
            field.at("address").error(format!("{owner} already has {other}; give each its own"));
        }
        taken.push((listener.address, format!("the listener on line {}", field.line())));
        listeners.push(listener);
    }
    listeners
}

/// A listener with the address of another is one more chain of it, if one of them says which connections it is for; then
/// there is nothing left of it.
fn beside_others(listener: Listener, field: &Field<'_>, others: &mut [Listener]) -> Option<Listener> {
    let port = listener.address.port();
    let mut others = others.iter_mut().filter(|other| port != 0 && other.address == listener.address);
    let Some(other) = others.next() else { return Some(listener) };
    if !other.chains.iter().chain(&listener.chains).any(|chain| !chain.accepts.is_any()) {
        return Some(listener);
    }
    if other.limits != listener.limits {
        field.at("limits").error(
            "a socket has one set of limits: say the same as for the first listener with this address",
        );
    }
    if other.proxy_protocol != listener.proxy_protocol {
        field
            .at("proxy_protocol")
            .error("a socket begins in one way: say the same as for the first listener with this address");
    }
    other.chains.extend(listener.chains);
    None
}

fn named_upstream(name: &str, field: &Field<'_>) -> Option<(String, Upstream)> {
    let name = values::upstream_name(name).map_err(|message| field.error(message)).ok();
    let upstream = upstream::upstream(field);
    Some((name?, upstream?))
}

fn access_log(field: &Field<'_>) -> AccessLog {
    match field.parse(values::access_log) {
        Some(AccessLog::File(_)) => field.file().map_or(AccessLog::Off, AccessLog::File),
        other => other.unwrap_or_default(),
    }
}

/// Whether two sockets cannot both be bound. The kernel chooses for port 0, and `[::]` takes IPv4 as well.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() && other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (everywhere || one.ip() == other.ip())
}
