//! Local replies: both send the same ones.

use super::{
    serving,
    stock::{Both, ask, bootstrap, difference, with_ports},
};
use crate::support::{Nginx, ports};

const MANAGER: &str = r#"
          local_reply_config:
            mappers:
            - filter: { status_code_filter: { comparison: { op: EQ, value: { default_value: 503, runtime_key: a } } } }
              status_code: 502
              body: { inline_string: "gone away" }
              headers_to_add:
              - { header: { key: x-reply, value: "of %REQ(x-client)%" } }
              - { header: { key: x-also, value: "static" }, append_action: OVERWRITE_IF_EXISTS_OR_ADD }
            - filter: { header_filter: { header: { name: x-kind, string_match: { exact: text } } } }
              body_format_override: { text_format_source: { inline_string: "<%RESPONSE_CODE%|%LOCAL_REPLY_BODY%|%REQ(x-client)%|%PROTOCOL%|%REQ(:METHOD)% %REQ(:path)%>\n" }, content_type: "text/html; charset=UTF-8" }
            - filter:
                and_filter:
                  filters:
                  - status_code_filter: { comparison: { op: GE, value: { default_value: 400, runtime_key: a } } }
                  - or_filter:
                      filters:
                      - header_filter: { header: { name: x-kind, string_match: { exact: hidden } } }
                      - header_filter: { header: { name: x-hidden, present_match: true } }
              status_code: 404
              body: { inline_string: "" }
              body_format_override: { text_format: "%LOCAL_REPLY_BODY%" }
            - filter: { header_filter: { header: { name: x-kind, string_match: { exact: omit } } } }
              body_format_override: { omit_empty_values: true, json_format: { a: "%REQ(x-none)%", b: "%REQ(x-client)%", c: "x%REQ(x-none)%y" } }
            body_format:
              json_format:
                status: "%RESPONSE_CODE%"
                message: "%LOCAL_REPLY_BODY%"
                client: "%REQ(x-client)%"
                none: "%REQ(x-none)%"
                mixed: "%REQ(:METHOD)% of %REQ(x-none)%"
                deep: { fixed: "text" }
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { prefix: /gone }, route: { cluster: gone } }
              - { match: { prefix: /direct }, direct_response: { status: 418, body: { inline_string: "a \"teapot\"" } } }
              - { match: { prefix: /empty }, direct_response: { status: 403 } }
              - { match: { prefix: /fine }, direct_response: { status: 200, body: { inline_string: "fine" } } }
              - { match: { prefix: /moved }, redirect: { path_redirect: /there } }
              - { match: { prefix: /server }, route: { cluster: app } }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

/// The port of an unreachable server.
const GONE: &str = "
  - name: gone
    connect_timeout: 1s
    load_assignment: { cluster_name: gone, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: GONE } } } } ] } ] }
";

fn text(site: &Nginx) -> String {
    let ports = [("UPSTREAM", site.address().port()), ("GONE", ports::free())];
    with_ports(&bootstrap(MANAGER, GONE), &ports)
}

const KINDS: [&[&str]; 6] = [
    &[],
    &["-H", "x-client: me"],
    &["-H", "x-kind: text", "-H", "x-client: \"you\""],
    &["-H", "x-kind: hidden"],
    &["-H", "x-hidden: 1", "--head"],
    &["-H", "x-kind: omit", "-H", "x-client: me"],
];

const PATHS: [&str; 6] = ["/gone", "/direct?a=b", "/empty", "/fine", "/moved", "/server"];

#[test]
fn local_replies_are_written_as_the_configuration_says() {
    let site = Nginx::new("return 404 \"of the server\";");
    let (gateway, _file) = serving(&text(&site));
    let get = |path: &str, arguments: &[&str]| ask("http", gateway.port(), path, arguments);
    let gone = get("/gone", KINDS[1]);
    assert_eq!(gone[0], "502", "{gone:?}");
    assert!(gone.contains(&"x-reply: of me".to_owned()) && gone.contains(&"x-also: static".to_owned()));
    assert!(gone.contains(&"content-type: application/json".to_owned()), "{gone:?}");
    let body = gone.last().expect("a body");
    assert!(body.contains("\"message\":\"gone away\"") && body.contains("\"status\":502"), "{body}");
    let direct = get("/direct?a=b", KINDS[2]);
    assert_eq!(direct[0], "418");
    assert_eq!(direct.last().expect("a body"), "<418|a \"teapot\"|\"you\"|HTTP/1.1|GET /direct?a=b>\n");
    assert_eq!(get("/nowhere", KINDS[3])[0], "404");
    let own = get("/server", &[]);
    assert_eq!((own[0].as_str(), own.last().expect("a body").as_str()), ("404", "of the server"));
}

#[test]
fn both_write_local_replies_in_the_same_way() {
    let site = Nginx::new("return 404 \"of the server\";");
    let Some(both) = Both::start(&text(&site)) else { return };
    let mut differences = Vec::new();
    for path in PATHS {
        for arguments in KINDS {
            let [ours, theirs] = both.ports().map(|port| ask("http", port, path, arguments));
            differences.extend(difference(&format!("{path} {arguments:?}"), &ours, &theirs));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
