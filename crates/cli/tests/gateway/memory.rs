//! The limit on memory: what is refused and ended as it is approached, and what goes on.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http2Server, curl, curl_status, document, echo_server,
    eventually,
    frames::{DATA, Frames, RST_STREAM, WINDOW_UPDATE},
    listener, serve,
};
use std::path::Path;

const MIB: f64 = 1024.0 * 1024.0;

/// Receive window of a stream of the gateway.
const WINDOW: usize = 256 * 1024;

/// Memory by which the limit may be exceeded between two samples.
const MARGIN: f64 = 64.0 * MIB;

/// A gateway in front of an HTTP/2 server, which does not read the bodies of requests for `/hang`.
struct Served {
    certificates: Certificates,
    gateway: Gateway,
    server: Http2Server,
    file: Configuration,
    text: String,
}

impl Served {
    /// Starts a gateway with this limit.
    fn limited_to(limit: &str) -> Self {
        let server = Http2Server::allowing(1000);
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let routes = "routes: [{path: /ok, respond: fine}, {path: /echo, upstream: echo}, \
                      {path: /copied, upstream: web, mirror: [web]}, \
                      {path: /, upstream: web}], timeouts: {idle: 600s}";
        let upstreams = format!(
            "web: {{servers: [\"{}\"], protocol: http2}}, echo: {{servers: [\"{}\"]}}",
            server.address,
            echo_server()
        );
        let text = format!("limits: {{memory: LIMIT}}\n{}", document(&[listener(&pair, routes)], &upstreams));
        let file = Configuration::new(&text.replace("LIMIT", limit));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, server, file, text }
    }

    /// Changes the limit by a reload.
    fn limit_to(&self, limit: &str) {
        self.file.replace(&self.text.replace("LIMIT", limit));
    }

    fn connector(&self) -> Connector {
        Connector::new(&self.certificates)
    }

    /// Opens an HTTP/2 connection.
    fn frames(&self) -> Frames {
        let mut frames = Frames::connect(&self.connector(), self.gateway.address(0), 65_535);
        frames.expect(WINDOW_UPDATE);
        frames
    }

    fn curl(&self, arguments: &[&str], path: &str) -> String {
        curl(&self.gateway, &self.certificates, arguments, path)
    }

    /// Uploads a file to a server that reads it. Returns the status.
    fn upload_of(&self, file: &Path) -> String {
        let data = format!("@{}", file.display());
        // curl waits for 100 before it sends a large body over HTTP/1.1, so that a refusal does not cut it off.
        let arguments = ["--http1.1", "--expect100-timeout", "180", "--data-binary", &data];
        curl_status(&self.gateway, &self.certificates, &arguments, "/echo")
    }

    fn stage(&self) -> f64 {
        self.gateway.metric("quadrille_memory_stage", &[])
    }

    fn used(&self) -> f64 {
        self.gateway.metric("quadrille_memory_used_bytes", &[])
    }

    fn held(&self, purpose: &str) -> f64 {
        self.gateway.metric("quadrille_memory_held_bytes", &[&format!("\"{purpose}\"")])
    }

    fn ended(&self) -> f64 {
        self.gateway.metric("quadrille_memory_requests_ended_total", &[])
    }

    /// Uploads that the server does not read, until `enough`; on connections of at most 200 streams.
    fn upload(&self, enough: impl Fn(&Self) -> bool) -> Vec<Frames> {
        let mut connections = Vec::new();
        loop {
            let mut frames = self.frames();
            for stream in streams(200) {
                if stream % 16 == 1 && enough(self) {
                    connections.push(frames);
                    return connections;
                }
                frames.post(stream, "/hang");
                frames.data(stream, WINDOW, 16 * 1024);
            }
            connections.push(frames);
            assert!(connections.len() < 10, "{}", self.gateway.metrics());
        }
    }

    /// Waits for the end of all stages, and checks that large requests are served again.
    #[track_caller]
    fn recovers(&self, large: &Path) {
        self.gateway.wait_for_metric("quadrille_memory_stage", &[], |stage| stage == 0.0);
        assert_eq!(self.curl(&[], "/ok"), "fine");
        assert_eq!(self.upload_of(large), "200");
    }
}

/// Stream identifiers of a client.
fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|index| 2 * index + 1)
}

