//! Clients that send requests continuously while a test changes the gateway.

use super::{Certificates, Connector, Response, output};
use std::{
    io,
    net::SocketAddr,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Idle time after which a draining gateway closes connections. A client that is delayed that long on a busy machine
/// finds its connection closed, and would have to retry on another (RFC 9112 section 9.3.1).
const LAST_REQUESTS: Duration = Duration::from_secs(1);

/// Clients in the background. Each sends its next request as soon as it has a response.
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Whether the gateway may reject new connections.
    leaving: AtomicBool,
    answered: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Load {
    /// Starts three kinds of clients: a connection for each request, a connection for many, and HTTP/2. `right`
    /// checks a response.
    pub fn start(
        certificates: &Certificates,
        address: SocketAddr,
        path: &'static str,
        right: fn(&str) -> bool,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let connector = Connector::new(certificates);
        let mut threads = Vec::new();
        for requests in [1, 1, 50, usize::MAX] {
            let (shared, connector) = (Arc::clone(&shared), connector.clone());
            threads.push(thread::spawn(move || {
                while shared.goes_on() {
                    ask(&shared, &connector, address, path, right, requests);
                }
            }));
        }
        let (http2, ca) = (Arc::clone(&shared), certificates.ca());
        threads.push(thread::spawn(move || {
            while http2.goes_on() {
                let mut curl = Command::new("curl");
                curl.args(["--http2", "-sS", "--fail", "--max-time", "180", "--cacert"]).arg(&ca);
                curl.args(["--resolve", &format!("localhost:{}:127.0.0.1", address.port())]);
                curl.arg(format!("https://localhost:{}{path}?[1-20]", address.port()));
                http2.curl(&mut curl, right);
            }
        }));
        Self { shared, threads }
    }

    /// Returns the number of responses so far.
    pub fn answered(&self) -> usize {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Allows new connections to be rejected from now on; a rejected client stops.
    pub fn expect_the_end(&self) {
        self.shared.leaving.store(true, Ordering::Relaxed);
    }

    /// Stops, and fails if any request has failed. Returns the number of responses.
    pub fn finish(self) -> usize {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a client");
        }
        let failures = self.shared.failures.lock().expect("failures");
        let answered = self.shared.answered.load(Ordering::Relaxed);
        assert!(failures.is_empty(), "{} failures, {answered} responses: {failures:#?}", failures.len());
        answered
    }
}

/// Sends this many requests on a connection, or until the gateway announces its close.
fn ask(
    shared: &Shared,
    connector: &Connector,
    address: SocketAddr,
    path: &str,
    right: fn(&str) -> bool,
    requests: usize,
) {
    let mut client = match connector.http(address) {
        Ok(client) => client,
        Err(error) => return shared.refused(&error),
    };
    let mut asked = Instant::now();
    for request in 0..requests {
        if !shared.goes_on() {
            return;
        }
        let pause = std::mem::replace(&mut asked, Instant::now()).elapsed();
        match client.get(path) {
            Ok(response) if response.status == 200 && right(&response.text()) => {
                shared.answered.fetch_add(1, Ordering::Relaxed);
                if closes(&response) {
                    return;
                }
            }
            Err(error) if request > 0 && pause > LAST_REQUESTS => return shared.refused(&error),
            outcome => return shared.failed(format!("request {request} of a connection: {outcome:?}")),
        }
    }
}

fn closes(response: &Response) -> bool {
    response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

impl Shared {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn refused(&self, error: &io::Error) {
        if self.leaving.load(Ordering::Relaxed) {
            self.stop.store(true, Ordering::Relaxed);
        } else {
            self.failed(format!("connecting: {error}"));
        }
    }

    fn failed(&self, what: String) {
        self.failures.lock().expect("failures").push(what);
        // A few errors are as informative as thousands.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Sends twenty requests over one HTTP/2 connection.
    fn curl(&self, curl: &mut Command, right: fn(&str) -> bool) {
        let (ok, said) = output(curl);
        match ok && right(&said) {
            true => drop(self.answered.fetch_add(20, Ordering::Relaxed)),
            false if self.leaving.load(Ordering::Relaxed) && said.contains("(7)") => {
                self.stop.store(true, Ordering::Relaxed);
            }
            false => self.failed(format!("HTTP/2: {said}")),
        }
    }
}
