//! An authority that sends malformed responses, at each step of an order.

use crate::{
    authority::{leaf, shown, wait_for_certificate},
    impostor::{Impostor, Nonsense, Step},
    support::{Certificates, Gateway, eventually, quadrille, succeed},
};
use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    thread,
};

const NAME: &str = "a.example.com";
const FAILED: &str = "no certificate could be ordered";

fn body(text: &str) -> Nonsense {
    Nonsense::Body(text.as_bytes().to_vec())
}

/// Returns a certificate issued by the authority for this name with an unknown key, followed by this root.
fn foreign(authority: &Certificates, name: &str, root: &Path) -> String {
    let pair = authority.ecdsa("P-256", &[name]);
    fs::read_to_string(&pair.chain).expect("a leaf") + &fs::read_to_string(root).expect("a root")
}

/// Sends the right certificate followed by an unrelated one.
fn behind(other: &Path) -> Nonsense {
    Nonsense::Behind(fs::read(other).expect("a certificate"))
}

/// Malformed responses for each step, with the expected message for the user.
fn cases(impostor: &Impostor) -> Vec<(Step, Nonsense, &'static str)> {
    let no_json = || body("no JSON!!");
    let of_no_use = "invalid data from the certificate authority";
    let cut = "cannot reach the certificate authority";
    let (ca, other) = (&impostor.certificates, Certificates::new());
    let mut cases = vec![
        (Step::Nonce, Nonsense::Bare(200), of_no_use),
        (Step::Order, Nonsense::Bare(201), of_no_use),
        (
            Step::Order,
            body(r#"{"status":"invalid","identifiers":[],"authorizations":[],"finalize":""}"#),
            of_no_use,
        ),
        (Step::Authorization, body(r#"{"status":"valid"}"#), of_no_use),
        (Step::Certificate, body("no PEM"), "no certificate"),
        (
            Step::Certificate,
            body("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            of_no_use,
        ),
        (Step::Certificate, body(&foreign(ca, NAME, &ca.ca())), "is for another key"),
        (Step::Certificate, body(&foreign(ca, "b.example.com", &ca.ca())), "is for another key"),
        (Step::Certificate, behind(&other.ca()), "does not sign the one before it"),
        (Step::Certificate, Nonsense::Body(vec![b'x'; 3 << 20]), cut),
        (Step::Certificate, Nonsense::Bare(500), of_no_use),
    ];
    for step in [Step::Directory, Step::Order, Step::Authorization, Step::Finalize, Step::Poll] {
        cases.extend([
            (step, no_json(), of_no_use),
            (step, body("[]"), of_no_use),
            (step, body("{}"), of_no_use),
        ]);
        cases.push((step, Nonsense::Half, cut));
    }
    cases
}

/// Triggers an order, waits until it fails with this message, and returns the log line. An earlier order, such as the
/// automatic one after ten seconds, may fail differently.
fn order_fails(gateway: &Gateway, file: &Path, message: &str, what: &str) -> String {
    let failed = || gateway.metric("quadrille_acme_orders_total", &["failed"]);
    let (before, logged) = (failed(), gateway.log().len());
    let line = || {
        let log = gateway.log();
        let mut lines = log[logged..].lines();
        lines.find(|line| line.contains(FAILED) && line.contains(message)).map(str::to_owned)
    };
    succeed(quadrille("cert").args(["renew", NAME, "--config"]).arg(file));
    eventually(&format!("{what}: it does not fail with `{message}`"), || {
        failed() > before && line().is_some()
    });
    line().expect("a line of the log")
}

/// Runs cases in parallel: each order waits for the gateway's next check of due orders.
const GATEWAYS: usize = 4;

#[test]
fn malformed_data_at_any_step_is_logged_and_the_old_certificate_stays_in_use() {
    thread::scope(|scope| {
        let running = [0, 1, 2, 3].map(|index| scope.spawn(move || nonsense_at_every_step(index)));
        running.into_iter().for_each(|test| test.join().expect("a test"));
    });
}

/// Runs this gateway's share of the cases.
fn nonsense_at_every_step(index: usize) {
    let impostor = Impostor::start();
    let file = impostor.configuration(NAME);
    let gateway = Gateway::with_config(&file, 1);
    let ca = impostor.certificates.ca();
    let first = wait_for_certificate(&gateway, &ca, NAME, &[]);
    for (step, nonsense, message) in cases(&impostor).into_iter().skip(index).step_by(GATEWAYS) {
        let what = format!("{step:?}, {nonsense:.60?}");
        impostor.says(Some((step, nonsense)));
        let line = order_fails(&gateway, &file, message, &what);
        let again = line.split("again_in_s=").nth(1).and_then(|rest| rest.split_whitespace().next());
        let again: u32 =
            again.and_then(|seconds| seconds.parse().ok()).expect("the time of the next attempt");
        assert!(again >= 10, "{what}: {line}");
        let still = shown(gateway.address(0), &ca, NAME, &[]).expect(&what);
        assert_eq!(leaf(&still), leaf(&first), "{what}");
    }
    assert!(!gateway.log().contains("panicked"), "{}", gateway.log());
    impostor.says(None);
    succeed(quadrille("cert").args(["renew", NAME, "--config"]).arg(&file));
    eventually("a new one", || {
        shown(gateway.address(0), &ca, NAME, &[]).is_ok_and(|now| leaf(&now) != leaf(&first))
    });
}

/// The first order creates the account.
#[test]
fn malformed_account_data_is_logged_and_delays_the_certificate() {
    let impostor = Impostor::start();
    let file = impostor.configuration(NAME);
    let ca = impostor.certificates.ca();
    // Without the account's URL, which identifies it.
    impostor.says(Some((Step::Account, Nonsense::Bare(201))));
    let gateway = Gateway::with_config(&file, 1);
    eventually("it fails", || gateway.metric("quadrille_acme_orders_total", &["failed"]) >= 1.0);
    eventually("the failure is not logged", || gateway.log().contains("invalid data from"));
    impostor.says(Some((Step::Account, Nonsense::Half)));
    order_fails(&gateway, &file, "cannot reach", "half of an account");
    assert!(shown(gateway.address(0), &ca, NAME, &[]).is_err(), "there is no certificate");
    impostor.says(None);
    succeed(quadrille("cert").args(["renew", NAME, "--config"]).arg(&file));
    wait_for_certificate(&gateway, &ca, NAME, &[]);
}

/// The library fails after three rejected nonces in a row.
#[test]
fn what_was_issued_is_not_ordered_again_for_refused_nonces() {
    let refused_and_issued = |step, count| {
        let impostor = Impostor::start();
        let refused = Arc::new(AtomicU32::new(count));
        impostor.says(Some((step, Nonsense::RefusedNonces(Arc::clone(&refused)))));
        let gateway = Gateway::with_config(&impostor.configuration(NAME), 1);
        wait_for_certificate(&gateway, &impostor.certificates.ca(), NAME, &[]);
        assert_eq!(refused.load(Relaxed), 0, "{step:?}");
        assert!(!gateway.log().contains(FAILED), "{step:?}: {}", gateway.log());
    };
    refused_and_issued(Step::Certificate, 4);
    for step in [Step::Account, Step::Order, Step::Authorization, Step::Finalize] {
        refused_and_issued(step, 2);
    }
}
