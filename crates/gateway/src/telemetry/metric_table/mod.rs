//! Table of all metrics of gateways and key servers, from which the help on `/metrics` and the tables of
//! `docs/reference/metrics.md` are generated. To update the page after a change, run
//! `QUADRILLE_BLESS=1 cargo test -p quadrille-gateway metric_table`.
//!
//! Metrics of control planes are described where they are counted, in the control-plane crate.

mod certificates;
mod memory;
mod metric;

use metric::{Group, Metric, MetricType, counter, gauge, histogram};
use metrics::{describe_counter, describe_gauge, describe_histogram};

/// Registers the help of every metric with the recorder.
pub(crate) fn describe() {
    for Metric { kind, name, help, .. } in GROUPS.iter().flat_map(|group| group.metrics) {
        match kind {
            MetricType::Counter => describe_counter!(*name, *help),
            MetricType::Gauge => describe_gauge!(*name, *help),
            MetricType::Histogram => describe_histogram!(*name, *help),
        }
    }
}

const GROUPS: &[Group] = &[
    Group {
        heading: "The process",
        metrics: &[
            gauge(
                "process_start_time_seconds",
                &[],
                "start time of the process in seconds since the Unix epoch",
            ),
            gauge("quadrille_build_info", &["version"], "always 1"),
            counter(
                "quadrille_reloads_total",
                &["result"],
                "configuration reloads; at a key server, reloads of keys, policy and certificates; `ok` or \
                 `failed`",
            ),
        ],
    },
    Group {
        heading: "Connections and handshakes",
        metrics: &[
            gauge("quadrille_connections", &[], "open client connections"),
            counter("quadrille_connections_total", &[], "accepted client connections"),
            counter(
                "quadrille_accept_pauses_total",
                &[],
                "times that an event loop stopped accepting connections because file descriptors ran short",
            ),
            counter(
                "quadrille_idle_connections_closed_total",
                &[],
                "idle client connections closed, oldest first, because file descriptors or memory ran short, or \
                 `limits.connections` was reached",
            ),
            counter(
                "quadrille_access_denied_total",
                &["what"],
                "denied by access rules: a `connection`, closed after its handshake; a `request`, with 403; \
                 a `token`, with 401 or 403; a `password`, with 401, 429 (too many failures) or 503 (no \
                 thread to hash it); `asked`, by an authorization server, with the status that it returns",
            ),
            counter(
                "quadrille_token_keys_fetches_total",
                &["result"],
                "attempts to fetch the keys of token issuers: `fetched` or `failed`",
            ),
            counter(
                "quadrille_spans_total",
                &["result"],
                "spans of traced requests: `sent` to the collector, `failed` to be sent, or `dropped` \
                 because the queue was full",
            ),
            counter(
                "quadrille_compression_bytes_total",
                &["coding", "side"],
                "bytes of upstream responses `before` and `after` compression by `coding`",
            ),
            counter(
                "quadrille_rate_limited_total",
                &["limit", "by", "result"],
                "requests over a rate limit: `limit` is the listener's address, with the route's host and \
                 path for a limit of a route, or the domain of a rate limit service; `by` is `client`, \
                 `header`, `all`, `descriptor` or `service`; `result` is `refused`, `let_through` if the \
                 limit is not enforced, or `unanswered` if the service did not respond",
            ),
            counter(
                "quadrille_handshakes_total",
                &["version", "cipher", "key_type", "session"],
                "successful handshakes; `session` is `full` or `resumed`, `key_type` is `none` without a \
                 private-key operation",
            ),
            counter(
                "quadrille_handshake_failures_total",
                &["reason"],
                "failed handshakes: `tls`, `closed` (by the client), `timeout`, `not_tls`, `plain_http`, \
                 `proxy_header`, `too_many_handshakes`, `too_many_connections` (of a client), \
                 `evicted` (silent, while a newcomer needed its place), `no_chain` (no filter chain matches), `unknown_name` (no certificate for it), \
                 `no_common_protocol` (of ALPN), `shed` (key \
                 queue full), `refused` (see `quadrille_handshakes_refused_total`), `key` (operation \
                 failed), `key_server` (no result from key servers)",
            ),
            counter(
                "quadrille_handshakes_refused_total",
                &["reason"],
                "handshakes rejected before any computation, because there were more than can be completed \
                 in time (`handshake_deadline`): `deadline` (it would have been late), `overload`, \
                 `client_share` and `name_share` (its network or its name exceeds its share); also failures, \
                 as `refused`",
            ),
            gauge("quadrille_overloaded", &[], "1 during overload, while handshakes may be rejected, else 0"),
            gauge(
                "quadrille_networks_shut_out",
                &[],
                "networks that flood during overload, so that the kernel drops most of their connections \
                 before they are accepted; these are not counted",
            ),
            gauge(
                "quadrille_event_loop_delay_seconds",
                &[],
                "time that a ready connection waits to be processed, on the slowest event loop",
            ),
            histogram(
                "quadrille_handshake_seconds",
                &["session"],
                "seconds from accept to the end of the handshake",
            ),
            counter(
                "quadrille_handshake_samples_total",
                &["session", "version", "sni"],
                "handshakes whose CPU time was measured (`sampling`)",
            ),
            counter(
                "quadrille_handshake_cpu_nanoseconds_total",
                &["stage", "session", "version", "sni"],
                "CPU time of these handshakes in nanoseconds, by stage",
            ),
            counter(
                "quadrille_requests_total",
                &["status"],
                "HTTP requests by status class (`2xx`); `none` without a response",
            ),
            counter(
                "quadrille_requests_mirrored_total",
                &["result"],
                "copies of requests for a route's mirrors: `answered`, `failed`, or `dropped` because too \
                 many were in progress",
            ),
        ],
    },
    memory::GROUP,
    Group {
        heading: "QUIC",
        metrics: &[
            counter(
                "quadrille_quic_handshakes_total",
                &[],
                "completed QUIC handshakes; also counted in `quadrille_handshakes_total`",
            ),
            counter(
                "quadrille_quic_retries_total",
                &[],
                "Retry packets sent to validate the addresses of new clients, because many were not \
                 validated",
            ),
            counter("quadrille_quic_version_negotiations_total", &[], "Version Negotiation packets sent"),
            counter(
                "quadrille_quic_stateless_resets_total",
                &[],
                "stateless resets sent for unknown connections, such as those before a restart",
            ),
            counter(
                "quadrille_quic_datagrams_handed_over_total",
                &[],
                "datagrams received by an event loop other than the connection's, because the client has \
                 migrated",
            ),
            counter(
                "quadrille_quic_datagrams_dropped_total",
                &["reason"],
                "dropped datagrams: `malformed`, `unknown_connection`, `small` (an Initial of less than 1200 \
                 bytes), `limit`, `closing`, or `too_many` in transit to another event loop",
            ),
        ],
    },
    Group {
        heading: "Private-key operations",
        metrics: &[
            counter(
                "quadrille_key_operations_total",
                &["key_type", "backend", "result"],
                "operations: `ok`, `failed`, or `recomputed`: a wrong or missing result, computed again \
                 (also counted as `ok` or `failed`)",
            ),
            histogram(
                "quadrille_key_operation_seconds",
                &["key_type", "backend"],
                "seconds to compute one batch",
            ),
            counter(
                "quadrille_key_cpu_nanoseconds_total",
                &["key_type", "backend"],
                "CPU time spent on operations in nanoseconds",
            ),
            counter(
                "quadrille_key_cpu_saved_nanoseconds_total",
                &["key_type", "backend"],
                "CPU time in nanoseconds that batching has saved: the cost of separate operations, as \
                 measured at start, less the actual cost; 0 where that is not measured (all but RSA in \
                 lanes)",
            ),
            gauge(
                "quadrille_key_wait_expected_seconds",
                &[],
                "expected queueing time of a new operation in seconds",
            ),
            histogram(
                "quadrille_key_wait_seconds",
                &["key_type"],
                "queueing time of the first operation of a batch in seconds",
            ),
            histogram("quadrille_key_batch_size", &["key_type", "backend"], "operations per batch"),
            gauge(
                "quadrille_key_batch_width",
                &["key_type", "backend"],
                "operations that the backend computes at the cost of one",
            ),
            gauge(
                "quadrille_key_batch_crossover",
                &["key_type", "backend"],
                "smallest batch for which the backend is cheaper than scalar code, measured at start",
            ),
            gauge(
                "quadrille_gpu_in_use",
                &["device"],
                "1 while a GPU computes operations that exceed the CPU's capacity (as backend `cuda`), 0 \
                 after it was lost; absent without a GPU",
            ),
            counter(
                "quadrille_key_shed_total",
                &["key_type"],
                "operations rejected because the queue was full",
            ),
            counter(
                "quadrille_key_withdrawn_total",
                &["key_type"],
                "operations cancelled because the client had disconnected",
            ),
            gauge("quadrille_key_queue_depth", &["key_type"], "queued operations"),
            gauge(
                "quadrille_key_queue_oldest_seconds",
                &["key_type"],
                "age of the oldest queued operation in seconds",
            ),
        ],
    },
    Group {
        heading: "Key exchange",
        metrics: &[
            counter(
                "quadrille_handshake_key_exchanges_total",
                &["group", "by"],
                "handshakes with a key exchange, by group (`x25519mlkem768`, `x25519`, `p256`, `p384`, \
                 `p521`) and by implementation of the server's part: `engine` or `boringssl`",
            ),
            counter(
                "quadrille_key_exchange_operations_total",
                &["operation", "backend", "result"],
                "operations of the engine: `x25519` and `p256` (shared secrets), `x25519-key-pair`, \
                 `p256-key-pair`, `ml-kem-768` (an encapsulation); `failed` counts invalid key shares of \
                 clients",
            ),
            histogram(
                "quadrille_key_exchange_seconds",
                &["operation", "backend"],
                "seconds to compute the operations of one pass",
            ),
            histogram(
                "quadrille_key_exchange_wait_seconds",
                &["operation"],
                "seconds that the first key share of a batch had waited for the end of its event loop's turn",
            ),
            histogram("quadrille_key_exchange_batch_size", &["operation", "backend"], "operations per batch"),
        ],
    },
    Group {
        heading: "Session resumption",
        metrics: &[
            counter(
                "quadrille_resumption_offered_total",
                &["kind"],
                "handshakes in which the client offered a session: `ticket` or `id`",
            ),
            counter(
                "quadrille_resumption_hits_total",
                &["kind"],
                "handshakes that resumed the offered session",
            ),
            counter(
                "quadrille_resumption_misses_total",
                &["kind", "reason"],
                "handshakes that did not resume the offered session: `unknown_key`, `expired`, \
                 `from_the_future` (another gateway's clock is ahead), `other_context` (SNI, certificate, \
                 client authentication), `other_parameters` (version, cipher suite), `damaged`, \
                 `store_miss`, `store_timeout`, `store_unavailable`",
            ),
            counter(
                "quadrille_early_data_total",
                &["result"],
                "handshakes with early data (0-RTT): `accepted` or `refused`",
            ),
            histogram(
                "quadrille_session_lookup_seconds",
                &["result"],
                "seconds to look up a session by its id: `hit`, or the reason for a miss",
            ),
            gauge("quadrille_session_store_sessions", &[], "sessions by id stored in this process"),
            gauge(
                "quadrille_session_store_suspended",
                &[],
                "1 while Redis is not queried because it does not respond",
            ),
            counter(
                "quadrille_session_store_writes_total",
                &["result"],
                "sessions sent to Redis: `ok` or `lost`",
            ),
            gauge("quadrille_ticket_keys", &[], "ticket keys known to this process"),
            gauge(
                "quadrille_ticket_key_age_seconds",
                &[],
                "seconds since the current ticket key was first used to encrypt; `NaN` if unknown",
            ),
            gauge(
                "quadrille_ticket_key_next_rotation_seconds",
                &[],
                "seconds until the next ticket key becomes current; `NaN` without one",
            ),
        ],
    },
    certificates::GROUP,
    Group {
        heading: "Key servers, at the gateway",
        metrics: &[
            gauge(
                "quadrille_keyless_server_up",
                &["server"],
                "1 while this process has a connection to the key server",
            ),
            counter(
                "quadrille_keyless_operations_total",
                &["server", "result"],
                "responses of key servers to operations: `ok`, `refused`, `wrong`",
            ),
            histogram(
                "quadrille_keyless_operation_seconds",
                &["server"],
                "seconds from sending an operation to its response",
            ),
            counter(
                "quadrille_keyless_failures_total",
                &["reason"],
                "operations without a result: `unavailable`, `deadline`, `refused`, `full`, `closed`",
            ),
            counter("quadrille_keyless_hedges_total", &[], "second requests, because the first was slow"),
            counter(
                "quadrille_keyless_fallbacks_total",
                &[],
                "operations computed with the local key, because no key server has computed them",
            ),
            counter(
                "quadrille_keyless_spilled_total",
                &["result"],
                "operations sent to key servers because the local queue was too long (`use: overflow`): \
                 `ok`, or computed locally after all because the key servers were `late` or `failed`",
            ),
            counter(
                "quadrille_keyless_violations_total",
                &["server"],
                "connections closed because of protocol violations",
            ),
        ],
    },
    Group {
        heading: "PKCS#11 tokens",
        metrics: &[
            gauge(
                "quadrille_pkcs11_token_up",
                &["token"],
                "1 while the token responds and this process is logged in, else 0",
            ),
            counter(
                "quadrille_pkcs11_failures_total",
                &["token", "reason"],
                "operations without a result: `timeout`, `hanging` (refused, because others exceed their timeout), \
                 `full`, `failed`, `wrong`",
            ),
        ],
    },
    Group {
        heading: "Key server",
        metrics: &[
            counter(
                "quadrille_keyserver_operations_total",
                &["client", "key", "operation", "result"],
                "computed operations, by client and key: `sign`, `decrypt` or `generate`; `ok`, `failed`, \
                 `withdrawn`",
            ),
            counter(
                "quadrille_keyserver_refused_total",
                &["client", "reason"],
                "rejected operations, by client: `no_key`, `denied`, `rate`, `opcode`, `input`, `queue_full`",
            ),
            histogram(
                "quadrille_keyserver_seconds",
                &[],
                "seconds from receiving an operation to its response",
            ),
            gauge("quadrille_keyserver_connections", &[], "open client connections"),
            counter("quadrille_keyserver_connections_total", &[], "accepted client connections"),
            counter(
                "quadrille_keyserver_refused_connections_total",
                &["reason"],
                "rejected client connections: `handshake`, `timeout`, `policy`, `too_many`",
            ),
            counter(
                "quadrille_keyserver_violations_total",
                &["client"],
                "connections closed because of protocol violations",
            ),
            gauge("quadrille_keyserver_keys", &[], "served keys"),
        ],
    },
];

#[cfg(test)]
mod tests;
