//! TLS and HTTP/2 to upstreams.

use crate::support::{
    Certificates, Configuration, Gateway, Nginx, Pair, curl, curl_status, document, eventually, listener,
};
use std::{
    path::{Path, PathBuf},
    thread,
};

fn serving(pair: &Pair, options: &str) -> Nginx {
    let (chain, key) = (pair.chain.display(), pair.key.display());
    Nginx::listening(
        options,
        &format!(
            "ssl_certificate {chain}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
             return 200 \"$server_protocol $ssl_protocol $ssl_server_name $http_x_forwarded_for $host\";"
        ),
    )
}

/// Starts a gateway in front of this server, with these keys for its upstream.
fn before(certificates: &Certificates, nginx: &Nginx, keys: &str) -> (Gateway, Configuration) {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = format!("web: {{servers: [\"{}\"], {keys}}}", nginx.address());
    let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &upstreams));
    (Gateway::with_config(&file.path(), 1), file)
}

#[test]
fn a_server_is_verified_by_ca_and_name() {
    let certificates = Certificates::new();
    let stranger = Certificates::new();
    let nginx = serving(&certificates.rsa(2048, &["origin.example"]), "ssl");
    let (ours, theirs) = (certificates.ca(), stranger.ca());
    for (tls, status) in [
        (format!("server_name: origin.example, ca: {}", ours.display()), "200"),
        (format!("server_name: other.example, ca: {}", ours.display()), "502"),
        (format!("server_name: origin.example, ca: {}", theirs.display()), "502"),
        ("server_name: origin.example".to_owned(), "502"),
        ("verify: off, server_name: other.example".to_owned(), "200"),
    ] {
        let (gateway, _file) = before(&certificates, &nginx, &format!("tls: {{{tls}}}"));
        for _ in 0..2 {
            assert_eq!(curl_status(&gateway, &certificates, &[], "/"), status, "{tls}\n{}", gateway.log());
        }
    }
}

#[test]
fn http_versions_of_both_sides_combine_freely() {
    let certificates = Certificates::new();
    let nginx = serving(&certificates.rsa(2048, &["origin.example"]), "ssl http2");
    for (protocol, seen) in [("auto", "HTTP/2.0"), ("http1", "HTTP/1.1"), ("http2", "HTTP/2.0")] {
        let tls = format!("tls: {{server_name: origin.example, ca: {}}}", certificates.ca().display());
        let (gateway, _file) = before(&certificates, &nginx, &format!("protocol: {protocol}, {tls}"));
        for client in ["--http1.1", "--http2"] {
            let echo = curl(&gateway, &certificates, &[client], "/");
            assert_eq!(
                echo,
                format!("{seen} TLSv1.3 origin.example 127.0.0.1 localhost"),
                "{client} {protocol}"
            );
            let posted = curl(&gateway, &certificates, &[client, "-d", "a body"], "/");
            assert!(posted.starts_with(seen), "{client} {protocol}: {posted}");
        }
    }
}

#[test]
fn http2_in_plain_text_works_with_prior_knowledge() {
    let certificates = Certificates::new();
    let nginx = Nginx::listening("http2", "return 200 $server_protocol;");
    let (gateway, _file) = before(&certificates, &nginx, "protocol: http2");
    for client in ["--http1.1", "--http2"] {
        assert_eq!(curl(&gateway, &certificates, &[client], "/"), "HTTP/2.0", "{client}");
    }
}

