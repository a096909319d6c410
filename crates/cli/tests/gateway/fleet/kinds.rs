//! Redis with TLS, and a cluster of them.

use crate::support::{
    Certificates, Configuration, Gateway, Pair, Redis, Returning, Way, document, eventually, listener,
    output, quadrille, succeed,
};

/// Starts a gateway that has joined the fleet: it starts without it if Redis does not respond in time, which may
/// happen on a slow machine.
pub(super) fn joined(pair: &Pair, flags: &[&str]) -> Gateway {
    let mut gateway = Gateway::with_flags(pair, flags);
    eventually("it does not join the fleet", || {
        let has_joined = gateway.log().contains("joined the fleet");
        if !has_joined {
            gateway = Gateway::with_flags(pair, flags);
        }
        has_joined
    });
    gateway
}

/// Checks that session ids and tickets of one gateway are resumed on another with this Redis.
fn shares(certificates: &Certificates, redis: &[&str]) {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let secret = certificates.path("fleet.secret");
    succeed(quadrille("tickets").arg("generate").arg(&secret));
    let secret = secret.to_str().expect("UTF-8");
    let flags =
        ["--respond", "ok", "--session-tickets", "fleet", "--fleet-secret", secret, "--session-cache"];
    let flags = [&flags[..], redis, &["--session-lookup-timeout", "10s"]].concat();
    let gateways = [(); 2].map(|()| joined(&pair, &flags));
    for way in Way::ALL {
        for _ in 0..5 {
            let (client, mut session) = (Returning::new(certificates, way), None);
            client.visit(gateways[0].address(0), &mut session).expect("a first visit");
            if way == Way::Id12 {
                eventually("the session is in Redis", || {
                    let written = gateways[0].metric("quadrille_session_store_writes_total", &["ok"]);
                    written >= gateways[0].metric("quadrille_session_store_sessions", &[])
                });
            }
            let resumed = client.visit(gateways[1].address(0), &mut session).expect("a visit");
            assert!(resumed, "{way:?}\n{}\n{}", gateways[1].metrics(), gateways[1].log());
        }
    }
}

#[test]
fn redis_is_reached_by_tls_and_its_certificate_is_checked() {
    let certificates = Certificates::new();
    let redis = Redis::with_tls(&certificates.ecdsa("P-256", &["localhost"]), &certificates.ca());
    let (address, ca) = (format!("rediss://localhost:{}", redis.port()), certificates.path("marked.pem"));
    let text = std::fs::read_to_string(certificates.ca()).expect("a CA certificate");
    std::fs::write(&ca, format!("\u{feff}{text}")).expect("writing");
    shares(&certificates, &[&address, "--redis-ca", ca.to_str().expect("UTF-8")]);

    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let secret = certificates.path("fleet.secret");
    let flags =
        ["--respond", "ok", "--session-tickets", "fleet", "--fleet-secret", secret.to_str().expect("UTF-8")];
    let gateway = Gateway::with_flags(&pair, &[&flags[..], &["--session-cache", &address]].concat());
    assert!(gateway.log().contains("CERTIFICATE_VERIFY_FAILED"), "the system's CAs\n{}", gateway.log());

    std::fs::write(&ca, format!("{text}-----BEGIN CERTIFICATE-----\n")).expect("writing");
    let (cas, secret) = (ca.display(), secret.display());
    let resumption = format!(
        "resumption: {{tickets: fleet, fleet_secret: {secret}, cache: '{address}', redis_ca: {cas}}}\n"
    );
    let text = document(&[listener(&pair, "respond: ok")], "") + &resumption;
    let file = Configuration::new(&text);
    let (passed, said) = output(quadrille("check").arg(file.path()));
    assert!(!passed && said.contains("resumption.redis_ca: "), "{said}");
    assert!(said.contains("BEGIN CERTIFICATE without END"), "{said}");
    let mut gateway = Gateway::with_config(&file.path(), 1);
    gateway.wait_for_log("BEGIN CERTIFICATE without END");
}

#[test]
fn a_cluster_is_one_store() {
    let nodes = Redis::cluster();
    let list = nodes.each_ref().map(|node| format!("127.0.0.1:{}", node.port())).join(",");
    shares(&Certificates::new(), &[&format!("redis+cluster://{list}")]);
}
