//! Header changes by configuration: set, add and remove.

use crate::support::{
    Certificates, Configuration, Gateway, Http3Client, curl, document, echo_server, http3::Sending, listener,
};

const KEYS: &str = r#"
    hsts: 180d,
    request_headers: [{set: X-Edge, value: "{scheme} {protocol} {{edge}"}, {remove: X-Secret}],
    response_headers: [{set: X-Frame-Options, value: DENY}],
    routes: [
        {path: /own, respond: mine, response_headers: [{set: X-Frame-Options, value: SAMEORIGIN}]},
        {path: /, upstream: web,
         request_headers: [{append: X-Edge, value: "second {request:x-asked}"}, {add_if_absent: X-Here, value: no}],
         response_headers: [{append: Vary, value: Origin}, {replace: X-Absent, value: no}, {set: X-Empty, value: "{response:x-none}"}]}
    ]"#;

#[test]
fn the_identity_in_a_client_certificate_cannot_be_forged() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let alice = certificates.ecdsa("P-256", &["alice.example"]);
    let keys = format!(
        "tls: {{client_auth: {{mode: optional, ca: {}}}}}, upstream: web, request_headers: [
         {{set: X-Client, value: \"{{client_certificate_dns}}\"}},
         {{set: X-Subject, value: \"{{client_certificate_subject}}\"}},
         {{set: X-Hash, value: \"{{client_certificate_sha256}}\"}},
         {{set: X-Uri, value: \"{{client_certificate_uri}}\"}}]",
        certificates.ca().display()
    );
    let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
    let file = Configuration::new(&document(&[listener(&pair, &keys)], &web));
    let gateway = Gateway::with_config(&file.path(), 1);
    let forged = [
        "X-Client: root",
        "X_Client: root",
        "X-Subject: CN=root",
        "x_subject: CN=root",
        "X-Hash: 00",
        "X-Uri: spiffe://root",
    ];
    let forged: Vec<_> = forged.iter().flat_map(|header| ["-H", header]).collect();
    let (chain, key) = (alice.chain.to_str().expect("UTF-8"), alice.key.to_str().expect("UTF-8"));
    let shown = [&forged[..], &["--cert", chain, "--key", key]].concat();
    let of = |arguments: &[&str]| {
        let seen = curl(&gateway, &certificates, arguments, "/").replace('\r', "").to_ascii_lowercase();
        let lines = seen.lines().map(|line| line.trim().to_owned());
        let told = |line: &String| {
            let line = line.replace('_', "-");
            ["x-client:", "x-subject:", "x-hash:", "x-uri:"].iter().any(|name| line.starts_with(name))
        };
        lines.filter(told).collect::<Vec<_>>()
    };
    assert_eq!(of(&forged), Vec::<String>::new(), "a client without a certificate");
    let told = of(&shown);
    assert!(told.contains(&"x-client: alice.example".to_owned()), "{told:?}");
    let hash = told.iter().find_map(|line| line.strip_prefix("x-hash: ")).expect("a hash");
    assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
    assert!(told.iter().any(|line| line.starts_with("x-subject: ")), "{told:?}");
    assert!(!told.iter().any(|line| line.contains("root")), "{told:?}");
    assert!(!told.iter().any(|line| line.starts_with("x-uri:")), "the certificate has no URI: {told:?}");
}

#[test]
fn of_requests_and_of_answers() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
    let file = Configuration::new(&document(&[listener(&pair, KEYS)], &web));
    let gateway = Gateway::with_config(&file.path(), 1);
    for (version, protocol) in [("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2")] {
        let asked = ["-H", "X-Secret: s", "-H", "X-Asked: a", "-H", "X-Here: yes", "--include", version];
        let said = curl(&gateway, &certificates, &asked, "/").replace('\r', "").to_ascii_lowercase();
        let (head, seen) = said.split_once("\n\n").expect("a head and a body");
        let answered = |line: &str| head.lines().any(|known| known == line);
        assert!(answered("strict-transport-security: max-age=15552000"), "{head}");
        assert!(answered("x-frame-options: deny") && answered("vary: origin"), "{head}");
        assert!(!head.contains("x-absent") && !head.contains("x-empty"), "{head}");
        let sent = |line: &str| seen.lines().any(|known| known.trim() == line);
        let edge = format!("x-edge: https {} {{edge}}", protocol.to_ascii_lowercase());
        assert!(sent(&edge) && sent("x-edge: second a") && sent("x-here: yes"), "{edge}: {seen}");
        assert!(!seen.contains("x-secret") && seen.contains("x-asked"), "{seen}");
        let own = curl(&gateway, &certificates, &["--include", version], "/own").to_ascii_lowercase();
        assert!(
            own.contains("x-frame-options: sameorigin") && !own.contains("x-frame-options: deny"),
            "{own}"
        );
        assert!(own.contains("strict-transport-security") && own.ends_with("mine"), "{own}");
    }
}

/// Servers may read `X_Token` as `X-Token`, so every change concerns both.
#[test]
fn changes_concern_every_spelling_of_a_name() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let keys = "http3: on, upstream: web, request_headers: [{remove: X-Internal-Token},
        {replace: X-Old-Name, value: ours}, {add_if_absent: X-Given-Name, value: ours},
        {add_if_absent: X-New-Name, value: added}, {replace: X-Absent-Name, value: wrong}]";
    let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
    let file = Configuration::new(&document(&[listener(&pair, keys)], &web));
    let gateway = Gateway::with_config(&file.path(), 1);
    let headers = [
        ("x_internal_token", "forged"),
        ("x-internal_token", "forged"),
        ("x_old_name", "forged"),
        ("x_given-name", "given"),
    ];
    let lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let arguments: Vec<_> = lines.iter().flat_map(|line| ["-H", line.as_str()]).collect();
    let get = |version| curl(&gateway, &certificates, &[&[version], &arguments[..]].concat(), "/");
    let mut http3 = Http3Client::new(&certificates).connect(gateway.address(0));
    let third = http3.exchange(&Sending { method: "GET", path: "/", headers: &headers, body: b"" }).text();
    for seen in [get("--http1.1"), get("--http2"), third] {
        let seen = seen.to_ascii_lowercase();
        let names: Vec<_> = seen.lines().filter(|line| line.contains("name: ")).map(str::trim).collect();
        assert_eq!(names.len(), 3, "{seen}");
        for line in ["x-old-name: ours", "x_given-name: given", "x-new-name: added"] {
            assert!(names.contains(&line), "{line}: {seen}");
        }
        assert!(!seen.contains("forged") && !seen.contains("token"), "{seen}");
    }
}
