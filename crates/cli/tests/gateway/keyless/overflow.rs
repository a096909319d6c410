//! Overflow of operations to key servers by an overloaded gateway that has the key itself.

use crate::support::{
    Configuration, Gateway, KeyServer, PATIENCE, Site, configuration::document, curl, eventually, quadrille,
    succeed,
};
use std::{
    fs,
    process::{Child, Command, Stdio},
};

const SPILLED: &str = "quadrille_keyless_spilled_total";

/// Starts a gateway that computes one RSA-4096 operation at a time, and two key servers with the same key.
struct Helped {
    site: Site,
    servers: [KeyServer; 2],
    gateway: Gateway,
    _file: Configuration,
}

impl Helped {
    fn start() -> Self {
        let site = Site::new();
        let pair = site.certificates.rsa(4096, &["localhost"]);
        fs::copy(&pair.key, site.keys().join("site.pem")).expect("copying the key");
        let servers = [KeyServer::start(&site, &[]), KeyServer::start(&site, &[])];
        let names: Vec<String> = servers.iter().map(KeyServer::name).collect();
        let key = site.keyless(&names, &format!("use: overflow, fallback: {}", pair.key.display()));
        let listener =
            site.listener(&pair.chain, &key, "timeouts: {handshake: 170s, handshake_deadline: off}");
        let text = format!("engine: {{backend: scalar, threads: 1}}\n{}", document(&[listener], ""));
        let file = Configuration::new(&text);
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { site, servers, gateway, _file: file }
    }

    /// Starts forty clients that perform full handshakes until the load is stopped.
    fn load(&self) -> Load {
        let mut bench = quadrille("bench");
        bench.arg(format!("https://localhost:{}/", self.gateway.port()));
        bench.args(["--connect", &format!("127.0.0.1:{}", self.gateway.port()), "--ca"]);
        bench.arg(self.site.certificates.ca());
        bench.args(["--connections", "40", "--duration", "3600", "--timeout", "170s", "--json"]);
        let bench = bench.stdout(Stdio::piped()).stderr(Stdio::piped());
        Load(bench.spawn().expect("quadrille bench"))
    }
}

/// A running load.
struct Load(Child);

impl Load {
    /// Interrupts the load, and waits for its end. No handshake may have failed.
    fn stop(self) -> String {
        succeed(Command::new("kill").args(["-INT", &self.0.id().to_string()]));
        let done = self.0.wait_with_output().expect("its end");
        let text =
            [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(done.status.success(), "{text}");
        text
    }
}

#[test]
fn what_would_wait_too_long_goes_to_key_servers_and_nothing_else_does() {
    let helped = Helped::start();
    let Helped { site, gateway, .. } = &helped;
    for _ in 0..5 {
        assert_eq!(curl(gateway, &site.certificates, &[], "/"), "right");
    }
    let asked = || gateway.metric("quadrille_keyless_operations_total", &[]);
    assert_eq!((gateway.metric(SPILLED, &[]), asked()), (0.0, 0.0), "not at low load");
    let load = helped.load();
    gateway.wait_for_metric(SPILLED, &["\"ok\""], |spilled| spilled > 0.0);
    gateway.wait_for_metric("quadrille_key_operations_total", &["\"scalar\"", "\"ok\""], |count| count > 5.0);
    load.stop();
    let metrics = gateway.metrics();
    assert_eq!(gateway.metric("quadrille_keyless_fallbacks_total", &[]), 0.0, "{metrics}");
}

#[test]
fn when_they_are_killed_everything_is_computed_here() {
    let mut helped = Helped::start();
    let load = helped.load();
    helped.gateway.wait_for_metric(SPILLED, &["\"ok\""], |spilled| spilled > 20.0);
    for server in &mut helped.servers {
        server.process.signal("KILL");
        server.process.wait(PATIENCE).expect("its end");
    }
    helped.gateway.wait_for_metric(SPILLED, &["\"failed\""], |failed| failed > 0.0);
    let computed = || helped.gateway.metric("quadrille_key_operations_total", &["\"scalar\"", "\"ok\""]);
    let before = computed();
    eventually("nothing is computed here", || computed() > before + 20.0);
    load.stop();
    let metrics = helped.gateway.metrics();
    // At the end, clients disconnect during handshakes.
    for reason in ["\"key\"", "\"key_server\"", "\"shed\"", "\"timeout\""] {
        let failures = helped.gateway.metric("quadrille_handshake_failures_total", &[reason]);
        assert_eq!(failures, 0.0, "{reason}\n{metrics}");
    }
}
