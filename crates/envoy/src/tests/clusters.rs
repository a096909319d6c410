//! Clusters as configured by Istio's control plane.

use super::{gateway, problems, warnings};
use quadrille_config::model::{
    AltNameKind, Group, ProxyProtocolOut, TextRule, UpstreamAlpn, UpstreamProtocol, Version,
};

/// A cluster with two transport sockets, selected by the metadata of its endpoints. SOCKET is the one for endpoints
/// of the mesh.
const MESHED: &str = r#"
static_resources:
  secrets:
  - { name: default, tls_certificate: { certificate_chain: { filename: /c.pem }, private_key: { filename: /k.pem } } }
  - { name: ROOTCA, validation_context: { trusted_ca: { filename: /root.pem } } }
  clusters:
  - name: outbound|80||backend.example.com
    type: STATIC
    filters:
    - name: istio.metadata_exchange
      typed_config: { "@type": type.googleapis.com/envoy.tcp.metadataexchange.config.MetadataExchange, protocol: istio-peer-exchange }
    transport_socket_matches:
    - name: tlsMode-istio
      match: { tlsMode: istio }
      transport_socket: SOCKET
    - name: tlsMode-disabled
      match: {}
      transport_socket: { name: raw, typed_config: { "@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer } }
    load_assignment:
      cluster_name: c
      endpoints:
      - lb_endpoints:
        - { endpoint: { address: { socket_address: { address: 10.0.0.1, port_value: 80 } } }, metadata: { filter_metadata: { envoy.transport_socket_match: { tlsMode: istio } } } }
        - { endpoint: { address: { socket_address: { address: 10.0.0.2, port_value: 80 } } } }
      - metadata: { filterMetadata: { envoy.transport_socket_match: { tlsMode: istio, other: x } } }
        lb_endpoints: [ { endpoint: { address: { socket_address: { address: 10.0.0.3, port_value: 80 } } } } ]
"#;

const MUTUAL: &str = r#"{ name: tls, typed_config: { "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext,
        sni: outbound_.80_._.backend.example.com,
        common_tls_context: { alpn_protocols: [ istio-peer-exchange, istio ],
          tls_params: { tls_minimum_protocol_version: TLSv1_2, tls_maximum_protocol_version: TLSv1_3 },
          tls_certificate_sds_secret_configs: [ { name: default } ],
          combined_validation_context: { validation_context_sds_secret_config: { name: ROOTCA },
            default_validation_context: { match_subject_alt_names: [ { exact: "spiffe://cluster.local/ns/a/sa/b" } ] } } } } }"#;

#[test]
fn servers_are_reached_by_what_they_say_of_themselves() {
    let text = MESHED.replace("SOCKET", MUTUAL);
    let gateway = gateway(&text);
    let upstream = &gateway.upstreams["outbound|80||backend.example.com"];
    let ways: Vec<_> =
        upstream.servers.iter().map(|server| (server.address.as_str(), server.transport)).collect();
    assert_eq!(ways, [("10.0.0.1:80", 1), ("10.0.0.2:80", 2), ("10.0.0.3:80", 1)]);
    assert!(upstream.transport(0).is_none() && upstream.transport(2).is_none());
    let tls = upstream.transport(1).expect("TLS");
    assert_eq!(tls.server_name.as_deref(), Some("outbound_.80_._.backend.example.com"));
    assert_eq!(tls.certificate.as_ref().expect("a certificate").chain.to_string(), "/c.pem");
    assert_eq!(tls.ca.as_ref().expect("a CA").to_string(), "/root.pem");
    assert!(tls.verify && !tls.verify_name && tls.alpn == UpstreamAlpn::Istio);
    let wanted = tls.names.iter().find(|name| name.kind == AltNameKind::Uri).expect("a URI");
    assert_eq!(wanted.text.rule, TextRule::Exact("spiffe://cluster.local/ns/a/sa/b".to_owned()));
    assert_eq!((tls.parameters.min, tls.parameters.max), (Version::Tls12, Version::Tls13));
    assert_eq!(warnings(&text), Vec::<String>::new());
}

#[test]
fn a_condition_that_is_not_understood_is_refused() {
    let text = MESHED
        .replace("SOCKET", MUTUAL)
        .replace("match: { tlsMode: istio }", "match: { tlsMode: [ istio ] }");
    assert!(
        problems(&text)
            .contains("transport_socket_matches[0].match: refused: only scalar values are matched")
    );
    let text = MESHED.replace("SOCKET", MUTUAL).replace("RawBuffer } }", "Unknown } }");
    assert!(problems(&text).contains("is not supported for upstreams"), "{}", problems(&text));
}

#[test]
fn a_filter_that_may_decide_something_is_refused_on_clusters_too() {
    let text = MESHED
        .replace("SOCKET", MUTUAL)
        .replace(
            "envoy.tcp.metadataexchange.config.MetadataExchange",
            "envoy.extensions.filters.network.wasm.v3.Wasm",
        )
        .replace("name: istio.metadata_exchange", "name: other");
    assert!(problems(&text).contains("filters[0]: the filter"), "{}", problems(&text));
}

