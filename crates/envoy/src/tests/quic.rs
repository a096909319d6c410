//! UDP listeners, configured together with TCP listeners.

use super::{gateway, problems, warnings};
use quadrille_config::model::{AltSvc, ClientAuth, SessionCache, TicketKeys, Transport};
use std::time::Duration;

/// A site on TCP and on QUIC, with every QUIC field.
pub(super) const BOTH: &str = r#"
static_resources:
  listeners:
  - name: tcp
    address: { socket_address: { address: 127.0.0.1, port_value: 8443 } }
    filter_chains:
    - transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context: { tls_certificates: [ { certificate_chain: { filename: /c.pem }, private_key: { filename: /k.pem } } ] }
      filters: [ &manager { name: envoy.filters.network.http_connection_manager, typed_config: {
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,
        stat_prefix: tcp,
        route_config: {
          response_headers_to_add: [ { header: { key: alt-svc, value: 'h3=":8443"; ma=86400' } } ],
          virtual_hosts: [ { name: all, domains: ["*"], routes: [ { match: { prefix: / }, direct_response: { status: 200 } } ] } ] } } } ]
  - name: quic
    address: { socket_address: { protocol: UDP, address: 127.0.0.1, port_value: 8443 } }
    udp_listener_config:
      quic_options: { idle_timeout: 120s, crypto_handshake_timeout: 7s }
      downstream_socket_config: { prefer_gro: true }
    filter_chains:
    - filter_chain_match: { transport_protocol: quic, server_names: [ a.example ] }
      transport_socket:
        name: envoy.transport_sockets.quic
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport
          enable_early_data: true
          enable_resumption: true
          downstream_tls_context:
            require_client_certificate: true
            common_tls_context:
              tls_certificates: [ { certificate_chain: { filename: /c.pem }, private_key: { filename: /k.pem } } ]
              validation_context: { trusted_ca: { filename: /ca.pem } }
              alpn_protocols: [ h3 ]
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          codec_type: HTTP3
          stat_prefix: quic
          http3_protocol_options: { allow_extended_connect: true }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
          route_config:
            virtual_hosts: [ { name: all, domains: ["*"], routes: [ { match: { prefix: / }, direct_response: { status: 200 } } ] } ]
"#;

#[test]
fn tcp_and_udp_are_two_listeners_of_one_address() {
    let gateway = gateway(BOTH);
    let [quic, tcp] = gateway.listeners.as_slice() else { panic!("{:?}", gateway.listeners) };
    assert_eq!((&*tcp.name, tcp.tcp, tcp.has_http3()), ("tcp", true, false));
    assert_eq!((&*quic.name, quic.tcp, quic.has_http3()), ("quic", false, true));
    assert_eq!(tcp.address, quic.address);
    let chain = &quic.chains[0];
    assert_eq!(chain.http3.as_ref().map(|http3| &http3.alt_svc), Some(&AltSvc::Off));
    assert_eq!(chain.accepts.transport, Some(Transport::Tls), "the protocol inside QUIC");
    assert_eq!(chain.timeouts.idle, Duration::from_secs(120));
    assert_eq!(chain.timeouts.handshake, Duration::from_secs(7));
    assert!(matches!(chain.tls.as_ref().expect("TLS").policy.client_auth, ClientAuth::Required(_)));
    assert!(warnings(BOTH).is_empty(), "{:?}", warnings(BOTH));
}

#[test]
fn limits_are_envoys_where_nothing_is_said() {
    let text = BOTH.replace("idle_timeout: 120s, crypto_handshake_timeout: 7s", "");
    let timeouts = &gateway(&text).listeners[0].chains[0].timeouts;
    assert_eq!((timeouts.idle, timeouts.handshake), (Duration::from_secs(300), Duration::from_secs(20)));
    let text = BOTH.replace("crypto_handshake_timeout: 7s", "crypto_handshake_timeout: 1s");
    assert_eq!(gateway(&text).listeners[0].chains[0].timeouts.handshake, Duration::from_secs(5));
}

#[test]
fn disabled_resumption_over_quic_disables_it_for_the_process() {
    let resumption = gateway(&BOTH.replace("enable_resumption: true", "enable_resumption: false")).resumption;
    assert!(matches!(resumption.tickets, TicketKeys::Off));
    assert!(!matches!(resumption.cache, SessionCache::Off), "TLS 1.3 does not use it");
}

#[test]
fn what_cannot_be_over_udp_or_tcp() {
    let options = "    udp_listener_config:
      quic_options: { idle_timeout: 120s, crypto_handshake_timeout: 7s }
      downstream_socket_config: { prefer_gro: true }
";
    for (from, to, said) in [
        (options, "", "raw UDP is not proxied; for HTTP/3, write `udp_listener_config"),
        ("quic_options: { idle", "other: { idle", "raw UDP is not proxied"),
        ("codec_type: HTTP3", "codec_type: HTTP2", "`HTTP2` is not supported here; use AUTO, HTTP3"),
        (
            "stat_prefix: tcp",
            "stat_prefix: tcp, codec_type: HTTP3",
            "`HTTP3` is not supported here; use AUTO, HTTP1",
        ),
        ("transport_protocol: quic", "transport_protocol: tls", "not a supported transport protocol"),
        ("protocol: UDP, ", "", "transport socket envoy.extensions.transport_sockets.quic"),
        ("enable_early_data: true", "future: true", "future: refused"),
        ("idle_timeout: 120s", "enabled: { default_value: false }", "enabled: refused: to disable HTTP/3"),
        ("protocol: UDP", "protocol: SCTP", "`SCTP` is not supported here; use TCP, UDP"),
    ] {
        assert!(BOTH.contains(from), "{from}");
        let found = problems(&BOTH.replacen(from, to, 1));
        assert!(found.contains(said), "{from} -> {to}: {found}");
    }
    let twice = BOTH.replace("name: tcp\n    address: { socket_address: { ", "name: tcp\n    udp_listener_config: { quic_options: {} }\n    address: { socket_address: { protocol: UDP, ");
    let found = problems(&twice.replace("DownstreamTlsContext", "QuicDownstreamTransport"));
    assert!(found.contains("downstream_tls_context"), "{found}");
    let header = BOTH.replace(
        options,
        &format!("{options}    listener_filters: [ {{ name: envoy.filters.listener.proxy_protocol }} ]\n"),
    );
    let found = problems(&header);
    assert!(found.contains("the PROXY protocol is not supported for HTTP/3"), "{found}");
}
