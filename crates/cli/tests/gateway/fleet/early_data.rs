//! 0-RTT: early data is accepted once in the whole fleet, and is marked.

use super::Fleet;
use crate::support::{Certificates, Early, EarlyClient, Gateway, Returning, Way, eventually, ports};
use boring::ssl::SslSession;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

/// Simulates that Redis has recorded uses for four minutes, which it must before it can report a first use.
const AGE: &str = "
    local names = redis.call('KEYS', '*{early-data}:memory')
    for _, name in ipairs(names) do redis.call('HSET', name, 'since', 1) end
    return #names";

/// Deletions of Redis's records: everything, all uses, one use, or the start time of the records.
const LOSSES: [&str; 4] = [
    "return redis.call('FLUSHALL')",
    "local lost = 0
    for _, set in ipairs({'even', 'odd'}) do
        for _, name in ipairs(redis.call('KEYS', '*{early-data}:' .. set)) do lost = lost + redis.call('DEL', name) end
    end
    return lost",
    "for _, set in ipairs({'even', 'odd'}) do
        for _, name in ipairs(redis.call('KEYS', '*{early-data}:' .. set)) do return #redis.call('SPOP', name, 1) end
    end
    return 0",
    "return redis.call('DEL', unpack(redis.call('KEYS', '*{early-data}:memory')))",
];

/// An upstream that records its requests. It rejects early requests for /too-early.
struct Upstream {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&seen);
        thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                thread::spawn(move || serve(tcp, &kept));
            }
        });
        Self { address, seen }
    }

    /// Returns the headers of requests for this path, in lower case.
    fn requests(&self, path: &str) -> Vec<String> {
        let wanted = format!(" {path} ");
        self.seen.lock().expect("requests").iter().filter(|seen| seen.contains(&wanted)).cloned().collect()
    }
}

