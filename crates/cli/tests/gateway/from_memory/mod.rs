//! Configuration updates from memory while the gateway runs: changed and unchanged parts, and no failed requests.

mod clients;

use crate::support::{PATIENCE, eventually};
use boring::ssl::{SslConnector, SslMethod, SslStream, SslVerifyMode};
use quadrille_config::{
    Diagnostic,
    model::{
        Action, CertificateSource, Chain, ChainMatch, Domain, Forward, Gateway, Health, Http, KeySource,
        Listener, PathMatch, PathRule, Place, Respond, Route, RouteTable, Serve, Server, Source, Tls,
        TlsPolicy, Transport, Upstream, VirtualHost, Weighted,
    },
};
use quadrille_gateway::{Applied, Bound, ConfigurationSource, Control, RebuiltParts as Parts};
use rcgen::{CertificateParams, KeyPair};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// A gateway in this process, which ends with the process.
struct Running {
    control: Control,
    bound: Bound,
    runtime: tokio::runtime::Runtime,
}

impl Running {
    fn start(model: Gateway) -> Self {
        let (control, updates) = quadrille_gateway::control();
        let (sender, ready) = mpsc::channel();
        thread::spawn(move || {
            let origin = ConfigurationSource { updates: Some(updates), ..ConfigurationSource::fixed(&model) };
            let told = sender.clone();
            let ended =
                quadrille_gateway::serve(model, origin, move |bound| _ = told.send(Ok(bound.clone())));
            let _ = sender.send(Err(ended));
        });
        let bound = ready.recv_timeout(PATIENCE).expect("a response").expect("it starts");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        Self { control, bound, runtime }
    }

    fn apply(&self, model: Gateway) -> Result<Applied, Vec<Diagnostic>> {
        self.runtime.block_on(self.control.apply(model))
    }

    fn address(&self, index: usize) -> SocketAddr {
        self.bound.listeners[index]
    }
}

fn place() -> Place {
    Place::flag("test")
}

fn certificate(name: &str) -> Arc<CertificateSource> {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    Arc::new(CertificateSource {
        chain: Source::inline(params.self_signed(&key).expect("a certificate").pem()),
        key: KeySource::Pem(Source::inline(key.serialize_pem())),
        ocsp: None,
        poll_delay: None,
        chain_place: place(),
        key_place: place(),
        ocsp_place: None,
        order: None,
        trust_anchor: None,
    })
}

fn answer(text: &str) -> Action {
    Action::Respond(Respond::text(text.to_owned()))
}

fn table(action: Action) -> RouteTable {
    let route = Route::new(PathMatch::any(), action, place());
    RouteTable {
        hosts: vec![VirtualHost::new(vec![Domain::Any], vec![route], place())],
        ..RouteTable::default()
    }
}

fn says(text: &str) -> Serve {
    Serve::Http(Http::new(table(answer(text))))
}

fn chain(names: &[&str], certificate: Option<&Arc<CertificateSource>>, serve: Serve) -> Chain {
    let tls =
        certificate.map(|one| Tls { certificates: vec![Arc::clone(one)], policy: TlsPolicy::default() });
    let server_names = names.iter().map(|&name| name.to_owned()).collect();
    let accepts = ChainMatch { server_names, ..ChainMatch::default() };
    Chain { accepts, ..Chain::new(tls, serve, place()) }
}

fn listener(chains: Vec<Chain>) -> Listener {
    let mut listener =
        Listener::new(([127, 0, 0, 1], 0).into(), place(), chain(&[], None, Serve::Tcp(Vec::new())));
    listener.chains = chains;
    listener
}

fn gateway(listeners: Vec<Listener>) -> Gateway {
    Gateway { listeners, admin: None, sampling: None, threads: 2.try_into().ok(), ..Gateway::default() }
}

fn upstream(servers: &[SocketAddr]) -> Upstream {
    let servers = servers.iter().map(|address| Server::new(address.to_string(), place())).collect();
    Upstream::new(servers, place())
}

/// Connects; returns the name in the certificate and the connection.
fn connect(address: SocketAddr, name: &str) -> Result<(String, SslStream<TcpStream>), String> {
    let tcp = TcpStream::connect(address).map_err(|error| error.to_string())?;
    tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("a builder");
    builder.set_verify(SslVerifyMode::NONE);
    let mut configuration = builder.build().configure().expect("a configuration");
    configuration.set_verify_hostname(false);
    let tls = configuration.connect(name, tcp).map_err(|error| error.to_string())?;
    let certificate = tls.ssl().peer_certificate().ok_or("no certificate")?;
    let names = certificate.subject_alt_names().ok_or("no names")?;
    let name = names.iter().find_map(|name| name.dnsname().map(str::to_owned)).ok_or("no name")?;
    Ok((name, tls))
}

