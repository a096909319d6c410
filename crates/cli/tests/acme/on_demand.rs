//! Certificates on demand, for names that are not configured.

use crate::{
    authority::{Behaviour, Pebble, leaf, shown, wait_for_certificate},
    fleet::Fleet,
    front::https_before,
    support::{Certificates, Gateway, eventually, quadrille, succeed},
};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

const COUNTED: &str = "quadrille_acme_on_demand_total";

/// The service that decides which names may be ordered: those that start with `shop`.
struct Owner {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
    is_away: Arc<AtomicBool>,
}

impl Owner {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/may?key=1", listener.local_addr().expect("an address"));
        let this = Self { url, asked: Arc::default(), is_away: Arc::default() };
        let (asked, is_away) = (Arc::clone(&this.asked), Arc::clone(&this.is_away));
        thread::spawn(move || {
            for mut client in listener.incoming().map_while(Result::ok) {
                let mut line = String::new();
                let _ = BufReader::new(&client).read_line(&mut line);
                if is_away.load(Ordering::Relaxed) {
                    continue;
                }
                let name =
                    line.strip_prefix("GET /may?key=1&domain=").and_then(|rest| rest.split(' ').next());
                let name = name.unwrap_or_else(|| panic!("a question: {line}")).to_owned();
                let status = if name.starts_with("shop") { "200 OK" } else { "404 Not Found" };
                asked.lock().expect("names").push(name);
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                let _ = client.write_all(answer.as_bytes());
            }
        });
        this
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("names").clone()
    }
}

fn configuration(pebble: &Pebble, owner: &Owner, limits: &str) -> PathBuf {
    let file = pebble.configuration("{ names: [home.example.com] }", "");
    let text = fs::read_to_string(&file).expect("the configuration");
    let on_demand = format!("acme: {{ on_demand: {{ ask: \"{}\"{limits} }}, email", owner.url);
    fs::write(&file, text.replace("acme: { email", &on_demand)).expect("writing");
    file
}

/// A client requests a name and is rejected.
#[track_caller]
fn wish(gateway: &Gateway, root: &Path, name: &str) {
    assert!(is_refused(gateway, root, name), "{name} already has a certificate: {}", gateway.log());
}

/// Requests a name that other clients may request too: returns whether it is rejected, which it is unless the
/// certificate has been issued by now.
#[track_caller]
fn is_refused(gateway: &Gateway, root: &Path, name: &str) -> bool {
    let outcome = shown(gateway.address(0), root, name, &[]);
    if let Err(refused) = &outcome {
        assert!(refused.contains("unrecognized name"), "{name}: {refused}");
    }
    outcome.is_err()
}

#[test]
fn a_name_is_ordered_once_it_is_wanted_and_allowed_and_is_there_afterwards() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let owner = Owner::start();
    let file = configuration(&pebble, &owner, "");
    let root = pebble.root();
    let gateway = Gateway::with_config(&file, 1);
    wait_for_certificate(&gateway, &root, "home.example.com", &[]);
    // Many concurrent clients. On a slow machine, the last ones may receive the certificate.
    let refused = thread::scope(|scope| {
        let clients = [(); 12].map(|()| scope.spawn(|| is_refused(&gateway, &root, "shop.example.com")));
        clients.map(|client| client.join().expect("a client"))
    });
    assert!(refused.contains(&true), "the certificate already existed: {refused:?}");
    let first = wait_for_certificate(&gateway, &root, "shop.example.com", &[]);
    assert_eq!(
        (owner.asked(), pebble.issued()),
        (vec!["shop.example.com".to_owned()], 2),
        "{}",
        gateway.log()
    );
    let denied = || shown(gateway.address(0), &root, "evil.example.com", &[]).expect_err("not allowed");
    denied();
    gateway.wait_for_metric(COUNTED, &["denied"], |count| count == 1.0);
    assert!(
        denied().contains("CN = ") || denied().contains("hostname mismatch"),
        "the default: {}",
        denied()
    );
    assert_eq!((owner.asked().len(), pebble.issued()), (2, 2), "a rejection is cached");
    gateway.wait_for_metric(COUNTED, &["granted"], |count| count == 1.0);
    let listed = pebble.cert(&["list"]);
    assert!(listed.contains("shop.example.com (ecdsa-p256): 89 days left"), "{listed}");

    owner.is_away.store(true, Ordering::Relaxed);
    drop(gateway);
    let gateway = Gateway::with_config(&file, 1);
    let still = shown(gateway.address(0), &root, "shop.example.com", &[]).expect("at once");
    assert_eq!(leaf(&still), leaf(&first));
    pebble.cert(&["renew", "shop.example.com"]);
    eventually("it is renewed", || {
        shown(gateway.address(0), &root, "shop.example.com", &[]).is_ok_and(|now| leaf(&now) != leaf(&first))
    });
    wish(&gateway, &root, "shop2.example.com");
    gateway.wait_for_metric(COUNTED, &["unreachable"], |count| count == 1.0);
    eventually("the failed query is not logged", || gateway.log().contains("cannot query"));
    shown(gateway.address(0), &root, "shop.example.com", &[]).expect("it serves");
    assert_eq!(owner.asked().len(), 2, "an issued name is not queried");
}

