//! A listener: one socket, and one way to serve its connections.

use super::{
    certificate,
    connection_match::MATCH,
    listener_clients::{self, CLIENTS},
    listener_draft::{self, ListenerDraft},
    listener_http3,
    listener_limits::{LIMITS, TIMEOUTS},
    listener_rules,
    listener_shown::{self, ListenerWithChain},
    route_client_auth, route_respond, tls,
};
use crate::{
    Field, Problem,
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
        Key::new(
            "address",
            "address and port",
            Preset::Required,
            "The address to listen on: `0.0.0.0:8443` for IPv4, `\"[::]:8443\"` (in quotes) for IPv6 and IPv4; `8443` and \
                    `:8443` mean the latter. Every thread has its own socket on it.",
            |field, draft| draft.address = field.parse(listen_address),
            |shown| shown.listener.address.to_string().into(),
        ),
        Key::new(
            "match",
            "mapping",
            Preset::Means("every connection"),
            "Conditions on the connections that this listener handles. Listeners with the same address and \
                    different conditions share its socket; a connection without a matching listener is closed.",
            |field, draft| _ = MATCH.read(field, &mut draft.accepts),
            |shown| listener_shown::accepts(&shown.chain.accepts),
        ),
        Key::new(
            "mode",
            "`http` or `tcp`",
            Preset::Is("http"),
            "The protocol inside TLS: HTTP/1.1 and HTTP/2, or a byte stream that is forwarded unchanged. `tcp` \
                    costs less for each byte, and does not parse hosts, paths or requests.",
            |field, draft| field.set(&mut draft.mode, word),
            |shown| name(shown.chain.mode()).into(),
        ),
        Key::new(
            "certificates",
            "list of certificates",
            Preset::Means("required unless `tls` is `off`"),
            "Certificates, selected by the client's SNI and by the algorithms that it can verify; the \
                    first serves clients without SNI.",
            |field, draft| draft.certificates = listener_draft::certificates(field),
            |shown| certificate::show_all(shown.chain.tls.as_deref()),
        ),
        Key::new(
            "tls",
            "mapping, or `off`",
            Preset::Means("its defaults"),
            "Versions, groups and client certificates. `off` serves plain text, without certificates: any \
                    party on the network path can read and change it.",
            |field, draft| draft.read_tls(field),
            |shown| or_off(shown.chain.tls.as_deref(), |tls| tls::show(&tls.policy)),
        ),
        Key::new(
            "routes",
            "list of routes",
            Preset::Means("none"),
            "Routes of requests. An exact host precedes a wildcard, and a wildcard precedes no host; then the \
                    longest path wins. A listener needs a route, an `upstream` or a `respond`.",
            |field, draft| draft.routes = listener_draft::routes(field, draft.mode),
            |shown| listener_shown::routes(&shown.chain.serve),
        ),
        Key::new(
            "upstream",
            "name of an upstream",
            Preset::Means("none"),
            "Short for a last route that matches all requests. In `tcp` mode this is the usual form.",
            |field, draft| draft.upstream = field.upstream_name(),
            listener_shown::as_route,
        ),
        Key::new(
            "respond",
            "text, or mapping",
            Preset::Means("none"),
            "Short for a last route that responds to all requests. Not in `tcp` mode.",
            |field, draft| draft.respond = route_respond::respond(field),
            listener_shown::as_route,
        ),
        Key::new(
            "request_headers",
            "list of changes",
            Preset::Means("none"),
            "Short for `request_headers` of every route that has an upstream, before its own.",
            |field, draft| draft.read_headers(field, |draft| &mut draft.request_headers),
            listener_shown::as_route,
        ),
        Key::new(
            "response_headers",
            "list of changes",
            Preset::Means("none"),
            "Changes to the headers of every response, errors included: those of a route come after them.",
            |field, draft| draft.read_headers(field, |draft| &mut draft.response_headers),
            listener_shown::as_route,
        ),
        Key::new(
            "hsts",
            "`off`, `on` or a duration",
            Preset::Is("off"),
            "Tells browsers to use HTTPS only, for a year or for the given time: `Strict-Transport-Security` \
                    (RFC 6797) in every response, errors included. For subdomains and preloading, use `response_headers`.",
            |field, draft| draft.read_hsts(field),
            listener_shown::as_route,
        ),
        Key::new(
            "compression",
            "mapping, `on` or `off`",
            Preset::Is("off"),
            "Short for `compression` of every route that does not set it. Not in `tcp` mode.",
            |field, draft| draft.read_compression(field),
            listener_shown::as_route,
        ),
        Key::new(
            "error_pages",
            "list of pages",
            Preset::Means("the gateway's own"),
            "Error pages of all routes, and where no route matches. Not in `tcp` mode.",
            |field, draft| draft.read_error_pages(field),
            |shown| listener_shown::error_pages(&shown.chain.serve),
        ),
        Key::new(
            "paths",
            "mapping",
            Preset::Means("its defaults"),
            "Normalization of request paths, for matching and forwarding. Not in `tcp` mode.",
            |field, draft| draft.read_paths(field),
            |shown| listener_shown::paths(&shown.chain.serve),
        ),
        Key::new(
            "proxy_protocol",
            "`off` or `required`",
            Preset::Is("off"),
            "Whether a load balancer in front announces the client's address (PROXY protocol v1 or v2). With \
                    `required`, connections without the header are closed: any host that can connect can claim any \
                    address, so allow only the load balancer to connect.",
            |field, draft| field.set(&mut draft.proxy_protocol, word),
            |shown| name(shown.listener.proxy_protocol).into(),
        ),
        Key::new(
            "http3",
            "`on` or `off`",
            Preset::Is("off"),
            "HTTP/3 on the same address, over UDP, with the same certificates, routes and limits. Needs `mode: \
                    http` and TLS 1.3. If several listeners share an address by `match`, those with `http3: on` offer \
                    it.",
            |field, draft| draft.http3.read(field),
            |shown| shown.chain.http3.is_some().into(),
        ),
        Key::new(
            "alt_svc",
            "value of a header, or `off`",
            Preset::Means("with `http3`, the port of the connection, for a day"),
            "The `Alt-Svc` header (RFC 7838) of every response, which advertises HTTP/3 to clients of \
                    HTTP/1.1 and HTTP/2. Set it if clients reach UDP on another port than this one: `h3=\":443\"; \
                    ma=86400`.",
            |field, draft| draft.http3.read_alt_svc(field),
            |shown| listener_http3::show_alt_svc(shown.chain.http3.as_ref()),
        ),
        Key::new(
            "trusted_proxies",
            "list of networks",
            Preset::Means("none"),
            "Proxies in front of the gateway, such as `10.0.0.0/8` or `2001:db8::1`. Their `X-Forwarded-For`, \
                    `X-Forwarded-Proto`, `X-Forwarded-Host`, `X-Forwarded-Port`, `Forwarded` and `X-Real-IP` are \
                    forwarded to servers, with the proxy's address appended; those of other clients are replaced. The \
                    client's address, in the access log and wherever an address counts, is then the last address in \
                    `X-Forwarded-For` that is not in the list. With `proxy_protocol: required`, only these proxies may \
                    announce clients, and the announced address counts as the sender of the headers.",
            |field, draft| draft.trusted_proxies = listener_draft::networks(field),
            |shown| listener_shown::networks(&shown.listener.trusted_proxies),
        ),
        Key::new(
            "clients",
            "mapping",
            Preset::Means("all clients"),
            "Access control by client address.",
            |field, draft| _ = CLIENTS.read(field, &mut draft.clients),
            |shown| listener_clients::show(&shown.access()),
        ),
        Key::new(
            "rules",
            "list of rules",
            Preset::Means("none"),
            "Rules for the requests of all routes: the longest path that matches selects a route, so a route cannot \
                    deny for others. Not in `tcp` mode.",
            |field, draft| draft.read_rules(field),
            |shown| listener_rules::show(&shown.chain.serve),
        ),
        Key::new(
            "rate_limits",
            "list of limits",
            Preset::Means("none"),
            "Rate limits for the requests of this listener, all its routes together. Not in `tcp` mode.",
            |field, draft| draft.read_rate_limits(field),
            |shown| listener_shown::rate_limits(&shown.chain.serve),
        ),
        Key::new(
            "basic_auth",
            "mapping, a path of users, or `off`",
            Preset::Is("off"),
            "HTTP Basic authentication, on every route that does not set it. Requests beyond the listener's \
                    `rate_limits` are refused first. Not in `tcp` mode.",
            |field, draft| draft.read_basic_auth(field),
            |shown| listener_shown::basic_auth(&shown.chain.serve),
        ),
        Key::new(
            "jwt",
            "mapping, or `off`",
            Preset::Is("off"),
            "The JSON Web Token that requests need, on every route that does not set it. Not in `tcp` mode.",
            |field, draft| draft.read_jwt(field),
            |shown| listener_shown::jwt(&shown.chain.serve),
        ),
        Key::new(
            "authorization",
            "mapping, or `off`",
            Preset::Is("off"),
            "An external authorization server, on every route that does not set it: after `basic_auth` and `jwt`. Not in `tcp` mode.",
            |field, draft| draft.read_authorization(field),
            |shown| listener_shown::authorization(&shown.chain.serve),
        ),
        Key::new(
            "upgrades",
            "list of protocols, or `off`",
            Preset::Is("[websocket]"),
            "Protocols that a request may switch to, by `Upgrade` of HTTP/1.1 or `:protocol` of HTTP/2 and HTTP/3: \
                    `[websocket, spdy/3.1]` for `kubectl exec`, `[websocket, tcp]` for `docker attach`. The list \
                    replaces the default. Servers receive the request over HTTP/1.1, and timeouts of requests do not \
                    apply to the connection that follows. With other protocols, HTTP/1.1 requests are served without \
                    the upgrade (WebSocket: 403), and those of HTTP/2 and HTTP/3 get 501. Not in `tcp` mode.",
            |field, draft| draft.read_upgrades(field),
            |shown| listener_shown::upgrades(&shown.chain.serve),
        ),
        Key::new(
            "abort_on_close",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether a request over HTTP/1.1 is aborted when its client closes its sending side (FIN, or close_notify \
                    of TLS) before the response is complete. With `off`, the client receives the response, and the \
                    connection is closed after the last one (RFC 9112 section 9.6): a client that has closed both \
                    sides looks alike, so its request runs to the end. With `on`, such a request is cancelled at the \
                    server at once; only responses that need no waiting are still sent. In both cases a reset \
                    connection aborts its request, an incomplete request gets no response from a server, and the end \
                    of an HTTP/2 or HTTP/3 connection aborts its requests. Not in `tcp` mode, which passes on the end \
                    of each direction.",
            |field, draft| draft.read_abort_on_close(field),
            |shown| listener_shown::abort_on_close(&shown.chain.serve),
        ),
        Key::new(
            "timeouts",
            "mapping",
            Preset::Means("its defaults"),
            "Timeouts, after which slow clients are disconnected.",
            |field, draft| _ = TIMEOUTS.read(field, &mut draft.timeouts),
            |shown| TIMEOUTS.show(&shown.chain.timeouts),
        ),
        Key::new(
            "limits",
            "mapping",
            Preset::Means("its defaults"),
            "Maximum number of connections and handshakes, and maximum sizes of requests.",
            |field, draft| draft.limits.read(field, draft.mode),
            |shown| LIMITS.show(&shown.limits()),
        ),
    ],
};

/// Reads a listener, with one chain.
pub(super) fn listener(field: &Field<'_>) -> Option<Listener> {
    let mut draft = ListenerDraft::default();
    LISTENER.read(field, &mut draft)?;
    if !draft.plain_text && field.entry("certificates").is_none() {
        field.error(Problem::new(
            "`certificates` is missing",
            "add `certificates: ...` (list of certificates), or `tls: off` for plain text",
        ));
    }
    let place = field.at("address").place();
    let tls = draft.take_tls(field);
    let routes = draft.routes.iter().map(|written| &written.route);
    route_client_auth::refuse_unrequested(field, routes, tls.as_ref());
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
