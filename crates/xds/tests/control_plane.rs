//! Tests of the client against go-control-plane, in both variants, aggregated and not, over TCP and a Unix socket.

#![allow(clippy::unwrap_used, reason = "clippy knows the tests, but not their helpers")]

#[path = "support/control_plane.rs"]
mod control_plane;

use control_plane::ControlPlane as Server;
use quadrille_xds::{
    Client, Dialect, Interest, Limits, Rejection, ResourceType, Subscriptions, Update, UpdateHandler, proto,
    transport::{Connect, ControlPlane, Tcp, Unix},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

/// Accepts all resources except secrets that are called bad.
#[derive(Clone, Default)]
struct Keeper(Arc<(Mutex<Kept>, Condvar)>);

#[derive(Default)]
struct Kept {
    /// Number of times that each resource was received, by type and name.
    resources: BTreeMap<(ResourceType, String), usize>,
    connected: bool,
    losses: Vec<String>,
}

impl UpdateHandler for Keeper {
    async fn handle(&mut self, update: &Update) -> Vec<Rejection> {
        let mut kept = self.0.0.lock().unwrap();
        if update.complete {
            kept.resources.retain(|(kind, name), _| {
                *kind != update.kind || update.resources.iter().any(|resource| resource.name == *name)
            });
        }
        for name in &update.removed {
            kept.resources.remove(&(update.kind, name.clone()));
        }
        let mut rejections = Vec::new();
        for resource in &update.resources {
            if resource.tree.get("generic_secret").is_some() {
                rejections.push(Rejection::new(&resource.name, "not for TLS"));
            } else {
                *kept.resources.entry((update.kind, resource.name.clone())).or_default() += 1;
            }
        }
        self.0.1.notify_all();
        rejections
    }

    fn ended(&mut self) {
        self.0.0.lock().unwrap().connected = false;
        self.0.1.notify_all();
    }

    fn connection_changed(&mut self, state: Result<(), &str>) {
        let mut kept = self.0.0.lock().unwrap();
        kept.connected = state.is_ok();
        kept.losses.extend(state.err().map(str::to_owned));
        self.0.1.notify_all();
    }
}

/// Timeout that suffices on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(180);

impl Keeper {
    fn wait(&self, what: &str, fits: impl Fn(&Kept) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut kept = self.0.0.lock().unwrap();
        while !fits(&kept) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not {what}: {:?}, lost: {:?}", kept.resources, kept.losses);
            kept = self.0.1.wait_timeout(kept, left).unwrap().0;
        }
    }

    fn wait_for_resources(&self, kind: ResourceType, names: &[&str]) {
        self.wait(&format!("{kind} {names:?}"), |kept| {
            kept.resources
                .keys()
                .filter(|(of, _)| *of == kind)
                .map(|(_, name)| name.as_str())
                .eq(names.iter().copied())
        });
    }
}

fn client(connect: Arc<dyn Connect>, dialect: Dialect, only: Option<ResourceType>) -> Client {
    let control_plane = ControlPlane {
        name: "go-control-plane".into(),
        authority: "control-plane".into(),
        connect,
        metadata: vec![("x-test".into(), "yes".into())],
        connect_timeout: PATIENCE,
    };
    let node = proto::Node { id: "node-7".into(), ..proto::Node::default() };
    Client { control_plane, dialect, only, node, limits: Limits::default() }
}

/// Runs clients on a separate thread until it is dropped.
struct Running(tokio::runtime::Runtime);

impl Running {
    fn new() -> Self {
        Self(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap())
    }

    fn add(&self, client: Client, wanted: &[(ResourceType, Interest)]) -> (Subscriptions, Keeper) {
        let (subscriptions, keeper) = (Subscriptions::default(), Keeper::default());
        for (kind, interest) in wanted {
            subscriptions.subscribe(*kind, interest.clone());
        }
        self.0.spawn(client.run(subscriptions.clone(), keeper.clone()));
        (subscriptions, keeper)
    }
}

fn names(names: &[&str]) -> Interest {
    Interest::Names(names.iter().map(|&name| name.to_owned()).collect())
}

fn secret(name: &str, content: &str) -> Value {
    json!({ "name": name, "tls_certificate": { "certificate_chain": { "inline_string": content } } })
}

fn bad_secret(name: &str) -> Value {
    json!({ "name": name, "generic_secret": { "secret": { "inline_string": "x" } } })
}

