//! Overflow of operations to key servers by an overloaded gateway that has the key itself.

use crate::support::{
    Configuration, Gateway, KeyServer, PATIENCE, Site, configuration::document, curl, output, quadrille,
};
use std::{fs, process::Command, thread};

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

    /// Performs full handshakes of forty clients; none may fail.
    fn load(&self, seconds: u32) -> Command {
        let mut bench = quadrille("bench");
        bench.arg(format!("https://localhost:{}/", self.gateway.port()));
        bench.args(["--connect", &format!("127.0.0.1:{}", self.gateway.port()), "--ca"]);
        bench.arg(self.site.certificates.ca());
        bench.args(["--connections", "40", "--duration", &seconds.to_string(), "--json"]);
        bench
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
    let (succeeded, text) = output(&mut helped.load(3));
    assert!(succeeded, "{text}");
    let metrics = gateway.metrics();
    assert!(gateway.metric(SPILLED, &["\"ok\""]) > 0.0, "{metrics}");
    assert!(gateway.metric("quadrille_key_operations_total", &["\"scalar\"", "\"ok\""]) > 5.0, "{metrics}");
    assert_eq!(gateway.metric("quadrille_keyless_fallbacks_total", &[]), 0.0, "{metrics}");
}

#[test]
fn when_they_are_killed_everything_is_computed_here() {
    let mut helped = Helped::start();
    let mut load = helped.load(6);
    let load = thread::spawn(move || output(&mut load));
    helped.gateway.wait_for_metric(SPILLED, &["\"ok\""], |spilled| spilled > 20.0);
    for server in &mut helped.servers {
        server.process.signal("KILL");
        server.process.wait(PATIENCE).expect("its end");
    }
    let (succeeded, text) = load.join().expect("the load");
    let metrics = helped.gateway.metrics();
    assert!(succeeded, "{text}\n{metrics}");
    assert!(helped.gateway.metric(SPILLED, &["\"failed\""]) > 0.0, "{metrics}");
    // At the end, clients disconnect during handshakes.
    for reason in ["\"key\"", "\"key_server\"", "\"shed\"", "\"timeout\""] {
        let failures = helped.gateway.metric("quadrille_handshake_failures_total", &[reason]);
        assert_eq!(failures, 0.0, "{reason}\n{metrics}");
    }
}
