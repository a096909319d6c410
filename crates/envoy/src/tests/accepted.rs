//! Fields that are read have an effect on the model.

use super::{
    CERTIFICATE, gateway, only_chain, only_listener, read, tls, warnings, with_common, with_route_config,
    with_tls,
};
use quadrille_config::model::{
    AccessLog, AltNameKind, Balance, ClientAuth, DnsRefresh, Group, HealthProbe, HttpProbe, LookupFamily,
    ProxyProtocolIn, Serve, SessionCache, TextRule, TicketKeys, Transport, UpstreamProtocol, Version,
};
use std::time::Duration;

fn common(fields: &str) -> String {
    with_common(&format!("{CERTIFICATE}\n{fields}"))
}

#[test]
fn versions_suites_and_curves() {
    let gateway = gateway(&common(
        "tls_params:\n  tls_minimum_protocol_version: TLSv1_2\n  tls_maximum_protocol_version: 3\n  cipher_suites: [ \"[A|B]\", C:D ]\n  ecdh_curves: [ P-256, X25519 ]\nalpn_protocols: [ \"h2,http/1.1\" ]",
    ));
    let policy = &tls(&gateway).policy;
    assert_eq!((policy.min, policy.max), (Version::Tls12, Version::Tls12));
    assert_eq!(policy.ciphers, ["[A|B]", "C", "D"]);
    assert_eq!(policy.groups, [Group::P256, Group::X25519]);
    assert_eq!(policy.alpn, ["h2", "http/1.1"]);
}

