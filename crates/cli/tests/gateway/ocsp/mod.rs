//! OCSP responses that the gateway fetches and staples, with OpenSSL as the responder and as the client.

mod ml_dsa;
#[allow(dead_code, reason = "the tests of ACME use the rest of it")]
mod responder;
mod trust_anchor;

use crate::support::{
    Certificates, Configuration, Gateway, Http3Client, Pair,
    clock::{Clock, unix_now},
    document, eventually, listener, output, quadrille, s_client, succeed,
};
use responder::{Does, Responder};
use std::process::Command;

const MUST_STAPLE: &str = "tlsfeature=status_request\n";
const FETCHES: &str = "quadrille_ocsp_fetches_total";

fn configuration(pair: &Pair, keys: &str) -> Configuration {
    Configuration::new(&document(&[listener(pair, &format!("respond: ok, {keys}"))], ""))
}

/// A gateway whose clock is stopped 15 seconds before the end of a one-minute response that it receives at once. The
/// response thus stays valid during the checks on the slowest machine, and the gateway queries again after a few
/// seconds.
fn gateway_whose_clock_stands(responder: &Responder, file: &Configuration) -> (Gateway, Clock) {
    let clock = Clock::new(&responder.certificates.path(""));
    clock.stands_at(unix_now() + 45);
    let mut command = clock.serve();
    command.arg("--config").arg(file.path());
    let gateway = Gateway::start(command, 1);
    gateway.wait_for_metric(FETCHES, &["good"], |count| count >= 1.0);
    (gateway, clock)
}

/// The second at which the stapled response expires.
fn end_of_staple(gateway: &Gateway) -> i64 {
    gateway.metric("quadrille_ocsp_staple_not_after_seconds", &["name=\"localhost\""]) as i64
}

fn gateway(pair: &Pair) -> Gateway {
    let file = configuration(pair, "tls: {ocsp_stapling: on}");
    Gateway::with_config(&file.path(), 1)
}

/// Returns the response stapled for a client that requests it, if any.
fn stapled(gateway: &Gateway, certificates: &Certificates, version: &str) -> Option<String> {
    let seen = s_client(gateway.address(0), &certificates.ca(), &[version, "-status"]).expect(version);
    if seen.text.contains("OCSP response: no response sent") {
        return None;
    }
    assert!(seen.text.contains("OCSP Response Status: successful"), "{}", seen.text);
    Some(seen.text)
}

#[track_caller]
fn serves_good(gateway: &Gateway, certificates: &Certificates) {
    for version in ["-tls1_2", "-tls1_3"] {
        let text = stapled(gateway, certificates, version).unwrap_or_else(|| panic!("{}", gateway.log()));
        assert!(text.contains("Cert Status: good"), "{text}");
    }
}

#[track_caller]
fn serves_nothing(gateway: &Gateway, certificates: &Certificates) {
    for version in ["-tls1_2", "-tls1_3"] {
        assert_eq!(stapled(gateway, certificates, version), None, "{}", gateway.log());
    }
}