fn serve(tcp: TcpStream, kept: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(tcp.try_clone().expect("a clone"));
    loop {
        let mut header = String::new();
        while !header.ends_with("\r\n\r\n") {
            match lines.read_line(&mut header) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        let header = header.to_ascii_lowercase();
        let early = header.contains("early-data: 1");
        let status = if early && header.contains(" /too-early ") { "425 Too Early" } else { "200 OK" };
        kept.lock().expect("requests").push(header);
        let body = if early { "early" } else { "in time" };
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        if (&tcp).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

fn session(certificates: &Certificates, address: SocketAddr) -> SslSession {
    let mut session = None;
    Returning::new(certificates, Way::Tls13).visit(address, &mut session).expect("a first visit");
    session.expect("a ticket")
}

/// Sends a copied flight, and waits for the outcome.
fn replay(address: SocketAddr, flight: &[u8]) {
    let mut tcp = TcpStream::connect(address).expect("a connection");
    tcp.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    tcp.write_all(flight).expect("the copy");
    let _ = tcp.read_to_end(&mut Vec::new());
}

#[test]
fn a_first_flight_counts_once_in_the_whole_fleet() {
    let upstream = Upstream::start();
    let flags = ["--early-data", "--upstream"];
    let mut fleet = Fleet::new(2, &[&flags[..], &[&upstream.address.to_string()]].concat());
    let [one, other] = fleet.addresses()[..] else { panic!("two gateways") };
    let client = EarlyClient::new(&fleet.certificates);
    let early = |fleet: &Fleet, path: &str| -> Early {
        client.send(other, &session(&fleet.certificates, one), &get(path)).expect("a response")
    };

    let refused = early(&fleet, "/young");
    assert!(!refused.accepted, "Redis has just been started, and its records are too recent");
    assert!(refused.answer.ends_with("in time"), "{}", refused.answer);
    assert_eq!(fleet.redis.cli(&["eval", AGE, "0"]).trim(), "1");

    let ticket = session(&fleet.certificates, one);
    let accepted = client.send(other, &ticket, &get("/once")).expect("a response");
    assert!(accepted.accepted, "{}", fleet.logs());
    assert!(accepted.answer.ends_with("\r\n\r\nearly"), "{}", accepted.answer);
    for address in [one, other, one, other] {
        replay(address, &accepted.flight);
    }
    assert_eq!(upstream.requests("/once").len(), 1, "a copy counted");
    let again = client.send(one, &ticket, &get("/again")).expect("a response");
    assert!(!again.accepted && again.answer.ends_with("in time"), "the same ticket\n{}", again.answer);
    eventually("the accepted request is not counted", || {
        fleet.metric("quadrille_early_data_total", &["accepted"]) == 1.0
    });
    // Copies are not counted: without the client's keys their handshakes do not complete.
    eventually("the rejected requests are not counted", || {
        fleet.metric("quadrille_early_data_total", &["refused"]) == 2.0
    });

    let too_early = early(&fleet, "/too-early");
    assert!(too_early.accepted && too_early.answer.starts_with("HTTP/1.1 425"), "{}", too_early.answer);
    let ticket = session(&fleet.certificates, one);
    let post = "POST /post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi";
    let posted = client.send(other, &ticket, post).expect("a response");
    assert!(posted.accepted && posted.answer.starts_with("HTTP/1.1 425"), "{}", posted.answer);
    assert!(upstream.requests("/post").is_empty(), "it reached the upstream");

    fleet.redis.kill();
    let alone = early(&fleet, "/alone");
    assert!(!alone.accepted && alone.answer.ends_with("in time"), "without Redis\n{}", alone.answer);
}

/// The deletion of keys in Redis, by a client or an eviction, does not allow a second use of a ticket: not on the
/// gateway where it was used, and other gateways accept no early data until no copy of a deleted record can arrive.
#[test]
fn uses_that_redis_has_lost_are_not_repeated() {
    let upstream = Upstream::start();
    let flags = ["--early-data", "--upstream"];
    let fleet = Fleet::new(3, &[&flags[..], &[&upstream.address.to_string()]].concat());
    let [one, other, third] = fleet.addresses()[..] else { panic!("three gateways") };
    let client = EarlyClient::new(&fleet.certificates);
    let send = |address, ticket: &SslSession, path: &str| -> bool {
        client.send(address, ticket, &get(path)).expect("a response").accepted
    };
    assert!(!send(one, &session(&fleet.certificates, one), "/young"));
    for (round, loss) in LOSSES.into_iter().enumerate() {
        fleet.redis.cli(&["eval", AGE, "0"]);
        let ticket = session(&fleet.certificates, one);
        let path = format!("/first-{round}");
        let first = client.send(other, &ticket, &get(&path)).expect("a response");
        assert!(first.accepted, "round {round}: {}", fleet.logs());
        assert_ne!(fleet.redis.cli(&["eval", loss, "0"]).trim(), "0", "nothing was lost");
        for address in [other, one, third] {
            replay(address, &first.flight);
            assert!(!send(address, &ticket, "/again"), "round {round}");
        }
        assert_eq!(upstream.requests(&path).len(), 1, "round {round}: a copy counted");
        let fresh = session(&fleet.certificates, one);
        assert!(!send(third, &fresh, "/fresh"), "round {round}: Redis cannot know");
    }
}

#[test]
fn one_gateway_alone_remembers_by_itself() {
    let (certificates, upstream) = (Certificates::new(), Upstream::start());
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let address = upstream.address.to_string();
    let gateway = Gateway::with_flags(&pair, &["--early-data", "--upstream", &address]);
    let client = EarlyClient::new(&certificates);
    let ticket = session(&certificates, gateway.address(0));
    let accepted = client.send(gateway.address(0), &ticket, &get("/once")).expect("a response");
    assert!(accepted.accepted && accepted.answer.ends_with("\r\n\r\nearly"), "{}", accepted.answer);
    (0..4).for_each(|_| replay(gateway.address(0), &accepted.flight));
    assert_eq!(upstream.requests("/once").len(), 1, "a copy counted");
    let again = client.send(gateway.address(0), &ticket, &get("/again")).expect("a response");
    assert!(!again.accepted, "the same ticket");
}

#[test]
fn early_data_is_off_unless_asked_for_and_where_clients_have_certificates() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let ca = certificates.ca();
    let optional = ["--early-data", "--client-auth-optional", "--client-ca", ca.to_str().expect("UTF-8")];
    for flags in [&[][..], &optional] {
        let gateway = Gateway::with_flags(&pair, &[&["--respond", "ok"], flags].concat());
        let ticket = session(&certificates, gateway.address(0));
        let client = EarlyClient::new(&certificates);
        let early = client.send(gateway.address(0), &ticket, &get("/")).expect("a response");
        assert!(!early.accepted && early.answer.ends_with("ok"), "{flags:?}");
    }
}