#[test]
fn what_is_asked_of_clients() {
    let text = with_tls(&format!(
        "requireClientCertificate: true
commonTlsContext:
  {CERTIFICATE}
  validation_context:
    trusted_ca: {{ filename: /ca.pem }}
    crl: {{ filename: /crl.pem }}
    verify_certificate_hash: [ \"{}\" ]
    verify_certificate_spki: [ AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= ]
    match_typed_subject_alt_names:
    - {{ san_type: URI, matcher: {{ prefix: \"spiffe://\" }} }}
    - {{ san_type: 2, matcher: {{ suffix: .example, ignore_case: true }} }}",
        ["ab"; 32].join(":")
    ));
    let gateway = gateway(&text);
    let ClientAuth::Required(check) = &tls(&gateway).policy.client_auth else { panic!("not required") };
    assert_eq!(check.ca.as_ref().unwrap().0.to_string(), "/ca.pem");
    assert_eq!(check.revoked.as_ref().unwrap().0.to_string(), "/crl.pem");
    assert_eq!(check.certificates, [[0xab; 32]]);
    assert_eq!(check.public_keys, [[0; 32]]);
    assert_eq!(
        check.names.iter().map(|name| name.kind).collect::<Vec<_>>(),
        [AltNameKind::Uri, AltNameKind::Dns]
    );
    assert!(check.names[1].text.ignore_case);
}

#[test]
fn a_ca_alone_asks_without_requiring() {
    let gateway = gateway(&common("validation_context: { trusted_ca: { inline_string: PEM } }"));
    assert!(matches!(tls(&gateway).policy.client_auth, ClientAuth::Optional(_)));
}

#[test]
fn bytes_in_four_ways() {
    let key = |source: &str| {
        let text = with_common(&format!(
            "tls_certificates: [ {{ certificate_chain: {{ filename: /c }}, private_key: {source} }} ]"
        ));
        let gateway = gateway(&text);
        let quadrille_config::model::KeySource::Pem(source) = tls(&gateway).certificates[0].key.clone()
        else {
            panic!("not here")
        };
        source
    };
    assert_eq!(key("{ filename: /k.pem }").to_string(), "/k.pem");
    assert_eq!(key("{ inline_string: secret }").read().unwrap().as_slice(), b"secret");
    assert_eq!(key("{ inline_bytes: c2Vj cmV0 }").read().unwrap().as_slice(), b"secret");
    let path = std::env::var("PATH").unwrap();
    assert_eq!(key("{ environment_variable: PATH }").read().unwrap().as_slice(), path.as_bytes());
}

#[test]
fn secrets_by_name_and_what_the_default_adds() {
    let text = with_tls(
        "common_tls_context:
  tls_certificate_sds_secret_configs: { name: server }
  combined_validation_context:
    default_validation_context: { match_typed_subject_alt_names: [ { san_type: DNS, matcher: { exact: a } } ] }
    validation_context_sds_secret_config: { name: ca }",
    ) + "  secrets:
  - { name: server, tls_certificate: { certificate_chain: { filename: /c }, private_key: { filename: /k } } }
  - { name: ca, validation_context: { trusted_ca: { filename: /ca } } }
";
    let gateway = gateway(&text);
    assert_eq!(tls(&gateway).certificates[0].chain.to_string(), "/c");
    let ClientAuth::Optional(check) = &tls(&gateway).policy.client_auth else { panic!("not optional") };
    assert!(check.ca.is_some() && check.names.len() == 1);
    assert!(matches!(&check.names[0].text.rule, TextRule::Exact(name) if name == "a"));
}

#[test]
fn sessions_are_the_processs() {
    let gateway_of =
        |fields: &str| gateway(&with_tls(&format!("common_tls_context: {{ {CERTIFICATE} }}\n{fields}")));
    let keys = gateway_of(
        "session_ticket_keys: { keys: [ { filename: /1 }, { filename: /2 } ] }\nsession_timeout: 600s",
    );
    assert!(matches!(&keys.resumption.tickets, TicketKeys::Files(files, _) if files.len() == 2));
    assert_eq!(keys.resumption.lifetime, Duration::from_secs(600));
    let off =
        gateway_of("disable_stateless_session_resumption: true\ndisable_stateful_session_resumption: true");
    assert!(matches!(off.resumption.tickets, TicketKeys::Off));
    assert!(matches!(off.resumption.cache, SessionCache::Off));
}

#[test]
fn chains_by_name_protocol_and_transport() {
    let chain = |name: &str, rules: &str| {
        format!(
            "    - name: {name}\n      filter_chain_match: {rules}\n      filters:\n      - name: envoy.filters.network.tcp_proxy\n        typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, cluster: {name}, idle_timeout: 60s }}\n"
        )
    };
    let text = format!(
        "static_resources:\n  listeners:\n  - address: {{ socket_address: {{ address: \"::\", port_value: 443 }} }}\n    listener_filters_timeout: 5s\n    listener_filters:\n    - name: envoy.filters.listener.tls_inspector\n      typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector }}\n    - name: envoy.filters.listener.proxy_protocol\n      typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol }}\n    filter_chains:\n{}{}{}",
        chain("a", "{ server_names: [ A.example, \"*.b.example\" ], destination_port: 443 }"),
        chain("b", "{ transport_protocol: tls, application_protocols: [ h2 ] }"),
        "    default_filter_chain:\n      name: rest\n      filters:\n      - name: t\n        typed_config: { \"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, weighted_clusters: { clusters: [ { name: x, weight: 3 }, { name: y, weight: 0 }, { name: z, weight: 1 } ] } }\n"
    );
    let gateway = gateway(&text);
    let listener = only_listener(&gateway);
    assert_eq!(listener.name, "[::]:443");
    assert_eq!(listener.proxy_protocol, ProxyProtocolIn::Required);
    assert_eq!(listener.inspection.timeout, Duration::from_secs(5));
    let [first, second] = listener.chains.as_slice() else { panic!("not two") };
    assert_eq!(first.accepts.server_names, ["a.example", "*.b.example"]);
    assert_eq!(first.timeouts.idle, Duration::from_secs(60));
    assert_eq!(second.accepts.transport, Some(Transport::Tls));
    assert_eq!(second.accepts.application_protocols, ["h2"]);
    let Serve::Tcp(to) = &listener.default_chain.as_ref().unwrap().serve else { panic!("not TCP") };
    let shares: Vec<_> = to.iter().map(|to| (to.upstream.as_str(), to.weight.get())).collect();
    assert_eq!(shares, [("x", 3), ("z", 1)]);
}

#[test]
fn listeners_with_istios_filters_are_accepted() {
    let text = with_route_config("virtual_hosts: []")
        + "          http_filters:
          - name: istio.metadata_exchange
            typed_config: { \"@type\": type.googleapis.com/udpa.type.v1.TypedStruct, type_url: type.googleapis.com/io.istio.http.peer_metadata.Config, value: { upstream_discovery: [] } }
          - name: istio.alpn
            typed_config: { \"@type\": type.googleapis.com/istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig }
          - name: istio.stats
            typed_config: { \"@type\": type.googleapis.com/stats.PluginConfig, disable_host_header_fallback: true }
          - name: envoy.filters.http.fault
            typed_config: { \"@type\": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault }
          - name: envoy.filters.http.router
            typed_config: { \"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
";
    assert_eq!(warnings(&text), Vec::<String>::new());
    let fault = "fault.v3.HTTPFault, abort: { http_status: 503, percentage: { numerator: 1 } } }";
    let lines = warnings(&text.replace("fault.v3.HTTPFault }", fault));
    assert!(lines[0].contains("faults are configured by routes"), "{lines:?}");
}

#[test]
fn one_warning_for_all_places_of_a_field() {
    let host = |name: &str| {
        format!("- {{ name: {name}, domains: [{name}], routes: [], virtual_clusters: [ {{}} ] }}\n")
    };
    let lines =
        warnings(&with_route_config(&format!("virtual_hosts:\n{}{}{}", host("a"), host("b"), host("c"))));
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].starts_with("e.yaml:14 (static_resources.listeners[0].filter_chains[0].filters[0]"),
        "{lines:?}"
    );
    assert!(lines[0].ends_with(
        "virtual_hosts[0].virtual_clusters): ignored: only used for statistics (and in 2 other places)"
    ));
}

#[test]
fn limits_of_requests() {
    let plain = with_route_config("virtual_hosts: []");
    let limited = plain.clone()
        + "          max_request_headers_kb: 96\n          request_timeout: 7s\n          request_headers_timeout: 3s\n";
    for (text, header_limit, request, header) in
        [(plain, 64 * 1024, None, 30), (limited, 96 * 1024, Some(Duration::from_secs(7)), 3)]
    {
        let gateway = gateway(&text);
        let chain = only_chain(&gateway);
        let Serve::Http(http) = &chain.serve else { panic!("not HTTP") };
        assert_eq!(http.limits.header, header_limit);
        assert_eq!((chain.timeouts.request, chain.timeouts.header), (request, Duration::from_secs(header)));
    }
}

#[test]
fn an_access_log() {
    let text = with_route_config("virtual_hosts: []")
        + "          access_log: [ { typed_config: { \"@type\": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: /dev/stdout } } ]\n";
    assert_eq!(gateway(&text).access_log, AccessLog::Stdout);
    assert_eq!(only_chain(&gateway(&text)).timeouts.idle, Duration::from_secs(3600));
}

#[test]
fn the_admin_address() {
    let text = with_route_config("virtual_hosts: []")
        + "admin: { address: { socket_address: { address: 127.0.0.1, port_value: 9901 } } }\n";
    assert_eq!(gateway(&text).admin.unwrap().address.unwrap().port(), 9901);
    assert!(
        gateway(&with_route_config("virtual_hosts: []")).admin.is_none(),
        "Envoy has none unless configured"
    );
}

#[test]
fn clusters() {
    let text = "static_resources:
  clusters:
  - name: app
    type: STRICT_DNS
    lb_policy: RING_HASH
    dns_refresh_rate: 20s
    dns_lookup_family: V4_ONLY
    connect_timeout: 0.25s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        \"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http2_protocol_options: {} }
    health_checks: { timeout: 1s, interval: 2s, unhealthy_threshold: 3, healthy_threshold: 2, http_health_check: { path: /ok } }
    transport_socket:
      name: tls
      typed_config:
        \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: app.example
        common_tls_context:
          tls_certificates: { certificate_chain: { filename: /c.pem }, private_key: { filename: /k.pem } }
          validation_context:
            trusted_ca: { filename: /ca.pem }
            match_typed_subject_alt_names: [ { san_type: DNS, matcher: { exact: app.example } } ]
    load_assignment:
      cluster_name: app
      endpoints:
      - priority: 1
        lb_endpoints: [ { endpoint: { address: { socket_address: { address: spare.example, port_value: 1 } } } } ]
      - lb_endpoints:
        - { endpoint: { address: { socket_address: { address: a.example, port_value: 443 } } }, load_balancing_weight: 5 }
        - { endpoint: { address: { socket_address: { address: b.example, port_value: 443 } } }, health_status: DRAINING }
        - { endpoint: { address: { socket_address: { address: \"::1\", port_value: 443 } } } }
  - name: plain
    respect_dns_ttl: true
    load_assignment: { endpoints: { lb_endpoints: { endpoint: { address: { socket_address: { address: 10.0.0.1, port_value: 80 } } } } } }
";
    let gateway = gateway(text);
    let app = &gateway.upstreams["app"];
    let servers: Vec<_> =
        app.servers.iter().map(|server| (server.address.as_str(), server.weight.get())).collect();
    assert_eq!(servers, [("a.example:443", 5), ("[::1]:443", 1), ("spare.example:1", 1)]);
    assert_eq!(app.servers.iter().map(|server| server.priority).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!((app.balance, app.protocol, app.retries), (Balance::Hash, UpstreamProtocol::Http2, 0));
    assert_eq!(app.timeouts.connect, Duration::from_millis(250));
    assert_eq!(app.dns_refresh, DnsRefresh::Every(Duration::from_secs(20)));
    assert_eq!(app.dns_lookup_family, LookupFamily::V4Only);
    assert_eq!(gateway.upstreams["plain"].dns_refresh, DnsRefresh::ByTtl);
    let health = app.health.as_ref().unwrap();
    assert_eq!((&health.probe, health.unhealthy.get()), (&HealthProbe::Http(HttpProbe::get("/ok")), 3));
    let upstream_tls = app.tls.as_ref().unwrap();
    assert!(upstream_tls.verify && upstream_tls.verify_name);
    assert_eq!(upstream_tls.server_name.as_deref(), Some("app.example"));
    assert_eq!(upstream_tls.certificate.as_ref().unwrap().chain.to_string(), "/c.pem");
    assert_eq!(gateway.upstreams["plain"].protocol, UpstreamProtocol::Http1);
    assert_eq!(warnings(text), Vec::<String>::new());
}

#[test]
fn poll_delays_that_differ() {
    let one = |delay: &str| {
        format!(
            "{{ certificate_chain: {{ filename: /c }}, private_key_provider: {{ provider_name: cryptomb, typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.private_key_providers.cryptomb.v3alpha.CryptoMbPrivateKeyMethodConfig, private_key: {{ filename: /k }}, poll_delay: {delay} }} }} }}"
        )
    };
    let text = with_common(&format!("tls_certificates:\n- {}\n- {}", one("10ms"), one("2ms")));
    let gateway = gateway(&text);
    let delays: Vec<_> =
        tls(&gateway).certificates.iter().map(|certificate| certificate.poll_delay).collect();
    assert_eq!(delays, [10, 2].map(|milliseconds| Some(Duration::from_millis(milliseconds))));
    assert_eq!(warnings(&text), Vec::<String>::new());
}

#[test]
fn the_node_and_dynamic_resources_are_read() {
    let bootstrap = read(
        "node: { id: n1, cluster: c1, metadata: { a: [1] } }
dynamic_resources:
  ads_config:
    api_type: DELTA_GRPC
    transport_api_version: V3
    grpc_services: [ { envoy_grpc: { cluster_name: xds }, initial_metadata: [ { key: k, value: v } ] } ]
  lds_config: { ads: {}, resource_api_version: V3 }
  cds_config: { ads: {}, resource_api_version: V3 }
static_resources:
  clusters:
  - { name: xds, http2_protocol_options: {}, load_assignment: { endpoints: { lb_endpoints: { endpoint: { address: { pipe: { path: /run/xds.sock } } } } } } }
",
    );
    let ads = bootstrap.dynamic.ads.as_ref().unwrap();
    assert!(ads.delta && ads.cluster == "xds" && ads.metadata == [("k".to_owned(), "v".to_owned())]);
    assert_eq!((bootstrap.node_id.as_str(), bootstrap.node_cluster.as_str()), ("n1", "c1"));
    assert!(bootstrap.is_dynamic() && bootstrap.resources.clusters["xds"].speaks_http2());
    let upstreams = bootstrap.model().unwrap().0.upstreams;
    assert_eq!(upstreams["xds"].servers[0].address, "unix:/run/xds.sock");
}
