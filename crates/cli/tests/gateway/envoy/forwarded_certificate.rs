//! `x-forwarded-client-cert`: the same values as the stock Envoy's.

use super::{
    serving,
    stock::{Both, ask, difference, with_ports},
    upstream,
};
use crate::support::{Certificates, Http3Client, Pair, ports};
use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

const BOOTSTRAP: &str = r#"
admin: { address: { socket_address: { address: 127.0.0.1, port_value: ADMIN } } }
static_resources:
  listeners:
  - name: web
    address: { socket_address: { address: 127.0.0.1, port_value: LISTEN } }
    filter_chains:
    - transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            alpn_protocols: [ h2, http/1.1 ]
            tls_certificates: [ { certificate_chain: { filename: CHAIN_FILE }, private_key: { filename: KEY_FILE } } ]
            validation_context: { trusted_ca: { filename: CA_FILE } }
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          use_remote_address: true
          SETTINGS
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { prefix: /, headers: [ { name: x-forwarded-client-cert, string_match: { prefix: By=me } } ] }, route: { cluster: app, prefix_rewrite: /told/believed/ } }
              - { match: { prefix: / }, route: { cluster: app, prefix_rewrite: /told/ } }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router, suppress_envoy_headers: true }
  clusters:
  - name: app
    connect_timeout: 1s
    load_assignment: { cluster_name: app, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: UPSTREAM } } } } ] } ] }
"#;

const ALL: &str =
    "set_current_client_cert_details: { subject: true, cert: true, chain: true, dns: true, uri: true }";
const NAMES: &str = "set_current_client_cert_details: { subject: true, dns: true, uri: true }";

const SETTINGS: &[&[&str]] = &[
    &["forward_client_cert_details: SANITIZE"],
    &["forward_client_cert_details: FORWARD_ONLY"],
    &["forward_client_cert_details: APPEND_FORWARD", ALL],
    &["forward_client_cert_details: APPEND_FORWARD"],
    &["forward_client_cert_details: SANITIZE_SET"],
    &["forward_client_cert_details: SANITIZE_SET", NAMES],
    &["forward_client_cert_details: ALWAYS_FORWARD_ONLY", ALL],
    &["stream_idle_timeout: 300s"],
];

const SAID: &[&[&str]] = &[
    &[],
    &["-H", "x-forwarded-client-cert: By=me"],
    &["-H", "x-forwarded-client-cert: By=me;Hash=1", "-H", "x-forwarded-client-cert: By=you"],
];

/// Replacements that turn the listener into an HTTP/3 listener.
const OVER_QUIC: &[(&str, &str)] = &[
    (
        "{ address: 127.0.0.1, port_value: LISTEN }",
        "{ protocol: UDP, address: 127.0.0.1, port_value: LISTEN }",
    ),
    ("    filter_chains:\n", "    udp_listener_config: { quic_options: {} }\n    filter_chains:\n"),
    ("transport_sockets.tls\n", "transport_sockets.quic\n"),
    (
        "transport_sockets.tls.v3.DownstreamTlsContext\n",
        "transport_sockets.quic.v3.QuicDownstreamTransport\n",
    ),
    (
        "          common_tls_context:\n",
        "          downstream_tls_context:\n           common_tls_context:\n",
    ),
    ("            alpn_protocols: [ h2, http/1.1 ]\n", ""),
    (
        "stat_prefix: web\n",
        "stat_prefix: web\n          codec_type: HTTP3\n          http3_protocol_options: {}\n",
    ),
];

/// A CA, a server with subject alternative names, and clients with and without them.
struct Site {
    certificates: Certificates,
    server: Pair,
    clients: Vec<Pair>,
}

impl Site {
    fn new() -> Self {
        let certificates = Certificates::new();
        let server = certificates.ecdsa("P-256", &["localhost"]);
        let names = "subjectAltName=DNS:localhost,URI:spiffe://a/one,URI:spiffe://a/two\n";
        certificates.sign_as(&server.key, &server.chain, "localhost", 30, names);
        let intermediate = certificates.intermediate();
        let many = intermediate.ecdsa("P-256", &["many"]);
        let names =
            "subjectAltName=URI:spiffe://c/one,DNS:c.example,URI:spiffe://c/two,DNS:d.example,IP:127.0.0.1\n";
        intermediate.sign_as(&many.key, &many.chain, "alice, \"any\" \\; x=y", 30, names);
        let chain = [&many.chain, &intermediate.ca()].map(|file| std::fs::read(file).expect("PEM")).concat();
        let shown = certificates.path("many-chain.pem");
        std::fs::write(&shown, chain).expect("the chain");
        let many = Pair { chain: shown, key: copied(&certificates, &many.key) };
        let few = certificates.ecdsa("P-256", &["few"]);
        certificates.sign_as(&few.key, &few.chain, "few", 30, "basicConstraints=CA:FALSE\n");
        Self { server, clients: vec![many, few], certificates }
    }