#[test]
fn what_the_responder_says_is_stapled_and_stays_over_a_reload() {
    let responder = Responder::start();
    let ca = &responder.certificates;
    let pair = responder.issue("localhost", "");
    let file = configuration(&pair, "http3: on, tls: {ocsp_stapling: on}");
    let mut gateway = Gateway::with_config(&file.path(), 1);
    gateway.wait_for_metric(FETCHES, &["good"], |count| count == 1.0);
    serves_good(&gateway, ca);
    assert!(responder.asked()[0].starts_with("GET /ocsp/M"), "{:?}", responder.asked());
    let plain = s_client(gateway.address(0), &ca.ca(), &[]).expect("a response");
    assert!(!plain.text.contains("OCSP Response Status"), "it was not requested: {}", plain.text);
    let mut client = Http3Client::new(ca);
    let staple = client.connect(gateway.address(0)).staple().expect("a staple over QUIC");
    let stored = ca.path("quic.resp");
    std::fs::write(&stored, &staple).expect("writing");
    let mut verify = Command::new("openssl");
    verify.args(["ocsp", "-respin"]).arg(&stored).arg("-CAfile").arg(ca.ca()).arg("-issuer").arg(ca.ca());
    let verified = succeed(verify.arg("-cert").arg(&pair.chain));
    assert!(verified.contains(": good"), "{verified}");

    assert_eq!(gateway.metric("quadrille_ocsp_staples", &["valid"]), 1.0, "{}", gateway.metrics());
    let week = gateway.metric("quadrille_ocsp_staple_not_after_seconds", &["name=\"localhost\""]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    assert!((6.9..7.1).contains(&((week - now.as_secs_f64()) / 86400.0)), "{week}");
    let status = gateway.admin_page("/status");
    assert!(status.contains(r#""state": "valid""#), "{status}");

    responder.does(Does::Leaves);
    let other = configuration(&pair, "http3: on, tls: {ocsp_stapling: on, min: 1.2, groups: [X25519]}");
    file.replace(&std::fs::read_to_string(other.path()).expect("the other"));
    gateway.wait_for_log("configuration reloaded");
    serves_good(&gateway, ca);
    assert!(client.connect(gateway.address(0)).staple().is_some());
    assert_eq!(responder.asked().len(), 1, "no new response was needed");
    assert_eq!(gateway.log().matches("an OCSP response is stapled").count(), 1, "{}", gateway.log());

    file.replace(
        &std::fs::read_to_string(configuration(&pair, "tls: {ocsp_stapling: off}").path()).expect("off"),
    );
    eventually("nothing is stapled", || stapled(&gateway, ca, "-tls1_3").is_none());
    assert_eq!(gateway.metric("quadrille_ocsp_staples", &[]), 0.0, "{}", gateway.metrics());
}

/// Restart with a state directory.
#[test]
fn a_response_outlives_the_process_and_a_damaged_one_is_not_stapled() {
    let responder = Responder::start();
    let ca = &responder.certificates;
    let pair = responder.issue("localhost", "");
    let state = ca.path("state");
    let acme = format!("acme: {{state: {}}}", state.display());
    let listener = listener(&pair, "respond: ok, tls: {ocsp_stapling: on}");
    let file = Configuration::new(&format!("{acme}\n{}", document(&[listener], "")));
    let gateway = Gateway::with_config(&file.path(), 1);
    gateway.wait_for_metric(FETCHES, &["good"], |count| count == 1.0);
    drop(gateway);
    responder.does(Does::Leaves);
    let gateway = Gateway::with_config(&file.path(), 1);
    serves_good(&gateway, ca);
    assert_eq!(responder.asked().len(), 1, "{}", gateway.log());
    drop(gateway);
    let kept = std::fs::read_dir(state.join("ocsp")).expect("a directory").next().expect("a file");
    let kept = kept.expect("an entry").path();
    let mut der = std::fs::read(&kept).expect("a response");
    // Within the signed part, which is first; the certificates after it are not signed.
    der[100] ^= 1;
    std::fs::write(&kept, der).expect("writing");
    let gateway = Gateway::with_config(&file.path(), 1);
    gateway.wait_for_metric(FETCHES, &["unreachable"], |count| count >= 1.0);
    serves_nothing(&gateway, ca);
}

#[test]
fn a_responder_that_the_issuer_has_charged_is_believed() {
    let responder = Responder::start();
    let ca = &responder.certificates;
    let pair = responder.issue("localhost", "");
    let signer = responder.signer(ca, "charged", "extendedKeyUsage=OCSPSigning\nkeyUsage=digitalSignature\n");
    responder.does(Does::Answers { minutes: 60, signer });
    let gateway = gateway(&pair);
    gateway.wait_for_metric(FETCHES, &["good"], |count| count == 1.0);
    serves_good(&gateway, ca);
}

/// An unusable response is not stapled, is logged once, and is requested again later.
#[test]
fn what_proves_nothing_is_not_stapled() {
    let responder = Responder::start();
    let ca = &responder.certificates;
    let pair = responder.issue("localhost", "");
    let other = responder.issue("other.test", "");
    let foreign = Certificates::new();
    let stranger = responder.signer(&foreign, "stranger", "extendedKeyUsage=OCSPSigning\n");
    let unentitled = responder.signer(ca, "unentitled", "extendedKeyUsage=serverAuth\n");
    let about_other = responder.answer_about(&other);
    let signed_by = |signer| Does::Answers { minutes: 60, signer };
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: ";
    let says = |text: String| Does::Says(text.leak().as_bytes());
    let forged = "it is signed neither by the issuer nor by an authorized responder";
    let cases = [
        (signed_by(stranger), "unusable", forged),
        (signed_by(unentitled), "unusable", forged),
        (Does::Repeats(about_other), "unusable", "it is about another certificate"),
        (says(format!("{ok}7\r\n\r\ngarbage")), "unusable", "it is not an OCSP response in DER"),
        (says(format!("{ok}0\r\n\r\n")), "unusable", "it is not an OCSP response in DER"),
        (says(format!("{ok}5\r\n\r\n0\x03\n\x01\x03")), "unusable", "its status is `TryLater`"),
        (says(format!("{ok}999999\r\n\r\n{}", "x".repeat(999_999))), "unreachable", "length limit exceeded"),
        (says("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned()), "unreachable", "status 503"),
        (says("no HTTP at all\r\n\r\n".to_owned()), "unreachable", "the responder http://127.0.0.1:"),
        (Does::Leaves, "unreachable", "the responder http://127.0.0.1:"),
    ];
    for (does, result, message) in cases {
        responder.does(does);
        let mut gateway = gateway(&pair);
        gateway.wait_for_metric(FETCHES, &[result], |count| count >= 1.0);
        serves_nothing(&gateway, ca);
        gateway.wait_for_log("no OCSP response to staple");
        let log = gateway.log();
        assert!(log.contains(message), "{message}: {log}");
        assert_eq!(gateway.metric("quadrille_ocsp_staples", &["missing"]), 1.0);
        assert_eq!(
            gateway.metric("quadrille_ocsp_must_staple_missing", &[]),
            0.0,
            "stapling is not required"
        );
    }
    responder.answers(60);
    responder.knows(&pair, "");
    let mut gateway = gateway(&pair);
    gateway.wait_for_metric(FETCHES, &["unusable"], |count| count >= 2.0);
    gateway.wait_for_log("no OCSP response to staple");
    assert_eq!(gateway.log().matches("no OCSP response to staple").count(), 1, "{}", gateway.log());
    assert!(gateway.log().contains("it reports the certificate as unknown"), "{}", gateway.log());
    assert!(responder.asked().last().expect("a request").starts_with("POST /ocsp "), "the other method");
    responder.knows(&pair, "V");
    gateway.wait_for_metric(FETCHES, &["good"], |count| count >= 1.0);
    serves_good(&gateway, ca);
}

#[test]
fn a_revoked_certificate_loses_its_staple() {
    let responder = Responder::start();
    let ca = &responder.certificates;
    let pair = responder.issue("localhost", "");
    responder.answers(1);
    let file = configuration(&pair, "tls: {ocsp_stapling: on}");
    let (mut gateway, clock) = gateway_whose_clock_stands(&responder, &file);
    serves_good(&gateway, ca);
    responder.knows(&pair, "R");
    // After half of the good response's minute, and before its end.
    clock.stands_at(end_of_staple(&gateway) - 5);
    gateway.wait_for_metric(FETCHES, &["revoked"], |count| count >= 1.0);
    serves_nothing(&gateway, ca);
    assert_eq!(gateway.metric("quadrille_ocsp_staples", &["revoked"]), 1.0, "{}", gateway.metrics());
    gateway.wait_for_log("the authority has revoked this certificate");
}

#[test]
fn a_response_that_has_expired_is_not_served_and_one_that_must_be_stapled_is_alerted() {
    let responder = Responder::start();
    let ca = &responder.certificates;
    let pair = responder.issue("localhost", MUST_STAPLE);
    responder.answers(1);
    // Must-staple certificates need no configuration.
    let file = configuration(&pair, "");
    let (gateway, clock) = gateway_whose_clock_stands(&responder, &file);
    serves_good(&gateway, ca);
    let missing = || gateway.metric("quadrille_ocsp_must_staple_missing", &[]);
    assert!(gateway.metrics().contains("\nquadrille_ocsp_must_staple_missing 0"), "{}", gateway.metrics());
    responder.does(Does::Leaves);
    // It is requested in time. A slow machine may have fetched another good response before.
    clock.stands_at(end_of_staple(&gateway) - 5);
    gateway.wait_for_metric(FETCHES, &["unreachable"], |count| count >= 1.0);
    let (end, fetched) = (end_of_staple(&gateway), gateway.metric(FETCHES, &["good"]));
    clock.stands_at(end - 1);
    serves_good(&gateway, ca);
    assert_eq!(missing(), 0.0);
    clock.stands_at(end + 1);
    serves_nothing(&gateway, ca);
    assert_eq!(missing(), 1.0, "{}", gateway.metrics());
    let told = "its OCSP response has expired, and clients reject this certificate without one";
    eventually("the end is not logged", || gateway.log().contains(told));
    responder.answers(240);
    // The next attempt is due at once. One that began before fails nevertheless, and delays the next by up to a minute of
    // the clock.
    eventually("no response is fetched again", || {
        let failures = gateway.metric(FETCHES, &["unreachable"]) as i64;
        clock.stands_at(end + 2 * 3600 + failures * 120);
        gateway.metric(FETCHES, &["good"]) > fetched
    });
    serves_good(&gateway, ca);
    assert_eq!(missing(), 0.0);
    assert_eq!(gateway.log().matches(told).count(), 1, "{}", gateway.log());
}

#[test]
fn a_response_that_has_expired_when_it_comes_is_not_stapled() {
    let responder = Responder::start();
    let ca = &responder.certificates;
    let pair = responder.issue("localhost", MUST_STAPLE);
    responder.answers(1);
    let file = configuration(&pair, "");
    let mut command = crate::support::process::serve_ahead(90, &ca.path(""));
    command.arg("--config").arg(file.path());
    let mut gateway = Gateway::start(command, 1);
    gateway.wait_for_metric(FETCHES, &["unusable"], |count| count >= 1.0);
    serves_nothing(&gateway, ca);
    gateway.wait_for_log("no OCSP response to staple");
    let log = gateway.log();
    assert!(log.contains("it has expired (nextUpdate)") && log.contains("clients reject this"), "{log}");
    assert_eq!(gateway.metric("quadrille_ocsp_must_staple_missing", &[]), 1.0);
}

/// Only the thread that queries a responder waits for it.
#[test]
fn a_responder_that_says_nothing_keeps_no_handshake_waiting() {
    let responder = Responder::start();
    let ca = &responder.certificates;
    let pair = responder.issue("localhost", "");
    responder.does(Does::Sleeps);
    let mut gateway = gateway(&pair);
    // The same query must be pending from before the first handshake until after the last. A slow machine needs a
    // later query for this.
    eventually("no handshake completes during the query", || {
        let under_way = || {
            let failed = gateway.metric(FETCHES, &[]);
            (responder.asked().len() as f64 == failed + 1.0).then_some(failed)
        };
        let before = under_way();
        before.is_some() && {
            serves_nothing(&gateway, ca);
            under_way() == before
        }
    });
    gateway.wait_for_metric(FETCHES, &["unreachable"], |count| count >= 1.0);
    gateway.wait_for_log("no response within 10 s");
}

#[test]
fn a_check_says_what_cannot_be_stapled() {
    let responder = Responder::start();
    let checked = |pair: &Pair, keys: &str| {
        let (ok, text) = output(quadrille("check").arg(configuration(pair, keys).path()));
        assert!(ok, "{text}");
        text
    };
    let on = "tls: {ocsp_stapling: on}";
    let good = responder.issue("localhost", MUST_STAPLE);
    assert!(!checked(&good, on).contains("warning"));
    let off = checked(&good, "tls: {ocsp_stapling: off}");
    assert!(
        off.contains(
            "warning: the certificate for localhost: clients reject it without an OCSP response (RFC 7633)"
        ),
        "{off}"
    );
    let without = responder.issue_with("without.test", MUST_STAPLE);
    assert!(checked(&without, "").contains("and it names no OCSP responder"));
    let plain = responder.issue_with("plain.test", "");
    assert!(!checked(&plain, on).contains("warning"), "the certificate has no responder, and needs none");
    let tls = responder.issue_with("tls.test", "authorityInfoAccess=OCSP;URI:https://ocsp.test/\n");
    assert!(checked(&tls, on).contains("`https://ocsp.test/` does not use http://"));
    let leaf = std::fs::read_to_string(&good.chain).expect("a chain");
    let leaf = leaf.split_inclusive("-----END CERTIFICATE-----\n").next().expect("a leaf");
    std::fs::write(&good.chain, leaf).expect("writing");
    let text = checked(&good, on);
    assert!(text.contains("its chain does not contain the issuer's certificate; append it"), "{text}");
    assert!(responder.asked().is_empty(), "a check sends no query");
}
