//! A listener: one socket, and one way to serve its connections.

use super::{
    certificate,
    connection_match::MATCH,
    listener_clients::{self, CLIENTS},
    listener_draft::{self, ListenerDraft},
    listener_http3,
    listener_limits::{LIMITS, TIMEOUTS},
    listener_shown::{self, ListenerWithChain},
    route_respond, tls,
};
use crate::{
    Field,
    enums::{name, word},
    file::{
        schema::{Key, Preset, Section},
        shown::{or_off, put, text},
    },
    model::{Chain, Listener, TrustedProxies},
    values::listen_address,
};
use serde_json::Value;

pub(super) const LISTENER: Section<ListenerDraft, ListenerWithChain> = Section {
    path: "listeners[]",
    about: "One socket that accepts TLS connections.",
    keys: &[
        Key {
            name: "address",
            value: "address and port",
            preset: Preset::Required,
            about: "The address to listen on: `0.0.0.0:8443` for IPv4, `\"[::]:8443\"` (in quotes) for IPv6 and IPv4; `8443` and \
                    `:8443` mean the latter. Every thread has its own socket on it.",
            needs_restart: false,
            read: |field, draft| draft.address = field.parse(listen_address),
            show: |shown| shown.listener.address.to_string().into(),
        },
        Key {
            name: "match",
            value: "mapping",
            preset: Preset::Means("every connection"),
            about: "Conditions on the connections that this listener handles. Listeners with the same address and \
                    different conditions share its socket; a connection without a matching listener is closed.",
            needs_restart: false,
            read: |field, draft| _ = MATCH.read(field, &mut draft.accepts),
            show: |shown| listener_shown::accepts(&shown.chain.accepts),
        },
        Key {
            name: "mode",
            value: "`http` or `tcp`",
            preset: Preset::Is("http"),
            about: "The protocol inside TLS: HTTP/1.1 and HTTP/2, or a byte stream that is forwarded unchanged. `tcp` \
                    costs less for each byte, and does not parse hosts, paths or requests.",
            needs_restart: false,
            read: |field, draft| field.set(&mut draft.mode, word),
            show: |shown| name(shown.chain.mode()).into(),
        },
        Key {
            name: "certificates",
            value: "list of certificates",
            preset: Preset::Means("required unless `tls` is `off`"),
            about: "Certificates, selected by the client's SNI and by the algorithms that it can verify; the \
                    first serves clients without SNI.",
            needs_restart: false,
            read: |field, draft| draft.certificates = listener_draft::certificates(field),
            show: |shown| certificate::show_all(shown.chain.tls.as_deref()),
        },
        Key {
            name: "tls",
            value: "mapping, or `off`",
            preset: Preset::Means("its defaults"),
            about: "Versions, groups and client certificates. `off` serves plain text, without certificates: any \
                    party on the network path can read and change it.",
            needs_restart: false,
            read: |field, draft| draft.read_tls(field),
            show: |shown| or_off(shown.chain.tls.as_deref(), |tls| tls::show(&tls.policy)),
        },
        Key {
            name: "routes",
            value: "list of routes",
            preset: Preset::Means("none"),
            about: "Routes of requests. An exact host precedes a wildcard, and a wildcard precedes no host; then the \
                    longest path wins. A listener needs a route, an `upstream` or a `respond`.",
            needs_restart: false,
            read: |field, draft| draft.routes = listener_draft::routes(field, draft.mode),
            show: |shown| listener_shown::routes(&shown.chain.serve),
        },
        Key {
            name: "upstream",
            value: "name of an upstream",
            preset: Preset::Means("none"),
            about: "Short for a last route that matches all requests. In `tcp` mode this is the usual form.",
            needs_restart: false,
            read: |field, draft| draft.upstream = field.upstream_name(),
            show: listener_shown::as_route,
        },
        Key {
            name: "respond",
            value: "text, or mapping",
            preset: Preset::Means("none"),
            about: "Short for a last route that responds to all requests. Not in `tcp` mode.",
            needs_restart: false,
            read: |field, draft| draft.respond = route_respond::respond(field),
            show: listener_shown::as_route,
        },
        Key {
            name: "request_headers",
            value: "list of changes",
            preset: Preset::Means("none"),
            about: "Short for `request_headers` of every route that has an upstream, before its own.",
            needs_restart: false,
            read: |field, draft| draft.read_headers(field, |draft| &mut draft.request_headers),
            show: listener_shown::as_route,
        },
        Key {
            name: "response_headers",
            value: "list of changes",
            preset: Preset::Means("none"),
            about: "Short for `response_headers` of every route, before its own.",
            needs_restart: false,
            read: |field, draft| draft.read_headers(field, |draft| &mut draft.response_headers),
            show: listener_shown::as_route,
        },
        Key {
            name: "hsts",
            value: "`off`, `on` or a duration",
            preset: Preset::Is("off"),
            about: "Tells browsers to use HTTPS only, for a year or for the given time: `Strict-Transport-Security` \
                    (RFC 6797) in the responses of every route, but not in the gateway's own errors. For subdomains and preloading, use `response_headers`.",
            needs_restart: false,
            read: |field, draft| draft.read_hsts(field),
            show: listener_shown::as_route,
        },
        Key {
            name: "compression",
            value: "mapping, `on` or `off`",
            preset: Preset::Is("off"),
            about: "Short for `compression` of every route that does not set it. Not in `tcp` mode.",
            needs_restart: false,
            read: |field, draft| draft.read_compression(field),
            show: listener_shown::as_route,
        },
        Key {
            name: "error_pages",
            value: "list of pages",
            preset: Preset::Means("the gateway's own"),
            about: "Error pages of all routes, and where no route matches. Not in `tcp` mode.",
            needs_restart: false,
            read: |field, draft| draft.read_error_pages(field),
            show: |shown| listener_shown::error_pages(&shown.chain.serve),
        },
        Key {
            name: "paths",
            value: "mapping",
            preset: Preset::Means("its defaults"),
            about: "Normalization of request paths, for matching and forwarding. Not in `tcp` mode.",
            needs_restart: false,
            read: |field, draft| draft.read_paths(field),
            show: |shown| listener_shown::paths(&shown.chain.serve),
        },
        Key {
            name: "proxy_protocol",
            value: "`off` or `required`",
            preset: Preset::Is("off"),
            about: "Whether a load balancer in front announces the client's address (PROXY protocol v1 or v2). With \
                    `required`, connections without the header are closed: any host that can connect can claim any \
                    address, so allow only the load balancer to connect.",
            needs_restart: false,
            read: |field, draft| field.set(&mut draft.proxy_protocol, word),
            show: |shown| name(shown.listener.proxy_protocol).into(),
        },
        Key {
            name: "http3",
            value: "`on` or `off`",
            preset: Preset::Is("off"),
            about: "HTTP/3 on the same address, over UDP, with the same certificates, routes and limits. Needs `mode: \
                    http` and TLS 1.3. If several listeners share an address by `match`, those with `http3: on` offer \
                    it.",
            needs_restart: false,
            read: |field, draft| draft.http3.read(field),
            show: |shown| shown.chain.http3.is_some().into(),
        },
        Key {
            name: "alt_svc",
            value: "value of a header, or `off`",
            preset: Preset::Means("with `http3`, the port of the connection, for a day"),
            about: "The `Alt-Svc` header (RFC 7838) of every response, which advertises HTTP/3 to clients of \
                    HTTP/1.1 and HTTP/2. Set it if clients reach UDP on another port than this one: `h3=\":443\"; \
                    ma=86400`.",
            needs_restart: false,
            read: |field, draft| draft.http3.read_alt_svc(field),
            show: |shown| listener_http3::show_alt_svc(shown.chain.http3.as_ref()),
        },
        Key {
            name: "trusted_proxies",
            value: "list of networks",
            preset: Preset::Means("none"),
            about: "Proxies in front of the gateway, such as `10.0.0.0/8` or `2001:db8::1`. Their `X-Forwarded-For`, \
                    `X-Forwarded-Proto`, `X-Forwarded-Host`, `X-Forwarded-Port`, `Forwarded` and `X-Real-IP` are \
                    forwarded to servers, with the proxy's address appended; those of other clients are replaced. The \
                    client's address, in the access log and wherever an address counts, is then the last address in \
                    `X-Forwarded-For` that is not in the list. With `proxy_protocol: required`, only these proxies may \
                    announce clients, and the announced address counts as the sender of the headers.",
            needs_restart: false,
            read: |field, draft| draft.trusted_proxies = listener_draft::networks(field),
            show: |shown| listener_shown::networks(&shown.listener.trusted_proxies),
        },
        Key {
            name: "clients",
            value: "mapping",
            preset: Preset::Means("all clients"),
            about: "Access control by client address.",
            needs_restart: false,
            read: |field, draft| _ = CLIENTS.read(field, &mut draft.clients),
            show: |shown| listener_clients::show(&shown.access()),
        },
        Key {
            name: "rate_limits",
            value: "list of limits",
            preset: Preset::Means("none"),
            about: "Rate limits for the requests of this listener, all its routes together. Not in `tcp` mode.",
            needs_restart: false,
            read: |field, draft| draft.read_rate_limits(field),
            show: |shown| listener_shown::rate_limits(&shown.chain.serve),
        },
        Key {
            name: "basic_auth",
            value: "mapping, a path of users, or `off`",
            preset: Preset::Is("off"),
            about: "HTTP Basic authentication, on every route that does not set it. Requests beyond the listener's \
                    `rate_limits` are refused first. Not in `tcp` mode.",
            needs_restart: false,
            read: |field, draft| draft.read_basic_auth(field),
            show: |shown| listener_shown::basic_auth(&shown.chain.serve),
        },
        Key {
            name: "timeouts",
            value: "mapping",
            preset: Preset::Means("its defaults"),
            about: "Timeouts, after which slow clients are disconnected.",
            needs_restart: false,
            read: |field, draft| _ = TIMEOUTS.read(field, &mut draft.timeouts),
            show: |shown| TIMEOUTS.show(&shown.chain.timeouts),
        },
        Key {
            name: "limits",
            value: "mapping",
            preset: Preset::Means("its defaults"),
            about: "Maximum number of connections and handshakes, and maximum sizes of requests.",
            needs_restart: false,
            read: |field, draft| draft.limits.read(field, draft.mode),
            show: |shown| LIMITS.show(&shown.limits()),
        },
    ],
};

