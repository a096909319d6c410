//! Routes of VirtualServices.

use super::Mesh;
use crate::support::{Nginx, output, ports, recording_server};
use std::process::Command;

/// A Gateway with HTTPS and, on another port, a redirect to it; a VirtualService with a route for each of its
/// features; a service of two versions.
const OBJECTS: &str = "apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: shop, namespace: istio-system }
spec:
  selector: { istio: ingressgateway }
  servers:
  - port: { number: HTTPS_PORT, name: https, protocol: HTTPS }
    bind: 127.0.0.1
    hosts: [ shop.example.com ]
    tls: { mode: SIMPLE, credentialName: shop-cert }
  - port: { number: HTTP_PORT, name: http, protocol: HTTP }
    bind: 127.0.0.1
    hosts: [ shop.example.com ]
    tls: { httpsRedirect: true }
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: shop, namespace: istio-system }
spec:
  hosts: [ shop.example.com ]
  gateways: [ shop ]
  http:
  - { match: [ { uri: { exact: /exact } } ], directResponse: { status: 200, body: { string: exact } } }
  - { match: [ { uri: { prefix: /method }, method: { exact: POST } } ], directResponse: { status: 201, body: { string: posted } } }
  - { match: [ { uri: { regex: '/re[0-9]+' } } ], directResponse: { status: 200, body: { string: regex } } }
  - { match: [ { uri: { exact: /case }, ignoreUriCase: true } ], directResponse: { status: 200, body: { string: case } } }
  - { match: [ { uri: { prefix: /header }, headers: { x-a: { prefix: a } } } ], directResponse: { status: 200, body: { string: header } } }
  - { match: [ { uri: { prefix: /header }, withoutHeaders: { x-b: {} } } ], directResponse: { status: 200, body: { string: without } } }
  - { match: [ { uri: { prefix: /query }, queryParams: { q: { exact: '1' } } } ], directResponse: { status: 200, body: { string: query } } }
  - { match: [ { uri: { prefix: /gone } } ], directResponse: { status: 410 } }
  - { match: [ { uri: { prefix: /redirect } } ], redirect: { uri: /elsewhere, authority: other.example, redirectCode: 302 } }
  - match: [ { uri: { prefix: /rewrite } } ]
    rewrite: { uri: /to, authority: inner.example }
    route: [ { destination: { host: backend.example.com, port: { number: 80 }, subset: one } } ]
  - match: [ { uri: { regex: '/whole[0-9]+/.*' } } ]
    rewrite: { uri: /to }
    route: [ { destination: { host: backend.example.com, port: { number: 80 }, subset: one } } ]
  - match: [ { uri: { prefix: /changes } } ]
    headers: { request: { set: { x-set: new }, add: { x-added: more }, remove: [ x-gone ] }, response: { set: { x-out: told } } }
    route: [ { destination: { host: backend.example.com, port: { number: 80 }, subset: one } } ]
  - match: [ { uri: { prefix: /shares } } ]
    route:
    - { destination: { host: backend.example.com, port: { number: 80 }, subset: one }, weight: 50 }
    - { destination: { host: backend.example.com, port: { number: 80 }, subset: two }, weight: 50 }
  - match: [ { uri: { prefix: /mirrored } } ]
    route: [ { destination: { host: backend.example.com, port: { number: 80 }, subset: one } } ]
    mirrors: [ { destination: { host: backend.example.com, port: { number: 80 }, subset: shadow }, percentage: { value: 100 } } ]
  - match: [ { uri: { prefix: /silent } } ]
    timeout: 0.3s
    route: [ { destination: { host: backend.example.com, port: { number: 80 }, subset: silent } } ]
  - route: [ { destination: { host: backend.example.com, port: { number: 80 }, subset: two } } ]
    retries: { attempts: 2, retryOn: 5xx }
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: backend, namespace: istio-system }
spec:
  host: backend.example.com
  subsets:
  - { name: one, labels: { version: one } }
  - { name: two, labels: { version: two } }
  - { name: silent, labels: { version: silent } }
  - { name: shadow, labels: { version: shadow } }
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: backend, namespace: istio-system }
spec:
  hosts: [ backend.example.com ]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [ { number: 80, name: http, protocol: HTTP, targetPort: 80 } ]
  endpoints:
  - { address: 127.0.0.1, ports: { http: ONE }, labels: { version: one } }
  - { address: 127.0.0.1, ports: { http: TWO }, labels: { version: two } }
  - { address: 127.0.0.1, ports: { http: SILENT }, labels: { version: silent } }
  - { address: 127.0.0.1, ports: { http: SHADOW }, labels: { version: shadow } }
";

