//! Reload: by signal, by a changed file, under load, with errors.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Load, Nginx, configuration, curl, document, eventually,
    listener, ports, succeed,
};
use configuration::listener_at;
use std::process::Command;

fn reloads(gateway: &Gateway, result: &str) -> f64 {
    gateway.metric("quadrille_reloads_total", &[&format!("result=\"{result}\"")])
}

#[test]
fn a_hundred_reloads_under_load_cost_no_request() {
    let certificates = Certificates::new();
    let pairs = [certificates.ecdsa("P-256", &["localhost"]), certificates.rsa(2048, &["localhost"])];
    let nginx = Nginx::new("location / { return 200 right; }");
    let upstreams = format!("web: {{servers: [\"{}\"]}}", nginx.address());
    let texts = [
        document(&[listener(&pairs[0], "upstream: web")], &upstreams),
        document(&[listener(&pairs[1], "routes: [{path: /, upstream: web}]")], &upstreams),
    ];
    let file = Configuration::new(&texts[0]);
    let gateway = Gateway::with_config(&file.path(), 1);
    let load = Load::start(&certificates, gateway.address(0), "/", |body| body.starts_with("right"));
    for count in 1..=100 {
        file.replace(&texts[count % 2]);
        let before = reloads(&gateway, "ok");
        gateway.signal("HUP");
        eventually("no reload", || reloads(&gateway, "ok") > before);
    }
    eventually("little load", || load.answered() > 100);
    load.finish();
    assert_eq!(reloads(&gateway, "failed"), 0.0, "{}", gateway.log());
}

#[test]
fn a_new_certificate_is_served_once_its_file_changes() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = Gateway::with_flags(&pair, &["--respond", "ok"]);
    let connector = Connector::new(&certificates);
    let serial = || connector.http(gateway.address(0)).expect("a connection").serial();
    let mut open = connector.http(gateway.address(0)).expect("a connection");
    let before = serial();
    let renewed = certificates.path("renewed.pem");
    certificates.sign(&pair.key, &renewed, &["localhost"], 30);
    std::fs::rename(&renewed, &pair.chain).expect("replacing the certificate");
    eventually("the old certificate is still served", || serial() != before);
    assert_eq!(open.get("/").expect("a response on an existing connection").text(), "ok");
    // A new key is a separate file: between the two replacements they do not match, and the old pair stays in use.
    let second = serial();
    let other = certificates.ecdsa("P-384", &["localhost"]);
    std::fs::copy(&other.chain, &pair.chain).expect("replacing the certificate");
    eventually("no failed reload", || reloads(&gateway, "failed") > 0.0);
    assert_eq!(serial(), second);
    std::fs::copy(&other.key, &pair.key).expect("replacing the key");
    eventually("the old key is still served", || serial() != second);
}

#[test]
fn changes_that_come_while_a_reload_is_under_way_are_not_lost() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let text = |answer: &str| document(&[listener(&pair, &format!("respond: version {answer}"))], "");
    let file = Configuration::new(&text("first"));
    let gateway = Gateway::with_config(&file.path(), 1);
    for round in 0..20 {
        let answer = round.to_string();
        // The signal's reload may read the old file or the new one; the file watcher must handle the rest.
        gateway.signal("HUP");
        file.replace(&text(&answer));
        eventually("a change was lost", || {
            curl(&gateway, &certificates, &[], "/") == format!("version {answer}")
        });
    }
}

#[test]
fn a_bad_configuration_leaves_the_old_one_serving_and_says_why() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let text = |keys: &str| document(&[listener(&pair, keys)], "");
    let file = Configuration::new(&text("respond: old"));
    let mut gateway = Gateway::with_config(&file.path(), 1);
    let answer = |gateway: &Gateway| curl(gateway, &certificates, &[], "/");
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = occupied.local_addr().expect("an address");
    let taken_too =
        document(&[listener(&pair, "respond: new"), listener_at(taken, &pair, "respond: more")], "");
    let mistakes = [
        (text("respnd: new"), "respond"),
        ("listeners: [".to_owned(), "not valid YAML"),
        (text("respond: new").replace(".pem", ".missing"), ".missing"),
        (taken_too, "another process listens there"),
    ];
    for (count, (mistake, complaint)) in (1_u32..).zip(mistakes) {
        file.replace(&mistake);
        eventually("the failure is not counted", || reloads(&gateway, "failed") >= f64::from(count));
        gateway.wait_for_log(complaint);
        gateway.wait_for_log("the old configuration stays in service");
        assert_eq!(answer(&gateway), "old");
    }
    std::fs::remove_file(file.path()).expect("removing the file");
    gateway.signal("HUP");
    eventually("the failure is not counted", || reloads(&gateway, "failed") >= 5.0);
    assert_eq!(answer(&gateway), "old");
    file.replace(&text("respond: new"));
    eventually("the corrected file is not served", || answer(&gateway) == "new");
}

