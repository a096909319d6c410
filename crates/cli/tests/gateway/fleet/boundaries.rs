//! Sessions that must not be resumed: modified tickets, sessions of another site, other clients' rights.

use super::Fleet;
use crate::support::{
    Certificates, Configuration, Gateway, Nginx, Returning, Way, document, listener, quadrille, succeed,
};
use boring::ssl::SslSession;
use foreign_types::ForeignTypeRef;

/// A modification of a ticket.
type Damage = Box<dyn Fn(&mut Vec<u8>)>;

/// Returns a session with these bytes in place of its ticket.
fn with_ticket(session: &SslSession, change: impl Fn(&mut Vec<u8>)) -> SslSession {
    let copy = SslSession::from_der(&session.to_der().expect("DER")).expect("a session");
    // SAFETY: both sessions are live; the ticket is copied in both directions.
    unsafe {
        let (mut ticket, mut length) = (std::ptr::null(), 0);
        boring_sys::SSL_SESSION_get0_ticket(copy.as_ptr(), &raw mut ticket, &raw mut length);
        let mut ticket = std::slice::from_raw_parts(ticket, length).to_vec();
        change(&mut ticket);
        assert_eq!(boring_sys::SSL_SESSION_set_ticket(copy.as_ptr(), ticket.as_ptr(), ticket.len()), 1);
    }
    copy
}

#[test]
fn damaged_tickets_give_full_handshakes() {
    let fleet = Fleet::new(1, &[]);
    let address = fleet.addresses()[0];
    for way in [Way::Tls13, Way::Ticket12] {
        let client = fleet.client(way);
        let mut session = None;
        client.visit(address, &mut session).expect("a first visit");
        let good = session.expect("a ticket");
        let mut damages: Vec<Damage> = Vec::new();
        for at in [16, 40, 100] {
            damages.push(Box::new(move |ticket| ticket[at] ^= 1));
        }
        for length in [1, 15, 16, 31, 48, 100] {
            damages.push(Box::new(move |ticket| ticket.truncate(length)));
        }
        damages.push(Box::new(|ticket| *ticket.last_mut().expect("a byte") ^= 0x80));
        damages.push(Box::new(|ticket| ticket.extend([0; 3])));
        damages.push(Box::new(|ticket| ticket[0] ^= 1));
        let count = damages.len();
        for (index, damage) in damages.iter().enumerate() {
            let mut session = Some(with_ticket(&good, damage));
            let resumed = client
                .visit(address, &mut session)
                .unwrap_or_else(|error| panic!("{way:?} {index}: {error}"));
            assert!(!resumed, "{way:?}: damage {index}");
        }
        let misses = |reason: &str| fleet.metric("quadrille_resumption_misses_total", &[reason]);
        assert!(misses("damaged") >= (count - 2) as f64, "{}", fleet.gateways[0].metrics());
        assert!(misses("unknown_key") >= 1.0);
        let resumed = client.visit(address, &mut Some(with_ticket(&good, |_| {})));
        assert!(resumed.expect("a visit"), "{way:?}: the unmodified ticket is resumed");
    }
}

#[test]
fn tickets_and_sessions_of_strangers_give_full_handshakes() {
    let (fleet, stranger) = (Fleet::new(1, &[]), Fleet::new(1, &[]));
    for way in Way::ALL {
        let mut session = None;
        stranger.client(way).visit(stranger.addresses()[0], &mut session).expect("a first visit");
        // The same bytes in a client that trusts the other CA.
        assert!(!fleet.client(way).visit(fleet.addresses()[0], &mut session).expect("a visit"), "{way:?}");
    }
    let misses = |reason: &str| fleet.metric("quadrille_resumption_misses_total", &[reason]);
    assert_eq!((misses("unknown_key"), misses("store_miss")), (2.0, 1.0));
}

