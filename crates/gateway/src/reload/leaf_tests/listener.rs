//! Leaves of listeners: sockets, filter chains, TLS with its certificates.

use super::{CERTIFICATE, COUNT, KEY_SERVER_POOL, Leaves, NOTHING, ROUTE_TABLE, TIME, TLS_CONTEXT, route};
use crate::RebuiltParts;
use quadrille_config::model::{
    AccessAction, AccessRules, AccessStep, AcmeKeyType, AcmeOrder, AltName, AltNameKind, Ambiguous,
    CertificateSource, Chain, ChainMatch, ClientAuth, ClientCheck, ClientOrigin, CollectorServers,
    EnvoyHeaders, ErrorPage, ForwardedCertificate, Group, HeaderChange, Http, HttpTracing, Inspection,
    KeyServerUse, KeySource, Keyless, KeylessTls, Limits, Listener, OcspStapling, OwnHeaders, Paths, Place,
    Ports, ProxyProtocolIn, Redirected, RequestIds, RequestLimits, RouteTable, SentPath, Serve, Source,
    SpanCollector, Statuses, StripPort, Timeouts, Tls, TlsPolicy, TraceSampling, Transport, TrustAnchor,
    TrustedProxies, Version, Weighted, key_server::Protocol,
};
use std::{num::NonZeroUsize, sync::Arc};

pub(super) fn listener(model: &mut Listener, leaves: &mut Leaves) {
    let Listener {
        name,
        address,
        // Whether it has sockets.
        bound: _,
        redirected,
        place: _,
        chains,
        default_chain,
        proxy_protocol,
        // Whether it has a TCP socket.
        tcp: _,
        trusted_proxies,
        inspection,
        limits,
    } = model;
    for one in chains.iter_mut().chain(default_chain) {
        chain(one, leaves);
    }
    leaves.rebuild(NOTHING);
    leaves.set("listener.name", name, "other".into());
    leaves.set("listener.address", address, ([127, 0, 0, 1], 1).into());
    leaves.set("listener.proxy_protocol", proxy_protocol, ProxyProtocolIn::Required);
    leaves.set("listener.trusted_proxies", trusted_proxies, TrustedProxies::AppendedTo);
    leaves.set("listener.redirected", redirected, Redirected::HandedOver);
    let Inspection { timeout, continues, tls, http } = inspection;
    leaves.set("listener.inspection.timeout", timeout, TIME);
    leaves.flip("listener.inspection.continues", continues);
    leaves.set("listener.inspection.tls", tls, Ports::none());
    leaves.set("listener.inspection.http", http, Ports::all());
    let Limits { connections, handshakes, connections_per_client } = limits;
    leaves.set("listener.limits.connections", connections, 7);
    leaves.set("listener.limits.handshakes", handshakes, 7);
    leaves.set("listener.limits.connections_per_client", connections_per_client, Some(COUNT));
}

fn chain(model: &mut Chain, leaves: &mut Leaves) {
    let Chain {
        name,
        accepts,
        tls: chain_tls,
        serve: chain_serve,
        // Requires HTTP, and has a test of its own.
        http3: _,
        access,
        timeouts,
        place: _,
    } = model;
    tls(Arc::make_mut(chain_tls.as_mut().expect("TLS")), leaves);
    leaves.rebuild(NOTHING);
    leaves.set("chain.tls", chain_tls, None);
    leaves.set("chain.name", name, "other".into());
    leaves.set("chain.access", access, vec![deny_all()]);
    let ChainMatch {
        destination_port,
        destinations,
        server_names,
        transport,
        application_protocols,
        peers,
        origin,
        clients,
        client_ports,
    } = accepts;
    let network = || vec!["192.0.2.0/24".parse().expect("a network")];
    leaves.set("chain.accepts.destination_port", destination_port, Some(7));
    leaves.set("chain.accepts.destinations", destinations, network());
    leaves.set("chain.accepts.peers", peers, network());
    leaves.set("chain.accepts.origin", origin, Some(ClientOrigin::Elsewhere));
    leaves.set("chain.accepts.clients", clients, network());
    leaves.set("chain.accepts.client_ports", client_ports, vec![7]);
    leaves.set("chain.accepts.server_names", server_names, vec!["other.example".into()]);
    leaves.set("chain.accepts.transport", transport, Some(Transport::Tls));
    leaves.set("chain.accepts.application_protocols", application_protocols, vec!["other".into()]);
    let Timeouts { handshake, handshake_deadline, header, request, idle } = timeouts;
    leaves.set("chain.timeouts.handshake", handshake, TIME);
    leaves.set("chain.timeouts.handshake_deadline", handshake_deadline, None);
    leaves.set("chain.timeouts.header", header, TIME);
    leaves.set("chain.timeouts.request", request, Some(TIME));
    leaves.set("chain.timeouts.idle", idle, TIME);
    serve(chain_serve, leaves);
}