/// Returns the objects with these ports for HTTPS and HTTP, and for the service's servers.
pub(super) fn objects(https: u16, http: u16, [one, two, silent, shadow]: [u16; 4]) -> String {
    let ports = [
        ("HTTPS_PORT", https),
        ("HTTP_PORT", http),
        ("ONE", one),
        ("TWO", two),
        ("SILENT", silent),
        ("SHADOW", shadow),
    ];
    ports.iter().fold(OBJECTS.to_owned(), |text, (name, port)| text.replace(name, &port.to_string()))
}

#[test]
fn routes_take_what_is_theirs_and_change_it() {
    let told = "$request_uri $host set=$http_x_set added=$http_x_added gone=$http_x_gone";
    let [one, two] =
        ["one", "two"].map(|name| Nginx::new(&format!("location / {{ return 200 \"{name} {told}\"; }}")));
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let silent_port = silent.local_addr().expect("an address").port();
    let (shadow, copies) = recording_server();
    let (https, http) = (ports::free(), ports::free());
    let servers = [one.address().port(), two.address().port(), silent_port, shadow.port()];
    let objects = objects(https, http, servers);
    let Some(mut mesh) = Mesh::start("{}", &[("shop", &objects)]) else { return };
    mesh.secret("shop-cert", "shop.example.com");
    mesh.start_gateway();
    let ask = |path: &str, arguments: &[&str]| {
        mesh.ask("shop-cert", "shop.example.com", https, path, arguments).replace('\r', "")
    };
    mesh.await_or_show("agent.log", || ask("/exact", &[]) == "exact 200");
    mesh.await_or_show("agent.log", || ask("/", &[]).starts_with("two "));
    assert_eq!(mesh.refused(), Vec::<String>::new());
    let plain = |path: &str| format!("two {path} shop.example.com set= added= gone= 200");
    for (path, arguments, expected) in [
        ("/exact?a=b", &[][..], "exact 200".to_owned()),
        ("/exactly", &[], plain("/exactly")),
        ("/method", &["-X", "POST"], "posted 201".into()),
        ("/method", &[], plain("/method")),
        ("/re12", &[], "regex 200".into()),
        ("/re12x", &[], plain("/re12x")),
        ("/CASE", &[], "case 200".into()),
        ("/header", &["-H", "x-a: abc"], "header 200".into()),
        ("/header", &[], "without 200".into()),
        ("/header", &["-H", "x-b: 1"], plain("/header")),
        ("/query?q=1", &[], "query 200".into()),
        ("/query?q=2", &[], plain("/query?q=2")),
        ("/gone", &[], " 410".into()),
        ("/rewrite/a?b=c", &[], "one /to/a?b=c inner.example set= added= gone= 200".into()),
        ("/whole1/a?b=c", &[], "one /to?b=c shop.example.com set= added= gone= 200".into()),
        (
            "/changes",
            &["-H", "x-set: old", "-H", "x-gone: g"],
            "one /changes shop.example.com set=new added=more gone= 200".into(),
        ),
    ] {
        let answer = ask(path, arguments);
        // Servers receive the port that the client requested.
        let answer = answer.replace(&format!("shop.example.com:{https}"), "shop.example.com");
        assert_eq!(answer, expected, "{path} {arguments:?}");
    }
    assert!(ask("/mirrored", &[]).starts_with("one /mirrored "));
    let copy = copies.recv_timeout(crate::support::PATIENCE).expect("a copy");
    let copy = String::from_utf8_lossy(&copy).to_ascii_lowercase();
    assert!(copy.starts_with("get /mirrored http/1.1\r\n"), "{copy}");
    // Istio disables the suffix `-shadow`.
    assert!(copy.contains(&format!("\r\nhost: shop.example.com:{https}\r\n")), "{copy}");
    let timed_out = ask("/silent", &[]);
    assert!(timed_out.ends_with(" 504"), "{timed_out}");
    assert!(ask("/changes", &["-i"]).to_ascii_lowercase().contains("\nx-out: told\n"));
    let redirect = ask("/redirect", &["-i"]).to_ascii_lowercase();
    assert!(redirect.contains(" 302 ") || redirect.contains(" 302\n"), "{redirect}");
    assert!(redirect.contains("\nlocation: https://other.example/elsewhere\n"), "{redirect}");
    let shares: Vec<_> = (0..40).map(|_| ask("/shares", &[])).collect();
    for name in ["one ", "two "] {
        assert!(shares.iter().any(|answer| answer.starts_with(name)), "{shares:?}");
    }
    let url = format!("http://shop.example.com:{http}/a?b=c");
    let resolve = format!("shop.example.com:{http}:127.0.0.1");
    let (_, moved) = output(Command::new("curl").args([
        "-s",
        "-i",
        "--noproxy",
        "*",
        "--max-time",
        "300",
        "--resolve",
        &resolve,
        &url,
    ]));
    assert!(moved.starts_with("HTTP/1.1 301"), "{moved}");
    assert!(moved.to_ascii_lowercase().contains("location: https://shop.example.com"), "{moved}");
}
