//! `x-request-id`: generated, kept and sent as by the stock Envoy.

use super::{
    serving,
    stock::{Both, ask, bootstrap, with_ports},
    upstream,
};

const MANAGER: &str = r#"
          SETTINGS
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { path: /here }, direct_response: { status: 200, body: { inline_string: ok } } }
              - { match: { prefix: /there }, route: { cluster: app, prefix_rewrite: /named } }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

/// Fields of the connection manager; the id if the client sends `mine` and if it sends none (`mine`, `UUID` or
/// nothing); whether responses contain the id.
const SETTINGS: &[(&str, &str, &str, bool)] = &[
    ("use_remote_address: false", "mine", "UUID", false),
    ("use_remote_address: true", "UUID", "UUID", false),
    ("{ use_remote_address: true, preserve_external_request_id: true }", "mine", "UUID", false),
    ("{ use_remote_address: true, always_set_request_id_in_response: true }", "UUID", "UUID", true),
    ("{ generate_request_id: false, always_set_request_id_in_response: true }", "mine", "", true),
    ("{ generate_request_id: false, use_remote_address: true }", "mine", "", false),
];

fn text(settings: &str, upstream: u16) -> String {
    let lines = settings.trim_matches(['{', '}', ' ']).replace(", ", "\n          ");
    with_ports(&bootstrap(MANAGER, "").replace("SETTINGS", &lines), &[("UPSTREAM", upstream)])
}

/// Returns the responses with and without a client's id, from a direct response and from a server.
fn answers(port: u16) -> Vec<Vec<String>> {
    let requests = ["/here", "/there", "/nowhere"].into_iter().flat_map(|path| {
        [&[][..], &["-H", "x-request-id: mine"]].map(|arguments| ask("http", port, path, arguments))
    });
    requests
        .map(|answer| {
            answer.iter().filter(|line| !line.starts_with("content-type:")).map(|line| named(line)).collect()
        })
        .collect()
}

/// Returns the line with a version 4 UUID replaced by `UUID`.
fn named(line: &str) -> String {
    let is_id = |text: &str| {
        let parts: Vec<usize> = text.split('-').map(str::len).collect();
        parts == [8, 4, 4, 4, 12] && text.as_bytes()[14] == b'4'
    };
    let word = |byte: char| !byte.is_ascii_hexdigit() && byte != '-';
    let found = line.split(word).find(|text| is_id(text));
    found.map_or_else(|| line.to_owned(), |id| line.replace(id, "UUID"))
}

#[test]
fn as_envoy_has_them() {
    let upstream = upstream::start().port();
    for (settings, said, unsaid, told) in SETTINGS {
        let (gateway, _file) = serving(&text(settings, upstream));
        let answers = answers(gateway.port());
        let body = |id: &str| format!("x-request-id={id}|x-user=|authorization=");
        assert_eq!(answers[2].last(), Some(&body(unsaid)), "{settings}");
        assert_eq!(answers[3].last(), Some(&body(said)), "{settings}");
        for (at, answer) in answers.iter().enumerate() {
            let id = if at % 2 == 0 { unsaid } else { said };
            let header = format!("x-request-id: {}", id.to_ascii_lowercase());
            let reported = answer.iter().any(|line| line.eq_ignore_ascii_case(&header));
            assert_eq!(reported, *told && !id.is_empty(), "{settings} {answer:?}");
        }
    }
}

#[test]
fn both_name_requests_the_same_way() {
    let upstream = upstream::start().port();
    for (settings, ..) in SETTINGS {
        let Some(both) = Both::start(&text(settings, upstream)) else { return };
        // Without a route, the gateway's own text is sent.
        let [ours, theirs] = both.ports().map(|port| {
            let mut answers = answers(port);
            answers.iter_mut().filter(|answer| answer[0] == "404").for_each(|answer| _ = answer.pop());
            answers
        });
        assert_eq!(ours, theirs, "{settings}");
    }
}