/// The protocol that is served determines the ALPN of TLS.
fn serve(model: &mut Serve, leaves: &mut Leaves) {
    match model {
        Serve::Http(Http {
            routes,
            paths,
            access,
            own_headers,
            limits,
            response_headers,
            error_pages,
            local_replies,
            request_ids,
            forwarded_certificate,
            envoy_headers,
            tracing,
            strip_port,
            upgrades,
            abort_on_close,
        }) => {
            route::table(Arc::make_mut(routes), leaves);
            leaves.rebuild(NOTHING);
            let Paths { normalize, merge_slashes, escaped_slashes, parameters, send } = paths;
            leaves.flip("http.paths.normalize", normalize);
            leaves.flip("http.paths.merge_slashes", merge_slashes);
            leaves.set("http.paths.escaped_slashes", escaped_slashes, Ambiguous::Keep);
            leaves.set("http.paths.parameters", parameters, Ambiguous::Keep);
            leaves.set("http.paths.send", send, SentPath::Received);
            let servers =
                CollectorServers::Upstream { name: super::model::ROUTED.into(), authority: "c".into() };
            let other = HttpTracing {
                collector: SpanCollector::new(servers, super::model::place()),
                sampling: TraceSampling::ALL,
                outbound: false,
                attempts: false,
                own_hop: false,
                tags: Vec::new(),
                longest_path: 7,
            };
            leaves.set("http.tracing", tracing, Some(Arc::new(other)));
            leaves.set("http.access", access, vec![AccessStep::Rules(deny_all())]);
            let RequestLimits { header, fields, url, body } = limits;
            leaves.set("http.limits.header", header, 5000);
            leaves.set("http.limits.fields", fields, NonZeroUsize::MIN);
            leaves.set("http.limits.url", url, Some(300));
            leaves.set("http.limits.body", body, Some(1));
            let change = HeaderChange::Remove(http::header::SERVER);
            let OwnHeaders { read, changes } = Arc::make_mut(own_headers);
            leaves.set("http.own_headers.changes", changes, vec![change.clone()]);
            leaves.set("http.own_headers.read", read, vec![http::header::SERVER]);
            leaves.set("http.response_headers", response_headers, vec![change]);
            leaves.set("http.error_pages", error_pages, vec![error_page()]);
            leaves.set("http.local_replies", local_replies, Some(Arc::default()));
            leaves.set("http.request_ids", request_ids, Some(RequestIds::FOR_SERVERS));
            leaves.set("http.forwarded_certificate", forwarded_certificate, ForwardedCertificate::Keep);
            leaves.set("http.strip_port", strip_port, StripPort::Always);
            route::upgrades(Arc::make_mut(upgrades), leaves);
            leaves.flip("http.abort_on_close", abort_on_close);
            leaves.set("http.envoy_headers", envoy_headers, Some(EnvoyHeaders::default()));
            leaves.rebuild(TLS_CONTEXT).set("chain.serve", model, Serve::Tcp(vec![Weighted::all("other")]));
        }
        Serve::Tcp(to) => {
            leaves.rebuild(NOTHING);
            to.iter_mut().for_each(|to| route::weighted(to, leaves));
            let other = Serve::Http(Http::new(RouteTable::default()));
            let parts = RebuiltParts { tls_contexts: 1, ..ROUTE_TABLE };
            leaves.rebuild(parts).set("chain.serve", model, other);
        }
    }
}

pub(super) fn error_page() -> ErrorPage {
    ErrorPage {
        statuses: vec![Statuses::Class(5)],
        body: Source::inline("sorry"),
        body_place: Place::flag("test"),
        content_type: "text/plain".into(),
        of_servers: false,
    }
}

pub(super) fn deny_all() -> AccessRules {
    AccessRules { action: AccessAction::Allow, policies: Vec::new(), place: Place::flag("test") }
}