#[test]
fn sessions_do_not_cross_sites() {
    let certificates = Certificates::new();
    let (a, b) = (certificates.ecdsa("P-256", &["a.example"]), certificates.ecdsa("P-256", &["b.example"]));
    let gateway = Gateway::with_flags(
        &a,
        &["--respond", "ok", "--cert", b.chain.to_str().unwrap(), "--key", b.key.to_str().unwrap()],
    );
    let address = gateway.address(0);
    for way in Way::ALL {
        let client = Returning::new(&certificates, way);
        let mut session = None;
        client.visit_as("a.example", address, &mut session).expect("a first visit");
        assert!(!client.visit_as("b.example", address, &mut session).expect("a full handshake"), "{way:?}");
        assert!(client.visit_as("b.example", address, &mut session).expect("a visit"), "{way:?}: its own");
    }
    assert_eq!(
        gateway.metric("quadrille_resumption_misses_total", &["other_context"]),
        3.0,
        "{}",
        gateway.metrics()
    );
}

#[test]
fn sessions_do_not_bring_a_client_past_the_question_for_its_certificate() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let ca = certificates.ca();
    let open = listener(&pair, "respond: ok");
    let closed = |mode: &str| {
        listener(&pair, &format!("respond: ok, tls: {{client_auth: {{mode: {mode}, ca: {}}}}}", ca.display()))
    };
    let file = Configuration::new(&document(&[open, closed("required"), closed("optional")], ""));
    let gateway = Gateway::with_config(&file.path(), 3);
    let other = certificates.ecdsa("P-256", &["client"]);
    for way in Way::ALL {
        let without = Returning::new(&certificates, way);
        for from in [0, 2] {
            let mut session = None;
            without.visit(gateway.address(from), &mut session).expect("no certificate is requested");
            let refused = without.visit(gateway.address(1), &mut session);
            assert!(
                refused.is_err(),
                "{way:?}: accepted without a certificate, by a session of listener {from}"
            );
        }
        let with = Returning::with_certificate(&certificates, way, &other);
        let mut session = None;
        with.visit(gateway.address(1), &mut session).expect("with a certificate");
        assert!(with.visit(gateway.address(1), &mut session).expect("again"), "{way:?}");
        assert!(!with.visit(gateway.address(2), &mut session).expect("elsewhere"), "{way:?}");
    }
}

/// Both read the same key file and can decrypt each other's tickets; the content is bound to its issuer.
#[test]
fn nginx_with_the_same_key_and_a_gateway_give_each_others_clients_full_handshakes() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let key = certificates.path("ticket.key");
    succeed(quadrille("tickets").arg("generate").arg(&key));
    let shared = key.to_str().expect("UTF-8");
    let gateway = Gateway::with_flags(&pair, &["--respond", "ok", "--session-tickets", shared]);
    let nginx = Nginx::listening(
        "ssl",
        &format!(
            "ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.2 TLSv1.3;
             ssl_session_ticket_key {shared}; return 200 ok;",
            pair.chain.display(),
            pair.key.display()
        ),
    );
    let theirs = nginx.address();
    for way in [Way::Ticket12, Way::Tls13] {
        for (from, to) in [(theirs, gateway.address(0)), (gateway.address(0), theirs)] {
            let (client, mut session) = (Returning::new(&certificates, way), None);
            client.visit(from, &mut session).expect("a first visit");
            // nginx does not renew tickets of TLS 1.3.
            let mut abroad = session.clone();
            assert!(client.visit(from, &mut session).expect("a visit"), "{way:?}: at home");
            assert!(!client.visit(to, &mut abroad).expect("a full handshake"), "{way:?}");
        }
    }
    let misses = |reason: &str| gateway.metric("quadrille_resumption_misses_total", &[reason]);
    assert_eq!(misses("unknown_key"), 0.0, "the key is known\n{}", gateway.metrics());
    assert_eq!(misses("kind=\"ticket\""), 2.0, "{}", gateway.metrics());
}
