//! `quadrille kubernetes` with a small API server.

mod api_server;
mod changes;
mod endpoints;
mod outages;
mod secrets;
mod store;

use crate::support::{
    Certificates, Gateway, Nginx, Pair, comparison::exchange, eventually, output, ports, quadrille,
};
use api_server::ApiServer;
use serde_json::{Value, json};
use std::{net::SocketAddr, path::Path, process::Command};

/// A cluster with a gateway: the Service `app` responds with its name.
struct Cluster {
    server: ApiServer,
    gateway: Gateway,
    certificates: Certificates,
    app: Nginx,
    http: SocketAddr,
    https: SocketAddr,
}

impl Cluster {
    /// Starts a gateway with these further arguments, and waits until it is ready.
    fn new(arguments: &[&str]) -> Self {
        let cluster = Self::starting(arguments, |_| {});
        cluster.wait_until_ready();
        cluster
    }

    /// Starts a gateway; `prepare` changes the objects before.
    fn starting(arguments: &[&str], prepare: impl FnOnce(&ApiServer)) -> Self {
        let certificates = Certificates::new();
        let server = ApiServer::start(&certificates);
        let app = Nginx::new("location / { return 200 app; }");
        server.put(&class());
        server.put(&service("app"));
        server.put(&endpoints("app", &[app.address()]));
        prepare(&server);
        let local = || SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let (http, https) = (local(), local());
        let mut command = quadrille("kubernetes");
        command.arg("--kubeconfig").arg(server.kubeconfig());
        command.args(["--http", &http.to_string(), "--https", &https.to_string(), "--lame-duck", "0"]);
        command.args(["--admin", "127.0.0.1:0", "--identity", "test"]).args(arguments);
        let mut gateway = Gateway::start(command, 0);
        gateway.wait_for_log("metrics at ");
        gateway.read_addresses();
        Self { server, gateway, certificates, app, http, https }
    }

    fn wait_until_ready(&self) {
        eventually(&format!("not ready:\n{}", self.gateway.log()), || self.ready().0);
    }

    /// Returns whether `/ready` responds with 200, and its text.
    fn ready(&self) -> (bool, String) {
        let url = self.gateway.admin("/ready");
        let (ok, text) =
            output(Command::new("curl").args(["-sS", "--max-time", "180", "-w", "%{http_code}", &url]));
        (ok && text.ends_with("200"), text)
    }

    /// Returns the status and the body of a request over HTTP.
    fn get(&self, host: &str, path: &str) -> (u16, String) {
        let response = exchange(self.http, &("GET", host, path, ""));
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
        (head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), body.trim().to_owned())
    }

    /// Returns the body of a request over HTTPS, with a verified certificate, or curl's error.
    fn get_https(&self, host: &str) -> Result<String, String> {
        let port = self.https.port();
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--fail", "--max-time", "180", "--cacert"]).arg(self.certificates.ca());
        curl.args(["--resolve", &format!("{host}:{port}:127.0.0.1"), &format!("https://{host}:{port}/")]);
        match output(&mut curl) {
            (true, body) => Ok(body),
            (false, error) => Err(error),
        }
    }

    #[track_caller]
    fn eventually_served(&self, host: &str, path: &str, expected: (u16, &str)) {
        let what = format!("{host}{path} is not {expected:?}");
        eventually(&what, || {
            let (status, body) = self.get(host, path);
            status == expected.0 && body.contains(expected.1)
        });
    }
}

fn class() -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": { "name": "nginx" },
        "spec": { "controller": "k8s.io/ingress-nginx" },
    })
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": "shop" },
        "spec": { "clusterIP": "10.0.0.1", "ports": [{ "name": "http", "port": 80 }] },
    })
}

/// Returns the EndpointSlices of a Service, whose endpoints are all on the port of the first.
fn endpoints(service: &str, ready: &[SocketAddr]) -> Value {
    let all: Vec<(SocketAddr, Value)> =
        ready.iter().map(|address| (*address, json!({ "ready": true, "serving": true }))).collect();
    slice(service, &all)
}

fn slice(service: &str, endpoints: &[(SocketAddr, Value)]) -> Value {
    let of = |(address, conditions): &(SocketAddr, Value)| json!({ "addresses": [address.ip().to_string()], "conditions": conditions });
    let port = endpoints.first().map_or(80, |(address, _)| address.port());
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "name": format!("{service}-1"), "namespace": "shop", "labels": { "kubernetes.io/service-name": service },
        },
        "ports": [{ "name": "http", "port": port }],
        "endpoints": endpoints.iter().map(of).collect::<Vec<_>>(),
    })
}

/// Returns an Ingress of the Service `app` for these paths of a host.
fn ingress(name: &str, host: &str, paths: &[&str]) -> Value {
    let path = |path: &&str| {
        let backend = json!({ "service": { "name": "app", "port": { "name": "http" } } });
        json!({ "path": path, "pathType": "Prefix", "backend": backend })
    };
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": name, "namespace": "shop", "annotations": {} },
        "spec": {
            "ingressClassName": "nginx",
            "rules": [{ "host": host, "http": { "paths": paths.iter().map(path).collect::<Vec<_>>() } }],
        },
    })
}

/// Returns an Ingress of the Service `app` for a host with a certificate.
fn ingress_with_tls(name: &str, host: &str, secret: &str) -> Value {
    let mut ingress = ingress(name, host, &["/"]);
    ingress["spec"]["tls"] = json!([{ "hosts": [host], "secretName": secret }]);
    ingress
}

fn annotated(mut ingress: Value, annotation: &str, value: &str) -> Value {
    ingress["metadata"]["annotations"][format!("nginx.ingress.kubernetes.io/{annotation}")] = value.into();
    ingress
}

fn secret(name: &str, chain: &Path, key: &Path) -> Value {
    let encoded = |file: &Path| {
        let text = std::fs::read(file).expect("a file");
        boring::base64::encode_block(&text)
    };
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": "shop" },
        "type": "kubernetes.io/tls", "data": { "tls.crt": encoded(chain), "tls.key": encoded(key) },
    })
}

fn secret_of(name: &str, pair: &Pair) -> Value {
    secret(name, &pair.chain, &pair.key)
}
