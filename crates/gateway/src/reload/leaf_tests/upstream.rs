//! Leaves of upstreams.

use super::{COUNT, Leaves, NOTHING, TIME};
use crate::RebuiltParts;
use quadrille_config::model::{
    AltName, AltNameKind, Balance, DnsRefresh, Group, Health, HealthProbe, HttpProbe, LookupFamily,
    OriginalDestination, OutlierDetection, ProxyProtocolOut, Server, TextMatch, TextRule, TlsParameters,
    Upstream, UpstreamAlpn, UpstreamLimits, UpstreamProtocol, UpstreamTimeouts, UpstreamTls, Version,
};

/// Visits an upstream; `parts` are the upstream and the route tables that reference it.
pub(super) fn upstream(model: &mut Upstream, parts: RebuiltParts, leaves: &mut Leaves) {
    let Upstream {
        servers,
        original_destination,
        source_addresses,
        dns_refresh,
        dns_lookup_family,
        balance,
        health,
        outlier_detection,
        panic_threshold,
        slow_start,
        limits,
        tls,
        more_transports,
        host_from_request,
        protocol,
        proxy_protocol,
        retries,
        pool,
        timeouts,
        place: _,
    } = model;
    // The upstream is kept when its endpoints change.
    leaves.rebuild(NOTHING);
    for Server { address, weight, transport, priority, max_connections, place: _ } in servers {
        leaves.set("upstream.servers.address", address, "127.0.0.1:1".into());
        leaves.set("upstream.servers.weight", weight, COUNT);
        leaves.set("upstream.servers.transport", transport, 1);
        leaves.set("upstream.servers.priority", priority, 1);
        leaves.set("upstream.servers.max_connections", max_connections, Some(COUNT));
    }
    leaves.set("upstream.dns_refresh", dns_refresh, DnsRefresh::Off);
    leaves.set("upstream.dns_lookup_family", dns_lookup_family, LookupFamily::V4Only);
    leaves.rebuild(parts);
    let other = Some(OriginalDestination::default());
    leaves.set("upstream.original_destination", original_destination, other);
    leaves.set("upstream.source_addresses", source_addresses, vec![[127, 0, 0, 6].into()]);
    leaves.set("upstream.balance", balance, Balance::Random);
    leaves.set("upstream.panic_threshold", panic_threshold, 7);
    leaves.set("upstream.slow_start", slow_start, Some(TIME));
    if let Some(Health { probe, server_name, interval, timeout, healthy, unhealthy }) = health {
        leaves.set("upstream.health.probe", probe, HealthProbe::Http(HttpProbe::get("/other")));
        leaves.set("upstream.health.server_name", server_name, Some("other.example".into()));
        leaves.set("upstream.health.interval", interval, TIME);
        leaves.set("upstream.health.timeout", timeout, TIME);
        leaves.set("upstream.health.healthy", healthy, COUNT);
        leaves.set("upstream.health.unhealthy", unhealthy, COUNT);
    }
    leaves.set("upstream.health", health, None);
    if let Some(found) = outlier_detection {
        let OutlierDetection {
            errors,
            gateway_errors,
            local_errors,
            split,
            ejection,
            longest_ejection,
            interval,
            most,
        } = found;
        leaves.set("upstream.outlier_detection.errors", errors, Some(COUNT));
        leaves.set("upstream.outlier_detection.gateway_errors", gateway_errors, Some(COUNT));
        leaves.set("upstream.outlier_detection.local_errors", local_errors, Some(COUNT));
        leaves.flip("upstream.outlier_detection.split", split);
        leaves.set("upstream.outlier_detection.ejection", ejection, TIME);
        leaves.set("upstream.outlier_detection.longest_ejection", longest_ejection, TIME);
        leaves.set("upstream.outlier_detection.interval", interval, TIME);
        leaves.set("upstream.outlier_detection.most", most, 77);
    }
    leaves.set("upstream.outlier_detection", outlier_detection, None);
    let UpstreamLimits { connections, pending, pending_timeout, requests, retries: most_retries } = limits;
    leaves.set("upstream.limits.connections", connections, Some(COUNT));
    leaves.set("upstream.limits.pending", pending, Some(7));
    leaves.set("upstream.limits.pending_timeout", pending_timeout, Some(TIME));
    leaves.set("upstream.limits.requests", requests, Some(COUNT));
    leaves.set("upstream.limits.retries", most_retries, Some(7));
    if let Some(UpstreamTls {
        server_name,
        ca,
        ca_place: _,
        certificate,
        verify,
        verify_name,
        names,
        alpn,
        parameters: TlsParameters { min, max, groups, ciphers },
    }) = tls
    {
        leaves.set("upstream.tls.min", min, Version::Tls13);
        leaves.set("upstream.tls.max", max, Version::Tls12);
        leaves.set("upstream.tls.groups", groups, vec![Group::P256]);
        leaves.set("upstream.tls.ciphers", ciphers, vec!["ECDHE-ECDSA-AES128-GCM-SHA256".into()]);
        leaves.set("upstream.tls.server_name", server_name, Some("other.example".into()));
        leaves.source("upstream.tls.ca", ca.as_mut().expect("a CA"));
        leaves.set("upstream.tls.certificate", certificate, None);
        leaves.flip("upstream.tls.verify", verify);
        leaves.flip("upstream.tls.verify_name", verify_name);
        leaves.set("upstream.tls.names", names, vec![spiffe()]);
        leaves.set("upstream.tls.alpn", alpn, UpstreamAlpn::Istio);
    }
    leaves.set("upstream.tls", tls, None);
    leaves.set("upstream.more_transports", more_transports, vec![None]);
    leaves.flip("upstream.host_from_request", host_from_request);
    leaves.set("upstream.protocol", protocol, UpstreamProtocol::Http2);
    leaves.set("upstream.proxy_protocol", proxy_protocol, ProxyProtocolOut::V2);
    leaves.set("upstream.retries", retries, 7);
    leaves.set("upstream.pool", pool, COUNT);
    let UpstreamTimeouts { connect, read, write, idle } = timeouts;
    leaves.set("upstream.timeouts.connect", connect, TIME);
    leaves.set("upstream.timeouts.read", read, TIME);
    leaves.set("upstream.timeouts.write", write, TIME);
    leaves.set("upstream.timeouts.idle", idle, TIME);
}

fn spiffe() -> AltName {
    let rule = TextRule::Exact("spiffe://cluster.local/ns/default/sa/default".to_owned());
    AltName { kind: AltNameKind::Uri, text: TextMatch { rule, ignore_case: false } }
}