fn tls(model: &mut Tls, leaves: &mut Leaves) {
    let Tls { certificates, policy } = model;
    certificates.iter_mut().for_each(|source| certificate(Arc::make_mut(source), leaves));
    let TlsPolicy {
        min,
        max,
        groups,
        ciphers,
        alpn,
        cbc,
        static_rsa,
        allow_weak_keys,
        ocsp_stapling,
        certificate_compression,
        client_auth,
    } = policy;
    leaves.rebuild(TLS_CONTEXT);
    leaves.set("tls.min", min, Version::Tls13);
    leaves.set("tls.max", max, Version::Tls12);
    leaves.set("tls.groups", groups, vec![Group::P256]);
    leaves.set("tls.ciphers", ciphers, vec!["ECDHE-ECDSA-AES128-GCM-SHA256".into()]);
    leaves.set("tls.alpn", alpn, vec!["other".into()]);
    leaves.flip("tls.cbc", cbc);
    leaves.flip("tls.static_rsa", static_rsa);
    leaves.set("tls.ocsp_stapling", ocsp_stapling, OcspStapling::On);
    leaves.flip("tls.certificate_compression", certificate_compression);
    if let ClientAuth::Optional(check) | ClientAuth::Required(check) = client_auth {
        client_check(check, leaves);
        leaves.set("tls.client_auth", client_auth, ClientAuth::Off);
    }
    leaves.rebuild(CERTIFICATE).flip("tls.allow_weak_keys", allow_weak_keys);
}

fn client_check(model: &mut ClientCheck, leaves: &mut Leaves) {
    let ClientCheck { ca, revoked, certificates, public_keys, names } = model;
    leaves.source("client_auth.ca", &mut ca.as_mut().expect("a CA").0);
    leaves.source("client_auth.revoked", &mut revoked.as_mut().expect("a list").0);
    leaves.set("client_auth.certificates", certificates, vec![[7; 32]]);
    leaves.set("client_auth.public_keys", public_keys, vec![[7; 32]]);
    for AltName { kind, text } in names {
        leaves.set("client_auth.names.kind", kind, AltNameKind::Uri);
        route::text_match(text, leaves);
    }
}

fn certificate(model: &mut CertificateSource, leaves: &mut Leaves) {
    let CertificateSource {
        chain,
        key,
        ocsp,
        poll_delay,
        chain_place: _,
        key_place: _,
        ocsp_place: _,
        order,
        trust_anchor,
    } = model;
    leaves.rebuild(CERTIFICATE);
    leaves.source("certificate.chain", chain);
    leaves.source("certificate.ocsp", ocsp.as_mut().expect("a response"));
    leaves.set("certificate.poll_delay", poll_delay, Some(TIME));
    let other = "32473.1".parse().expect("an identifier");
    leaves.set("certificate.trust_anchor", trust_anchor, Some(TrustAnchor::Id(other)));
    let AcmeOrder { names, key_type, profile, keyless: servers } = order.as_mut().expect("an order");
    leaves.set("order.names", names, vec!["other.example".into()]);
    leaves.set("order.key_type", key_type, AcmeKeyType::Rsa2048);
    leaves.set("order.profile", profile, Some("other".into()));
    leaves.set("order.keyless", servers, Some(Box::new(Keyless::new(Vec::new()))));
    leaves.set("order", order, None);
    match key {
        KeySource::Pem(source) => leaves.source("certificate.key", source),
        KeySource::Keyless(servers) => keyless(servers, leaves),
        KeySource::Pkcs11(_) => unreachable!("its files would need a token"),
    }
}

/// Connections to key servers do not depend on their fallback and use.
fn keyless(model: &mut Keyless, leaves: &mut Leaves) {
    let Keyless { servers, tls, protocol, padding, timeout, hedge, usage, fallback } = model;
    leaves.source("keyless.fallback", fallback.as_mut().expect("a key"));
    leaves.set("keyless.use", usage, KeyServerUse::Overflow);
    leaves.rebuild(KEY_SERVER_POOL);
    leaves.set("keyless.servers", servers, vec!["keys.example:1".parse().expect("an address")]);
    let KeylessTls { ca, certificate, key } = tls.as_mut().expect("TLS");
    leaves.source("keyless.ca", &mut ca.0);
    leaves.source("keyless.certificate", &mut certificate.0);
    leaves.source("keyless.key", &mut key.0);
    leaves.set("keyless.protocol", protocol, Protocol::Batched);
    leaves.flip("keyless.padding", padding);
    leaves.set("keyless.timeout", timeout, TIME);
    leaves.flip("keyless.hedge", hedge);
}
