//! Metrics of certificates and upstreams.

use super::metric::{Group, counter, gauge, histogram};

pub(super) const GROUP: Group = Group {
    heading: "Certificates and upstreams",
    metrics: &[
        gauge(
            "quadrille_certificate_not_after_seconds",
            &["listener", "name", "key_type"],
            "expiry time of the certificate in seconds since the Unix epoch; `name` is its first name",
        ),
        gauge(
            "quadrille_certificate_not_before_seconds",
            &["listener", "name", "key_type"],
            "start of the certificate's validity in seconds since the Unix epoch",
        ),
        counter(
            "quadrille_certificate_compression_bytes_total",
            &["algorithm", "side"],
            "bytes of certificate messages `before` and `after` compression (RFC 8879), in handshakes that compress \
             them; the difference is what it saves",
        ),
        gauge(
            "quadrille_acme_certificates",
            &["state"],
            "certificates ordered by ACME: `current`, `late` (less than a third of the lifetime is left, and \
             no renewal was issued) or `missing`",
        ),
        counter("quadrille_acme_orders_total", &["result"], "certificate orders: `issued` or `failed`"),
        counter(
            "quadrille_acme_on_demand_total",
            &["result"],
            "names that clients requested (`acme.on_demand`): `granted`, `denied`, `limited`, or \
             `unreachable`",
        ),
        gauge(
            "quadrille_acme_fleet_reachable",
            &[],
            "1 while the Redis with the fleet's certificates is reachable, else 0; absent without a fleet",
        ),
        counter(
            "quadrille_acme_records_refused_total",
            &[],
            "rejected records of shared certificates in Redis: not sealed by this fleet, or older than \
             before",
        ),
        gauge(
            "quadrille_ocsp_staples",
            &["state"],
            "OCSP responses that are fetched, or required: `valid`, `missing`, or of `revoked` certificates",
        ),
        gauge(
            "quadrille_ocsp_must_staple_missing",
            &[],
            "certificates that clients reject, because the required staple (RFC 7633) is missing; absent \
             without any",
        ),
        gauge(
            "quadrille_ocsp_staple_not_after_seconds",
            &["listener", "name", "key_type"],
            "expiry time of the stapled OCSP response in seconds since the Unix epoch",
        ),
        gauge(
            "quadrille_crl_next_update_seconds",
            &["file", "name"],
            "expiry time of a certificate revocation list in seconds since the Unix epoch; `name` is its issuer",
        ),
        gauge(
            "quadrille_ca_not_after_seconds",
            &["file", "name"],
            "expiry time of a CA certificate that verifies clients or servers, in seconds since the Unix epoch; not of \
             files with more than 32",
        ),
        counter(
            "quadrille_ocsp_fetches_total",
            &["result"],
            "responses of OCSP responders: `good`, `revoked`, `unusable`, or `unreachable` (no response)",
        ),
        gauge(
            "quadrille_upstream_server_up",
            &["upstream", "server"],
            "1 if the endpoint's health checks succeed and it is not ejected, else 0; only with health \
             checks",
        ),
        gauge(
            "quadrille_upstream_server_ejected",
            &["upstream", "server"],
            "1 if the endpoint is ejected because requests to it failed, else 0; only with `outlier_detection`",
        ),
        gauge(
            "quadrille_upstream_server_draining",
            &["upstream", "server"],
            "1 for an endpoint that an operator has taken out of service",
        ),
        counter(
            "quadrille_upstream_requests_total",
            &["upstream", "status"],
            "requests by status class (`2xx`) of the response that the client received; `none` without a response",
        ),
        gauge(
            "quadrille_upstream_active_requests",
            &["upstream"],
            "requests in progress, or open connections in `tcp` mode",
        ),
        counter("quadrille_upstream_retries_total", &["upstream"], "attempts after the first"),
        counter(
            "quadrille_upstream_connect_failures_total",
            &["upstream"],
            "connections to endpoints that could not be established",
        ),
        counter("quadrille_upstream_timeouts_total", &["upstream"], "attempts that timed out"),
        counter("quadrille_upstream_no_server_total", &["upstream"], "requests without a healthy endpoint"),
        histogram(
            "quadrille_upstream_seconds",
            &["upstream"],
            "seconds from the request to an endpoint to its response header, including the connection setup; \
             the first 100 upstreams have their own label, all others are `other`",
        ),
        counter(
            "quadrille_upstream_overflow_total",
            &["upstream"],
            "requests, or connections in `tcp` mode, that exceed the upstream's `limits`",
        ),
        counter(
            "quadrille_dns_lookups_total",
            &["result"],
            "DNS lookups of endpoint names: `ok`, or `failed`, after which a name keeps its addresses",
        ),
        counter(
            "quadrille_upstream_ejections_total",
            &["upstream"],
            "ejections of endpoints (`outlier_detection`)",
        ),
    ],
};
