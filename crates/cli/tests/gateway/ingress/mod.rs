//! `quadrille ingress report`: the configuration that it writes, beside nginx, and the report.

mod access;
mod balance;
mod https;
mod paths;
mod report;
mod servers;

use crate::support::{
    Configuration, Gateway, Nginx,
    comparison::{Outcome, Request, exchange, header, outcome},
    echo_server, quadrille, recording_server,
};
use std::{fmt::Write as _, net::SocketAddr, path::PathBuf, process::Output, sync::mpsc::Receiver};

/// Services for the objects of a test: `a` and `b` echo, `errors` responds with 500, `dead` refuses connections, and
/// `empty` has no endpoints.
struct Cluster {
    a: SocketAddr,
    b: SocketAddr,
    errors: SocketAddr,
    _recorded: Receiver<Vec<u8>>,
    /// Further Services.
    others: Vec<(&'static str, SocketAddr)>,
}

impl Cluster {
    fn new() -> Self {
        let (errors, _recorded) = recording_server();
        Self { a: echo_server(), b: echo_server(), errors, _recorded, others: Vec::new() }
    }

    fn with(mut self, name: &'static str, address: SocketAddr) -> Self {
        self.others.push((name, address));
        self
    }

    /// Returns the Services with their endpoints.
    fn objects(&self) -> String {
        let mut text = service("empty", &[]);
        let dead = SocketAddr::from(([127, 0, 0, 1], 1));
        text.push_str(&service("dead", &[dead]));
        text.push_str(&service("half", &[dead, self.a]));
        for (name, address) in
            [("a", self.a), ("b", self.b), ("errors", self.errors)].iter().chain(&self.others)
        {
            text.push_str(&service(name, &[*address]));
        }
        text
    }

    /// Replaces the names of Services in nginx's configuration: `<a>`, `<b>` and so on.
    fn addressed(&self, text: &str) -> String {
        let known = [("a", self.a), ("b", self.b), ("errors", self.errors)];
        known.iter().chain(&self.others).fold(text.to_owned(), |text, (name, address)| {
            text.replace(&format!("<{name}>"), &address.to_string())
        })
    }

    /// Starts the gateway with the configuration of these objects, in addition to the Services.
    fn gateway(&self, objects: &str) -> Served {
        Served::new(&format!("{}{objects}", self.objects()))
    }

    /// Sends the requests to nginx, and to the gateway with the configuration of the objects, and compares the outcomes
    /// and these headers of responses. `http` is the content of nginx's block `http`.
    fn compare(&self, objects: &str, http: &str, requests: &[Request<'_>], headers: &[&str]) {
        let nginx = Nginx::of_http(&self.addressed(http));
        let served = self.gateway(objects);
        let mut differences = Vec::new();
        let both = |address: SocketAddr, request: &Request<'_>| -> (Outcome, Vec<Option<String>>) {
            let head = if headers.is_empty() { String::new() } else { exchange(address, request) };
            let head = head.split("\r\n\r\n").next().unwrap_or_default().to_owned();
            (outcome(address, request), headers.iter().map(|name| header(&head, name)).collect())
        };
        for request in requests {
            let (expected, found) = (both(nginx.address(), request), both(served.http(), request));
            if expected != found {
                differences.push(format!("{request:?}\n  nginx:   {expected:?}\n  gateway: {found:?}"));
            }
        }
        assert!(
            differences.is_empty(),
            "{}\n\n{}\n{}",
            differences.join("\n"),
            served.yaml,
            served.gateway.log()
        );
    }
}

/// Returns a Service with a port 80 named `http`, and its endpoints.
fn service(name: &str, endpoints: &[SocketAddr]) -> String {
    let mut text = format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{ name: {name}, namespace: shop }}\nspec: {{ ports: [{{ name: http, port: 80 }}] }}\n"
    );
    for (number, endpoint) in endpoints.iter().enumerate() {
        let _ = write!(
            text,
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\nmetadata: {{ name: {name}-{number}, namespace: shop, \
             labels: {{ kubernetes.io/service-name: {name} }} }}\nports: [{{ name: http, port: {} }}]\n\
             endpoints: [{{ addresses: [{}], conditions: {{ ready: true }} }}]\n",
            endpoint.port(),
            endpoint.ip()
        );
    }
    text
}

