//! Handshake overload: the clients that are rejected and served, and the recovery.
//!
//! Loopback has many networks: each test has its attackers in one network and its ordinary clients in others.

use crate::support::{
    Certificates, Gateway, PATIENCE, Returning, Way, client_hello, client_hello_of,
    configuration::{Configuration, document, listener},
    eventually, tls_client,
};
use boring::ssl::{Ssl, SslContext, SslSession};
use socket2::{Domain, Socket, Type};
use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

const REFUSED: &str = "quadrille_handshakes_refused_total";
const SHUT_OUT: &str = "quadrille_networks_shut_out";

/// Number of an attacker's concurrent clients: more than a second of work.
const WAITING: usize = 300;

/// Starts a gateway with one compute thread and one RSA-4096 operation at a time, so that no machine is too fast.
fn gateway(certificates: &Certificates, keys: &str) -> (Gateway, Configuration) {
    let listener = listener(&certificates.rsa(4096, &["localhost"]), &format!("respond: ok, {keys}"));
    let text = format!("engine: {{backend: scalar, threads: 1}}\n{}", document(&[listener], ""));
    let configuration = Configuration::new(&text);
    (Gateway::with_config(&configuration.path(), 1), configuration)
}

/// Connects from an address of the loopback network.
fn connect(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    connect_within(PATIENCE, from, to)
}

fn connect_within(limit: Duration, from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect_timeout(&to.into(), limit)?;
    let tcp = TcpStream::from(socket);
    tcp.set_read_timeout(Some(PATIENCE))?;
    Ok(tcp)
}

/// Performs a full handshake from this address; returns whether it succeeds.
fn shakes_hands(context: &SslContext, from: Ipv4Addr, to: SocketAddr) -> bool {
    let tcp = connect(from, to).expect("a connection");
    Ssl::new(context).expect("a session").connect(tcp).is_ok()
}

/// Starts handshakes from one network, at most a thousand a second, regardless of their outcome, until it is stopped.
fn attack(to: SocketAddr, hello: &[u8], stop: &AtomicBool) {
    let mut waiting = VecDeque::new();
    for host in (1..=250).cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // The gateway may have closed it already, or the kernel may have dropped it.
        if let Ok(mut tcp) = connect_within(Duration::from_millis(5), Ipv4Addr::new(127, 0, 1, host), to)
            && tcp.write_all(hello).is_ok()
        {
            waiting.push_back(tcp);
        }
        if waiting.len() > WAITING {
            waiting.pop_front();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Ends an attack when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn an_attack_from_one_network_hardly_touches_others() {
    is_withstood(|_| client_hello(&tls_client(|_| ())));
}

/// An attack on the exemption for resuming clients: these do not resume, since their ticket is for another name.
#[test]
fn nor_does_one_that_comes_with_a_ticket() {
    is_withstood(|session| {
        let mut ssl = Ssl::new(&tls_client(|_| ())).expect("a session");
        // SAFETY: the session may be used with any client context.
        unsafe { ssl.set_session(session).expect("a session of the gateway") };
        let hello = client_hello_of(ssl);
        // RFC 8446 section 4.2.11.
        assert!(hello.windows(2).any(|extension| extension == [0, 41]), "no ticket");
        hello
    });
}

/// Attacks with the ClientHello that this function makes from a session of the gateway.
fn is_withstood(hello: impl FnOnce(&SslSession) -> Vec<u8>) {
    const OTHERS: u8 = 20;
    let certificates = Certificates::new();
    let (gateway, _configuration) =
        gateway(&certificates, "timeouts: {handshake: 600s, handshake_deadline: 30s}");
    let (address, context) = (gateway.address(0), tls_client(|_| ()));
    let ordinary = |network| Ipv4Addr::new(127, 0, network, 1);
    let come = || (0..OTHERS).filter(|other| shakes_hands(&context, ordinary(10 + other), address)).count();
    // Known clients connected at least two seconds before: clients just before the queue builds up may be the
    // flood's.
    assert_eq!(come(), usize::from(OTHERS));
    thread::sleep(Duration::from_secs(2));
    // They are also active now; otherwise the attacker would have the whole machine.
    assert_eq!(come(), usize::from(OTHERS));
    let (returning, mut session) = (Returning::new(&certificates, Way::Tls13), None);
    assert!(!returning.visit(address, &mut session).expect("a full handshake"));
    assert_eq!(gateway.metric(REFUSED, &[]), 0.0);
    let hello = hello(session.as_ref().expect("a ticket"));
    let (began, stop) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| attack(address, &hello, &stop));
        // Otherwise the attack would continue after a failure.
        let _stop = Stop(&stop);
        gateway.wait_for_metric(REFUSED, &[], |refused| refused > 10.0);
        gateway.wait_for_metric("quadrille_overloaded", &[], |overloaded| overloaded == 1.0);
        gateway.wait_for_metric(SHUT_OUT, &[], |networks| networks == 1.0);
        // The share of all clients during the attack: on a busy machine, some are late.
        let (mut served, mut asked) = (0, 0);
        eventually("others are hardly served", || {
            served += come();
            asked += usize::from(OTHERS);
            served >= asked * 3 / 4
        });
        assert!(returning.visit(address, &mut session).expect("a resumed handshake"), "sessions are resumed");
    });
    let metrics = gateway.metrics();
    assert!(gateway.metric(REFUSED, &["client_share"]) > 0.0, "others came, too\n{metrics}");
    // After the attack, all clients are accepted.
    eventually("unknown clients are served again", || shakes_hands(&context, ordinary(99), address));
    gateway.wait_for_metric("quadrille_overloaded", &[], |overloaded| overloaded == 0.0);
    gateway.wait_for_metric(SHUT_OUT, &[], |networks| networks == 0.0);
    eventually("the attacker is served again", || {
        shakes_hands(&context, Ipv4Addr::new(127, 0, 1, 1), address)
    });
    let lines = gateway.log().lines().filter(|line| line.contains("rejecting handshakes")).count();
    let seconds = began.elapsed().as_secs() as usize;
    assert!((1..=seconds + 1).contains(&lines), "{lines} lines in {seconds} s\n{}", gateway.log());
    let failures = gateway.metric("quadrille_handshake_failures_total", &["\"refused\""]);
    assert_eq!(failures, gateway.metric(REFUSED, &[]));
}