#[test]
fn sessions_are_resumed_after_a_certificate_has_been_renewed() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = Gateway::with_flags(&pair, &["--respond", "ok"]);
    let session = certificates.path("session");
    let connect = |version: &str, option: &str| {
        let script = format!(
            "printf 'GET / HTTP/1.0\\r\\nHost: a\\r\\n\\r\\n' | timeout 600 openssl s_client -connect {} -servername \
             localhost -ign_eof {version} {option} '{}' 2>&1",
            gateway.address(0),
            session.display()
        );
        succeed(Command::new("sh").args(["-c", &script]))
    };
    for version in ["-tls1_2", "-tls1_3"] {
        assert!(connect(version, "-sess_out").contains("New, "), "{version}");
        let before = reloads(&gateway, "ok");
        certificates.sign(&pair.key, &pair.chain, &["localhost"], 30);
        eventually("no reload", || reloads(&gateway, "ok") > before);
        let said = connect(version, "-sess_in");
        assert!(said.contains("Reused, "), "{version}: {said}");
    }
}

#[test]
fn listeners_come_and_go() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let first = listener(&pair, "respond: first");
    let second = std::net::SocketAddr::from(([127, 0, 0, 1], ports::free()));
    let with_second = document(&[first.clone(), listener_at(second, &pair, "respond: second")], "");
    let without = document(&[first], "");
    let file = Configuration::new(&without);
    let gateway = Gateway::with_config(&file.path(), 1);
    let connector = Connector::new(&certificates);
    for _ in 0..2 {
        file.replace(&with_second);
        let mut open = None;
        eventually("the new listener does not open", || {
            open = connector.http(second).ok();
            open.is_some()
        });
        let mut open = open.expect("a connection");
        assert_eq!(open.get("/").expect("a response").text(), "second");
        file.replace(&without);
        eventually("the old listener does not close", || connector.http(second).is_err());
        // Connections outlive their listener.
        assert_eq!(open.get("/").expect("a response").text(), "second");
        assert_eq!(curl(&gateway, &certificates, &[], "/"), "first");
    }
}

#[test]
fn listeners_on_ports_that_the_kernel_chose_stay_apart() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let text = |round: &str| {
        let listeners = ["one", "two"].map(|name| listener(&pair, &format!("respond: {name} {round}")));
        document(&listeners, "")
    };
    let file = Configuration::new(&text("before"));
    let gateway = Gateway::with_config(&file.path(), 2);
    let connector = Connector::new(&certificates);
    file.replace(&text("after"));
    eventually("no reload", || reloads(&gateway, "ok") > 0.0);
    for (index, answer) in ["one after", "two after"].iter().enumerate() {
        let mut client = connector.http(gateway.address(index)).expect("a connection");
        assert_eq!(&client.get("/").expect("a response").text(), answer);
    }
}

#[test]
fn upstreams_that_a_reload_brings_are_pooled_and_retried() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let nginx = Nginx::new("return 200 $connection;");
    let file = Configuration::new(&document(&[listener(&pair, "respond: old")], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    let servers = format!("[\"127.0.0.1:{}\", \"{}\"]", ports::free(), nginx.address());
    let upstreams = format!("web: {{servers: {servers}, retries: 1}}");
    file.replace(&document(&[listener(&pair, "upstream: web")], &upstreams));
    eventually("no reload", || reloads(&gateway, "ok") > 0.0);
    let numbers = curl(&gateway, &certificates, &["--http1.1", "-w", " "], "/[1-20]");
    let mut connections: Vec<_> = numbers.split_whitespace().collect();
    assert_eq!(connections.len(), 20);
    connections.dedup();
    assert_eq!(connections.len(), 1, "{numbers}");
}
