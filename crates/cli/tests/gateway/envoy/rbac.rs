//! RBAC filters: the same requests are allowed as by the stock Envoy.

use super::stock::{Both, ask, difference};
use crate::support::{Certificates, Pair};
use std::path::Path;

/// HTTP or network RBAC filters, and requests.
struct Scenario {
    /// The `rules` of each filter.
    requests: &'static [&'static str],
    connections: Option<&'static str>,
    /// curl's arguments after the URL's path.
    asked: &'static [(&'static str, &'static [&'static str])],
}

const PLAIN: &[Scenario] = &[
    Scenario {
        requests: &[
            "action: DENY, policies: { p: { permissions: [ { url_path: { path: { prefix: /admin } } } ], principals: [ { any: true } ] } }",
        ],
        connections: None,
        asked: &[
            ("/", &[]),
            ("/admin", &[]),
            ("/admin/x?y", &[]),
            ("//admin", &[]),
            ("/x/../admin", &[]),
            ("/%61dmin", &[]),
            ("/redirect", &[]),
            ("/nothing/admin", &[]),
        ],
    },
    Scenario {
        requests: &[
            "policies: { get: { permissions: [ { header: { name: ':method', string_match: { exact: GET } } } ], principals: [ { header: { name: x-user, string_match: { prefix: al } } }, { header: { name: x-many, present_match: true } } ] } }",
        ],
        connections: None,
        asked: &[
            ("/", &[]),
            ("/", &["-H", "x-user: alice"]),
            ("/", &["-H", "x-user: bob"]),
            ("/", &["-X", "POST", "-H", "x-user: alice"]),
            ("/", &["-H", "x-many: 1", "-H", "x-many: 2"]),
            ("/redirect", &["-H", "x-user: bob"]),
            ("/unknown", &["-H", "x-user: bob"]),
        ],
    },
    Scenario {
        requests: &[
            "policies: { a: { permissions: [ { and_rules: { rules: [ { not_rule: { url_path: { path: { suffix: .php } } } }, { or_rules: { rules: [ { header: { name: ':authority', string_match: { contains: a.test } } }, { header: { name: x-o } } ] } } ] } } ], principals: [ { not_id: { header: { name: x-no } } } ] } }",
        ],
        connections: None,
        asked: &[
            ("/", &[]),
            ("/", &["-H", "Host: a.test"]),
            ("/x.php", &["-H", "Host: a.test"]),
            ("/x.php?a=b", &["-H", "x-o: 1"]),
            ("/x?a=b.php", &["-H", "x-o: 1"]),
            ("/", &["-H", "x-o: 1", "-H", "x-no: 1"]),
        ],
    },
    Scenario {
        requests: &[
            "policies: { near: { permissions: [ { any: true } ], principals: [ { direct_remote_ip: { address_prefix: 127.9.9.9, prefix_len: 8 } } ] } }",
            "action: DENY, policies: { here: { permissions: [ { destination_ip: { address_prefix: 127.0.0.1, prefix_len: 32 } } ], principals: [ { header: { name: x-far } } ] } }",
        ],
        connections: None,
        asked: &[("/", &[]), ("/", &["-H", "x-far: 1"])],
    },
    Scenario {
        requests: &[
            "policies: { far: { permissions: [ { any: true } ], principals: [ { remote_ip: { address_prefix: 10.0.0.0, prefix_len: 8 } }, { source_ip: { address_prefix: '::1', prefix_len: 128 } } ] } }",
        ],
        connections: None,
        asked: &[("/", &[]), ("/", &["-H", "x-forwarded-for: 10.0.0.1"])],
    },
    // A rule against one value cannot be bypassed by sending a second value.
    Scenario {
        requests: &[
            "action: DENY, policies: { role: { permissions: [ { any: true } ], principals: [ { header: { name: x-role, string_match: { exact: admin } } } ] }, no: { permissions: [ { url_path: { path: { prefix: /not } } } ], principals: [ { header: { name: x-role, string_match: { exact: user }, invert_match: true } } ] } }",
        ],
        connections: None,
        asked: &[
            ("/", &["-H", "x-role: admin"]),
            ("/", &["-H", "x-role: user", "-H", "x-role: admin"]),
            ("/", &["-H", "x-role: admin", "-H", "x-role: user"]),
            ("/", &["-H", "x-role: user,admin"]),
            ("/not", &["-H", "x-role: user", "-H", "x-role: other"]),
            ("/not", &["-H", "x-role: one", "-H", "x-role: other"]),
            ("/not", &[]),
        ],
    },
    Scenario { requests: &["action: ALLOW"], connections: None, asked: &[("/", &[])] },
    Scenario { requests: &["action: LOG, policies: {}"], connections: None, asked: &[("/", &[])] },
    Scenario {
        requests: &[
            "policies: { p: { permissions: [ { destination_port_range: { start: 1, end: 1024 } }, { destination_port: 1023 }, { requested_server_name: { exact: a } } ], principals: [ { any: true } ] } }",
        ],
        connections: None,
        asked: &[("/", &[])],
    },
    Scenario {
        requests: &[
            "policies: { p: { permissions: [ { requested_server_name: { exact: '' } } ], principals: [ { not_id: { authenticated: {} } } ] } }",
        ],
        connections: None,
        asked: &[("/", &[])],
    },
    Scenario {
        requests: &[],
        connections: Some(
            "action: DENY, policies: { all: { permissions: [ { any: true } ], principals: [ { source_ip: { address_prefix: 127.0.0.0, prefix_len: 24 } } ] } }",
        ),
        asked: &[("/", &[])],
    },
];