#[test]
fn connections_that_were_verified_by_different_cas_are_not_shared() {
    let certificates = Certificates::new();
    let stranger = Certificates::new();
    let nginx = serving(&certificates.rsa(2048, &["origin.example"]), "ssl");
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let server = nginx.address();
    let upstreams = format!(
        "ours: {{servers: [\"{server}\"], tls: {{server_name: origin.example, ca: {}}}}},
         theirs: {{servers: [\"{server}\"], tls: {{server_name: origin.example, ca: {}}}}}",
        certificates.ca().display(),
        stranger.ca().display()
    );
    let routes = "routes: [{path: /ours, upstream: ours}, {path: /theirs, upstream: theirs}]";
    let file = Configuration::new(&document(&[listener(&pair, routes)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    for _ in 0..4 {
        assert_eq!(curl_status(&gateway, &certificates, &[], "/ours"), "200", "{}", gateway.log());
        assert_eq!(curl_status(&gateway, &certificates, &[], "/theirs"), "502");
    }
}

#[test]
fn health_checks_speak_tls_too() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["origin.example"]);
    let (chain, key, log) = (pair.chain.display(), pair.key.display(), certificates.path("checks.log"));
    let nginx = Nginx::listening(
        "ssl",
        &format!(
            "ssl_certificate {chain}; ssl_certificate_key {key}; access_log {} counted; location / {{ return 200 ok; }}",
            log.display()
        ),
    );
    let keys = format!(
        "tls: {{server_name: origin.example, ca: {}}}, health: {{path: /, interval: 50ms, timeout: 300s, unhealthy: 1}}",
        certificates.ca().display()
    );
    let (gateway, _file) = before(&certificates, &nginx, &keys);
    // The result of the first one is known when the second arrives.
    let checks = || std::fs::read_to_string(&log).unwrap_or_default().lines().count();
    eventually("no checks", || checks() >= 2);
    assert_eq!(curl_status(&gateway, &certificates, &[], "/"), "200", "{}", gateway.log());
}

#[test]
fn health_checks_speak_http2_where_requests_do() {
    let certificates = Certificates::new();
    let log = certificates.path("checks.log");
    let directives =
        format!("access_log {} counted; location / {{ return 200 $server_protocol; }}", log.display());
    let nginx = Nginx::listening("http2", &directives);
    let checked = "protocol: http2, health: {path: /, interval: 50ms, timeout: 300s, unhealthy: 1}";
    let (gateway, _file) = before(&certificates, &nginx, checked);
    let checks = || std::fs::read_to_string(&log).unwrap_or_default().lines().count();
    eventually("no checks", || checks() >= 2);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "HTTP/2.0", "{}", gateway.log());
}

/// Returns the server's count of TLS handshakes, and how many of them resumed a session.
fn handshakes(log: &Path) -> (usize, usize) {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    // Counts the first request of each connection.
    let first = log.lines().filter_map(|line| line.strip_prefix("1 ")).collect::<Vec<_>>();
    (first.len(), first.iter().filter(|reused| **reused == "r").count())
}

/// Starts a server that closes each connection after three requests (which nginx counts only in locations), with its
/// log.
fn closing(pair: &Pair, version: &str, more: &str) -> (Nginx, PathBuf) {
    let (chain, key) = (pair.chain.display(), pair.key.display());
    let log = pair.chain.with_extension(format!("{version}.log"));
    let nginx = Nginx::listening(
        "ssl",
        &format!(
            "ssl_certificate {chain}; ssl_certificate_key {key}; ssl_protocols {version};
             keepalive_requests 3; access_log {} counted; {more} location / {{ return 200 ok; }}",
            log.display()
        ),
    );
    (nginx, log)
}

/// All of at least 150 connections resume, except the first ones: four concurrent clients have no session at the
/// start.
#[test]
fn reconnections_resume_sessions() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["origin.example"]);
    let tls = format!("tls: {{server_name: origin.example, ca: {}}}", certificates.ca().display());
    for version in ["TLSv1.3", "TLSv1.2"] {
        let (nginx, log) = closing(&pair, version, "");
        let (gateway, _file) = before(&certificates, &nginx, &tls);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let answers = curl(&gateway, &certificates, &["--http1.1"], "/[1-120]");
                    assert_eq!(answers, "ok".repeat(120));
                });
            }
        });
        eventually("few connections", || handshakes(&log).0 >= 150);
        let (made, resumed) = handshakes(&log);
        assert!(resumed * 100 >= made * 95, "{version}: {resumed} of {made}");
    }
}

#[test]
fn servers_are_shown_a_client_certificate_and_its_sessions_resume() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["origin.example"]);
    let client = certificates.ecdsa("P-256", &["gateway.example"]);
    let ca = certificates.ca();
    let demand = format!("ssl_verify_client on; ssl_client_certificate {};", ca.display());
    let tls = |more: &str| format!("tls: {{server_name: origin.example, ca: {}{more}}}", ca.display());
    let shown =
        format!(", certificate: {{chain: {}, key: {}}}", client.chain.display(), client.key.display());
    for version in ["TLSv1.3", "TLSv1.2"] {
        let (nginx, log) = closing(&pair, version, &demand);
        let (gateway, _file) = before(&certificates, &nginx, &tls(""));
        assert_eq!(curl_status(&gateway, &certificates, &[], "/"), "400", "{version}");
        drop(gateway);
        std::fs::write(&log, "").expect("a new log");
        let (gateway, _file) = before(&certificates, &nginx, &tls(&shown));
        assert_eq!(curl(&gateway, &certificates, &[], "/[1-120]"), "ok".repeat(120), "{version}");
        eventually("few connections", || handshakes(&log).0 >= 38);
        let (made, resumed) = handshakes(&log);
        assert!(resumed + 1 >= made, "{version}: {resumed} of {made}");
    }
}

/// Versions, suites and groups offered to servers, as received and selected by different servers.
#[test]
fn versions_suites_and_groups_are_chosen() {
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["origin.example"]);
    let nginx = |directives: &str| {
        let (chain, key) = (pair.chain.display(), pair.key.display());
        let says = "return 200 \"$ssl_protocol $ssl_cipher $ssl_curves\";";
        Nginx::listening(
            "ssl",
            &format!("ssl_certificate {chain}; ssl_certificate_key {key}; {directives} {says}"),
        )
    };
    let any = nginx("ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve X25519:prime256v1:secp384r1;");
    let only_p384 = nginx("ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve secp384r1;");
    let old = nginx("ssl_protocols TLSv1.1; ssl_ciphers ALL:@SECLEVEL=0;");
    let suites = "max: 1.2, cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]";
    for (server, keys, expected) in [
        (&any, "max: 1.2", Some("TLSv1.2 ECDHE-RSA-AES")),
        (&any, suites, Some("TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384")),
        (&any, "groups: [P-384, X25519]", Some("TLSv1.3 TLS_")),
        (&any, "min: 1.3", Some("TLSv1.3 TLS_")),
        (&only_p384, "groups: [P-384]", Some("TLSv1.3 TLS_")),
        (&only_p384, "groups: [X25519]", None),
        (&old, "min: 1.1", Some("TLSv1.1 ")),
        (&old, "min: 1.2", None),
        (&any, "max: 1.2, cipher_suites: [ECDHE-ECDSA-AES128-GCM-SHA256]", None),
    ] {
        let ca = certificates.ca();
        let tls = format!("tls: {{server_name: origin.example, ca: {}, {keys}}}", ca.display());
        let (gateway, _file) = before(&certificates, server, &tls);
        match expected {
            Some(expected) => {
                let seen = curl(&gateway, &certificates, &[], "/");
                assert!(seen.starts_with(expected), "{keys}: {seen}");
            }
            None => assert_eq!(curl_status(&gateway, &certificates, &[], "/"), "502", "{keys}"),
        }
    }
}
