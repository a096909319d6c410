//! TLS to a control plane, terminated by a second gateway in front of it.

use super::{
    bootstrap,
    control_plane::ControlPlane,
    snapshot::{Snapshot, secret},
};
use crate::support::{
    Certificates, Configuration, Gateway, Nginx, Pair, document, eventually, listener, output, ports, serve,
};
use std::{fs, path::PathBuf};

/// Returns a bootstrap with this `common_tls_context`.
fn asking_for(certificates: &Certificates, address: &str, context: &str) -> PathBuf {
    let file = bootstrap(certificates, address, false);
    let text = fs::read_to_string(&file).expect("the bootstrap");
    let tls = format!(
        "    transport_socket:\n      name: tls\n      typed_config:\n        '@type': \
         type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext\n        \
         sni: localhost\n        common_tls_context: {{ {context} }}\n    load_assignment:",
    );
    assert_eq!(text.matches("    load_assignment:").count(), 1);
    fs::write(&file, text.replace("    load_assignment:", &tls)).expect("writing");
    file
}

/// Requirements for the server's certificate besides its CA.
fn validated(certificates: &Certificates, more: &str) -> String {
    format!("validation_context: {{ trusted_ca: {{ filename: '{}' }}, {more} }}", certificates.ca().display())
}

/// The gateway in front of the control plane.
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
    // The SNI is not in the certificate.
    let pair = certificates.ecdsa("P-256", &["plane.example"]);
    let (front, _file) = front(&server, &pair);
    let nginx = Nginx::new("location / { return 200 right; }");
    let mut snapshot = Snapshot::new(ports::free(), nginx.address().port());
    snapshot.secrets = vec![secret("site", &pair)];
    server.set(&snapshot.json());

    let start = |name: &str| {
        let context = validated(&certificates, &named(name));
        let bootstrap = asking_for(&certificates, &front.address(0).to_string(), &context);
        let mut command = serve();
        command.arg("--envoy-config").arg(bootstrap);
        Gateway::start(command, 0)
    };
    let mut impostor = start("other.example");
    impostor.wait_for_log("matches none of the required subjectAltNames");
    impostor.wait_for_log("metrics at ");
    impostor.read_addresses();
    assert_eq!(impostor.metric("quadrille_xds_updates_total", &["success"]), 0.0);
    drop(impostor);
    let mut right = start("plane.example");
    right.wait_for_log("metrics at ");
    right.read_addresses();
    eventually("it is not followed", || right.metric("quadrille_xds_updates_total", &["success"]) > 0.0);
}

/// Unsupported requirements for the certificate are rejected, not ignored.
#[test]
fn what_cannot_be_verified_is_refused() {
    let certificates = Certificates::new();
    let by_ca = |more: &str| validated(&certificates, more);
    let secret = "{ name: one, sds_config: { ads: {}, resource_api_version: V3 } }";
    let (pins, lists) = ("hashes of upstream certificates are not", "revocation lists are not supported for");
    let secrets = "a control plane's secrets are needed before SDS delivers any";
    for (context, words) in [
        (by_ca(&format!("verify_certificate_hash: ['{}']", "00".repeat(32))), pins),
        (by_ca("crl: { inline_string: x }"), lists),
        (format!("validation_context_sds_secret_config: {secret}"), secrets),
        (format!("{}, tls_certificate_sds_secret_configs: [ {secret} ]", by_ca("")), secrets),
    ] {
        let mut command = serve();
        command.arg("--envoy-config").arg(asking_for(&certificates, "127.0.0.1:1", &context));
        let (served, said) = output(&mut command);
        assert!(!served && said.contains("bootstrap.yaml:") && said.contains(words), "{said}");
    }
}
