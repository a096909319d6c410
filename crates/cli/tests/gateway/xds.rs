//! xDS with a real control plane: go-control-plane, state-of-the-world and delta.

mod closed_routes;
#[path = "../../../xds/tests/support/control_plane.rs"]
mod control_plane;
mod over_tls;
mod snapshot;
mod warming;

use crate::support::{
    Certificates, Connector, Gateway, Load, Nginx, Pair, eventually, output, ports, serve, throughout,
};
use control_plane::ControlPlane;
use serde_json::{Value, json};
use snapshot::{Snapshot, secret};
use std::{
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

/// A gateway that receives its whole configuration by ADS.
struct Driven {
    gateway: Gateway,
    server: ControlPlane,
    certificates: Certificates,
    pairs: [Pair; 2],
    /// The upstream, with its own response.
    _nginx: Nginx,
    snapshot: Snapshot,
}

impl Driven {
    fn new(delta: bool) -> Option<Self> {
        Self::with(delta, &[])
    }

    /// Starts it with these further arguments.
    fn with(delta: bool, arguments: &[&str]) -> Option<Self> {
        let mut server = ControlPlane::start(&["--ads=false"])?;
        let certificates = Certificates::new();
        let pairs = [certificates.ecdsa("P-256", &["localhost"]), certificates.rsa(2048, &["localhost"])];
        let nginx = Nginx::new("location / { return 200 right; } location = /whole { return 200 whole; }");
        let mut snapshot = Snapshot::new(ports::free(), nginx.address().port());
        snapshot.secrets = vec![secret("site", &pairs[0])];
        server.set(&snapshot.json());
        let bootstrap = bootstrap(&certificates, &server.address, delta);
        let mut command = serve();
        command.arg("--envoy-config").arg(bootstrap).args(arguments);
        let gateway = Gateway::start(command, 0);
        let mut driven = Self { gateway, server, certificates, pairs, _nginx: nginx, snapshot };
        eventually("the listener is not open", || driven.get("/").as_deref() == Some("right"));
        driven.gateway.read_addresses();
        Some(driven)
    }

    fn apply(&mut self) {
        self.snapshot.version += 1;
        self.server.set(&self.snapshot.json());
    }

    fn address(&self) -> std::net::SocketAddr {
        ([127, 0, 0, 1], self.snapshot.port).into()
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut client = Connector::new(&self.certificates).http(self.address()).ok()?;
        Some(client.get(path).ok()?.text())
    }

    fn serial(&self) -> Option<String> {
        Some(Connector::new(&self.certificates).http(self.address()).ok()?.serial())
    }

    fn wait_for_nack(&self, from: usize) -> String {
        let nack = self.server.wait("a NACK", from, |request| request["error"] != "");
        nack["error"].as_str().unwrap_or_default().to_owned()
    }
}

/// The bootstrap, also used by bench/envoy.py.
const BOOTSTRAP: &str = include_str!("xds/bootstrap.yaml");

/// Returns a bootstrap that subscribes to the control plane at this address for all resources.
fn bootstrap(certificates: &Certificates, address: &str, delta: bool) -> PathBuf {
    let (_, port) = address.rsplit_once(':').expect("an address");
    let kind = if delta { "DELTA_GRPC" } else { "GRPC" };
    let text = BOOTSTRAP
        .replace("api_type: GRPC", &format!("api_type: {kind}"))
        .replace("port_value: CONTROL_PLANE", &format!("port_value: {port}"));
    let text = format!(
        "admin: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: 0 }} }} }}\n{text}"
    );
    let path = certificates.path("bootstrap.yaml");
    std::fs::write(&path, text).expect("writing");
    path
}

fn swapped_under_load(delta: bool) {
    let Some(mut driven) = Driven::new(delta) else { return };
    let load = Load::start(&driven.certificates, driven.address(), "/", |body| body.starts_with("right"));
    for round in 1..=30 {
        let pair = &driven.pairs[round % 2];
        driven.snapshot.secrets = vec![secret("site", pair)];
        // Every third round replaces the listener, with routes of another name.
        driven.snapshot.route_name = format!("routes-{}", round / 3);
        driven.snapshot.chain_name = format!("chain-{round}");
        let before = driven.serial();
        driven.apply();
        eventually("the old certificate is still served", || driven.serial() != before);
    }
    eventually("little load", || load.answered() > 100);
    load.finish();
    assert_eq!(driven.gateway.metric("quadrille_xds_updates_total", &["rejected"]), 0.0);
    for service in ["cds", "eds", "lds", "rds", "sds"] {
        let label = format!("service=\"{service}\"");
        assert_eq!(driven.gateway.metric("quadrille_xds_connected", &[&label]), 1.0, "{service}");
        assert!(
            driven.gateway.metric("quadrille_xds_updates_total", &[&label, "success"]) >= 1.0,
            "{service}"
        );
    }
}

#[test]
fn secrets_and_listeners_are_swapped_under_load_state_of_the_world() {
    swapped_under_load(false);
}

#[test]
fn secrets_and_listeners_are_swapped_under_load_delta() {
    swapped_under_load(true);
}

#[test]
fn the_config_dump_shows_what_the_control_plane_has_sent_without_secrets() {
    let Some(driven) = Driven::new(true) else { return };
    let dump: Value = serde_json::from_str(&driven.gateway.admin_page("/config_dump")).expect("JSON");
    let config = |index: usize, list: &str| dump["configs"][index][list].clone();
    assert_eq!(config(1, "dynamic_active_clusters")[0]["cluster"]["name"], "web");
    assert_eq!(config(2, "dynamic_endpoint_configs")[0]["endpoint_config"]["cluster_name"], "web");
    assert_eq!(config(3, "dynamic_listeners")[0]["active_state"]["listener"]["name"], "main");
    assert_eq!(config(4, "dynamic_route_configs")[0]["route_config"]["name"], "routes");
    let secrets = config(5, "dynamic_active_secrets");
    assert_eq!(secrets[0]["secret"]["name"], "site");
    assert!(!secrets.to_string().contains("PRIVATE KEY"));
}

/// Returns the status and the text of `/ready`.
fn ready(gateway: &Gateway) -> (String, String) {
    let (_, text) = output(Command::new("curl").args([
        "-s",
        "-m",
        "600",
        "-w",
        "%{http_code}",
        &gateway.admin("/ready"),
    ]));
    let (body, status) = text.split_at(text.len() - 3);
    (status.to_owned(), body.to_owned())
}

#[test]
fn what_is_refused_stands_on_the_page_of_readiness() {
    for (how, status) in [("say", "200"), ("fail", "503"), ("hide", "200")] {
        let Some(mut driven) = Driven::with(false, &["--refusals-in-ready", how]) else { return };
        assert_eq!(ready(&driven.gateway), ("200".into(), "LIVE\n".into()));
        let mut guarded = driven.snapshot.listener();
        guarded["name"] = json!("guarded");
        guarded["address"]["socket_address"]["port_value"] = json!(ports::free());
        driven.snapshot.more_listeners = vec![guarded.clone()];
        driven.apply();
        let port = guarded["address"]["socket_address"]["port_value"].as_u64().expect("a port") as u16;
        let open = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        eventually("the listener is not open", open);
        guarded["filter_chains"][0]["filters"]
            .as_array_mut()
            .expect("filters")
            .insert(0, json!({ "name": "envoy.filters.network.strange" }));
        driven.snapshot.more_listeners = vec![guarded];
        let before = driven.server.requests();
        driven.apply();
        driven.wait_for_nack(before);
        eventually("the listener is not closed", || !open());
        eventually("it is not reported", || driven.gateway.metric("quadrille_xds_refused", &["lds"]) == 1.0);
        let (said, text) = ready(&driven.gateway);
        assert_eq!(said, status, "{text}");
        let told =
            text.contains("refused: listener guarded (closed): ") && text.contains("it may control access");
        assert_eq!(told, how != "hide", "{text}");
        driven.snapshot.more_listeners.clear();
        driven.apply();
        eventually("it is still reported", || ready(&driven.gateway) == ("200".into(), "LIVE\n".into()));
    }
}

/// A damaged CA certificate is detected only when the listener is created.
#[test]
fn what_can_be_read_and_cannot_guard_is_closed() {
    let Some(mut driven) = Driven::new(true) else { return };
    let mut guarded = driven.snapshot.listener();
    let port = ports::free();
    guarded["name"] = json!("guarded");
    guarded["address"]["socket_address"]["port_value"] = json!(port);
    driven.snapshot.more_listeners = vec![guarded.clone()];
    driven.apply();
    let open = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    eventually("the listener is not open", open);
    let mut damaged = guarded.clone();
    let tls = &mut damaged["filter_chains"][0]["transport_socket"]["typed_config"];
    tls["require_client_certificate"] = json!(true);
    tls["common_tls_context"]["validation_context"] = json!({ "trusted_ca": { "inline_string": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" } });
    driven.snapshot.more_listeners = vec![damaged];
    driven.snapshot.answer = Some("new".into());
    let before = driven.server.requests();
    driven.apply();
    let reason = driven.wait_for_nack(before);
    assert!(reason.contains("listener guarded") && reason.contains("trusted_ca"), "{reason}");
    eventually("the listener is not closed", || !open());
    assert_eq!(driven.gateway.metric("quadrille_xds_closed_total", &["lds"]), 1.0);
    let (_, text) = ready(&driven.gateway);
    assert!(text.contains("refused: listener guarded (closed): "), "{text}");
    eventually("the rest was not applied", || driven.get("/").as_deref() == Some("new"));
    driven.snapshot.more_listeners = vec![guarded];
    driven.apply();
    eventually("the listener does not reopen", open);
}

fn bad_secret(delta: bool) {
    let Some(mut driven) = Driven::new(delta) else { return };
    let serial = driven.serial();
    // The key of another certificate.
    let mixed = Pair { chain: driven.pairs[1].chain.clone(), key: driven.pairs[0].key.clone() };
    for bad in [
        secret("site", &mixed),
        json!({ "name": "site", "tls_certificate": { "certificate_chain": { "inline_string": "x" } } }),
    ] {
        let before = driven.server.requests();
        driven.snapshot.secrets = vec![bad];
        driven.apply();
        let reason = driven.wait_for_nack(before);
        assert!(reason.contains("secret site"), "{reason}");
        assert!(!reason.contains("PRIVATE"), "{reason}");
        assert_eq!(driven.serial(), serial);
        assert_eq!(driven.get("/").as_deref(), Some("right"));
    }
    driven.snapshot.secrets = vec![secret("site", &driven.pairs[1])];
    driven.apply();
    eventually("the correction is not served", || driven.serial() != serial);
    assert!(driven.gateway.metric("quadrille_xds_updates_total", &["sds", "rejected"]) >= 2.0);
}

#[test]
fn a_bad_secret_is_refused_and_the_old_one_serves_state_of_the_world() {
    bad_secret(false);
}

#[test]
fn a_bad_secret_is_refused_and_the_old_one_serves_delta() {
    bad_secret(true);
}

#[test]
fn a_listener_that_waits_for_its_routes_leaves_the_old_one_serving() {
    let Some(mut driven) = Driven::new(false) else { return };
    driven.snapshot.route_name = "later".into();
    driven.snapshot.answer = Some("new".into());
    driven.snapshot.with_routes = false;
    let before = driven.server.requests();
    driven.apply();
    driven.server.wait("a request for the routes", before, |request| {
        request["names"].as_array().is_some_and(|names| names.iter().any(|name| name == "later"))
    });
    throughout(Duration::from_millis(400), "the old listener does not serve", || {
        driven.get("/").as_deref() == Some("right")
    });
    driven.snapshot.with_routes = true;
    driven.apply();
    eventually("the new listener is not open", || driven.get("/").as_deref() == Some("new"));
}

/// A few kilobytes that would compile to hundreds of megabytes of regular expressions.
fn greedy(snapshot: &Snapshot) -> Value {
    let mut listener = snapshot.listener();
    listener["name"] = json!("greedy");
    let route = |index| {
        let regex = format!("{index}\\pL{{100}}");
        json!({ "match": { "safe_regex": { "regex": regex } }, "direct_response": { "status": 200 } })
    };
    let routes: Vec<Value> = (0..20).map(route).collect();
    let http = &mut listener["filter_chains"][0]["filters"][0]["typed_config"];
    http.as_object_mut().expect("a message").remove("rds");
    http["route_config"] = json!({ "virtual_hosts": [{ "name": "v", "domains": ["*"], "routes": routes }] });
    listener
}

#[test]
fn a_listener_that_cannot_be_served_is_refused_and_the_others_serve() {
    let Some(mut driven) = Driven::new(false) else { return };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut other = driven.snapshot.listener();
    other["name"] = json!("other");
    other["address"]["socket_address"]["port_value"] = json!(taken.local_addr().expect("its address").port());
    let mut strange = driven.snapshot.listener();
    strange["name"] = json!("strange");
    strange["address"]["socket_address"]["address"] = json!("not an address");
    driven.snapshot.more_listeners = vec![other, strange, greedy(&driven.snapshot)];
    driven.snapshot.answer = Some("new".into());
    let before = driven.server.requests();
    driven.apply();
    let reason = driven.wait_for_nack(before);
    assert!(reason.contains("listener other") && reason.contains("listener strange"), "{reason}");
    assert!(
        reason.contains("listener greedy") && reason.contains("regular expressions received with it"),
        "{reason}"
    );
    eventually("the valid listener was not applied", || driven.get("/").as_deref() == Some("new"));
    // A listener is removed too.
    let gone = driven.address();
    driven.snapshot.more_listeners.clear();
    driven.snapshot.with_listener = false;
    driven.apply();
    eventually("the listener is still open", || std::net::TcpStream::connect(gone).is_err());
}

fn lost_and_found(delta: bool) {
    let Some(mut driven) = Driven::new(delta) else { return };
    let address = driven.server.address.clone();
    driven.server = ControlPlane::start(&[]).expect("another one, elsewhere");
    driven.gateway.wait_for_metric("quadrille_xds_connected", &["lds"], |up| up == 0.0);
    assert_eq!(driven.get("/").as_deref(), Some("right"), "it keeps serving its current configuration");
    driven.server =
        ControlPlane::start(&["--ads=false", "--listen", &address]).expect("the port is free again");
    driven.snapshot.answer = Some("back".into());
    // The version numbers start again.
    driven.snapshot.version = 0;
    driven.apply();
    eventually("the new control plane is not followed", || driven.get("/").as_deref() == Some("back"));
}

#[test]
fn a_control_plane_is_lost_and_found_again_state_of_the_world() {
    lost_and_found(false);
}

#[test]
fn a_control_plane_is_lost_and_found_again_delta() {
    lost_and_found(true);
}

#[test]
fn the_bootstrap_is_followed_after_control_planes_have_spoken() {
    let Some(mut driven) = Driven::new(false) else { return };
    driven.snapshot.answer = Some("new".into());
    driven.apply();
    eventually("the control plane is not followed", || driven.get("/").as_deref() == Some("new"));
    let mut own = driven.snapshot.listener();
    let port = ports::free();
    own["name"] = json!("own");
    own["address"]["socket_address"]["port_value"] = json!(port);
    let path = driven.certificates.path("bootstrap.yaml");
    let text = std::fs::read_to_string(&path).expect("the bootstrap");
    std::fs::write(&path, format!("{text}  listeners:\n  - {own}\n")).expect("writing");
    let get = |address: std::net::SocketAddr| {
        let mut client = Connector::new(&driven.certificates).http(address).ok()?;
        Some(client.get("/").ok()?.text())
    };
    eventually("the new listener is not open", || {
        get(([127, 0, 0, 1], port).into()).as_deref() == Some("new")
    });
    assert_eq!(driven.get("/").as_deref(), Some("new"), "the control plane's listener keeps serving");
}

#[test]
fn a_secret_of_istios_agent_comes_over_a_unix_socket_with_a_private_key_provider() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    let socket = certificates.path("agent.sock");
    let listen = format!("unix:{}", socket.display());
    let Some(mut agent) = ControlPlane::start(&["--ads=false", "--listen", &listen]) else { return };
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("PEM");
    agent.set(&json!({ "version": "1", "secrets": [{ "name": "default", "tls_certificate": {
        "certificate_chain": { "inline_string": read(&pair.chain) },
        "private_key_provider": { "provider_name": "cryptomb", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.private_key_providers.cryptomb.v3alpha.CryptoMbPrivateKeyMethodConfig",
            "private_key": { "inline_string": read(&pair.key) },
            "poll_delay": "0s",
        } },
    } }] }));
    let port = ports::free();
    let bootstrap = certificates.path("bootstrap.yaml");
    std::fs::write(&bootstrap, snapshot::with_agent(&socket, port)).expect("writing");
    let mut command = serve();
    command.arg("--envoy-config").arg(bootstrap);
    let _gateway = Gateway::start(command, 0);
    let address = ([127, 0, 0, 1], port).into();
    let get =
        || Connector::new(&certificates).http(address).ok()?.get("/").ok().map(|response| response.text());
    eventually("the secret has not arrived", || get().as_deref() == Some("from the mesh"));
}

/// Checks that the changes are applied, and not once for each of them. The benchmarks measure the time.
#[test]
fn ten_thousand_routes_and_a_thousand_secrets_are_in_service_soon() {
    let Some(mut driven) = Driven::new(false) else { return };
    driven.snapshot.many(1000, 10_000, &driven.pairs[0]);
    let began = Instant::now();
    driven.apply();
    let sent = began.elapsed();
    eventually("the last route is not served", || driven.get("/api/9999/x").as_deref() == Some("route 9999"));
    println!(
        "1,000 secrets and 10,000 routes: {:?} to the first response, {sent:?} of it for the control plane to read them",
        began.elapsed()
    );
    let log = driven.gateway.log();
    let applied: Vec<_> = log.lines().filter(|line| line.contains("configuration applied")).collect();
    println!("{}", applied.join("\n"));
    assert!(applied.len() <= 20, "{} configurations for one change", applied.len());
    // One of a thousand secrets, and the time until it is in service.
    let name = driven.snapshot.rename_last_secret(&driven.pairs[0]);
    let began = Instant::now();
    let before = driven.server.requests();
    driven.apply();
    driven.server.wait("an ACK", before, |request: &Value| {
        request["type"].as_str().is_some_and(|kind| kind.ends_with("Secret")) && request["error"] == ""
    });
    println!("one of 1,000 secrets ({name}): {:?}", began.elapsed());
}
