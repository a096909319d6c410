//! External authorization: the same checks, requests and results as the stock Envoy.

use super::{
    serving,
    stock::{Both, ask, bootstrap, with_ports},
    upstream,
};
use crate::support::{
    echo_server, grpc_authorization,
    grpc_service::{field, grpc_service},
    http_authorization,
};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread,
};

const MANAGER: &str = r#"
          use_remote_address: true
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { prefix: /here }, direct_response: { status: 200, body: { inline_string: here } } }
              - { match: { prefix: / }, route: { cluster: app, prefix_rewrite: /asked/ } }
          http_filters:
          - name: envoy.filters.http.rbac
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC
              shadow_rules_stat_prefix: istio_ext_authz_
              shadow_rules:
                action: DENY
                policies:
                  istio-ext-authz-one-ns[x]-policy[y]-rule[0]:
                    permissions: [ { not_rule: { url_path: { path: { prefix: /free } } } } ]
                    principals: [ { any: true } ]
          - name: envoy.filters.http.ext_authz
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz
              transport_api_version: V3
              filter_enabled_metadata: { filter: envoy.filters.http.rbac, path: [ { key: istio_ext_authz_shadow_effective_policy_id } ], value: { string_match: { prefix: istio-ext-authz-one } } }
              SERVICE
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

const CLUSTERS: &str = r#"
  - name: authz
    connect_timeout: 1s
    HTTP2
    load_assignment: { cluster_name: authz, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: AUTHZ } } } } ] } ] }
"#;

const HTTP2: &str = r#"typed_extension_protocol_options: { envoy.extensions.upstreams.http.v3.HttpProtocolOptions: { "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: { http2_protocol_options: {} } } }"#;

const GRPC: &str =
    "grpc_service: { envoy_grpc: { cluster_name: authz, authority: authz.example }, timeout: 1s }";

