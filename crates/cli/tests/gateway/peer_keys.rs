//! Certificates of peers with keys of all kinds, in TLS 1.2 and 1.3: of clients, upstreams and key servers.

use crate::support::{
    Certificates, Configuration, Gateway, KeyServer, Nginx, Pair, Site, curl_status, document, listener,
    s_client,
};

const VERSIONS: [&str; 2] = ["1.2", "1.3"];

fn every_kind(certificates: &Certificates, name: &str) -> Vec<Pair> {
    vec![
        certificates.rsa(2048, &[name]),
        certificates.ecdsa("P-256", &[name]),
        certificates.ecdsa("P-384", &[name]),
        certificates.ecdsa("P-521", &[name]),
        certificates.ed25519(&[name]),
    ]
}

fn kind(pair: &Pair) -> String {
    pair.chain.file_stem().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn clients_with_keys_of_all_kinds_are_verified() {
    let certificates = Certificates::new();
    let server = certificates.ecdsa("P-256", &["localhost"]);
    let ca = certificates.ca();
    let gateway =
        Gateway::with_flags(&server, &["--respond", "ok", "--client-ca", ca.to_str().expect("UTF-8")]);
    for pair in every_kind(&certificates, "client.example") {
        for flag in ["-tls1_2", "-tls1_3"] {
            let (chain, key) = (pair.chain.to_str().expect("UTF-8"), pair.key.to_str().expect("UTF-8"));
            let seen = s_client(gateway.address(0), &ca, &[flag, "-cert", chain, "-key", key]);
            seen.expect(&format!("{} {flag}\n{}", kind(&pair), gateway.log()));
        }
    }
    assert_eq!(gateway.metric("quadrille_handshakes_total", &["full"]), 10.0, "{}", gateway.metrics());
}

#[test]
fn upstreams_with_keys_of_all_kinds_are_verified() {
    let certificates = Certificates::new();
    let front = certificates.ecdsa("P-256", &["localhost"]);
    let ca = certificates.ca();
    let kinds = every_kind(&certificates, "origin.example");
    let serve = |pair: &Pair| {
        let (chain, key) = (pair.chain.display(), pair.key.display());
        let tls =
            format!("ssl_certificate {chain}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;");
        // The gateway's certificate is verified by the server in turn.
        let ca = format!("ssl_verify_client on; ssl_client_certificate {};", ca.display());
        Nginx::listening("ssl", &format!("{tls} {ca} return 200 $ssl_protocol;"))
    };
    let servers: Vec<_> = kinds.iter().map(serve).collect();
    let (mut upstreams, mut routes, mut paths) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (server, pair)) in servers.iter().zip(&kinds).enumerate() {
        for version in VERSIONS {
            let name = format!("u{index}-{}", version.replace('.', "-"));
            let own = format!("{{chain: {}, key: {}}}", pair.chain.display(), pair.key.display());
            upstreams.push(format!(
                "{name}: {{servers: [\"{}\"], tls: {{server_name: origin.example, ca: {}, min: {version}, max: {version}, certificate: {own}}}}}",
                server.address(),
                ca.display(),
            ));
            routes.push(format!("{{path: /{name}, upstream: {name}}}"));
            paths.push((format!("/{name}"), format!("{} in TLS {version}", kind(pair))));
        }
    }
    let routes = format!("routes: [{}]", routes.join(", "));
    let file = Configuration::new(&document(&[listener(&front, &routes)], &upstreams.join(", ")));
    let gateway = Gateway::with_config(&file.path(), 1);
    for (path, what) in paths {
        let status = curl_status(&gateway, &certificates, &[], &path);
        assert_eq!(status, "200", "{what}\n{}", gateway.log());
    }
}

#[test]
fn key_servers_and_their_clients_verify_keys_of_all_kinds() {
    let mut site = Site::new();
    let pair = site.certificates.rsa(2048, &["site.example"]);
    site.give_away(&pair, "site");
    let servers = every_kind(&site.certificates, "localhost");
    let clients = every_kind(&site.certificates, "gateway.example");
    for (server, client) in servers.into_iter().zip(clients) {
        let what = kind(&client);
        site.server = server;
        site.gateway = client;
        let running = KeyServer::start(&site, &[]);
        let (chain, key) = (&site.gateway.chain, &site.gateway.key);
        let presented = ["-cert", chain.to_str().expect("UTF-8"), "-key", key.to_str().expect("UTF-8")];
        let address = ([127, 0, 0, 1], running.port).into();
        // Both ends of the project prefer TLS 1.3.
        let old = s_client(address, &site.certificates.ca(), &[&["-tls1_2"], &presented[..]].concat());
        assert!(old.text.contains("New, TLSv1.2, Cipher is ECDHE"), "{what}\n{}", old.text);
        for mode in ["batched", "compatible"] {
            let key = site.keyless(&[running.name()], &format!("protocol: {mode}"));
            let (gateway, _file) = site.serve(&[site.listener(&pair.chain, &key, "")]);
            let seen = s_client(gateway.address(0), &site.certificates.ca(), &["-tls1_3"]);
            seen.expect(&format!("{what} {mode}\n{}\n{}", gateway.log(), running.process.log()));
        }
    }
}