    fn text(&self, settings: &[&str], upstream: u16) -> String {
        let text = BOOTSTRAP.replace("SETTINGS", &settings.join("\n          "));
        let text =
            text.replace("CHAIN_FILE", path(&self.server.chain)).replace("KEY_FILE", path(&self.server.key));
        let ca = self.certificates.ca();
        with_ports(&text.replace("CA_FILE", path(&ca)), &[("UPSTREAM", upstream)])
    }

    /// Returns curl's arguments without a certificate and with each.
    fn shown(&self) -> Vec<Vec<&str>> {
        let mut shown = vec![vec!["-k"]];
        for client in &self.clients {
            shown.push(vec!["-k", "--cert", path(&client.chain), "--key", path(&client.key)]);
        }
        shown
    }
}

/// Keeps the intermediate's folder alive.
fn copied(certificates: &Certificates, key: &Path) -> std::path::PathBuf {
    let copy = certificates.path("many.key");
    std::fs::copy(key, &copy).expect("the key");
    copy
}

fn path(file: &Path) -> &str {
    file.to_str().expect("a UTF-8 path")
}

#[test]
fn both_tell_the_same_of_certificates() {
    let upstream = upstream::start().port();
    let site = Site::new();
    let mut differences = Vec::new();
    for settings in SETTINGS {
        let Some(both) = Both::start(&site.text(settings, upstream)) else { return };
        for client in site.shown() {
            for said in SAID {
                for version in ["--http1.1", "--http2"] {
                    let arguments = [&client[..], said, &[version]].concat();
                    let [ours, theirs] = both.ask("https", "/x", &arguments);
                    differences.extend(difference(&format!("{settings:?} {arguments:?}"), &ours, &theirs));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Checks the comparison's results on machines without Envoy.
#[test]
fn as_envoy_tells_of_certificates() {
    let site = Site::new();
    let (gateway, _file) = serving(&site.text(SETTINGS[5], upstream::start().port()));
    let asked = |client: usize| {
        let arguments =
            [&site.shown()[client][..], SAID[1], &["-H", "x_forwarded_client_cert: mine"]].concat();
        ask("https", gateway.port(), "/x", &arguments).pop().expect("a body")
    };
    assert_eq!(asked(0), "/told/x x-envoy-external-address: 127.0.0.1");
    let told = asked(1);
    let (before, behind) = told.split_once(";Hash=").expect("a hash");
    assert_eq!(
        before,
        "/told/x x-envoy-external-address: 127.0.0.1|x-forwarded-client-cert: By=spiffe://a/one;By=spiffe://a/two"
    );
    assert_eq!(
        behind.split_once(';').expect("more").1,
        "Subject=\"CN=alice\\, \\\"any\\\" \\; x=y\";URI=spiffe://c/one;URI=spiffe://c/two;DNS=c.example;DNS=d.example"
    );
    assert!(asked(2).ends_with(";Subject=\"CN=few\";URI="), "{}", asked(2));
}

/// HTTP/3 requests are forwarded with the same values as HTTP/2 requests.
#[test]
fn clients_of_http3_have_the_same_values() {
    let site = Site::new();
    let upstream = upstream::start().port();
    for settings in SETTINGS {
        let text = site.text(settings, upstream);
        let (over_tcp, _file) = serving(&text);
        let text = OVER_QUIC.iter().fold(text, |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        let port = ports::free();
        let (_over_quic, _file) = serving(&with_ports(&text, &[("LISTEN", port)]));
        for (client, shown) in [None].into_iter().chain(site.clients.iter().map(Some)).zip(site.shown()) {
            let mut quic = Http3Client::new(&site.certificates);
            if let Some(pair) = client {
                quic.config().load_cert_chain_from_pem_file(path(&pair.chain)).expect("a chain");
                quic.config().load_priv_key_from_pem_file(path(&pair.key)).expect("a key");
            }
            let answer = quic.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).get("/x");
            let expected = ask("https", over_tcp.port(), "/x", &[&shown[..], &["--http2"]].concat());
            assert_eq!(Some(answer.text()), expected.last().cloned(), "{settings:?} {shown:?}");
        }
    }
}
