//! Ticket keys that rotate while clients come and go.

use super::{Fleet, return_for};
use crate::support::Way;
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

#[test]
fn keys_rotate_every_two_seconds_and_nobody_notices() {
    let fleet = Fleet::new(3, &["--ticket-rotation", "2s"]);
    for way in [Way::Tls13, Way::Ticket12] {
        let tally = return_for(&fleet.addresses(), &fleet.client(way), Duration::from_secs(9));
        tally.expect(0.98, &format!("{way:?}"));
    }
    assert!(fleet.metric("quadrille_ticket_key_age_seconds", &[]) < 3.0 * 4.0, "{}", fleet.logs());
}

#[test]
fn a_gateway_that_slept_for_two_rotations_recovers() {
    let fleet = Fleet::new(2, &["--ticket-rotation", "2s"]);
    let [awake, asleep] = fleet.addresses()[..] else { panic!("two gateways") };
    let (client, mut session) = (fleet.client(Way::Tls13), None);
    fleet.gateways[1].signal("STOP");
    let end = Instant::now() + Duration::from_secs(6);
    while Instant::now() < end {
        client.visit(awake, &mut session).expect("a visit");
        sleep(Duration::from_millis(200));
    }
    fleet.gateways[1].signal("CONT");
    let woken = Instant::now();
    // The first may come too early; it is what makes the gateway look.
    while !client.visit(asleep, &mut session).expect("a visit") {
        client.visit(awake, &mut session).expect("a visit");
        sleep(Duration::from_millis(50));
        assert!(woken.elapsed() < Duration::from_secs(30), "{}", fleet.logs());
    }
    for _ in 0..10 {
        for address in [awake, asleep] {
            assert!(client.visit(address, &mut session).expect("a visit"));
        }
    }
}

#[test]
fn clocks_may_be_a_minute_apart() {
    let mut fleet = Fleet::new(1, &["--ticket-rotation", "6m"]);
    fleet.join_ahead(55, &["--ticket-rotation", "6m"]);
    let [right, ahead] = fleet.addresses()[..] else { panic!("two gateways") };
    for way in Way::ALL {
        let (client, mut session) = (fleet.client(way), None);
        client.visit(ahead, &mut session).expect("a first visit");
        for address in [right, ahead, right, right, ahead] {
            // A session by id must have been written first.
            sleep(Duration::from_millis(100));
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
    return_for(&addresses, &client, Duration::from_secs(8)).expect(0.98, "without Redis");
    fleet.redis.restart();
    for gateway in &mut fleet.gateways {
        gateway.wait_for_log("the fleet's ticket keys are in use again");
    }
    return_for(&addresses, &client, Duration::from_secs(4)).expect(0.98, "with Redis again, empty");
}
