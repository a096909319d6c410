//! The filter `basic_auth`: the same users are accepted as by the stock Envoy.

use super::{
    serving,
    stock::{Both, ask, bootstrap, difference, with_ports},
    upstream,
};

const MANAGER: &str = r#"
          route_config:
            name: routes
            virtual_hosts:
            - name: all
              domains: [ "*" ]
              routes:
              - { match: { path: /here }, direct_response: { status: 200, body: { inline_string: ok } } }
              - { match: { prefix: /there }, route: { cluster: app, prefix_rewrite: /named } }
          http_filters:
          - name: envoy.filters.http.basic_auth
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.basic_auth.v3.BasicAuth
              users: { inline_string: "alice:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\nbob:{SHA}QL0AFWMIX8NRZTKeof9cXsvbvu8=" }
              forward_username_header: x-user
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

/// Requests with the expected status. Alice's password is `test`, and Bob's is `123`.
const REQUESTS: &[(&str, &[&str], &str)] = &[
    ("/here", &[], "401"),
    ("/there", &[], "401"),
    ("/nowhere", &[], "401"),
    ("/here", &["-u", "alice:test"], "200"),
    ("/there", &["-u", "alice:test"], "200"),
    ("/there", &["-u", "alice:test", "-H", "x-user: root"], "200"),
    ("/there", &["-u", "alice:Test"], "401"),
    ("/there", &["-u", "alice:"], "401"),
    ("/there", &["-u", "ALICE:test"], "401"),
    ("/here", &["-u", "bob:123"], "200"),
    ("/there", &["-u", "bob:test"], "401"),
    ("/there", &["-u", "carol:test"], "401"),
    ("/there", &["-H", "authorization: Basic !!!"], "401"),
    ("/there", &["-H", "authorization: Basic YWxpY2U="], "401"),
    ("/there", &["-H", "authorization: Bearer YWxpY2U6dGVzdA=="], "401"),
    ("/nowhere", &["-u", "alice:test"], "404"),
];

fn text() -> String {
    with_ports(&bootstrap(MANAGER, ""), &[("UPSTREAM", upstream::start().port())])
}

#[test]
fn users_are_accepted() {
    let (gateway, _file) = serving(&text());
    for (path, arguments, status) in REQUESTS {
        let answer = ask("http", gateway.port(), path, arguments);
        assert_eq!(answer[0], *status, "{path} {arguments:?}");
        let asks = answer.iter().any(|line| line.starts_with("www-authenticate: basic realm="));
        assert_eq!(asks, *status == "401", "{answer:?}");
        if *path == "/there" && *status == "200" {
            // The name is the authenticated user's, not the one that the client sent.
            let told = answer.last().expect("a body");
            assert!(told.contains("|x-user=alice|authorization=Basic "), "{told}");
        }
    }
    let shown = gateway.admin_page("/config_dump");
    assert!(shown.contains("forward_username_header") && !shown.contains("{SHA}"), "{shown}");
}

#[test]
fn both_accept_the_same_users() {
    let Some(both) = Both::start(&text()) else { return };
    let mut differences = Vec::new();
    for (path, arguments, status) in REQUESTS {
        let [ours, theirs] = both.ask("http", path, arguments).map(|mut answer| {
            // Ids and the texts of rejections differ.
            answer.iter_mut().for_each(|line| {
                if let Some((_, user)) = line.split_once("|x-user=") {
                    *line = user.to_owned();
                }
            });
            answer.truncate(if *status == "200" { usize::MAX } else { 1 });
            answer
        });
        differences.extend(difference(&format!("{path} {arguments:?}"), &ours, &theirs));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
