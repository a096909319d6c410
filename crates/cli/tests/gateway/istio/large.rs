//! A mesh of many services, with restarts of istiod and changes of Secrets under load. `make soak-istio` makes it
//! large, and prints the time and cost of changes, in comparison with the stock Envoy.

use super::Mesh;
use crate::{
    envoy::stock,
    support::{Certificates, Client, Connector, Load, Nginx, eventually, ports},
};
use std::{
    fmt::Write as _,
    io,
    net::SocketAddr,
    path::Path,
    str::FromStr,
    time::{Duration, Instant},
};

/// Returns a number from the environment, or this default.
fn number<T: FromStr>(variable: &str, otherwise: T) -> T {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// Services behind one gateway, each with three endpoints that refer to the same servers.
struct Site {
    mesh: Mesh,
    certificates: Certificates,
    /// Three servers, and one for changes.
    servers: [Nginx; 4],
    services: usize,
    gateway: SocketAddr,
}

impl Site {
    /// Starts istiod with its configuration, without a gateway; if Istio has not been built, prints a note and
    /// returns `None`.
    fn new(services: usize) -> Option<Self> {
        let servers =
            std::array::from_fn(|_| Nginx::new("location / { return 200 \"right $server_port\"; }"));
        let gateway = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        // Disables the parts of istiod's configuration that the stock Envoy does not support.
        let switches = [("PILOT_ENABLE_METADATA_EXCHANGE", "false"), ("PILOT_ENABLE_ALPN_FILTER", "false")];
        let routes = routes(gateway.port(), services);
        let mesh = Mesh::switched(&switches, "enableAutoMtls: false", &[("routes", &routes)])?;
        let site = Self { mesh, certificates: Certificates::new(), servers, services, gateway };
        site.rotate_secret();
        site.serve(0, &site.servers[..3]);
        site.serve_others(&site.servers[..3]);
        Some(site)
    }

    fn rotate_secret(&self) {
        self.mesh.secret_of(&self.certificates, "shop-cert", &["localhost"]);
    }

    /// Assigns these servers to the first service.
    fn serve(&self, service: usize, servers: &[Nginx]) {
        self.mesh.configure(&format!("service-{service}"), &entry(service, servers));
    }

    /// Assigns these servers to all other services.
    fn serve_others(&self, servers: &[Nginx]) {
        let entries: Vec<_> = (1..self.services).map(|service| entry(service, servers)).collect();
        self.mesh.configure("services", &entries.join("---\n"));
    }

    fn client(&self) -> io::Result<Client> {
        Connector::new(&self.certificates).http(self.gateway)
    }

    /// Waits until one of these servers responds for a service.
    fn await_service(&self, client: &mut Option<Client>, service: usize, servers: &[Nginx]) {
        let end = Instant::now() + Duration::from_secs(300);
        let expected: Vec<_> =
            servers.iter().map(|server| format!("right {}", server.address().port())).collect();
        loop {
            let answer = self.ask(client, service);
            if answer.as_ref().is_ok_and(|answer| expected.contains(answer)) {
                return;
            }
            let in_time = Instant::now() < end;
            assert!(in_time, "service {service}: {answer:?}, refused: {:#?}", self.mesh.refused());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends requests on a connection that is reopened after its end.
    fn ask(&self, client: &mut Option<Client>, service: usize) -> io::Result<String> {
        let mut open = match client.take() {
            Some(open) => open,
            None => self.client()?,
        };
        let request = format!("GET / HTTP/1.1\r\nHost: service-{service}.example.com\r\n\r\n");
        open.send(request.as_bytes())?;
        let response = open.response()?;
        *client = Some(open);
        Ok(response.text())
    }

    fn await_all(&self, client: &mut Option<Client>, servers: &[Nginx]) {
        (0..self.services).for_each(|service| self.await_service(client, service, servers));
    }

    /// Starts this program as the gateway, and changes its configuration.
    fn measure(&mut self, program: &Path, changes: usize) -> Measured {
        let began = Instant::now();
        self.mesh.start_proxy(program);
        let client = &mut None;
        self.await_all(client, &self.servers[..3]);
        let started = self.spent(began);
        let began = Instant::now();
        let mut each = Vec::new();
        for change in 0..changes {
            let servers = if change % 2 == 0 { &self.servers[3..] } else { &self.servers[..3] };
            let began = Instant::now();
            self.serve(0, servers);
            self.await_service(client, 0, servers);
            each.push(began.elapsed());
        }
        each.sort_unstable();
        let one = Spent { time: each[changes / 2], cpu: self.spent(began).cpu.saturating_sub(started.cpu) };
        let before = self.spent(began).cpu;
        let began = Instant::now();
        self.serve_others(&self.servers[3..]);
        (1..self.services).for_each(|service| self.await_service(client, service, &self.servers[3..]));
        let mut all = self.spent(began);
        all.cpu = all.cpu.saturating_sub(before);
        Measured { started, one, all, memory: self.memory() }
    }

    /// Returns the time since `began`, and the CPU time of the gateway since its start.
    fn spent(&self, began: Instant) -> Spent {
        let stat = self.of_gateway("stat");
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        // User and system time, in hundredths of a second (proc_pid_stat(5)); the fields start with the third.
        let ticks: u64 = fields[11..=12].iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        Spent { time: began.elapsed(), cpu: Duration::from_millis(10 * ticks) }
    }

    /// Returns the resident memory in MiB.
    fn memory(&self) -> u64 {
        let status = self.of_gateway("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kib = line.trim().trim_end_matches(" kB").parse::<u64>().expect("resident memory");
        kib / 1024
    }

    fn of_gateway(&self, file: &str) -> String {
        let process = self.mesh.proxy().expect("the agent has started the gateway");
        std::fs::read_to_string(format!("/proc/{process}/{file}")).expect("the gateway's process")
    }
}

/// Measurements of a gateway.
#[derive(Clone, Copy)]
struct Spent {
    time: Duration,
    cpu: Duration,
}

struct Measured {
    /// Time from the agent's start until each service is reachable.
    started: Spent,
    /// Time from a change of one service's servers until they receive requests: the median, and the CPU time of all.
    one: Spent,
    /// Time for a change of all services at once.
    all: Spent,
    memory: u64,
}

impl Measured {
    fn print(&self, name: &str, services: usize, changes: usize) {
        let Self { started, one, all, memory } = self;
        println!(
            "{name}, {services} services: all reachable after {:.1} s ({:.2} s of CPU); a service's servers changed \
             within {} ms ({changes} changes took {:.2} s of CPU), those of all within {:.1} s ({:.2} s of CPU); {memory} \
             MiB",
            started.time.as_secs_f64(),
            started.cpu.as_secs_f64(),
            one.time.as_millis(),
            one.cpu.as_secs_f64(),
            all.time.as_secs_f64(),
            all.cpu.as_secs_f64(),
        );
    }
}

/// Returns a Gateway for all hosts, with a VirtualService for each service, and one for all other hosts.
fn routes(port: u16, services: usize) -> String {
    let mut text = format!(
        "apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {{ name: shop, namespace: istio-system }}
spec:
  selector: {{ istio: ingressgateway }}
  servers:
  - port: {{ number: {port}, name: https, protocol: HTTPS }}
    bind: 127.0.0.1
    hosts: [ '*' ]
    tls: {{ mode: SIMPLE, credentialName: shop-cert }}
"
    );
    let named = (0..services).map(|service| (format!("service-{service}.example.com"), service));
    for (host, service) in named.chain([("*".to_owned(), 0)]) {
        let name = if host == "*" { "all-others".to_owned() } else { format!("service-{service}") };
        write!(
            text,
            "---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{ name: {name}, namespace: istio-system }}
spec:
  hosts: [ '{host}' ]
  gateways: [ shop ]
  http:
  - route: [ {{ destination: {{ host: service-{service}.example.com, port: {{ number: 80 }} }} }} ]
"
        )
        .expect("a text");
    }
    text
}

/// Returns a service with these servers.
fn entry(service: usize, servers: &[Nginx]) -> String {
    let endpoint =
        |server: &Nginx| format!("{{ address: 127.0.0.1, ports: {{ http: {} }} }}", server.address().port());
    let endpoints: Vec<_> = servers.iter().map(endpoint).collect();
    format!(
        "apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{ name: service-{service}, namespace: istio-system }}
spec:
  hosts: [ service-{service}.example.com ]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [ {{ number: 80, name: http, protocol: HTTP, targetPort: 80 }} ]
  endpoints: [ {} ]
",
        endpoints.join(", ")
    )
}

#[test]
fn services_and_their_endpoints_are_followed() {
    let (services, changes) = (number("QUADRILLE_MESH_SERVICES", 40), number("QUADRILLE_MESH_CHANGES", 2));
    let Some(mut site) = Site::new(services) else { return };
    let quadrille = Path::new(env!("CARGO_BIN_EXE_quadrille"));
    site.measure(quadrille, changes).print("Quadrille", services, changes);
    assert_eq!(site.mesh.refused(), Vec::<String>::new());
    drop(site);
    if std::env::var_os("QUADRILLE_MESH_SERVICES").is_some()
        && let Some(envoy) = stock::envoy()
    {
        let mut site = Site::new(services).expect("it was there before");
        site.measure(&envoy, changes).print("Envoy", services, changes);
        // Rejected configuration is not served, and would reduce the measured work.
        assert_eq!(site.mesh.refused(), Vec::<String>::new());
    }
}

#[test]
fn no_request_is_lost_while_istiod_is_killed_and_secrets_change() {
    let services = number("QUADRILLE_MESH_SERVICES", 40);
    let (rounds, pause) = (number("QUADRILLE_MESH_ROUNDS", 2), number("QUADRILLE_MESH_PAUSE", 0));
    let pause = Duration::from_secs(pause);
    let Some(mut site) = Site::new(services) else { return };
    site.mesh.start_gateway();
    site.await_all(&mut None, &site.servers[..3]);
    let load = Load::start(&site.certificates, site.gateway, "/", |body| body.starts_with("right"));
    for round in 0..rounds {
        let before = site.client().expect("a connection").serial();
        site.rotate_secret();
        eventually("the Secret is not served", || {
            site.client().is_ok_and(|client| client.serial() != before)
        });
        std::thread::sleep(pause);
        site.mesh.stop_istiod();
        // Changes made meanwhile are served once istiod is up again.
        let servers = if round % 2 == 0 { &site.servers[3..] } else { &site.servers[..3] };
        site.serve(0, servers);
        site.serve_others(servers);
        site.mesh.start_istiod();
        site.await_all(&mut None, servers);
    }
    let answered = load.finish();
    println!(
        "{answered} requests served while {rounds} Secrets changed and istiod was killed {rounds} times"
    );
    assert!(answered > 100, "{answered}");
    assert_eq!(site.mesh.refused(), Vec::<String>::new());
}
