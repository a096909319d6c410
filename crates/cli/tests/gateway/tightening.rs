//! A reload with stricter requirements for clients applies at once, to open connections and to resumed sessions.

use crate::support::{
    Certificates, Client, Configuration, Connector, Gateway, PATIENCE, Pair, Returning, Way, document,
    eventually,
    frames::{self, Frames},
    listener,
};
use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

struct Site {
    ours: Certificates,
    theirs: Certificates,
    server: Pair,
    client: Pair,
    list: PathBuf,
    bundle: PathBuf,
}

/// The change that makes requirements stricter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// Certificates of another CA are required, after no client certificates.
    Required,
    /// The file of CAs has another CA.
    Ca,
    /// The client's certificate is revoked.
    Crl,
}

impl Site {
    fn new() -> Self {
        let (ours, theirs) = (Certificates::new(), Certificates::new());
        let (list, bundle) = (ours.path("list.crl"), ours.path("bundle.pem"));
        ours.revoke(&[], &list);
        std::fs::copy(ours.ca(), &bundle).expect("copying");
        let (server, client) = (ours.ecdsa("P-256", &["localhost"]), ours.ecdsa("P-256", &["alice"]));
        Self { ours, theirs, server, client, list, bundle }
    }

    fn text(&self, client_auth: &str, serve: &str, upstreams: &str) -> String {
        let keys = format!("tls: {{client_auth: {client_auth}}}, {serve}");
        document(&[listener(&self.server, &keys)], upstreams)
    }

    fn asking(&self, ca: &Path, list: Option<&Path>) -> String {
        let list = list.map(|list| format!(", crl: {}", list.display())).unwrap_or_default();
        format!("{{mode: required, ca: {}{list}}}", ca.display())
    }

    /// Returns the requirements before the change.
    fn before(&self, change: Change) -> String {
        match change {
            Change::Required => "off".to_owned(),
            Change::Ca => self.asking(&self.bundle, None),
            Change::Crl => self.asking(&self.bundle, Some(&self.list)),
        }
    }

    /// Makes the change, and waits until it is in effect.
    fn change(&self, change: Change, gateway: &Gateway, file: &Configuration, serve: &str, upstreams: &str) {
        let reloads = || gateway.metric("quadrille_reloads_total", &["result=\"ok\""]);
        let before = reloads();
        match change {
            Change::Required => {
                file.replace(&self.text(&self.asking(&self.theirs.ca(), None), serve, upstreams));
            }
            Change::Ca => {
                let new = self.bundle.with_extension("new");
                std::fs::copy(self.theirs.ca(), &new).expect("copying");
                std::fs::rename(&new, &self.bundle).expect("renaming");
            }
            Change::Crl => self.ours.revoke(&[&self.client], &self.list),
        }
        eventually("no reload", || reloads() > before);
    }
}

const CHANGES: [Change; 3] = [Change::Required, Change::Ca, Change::Crl];

/// `:status: 200` in HPACK's static table.
const OK: u8 = 0x88;

#[test]
fn nothing_more_is_served_on_open_connections() {
    for change in CHANGES {
        let site = Site::new();
        let file = Configuration::new(&site.text(&site.before(change), "respond: ok", ""));
        let gateway = Gateway::with_config(&file.path(), 1);
        let connector = Connector::presenting(&site.ours, &site.client);
        let open = || connector.http(gateway.address(0)).expect("a connection");
        let (mut asks, mut idle) = (open(), open());
        let mut streams = Frames::connect(&connector, gateway.address(0), 1 << 20);
        for client in [&mut asks, &mut idle] {
            assert_eq!(client.get("/").expect("a response").text(), "ok");
        }
        streams.get(1, "/");
        assert_eq!(streams.expect(frames::HEADERS).payload[0], OK);
        site.change(change, &gateway, &file, "respond: ok", "");
        // Its request may arrive when the connection is being closed.
        if let Ok(response) = asks.get("/") {
            let said = (response.status, response.header("connection").map(str::to_owned));
            assert_eq!(said, (421, Some("close".to_owned())), "{change:?}");
        }
        assert!(asks.is_closed() && idle.is_closed(), "{change:?}");
        expect_the_end(streams, change);
        let mut stranger = connector.http(gateway.address(0));
        let answer = stranger.as_mut().ok().and_then(|client: &mut Client| client.get("/").ok());
        assert!(answer.is_none(), "{change:?}: a new connection");
    }
}

/// The client ignores PING and GOAWAY and keeps sending requests.
fn expect_the_end(mut streams: Frames, change: Change) {
    let mut told = false;
    let end = Instant::now() + PATIENCE;
    for stream in (3..).step_by(2).take_while(|_| Instant::now() < end) {
        if streams.try_get(stream, "/").is_err() {
            return;
        }
        loop {
            match streams.next() {
                Err(_) => {
                    assert!(told, "{change:?}: no GOAWAY");
                    return;
                }
                Ok(frame) if frame.kind == frames::GOAWAY => told = true,
                Ok(frame) if frame.kind == frames::HEADERS => {
                    assert_ne!(frame.payload[0], OK, "{change:?}: served on");
                    break;
                }
                Ok(frame) if frame.kind == frames::RST_STREAM => break,
                Ok(_) => {}
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{change:?}: the connection does not end");
}

#[test]
fn no_session_of_before_is_resumed() {
    for change in CHANGES {
        let site = Site::new();
        let file = Configuration::new(&site.text(&site.before(change), "respond: ok", ""));
        let gateway = Gateway::with_config(&file.path(), 1);
        let mut visits =
            Way::ALL.map(|way| (Returning::with_certificate(&site.ours, way, &site.client), None));
        for (client, session) in &mut visits {
            client.visit(gateway.address(0), session).expect("a first visit");
            assert!(client.visit(gateway.address(0), session).expect("a second visit"), "{change:?}");
        }
        site.change(change, &gateway, &file, "respond: ok", "");
        for (way, (client, session)) in Way::ALL.into_iter().zip(&mut visits) {
            assert!(client.visit(gateway.address(0), session).is_err(), "{change:?} {way:?}");
        }
    }
}

#[test]
fn a_request_under_way_is_answered() {
    let (arrived, arrivals) = mpsc::channel();
    let (go_on, answering) = mpsc::channel::<()>();
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = upstream.local_addr().expect("an address");
    thread::spawn(move || {
        let (stream, _) = upstream.accept().expect("a connection");
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        while stream.read_line(&mut line).is_ok_and(|read| read > 2) {
            line.clear();
        }
        arrived.send(()).expect("a test");
        let _ = answering.recv();
        let _ = stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
    });
    let site = Site::new();
    let (serve, upstreams) = ("upstream: web", format!("web: {{servers: [\"{address}\"]}}"));
    let file = Configuration::new(&site.text(&site.before(Change::Crl), serve, &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let connector = Connector::presenting(&site.ours, &site.client);
    let mut client = connector.http(gateway.address(0)).expect("a connection");
    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sending");
    arrivals.recv().expect("a request");
    site.change(Change::Crl, &gateway, &file, serve, &upstreams);
    go_on.send(()).expect("a server");
    let response = client.response().expect("a response");
    assert_eq!((response.status, response.text().as_str()), (200, "late"));
    assert!(client.is_closed());
}