const BY_CERTIFICATE: &[Scenario] = &[
    Scenario {
        requests: &[
            "policies: { alice: { permissions: [ { any: true } ], principals: [ { authenticated: { principal_name: { exact: alice } } } ] }, own: { permissions: [ { url_path: { path: { exact: /bob } } } ], principals: [ { authenticated: { principal_name: { suffix: ob } } } ] }, any: { permissions: [ { url_path: { path: { exact: /any } } } ], principals: [ { authenticated: {} } ] }, open: { permissions: [ { url_path: { path: { exact: /open } } } ], principals: [ { any: true } ] } }",
        ],
        connections: None,
        asked: &[("/", &[]), ("/bob", &[]), ("/any", SHOWN), ("/open", &[])],
    },
    Scenario {
        requests: &[
            "action: DENY, policies: { sni: { permissions: [ { requested_server_name: { exact: localhost } } ], principals: [ { authenticated: { principal_name: { contains: 'CN=alice' } } } ] } }",
        ],
        connections: None,
        asked: &[("/", &[])],
    },
    Scenario {
        requests: &[],
        connections: Some(
            "policies: { alice: { permissions: [ { any: true } ], principals: [ { authenticated: { principal_name: { exact: alice } } } ] } }",
        ),
        asked: &[("/", &[]), ("/any", &[])],
    },
];

/// A rule that denies clients that are not `user`, and header lines of which one matches: Envoy accepts this as a
/// user, whichever line the server uses.
const DISAGREEING: (&str, &[&str]) = ("/not", &["-H", "x-role: user", "-H", "x-role: other"]);

/// Envoy matches `authenticated: {}` for any TLS connection; this gateway requires a certificate, as Envoy's
/// documentation states.
const SHOWN: &[&str] = &["-H", "x-only: shown"];

const BOOTSTRAP: &str = r#"
admin: { address: { socket_address: { address: 127.0.0.1, port_value: ADMIN } } }
static_resources:
  listeners:
  - name: web
    address: { socket_address: { address: 127.0.0.1, port_value: LISTEN } }
    filter_chains:
    - SOCKET
      filters:
      - CONNECTIONS
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          use_remote_address: true
          normalize_path: true
          merge_slashes: true
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { prefix: /nothing }, direct_response: { status: 204 } }
              - { match: { prefix: /redirect }, redirect: { path_redirect: /elsewhere } }
              - { match: { safe_regex: { regex: "/(admin.*|bob|any|open|x.*)?" } }, direct_response: { status: 200, body: { inline_string: in } } }
          http_filters:
          - REQUESTS
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

const SOCKET: &str = r#"transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            tls_certificates: [ { certificate_chain: { filename: "CHAIN_FILE" }, private_key: { filename: "KEY_FILE" } } ]
            validation_context: { trusted_ca: { filename: "CA_FILE" } }"#;

impl Scenario {
    fn bootstrap(&self, socket: &str) -> String {
        let filter = |kind: &str, rules: &str| {
            format!(
                "{{ name: r, typed_config: {{ \"@type\": a/envoy.extensions.filters.{kind}.rbac.v3.RBAC, rules: {{ {rules} }}STAT }} }}"
            )
        };
        let requests: Vec<_> =
            self.requests.iter().map(|rules| filter("http", rules).replace("STAT", "")).collect();
        let connections: Vec<_> = self
            .connections
            .iter()
            .map(|rules| filter("network", rules).replace("STAT", ", stat_prefix: r"))
            .collect();
        let mut text = BOOTSTRAP.to_owned();
        for (what, filters, before) in
            [("REQUESTS", requests, "          - "), ("CONNECTIONS", connections, "      - ")]
        {
            let lines: String = filters.iter().map(|filter| format!("{before}{filter}\n")).collect();
            text = text.replace(&format!("{before}{what}\n"), &lines);
        }
        match socket {
            "" => text.replace("    - SOCKET\n      filters:", "    - filters:"),
            _ => text.replace("SOCKET", socket),
        }
    }
}

