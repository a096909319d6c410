//! Whatever Redis does, no handshake fails.

use super::{Fleet, return_for};
use crate::support::{Gateway, SlowProxy, Way};
use std::{thread::sleep, time::Duration};

const MOMENT: Duration = Duration::from_secs(2);

/// Overwrites everything that Redis has.
const GARBAGE: &str =
    "for _, name in ipairs(redis.call('KEYS', '*')) do redis.call('SET', name, 'garbage') end return 1";
/// Gives every session to the owner of another.
const SWAP: &str = "
    local names = redis.call('KEYS', '*session*')
    local first = redis.call('GET', names[1])
    for index = 1, #names - 1 do redis.call('SET', names[index], redis.call('GET', names[index + 1])) end
    redis.call('SET', names[#names], first)
    return #names";
const TRUNCATE: &str = "
    for _, name in ipairs(redis.call('KEYS', '*session*')) do
        redis.call('SET', name, string.sub(redis.call('GET', name), 1, 20))
    end return 1";

fn by_id(fleet: &Fleet, least: f64, what: &str) {
    let tally = return_for(&fleet.addresses(), &fleet.client(Way::Id12), MOMENT);
    tally.expect(least, what);
}

#[test]
fn redis_stops_stalls_and_comes_back() {
    let mut fleet = Fleet::new(2, &[]);
    by_id(&fleet, 0.95, "at first");
    fleet.redis.kill();
    by_id(&fleet, 0.2, "stopped: what is in this process is resumed");
    assert!(fleet.metric("quadrille_session_store_suspended", &[]) > 0.0, "{}", fleet.logs());
    fleet.redis.restart();
    fleet.wait_for_resumption(Way::Id12, 0.9);
    by_id(&fleet, 0.9, "restarted, empty");

    fleet.redis.signal("STOP");
    let stalled = return_for(&fleet.addresses(), &fleet.client(Way::Id12), MOMENT);
    stalled.expect(0.2, "stalled");
    assert!(fleet.metric("quadrille_resumption_misses_total", &["store_timeout"]) > 0.0);
    assert!(fleet.metric("quadrille_resumption_misses_total", &["store_unavailable"]) > 0.0, "the breaker");
    let tickets = return_for(&fleet.addresses(), &fleet.client(Way::Tls13), MOMENT);
    tickets.expect(0.99, "tickets do not need Redis");
    fleet.redis.signal("CONT");
    fleet.wait_for_resumption(Way::Id12, 0.9);
    by_id(&fleet, 0.9, "awake again");
    for line in ["the session store does not answer", "the session store answers again"] {
        assert!(fleet.logs().contains(line), "{line}\n{}", fleet.logs());
    }
}

#[test]
fn a_slow_redis_costs_full_handshakes_and_little_time() {
    let mut fleet = Fleet::new(0, &[]);
    let slow = SlowProxy::before(([127, 0, 0, 1], fleet.redis.port()).into());
    fleet.address = format!("redis://{}", slow.address);
    (0..2).for_each(|_| fleet.join(&[]));
    by_id(&fleet, 0.9, "not slow yet");
    slow.delay(Duration::from_millis(60));
    let late = return_for(&fleet.addresses(), &fleet.client(Way::Id12), MOMENT);
    late.expect(0.2, "60 ms late");
    assert!(fleet.metric("quadrille_resumption_misses_total", &["store_timeout"]) > 0.0);
    assert!(fleet.metric("quadrille_resumption_misses_total", &["store_unavailable"]) > 0.0, "the breaker");
    slow.delay(Duration::ZERO);
    fleet.wait_for_resumption(Way::Id12, 0.9);
    by_id(&fleet, 0.9, "fast again");
}

#[test]
fn what_others_wrote_into_redis_is_not_believed() {
    let fleet = Fleet::new(2, &[]);
    let [one, other] = fleet.addresses()[..] else { panic!("two gateways") };
    let client = fleet.client(Way::Id12);
    for (script, what) in [(SWAP, "swapped"), (TRUNCATE, "truncated"), (GARBAGE, "garbage")] {
        let mut sessions = [const { None }; 4];
        for session in &mut sessions {
            client.visit(one, session).expect("a first visit");
        }
        sleep(Duration::from_millis(300));
        let before = fleet.metric("quadrille_resumption_misses_total", &["damaged"]);
        fleet.redis.cli(&["eval", script, "0"]);
        for session in &mut sessions {
            let resumed = client.visit(other, session).expect("a full handshake");
            assert!(!resumed, "{what}");
        }
        assert!(fleet.metric("quadrille_resumption_misses_total", &["damaged"]) > before, "{what}");
    }
    // The ring was overwritten too; the gateways agree on one again, and tickets never failed.
    return_for(&fleet.addresses(), &fleet.client(Way::Tls13), MOMENT).expect(0.99, "with garbage for a ring");
}

#[test]
fn a_wrong_password_is_named_and_costs_full_handshakes_only() {
    let fleet = Fleet::new(0, &[]);
    fleet.redis.cli(&["config", "set", "requirepass", "right"]);
    let (secret, redis) = (fleet.secret.to_str().expect("UTF-8"), fleet.redis.address());
    let wrong = redis.replace("redis://", "redis://:wrong@");
    let flags =
        ["--respond", "ok", "--session-tickets", "fleet", "--fleet-secret", secret, "--session-cache"];
    let gateway = Gateway::with_flags(&fleet.pair, &[&flags[..], &[&wrong]].concat());
    for way in Way::ALL {
        return_for(&[gateway.address(0)], &fleet.client(way), MOMENT).expect(0.9, &format!("{way:?}"));
    }
    assert!(gateway.log().contains("Password authentication failed"), "{}", gateway.log());
    assert!(!gateway.log().contains(":wrong@"), "the password is in the log");

    let password = fleet.certificates.path("redis.password");
    std::fs::write(&password, "right\n").expect("writing");
    let flags = [&flags[..], &[&redis, "--redis-password", password.to_str().expect("UTF-8")]].concat();
    let gateway = Gateway::with_flags(&fleet.pair, &flags);
    assert!(gateway.log().contains("joined the fleet"), "{}", gateway.log());
}

#[test]
fn a_gateway_starts_without_redis_and_joins_later() {
    let mut fleet = Fleet::new(1, &["--ticket-rotation", "2s"]);
    fleet.redis.kill();
    fleet.join(&["--ticket-rotation", "2s"]);
    return_for(&fleet.addresses()[1..], &fleet.client(Way::Tls13), MOMENT).expect(0.99, "alone");
    fleet.redis.restart();
    fleet.wait_for_resumption(Way::Tls13, 0.98);
    return_for(&fleet.addresses(), &fleet.client(Way::Tls13), MOMENT).expect(0.98, "together");
}
