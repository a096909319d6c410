//! Resumption: tickets, session ids, and disabled resumption.

use crate::support::{Certificates, Gateway, Seen, s_client};

struct Returning<'a> {
    gateway: &'a Gateway,
    certificates: &'a Certificates,
}

impl Returning<'_> {
    /// Connects, and connects again with the first session.
    #[track_caller]
    fn twice(&self, arguments: &[&str]) -> Seen {
        let session = self.certificates.path("session.pem");
        let _ = std::fs::remove_file(&session);
        let file = session.to_str().expect("a UTF-8 path").to_owned();
        let connect = |more: &[&str]| {
            let arguments = [arguments, more].concat();
            s_client(self.gateway.address(0), &self.certificates.ca(), &arguments)
                .expect(&arguments.join(" "))
        };
        assert!(!connect(&["-sess_out", &file]).resumed());
        // Without a session, OpenSSL writes no file, and there is nothing to resume.
        if session.exists() { connect(&["-sess_in", &file]) } else { connect(&[]) }
    }
}

#[test]
fn clients_resume_by_ticket_and_by_session_id() {
    let certificates = Certificates::new();
    let gateway = Gateway::with_flags(
        &certificates.rsa(2048, &["localhost"]),
        &["--respond", "ok", "--tls-min", "1.0"],
    );
    let returning = Returning { gateway: &gateway, certificates: &certificates };
    for arguments in [
        &["-tls1_3"][..],
        &["-tls1_2"],
        &["-tls1_2", "-no_ticket"],
        &["-tls1", "-no_ticket"],
        &["-tls1_3", "-groups", "P-384"],
    ] {
        assert!(returning.twice(arguments).resumed(), "{arguments:?}");
    }
    let handshakes = |labels: &[&str]| gateway.metric("quadrille_handshakes_total", labels);
    assert_eq!(handshakes(&["full", "rsa2048"]), 5.0, "{}", gateway.metrics());
    assert_eq!(handshakes(&["resumed", "key_type=\"none\""]), 5.0, "{}", gateway.metrics());
    assert_eq!(gateway.metric("quadrille_key_operations_total", &[]), 5.0, "no key operation when resuming");
    assert_eq!(gateway.metric("quadrille_handshake_seconds_count", &["resumed"]), 5.0);
}

#[test]
fn without_tickets_only_session_ids_resume() {
    let certificates = Certificates::new();
    let flags = ["--respond", "ok", "--session-tickets", "off"];
    let gateway = Gateway::with_flags(&certificates.ecdsa("P-256", &["localhost"]), &flags);
    let returning = Returning { gateway: &gateway, certificates: &certificates };
    assert!(!returning.twice(&["-tls1_3"]).resumed(), "TLS 1.3 has only tickets");
    let seen = returning.twice(&["-tls1_2"]);
    assert!(seen.resumed(), "by session id");
    assert!(!seen.text.contains("TLS session ticket:"), "{}", seen.text);
}

#[test]
fn without_the_cache_only_tickets_resume() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = Gateway::with_flags(&pair, &["--respond", "ok", "--session-cache", "off"]);
    let returning = Returning { gateway: &gateway, certificates: &certificates };
    assert!(!returning.twice(&["-tls1_2", "-no_ticket"]).resumed());
    assert!(returning.twice(&["-tls1_2"]).resumed(), "by ticket");
    assert!(returning.twice(&["-tls1_3"]).resumed(), "by ticket");
}

#[test]
fn with_both_off_every_handshake_is_full() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let flags = ["--respond", "ok", "--session-cache", "off", "--session-tickets", "off"];
    let gateway = Gateway::with_flags(&pair, &flags);
    let returning = Returning { gateway: &gateway, certificates: &certificates };
    for arguments in [&["-tls1_3"][..], &["-tls1_2"], &["-tls1_2", "-no_ticket"]] {
        assert!(!returning.twice(arguments).resumed(), "{arguments:?}");
    }
    assert_eq!(gateway.metric("quadrille_handshakes_total", &["full"]), 6.0, "{}", gateway.metrics());
    assert_eq!(gateway.metric("quadrille_key_operations_total", &["ok"]), 6.0);
}
