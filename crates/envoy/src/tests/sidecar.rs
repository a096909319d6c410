//! Istio's sidecar configuration: redirected connections, listeners without sockets, endpoints at original
//! destinations.

use super::{gateway, only_listener, problems, warnings};
use quadrille_config::model::{ClientOrigin, Gateway, Ports, Redirected, Serve, Transport, UpstreamProtocol};

/// Returns a bootstrap with one listener at this port that has these fields and proxies TCP, and a cluster with
/// these.
fn bootstrap(port: u16, listener: &str, cluster: &str) -> String {
    format!(
        "
static_resources:
  listeners:
  - name: l
    address: {{ socket_address: {{ address: 0.0.0.0, port_value: {port} }} }}
{}
  clusters:
  - name: c
{}
",
        super::indented(listener, 4),
        super::indented(cluster, 4)
    )
}

/// Returns a filter chain with this condition, which proxies TCP.
fn chain(condition: &str) -> String {
    format!(
        "- filter_chain_match: {{ {condition} }}
  filters:
  - name: envoy.filters.network.tcp_proxy
    typed_config:
      \"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
      stat_prefix: c
      cluster: c
"
    )
}

const STATIC: &str = "type: STATIC";
const PASSTHROUGH: &str = "type: ORIGINAL_DST\nlb_policy: CLUSTER_PROVIDED";

fn listener(fields: &str) -> Gateway {
    gateway(&bootstrap(15001, &format!("{fields}\nfilter_chains:\n{}", chain("")), STATIC))
}