/// Returns the body of the response to one request on a connection that stays open.
fn get(stream: &mut (impl Read + Write), host: &str, path: &str) -> Result<String, String> {
    let text = |error: std::io::Error| error.to_string();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).map_err(text)?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((header, body)) = whole.split_once("\r\n\r\n") {
            let header = header.to_ascii_lowercase();
            let length = header.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                let ok = header.starts_with("http/1.1 200");
                return if ok { Ok(body.to_owned()) } else { Err(whole) };
            }
        }
        match stream.read(&mut chunk).map_err(text)? {
            0 => return Err(format!("closed after {whole:?}")),
            count => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

fn get_plain(address: SocketAddr, host: &str, path: &str) -> Result<String, String> {
    let mut tcp = TcpStream::connect(address).map_err(|error| error.to_string())?;
    tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    get(&mut tcp, host, path)
}

/// A server that responds to every request with its name, and counts requests.
struct Named {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    answering: Arc<AtomicBool>,
}

impl Named {
    fn new(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (requests, answering) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
        let (counted, answers) = (Arc::clone(&requests), Arc::clone(&answering));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (counted, answers) = (Arc::clone(&counted), Arc::clone(&answers));
                thread::spawn(move || serve_named(stream, name, &counted, &answers));
            }
        });
        Self { address, requests, answering }
    }
}