fn snapshot(version: &str, secrets: &[Value]) -> Value {
    let hcm = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    json!({
        "version": version,
        "clusters": [{ "name": "c", "type": "EDS", "eds_cluster_config": { "eds_config": { "ads": {} } } }],
        "endpoints": [{ "cluster_name": "c" }],
        "listeners": [{ "name": "l", "filter_chains": [{ "filters": [{ "name": "http", "typed_config": {
            "@type": hcm, "stat_prefix": "l",
            "rds": { "route_config_name": "r", "config_source": { "ads": {}, "resource_api_version": "V3" } },
        } }] }] }],
        "routes": [{ "name": "r" }],
        "secrets": secrets,
    })
}

fn aggregated(dialect: Dialect) {
    let Some(mut server) = Server::start(&["--ads=true"]) else { return };
    server.set(&snapshot("1", &[secret("a", "1"), secret("b", "1")]));
    let running = Running::new();
    let wanted = [
        (ResourceType::Cluster, Interest::Wildcard),
        (ResourceType::Endpoints, names(&["c"])),
        (ResourceType::Listener, Interest::Wildcard),
        (ResourceType::Routes, names(&["r"])),
        (ResourceType::Secret, names(&["a", "b"])),
    ];
    let (subscriptions, keeper) =
        running.add(client(Arc::new(Tcp(server.address.clone())), dialect, None), &wanted);
    keeper.wait_for_resources(ResourceType::Cluster, &["c"]);
    keeper.wait_for_resources(ResourceType::Endpoints, &["c"]);
    keeper.wait_for_resources(ResourceType::Listener, &["l"]);
    keeper.wait_for_resources(ResourceType::Routes, &["r"]);
    keeper.wait_for_resources(ResourceType::Secret, &["a", "b"]);
    let secrets = ResourceType::Secret.type_url();
    let answered =
        |request: &Value| request["type"] == secrets && request["nonce"] != "" && request["error"] == "";
    server.wait("an ACK of the secrets", 0, answered);

    // A bad secret among them: a NACK with its name, and the good one is accepted.
    let (before, began) = (server.requests(), Instant::now());
    server.set(&snapshot("2", &[secret("a", "2"), bad_secret("b")]));
    let nack = server.wait("a NACK", before, |request| request["error"] != "");
    assert_eq!((&nack["type"], &nack["error"]), (&json!(secrets), &json!("secret b: not for TLS")));
    keeper.wait("a's second version", |kept| kept.resources[&(ResourceType::Secret, "a".into())] >= 2);
    // The server repeats a rejected state of the world as soon as it receives the NACK: three more are rejected after
    // 100, 200 and 400 ms.
    if dialect == Dialect::StateOfTheWorld {
        let mut nonces = vec![nack["nonce"].clone()];
        while nonces.len() < 4 {
            let is_new = |request: &Value| request["error"] != "" && !nonces.contains(&request["nonce"]);
            let again = server.wait("another NACK", before, is_new);
            nonces.push(again["nonce"].clone());
        }
        assert!(began.elapsed() >= Duration::from_millis(700), "{:?}", began.elapsed());
    }

    // Valid again, and one more subscription: without that, this server holds back a snapshot of which only a part is
    // subscribed to.
    let before = server.requests();
    subscriptions.subscribe(ResourceType::Secret, names(&["a", "b", "c"]));
    server.set(&snapshot("3", &[secret("a", "2"), secret("b", "3"), secret("c", "1")]));
    server.wait("an ACK of the correction", before, answered);
    keeper.wait_for_resources(ResourceType::Secret, &["a", "b", "c"]);

    // Removed resources.
    let mut empty = snapshot("4", &[secret("a", "2"), secret("b", "3"), secret("c", "1")]);
    empty["listeners"] = json!([]);
    empty["routes"] = json!([]);
    server.set(&empty);
    keeper.wait_for_resources(ResourceType::Listener, &[]);
    let first = &server.log()[0];
    assert_eq!(
        (&first["type"], &first["node"]),
        (&json!(ResourceType::Cluster.type_url()), &json!("node-7"))
    );
}

#[test]
fn aggregated_state_of_the_world() {
    aggregated(Dialect::StateOfTheWorld);
}

#[test]
fn aggregated_delta() {
    aggregated(Dialect::Delta);
}

#[test]
fn secrets_alone_over_a_unix_socket_as_istios_agent_serves_them() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let Some(mut server) = Server::start(&["--ads=false", "--listen", &format!("unix:{}", socket.display())])
    else {
        return;
    };
    server.set(&json!({ "version": "1", "secrets": [secret("default", "x"), secret("ROOTCA", "y")] }));
    let running = Running::new();
    for dialect in [Dialect::StateOfTheWorld, Dialect::Delta] {
        let client = client(Arc::new(Unix(socket.clone())), dialect, Some(ResourceType::Secret));
        let (_, keeper) = running.add(client, &[(ResourceType::Secret, names(&["ROOTCA", "default"]))]);
        keeper.wait_for_resources(ResourceType::Secret, &["ROOTCA", "default"]);
    }
}

