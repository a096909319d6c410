//! Published forms of the bootstrap.

use super::{certificates, serving, with_common};
use crate::support::{Pair, curl, eventually, output, quadrille, succeed};
use std::process::Command;

const KEY_IN_A_FILE: &str = include_str!("../../../../envoy/src/tests/published/key-in-a-file.yaml");

const CRYPTOMB: &str = include_str!("../../../../envoy/src/tests/published/cryptomb.yaml");

/// Inlines the certificate's and the key's text.
fn inline(pair: &Pair) -> String {
    let text = |path| std::fs::read_to_string(path).expect("PEM").replace('\n', "\\n");
    format!(
        "tls_certificates: [ {{ certificate_chain: {{ inline_string: \"{}\" }}, private_key: {{ inline_string: \"{}\" }} }} ]",
        text(&pair.chain),
        text(&pair.key)
    )
}

#[test]
fn every_form_answers_curl() {
    let (certificates, pair) = certificates();
    for common in [
        KEY_IN_A_FILE.to_owned(),
        CRYPTOMB.to_owned(),
        CRYPTOMB.replace("10ms", "0.010s"),
        CRYPTOMB.replace("10ms", "0s"),
        CRYPTOMB.replace("cryptomb.v3alpha.CryptoMb", "qat.v3alpha.Qat").replace(": cryptomb", ": qat"),
        inline(&pair),
    ] {
        let text = with_common(&common, &pair);
        let (gateway, file) = serving(&text);
        for client in ["--http1.1", "--http2"] {
            assert_eq!(curl(&gateway, &certificates, &[client], "/"), "ok", "{common}");
        }
        let said = succeed(quadrille("check").arg("--envoy-config").arg(file.path()));
        assert!(said.ends_with("ok (1 listener, 0 upstreams)\n"), "{said}");
    }
}

#[test]
fn the_delay_holds() {
    let (certificates, pair) = certificates();
    let slow = with_common(&CRYPTOMB.replace("10ms", "400ms"), &pair);
    let (gateway, file) = serving(&with_common(KEY_IN_A_FILE, &pair));
    let time = |gateway| {
        let seconds = curl(gateway, &certificates, &["-o", "/dev/null", "-w", "%{time_appconnect}"], "/");
        seconds.parse::<f64>().expect("seconds")
    };
    file.replace(&slow);
    eventually("a lone client does not wait the whole delay", || time(&gateway) >= 0.4);
    assert!(time(&gateway) >= 0.4);
    assert!(!gateway.log().contains("takes effect at the next start"), "{}", gateway.log());
}

#[test]
fn each_key_has_its_own_delay() {
    let (certificates, pair) = certificates();
    let other = certificates.rsa(2048, &["other.example"]);
    let certificate = |pair: &Pair, delay: &str| {
        format!(
            "{{ certificate_chain: {{ filename: {} }}, private_key_provider: {{ provider_name: cryptomb, typed_config: \
             {{ \"@type\": type.googleapis.com/envoy.extensions.private_key_providers.cryptomb.v3alpha.CryptoMbPrivateKeyMethodConfig, \
             private_key: {{ filename: {} }}, poll_delay: {delay} }} }} }}",
            pair.chain.display(),
            pair.key.display()
        )
    };
    let both = [certificate(&pair, "400ms"), certificate(&other, "150ms")].join(", ");
    let (gateway, _file) = serving(&with_common(&format!("tls_certificates: [ {both} ]"), &pair));
    let port = gateway.port();
    for (host, delay) in [("localhost", 0.4), ("other.example", 0.15)] {
        let seconds = succeed(
            Command::new("curl")
                .args([
                    "-sS",
                    "--fail",
                    "--max-time",
                    "300",
                    "-o",
                    "/dev/null",
                    "-w",
                    "%{time_appconnect}",
                    "--cacert",
                ])
                .arg(certificates.ca())
                .args(["--resolve", &format!("{host}:{port}:127.0.0.1"), &format!("https://{host}:{port}/")]),
        );
        assert!(seconds.parse::<f64>().expect("seconds") >= delay, "{host}: {seconds}");
    }
}

#[test]
fn a_file_of_secrets_is_followed() {
    let (certificates, pair) = certificates();
    let folder = tempfile::tempdir().expect("a folder");
    let sds = folder.path().join("sds.yaml");
    let write = |pair: &Pair| {
        let text = format!(
            "resources:\n- \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret\n  name: server\n  tls_certificate: {{ certificate_chain: {{ filename: {} }}, private_key: {{ filename: {} }} }}\n",
            pair.chain.display(),
            pair.key.display()
        );
        let new = sds.with_extension("new");
        std::fs::write(&new, text).expect("writing");
        std::fs::rename(&new, &sds).expect("renaming");
    };
    write(&pair);
    let common = format!(
        "tls_certificate_sds_secret_configs: [ {{ name: server, sds_config: {{ path_config_source: {{ path: {} }} }} }} ]",
        sds.display()
    );
    let (gateway, _file) = serving(&with_common(&common, &pair));
    let seen = || {
        let connect = format!("localhost:{}", gateway.port());
        let command = format!(
            "openssl s_client -connect {connect} -servername localhost </dev/null 2>/dev/null | openssl x509 -noout -serial"
        );
        succeed(std::process::Command::new("sh").args(["-c", &command]))
    };
    let before = seen();
    write(&certificates.rsa(2048, &["localhost", "second.example"]));
    eventually("the new secret is not served", || seen() != before);
}

#[test]
fn what_would_weaken_security_is_refused_with_its_place() {
    let (_certificates, pair) = certificates();
    let text = with_common(&format!("{KEY_IN_A_FILE}\ncustom_handshaker: {{ name: mine }}"), &pair);
    let file = crate::support::Configuration::new(&text);
    let (ok, said) = output(quadrille("serve").arg("--envoy-config").arg(file.path()));
    assert!(!ok);
    let place = format!(
        "{}:16: static_resources.listeners[0].filter_chains[0].transport_socket.typed_config.common_tls_context.custom_handshaker: refused",
        file.path().display()
    );
    assert!(said.contains(&place), "{said}");
}