#[test]
fn there_are_no_more_names_than_are_allowed() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let owner = Owner::start();
    let root = pebble.root();
    for (limits, told) in
        [(", names: 1", "acme.on_demand.names"), (", per_hour: 1", "acme.on_demand.per_hour")]
    {
        let _ = fs::remove_file(pebble.state().join("on-demand.json"));
        let mut gateway = Gateway::with_config(&configuration(&pebble, &owner, limits), 1);
        wait_for_certificate(&gateway, &root, "home.example.com", &[]);
        wish(&gateway, &root, "shop-a.example.com");
        wait_for_certificate(&gateway, &root, "shop-a.example.com", &[]);
        wish(&gateway, &root, "shop-b.example.com");
        gateway.wait_for_metric(COUNTED, &["limited"], |count| count == 1.0);
        gateway.wait_for_log(told);
        assert!(
            !owner.asked().contains(&"shop-b.example.com".to_owned()),
            "the owner is not queried for names beyond the limit"
        );
    }
}

#[test]
fn one_gateway_of_a_fleet_orders_and_all_serve() {
    let owner = Owner::start();
    let more = format!(", on_demand: {{ ask: \"{}\" }}", owner.url);
    let Some(mut fleet) = Fleet::start(2, "tls-alpn-01", &more) else { return };
    let root = fleet.authority_begins();
    fleet.all_serve(&root, "");
    // The second client may connect when the first one's certificate has been issued.
    wish(&fleet.gateways[0], &root, "shop.example.com");
    is_refused(&fleet.gateways[1], &root, "shop.example.com");
    let served =
        fleet.gateways.iter().map(|gateway| wait_for_certificate(gateway, &root, "shop.example.com", &[]));
    let served: Vec<_> = served.collect();
    assert_eq!(leaf(&served[0]), leaf(&served[1]));
    assert_eq!(fleet.pebble.issued(), 2, "{}", fleet.logs());
    fleet.join();
    let newcomer = wait_for_certificate(&fleet.gateways[2], &root, "shop.example.com", &[]);
    assert_eq!((leaf(&newcomer), fleet.pebble.issued()), (leaf(&served[0]), 2));
    succeed(quadrille("check").arg(fleet.file(0)));
}

/// The application is queried over HTTPS, and the key type is not the default.
#[test]
fn the_question_may_go_by_https_to_a_server_that_is_trusted() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let mut owner = Owner::start();
    let certificates = Certificates::new();
    let address = owner.url.trim_start_matches("http://").split('/').next().expect("an address");
    let port = https_before(&certificates, address.parse().expect("an address"));
    owner.url = format!("https://localhost:{port}/may?key=1");
    let root = pebble.root();
    let gateway = Gateway::with_config(&configuration(&pebble, &owner, ""), 1);
    wait_for_certificate(&gateway, &root, "home.example.com", &[]);
    wish(&gateway, &root, "shop.example.com");
    gateway.wait_for_metric(COUNTED, &["unreachable"], |count| count == 1.0);
    assert!(owner.asked().is_empty(), "an untrusted server receives no query");
    drop(gateway);
    let trusted = format!(", ca_file: {}, key_type: ecdsa-p384", certificates.ca().display());
    let gateway = Gateway::with_config(&configuration(&pebble, &owner, &trusted), 1);
    wish(&gateway, &root, "shop.example.com");
    let shown = wait_for_certificate(&gateway, &root, "shop.example.com", &[]);
    assert!(shown.contains("ECDSA+SHA384") || shown.contains("384 bit"), "{shown}");
    assert_eq!(owner.asked(), ["shop.example.com"]);
}
