//! A listener, with its timeouts and limits.

use super::{
    certificate,
    route::{self, Written},
    tls,
};
use crate::{
    Field,
    file::{
        mapping::Mapping,
        schema::{Key, Preset, Section},
    },
    model::{
        Action, CertificateSource, Chain, ChainMatch, Http, Limits, Listener, Mode, RouteTable, Serve,
        Timeouts, Tls, TlsPolicy,
    },
    values::{self, count, listen_address, timeout},
    words::{switch, word},
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

pub(super) const LISTENER: Section = Section {
    path: "listeners[]",
    about: "One socket that accepts TLS connections.",
    keys: &[
        Key {
            name: "address",
            value: "address and port",
            preset: Preset::Required,
            about: "Where to listen: `0.0.0.0:8443` for IPv4, `\"[::]:8443\"` (in quotes) for IPv6 and IPv4; `8443` and \
                    `:8443` mean the latter. Every thread has its own socket on it.",
        },
        Key {
            name: "match",
            value: "mapping",
            preset: Preset::Means("every connection"),
            about: "For which connections this is. Listeners with the same address share its socket if they differ in \
                    this; a connection that none of them is for is closed.",
        },
        Key {
            name: "mode",
            value: "`http` or `tcp`",
            preset: Preset::Is("http"),
            about: "What is spoken inside TLS: HTTP/1.1 and HTTP/2, or bytes that are passed on as they are. `tcp` is \
                    cheaper for each byte, and sees no hosts, paths or requests.",
        },
        Key {
            name: "certificates",
            value: "list of certificates",
            preset: Preset::Required,
            about: "Chosen by the client's SNI and by the algorithms that it can verify; the first serves clients \
                    without SNI.",
        },
        Key {
            name: "tls",
            value: "mapping, or `off`",
            preset: Preset::Means("its defaults"),
            about: "Versions, groups, client certificates. `off` serves plain text, without certificates: anybody on the \
                    way can read and change it.",
        },
        Key {
            name: "routes",
            value: "list of routes",
            preset: Preset::Means("none"),
            about: "Which requests go where. An exact host comes before a wildcard and a wildcard before none, then the \
                    longest path wins. A listener needs a route, an `upstream` or a `respond`.",
        },
        Key {
            name: "upstream",
            value: "name of an upstream",
            preset: Preset::Means("none"),
            about: "Short for a last route that matches everything. In `tcp` mode this is the usual form.",
        },
        Key {
            name: "respond",
            value: "text, or mapping",
            preset: Preset::Means("none"),
            about: "Short for a last route that answers everything. Not in `tcp` mode.",
        },
        Key {
            name: "proxy_protocol",
            value: "`off` or `required`",
            preset: Preset::Is("off"),
            about: "Whether a load balancer in front announces the client's address (PROXY protocol v1 or v2). With \
                    `required`, connections without the header are closed: whoever can connect can claim any address, \
                    so let only the load balancer connect.",
        },
        Key {
            name: "timeouts",
            value: "mapping",
            preset: Preset::Means("its defaults"),
            about: "When slow clients are dropped.",
        },
        Key {
            name: "limits",
            value: "mapping",
            preset: Preset::Means("its defaults"),
            about: "How much the listener takes on.",
        },
    ],
};

pub(super) const MATCH: Section = Section {
    path: "listeners[].match",
    about: "Connections, by what the client says first. The name decides before the transport, and that before the \
            protocols; at each step the most specific value wins for good, as in Envoy's filter chains.",
    keys: &[
        Key {
            name: "server_names",
            value: "list of hosts",
            preset: Preset::Means("any, or none"),
            about: "The client's SNI: `example.com`, or `*.example.com` for everything below it, however deep.",
        },
        Key {
            name: "transport",
            value: "`tls` or `plain`",
            preset: Preset::Means("both"),
            about: "Whether the client begins with a TLS handshake.",
        },
        Key {
            name: "application_protocols",
            value: "list of protocols",
            preset: Preset::Means("any, or none"),
            about: "ALPN protocols, of which the client offers one.",
        },
    ],
};

pub(super) const TIMEOUTS: Section = Section {
    path: "listeners[].timeouts",
    about: "When slow clients are dropped. Longer times let slow clients in, and let idle ones hold memory for longer.",
    keys: &[
        Key {
            name: "handshake",
            value: "duration",
            preset: Preset::Is("10s"),
            about: "From accepting a connection to the end of its TLS handshake, a PROXY header included.",
        },
        Key {
            name: "header",
            value: "duration",
            preset: Preset::Is("30s"),
            about: "From the first byte of a request to the end of its header; in HTTP/2, from the TLS handshake to the \
                    end of the preface.",
        },
        Key {
            name: "idle",
            value: "duration",
            preset: Preset::Is("75s"),
            about: "Between requests on a connection; in `tcp` mode, without a byte in either direction, or \
                    while one side takes nothing of what it is sent. A client that \
                    comes back later pays for a new handshake.",
        },
    ],
};

pub(super) const LIMITS: Section = Section {
    path: "listeners[].limits",
    about: "How much one listener takes on, in all threads together.",
    keys: &[
        Key {
            name: "connections",
            value: "count",
            preset: Preset::Is("100000"),
            about: "Open connections. Each costs memory even when idle, and a file descriptor; a second one while an \
                    upstream serves it.",
        },
        Key {
            name: "handshakes",
            value: "count",
            preset: Preset::Is("20000"),
            about: "Handshakes in flight. Each holds its buffers and may wait in the engine's queue, so more of them \
                    means more memory and a longer wait under overload, not more handshakes a second.",
        },
    ],
};

/// A listener; its routes may point to `upstreams`.
pub(super) fn listener(field: &Field<'_>, upstreams: &[&str]) -> Option<Listener> {
    let keys = field.mapping(&LISTENER)?;
    let address = keys.require("address");
    let place = address.as_ref().map_or_else(|| field.place(), Field::place);
    let address = address.and_then(|address| address.parse(listen_address));
    let mode = keys.read("mode", word).unwrap_or_default();

    let tls = tls_of(&keys, mode);
    let serve = serve(routes(&keys, mode, upstreams), mode);
    let mut chain = Chain::new(tls, serve, place.clone());
    chain.accepts = keys.get("match").map(|field| accepts(&field)).unwrap_or_default();
    chain.timeouts = keys.get("timeouts").map(|field| timeouts(&field)).unwrap_or_default();
    let address_or_any = address.unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    let mut listener = Listener::new(address_or_any, place, chain);
    listener.proxy_protocol = keys.read("proxy_protocol", word).unwrap_or_default();
    listener.limits = keys.get("limits").map(|field| limits(&field)).unwrap_or_default();
    address.map(|_| listener)
}

/// `None` is plain text.
fn tls_of(keys: &Mapping<'_>, mode: Mode) -> Option<Tls> {
    let field = keys.get("tls");
    if let Some(field) = &field
        && field.is_scalar()
        && !field.parse(switch).unwrap_or(true)
    {
        if let Some(certificates) = keys.get("certificates") {
            certificates.error("`tls: off` has no use for certificates; remove one of them");
        }
        return None;
    }
    let policy = match field.filter(|field| !field.is_scalar()) {
        Some(field) => tls::tls(&field, mode),
        None => TlsPolicy::new(mode),
    };
    Some(Tls { certificates: certificates(keys), policy })
}

fn accepts(field: &Field<'_>) -> ChainMatch {
    let Some(keys) = field.mapping(&MATCH) else { return ChainMatch::default() };
    let names = keys.get("server_names").map(|field| field.items()).unwrap_or_default();
    let name = |field: &Field<'_>| field.parse(values::route_host)??.to_ascii_lowercase().into();
    let protocols = keys.get("application_protocols").map(|field| field.items()).unwrap_or_default();
    ChainMatch {
        server_names: names.iter().filter_map(name).collect(),
        transport: keys.read("transport", word),
        application_protocols: protocols.iter().filter_map(|field| field.parse(values::alpn)).collect(),
    }
}

fn certificates(keys: &Mapping<'_>) -> Vec<Arc<CertificateSource>> {
    let items = keys.require("certificates").map(|field| field.items()).unwrap_or_default();
    items.iter().filter_map(certificate::certificate).map(Arc::new).collect()
}

fn serve(routes: Vec<Written>, mode: Mode) -> Serve {
    match mode {
        Mode::Http => {
            Serve::Http(Http::new(RouteTable::by_weight(routes.into_iter().map(Written::into_model))))
        }
        Mode::Tcp => Serve::Tcp(routes.into_iter().flat_map(Written::into_shares).collect()),
    }
}

/// The routes as written, the short form last.
fn routes(keys: &Mapping<'_>, mode: Mode, upstreams: &[&str]) -> Vec<Written> {
    if ["routes", "upstream", "respond"].iter().all(|key| keys.get(key).is_none()) {
        keys.field().error("nothing says where connections go; add `upstream`, `respond` or `routes`");
    }
    let items = keys.get("routes").map(|field| field.items()).unwrap_or_default();
    let written = items.iter().filter_map(|field| Some((field.clone(), route::route(field, upstreams)?)));
    let routes: Vec<_> = written.chain(catch_all(keys, upstreams)).collect();
    match mode {
        Mode::Http => route::refuse_shadowed(&routes),
        Mode::Tcp => refuse_http_routes(&routes),
    }
    routes.into_iter().map(|(_, route)| route).collect()
}

/// The route that `upstream` or `respond` on the listener itself stands for.
fn catch_all<'a>(keys: &Mapping<'a>, upstreams: &[&str]) -> Option<(Field<'a>, Written)> {
    let action = route::action(keys, upstreams)?;
    let field = keys.get("upstream").or_else(|| keys.get("respond"))?;
    let route = Written::all(action, field.place());
    Some((field, route))
}

