//! Failures of Redis: no handshake fails.

use super::{Fleet, LOOKUP_LIMIT, kinds::joined, resumes_for};
use crate::support::{Gateway, SlowProxy, Way, eventually};
use std::time::Duration;

const MOMENT: Duration = Duration::from_secs(1);

/// Lookup timeout for tests in which Redis is too slow.
const SHORT: [&str; 2] = [LOOKUP_LIMIT, "20ms"];

/// Overwrites all keys in Redis.
const GARBAGE: &str =
    "for _, name in ipairs(redis.call('KEYS', '*')) do redis.call('SET', name, 'garbage') end return 1";
/// Swaps the sessions of different owners.
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
    resumes_for(&fleet.addresses(), &fleet.client(Way::Id12), MOMENT, least, what);
}

/// Clients reconnect until both have occurred: a lookup timed out, and then lookups were suspended for a while.
fn until_suspended(fleet: &Fleet, what: &str) {
    let misses = |reason: &str| fleet.metric("quadrille_resumption_misses_total", &[reason]);
    eventually("the breaker stays closed", || {
        by_id(fleet, 0.2, what);
        misses("store_timeout") > 0.0 && misses("store_unavailable") > 0.0
    });
}

#[test]
fn redis_stops_stalls_and_recovers() {
    let mut fleet = Fleet::new(2, &SHORT);
    by_id(&fleet, 0.95, "at first");
    fleet.redis.kill();
    by_id(&fleet, 0.2, "stopped: sessions in this process are resumed");
    eventually("the store is not suspended", || {
        by_id(&fleet, 0.2, "still stopped");
        fleet.metric("quadrille_session_store_suspended", &[]) > 0.0
    });
    fleet.redis.restart();
    by_id(&fleet, 0.9, "restarted, empty");

    fleet.redis.signal("STOP");
    until_suspended(&fleet, "stalled");
    resumes_for(&fleet.addresses(), &fleet.client(Way::Tls13), MOMENT, 0.99, "tickets do not need Redis");
    fleet.redis.signal("CONT");
    by_id(&fleet, 0.9, "awake again");
    for line in ["the session store does not respond", "the session store responds again"] {
        eventually(line, || fleet.logs().contains(line));
    }
}

#[test]
fn a_slow_redis_costs_full_handshakes_and_little_time() {
    let mut fleet = Fleet::new(0, &[]);
    let slow = SlowProxy::before(([127, 0, 0, 1], fleet.redis.port()).into());
    fleet.address = format!("redis://{}", slow.address);
    (0..2).for_each(|_| fleet.join(&SHORT));
    by_id(&fleet, 0.9, "not slow yet");
    slow.delay(Duration::from_millis(60));
    until_suspended(&fleet, "60 ms late");
    slow.delay(Duration::ZERO);
    by_id(&fleet, 0.9, "fast again");
}

#[test]
fn what_others_wrote_into_redis_is_not_believed() {
    let fleet = Fleet::new(2, &[]);
    let [one, other] = fleet.addresses()[..] else { panic!("two gateways") };
    let client = fleet.client(Way::Id12);
    let rounds = [(SWAP, "swapped", 4.0), (TRUNCATE, "truncated", 8.0), (GARBAGE, "garbage", 12.0)];
    for (script, what, written) in rounds {
        let mut sessions = [const { None }; 4];
        for session in &mut sessions {
            client.visit(one, session).expect("a first visit");
        }
        let writes = "quadrille_session_store_writes_total";
        fleet.gateways[0].wait_for_metric(writes, &["ok"], |count| count >= written);
        let before = fleet.metric("quadrille_resumption_misses_total", &["damaged"]);
        fleet.redis.cli(&["eval", script, "0"]);
        for session in &mut sessions {
            let resumed = client.visit(other, session).expect("a full handshake");
            assert!(!resumed, "{what}");
        }
        assert!(fleet.metric("quadrille_resumption_misses_total", &["damaged"]) > before, "{what}");
    }
    // The key ring was overwritten too; the gateways agree on one again, and tickets never failed.
    resumes_for(&fleet.addresses(), &fleet.client(Way::Tls13), MOMENT, 0.99, "with garbage for a ring");
}

#[test]
fn a_wrong_password_is_named_and_costs_full_handshakes_only() {
    let fleet = Fleet::new(0, &[]);
    fleet.redis.cli(&["config", "set", "requirepass", "right"]);
    let (secret, redis) = (fleet.secret.to_str().expect("UTF-8"), fleet.redis.address());
    let wrong = redis.replace("redis://", "redis://:wrong@");
    let flags =
        ["--respond", "ok", "--session-tickets", "fleet", "--fleet-secret", secret, "--session-cache"];
    let mut gateway = Gateway::with_flags(&fleet.pair, &[&flags[..], &[&wrong]].concat());
    for way in Way::ALL {
        resumes_for(&[gateway.address(0)], &fleet.client(way), MOMENT, 0.9, &format!("{way:?}"));
    }
    gateway.wait_for_log("Password authentication failed");
    assert!(!gateway.log().contains(":wrong@"), "the password is in the log");

    let password = fleet.certificates.path("redis.password");
    std::fs::write(&password, "right\n").expect("writing");
    let flags = [&flags[..], &[&redis, "--redis-password", password.to_str().expect("UTF-8")]].concat();
    joined(&fleet.pair, &flags);
}

#[test]
fn a_gateway_starts_without_redis_and_joins_later() {
    let mut fleet = Fleet::new(1, &["--ticket-rotation", "2s"]);
    fleet.redis.kill();
    fleet.join(&["--ticket-rotation", "2s"]);
    resumes_for(&fleet.addresses()[1..], &fleet.client(Way::Tls13), MOMENT, 0.99, "alone");
    fleet.redis.restart();
    resumes_for(&fleet.addresses(), &fleet.client(Way::Tls13), MOMENT, 0.98, "together");
}
