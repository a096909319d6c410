//! Gateways that are killed while they wait for the authority's response.

use crate::{
    authority::{PATIENCE, wait_for_certificate},
    fleet::end_lease_soon,
    impostor::{Impostor, Nonsense, Step},
    support::{Gateway, Redis, eventually, quadrille, succeed},
};
use std::thread;

const NAME: &str = "a.example.com";

/// All steps of an order.
const STEPS: [Step; 8] = [
    Step::Directory,
    Step::Nonce,
    Step::Account,
    Step::Order,
    Step::Authorization,
    Step::Finalize,
    Step::Poll,
    Step::Certificate,
];

#[test]
fn a_gateway_that_is_killed_at_any_step_of_an_order_stops_no_other() {
    // The cases run in parallel: each mostly waits for processes.
    for steps in STEPS.chunks(4) {
        thread::scope(|scope| {
            let running: Vec<_> = steps.iter().map(|step| scope.spawn(|| killed_at(*step))).collect();
            running.into_iter().for_each(|test| test.join().expect("a test"));
        });
    }
}

fn killed_at(step: Step) {
    let (impostor, redis) = (Impostor::start(), Redis::start());
    let secret = impostor.certificates.path("fleet.secret");
    succeed(quadrille("tickets").arg("generate").arg(&secret));
    let resumption = format!(
        "resumption: {{ tickets: fleet, cache: \"{}\", fleet_secret: {} }}\n",
        redis.address(),
        secret.display()
    );
    let start = |index| Gateway::with_config(&impostor.member(NAME, index, &resumption), 1);
    // An existing account is not requested, and the status of an order that completes at once is not polled.
    impostor.says(Some((step, Nonsense::Silence)));
    let mut first = start(0);
    eventually(&format!("{step:?}: it orders"), || impostor.waiting() > 0);
    let second = start(1);
    eventually("the second one is in the fleet", || {
        second.metric("quadrille_acme_fleet_reachable", &[]) == 1.0
    });
    first.signal("KILL");
    first.wait(PATIENCE).expect("its end");
    impostor.says(None);
    end_lease_soon(&redis);
    wait_for_certificate(&second, &impostor.certificates.ca(), NAME, &[]);
    assert!(!second.log().contains("no certificate could be ordered"), "{step:?}: {}", second.log());
    // After a restart it has the other gateway's certificate, and orders nothing.
    drop(first);
    let again = start(0);
    wait_for_certificate(&again, &impostor.certificates.ca(), NAME, &[]);
    assert_eq!(again.metric("quadrille_acme_orders_total", &[]), 0.0, "{step:?}: {}", again.log());
}