#[test]
fn requests_are_refused_in_stages_and_served_again_afterwards() {
    let mut served = Served::limited_to("128MiB");
    let large = served.certificates.path("large");
    std::fs::write(&large, vec![b'x'; 2 << 20]).expect("a file");
    assert_eq!(served.upload_of(&large), "200");
    let mut idle = served.connector().http(served.gateway.address(0)).expect("a connection");
    assert_eq!(idle.get("/ok").expect("a response").status, 200);

    // Scarce: small requests are served, large and optional uses of memory are not.
    let uploads = served.upload(|served| served.stage() >= 1.0);
    assert_eq!(served.stage(), 1.0, "{}", served.gateway.metrics());
    assert_eq!(served.curl(&["--data", "small"], "/ok"), "fine");
    assert_eq!(served.upload_of(&large), "503");
    assert_eq!(served.gateway.metric("quadrille_memory_refused_total", &["\"body\""]), 1.0);
    served.gateway.wait_for_log("memory is scarce");
    assert_eq!(served.curl(&[], "/copied"), "ok");
    let dropped = ["\"dropped\""];
    assert_eq!(served.gateway.metric("quadrille_requests_mirrored_total", &dropped), 1.0);
    assert!(idle.is_closed(), "an idle connection");

    // Nearly full: all requests are refused, and nothing else is. The limit comes down to what is in use.
    let get = |served: &Served| served.connector().get(served.gateway.address(0), "/ok", "");
    served.limit_to(&format!("{:.0}MiB", served.used() / MIB / 0.965));
    eventually("requests are not refused", || {
        let response = get(&served);
        if response.status == 503 {
            assert_eq!(response.header("retry-after"), Some("1"));
            assert_eq!(response.text(), "The server is short of memory; try again later.\n");
        }
        response.status == 503
    });
    assert_eq!(served.gateway.admin_page("/healthz"), "ok\n");
    assert!(served.used() < 128.0 * MIB + MARGIN, "{}", served.used());
    assert!(served.held("unread") > 16.0 * MIB, "{}", served.gateway.metrics());
    // Uploads that never end do not cause others to be refused for as long as they last.
    eventually("requests are still refused", || get(&served).status == 200);

    drop(uploads);
    served.limit_to("128MiB");
    served.recovers(&large);
    eventually("data is held", || served.held("unread") + served.held("retry") == 0.0);
    assert!(served.server.hanging() > 100, "{}", served.server.hanging());
}

#[test]
fn requests_that_hold_most_are_ended_when_memory_is_full() {
    const EACH: u32 = 240;
    let served = Served::limited_to("112MiB");
    let large = served.certificates.path("large");
    std::fs::write(&large, vec![b'x'; 2 << 20]).expect("a file");
    // All of them are accepted while memory is free. Without a limit, they would hold a quarter of a GiB.
    let mut clients: Vec<_> = (0..3).map(|_| served.frames()).collect();
    for client in &mut clients {
        streams(EACH).for_each(|stream| client.post(stream, "/hang"));
    }
    eventually("the requests are not accepted", || served.server.hanging() == 3 * EACH as usize);
    let mut small = served.frames();
    small.post(1, "/hang");
    small.send(DATA, 0, 1, b"x");
    let mut most = 0.0_f64;
    for client in &mut clients {
        for stream in streams(EACH) {
            client.data(stream, WINDOW, 16 * 1024);
            if stream % 16 == 1 {
                most = most.max(served.used());
            }
        }
    }
    eventually("no request is ended", || {
        most = most.max(served.used());
        served.ended() > 0.0
    });
    assert!(most < 112.0 * MIB + MARGIN, "{most}");
    clients[0].expect(RST_STREAM);
    served.gateway.wait_for_metric("quadrille_memory_stage", &[], |stage| stage < 3.0);
    small.get(3, "/ok");
    loop {
        let frame = small.next().expect("a frame");
        assert!((frame.kind, frame.stream) != (RST_STREAM, 1), "a request that holds little");
        if frame.stream == 3 {
            break;
        }
    }
    drop(clients);
    served.recovers(&large);
}

#[test]
fn a_reload_changes_the_limit() {
    let served = Served::limited_to("1GiB");
    let limit = |bytes: f64| {
        served.gateway.wait_for_metric("quadrille_memory_limit_bytes", &[], |limit| limit == bytes);
    };
    limit(1024.0 * MIB);
    let mut uploads = served.upload(|served| served.used() > 100.0 * MIB);
    assert_eq!(served.stage(), 0.0);
    served.limit_to("72MiB");
    limit(72.0 * MIB);
    // More than the whole is in use.
    eventually("no request is ended", || served.ended() > 0.0);
    uploads[0].expect(RST_STREAM);
    served.gateway.wait_for_metric("quadrille_memory_stage", &[], |stage| stage < 3.0);
    served.limit_to("off");
    limit(0.0);
    assert_eq!(served.stage(), 0.0);
    assert_eq!(served.curl(&[], "/ok"), "fine");
}

#[test]
fn envoys_overload_manager_sets_the_limit() {
    let text = r#"
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }
overload_manager:
  resource_monitors:
  - { name: envoy.resource_monitors.fixed_heap, typed_config: { "@type": type.googleapis.com/envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig, max_heap_size_bytes: 1073741824 } }
  actions:
  - { name: envoy.overload_actions.stop_accepting_requests, triggers: [ { name: envoy.resource_monitors.fixed_heap, threshold: { value: SHARE } } ] }
static_resources:
  listeners:
  - name: web
    address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          route_config: { virtual_hosts: [ { name: all, domains: [ "*" ], routes: [ { match: { prefix: / }, direct_response: { status: 200 } } ] } ] }
          http_filters: [ { name: router, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router } } ]
"#;
    // A thousandth of the heap is in use before the first request.
    for (share, status) in [("0.95", 200), ("0.001", 503)] {
        let file = Configuration::new(&text.replace("SHARE", share));
        let mut command = serve();
        command.arg("--envoy-config").arg(file.path());
        let gateway = Gateway::start(command, 1);
        assert_eq!(gateway.metric("quadrille_memory_limit_bytes", &[]), 1024.0 * MIB);
        let expected = if status == 200 { 0.0 } else { 2.0 };
        gateway.wait_for_metric("quadrille_memory_stage", &[], |stage| stage == expected);
        let url = format!("http://{}/", gateway.address(0));
        let mut curl = std::process::Command::new("curl");
        curl.args([
            "--silent",
            "--max-time",
            "180",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
            &url,
        ]);
        assert_eq!(crate::support::succeed(&mut curl), status.to_string());
    }
}
