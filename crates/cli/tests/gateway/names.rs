//! Endpoints with DNS names, whose addresses change while the gateway serves.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, dns::DnsServer, document, eventually, listener, output,
    ports, quadrille,
};
use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};

/// A server that responds to `/` with its own address, on a common port, and to other paths once it is released.
struct Web {
    go: mpsc::Sender<()>,
}

impl Web {
    fn new(last: u8, port: u16) -> Self {
        let address = Ipv4Addr::new(127, 0, 0, last);
        let listener = TcpListener::bind((address, port)).expect("a port");
        let (go, told) = mpsc::channel();
        thread::spawn(move || {
            let told = std::sync::Arc::new(std::sync::Mutex::new(told));
            for tcp in listener.incoming().map_while(Result::ok) {
                let told = std::sync::Arc::clone(&told);
                thread::spawn(move || answer_all(tcp, address, &told));
            }
        });
        Self { go }
    }
}

fn answer_all(
    mut tcp: TcpStream,
    address: Ipv4Addr,
    told: &std::sync::Mutex<mpsc::Receiver<()>>,
) -> Option<()> {
    let mut lines = BufReader::new(tcp.try_clone().ok()?).lines().map_while(Result::ok);
    loop {
        let request = lines.next()?;
        lines.by_ref().find(String::is_empty)?;
        if !request.starts_with("GET / ") {
            told.lock().expect("no panic").recv().ok()?;
        }
        let body = address.to_string();
        write!(tcp, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    }
}

struct Site {
    certificates: Certificates,
    dns: DnsServer,
    port: u16,
    webs: Vec<Web>,
}

const WEB: &str = "web.quadrille.example";

impl Site {
    /// Starts servers on 127.0.0.2 and on 127.0.0.3; the name resolves to the first.
    fn new(ttl: u32) -> Self {
        let (dns, port) = (DnsServer::new(), ports::free());
        dns.set(WEB, &[[127, 0, 0, 2]], ttl);
        let webs = [2, 3].map(|last| Web::new(last, port)).into();
        Self { certificates: Certificates::new(), dns, port, webs }
    }

    fn configuration(&self, keys: &str, others: &str) -> Configuration {
        Configuration::new(&self.text(keys, others, "300s"))
    }

    /// Starts it with this timeout for lookups.
    fn text(&self, keys: &str, others: &str, timeout: &str) -> String {
        let pair = self.certificates.ecdsa("P-256", &["localhost"]);
        let upstreams = format!("web: {{servers: [\"{WEB}:{}\"], {keys}}}{others}", self.port);
        let routes = "routes: [{path: /other, upstream: other}], upstream: web";
        let routes = if others.is_empty() { "upstream: web" } else { routes };
        let text = document(&[listener(&pair, routes)], &upstreams);
        format!("{text}resolver: {{servers: [\"{}\"], timeout: {timeout}}}\n", self.dns.address)
    }

    fn ask(&self, gateway: &Gateway, path: &str) -> String {
        self.ask_at(gateway.address(0), path)
    }

    fn ask_at(&self, gateway: SocketAddr, path: &str) -> String {
        Connector::new(&self.certificates).get(gateway, path, "").text()
    }
}

#[test]
fn servers_follow_their_name_and_requests_under_way_end_where_they_began() {
    let site = Site::new(1);
    let file = site.configuration("retries: 0", "");
    let gateway = Gateway::with_config(&file.path(), 1);
    assert_eq!(site.ask(&gateway, "/"), "127.0.0.2");
    let (site, address) = (&site, gateway.address(0));
    thread::scope(|scope| {
        let slow = scope.spawn(move || site.ask_at(address, "/slow"));
        gateway.wait_for_metric("quadrille_dns_lookups_total", &["result=\"ok\""], |count| count >= 2.0);
        site.dns.set(WEB, &[[127, 0, 0, 3]], 1);
        eventually("it still uses the old address", || site.ask(&gateway, "/") == "127.0.0.3");
        assert!(!slow.is_finished());
        site.webs[0].go.send(()).expect("it waits");
        assert_eq!(slow.join().expect("no panic"), "127.0.0.2");
    });
    for _ in 0..5 {
        assert_eq!(site.ask(&gateway, "/"), "127.0.0.3");
    }
    site.dns.set(WEB, &[[127, 0, 0, 2], [127, 0, 0, 3]], 1);
    eventually("one of two addresses is not used", || {
        site.ask(&gateway, "/") == "127.0.0.2" && site.ask(&gateway, "/") == "127.0.0.3"
    });
}

#[test]
fn a_name_that_cannot_be_looked_up_keeps_its_addresses() {
    let site = Site::new(1);
    let file = site.configuration("", "");
    let mut gateway = Gateway::with_config(&file.path(), 1);
    site.dns.set_silent(true);
    // The first lookup has completed by now.
    file.replace(&site.text("", "", "300ms"));
    gateway.wait_for_log("configuration reloaded");
    gateway.wait_for_metric("quadrille_dns_lookups_total", &["result=\"failed\""], |count| count >= 2.0);
    gateway.wait_for_log("cannot resolve the name; it keeps its addresses");
    assert_eq!(site.ask(&gateway, "/"), "127.0.0.2");
    let reloads = || gateway.metric("quadrille_reloads_total", &["result=\"ok\""]);
    let before = reloads();
    gateway.signal("HUP");
    eventually("no reload", || reloads() > before);
    assert_eq!(site.ask(&gateway, "/"), "127.0.0.2", "after a reload, too");
    site.dns.set(WEB, &[[127, 0, 0, 3]], 1);
    site.dns.set_silent(false);
    eventually("it is not looked up again", || site.ask(&gateway, "/") == "127.0.0.3");
}

#[test]
fn an_unresolved_name_is_a_warning_if_other_endpoints_exist() {
    let site = Site::new(1);
    let other = format!(", other: {{servers: [\"other.quadrille.example:{}\"]}}", site.port);
    let file = site.configuration("", &other);
    let (good, said) = output(quadrille("check").arg(file.path()));
    assert!(good && said.contains("cannot resolve other.quadrille.example"), "{said}");
    assert!(said.contains("the name does not exist") && said.contains(".yaml:"), "{said}");
    let mut gateway = Gateway::with_config(&file.path(), 1);
    gateway.wait_for_log("cannot resolve other.quadrille.example");
    assert_eq!(site.ask(&gateway, "/"), "127.0.0.2");
    let answer = Connector::new(&site.certificates).get(gateway.address(0), "/other", "");
    assert_eq!(answer.status, 503);
    site.dns.set("other.quadrille.example", &[[127, 0, 0, 3]], 1);
    site.webs[1].go.send(()).expect("it waits");
    eventually("it is never looked up again", || {
        Connector::new(&site.certificates).get(gateway.address(0), "/other", "").status == 200
    });
}

#[test]
fn a_gateway_starts_without_any_address_and_serves_once_the_name_resolves() {
    let site = Site::new(1);
    site.dns.set_silent(true);
    let file = Configuration::new(&site.text("", "", "300ms"));
    let (good, said) = output(quadrille("check").arg(file.path()));
    assert!(good && said.contains("cannot resolve web.quadrille.example"), "{said}");
    let mut gateway = Gateway::with_config(&file.path(), 1);
    gateway.wait_for_log("cannot resolve web.quadrille.example");
    let status = || Connector::new(&site.certificates).get(gateway.address(0), "/", "").status;
    assert_eq!(status(), 503);
    site.dns.set_silent(false);
    eventually("it is never looked up again", || status() == 200);
    assert_eq!(site.ask(&gateway, "/"), "127.0.0.2");
}

/// Nothing that the configuration names resolves, as after a boot without a network.
#[test]
fn a_gateway_starts_without_dns_with_names_of_all_kinds() {
    let site = Site::new(1);
    site.dns.set_silent(true);
    let state = tempfile::tempdir().expect("a directory");
    let secret = state.path().join("fleet.secret");
    std::fs::write(&secret, [7; 32]).expect("writing");
    let pair = site.certificates.ecdsa("P-256", &["localhost"]);
    let keys = "authorization: {upstream: authz, path: /}, \
                routes: [{path: /open, authorization: off, respond: open}, \
                {path: /token, jwt: {issuer: 'https://id.example', audiences: [a], keys_url: 'https://id.quadrille.example/keys', upstream: id}, respond: ok}, \
                {path: /srv, authorization: off, upstream: srv, rewrite: /}], upstream: web";
    let ordered =
        "{address: '127.0.0.1:0', certificates: [{acme: {names: [a.quadrille.example]}}], respond: ok}";
    let upstreams = format!(
        "web: {{servers: ['{WEB}:{}'], balance: hash, health: {{path: /}}, outlier_detection: on}}, \
         authz: {{servers: ['authz.quadrille.example:80', {{address: 'b.quadrille.example:80', priority: 1}}], health: on}}, \
         id: {{servers: ['id.quadrille.example:443'], tls: on, slow_start: 10s}}, \
         srv: {{servers: ['srv:_http._tcp.quadrille.example']}}",
        site.port
    );
    let text = document(&[listener(&pair, keys), ordered.to_owned()], &upstreams);
    let file = Configuration::new(&format!(
        "{text}resolver: {{servers: [\"{}\"], timeout: 300ms}}\n\
         resumption: {{tickets: fleet, fleet_secret: {}, cache: 'redis://redis.quadrille.example:6379'}}\n\
         tracing: {{endpoint: 'http://otel.quadrille.example:4317'}}\n\
         acme: {{state: {}, directory: 'https://ca.quadrille.example/directory'}}\n",
        site.dns.address,
        secret.display(),
        state.path().display(),
    ));
    let (good, said) = output(quadrille("check").arg(file.path()));
    assert!(good && said.contains("cannot resolve web.quadrille.example"), "{said}");
    let gateway = Gateway::with_config(&file.path(), 2);
    let status = |path: &str| Connector::new(&site.certificates).get(gateway.address(0), path, "").status;
    assert_eq!((status("/open"), status("/srv"), status("/")), (200, 503, 503));
    site.dns.set_services(SERVICES, &[(0, 1, site.port, WEB)], 1);
    site.dns.set_silent(false);
    eventually("the names are not looked up again", || status("/srv") == 200);
}

#[test]
fn a_dns_server_that_drops_queries_for_ipv6_delays_nothing() {
    let site = Site::new(1);
    site.dns.set_drops_aaaa(true);
    // The start would wait for the timeout, which is longer than this test.
    let file = site.configuration("", "");
    let gateway = Gateway::with_config(&file.path(), 1);
    assert_eq!(site.ask(&gateway, "/"), "127.0.0.2");
    site.dns.set(WEB, &[[127, 0, 0, 3]], 1);
    eventually("the name is not looked up again", || site.ask(&gateway, "/") == "127.0.0.3");
    assert!(site.dns.asked_aaaa() > 0);
}

#[test]
fn one_family_is_looked_up_by_itself() {
    let site = Site::new(1);
    let file = site.configuration("dns_lookup_family: v4_only", "");
    let gateway = Gateway::with_config(&file.path(), 1);
    assert_eq!(site.ask(&gateway, "/"), "127.0.0.2");
    assert_eq!(site.dns.asked_aaaa(), 0);
    let file = site.configuration("dns_lookup_family: v6_only", "");
    let mut gateway = Gateway::with_config(&file.path(), 1);
    gateway.wait_for_log("the name has no address");
    assert_eq!(Connector::new(&site.certificates).get(gateway.address(0), "/", "").status, 503);
}

#[test]
fn an_interval_takes_the_place_of_what_records_say_and_off_leaves_it_to_reloads() {
    let site = Site::new(3600);
    let file = site.configuration("dns_refresh: 1s", "");
    let mut gateway = Gateway::with_config(&file.path(), 1);
    assert_eq!(site.ask(&gateway, "/"), "127.0.0.2");
    site.dns.set(WEB, &[[127, 0, 0, 3]], 3600);
    eventually("it is looked up once", || site.ask(&gateway, "/") == "127.0.0.3");
    let off =
        std::fs::read_to_string(file.path()).expect("a file").replace("dns_refresh: 1s", "dns_refresh: off");
    file.replace(&off);
    gateway.wait_for_log("configuration reloaded");
    // A lookup may have been in progress.
    eventually("it is looked up still", || {
        let asked = site.dns.asked();
        thread::sleep(Duration::from_millis(1500));
        site.dns.asked() == asked
    });
    site.dns.set(WEB, &[[127, 0, 0, 2]], 3600);
    assert_eq!(site.ask(&gateway, "/"), "127.0.0.3");
    gateway.signal("HUP");
    eventually("a reload does not look it up", || site.ask(&gateway, "/") == "127.0.0.2");
}

const SERVICES: &str = "_http._tcp.quadrille.example";
const OTHER: &str = "other.quadrille.example";

/// Starts a gateway whose servers are named by SRV records, with these further keys of the upstream.
fn with_services(site: &Site, keys: &str) -> (Configuration, Gateway) {
    let text =
        site.text(keys, "", "300ms").replace(&format!("{WEB}:{}", site.port), &format!("srv:{SERVICES}"));
    let file = Configuration::new(&text);
    let gateway = Gateway::with_config(&file.path(), 1);
    (file, gateway)
}

#[test]
fn srv_records_name_servers_with_ports_priorities_and_weights() {
    let site = Site::new(1);
    site.dns.set(OTHER, &[[127, 0, 0, 3]], 1);
    site.webs[1].go.send(()).expect("it waits");
    let services = |first: u16, second: u16| {
        let records = [(first, 10, site.port, WEB), (second, 10, site.port, OTHER)];
        site.dns.set_services(SERVICES, &records, 1);
    };
    services(0, 1);
    let (_file, gateway) = with_services(&site, "");
    for _ in 0..4 {
        assert_eq!(site.ask(&gateway, "/"), "127.0.0.2", "the other one is a backup");
    }
    services(1, 0);
    eventually("the priorities are not followed", || site.ask(&gateway, "/") == "127.0.0.3");
    services(7, 7);
    eventually("one of two servers of a priority is not used", || {
        site.ask(&gateway, "/") == "127.0.0.2" && site.ask(&gateway, "/") == "127.0.0.3"
    });
    // The records remain while the addresses of their hosts change.
    site.dns.set_services(SERVICES, &[(0, 0, site.port, WEB)], 3600);
    eventually("the server is still used", || (0..4).all(|_| site.ask(&gateway, "/") == "127.0.0.2"));
}

#[test]
fn weights_of_srv_records_are_shares() {
    let site = Site::new(600);
    site.dns.set(OTHER, &[[127, 0, 0, 3]], 600);
    site.dns.set_services(SERVICES, &[(0, 3, site.port, WEB), (0, 1, site.port, OTHER)], 600);
    let (_file, gateway) = with_services(&site, "");
    let names: Vec<_> = (0..40).map(|_| site.ask(&gateway, "/")).collect();
    let share = names.iter().filter(|name| *name == "127.0.0.2").count();
    assert_eq!(share, 30, "{names:?}");
}

#[test]
fn a_gateway_starts_without_srv_records_and_looks_them_up_again() {
    let site = Site::new(1);
    let (_file, mut gateway) = with_services(&site, "dns_refresh: off");
    gateway.wait_for_log("cannot resolve srv:_http._tcp.quadrille.example: the name does not exist");
    let status = || Connector::new(&site.certificates).get(gateway.address(0), "/", "").status;
    assert_eq!(status(), 503);
    site.dns.set_services(SERVICES, &[(0, 1, site.port, WEB)], 1);
    eventually("they are not looked up again", || status() == 200);
    assert_eq!(site.ask(&gateway, "/"), "127.0.0.2");
}