/// Returns an Ingress with these annotations (`name: "value"`, without the prefix, one a line) and paths (the path, its type
/// and its Service).
fn ingress(name: &str, annotations: &str, host: &str, paths: &[(&str, &str, &str)]) -> String {
    ingress_with(name, annotations, host, paths, "")
}

/// Returns an Ingress with further keys of `spec`.
fn ingress_with(
    name: &str,
    annotations: &str,
    host: &str,
    paths: &[(&str, &str, &str)],
    spec: &str,
) -> String {
    let mut text = format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  namespace: shop\n  annotations:\n"
    );
    for line in annotations.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let _ = writeln!(text, "    nginx.ingress.kubernetes.io/{line}");
    }
    let _ = write!(text, "    example.com/note: x\nspec:\n  ingressClassName: nginx\n{spec}");
    if paths.is_empty() {
        return text;
    }
    let host = if host.is_empty() { String::new() } else { format!("host: \"{host}\"\n    ") };
    let _ = write!(text, "  rules:\n  - {host}http:\n      paths:\n");
    for (path, kind, service) in paths {
        let _ = writeln!(
            text,
            "      - {{ path: '{path}', pathType: {kind}, backend: {{ service: {{ name: {service}, port: {{ name: http }} }} }} }}"
        );
    }
    text
}

/// Returns a Secret or a ConfigMap with these entries as `stringData` or `data`.
fn map(kind: &str, name: &str, entries: &[(&str, &str)]) -> String {
    let key = if kind == "Secret" { "stringData" } else { "data" };
    let mut text =
        format!("---\napiVersion: v1\nkind: {kind}\nmetadata: {{ name: {name}, namespace: shop }}\n{key}:\n");
    for (name, value) in entries {
        let _ = writeln!(text, "  {name}: |-");
        value.lines().for_each(|line| _ = writeln!(text, "    {line}"));
    }
    text
}

/// A gateway with the configuration of some objects.
struct Served {
    gateway: Gateway,
    yaml: String,
    report: String,
    _file: Configuration,
}

impl Served {
    fn new(objects: &str) -> Self {
        Self::with_listeners(objects, &["--http", "127.0.0.1:0"], 1)
    }

    /// Starts the gateway with these flags of the report, when it has this number of listeners.
    fn with_listeners(objects: &str, flags: &[&str], listeners: usize) -> Self {
        let file = Configuration::new("");
        let manifest = file.path().with_file_name("objects.yaml");
        std::fs::write(&manifest, objects).expect("the objects");
        let (output, report) =
            run(&[&[&manifest.display().to_string(), "--config", &file.path().display().to_string()], flags]
                .concat());
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{report}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let yaml = std::fs::read_to_string(file.path()).expect("the configuration");
        file.replace(&format!("{yaml}admin: \"127.0.0.1:0\"\n"));
        let checked = quadrille("check").arg(file.path()).output().expect("quadrille");
        assert!(checked.status.success(), "{}\n{yaml}", String::from_utf8_lossy(&checked.stderr));
        let gateway = Gateway::with_config(&file.path(), listeners);
        Self { gateway, yaml, report, _file: file }
    }

    /// Returns the address of the listener for HTTP.
    fn http(&self) -> SocketAddr {
        self.gateway.address(0)
    }
}

/// Runs `quadrille ingress report`.
fn run(arguments: &[&str]) -> (Output, String) {
    let output = quadrille("ingress").arg("report").args(arguments).output().expect("quadrille");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, report)
}

/// Returns a file with these objects.
fn file_of(objects: &str) -> (Configuration, PathBuf) {
    let file = Configuration::new(objects);
    let path = file.path();
    (file, path)
}

/// Returns a location as ingress-nginx's template writes it: with the headers for servers.
fn location(path: &str, directives: &str) -> String {
    format!(
        "location {path} {{
            proxy_set_header Host $http_host; proxy_set_header X-Request-ID $request_id;
            proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Port $server_port;
            proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Scheme $scheme;
            proxy_set_header X-Scheme $scheme; proxy_set_header Proxy ''; proxy_http_version 1.1;
            {directives} }}\n"
    )
}

/// Returns a server with these locations, and the default server for other hosts.
fn server(names: &str, locations: &str) -> String {
    format!(
        "server {{ listen 127.0.0.1:PORT default_server; return 404; }}
        server {{ listen 127.0.0.1:PORT; server_name {names}; port_in_redirect off; client_max_body_size 1m; {locations} }}\n"
    )
}