/// Sends every request with each of these clients to both; returns the responses, and prints differences.
fn compare(scheme: &str, scenario: &Scenario, socket: &str, clients: &[Vec<&str>]) -> Vec<String> {
    let text = scenario.bootstrap(socket);
    let Some(both) = Both::start(&text) else { return Vec::new() };
    let (mut differences, mut denied) = (Vec::new(), 0.0);
    for (path, arguments) in scenario.asked {
        for client in clients {
            if *arguments == SHOWN && !client.contains(&"--cert") {
                assert_eq!(ask(scheme, both.gateway.port(), path, client)[0], "403");
                denied += 1.0;
                continue;
            }
            let arguments = [client, *arguments].concat();
            let [ours, theirs] = both.ask(scheme, path, &arguments);
            if (*path, &*arguments) == DISAGREEING {
                assert_eq!([&*ours[0], &*theirs[0]], ["403", "404"], "this gateway is stricter");
                denied += 1.0;
                continue;
            }
            denied += f64::from(u8::from(ours[0] == "403" || ours[0] == "none"));
            // A path without a route has the gateway's own text.
            if ours[0] != "404" || theirs[0] != "404" {
                differences.extend(difference(&format!("{text}{path} {arguments:?}"), &ours, &theirs));
            }
        }
    }
    if differences.is_empty() {
        both.gateway.wait_for_metric("quadrille_access_denied_total", &[], |count| count == denied);
    }
    differences
}

#[test]
fn both_allow_the_same_requests() {
    let compare = |scenario: &Scenario| compare("http", scenario, "", &[Vec::new()]);
    let differences: Vec<_> = PLAIN.iter().flat_map(compare).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn both_allow_the_same_certificates() {
    let certificates = Certificates::new();
    let server = certificates.ecdsa("P-256", &["localhost"]);
    let [alice, bob] = ["alice", "bob"].map(|name| certificates.ecdsa("P-256", &[name]));
    let text = |path: &Path| path.to_str().expect("a UTF-8 path").to_owned();
    let socket = SOCKET.replace("CHAIN_FILE", &text(&server.chain)).replace("KEY_FILE", &text(&server.key));
    let socket = socket.replace("CA_FILE", &text(&certificates.ca()));
    let shown = |pair: &Pair| [text(&pair.chain), text(&pair.key)];
    let [alice, bob] = [shown(&alice), shown(&bob)];
    let clients: Vec<Vec<&str>> = [None, Some(&alice), Some(&bob)]
        .into_iter()
        .map(|shown| match shown {
            Some([chain, key]) => vec!["-k", "--cert", chain, "--key", key],
            None => vec!["-k"],
        })
        .collect();
    let compare = |scenario: &Scenario| compare("https", scenario, &socket, &clients);
    let differences: Vec<_> = BY_CERTIFICATE.iter().flat_map(compare).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Servers may use any line of a header, so that all of them must be allowed.
#[test]
fn every_line_of_a_header_must_be_allowed() {
    const MANAGER: &str = r#"
          route_config: { virtual_hosts: [ { name: all, domains: [ "*" ], routes: [ { match: { prefix: / }, direct_response: { status: 200 } } ] } ] }
          http_filters:
          - name: envoy.filters.http.rbac
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC
              rules: { policies: { one: { permissions: [ { any: true } ], principals: [ { header: { name: x-role, string_match: { exact: user } } }, { header: { name: x-other, string_match: { exact: bad }, invert_match: true } } ] } } }
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;
    let (gateway, _file) =
        super::serving(&super::stock::with_ports(&super::stock::bootstrap(MANAGER, ""), &[("UPSTREAM", 1)]));
    for (headers, status) in [
        (&["x-role: user"][..], "200"),
        (&["x-role: user", "x-role: user"], "200"),
        (&["x-role: user", "x-role: admin"], "403"),
        (&["x-role: admin", "x-role: user"], "403"),
        (&["x-other: good", "x-other: fine"], "200"),
        (&["x-other: good", "x-other: bad"], "403"),
        (&[], "403"),
    ] {
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let lines = headers.iter().flat_map(|line| ["-H", *line]);
            let arguments: Vec<_> = [version].into_iter().chain(lines).collect();
            assert_eq!(ask("http", gateway.port(), "/", &arguments)[0], status, "{version} {headers:?}");
        }
    }
}
