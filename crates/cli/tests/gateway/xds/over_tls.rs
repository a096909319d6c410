//! TLS towards a control plane, which a second gateway ends in front of it.

use super::{
    bootstrap,
    control_plane::ControlPlane,
    snapshot::{Snapshot, secret},
};
use crate::support::{
    Certificates, Configuration, Gateway, Nginx, Pair, document, eventually, listener, output, ports, serve,
};
use std::{fs, path::PathBuf};

/// What is written of the server's certificate in a bootstrap.
fn asking_for(certificates: &Certificates, address: &str, validation: &str) -> PathBuf {
    let file = bootstrap(certificates, address, false);
    let text = fs::read_to_string(&file).expect("the bootstrap");
    let ca = certificates.ca();
    let tls = format!(
        "    transport_socket:\n      name: tls\n      typed_config:\n        '@type': \
         type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext\n        \
         sni: localhost\n        common_tls_context: {{ validation_context: {{ trusted_ca: {{ filename: '{}' }}, \
         {validation} }} }}\n    load_assignment:",
        ca.display()
    );
    assert_eq!(text.matches("    load_assignment:").count(), 1);
    fs::write(&file, text.replace("    load_assignment:", &tls)).expect("writing");
    file
}

/// In front of the control plane.
fn front(server: &ControlPlane, pair: &Pair) -> (Gateway, Configuration) {
    let upstreams = format!("plane: {{servers: [\"{}\"], protocol: http2}}", server.address);
    let file = Configuration::new(&document(&[listener(pair, "upstream: plane")], &upstreams));
    (Gateway::with_config(&file.path(), 1), file)
}

fn named(name: &str) -> String {
    format!("match_typed_subject_alt_names: [ {{ san_type: DNS, matcher: {{ exact: {name} }} }} ]")
}

#[test]
fn its_subject_alt_names_are_verified() {
    let Some(mut server) = ControlPlane::start(&["--ads=false"]) else { return };
    let certificates = Certificates::new();
    // The SNI is not among them.
    let pair = certificates.ecdsa("P-256", &["plane.example"]);
    let (front, _file) = front(&server, &pair);
    let nginx = Nginx::new("location / { return 200 right; }");
    let mut snapshot = Snapshot::new(ports::free(), nginx.address().port());
    snapshot.secrets = vec![secret("site", &pair)];
    server.set(&snapshot.json());

    let start = |validation: &str| {
        let mut command = serve();
        command.arg("--envoy-config").arg(asking_for(
            &certificates,
            &front.address(0).to_string(),
            validation,
        ));
        Gateway::start(command, 0)
    };
    let mut impostor = start(&named("other.example"));
    impostor.wait_for_log("none of the subjectAltNames that are asked for");
    impostor.wait_for_log("metrics at ");
    impostor.read_addresses();
    assert_eq!(impostor.metric("quadrille_xds_updates_total", &["success"]), 0.0);
    drop(impostor);
    let mut right = start(&named("plane.example"));
    right.wait_for_log("metrics at ");
    right.read_addresses();
    eventually("it is not followed", || right.metric("quadrille_xds_updates_total", &["success"]) > 0.0);
}

/// Nothing that is asked of its certificate is passed over.
#[test]
fn what_cannot_be_verified_is_refused() {
    let certificates = Certificates::new();
    let pin = "00".repeat(32);
    for (validation, words) in [
        (format!("verify_certificate_hash: ['{pin}']"), "hashes of servers' certificates are not compared"),
        ("crl: { inline_string: x }".to_owned(), "revocation lists are not read for servers"),
    ] {
        let mut command = serve();
        command.arg("--envoy-config").arg(asking_for(&certificates, "127.0.0.1:1", &validation));
        let (served, said) = output(&mut command);
        assert!(!served && said.contains("bootstrap.yaml:") && said.contains(words), "{said}");
    }
}