fn killed_and_back(dialect: Dialect) {
    let Some(mut server) = Server::start(&[]) else { return };
    server.set(&json!({ "version": "1", "secrets": [secret("a", "1")] }));
    let address = server.address.clone();
    let running = Running::new();
    let client = client(Arc::new(Tcp(address.clone())), dialect, None);
    let (_, keeper) = running.add(client, &[(ResourceType::Secret, names(&["a"]))]);
    keeper.wait_for_resources(ResourceType::Secret, &["a"]);
    drop(server);
    keeper.wait("notified of the loss", |kept| !kept.connected && !kept.losses.is_empty());
    keeper.wait_for_resources(ResourceType::Secret, &["a"]);
    let mut server = Server::start(&["--listen", &address]).unwrap();
    // The same version, counted anew, with other content.
    server.set(&json!({ "version": "1", "secrets": [secret("a", "2")] }));
    keeper.wait("served by the new one", |kept| {
        kept.connected && kept.resources[&(ResourceType::Secret, "a".into())] == 2
    });
}

#[test]
fn killed_and_back_state_of_the_world() {
    killed_and_back(Dialect::StateOfTheWorld);
}

#[test]
fn killed_and_back_delta() {
    killed_and_back(Dialect::Delta);
}

#[test]
fn a_server_that_does_not_exist_or_speaks_another_protocol_is_named() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        use std::io::Write;
        for connection in silent.incoming().take(3) {
            let _ = connection.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let running = Running::new();
    let nowhere = client(Arc::new(Unix("/nonexistent/socket".into())), Dialect::Delta, None);
    let (_, keeper) = running.add(nowhere, &[(ResourceType::Secret, names(&["a"]))]);
    keeper.wait("named", |kept| kept.losses.iter().any(|loss| loss.contains("/nonexistent/socket")));
    let (_, keeper) = running
        .add(client(Arc::new(Tcp(address)), Dialect::Delta, None), &[(ResourceType::Secret, names(&["a"]))]);
    keeper.wait("lost", |kept| !kept.losses.is_empty());
}

/// Prints the cost of reading 10,000 routes and 1,000 secrets, before validation: less than a second on an idle
/// machine.
#[test]
fn ten_thousand_routes_and_a_thousand_secrets_are_read() {
    let Some(mut server) = Server::start(&["--ads=false"]) else { return };
    let route = |n: usize| json!({ "match": { "path_separated_prefix": format!("/api/{n}") }, "route": { "cluster": "c", "timeout": "3s" } });
    let routes: Vec<_> = (0..10_000).map(route).collect();
    let secrets: Vec<_> = (0..1000).map(|n| secret(&format!("s{n}"), &"x".repeat(4000))).collect();
    let hosts = json!([{ "name": "h", "domains": ["*"], "routes": routes }]);
    server.set(
        &json!({ "version": "1", "routes": [{ "name": "r", "virtual_hosts": hosts }], "secrets": secrets }),
    );
    let all = Interest::Names((0..1000).map(|n| format!("s{n}")).collect());
    let running = Running::new();
    let started = Instant::now();
    let client = client(Arc::new(Tcp(server.address.clone())), Dialect::StateOfTheWorld, None);
    let (_, keeper) =
        running.add(client, &[(ResourceType::Routes, names(&["r"])), (ResourceType::Secret, all)]);
    keeper.wait("received", |kept| kept.resources.len() == 1001);
    println!("10,000 routes and 1,000 secrets: fetched and read in {:?}", started.elapsed());
}

#[test]
fn a_client_without_subscriptions_ends() {
    let Some(server) = Server::start(&[]) else { return };
    let running = Running::new();
    let absent: Arc<dyn Connect> = Arc::new(Tcp("127.0.0.1:1".to_owned()));
    let present: Arc<dyn Connect> = Arc::new(Tcp(server.address.clone()));
    for (connect, connected) in [(present, true), (absent, false)] {
        let (subscriptions, keeper) = (Subscriptions::default(), Keeper::default());
        subscriptions.subscribe(ResourceType::Cluster, Interest::Wildcard);
        let client = client(connect, Dialect::Delta, None);
        let task = running.0.spawn(client.run(subscriptions.clone(), keeper.clone()));
        keeper.wait("at its planned end", |kept| {
            kept.connected == connected && connected == kept.losses.is_empty()
        });
        subscriptions.end();
        let ended = running.0.block_on(async { tokio::time::timeout(PATIENCE, task).await });
        ended.expect("it does not end").unwrap();
        keeper.wait("notified", |kept| !kept.connected && connected == kept.losses.is_empty());
    }
}
