//! Headers that a configuration sets, adds and removes.

use crate::support::{Certificates, Configuration, Gateway, curl, document, echo_server, listener};

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