fn serve_named(mut stream: TcpStream, name: &str, counted: &AtomicUsize, answers: &AtomicBool) {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
        while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let probe = bytes.starts_with(b"GET /health");
            bytes.drain(..end + 4);
            counted.fetch_add(usize::from(!probe), Ordering::SeqCst);
            let status = if answers.load(Ordering::SeqCst) { "200 OK" } else { "500 Broken" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{name}", name.len());
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

#[test]
fn chains_are_chosen_by_what_the_client_says() {
    let (exact, wild, other) =
        (certificate("www.a.example"), certificate("wild.example"), certificate("other.example"));
    let mut plain = chain(&[], None, says("plain"));
    plain.accepts.transport = Some(Transport::Plain);
    let mut strict = chain(&["strict.example"], Some(&exact), says("strict"));
    strict.tls = Some(Arc::new(Tls {
        certificates: vec![Arc::clone(&exact)],
        policy: TlsPolicy { min: quadrille_config::model::Version::Tls13, ..TlsPolicy::default() },
    }));
    let mut chosen = listener(vec![
        chain(&["www.a.example"], Some(&exact), says("exact")),
        chain(&["*.a.example"], Some(&wild), says("wild")),
        strict,
        plain,
    ]);
    let closed = listener(chosen.chains.clone());
    chosen.default_chain = Some(chain(&[], Some(&other), says("other")));
    let running = Running::start(gateway(vec![chosen, closed]));
    for (name, certificate, body) in [
        ("www.a.example", "www.a.example", "exact"),
        ("b.www.a.example", "wild.example", "wild"),
        ("x.a.example", "wild.example", "wild"),
        ("strict.example", "www.a.example", "strict"),
        ("a.example", "other.example", "other"),
    ] {
        let (seen, mut tls) = connect(running.address(0), name).expect(name);
        assert_eq!(seen, certificate, "{name}");
        assert_eq!(get(&mut tls, name, "/").expect(name), body);
    }
    assert_eq!(get_plain(running.address(0), "a", "/").expect("plain text"), "plain");
    assert_eq!(get_plain(running.address(1), "a", "/").expect("plain text"), "plain");
    connect(running.address(1), "a.example").expect_err("no chain accepts it");
    let statistics = running.runtime.block_on(running.control.statistics()).expect("it runs");
    let [one, two] = &statistics.listeners[..] else { panic!("{statistics:?}") };
    assert_eq!((one.no_chain, two.no_chain), (0, 1));
    let handshakes: Vec<u64> = one.chains.iter().map(|chain| chain.handshakes).collect();
    assert_eq!(handshakes, [1, 2, 1, 0, 1]);
    assert_eq!(one.chains[3].requests[2], 1, "the plain one");
}

#[test]
fn a_bad_configuration_changes_nothing() {
    let one = certificate("one.example");
    let running = Running::start(gateway(vec![listener(vec![chain(&[], Some(&one), says("one"))])]));
    let mut bad = CertificateSource::clone(&certificate("two.example"));
    bad.key = one.key.clone();
    let problems = running
        .apply(gateway(vec![
            listener(vec![chain(&[], Some(&Arc::new(bad)), says("two"))]),
            listener(vec![chain(&[], None, says("three")), chain(&[], None, says("four"))]),
        ]))
        .expect_err("the key is another's");
    let text = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(text.contains("does not match") && text.contains("accepts the same connections"), "{text}");
    assert!(!text.contains("PRIVATE KEY"), "{text}");
    let (name, mut tls) = connect(running.address(0), "one.example").expect("it keeps serving");
    assert_eq!((name.as_str(), get(&mut tls, "a", "/").as_deref()), ("one.example", Ok("one")));
}

#[test]
fn listeners_come_and_go() {
    let model = |ports: &[SocketAddr], text| {
        let at = |address: &SocketAddr| {
            let mut listener = listener(vec![chain(&[], None, says(text))]);
            listener.address = *address;
            listener
        };
        gateway(ports.iter().map(at).collect())
    };
    let free =
        || TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let (one, two) = (free(), free());
    let running = Running::start(model(&[one], "first"));
    let mut open = TcpStream::connect(one).expect("a connection");
    assert_eq!(get(&mut open, "a", "/").expect("a response"), "first");
    running.apply(model(&[one, two], "second")).expect("it is valid");
    assert_eq!(get_plain(two, "a", "/").expect("the new port"), "second");
    assert_eq!(get(&mut open, "a", "/").expect("the open connection"), "second");
    running.apply(model(&[two], "third")).expect("it is valid");
    assert_eq!(get(&mut open, "a", "/").expect("its last response"), "second");
    let mut byte = [0];
    assert_eq!(open.read(&mut byte).expect("an orderly end"), 0, "a removed listener closes its connections");
    eventually("the port is still open", || TcpStream::connect(one).is_err());
    assert_eq!(get_plain(two, "a", "/").expect("the remaining port"), "third");
}

#[test]
fn endpoints_change_and_what_is_known_of_the_others_stays() {
    let (sick, well, new) = (Named::new("sick"), Named::new("well"), Named::new("new"));
    sick.answering.store(false, Ordering::SeqCst);
    let health = Health {
        probe: quadrille_config::model::HealthProbe::Http(quadrille_config::model::HttpProbe::get("/health")),
        interval: Duration::from_millis(50),
        unhealthy: 1.try_into().expect("one"),
        ..Health::default()
    };
    let model = |servers: &[&Named], health: Health| {
        let servers: Vec<_> = servers.iter().map(|server| server.address).collect();
        let mut upstream = upstream(&servers);
        (upstream.health, upstream.retries) = (Some(health), 0);
        let serve = Serve::Http(Http::new(table(Action::Forward(Box::new(Forward::to("web"))))));
        let mut gateway = gateway(vec![listener(vec![chain(&[], None, serve)])]);
        gateway.upstreams.insert("web".into(), upstream);
        gateway
    };
    let running = Running::start(model(&[], health.clone()));
    assert!(get_plain(running.address(0), "a", "/").expect_err("no server yet").contains("503"));
    running.apply(model(&[&sick, &well], health.clone())).expect("it is valid");
    let healthy = || {
        let statistics = running.runtime.block_on(running.control.statistics()).expect("it runs");
        statistics.upstreams[0].healthy
    };
    eventually("the unhealthy server is not detected", || healthy() == 1);
    sick.requests.store(0, Ordering::SeqCst);
    running.apply(model(&[&sick, &well, &new], health)).expect("it is valid");
    let answers: Vec<_> =
        (0..21).map(|_| get_plain(running.address(0), "a", "/").expect("a response")).collect();
    for name in ["well", "new"] {
        // A third of the requests, and a random part of the unhealthy server's third.
        assert!(answers.iter().filter(|answer| *answer == name).count() >= 7, "{answers:?}");
    }
    assert_eq!(sick.requests.load(Ordering::SeqCst), 0, "it was known to be unhealthy");
}

/// Everything changes repeatedly under load, and no request fails.
#[test]
fn no_request_fails_while_configurations_change() {
    let servers = [Named::new("a"), Named::new("b")];
    let certificates: Vec<_> = (0..4).map(|_| certificate("load.example")).collect();
    let model = |round: usize| {
        let forward = Forward {
            to: vec![Weighted::all("one"), Weighted::all(["two", "three"][round % 2])],
            ..Forward::to("one")
        };
        let route = Route::new(
            PathMatch { rule: PathRule::Prefix("/".into()), ignore_case: round.is_multiple_of(3) },
            Action::Forward(Box::new(forward)),
            place(),
        );
        let mut table = table(answer("never"));
        table.hosts[0].routes.insert(0, route);
        let serve = Serve::Http(Http::new(table));
        let mut gateway = gateway(vec![listener(vec![
            chain(&["load.example"], Some(&certificates[round % 4]), serve.clone()),
            chain(&[], Some(&certificates[0]), serve),
        ])]);
        let servers: Vec<_> = servers.iter().map(|server| server.address).collect();
        gateway.upstreams.insert("one".into(), upstream(&servers[..1 + round % 2]));
        gateway.upstreams.insert(["two", "three"][round % 2].into(), upstream(&servers[1..]));
        gateway
    };
    let running = Running::start(model(0));
    let address = running.address(0);
    let stop = Arc::new(AtomicBool::new(false));
    let requests = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let (stop, requests) = (Arc::clone(&stop), Arc::clone(&requests));
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let name = ["load.example", "x.example"][client % 2];
                    let (_, mut tls) = connect(address, name).expect("a connection");
                    for _ in 0..5 {
                        get(&mut tls, name, "/x").expect("a response");
                        requests.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    let mut rounds = 0;
    while rounds < 30 || requests.load(Ordering::Relaxed) < 300 {
        rounds += 1;
        let before = requests.load(Ordering::Relaxed);
        running.apply(model(rounds)).expect("it is valid");
        eventually("the load makes no progress", || {
            clients.iter().any(thread::JoinHandle::is_finished) || requests.load(Ordering::Relaxed) > before
        });
        assert!(!clients.iter().any(thread::JoinHandle::is_finished), "a client has failed");
    }
    stop.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().expect("no failure"));
    let requests = requests.load(Ordering::Relaxed);
    println!("{requests} requests during {rounds} changes");
    assert!(requests >= 300, "{requests}");
}

/// Applies two hundred certificates (or `QUADRILLE_CHAINS`) and ten times as many routes; then changes one
/// certificate and one upstream's servers.
#[test]
fn what_has_not_changed_is_not_made_again() {
    let count = std::env::var("QUADRILLE_CHAINS").map_or(200, |count| count.parse().expect("a number"));
    let name = |index: usize| format!("{index}.example");
    let mut certificates: Vec<_> = (0..count).map(|index| certificate(&name(index))).collect();
    let hosts = (0..count).map(|index| {
        let routes = (0..10).map(|path| {
            let rule = PathRule::Prefix(format!("/{path}"));
            let action = if path == 9 { Action::Forward(Box::new(Forward::to("web"))) } else { answer("hi") };
            Route::new(PathMatch { rule, ignore_case: false }, action, place())
        });
        VirtualHost::new(vec![Domain::Exact(name(index))], routes.collect(), place())
    });
    let http = Http::new(RouteTable { hosts: hosts.collect(), ..RouteTable::default() });
    let model = |certificates: &[Arc<CertificateSource>], servers: &[SocketAddr]| {
        let chains = certificates
            .iter()
            .enumerate()
            .map(|(index, certificate)| chain(&[&name(index)], Some(certificate), Serve::Http(http.clone())));
        let mut gateway = gateway(vec![listener(chains.collect())]);
        gateway.upstreams.insert("web".into(), upstream(servers));
        gateway
    };
    let running = Running::start(gateway(vec![listener(vec![chain(&[], None, says("nothing yet"))])]));
    let server = Named::new("web");
    let made = |certificates: &[Arc<CertificateSource>], servers: &[SocketAddr]| {
        let applied = running.apply(model(certificates, servers)).expect("it is valid");
        println!("{:?}: {:?}", applied.took, applied.made);
        applied.made
    };
    let tls = Parts { certificates: count, tls_contexts: count, ..Parts::default() };
    let all = Parts { route_tables: 1, upstreams: 1, ..tls };
    assert_eq!(made(&certificates, &[server.address]), all);
    assert_eq!(made(&certificates, &[server.address]), Parts::default(), "the same again");
    let half = count / 2;
    certificates[half] = certificate("new.example");
    let one = Parts { certificates: 1, tls_contexts: 1, ..Parts::default() };
    assert_eq!(made(&certificates, &[server.address]), one);
    assert_eq!(made(&certificates, &[server.address, server.address]), Parts::default(), "endpoints alone");
    let (seen, mut tls) = connect(running.address(0), &name(half)).expect("a connection");
    assert_eq!(seen, "new.example");
    assert_eq!(get(&mut tls, &name(half), "/5").expect("a response"), "hi");
    assert_eq!(get(&mut tls, &name(count - 1), "/9").expect("a response"), "web");
    assert_eq!(connect(running.address(0), &name(half + 1)).expect("a connection").0, name(half + 1));
}