/// TCP mode passes bytes: there is one place where they can go, and no answer of our own.
fn refuse_http_routes(routes: &[(Field<'_>, Written)]) {
    if let [_, (second, _), ..] = routes {
        second.error("a listener in tcp mode has one target, and this is another; keep a single `upstream`");
    }
    for (field, route) in routes {
        const HTTP: [&str; 8] =
            ["host", "path", "path_exact", "path_regex", "headers", "rewrite", "timeout", "retry"];
        for (key, written) in HTTP.iter().filter_map(|key| Some((key, field.entry(key)?))) {
            // What matches everything may be said.
            if (*key == "host" && written.parse(values::route_host) == Some(None))
                || (*key == "path" && written.parse(values::route_path) == Some(None))
            {
                continue;
            }
            written.error(format!("tcp mode sees no `{key}`; remove it, or use `mode: http`"));
        }
        let answers = match route.action() {
            Action::Respond(_) => "respond",
            Action::Redirect(_) => "redirect",
            Action::Forward(_) => continue,
        };
        field.at(answers).error("tcp mode has no answers of its own; use `upstream`, or `mode: http`");
    }
}

fn timeouts(field: &Field<'_>) -> Timeouts {
    let mut timeouts = Timeouts::default();
    if let Some(keys) = field.mapping(&TIMEOUTS) {
        keys.update("handshake", &mut timeouts.handshake, timeout);
        keys.update("header", &mut timeouts.header, timeout);
        keys.update("idle", &mut timeouts.idle, timeout);
    }
    timeouts
}

fn limits(field: &Field<'_>) -> Limits {
    let mut limits = Limits::default();
    if let Some(keys) = field.mapping(&LIMITS) {
        keys.update("connections", &mut limits.connections, |text| count(text).map(usize::from));
        keys.update("handshakes", &mut limits.handshakes, |text| count(text).map(usize::from));
    }
    limits
}