#[test]
fn a_handshake_that_would_be_late_is_refused_at_once() {
    let certificates = Certificates::new();
    let (gateway, _configuration) =
        gateway(&certificates, "timeouts: {handshake: 600s, handshake_deadline: 300ms}");
    let hello = client_hello(&tls_client(|_| ()));
    let begin = || {
        let mut tcp = connect(Ipv4Addr::LOCALHOST, gateway.address(0)).expect("a connection");
        // The connection may have been rejected already.
        let _ = tcp.write_all(&hello);
        tcp
    };
    let (mut answered, mut refused) = (0, 0);
    // Repeated as required: on a busy machine, clients may connect more slowly than handshakes complete.
    eventually("all handshakes are done within 300 ms", || {
        let clients: Vec<_> = (0..300).map(|_| begin()).collect();
        for mut tcp in clients {
            let mut first = [0];
            match tcp.read(&mut first) {
                // A handshake record.
                Ok(1) if first == [22] => answered += 1,
                // An alert; or, once there is a queue, the connection is closed before its hello is read.
                Ok(length) => {
                    assert!(length == 0 || first == [21], "{first:?}");
                    refused += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
                    refused += 1;
                }
            }
        }
        gateway.metric(REFUSED, &["deadline"]) > 0.0
    });
    assert!(answered > 0, "{}", gateway.metrics());
    assert_eq!(gateway.metric(REFUSED, &[]) as usize, refused, "{}", gateway.metrics());
}

#[test]
fn without_a_deadline_all_wait() {
    let certificates = Certificates::new();
    let (gateway, _configuration) =
        gateway(&certificates, "timeouts: {handshake: 600s, handshake_deadline: off}");
    let hello = client_hello(&tls_client(|_| ()));
    let mut clients: Vec<_> = (0..200)
        .map(|_| {
            let mut tcp = connect(Ipv4Addr::LOCALHOST, gateway.address(0)).expect("a connection");
            tcp.write_all(&hello).expect("a hello");
            tcp
        })
        .collect();
    for tcp in &mut clients {
        let mut first = [0];
        tcp.read_exact(&mut first).expect("a response");
        assert_eq!(first, [22], "a handshake record");
    }
    assert_eq!(gateway.metric(REFUSED, &[]), 0.0);
}
