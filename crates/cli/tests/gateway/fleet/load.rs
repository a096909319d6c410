//! Many returning connections behind a load balancer without affinity.

use super::{Fleet, return_until};
use crate::support::Way;
use std::time::Instant;

/// Connections of each kind, 100,000 in total.
fn visits() -> usize {
    std::env::var("QUADRILLE_RETURNING").ok().and_then(|text| text.parse().ok()).unwrap_or(33_334)
}

#[test]
fn sessions_made_on_one_gateway_are_resumed_on_all() {
    // Nothing is cached in the processes, so that each session id is queried from Redis.
    let fleet = Fleet::new(3, &["--session-cache-size", "0"]);
    let visits = visits();
    for way in Way::ALL {
        let began = Instant::now();
        let tally = return_until(&fleet.addresses(), &fleet.client(way), 8, |done| done >= visits);
        tally.expect(0.99, &format!("{way:?} in {:?}", began.elapsed()));
    }
    assert!(fleet.metric("quadrille_resumption_hits_total", &["ticket"]) >= 2.0 * 0.99 * visits as f64);
    assert!(fleet.metric("quadrille_resumption_hits_total", &["kind=\"id\""]) >= 0.99 * visits as f64);
    assert_eq!(fleet.metric("quadrille_resumption_misses_total", &["unknown_key"]), 0.0);
    assert!(fleet.metric("quadrille_session_store_writes_total", &["ok"]) >= 8.0);
    assert_eq!(fleet.metric("quadrille_session_store_writes_total", &["lost"]), 0.0);
    assert!(fleet.metric("quadrille_session_lookup_seconds_count", &["hit"]) >= 0.99 * visits as f64);
    for gateway in &fleet.gateways {
        assert!(gateway.metric("quadrille_ticket_key_age_seconds", &[]) < 600.0, "{}", gateway.metrics());
        assert!(gateway.metric("quadrille_ticket_key_next_rotation_seconds", &[]) > 11.0 * 3600.0);
        assert_eq!(gateway.metric("quadrille_ticket_keys", &[]), 2.0);
    }
}

#[test]
fn a_gateway_that_joins_accepts_the_fleets_sessions_at_once() {
    let mut fleet = Fleet::new(2, &[]);
    for way in Way::ALL {
        let (client, mut session) = (fleet.client(way), None);
        client.visit(fleet.addresses()[0], &mut session).expect("a first visit");
        fleet.join(&[]);
        let fresh = *fleet.addresses().last().expect("an address");
        assert!(client.visit(fresh, &mut session).expect("a visit"), "{way:?}\n{}", fleet.logs());
    }
}

#[test]
fn every_resumption_gives_a_new_ticket_and_one_only() {
    let fleet = Fleet::new(1, &[]);
    for way in [Way::Tls13, Way::Ticket12] {
        let (client, mut session) = (fleet.client(way), None);
        client.visit(fleet.addresses()[0], &mut session).expect("a first visit");
        for visit in 0..3 {
            assert!(client.visit(fleet.addresses()[0], &mut session).expect("a visit"));
            assert!(session.is_some(), "{way:?}: visit {visit} brought no ticket");
        }
    }
}
