//! Remote JWKS: token keys that the gateway fetches, as the stock Envoy does.

use super::{
    serving,
    stock::{Both, ask, bootstrap, difference, with_ports},
    upstream,
};
use crate::support::{TokenKey, eventually, jwks, seconds_from_now, throughout};
use serde_json::json;
use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// An issuer that serves its keys, or an error if it has none.
#[derive(Clone)]
struct Issuer(Arc<Mutex<State>>, u16);

#[derive(Default)]
struct State {
    keys: Option<String>,
    /// The request lines received, with the host.
    asked: Vec<String>,
    delay: Duration,
}

impl Issuer {
    fn start(keys: Option<&TokenKey>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let state = State { keys: keys.map(|key| jwks(&[key])), ..State::default() };
        let issuer = Self(Arc::new(Mutex::new(state)), listener.local_addr().expect("an address").port());
        let serving = issuer.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                thread::spawn(move || serving.answer(&stream));
            }
        });
        issuer
    }

    fn answer(&self, mut stream: &TcpStream) -> Option<()> {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let first = lines.next()?;
        let host =
            lines.take_while(|line| !line.is_empty()).find(|line| line.to_lowercase().starts_with("host:"));
        let (keys, delay) = {
            let mut state = self.0.lock().expect("a lock");
            state.asked.push(format!("{first} {}", host.unwrap_or_default()));
            (state.keys.clone(), state.delay)
        };
        thread::sleep(delay);
        let (status, body) = keys.map_or(("503 Service Unavailable", String::new()), |keys| ("200 OK", keys));
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).ok()
    }

    fn has(&self, keys: Option<&TokenKey>) {
        self.0.lock().expect("a lock").keys = keys.map(|key| jwks(&[key]));
    }

    fn takes(&self, delay: Duration) {
        self.0.lock().expect("a lock").delay = delay;
    }

    fn asked(&self) -> Vec<String> {
        self.0.lock().expect("a lock").asked.clone()
    }

    /// Returns a bootstrap that fetches its keys, with these further fields of `remote_jwks`.
    fn bootstrap(&self, fields: &str) -> String {
        let clusters = "  - name: issuer
    connect_timeout: 1s
    load_assignment: { cluster_name: issuer, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: ISSUER } } } } ] } ] }
";
        let text = bootstrap(&MANAGER.replace("FIELDS", fields), clusters);
        with_ports(&text, &[("UPSTREAM", upstream::start().port()), ("ISSUER", self.1)])
    }
}

const MANAGER: &str = r#"
          route_config:
            name: routes
            virtual_hosts: [ { name: all, domains: [ "*" ], routes: [ { match: { prefix: / }, route: { cluster: app } } ] } ]
          http_filters:
          - name: envoy.filters.http.jwt_authn
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication
              providers:
                a:
                  issuer: a
                  remote_jwks:
                    http_uri: { uri: "https://issuer.example/keys?all", cluster: issuer, timeout: 5s }
                    FIELDS
              rules:
              - { match: { prefix: /open } }
              - { match: { prefix: / }, requires: { provider_name: a } }
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
"#;

fn bearer(key: &TokenKey) -> String {
    format!(
        "Authorization: Bearer {}",
        key.token("ES256", &json!({ "iss": "a", "exp": seconds_from_now(3600) }))
    )
}

fn status(port: u16, token: &str) -> String {
    ask("http", port, "/", &["-H", token]).swap_remove(0)
}

#[test]
fn both_fetch_keys() {
    let (key, other) = (TokenKey::p256("one"), TokenKey::p256("two"));
    let issuer = Issuer::start(None);
    let Some(both) = Both::start(&issuer.bootstrap("")) else { return };
    let (good, bad) = (bearer(&key), bearer(&other));
    let mut differences = Vec::new();
    let mut compare = |what: &str, path: &str, arguments: &[&str]| {
        let [ours, theirs] = both.ask("http", path, arguments);
        differences.extend(difference(what, &ours, &theirs));
        ours
    };
    assert_eq!(compare("no token", "/", &[])[0], "401");
    assert_eq!(compare("no token needed", "/open", &[])[0], "200");
    assert!(issuer.asked().is_empty(), "no client has sent a token");
    let failed = compare("the issuer has no keys", "/", &["-H", &good]);
    assert_eq!(failed.last().map(String::as_str), Some("Jwks remote fetch is failed"));
    issuer.has(Some(&key));
    for port in both.ports() {
        eventually("keys are fetched once there are some", || status(port, &good) == "200");
    }
    assert_eq!(compare("a good token", "/", &["-H", &good])[0], "200");
    assert_eq!(compare("another's token", "/", &["-H", &bad])[0], "401");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let asked = issuer.asked();
    assert!(
        asked.iter().all(|one| one.to_lowercase() == "get /keys?all http/1.1 host: issuer.example"),
        "{asked:?}"
    );
}

#[test]
fn keys_are_fetched_once_for_all_waiting_requests() {
    let key = TokenKey::p256("one");
    let issuer = Issuer::start(Some(&key));
    issuer.takes(Duration::from_millis(500));
    // On a slow machine, a client that connects after the fetch does not trigger another.
    let (gateway, _file) = serving(&issuer.bootstrap("cache_duration: 900s"));
    let (token, port) = (bearer(&key), gateway.port());
    let clients = [(); 8].map(|()| {
        let token = token.clone();
        thread::spawn(move || status(port, &token))
    });
    for client in clients {
        assert_eq!(client.join().expect("a client"), "200");
    }
    assert_eq!(issuer.asked().len(), 1);
}

#[test]
fn keys_are_fetched_again_when_they_are_old() {
    let (key, next) = (TokenKey::p256("one"), TokenKey::p256("two"));
    let issuer = Issuer::start(Some(&key));
    let began = Instant::now();
    let (gateway, _file) = serving(&issuer.bootstrap("cache_duration: 3s"));
    let (old, new, port) = (bearer(&key), bearer(&next), gateway.port());
    assert_eq!(status(port, &old), "200");
    issuer.has(Some(&next));
    eventually("the new key is known", || status(port, &new) == "200");
    assert_eq!(status(port, &old), "401");
    let fetched = issuer.asked().len() as u64;
    // They are not fetched for each request.
    assert!((2..=2 + began.elapsed().as_secs() / 3).contains(&fetched), "{fetched}");
    gateway
        .wait_for_metric("quadrille_token_keys_fetches_total", &["result=\"fetched\""], |count| count >= 2.0);
}

#[test]
fn keys_outlive_an_issuer_only_where_that_is_said() {
    let key = TokenKey::p256("one");
    let token = bearer(&key);
    let background = "cache_duration: 1s
                    async_fetch: { failed_refetch_duration: 0.1s }";
    for (fields, outlive) in [("cache_duration: 1s", false), (background, true)] {
        let issuer = Issuer::start(Some(&key));
        let (mut gateway, _file) = serving(&issuer.bootstrap(fields));
        assert_eq!(status(gateway.port(), &token), "200");
        issuer.has(None);
        let failed = || gateway.metric("quadrille_token_keys_fetches_total", &["result=\"failed\""]);
        eventually("fetches fail", || {
            let _ = status(gateway.port(), &token);
            failed() >= 2.0
        });
        let is_served = || status(gateway.port(), &token) == "200";
        match outlive {
            true => throughout(Duration::from_secs(2), fields, is_served),
            false => eventually("its keys are still used", || !is_served()),
        }
        issuer.has(Some(&key));
        eventually("they are fetched again", || status(gateway.port(), &token) == "200");
        if !outlive {
            gateway.wait_for_log("cannot fetch token keys");
        }
    }
}