/// Returns a bootstrap with every field for redirected connections.
pub(super) fn all() -> String {
    let listener = "use_original_dst: true
additional_addresses: [ { address: { socket_address: { address: \"::1\", port_value: 15001 } } } ]
listener_filters:
- name: envoy.filters.listener.tls_inspector
  filter_disabled: { or_match: { rules: [ { destination_port_range: { start: 1, end: 2 } } ] } }
";
    let cluster = format!(
        "{PASSTHROUGH}
original_dst_lb_config: {{ upstream_port_override: 8081 }}
upstream_bind_config: {{ source_address: {{ address: 127.0.0.6, port_value: 0 }}, extra_source_addresses: [ {{ address: {{ address: \"::6\", port_value: 0 }} }} ] }}"
    );
    bootstrap(15001, &format!("{listener}filter_chains:\n{}", chain("")), &cluster)
}

#[test]
fn listeners_hand_over_or_take_what_is_handed_over() {
    for (fields, bound, redirected) in [
        ("", true, Redirected::Unasked),
        ("use_original_dst: false", true, Redirected::Unasked),
        ("use_original_dst: true", true, Redirected::HandedOver),
        ("bind_to_port: false", false, Redirected::Unasked),
        ("bind_to_port: true", true, Redirected::Unasked),
        ("listener_filters: [ { name: envoy.filters.listener.original_dst } ]", true, Redirected::Served),
        (
            "listener_filters: [ { name: x, typed_config: { \"@type\": a/envoy.extensions.filters.listener.original_dst.v3.OriginalDst } } ]\nuse_original_dst: true",
            true,
            Redirected::HandedOver,
        ),
    ] {
        let gateway = listener(fields);
        let listener = only_listener(&gateway);
        assert_eq!((listener.bound, listener.redirected), (bound, redirected), "{fields}");
    }
}

#[test]
fn inspectors_look_where_they_are_not_disabled() {
    let filter = |name: &str, disabled: &str| {
        format!(
            "listener_filters: [ {{ name: envoy.filters.listener.{name}, filter_disabled: {{ {disabled} }} }} ]"
        )
    };
    let range = |start: u16| format!("destination_port_range: {{ start: {start}, end: {} }}", start + 1);
    let two = format!("rules: [ {{ {} }}, {{ {} }} ]", range(80), range(90));
    for (disabled, expected) in [
        (range(80), vec![(0, 79), (81, u16::MAX)]),
        (format!("or_match: {{ {two} }}"), vec![(0, 79), (81, 89), (91, u16::MAX)]),
        (format!("and_match: {{ {two} }}"), vec![(0, u16::MAX)]),
        (format!("not_match: {{ or_match: {{ {two} }} }}"), vec![(80, 80), (90, 90)]),
        ("any_match: true".to_owned(), vec![]),
    ] {
        for name in ["tls_inspector", "http_inspector"] {
            let gateway = listener(&filter(name, &disabled));
            let inspection = &only_listener(&gateway).inspection;
            let found = if name == "tls_inspector" { &inspection.tls } else { &inspection.http };
            assert_eq!(found.0, expected, "{name} {disabled}");
        }
    }
    let gateway = listener("continue_on_listener_filters_timeout: true\nlistener_filters_timeout: 7s");
    let inspection = &only_listener(&gateway).inspection;
    assert!(inspection.continues && inspection.timeout.as_secs() == 7);
    assert_eq!((&inspection.tls, &inspection.http), (&Ports::none(), &Ports::none()));
}

/// Detects TLS as Envoy does if chains cannot be distinguished otherwise.
#[test]
fn tls_is_looked_for_where_chains_need_it() {
    for (condition, expected) in [
        ("transport_protocol: raw_buffer, application_protocols: [ http/1.1 ]", Ports::none()),
        ("transport_protocol: tls", Ports::all()),
        ("server_names: [ a ]", Ports::all()),
        ("application_protocols: [ istio ]", Ports::all()),
        ("destination_port: 15001", Ports::none()),
    ] {
        let text = bootstrap(15001, &format!("filter_chains:\n{}", chain(condition)), STATIC);
        assert_eq!(only_listener(&gateway(&text)).inspection.tls, expected, "{condition}");
    }
}

#[test]
fn chains_match_destination_and_source() {
    let condition = "destination_port: 8080, prefix_ranges: [ { address_prefix: 10.0.0.0, prefix_len: 8 }, { address_prefix: \"fd00::\", prefix_len: 8 } ], \
         direct_source_prefix_ranges: [ { address_prefix: 192.0.2.0, prefix_len: 24 } ], source_type: EXTERNAL, \
         source_prefix_ranges: [ { address_prefix: 198.51.100.7, prefix_len: 32 } ], source_ports: [ 5, 6 ], transport_protocol: tls";
    let text =
        bootstrap(15006, &format!("use_original_dst: true\nfilter_chains:\n{}", chain(condition)), STATIC);
    let gateway = gateway(&text);
    let accepts = &only_listener(&gateway).chains[0].accepts;
    let shown = |networks: &[quadrille_config::model::Network]| {
        networks.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(accepts.destination_port, Some(8080));
    assert_eq!(shown(&accepts.destinations), ["10.0.0.0/8", "fd00::/8"]);
    assert_eq!(shown(&accepts.peers), ["192.0.2.0/24"]);
    assert_eq!(shown(&accepts.clients), ["198.51.100.7/32"]);
    assert_eq!((accepts.origin, &accepts.client_ports[..]), (Some(ClientOrigin::Elsewhere), &[5, 6][..]));
    assert_eq!(accepts.transport, Some(Transport::Tls));
}

#[test]
fn servers_may_be_where_connections_were_going() {
    let with = |cluster: &str| gateway(&bootstrap(15001, &format!("filter_chains:\n{}", chain("")), cluster));
    let plain = with(PASSTHROUGH);
    assert!(matches!(&only_listener(&plain).chains[0].serve, Serve::Tcp(_)));
    let upstream = &plain.upstreams["c"];
    assert_eq!(upstream.original_destination.as_ref().map(|original| original.port), Some(None));
    assert!(upstream.servers.is_empty() && upstream.source_addresses.is_empty());
    assert_eq!(upstream.protocol, UpstreamProtocol::Http1);
    let more = with(&format!(
        "{PASSTHROUGH}
cleanup_interval: 9223372035s
original_dst_lb_config: {{ upstream_port_override: 8081 }}
upstream_bind_config: {{ source_address: {{ address: 127.0.0.6, port_value: 0 }}, extra_source_addresses: [ {{ address: {{ address: \"::6\", port_value: 0 }} }} ] }}
typed_extension_protocol_options:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    \"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    use_downstream_protocol_config: {{ http_protocol_options: {{}}, http2_protocol_options: {{}} }}"
    ));
    let upstream = &more.upstreams["c"];
    assert_eq!(upstream.original_destination.as_ref().and_then(|original| original.port), Some(8081));
    let sources: Vec<_> = upstream.source_addresses.iter().map(ToString::to_string).collect();
    assert_eq!(sources, ["127.0.0.6", "::6"]);
    assert_eq!(upstream.protocol, UpstreamProtocol::OfRequest);
    assert_eq!(with(STATIC).upstreams["c"].original_destination, None);
    let unchecked = format!(
        "{PASSTHROUGH}\nhealth_checks: [ {{ timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {{}} }} ]\noutlier_detection: {{}}"
    );
    let text = bootstrap(15001, &format!("filter_chains:\n{}", chain("")), &unchecked);
    let told = warnings(&text).join("\n");
    assert!(told.contains("endpoints of type ORIGINAL_DST are not known in advance"), "{told}");
    let upstream = &gateway(&text).upstreams["c"];
    assert!(upstream.health.is_none() && upstream.outlier_detection.is_none());
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let proxy = "envoy.filters.listener.proxy_protocol";
    let of_listener = |fields: &str, condition: &str| {
        bootstrap(15001, &format!("{fields}\nfilter_chains:\n{}", chain(condition)), STATIC)
    };
    let of_cluster = |fields: &str| bootstrap(15001, &format!("filter_chains:\n{}", chain("")), fields);
    for (text, expected) in [
        (of_listener("", "destination_port: 8080"), "this listener receives no connections on port 8080"),
        (of_listener("use_original_dst: true", "destination_port: 0"), "0 is not a port"),
        (of_listener("", "source_ports: [ 70000 ]"), "70000 is not a port"),
        (of_listener("", "source_type: NEAR"), "`NEAR` is not supported here"),
        (of_listener("", "address_suffix: 10.0.0.1"), "address_suffix: refused"),
        (of_listener("transparent: true", ""), "connections are redirected by `REDIRECT`, not by `TPROXY`"),
        (
            of_listener(&format!("use_original_dst: true\nlistener_filters: [ {{ name: {proxy} }} ]"), ""),
            "the destination of the PROXY protocol differs",
        ),
        (
            of_listener(
                &format!("listener_filters: [ {{ name: {proxy}, filter_disabled: {{ any_match: true }} }} ]"),
                "",
            ),
            "only inspectors can be disabled for some connections",
        ),
        (
            of_listener(
                "listener_filters: [ { name: envoy.filters.listener.tls_inspector, filter_disabled: {} } ]",
                "",
            ),
            "the condition is empty",
        ),
        (
            of_listener(
                "listener_filters: [ { name: envoy.filters.listener.tls_inspector, filter_disabled: { moon: full } } ]",
                "",
            ),
            "filter_disabled.moon: refused",
        ),
        (of_cluster("type: ORIGINAL_DST"), "write `lb_policy: CLUSTER_PROVIDED`"),
        (of_cluster("lb_policy: CLUSTER_PROVIDED"), "`CLUSTER_PROVIDED` is not supported here"),
        (
            of_cluster(&format!("{PASSTHROUGH}\nload_assignment: {{ cluster_name: c }}")),
            "the destination is determined by the connection",
        ),
        (
            of_cluster(&format!("{PASSTHROUGH}\noriginal_dst_lb_config: {{ use_http_header: true }}")),
            "clients could select any endpoint",
        ),
        (
            of_cluster(&format!("{PASSTHROUGH}\noriginal_dst_lb_config: {{ upstream_port_override: 0 }}")),
            "0 is not a port",
        ),
        (
            of_cluster("upstream_bind_config: { source_address: { address: 127.0.0.6, port_value: 7 } }"),
            "one port allows one connection",
        ),
        (of_cluster("upstream_bind_config: { freebind: true }"), "freebind: refused"),
    ] {
        let found = problems(&text);
        assert!(found.contains(expected), "{found}\nis not: {expected}\n{text}");
    }
    let udp =
        super::quic::BOTH.replace("udp_listener_config:", "use_original_dst: true\n    udp_listener_config:");
    assert!(problems(&udp).contains("UDP listeners support neither redirection"));
}

/// Listeners without sockets are selected by the original destination, so their addresses must be unique.
#[test]
fn listeners_without_sockets_have_addresses_of_their_own() {
    let one = format!(
        "  - name: NAME\n    address: {{ socket_address: {{ address: 0.0.0.0, port_value: 80 }} }}\n    bind_to_port: false\n    filter_chains:\n{}",
        super::indented(&chain(""), 4)
    );
    let two = [one.replace("NAME", "a"), one.replace("NAME", "b")].join("\n");
    let text = format!("static_resources:\n  listeners:\n{two}\n  clusters: [ {{ name: c }} ]\n");
    assert!(problems(&text).contains("`a` already has this address"));
}

/// Negotiates the protocols offered by proxies of the mesh, if Quadrille supports them.
#[test]
fn the_names_of_a_mesh_are_agreed_upon() {
    for (alpn, condition, expected) in [
        ("h2, http/1.1", "", &["h2", "http/1.1"][..]),
        ("h2, http/1.1", "application_protocols: [ other ]", &["h2", "http/1.1"]),
        (
            "h2, http/1.1",
            "application_protocols: [ istio-http/1.0, istio-http/1.1, istio-h2 ]",
            &["h2", "http/1.1", "istio-h2", "istio-http/1.1", "istio-http/1.0"],
        ),
        (
            "istio-peer-exchange, h2, http/1.1",
            "application_protocols: [ istio-peer-exchange, istio ]",
            &["h2", "http/1.1", "istio"],
        ),
        ("istio-peer-exchange, h2", "", &["h2", "istio"]),
    ] {
        let text = super::with_common(&format!("{}\nalpn_protocols: [ {alpn} ]", super::CERTIFICATE));
        let condition = format!("- filter_chain_match: {{ {condition} }}\n      transport_socket:");
        let gateway = gateway(&text.replacen("- transport_socket:", &condition, 1));
        assert_eq!(super::tls(&gateway).policy.alpn, expected, "{alpn} {condition}");
    }
}

#[test]
fn listeners_may_have_several_addresses() {
    for (more, expected) in [
        ("\"::\"", &["[::]:15001"][..]),
        ("127.0.0.1", &["0.0.0.0:15001", "127.0.0.1:15001"]),
        ("\"::1\"", &["0.0.0.0:15001", "[::1]:15001"]),
    ] {
        let address =
            format!("{{ address: {{ socket_address: {{ address: {more}, port_value: 15001 }} }} }}");
        let gateway = listener(&format!("bind_to_port: false\nadditional_addresses: [ {address} ]"));
        let found: Vec<_> = gateway.listeners.iter().map(|listener| listener.address.to_string()).collect();
        assert_eq!(found, expected);
        assert!(gateway.listeners.iter().all(|listener| listener.name == "l" && !listener.bound));
    }
}
