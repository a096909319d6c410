//! TLS passthrough: connections are routed by SNI without termination.

use crate::support::{
    Certificates, Configuration, Gateway, Nginx, Pair, configuration::listener_at, configuration_of,
    document, output, ports, s_client, succeed,
};
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/guide/passthrough.md");

/// A server that terminates TLS itself.
fn server(pair: &Pair, options: &str, says: &str) -> Nginx {
    let (chain, key) = (pair.chain.display(), pair.key.display());
    Nginx::listening(
        options,
        &format!(
            "ssl_certificate {chain}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3; return 200 \"{says}\";"
        ),
    )
}

fn curl(gateway: &Gateway, certificates: &Certificates, host: &str, arguments: &[&str]) -> (bool, String) {
    let port = gateway.port();
    output(
        Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "600", "--cacert"])
            .arg(certificates.ca())
            .args(["--resolve", &format!("{host}:{port}:127.0.0.1")])
            .args(arguments)
            .arg(format!("https://{host}:{port}/")),
    )
}

#[test]
fn the_guides_configuration_passes_tls_through() {
    let certificates = Certificates::new();
    let pair = |name: &str| certificates.ecdsa("P-256", &[name]);
    let vault = server(
        &pair("vault.example.com"),
        "ssl proxy_protocol",
        "vault $ssl_protocol $ssl_server_name $proxy_protocol_addr",
    );
    let bytes = Nginx::new("return 200 \"plain $server_protocol\";");
    let own = [pair("mqtt.example.com"), pair("localhost")];
    let name = |path: &std::path::Path| path.display().to_string();
    let address = format!("\"127.0.0.1:{}\"", ports::free());
    let text = configuration_of(
        PAGE,
        &[
            ("\"[::]:443\"", &address),
            ("chain: mqtt.pem", &format!("chain: {}", name(&own[0].chain))),
            ("mqtt.key", &name(&own[0].key)),
            ("chain: chain.pem", &format!("chain: {}", name(&own[1].chain))),
            ("key: key.pem", &format!("key: {}", name(&own[1].key))),
            ("\"10.0.0.1:8200\", \"10.0.0.2:8200\"", &format!("\"{}\"", vault.address())),
            ("10.0.0.3:1883", &bytes.address().to_string()),
            ("alpn: [mqtt]", "alpn: [http/1.1]"),
        ],
    );
    let file = Configuration::new(&format!("admin: 127.0.0.1:0\n{text}"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let ask = |host, arguments: &[&str]| curl(&gateway, &certificates, host, arguments);
    // The certificate and the handshake are the server's, not the gateway's.
    for (flag, version) in [("--tls-max=1.2", "TLSv1.2"), ("--tlsv1.3", "TLSv1.3")] {
        let flag: Vec<&str> = flag.split('=').collect();
        let (good, said) = ask("vault.example.com", &flag);
        assert!(
            good && said == format!("vault {version} vault.example.com 127.0.0.1"),
            "{said}\n{}",
            gateway.log()
        );
    }
    assert_eq!(ask("mqtt.example.com", &["--http1.1"]), (true, "plain HTTP/1.1".to_owned()));
    assert_eq!(ask("localhost", &[]), (true, "hello".to_owned()));
    let other = s_client(gateway.address(0), &certificates.ca(), &["-noservername"]);
    assert_eq!(other.expect("without SNI").common_name(), "localhost");
    let seen = |version| gateway.metric("quadrille_handshakes_total", &[&format!("version=\"{version}\"")]);
    assert!(seen("TLSv1.3") >= 2.0, "{}", gateway.metrics());
    assert_eq!(seen("TLSv1.2"), 0.0, "a passed-through handshake is not counted by the gateway");
}

/// A client's certificate is presented to the server, through the gateway.
#[test]
fn client_certificates_reach_the_server() {
    let certificates = Certificates::new();
    let (origin, client) = (certificates.rsa(2048, &["localhost"]), certificates.ecdsa("P-256", &["client"]));
    let ca = certificates.ca();
    let (chain, key) = (origin.chain.display(), origin.key.display());
    let nginx = Nginx::listening(
        "ssl http2",
        &format!(
            "ssl_certificate {chain}; ssl_certificate_key {key}; ssl_client_certificate {}; ssl_verify_client on;
             return 200 \"$server_protocol $ssl_client_s_dn\";",
            ca.display()
        ),
    );
    let text = document(
        &["{address: \"127.0.0.1:0\", tls: off, mode: tcp, upstream: app}".to_owned()],
        &format!("app: {{servers: [\"{}\"]}}", nginx.address()),
    );
    let file = Configuration::new(&text);
    let gateway = Gateway::with_config(&file.path(), 1);
    let (chain, key) = (client.chain.display().to_string(), client.key.display().to_string());
    let said = succeed(
        Command::new("curl")
            .args(["--silent", "--http2", "--max-time", "600", "--cacert"])
            .arg(ca)
            .args(["--cert", &chain, "--key", &key, "--resolve"])
            .arg(format!("localhost:{}:127.0.0.1", gateway.port()))
            .arg(format!("https://localhost:{}/", gateway.port())),
    );
    assert_eq!(said, "HTTP/2.0 CN=client");
}

/// A certificate for a passed-through name would never be used.
#[test]
fn certificates_of_what_passes_through_are_a_mistake() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let keys = "match: {server_names: [localhost]}, tls: off, mode: tcp, upstream: app";
    let text = document(&[listener_at("127.0.0.1:0", &pair, keys)], "app: {servers: [\"127.0.0.1:1\"]}");
    let file = Configuration::new(&text);
    let (good, said) = output(crate::support::quadrille("check").arg(file.path()));
    assert!(!good && said.contains("`tls: off` does not use certificates; remove one of them"), "{said}");
}