/// Reads a listener, with one chain.
pub(super) fn listener(field: &Field<'_>) -> Option<Listener> {
    let mut draft = ListenerDraft::default();
    LISTENER.read(field, &mut draft)?;
    if !draft.plain_text {
        LISTENER.require(field, "certificates");
    }
    let place = field.at("address").place();
    let tls = draft.take_tls(field);
    let serve = draft.take_serve(field);
    let http3 = draft.http3.take(field);
    let access = draft.take_access(field);
    let ListenerDraft { accepts, timeouts, proxy_protocol, trusted_proxies, limits, .. } = draft;
    let chain = Chain { accepts, http3, access, timeouts, ..Chain::new(tls, serve, place.clone()) };
    Some(Listener {
        proxy_protocol,
        trusted_proxies: TrustedProxies::In(trusted_proxies),
        limits: limits.socket,
        ..Listener::new(draft.address?, place, chain)
    })
}

/// Shows each chain as a listener, all with the same address.
pub(super) fn show(listener: &Listener) -> impl Iterator<Item = Value> + '_ {
    let alone = Listener { chains: Vec::new(), default_chain: None, ..listener.clone() };
    let shown = move |chain: &Chain| ListenerWithChain { listener: alone.clone(), chain: chain.clone() };
    listener.all_chains().map(move |chain| show_one(&shown(chain)))
}

fn show_one(shown: &ListenerWithChain) -> Value {
    let mut value = LISTENER.show(shown);
    put(&mut value, [("listener", text(&shown.listener.name)), ("chain", text(&shown.chain.name))]);
    value
}
