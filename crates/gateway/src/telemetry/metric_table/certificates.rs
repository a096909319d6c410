//! What certificates and upstreams count.

use super::metric::{Group, counter, gauge, histogram};

pub(super) const GROUP: Group = Group {
    heading: "Certificates and upstreams",
    metrics: &[
        gauge(
            "quadrille_certificate_not_after_seconds",
            &["listener", "name", "key_type"],
            "when the certificate expires, in seconds since 1970; `name` is its first",
        ),
        gauge(
            "quadrille_certificate_not_before_seconds",
            &["listener", "name", "key_type"],
            "since when the same certificate is valid, in seconds since 1970",
        ),
        gauge(
            "quadrille_acme_certificates",
            &["state"],
            "certificates that are ordered by ACME: `current`, `late` (less than a third of the life is left, and \
             none has taken its place) or `missing`",
        ),
        counter("quadrille_acme_orders_total", &["result"], "orders of certificates: `issued` or `failed`"),
        counter(
            "quadrille_acme_on_demand_total",
            &["result"],
            "names that clients asked for (`acme.on_demand`): `granted`, `denied`, `limited`, or `unreachable`",
        ),
        gauge(
            "quadrille_acme_fleet_reachable",
            &[],
            "1 while the fleet that shares certificates by Redis can be asked, else 0; absent without one",
        ),
        counter(
            "quadrille_acme_records_refused_total",
            &[],
            "records of shared certificates in Redis that this fleet has not sealed, or that are older than before",
        ),
        gauge(
            "quadrille_ocsp_staples",
            &["state"],
            "OCSP responses that are fetched, or needed: `valid`, `missing`, or of `revoked` certificates",
        ),
        gauge(
            "quadrille_ocsp_must_staple_missing",
            &[],
            "certificates that clients refuse, because they must be stapled (RFC 7633); absent without any",
        ),
        gauge(
            "quadrille_ocsp_staple_not_after_seconds",
            &["listener", "name", "key_type"],
            "when the OCSP response expires that is stapled, in seconds since 1970",
        ),
        counter(
            "quadrille_ocsp_fetches_total",
            &["result"],
            "what OCSP responders answered: `good`, `revoked`, `unusable`, or `unreachable` (nothing)",
        ),
        gauge(
            "quadrille_upstream_server_up",
            &["upstream", "server"],
            "1 if the server's health checks succeed and it is not left out for failures, else 0; only where there are health checks",
        ),
        histogram(
            "quadrille_upstream_seconds",
            &["upstream"],
            "seconds from asking a server to the header of its response, connecting included; the first 100 \
             upstreams are told apart, the rest is `other`",
        ),
        counter(
            "quadrille_upstream_overflow_total",
            &["upstream"],
            "requests, or connections in `tcp` mode, beyond the upstream's `limits`",
        ),
        counter(
            "quadrille_dns_lookups_total",
            &["result"],
            "lookups of servers' names: `ok`, or `failed`, after which a name keeps its addresses",
        ),
        counter(
            "quadrille_upstream_ejections_total",
            &["upstream"],
            "how often a server was left out for what became of its requests (`outlier_detection`)",
        ),
    ],
};