#[test]
fn servers_get_a_proxy_header() {
    let proxied = |version: &str| {
        format!(
            "{{ name: p, typed_config: {{ \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport, \
             config: {{ version: {version} }}, transport_socket: {MUTUAL} }} }}"
        )
    };
    let text = |version: &str| {
        let raw = "{ name: raw, typed_config: { \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer } }";
        MESHED.replace("SOCKET", &proxied("V2")).replace(raw, &proxied(version))
    };
    let gateway = gateway(&text("V2"));
    assert_eq!(gateway.upstreams["outbound|80||backend.example.com"].proxy_protocol, ProxyProtocolOut::V2);
    assert!(problems(&text("V1")).contains("create a cluster for each kind"));
}

#[test]
fn the_host_of_a_request_is_sent_and_verified() {
    let cluster = |options: &str| {
        format!(
            "static_resources:
  clusters:
  - name: c
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        \"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{ http2_protocol_options: {{}} }}
        upstream_http_protocol_options: {options}
    transport_socket:
      name: tls
      typed_config:
        \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        sni: other.example
        common_tls_context: {{ validation_context: {{ trusted_ca: {{ filename: /ca.pem }} }} }}
    load_assignment: {{ endpoints: {{ lb_endpoints: {{ endpoint: {{ address: {{ socket_address: {{ address: 10.0.0.1, port_value: 443 }} }} }} }} }} }}
"
        )
    };
    let upstream = |options: &str| gateway(&cluster(options)).upstreams["c"].clone();
    let both = upstream("{ auto_sni: true, auto_san_validation: true }");
    let tls = both.tls.as_ref().expect("TLS");
    assert!(both.host_from_request && tls.verify_name && tls.server_name.is_none());
    assert_eq!(both.protocol, UpstreamProtocol::Http2);
    let sent = upstream("{ auto_sni: true }");
    assert!(sent.host_from_request && !sent.tls.expect("TLS").verify_name);
    // The SNI does not matter: the endpoint must have the listed name.
    let listed = "trusted_ca: { filename: /ca.pem }, match_typed_subject_alt_names: [\
        { san_type: DNS, matcher: { exact: other.example } }]";
    let text = cluster("{ auto_sni: true }").replace("trusted_ca: { filename: /ca.pem }", listed);
    let tls = gateway(&text).upstreams["c"].tls.clone().expect("TLS");
    assert!(!tls.verify_name && tls.server_name.is_none() && tls.names.len() == 1, "{tls:?}");
    assert!(problems(&cluster("{ auto_san_validation: true }")).contains("set both"));
}

#[test]
fn localities_share_the_load_by_their_weights() {
    let text = "static_resources:
  clusters:
  - name: c
    type: STATIC
    common_lb_config: COMMON
    load_assignment:
      endpoints:
      - load_balancing_weight: 80
        lb_endpoints:
        - { endpoint: { address: { socket_address: { address: 10.0.0.1, port_value: 80 } } } }
        - { endpoint: { address: { socket_address: { address: 10.0.0.2, port_value: 80 } } }, load_balancing_weight: 3 }
      - load_balancing_weight: 20
        lb_endpoints: [ { endpoint: { address: { socket_address: { address: 10.0.0.3, port_value: 80 } } } } ]
";
    let weights = |text: &str, common: &str| {
        let gateway = gateway(&text.replace("COMMON", common));
        gateway.upstreams["c"].servers.iter().map(|server| server.weight.get()).collect::<Vec<_>>()
    };
    const BY_LOCALITY: &str = "{ locality_weighted_lb_config: {} }";
    assert_eq!(weights(text, "{}"), [1, 3, 1]);
    assert_eq!(weights(text, BY_LOCALITY), [20_000, 60_000, 20_000]);
    let one_of_them = text.replace("load_balancing_weight: 20\n        lb_endpoints", "lb_endpoints");
    assert_eq!(weights(&one_of_them, "{}"), [1, 3, 1]);
    assert_eq!(weights(&one_of_them, BY_LOCALITY), [20_000, 60_000], "the other gets no load");
    let none = one_of_them.replace("load_balancing_weight: 80\n        lb_endpoints", "lb_endpoints");
    assert_eq!(weights(&none, BY_LOCALITY), [1, 3, 1], "all endpoints share the load by their own weights");
}

#[test]
fn versions_suites_and_curves_are_those_that_the_cluster_says() {
    let parameters = "tls_minimum_protocol_version: TLSv1_1, tls_maximum_protocol_version: TLSv1_2, \
                      cipher_suites: [ ECDHE-RSA-AES128-GCM-SHA256, AES128-SHA ], ecdh_curves: [ P-256 ]";
    let socket = MUTUAL
        .replace("tls_minimum_protocol_version: TLSv1_2, tls_maximum_protocol_version: TLSv1_3", parameters);
    let gateway = gateway(&MESHED.replace("SOCKET", &socket));
    let tls = gateway.upstreams["outbound|80||backend.example.com"].transport(1).expect("TLS");
    let found = &tls.parameters;
    assert_eq!((found.min, found.max), (Version::Tls11, Version::Tls12));
    assert_eq!(found.ciphers, ["ECDHE-RSA-AES128-GCM-SHA256", "AES128-SHA"]);
    assert_eq!(found.groups, [Group::P256]);
}
