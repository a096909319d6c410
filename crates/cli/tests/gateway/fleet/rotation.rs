//! Rotation of ticket keys under load.

use super::{Fleet, resumes_for};
use crate::support::{Way, eventually, throughout};
use std::time::Duration;

#[test]
fn keys_rotate_every_two_seconds_and_no_client_notices() {
    let fleet = Fleet::new(3, &["--ticket-rotation", "2s"]);
    for way in [Way::Tls13, Way::Ticket12] {
        let nine = Duration::from_secs(9);
        resumes_for(&fleet.addresses(), &fleet.client(way), nine, 0.98, &format!("{way:?}"));
    }
    eventually("a key is too old", || fleet.metric("quadrille_ticket_key_age_seconds", &[]) < 3.0 * 4.0);
}

#[test]
fn a_gateway_that_slept_for_two_rotations_recovers() {
    let fleet = Fleet::new(2, &["--ticket-rotation", "2s"]);
    let [awake, asleep] = fleet.addresses()[..] else { panic!("two gateways") };
    let (client, mut session) = (fleet.client(Way::Tls13), None);
    fleet.gateways[1].signal("STOP");
    throughout(Duration::from_secs(6), "a visit", || client.visit(awake, &mut session).is_ok());
    fleet.gateways[1].signal("CONT");
    // The first visit may be too early; it makes the gateway check the keys.
    eventually("the gateway does not know the keys", || {
        client.visit(awake, &mut session).expect("a visit");
        client.visit(asleep, &mut session).expect("a visit")
    });
    eventually("it does not know them all the time", || {
        (0..10).all(|_| {
            [awake, asleep].map(|one| client.visit(one, &mut session).expect("a visit")) == [true; 2]
        })
    });
}

#[test]
fn clocks_may_be_a_minute_apart() {
    let mut fleet = Fleet::new(1, &["--ticket-rotation", "6m"]);
    fleet.join_ahead(55, &["--ticket-rotation", "6m"]);
    let [right, ahead] = fleet.addresses()[..] else { panic!("two gateways") };
    for way in Way::ALL {
        let (client, mut session) = (fleet.client(way), None);
        client.visit(ahead, &mut session).expect("a first visit");
        if way == Way::Id12 {
            fleet.gateways[1]
                .wait_for_metric("quadrille_session_store_writes_total", &["ok"], |count| count >= 1.0);
        }
        for address in [right, ahead, right, right, ahead] {
            assert!(client.visit(address, &mut session).expect("a visit"), "{way:?}\n{}", fleet.logs());
        }
    }
    let future = fleet.metric("quadrille_resumption_misses_total", &["from_the_future"]);
    assert_eq!(future, 0.0, "{}", fleet.logs());
}

#[test]
fn without_redis_the_known_keys_go_on() {
    let mut fleet = Fleet::new(2, &["--ticket-rotation", "2s"]);
    let (client, addresses) = (fleet.client(Way::Tls13), fleet.addresses());
    fleet.wait_for_resumption(Way::Tls13, 0.98);
    fleet.redis.kill();
    resumes_for(&addresses, &client, Duration::from_secs(8), 0.98, "without Redis");
    fleet.redis.restart();
    for gateway in &mut fleet.gateways {
        gateway.wait_for_log("the fleet's ticket keys are in use again");
    }
    resumes_for(&addresses, &client, Duration::from_secs(4), 0.98, "with Redis again, empty");
}