const HTTP: &str =
    "allowed_headers: { patterns: [ { exact: X-Ext-Authz, ignore_case: true }, { prefix: x-told- } ] }
              http_service:
                server_uri: { uri: http://authz.example, cluster: authz, timeout: 1s }
                path_prefix: /check
                authorization_request: { headers_to_add: [ { key: x-added, value: added } ] }
                authorization_response:
                  allowed_upstream_headers: { patterns: [ { exact: x-user } ] }
                  allowed_upstream_headers_to_append: { patterns: [ { exact: x-more } ] }
                  allowed_client_headers: { patterns: [ { exact: x-client } ] }
                  allowed_client_headers_on_success: { patterns: [ { exact: x-client } ] }";

const REQUESTS: &[(&str, &[&str])] = &[
    ("/", &[]),
    ("/a/b?c=d", &["-H", "Host: other.example", "-H", "x-told-one: 1", "-H", "x-hidden: 2"]),
    ("/a", &["-H", "Authorization: Basic x", "-X", "PUT"]),
    ("/a", &["-X", "POST", "-d", "body"]),
    ("/", &["-H", "x-ext-authz: allow"]),
    ("/", &["-H", "x-ext-authz: allow", "-H", "x-user: root", "-H", "x-more: less", "-H", "x-secret: s"]),
    ("/", &["-H", "x-ext-authz: allow", "-X", "POST", "-d", "body"]),
    ("/here", &["-H", "x-ext-authz: allow"]),
    ("/here", &[]),
    ("/", &["-H", "x-ext-authz: fail"]),
    ("/free", &[]),
    ("/free", &["-H", "x-ext-authz: fail"]),
    ("/", &["-I"]),
    ("/", &["-H", "x-told-one: 1", "-H", "x-told-one: 2"]),
];

/// Compares both with this service, whose server is at this port.
fn same(service: &str, http2: &str, authz: u16) {
    same_for(REQUESTS, service, http2, authz);
}

fn same_for(requests: &[(&str, &[&str])], service: &str, http2: &str, authz: u16) {
    let text =
        bootstrap(MANAGER, CLUSTERS).replace("SERVICE", service).replace("    HTTP2\n", &if_any(http2));
    let text = with_ports(&text, &[("UPSTREAM", upstream::start().port()), ("AUTHZ", authz)]);
    let Some(both) = Both::start(&text) else { return };
    let differences = both.differences(requests);
    assert!(differences.is_empty(), "{service}\n{}", differences.join("\n"));
}

fn if_any(line: &str) -> String {
    if line.is_empty() { String::new() } else { format!("    {line}\n") }
}

#[test]
fn both_ask_by_grpc() {
    same(GRPC, HTTP2, grpc_authorization().port());
}

#[test]
fn both_ask_by_http() {
    same(HTTP, "", http_authorization().port());
}

#[test]
fn both_deny_all_requests_if_no_server_is_available() {
    same(GRPC, HTTP2, 1);
    let status = format!("status_on_error: {{ code: ServiceUnavailable }}\n              {GRPC}");
    same(&status, HTTP2, 1);
    // A server that accepts connections and never responds.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = silent.local_addr().expect("an address").port();
    same(&GRPC.replace("timeout: 1s", "timeout: 0.1s"), HTTP2, port);
    same(&HTTP.replace("timeout: 1s", "timeout: 0.1s"), "", port);
    // A server that does not support HTTP/2.
    same(GRPC, HTTP2, http_authorization().port());
}

#[test]
fn both_allow_all_requests_if_configured_to() {
    let open = |service: &str| format!("failure_mode_allow: true\n              {service}");
    same(&open(GRPC), HTTP2, grpc_authorization().port());
    same(&open(GRPC), HTTP2, 1);
    same(&open(HTTP), "", http_authorization().port());
}

const BODIES: &[(&str, &[&str])] = &[
    ("/", &[]),
    ("/", &["-d", "body"]),
    ("/", &["-d", ""]),
    ("/", &["-d", "0123456789"]),
    ("/", &["-d", "01234567890"]),
    ("/", &["-H", "transfer-encoding: chunked", "-d", "abc"]),
    ("/", &["-H", "transfer-encoding: chunked", "-d", "012345678901234567890"]),
    ("/", &["-H", "x-ext-authz: allow", "-d", "body"]),
    ("/", &["-H", "x-ext-authz: allow", "-d", "012345678901234567890"]),
    ("/", &["-H", "x-ext-authz: allow", "-H", "transfer-encoding: chunked", "-d", "01234567890"]),
    ("/here", &["-H", "x-ext-authz: allow", "-X", "PUT", "-d", "body"]),
    ("/free", &["-d", "012345678901234567890"]),
    ("/", &["-H", "x-ext-authz: fail", "-d", "body"]),
    ("/", &["-H", "x-envoy-auth-partial-body: true", "-d", "body"]),
    ("/", &["-H", "x-envoy-auth-partial-body: true"]),
    ("/", &["--http2-prior-knowledge", "-d", "body"]),
    ("/", &["--http2-prior-knowledge", "-H", "x-ext-authz: allow", "-d", "0123456"]),
];

#[test]
fn both_tell_of_bodies() {
    for settings in ["max_request_bytes: 10", "max_request_bytes: 10, allow_partial_message: true"] {
        let with_body = |service: &str, more: &str| {
            format!("with_request_body: {{ {settings}{more} }}\n              {service}")
        };
        let grpc = grpc_authorization().port();
        same_for(BODIES, &with_body(GRPC, ""), HTTP2, grpc);
        same_for(BODIES, &with_body(GRPC, ", pack_as_bytes: true"), HTTP2, grpc);
        same_for(BODIES, &with_body(HTTP, ""), "", http_authorization().port());
    }
}

/// The service's responses cannot change hop-by-hop headers.
#[test]
fn what_is_for_one_connection_stays_with_it() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            let _ = BufReader::new(&tcp)
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .count();
            let _ = tcp.write_all(
                b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=99\r\nProxy-Connection: mine\r\nX-User: alice\r\n\
                Content-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    let more = |service: &str, pattern: &str| {
        assert!(service.contains(pattern));
        service.replace(pattern, &pattern.replace(" ]", ", { prefix: keep }, { prefix: proxy } ]"))
    };
    let service = more(&more(HTTP, "[ { exact: x-user } ]"), "[ { exact: x-client } ]");
    let text = bootstrap(MANAGER, CLUSTERS).replace("SERVICE", &service).replace("    HTTP2\n", "");
    let text = with_ports(&text, &[("UPSTREAM", echo_server().port()), ("AUTHZ", port)]);
    let (gateway, _file) = serving(&text);
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let told = ask("http", gateway.port(), "/", &[version]).concat().to_ascii_lowercase();
        assert!(told.starts_with("200") && told.contains("x-user: alice"), "{version}: {told}");
        assert!(!told.contains("keep-alive") && !told.contains("proxy-connection"), "{version}: {told}");
    }
}

