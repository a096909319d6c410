//! Warnings about servers that fail again and again.

use crate::support::{
    Certificates, Configuration, Gateway, curl_status, document, eventually, listener, ports,
};

#[test]
fn a_server_that_fails_has_one_line_and_a_count() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let closed = ports::free();
    let upstreams = format!("app: {{servers: ['127.0.0.1:{closed}'], retries: 0}}");
    let configuration = Configuration::new(&document(&[listener(&pair, "upstream: app")], &upstreams));
    let gateway = Gateway::with_config(&configuration.path(), 1);
    for _ in 0..12 {
        assert_eq!(curl_status(&gateway, &certificates, &[], "/"), "502");
    }
    let server = format!("server=\"127.0.0.1:{closed}\"");
    let lines = |text: &str| -> Vec<String> {
        let log = gateway.log();
        log.lines().filter(|line| line.contains(&server) && line.contains(text)).map(str::to_owned).collect()
    };
    let times = || {
        let times = |line: &String| line.rsplit_once("times=")?.1.parse::<usize>().ok();
        lines("cannot reach the server, repeatedly").iter().filter_map(times).sum::<usize>()
    };
    let single = || lines("cannot reach the server").len() - lines("repeatedly").len();
    eventually("the failures have no count", || single() + times() == 12);
    assert!(single() < 12 && !gateway.log().contains("Some("), "{}", gateway.log());
}