/// A decision that cannot be carried out is not a missing one: `failure_mode_allow` does not apply.
#[test]
fn changes_that_cannot_be_made_deny() {
    const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";
    let allowed_with = [
        grpc_service(CHECK, |_| Some(allowed(&option(b"x user", b"alice")))),
        grpc_service(CHECK, |_| Some(allowed(&option(b"x-user", b"a\nb")))),
        grpc_service(CHECK, |_| Some(allowed(&option(b"content-length", b"0")))),
        grpc_service(CHECK, |_| Some(allowed(&field(5, b"transfer-encoding")))),
        grpc_service(CHECK, |_| Some(allowed(&field(8, b"query")))),
    ];
    // PERMISSION_DENIED, with a header that cannot be sent.
    let denied = grpc_service(CHECK, |_| {
        Some(
            [field(1, &[8, 7]), field(2, &[field(1, &[8, 0x91, 3]), option(b"x user", b"a")].concat())]
                .concat(),
        )
    });
    let good = grpc_service(CHECK, |_| Some(allowed(&option(b"x-user", b"alice"))));
    let statuses = allowed_with.map(|server| (server, "403"));
    for (server, status) in statuses.into_iter().chain([(denied, "401"), (good, "200")]) {
        let open = format!("failure_mode_allow: true\n              {GRPC}");
        let text = bootstrap(MANAGER, CLUSTERS).replace("SERVICE", &open).replace("HTTP2", HTTP2);
        let text = with_ports(&text, &[("UPSTREAM", echo_server().port()), ("AUTHZ", server.port())]);
        let (gateway, _file) = serving(&text);
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let told = ask("http", gateway.port(), "/", &[version]);
            assert_eq!(told[0], status, "{version}: {told:?}");
        }
    }
}

/// An allowing `CheckResponse` with this `OkHttpResponse`.
fn allowed(ok: &[u8]) -> Vec<u8> {
    [field(1, &[]), field(3, ok)].concat()
}

/// A `HeaderValueOption` as the second field of a message.
fn option(name: &[u8], value: &[u8]) -> Vec<u8> {
    field(2, &field(1, &[field(1, name), field(2, value)].concat()))
}

/// Servers may read `X_User` as `X-User`.
#[test]
fn headers_of_the_service_replace_every_spelling() {
    let text = bootstrap(MANAGER, CLUSTERS).replace("SERVICE", HTTP).replace("    HTTP2\n", "");
    let ports = [("UPSTREAM", echo_server().port()), ("AUTHZ", http_authorization().port())];
    let (gateway, _file) = serving(&with_ports(&text, &ports));
    let forged = ["-H", "x-ext-authz: allow", "-H", "X_User: root", "-H", "X_Secret: root"];
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let told = ask("http", gateway.port(), "/", &[&[version], &forged[..]].concat()).concat();
        let told = told.to_ascii_lowercase();
        assert!(told.contains("x-user: alice") && !told.contains("root"), "{version}: {told}");
    }
}
